"""The short way of coercion says what the long one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.arguments.schema.plain import read_texts
from toolparse_lab.arguments.schema.scalars import UNRECORDED, Record
from toolparse_lab.arguments.schema.validate import find_problems
from toolparse_lab.core.values import write_canonical
from toolparse_lab.parser import resolve

NUMBERS = ["5", "-0", "007", "+5", "3.0", "2.50", "1e3", "1e400", "0.1", "9" * 40, "١٢", " 12 "]
WORDS = [
    "five", "5 km", "null", "true", "False", "YES", "0", "1", "on", "[1]", "{}", '"5"', "", " ",
]  # fmt: skip
TEXTS = st.sampled_from(NUMBERS + WORDS) | st.text(max_size=6)
TYPES = ["string", "integer", "number", "boolean", "null", "array", "object"]
MEMBERS = st.one_of(
    st.sampled_from(TYPES).map(lambda kind: {"type": kind}),
    st.sampled_from([{}, {"type": ["string", "integer"]}, {"type": "string", "enum": ["a", "5"]}]),
    st.sampled_from([{"type": "integer", "minimum": 4}, {"type": "string", "maxLength": 2}]),
    st.just({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}),
)
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


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [("integer", "5", 5), ("number", "2.50", 2.5), ("boolean", "True", True), ("string", "5", "5")],
)
def test_the_short_way_reads_plain_scalars(kind: str, text: str, value: Any) -> None:
    schema = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
    record = Record("safe")
    arguments_json = read_texts([("x", text)], json.dumps(schema), record)
    assert arguments_json is not None
    assert json.loads(arguments_json) == {"x": value}
    assert [step.before for step in record.steps] == ([] if kind == "string" else [text])


@each_case
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
