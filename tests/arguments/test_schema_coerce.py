"""Coercion by policy: what each policy makes of a value, by which rules, and that it is idempotent
and pure."""

from __future__ import annotations

import copy
import itertools
import json
import math
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.cases.check import check, decode
from tests.core_cases import SHIPPED, load, rows
from tests.tables import asked_of, every_case
from tests.tools import object_schema, tool_named
from toolparse_lab.arguments.schema.go import format_v, parse_bool, parse_float, parse_int
from toolparse_lab.arguments.schema.plain import read_texts
from toolparse_lab.arguments.schema.scalars import UNRECORDED, Record
from toolparse_lab.arguments.schema.validate import find_problems
from toolparse_lab.core.rules import RULES
from toolparse_lab.core.values import leaves, pointer_set, read_strict, same, write_canonical
from toolparse_lab.parser import resolve


@pytest.mark.parametrize("policy", ["none", "safe", "middleware"])
@asked_of("case", rows("coerce.jsonl"))
def test_coerce(case: dict[str, Any], policy: Any) -> None:
    """As wanted, with the value given unchanged, steps that lead to the result, and none left."""
    value, schema = case["value"], case["schema"]
    want, rules = (value, []) if policy == "none" else case[policy]
    before = copy.deepcopy(value)
    written = {name: case.get(name, False) for name in ("one_item", "raw_text")}
    found = tp.coerce(value, schema, policy, **written)
    assert same(found.value, want), found.value
    assert sorted(s.rule for s in found.steps) == sorted(rules)
    assert same(value, before), "the value given was changed"
    assert all(s.stage == "coerce" and s.rule in RULES for s in found.steps)
    assert all(s.lossless for s in found.steps) or policy != "safe"
    for step in found.steps:
        before = pointer_set(before, step.path, read_strict(write_canonical(step.after)))
    assert same(before, found.value)
    for how in ("one_item", "raw_text"):
        once = tp.coerce(value, schema, policy, **{how: True})
        assert tp.coerce(once.value, schema, policy, **{how: True}).steps == ()


@pytest.mark.parametrize("policy", ["safe", "middleware"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_coercing_twice_makes_no_step_whatever_types_are_legal(policy: Any, count: int) -> None:
    types = ["array", "string", "integer", "number", "boolean", "null", "object"]
    values: list[Any] = [
        "a", "a, b", "[1]", "5", "1e3", "true", "null", "{}", "", 5, 5.5, True, None, [], ["a"],
        [[1]], {}, {"a": 1}, {"item": "x"}, {"0": "a"},
    ]  # fmt: skip
    for names in itertools.permutations(types, count):
        for schema in ({"type": [*names]}, {"type": [*names], "items": {"type": "string"}}):
            for value in values:
                once = tp.coerce(value, schema, policy)
                again = tp.coerce(once.value, schema, policy)
                assert again.steps == (), (schema, value)
                assert again.value == once.value


@asked_of("case", [c for c in rows("middleware.jsonl", SHIPPED) if c.values[0]["op"] == "coerce"])
def test_middleware_cases(case: dict[str, Any]) -> None:
    got = {"value": tp.coerce_by_schema(decode(case["value"]), case.get("schema"))}
    assert check(case["expect"], got) is None


def test_the_middleware_cases_are_there() -> None:
    assert sum(c["op"] == "coerce" for c in load("middleware.jsonl", SHIPPED)) > 100


def test_a_wrong_policy_is_named() -> None:
    with pytest.raises(tp.errors.UnknownName) as caught:
        tp.coerce(1, {}, "safest")  # type: ignore[arg-type]
    assert "safest" in str(caught.value)
    assert "middleware" in str(caught.value)


def test_schema_as_text_mapping_bool_and_none() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    for as_given in (schema, json.dumps(schema)):
        assert tp.coerce({"a": "1"}, as_given).value == {"a": 1}
    for nothing in (True, None):
        assert tp.coerce({"a": "1"}, nothing).value == {"a": "1"}


def test_number_lexemes_become_text_as_written() -> None:
    value = read_strict('{"a": 3.0, "b": 1e5, "c": 12345678901234567890.5}')
    schema = {"type": "object", "additionalProperties": {"type": "string"}}
    assert tp.coerce(value, schema).value == {"a": "3.0", "b": "1e5", "c": "12345678901234567890.5"}


def test_big_integers_stay_exact() -> None:
    text = "9" * 400
    assert tp.coerce(text, {"type": "integer"}).value == int(text)


def test_depth_is_no_error() -> None:
    schema: dict[str, Any] = {
        "$defs": {"T": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
        "$ref": "#/$defs/T",
    }
    value: Any = []
    for _ in range(600):
        value = [value]
    assert same(tp.coerce(value, schema, "middleware").value, value)
    assert sum(1 for _ in leaves(value)) == 1


def test_steps_name_their_paths() -> None:
    schema = object_schema(a={"type": "array", "items": {"type": "integer"}})
    steps = tp.coerce({"a": '["1", 2, "3"]'}, schema).steps
    assert [(s.rule, s.path) for s in steps] == [
        ("coerce.json-from-string", "/a"),
        ("coerce.integer-from-string", "/a/0"),
        ("coerce.integer-from-string", "/a/2"),
    ]
    assert steps[1].before == "1"
    assert steps[1].after == 1


# The Go policy against golden vectors of Go's own strconv, and the lossy negative control.


VECTORS = load("go_strconv.jsonl")


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


@asked_of("text", ["-0", "-0.0", "-0e5", "0", "+0", "0x0p0", "-0x0p0"])
def test_the_sign_of_zero_survives(text: str) -> None:
    coerced = tp.coerce({"n": text}, {"properties": {"n": {"type": "number"}}}, "go-strconv")
    wanted = "-0" if text.startswith("-") else "0"
    assert write_canonical(coerced.value) == f'{{"n":{wanted}}}'


SCHEMA = object_schema(n="Number", f="float64", i="int64", b="BOOL", s="string", l="array", u={"type": ["integer", "null"]}, o=object_schema(i="integer"))  # fmt: skip


@every_case
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


@every_case
def test_the_negative_control_makes_everything_validate(
    value: Any, schema: Any, wanted: Any
) -> None:
    result = tp.coerce(value, schema, "lossy")
    assert result.value == wanted
    assert any(not s.lossless for s in result.steps)
    assert tp.coerce(wanted, schema, "lossy").steps == ()


# The short way of coercion says what the long one says.


NUMBERS = ["5", "-0", "007", "+5", "3.0", "2.50", "1e3", "1e400", "0.1", "9" * 40, "١٢", " 12 "]
WORDS = [
    "five", "5 km", "null", "true", "False", "YES", "0", "1", "on", "[1]", "{}", '"5"', "", " ",
    '["a", "5"]', ' [[1.50, null]]', '{"a": "b"}', '{"a": 1, "a": 2}', '{"a": [{"a": 7}]}', "[1,]",
    '{"a": "null"}', "a", "None",
]  # fmt: skip
TEXTS = st.sampled_from(NUMBERS + WORDS) | st.text(max_size=6)
TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
MEMBERS = st.one_of(
    st.sampled_from(TYPES).map(lambda kind: {"type": kind}),
    st.sampled_from([{}, {"type": ["string", "integer"]}, {"type": "string", "enum": ["a", "5"]}]),
    st.sampled_from([{"type": "integer", "minimum": 4}, {"type": "string", "maxLength": 2}]),
    st.sampled_from([
        {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
        {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "integer"}}]},
        {"type": ["string", "null"]}, {"type": ["object", "string"]}, {"enum": ["a", 5, None]},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"anyOf": [{"type": "array"}, {"type": "integer"}]}}},
        {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
        {"type": "array", "items": {"type": ["string", "integer"]}}, {"const": "a"}, True,
    ]),
)  # fmt: skip
NAMES = st.sampled_from(["a", "b/c", "d~", "arguments"])
SCHEMAS = st.fixed_dictionaries(
    {"properties": st.dictionaries(NAMES, MEMBERS, max_size=4)},
    optional={
        "type": st.just("object"),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": st.sampled_from([False, True, {"type": "integer"}]),
        "minProperties": st.just(2),
    },
)


