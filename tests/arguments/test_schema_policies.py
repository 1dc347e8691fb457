"""The Go policy against golden vectors of Go's own strconv, and the lossy negative control."""

from __future__ import annotations

import json
import math
import struct
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.arguments.schema.go import format_v, parse_bool, parse_float, parse_int
from toolparse_lab.core.values import write_canonical

VECTORS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases_core" / "go_strconv.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def _bits(x: float) -> int:
    return int.from_bytes(struct.pack(">d", x), "big")


def test_strconv_is_gos_to_the_letter() -> None:
    """Keys of a vector: in, f (IEEE bits in hex), fv (%v), i, b; null where Go's function fails."""
    assert len(VECTORS) == 600
    wrong = []
    for v in VECTORS:
        text, f = v["in"], parse_float(v["in"])
        if v["f"] is None:
            right = f is None
        elif f is None:
            right = False
        else:
            right = (
                math.isnan(f)
                if v["fv"] == "NaN"
                else _bits(f) == int(v["f"], 16) and format_v(f) == v["fv"]
            )
        if (
            not right
            or parse_bool(text) != v["b"]
            or parse_int(text) != (None if v["i"] is None else int(v["i"]))
        ):
            wrong.append(v)
    assert wrong == []


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e5", "0", "+0", "0x0p0", "-0x0p0"])
def test_the_sign_of_zero_survives(text: str) -> None:
    coerced = tp.coerce({"n": text}, {"properties": {"n": {"type": "number"}}}, "go-strconv")
    wanted = "-0" if text.startswith("-") else "0"
    assert write_canonical(coerced.value) == f'{{"n":{wanted}}}'


SCHEMA = {
    "type": "object",
    "properties": {
        "n": {"type": "Number"}, "f": {"type": "float64"}, "i": {"type": "int64"},
        "b": {"type": "BOOL"}, "s": {"type": "string"}, "l": {"type": "array"},
        "u": {"type": ["integer", "null"]},
        "o": {"type": "object", "properties": {"i": {"type": "integer"}}},
    },
}  # fmt: skip


@each_case
def test_layer_2_touches_top_level_text_only(given: Any, wanted: Any) -> None:
    result = tp.coerce(given, SCHEMA, "go-strconv")
    assert result.value == wanted
    assert (result.steps == ()) == (given == wanted)
    assert tp.coerce(given, None, "go-strconv").value == given


def test_a_number_that_is_not_finite_never_reaches_a_call() -> None:
    tools = [
        {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "number"}}}}
    ]
    raw = '<tool_call>{"name": "f", "arguments": {"x": "inf"}}</tool_call>'
    (call,) = tp.parse(raw, "hermes", tools, {"coerce": "go-strconv"}).calls
    assert call.arguments == {"x": "inf"}
    assert [p.code for p in call.problems if p.stage == "coerce"] == ["coerce.not-finite"]
    assert not call.valid


@each_case
def test_the_negative_control_makes_everything_validate(
    value: Any, schema: Any, wanted: Any
) -> None:
    result = tp.coerce(value, schema, "lossy")
    assert result.value == wanted
    assert any(not s.lossless for s in result.steps)
    assert tp.coerce(wanted, schema, "lossy").steps == ()
