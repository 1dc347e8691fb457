"""What is written: calls that read back, and values as XML that any reader of XML accepts."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

import toolparse_lab as tp
from tests.tables import asked_of, each_case
from tests.tools import tool_named
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.core.values import Num
from toolparse_lab.formats import rxml
from toolparse_lab.formats.rxml.writer import stringify

DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


@each_case
def test_stringify(value: Any, text: str) -> None:
    assert stringify("r", value, format=False) == text


def test_numbers_keep_their_lexemes() -> None:
    numbers = [0.5, Num("3.0"), Decimal("1.10")]
    assert stringify("r", numbers, format=False) == "<r>0.5</r><r>3.0</r><r>1.10</r>"


@each_case
def test_stringify_options(value: Any, options: dict[str, Any], text: str) -> None:
    assert stringify("r", value, format=False, **options) == text


@each_case
def test_formatted(value: Any, text: str) -> None:
    assert stringify("r", value) == DECLARATION + text


SELF: dict[str, Any] = {}
SELF["again"] = SELF
DEEP: Any = 1
for _ in range(5000):
    DEEP = {"a": DEEP}


@asked_of(
    ("root", "value"),
    [
        ("", 1), ("a b", 1), ("1a", 1), ("a<", 1), ("r\n", 1), ("r", {"a b": 1}), ("r", {"": 1}),
        ("r", {"0": "x"}), ("r", {"@": 1}), ("r", {"@a b": 1}), ("r", {1: 2}), ("r", "\x00"),
        ("r", "\ud800"), ("r", {"@a": "\x1b"}), ("r", "\uffff"),
        ("r", float("nan")), ("r", float("inf")), ("r", b"x"), ("r", {1, 2}), ("r", {"@a": [1]}), ("r", {"#text": {}}),
        ("r", {"#text": ["x"]}), ("r", SELF), ("r", DEEP), ("r", object()),
    ],
)  # fmt: skip
def test_what_xml_cannot_carry(root: str, value: Any) -> None:
    with pytest.raises(rxml.RXMLError):
        stringify(root, value)


TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"])
    | st.sampled_from("\n\t\r&<>\"' ]"),
    max_size=6,
).filter(lambda t: "\ufffe" not in t and "\uffff" not in t)
NAMES = st.sampled_from(["a", "b", "item", "x.y", "_z", "é"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(NAMES, inner, max_size=3)
        | st.builds(lambda v, t: {**v, "@k": t}, st.dictionaries(NAMES, inner, max_size=2), TEXT)
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(VALUES, st.booleans(), st.booleans())
def test_what_is_written_is_well_formed(value: Any, format: bool, minimal: bool) -> None:
    if isinstance(value, list):
        value = {"a": value}  # several roots are no document
    text = stringify("r", value, format=format, minimal_escaping=minimal)
    root = etree.fromstring(text.encode())
    assert root.tag == "r"
    if isinstance(value, str):
        assert (root.text or "") == value
    if isinstance(value, dict) and "@k" in value:
        assert root.attrib["k"] == value["@k"]


@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c"]),
        TEXT | st.dictionaries(NAMES, TEXT, min_size=1, max_size=2),
        min_size=1,
    )
)
def test_what_is_written_is_parsed_back(value: dict[str, Any]) -> None:
    text: dict[str, Any] = {"type": "string"}
    inner = {"type": "object", "additionalProperties": text}
    schema = {"properties": {k: text if isinstance(v, str) else inner for k, v in value.items()}}
    for options in ({"format": False}, {"format": True}, {"minimal_escaping": True}):
        assert rxml.parse(stringify("root", value, **options), schema) == value  # type: ignore[arg-type]


# calls

TOOL = tool_specs(
    [
        tool_named(
            "t",
            s="string",
            a={"type": "array", "items": {"type": "string"}},
            n={"type": "array", "items": {"type": "integer"}},
            u={
                "type": "array",
                "items": {"type": "object", "properties": {"k": {"type": "string"}}},
            },
            m={"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            o={"type": "object", "properties": {"k": {"type": "string"}}},
            z={"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        )
    ]
)[0]


@each_case
def test_calls_are_written_and_read_back(arguments: dict[str, Any], text: str) -> None:
    assert tp.protocols()["morph_xml"].write_call("t", json.dumps(arguments), TOOL) == text
    assert tp.parse(text, "morph_xml", [TOOL]).calls[0].arguments == arguments


@pytest.mark.parametrize(
    "arguments", [{"unknown": [1]}, {"a b": 1}, {"z": None, "s": None}, {"-": 1}]
)
def test_what_would_read_differently_is_not_written(arguments: dict[str, Any]) -> None:
    with pytest.raises(tp.errors.UnwritableCall):
        tp.protocols()["morph_xml"].write_call("t", json.dumps(arguments), TOOL)


def test_a_call_of_a_tool_that_is_not_known() -> None:
    assert tp.protocols()["morph_xml"].write_call("ping", "{}") == "<ping/>"
    assert tp.protocols()["morph_xml"].write_call("t", '{"a":[1,2]}') == "<t><a>1</a><a>2</a></t>"