@given(SCHEMAS, st.dictionaries(NAMES, TEXTS, max_size=4))
def test_the_short_way_says_what_the_long_one_says(
    schema: dict[str, Any], texts: dict[str, str]
) -> None:
    record = Record("safe")
    arguments_json = read_texts(texts.items(), json.dumps(schema), record)
    assert arguments_json == read_texts(texts.items(), json.dumps(schema), UNRECORDED)
    if arguments_json is None:
        return
    coerced = tp.coerce(texts, schema, one_item=True, raw_text=True)
    assert arguments_json == write_canonical(coerced.value)
    assert tuple(record.steps) == coerced.steps
    assert coerced.problems == ()
    assert find_problems(coerced.value, json.dumps(schema)) == ()


@asked_of(
    ("kind", "text", "value"),
    [
        ("integer", "5", 5), ("number", "2.50", 2.5), ("boolean", "True", True), ("string", "5", "5"),
        ("array", '[1, "a"]', [1, "a"]), ("object", '{"a": [2]}', {"a": [2]}), ("null", "null", None),
    ],
)  # fmt: skip
def test_the_short_way_reads_plain_values(kind: str, text: str, value: Any) -> None:
    schema = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
    record = Record("safe")
    arguments_json = read_texts([("x", text)], json.dumps(schema), record)
    assert arguments_json is not None
    assert json.loads(arguments_json) == {"x": value}
    assert [step.before for step in record.steps] == ([] if kind == "string" else [text])


@every_case
def test_the_short_way_leaves_the_rest_to_the_long_one(
    members: dict[str, Any], texts: dict[str, str]
) -> None:
    schema_json = json.dumps({"type": "object", "properties": members})
    assert read_texts(texts.items(), schema_json, Record("safe")) is None


def test_a_name_that_stands_twice_is_not_read() -> None:
    schema_json = json.dumps({"type": "object", "properties": {"x": {"type": "string"}}})
    assert read_texts([("x", "a"), ("x", "b")], schema_json, Record("safe")) is None


def test_half_of_a_surrogate_pair_is_written_as_an_escape() -> None:
    schema_json = json.dumps({"type": "object", "properties": {"x": {"type": "string"}}})
    assert read_texts([("x", "\ud83d")], schema_json, UNRECORDED) == '{"x":"\\ud83d"}'


@pytest.mark.parametrize("text", ["C", "12"])
def test_texts_that_fit_are_not_shown_to_the_library(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resolve, "find_problems", lambda *_: pytest.fail("asked the library"))
    tool = tool_named("f", unit={"type": "string", "enum": ["C", "12"]})
    raw = f"<tool_call><function=f><parameter=unit>{text}</parameter></function></tool_call>"
    assert tp.parse(raw, "qwen3_coder_xml", [tool]).calls[0].problems == ()
