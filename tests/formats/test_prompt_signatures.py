"""Tools as JSON, signatures and outlines."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, each_case
from tests.tools import object_schema
from toolparse_lab.core.errors import BadToolSpec
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.formats.prompt.shape import (
    items_of,
    kind_of,
    positions_of,
    properties_of,
    resolve,
)
from toolparse_lab.formats.prompt.signatures import (
    python_type,
    write_tools_json,
    write_tools_signatures,
    write_tools_xml,
)
from toolparse_lab.formats.prompt.type_rules import JSON_TYPE_RULES, TypeRule
from toolparse_lab.formats.registry import family_heads

TOOLS = [
    ToolSpec.of(
        {
            "name": "book",
            "description": "Books a\n   table.",
            "parameters": {
                "type": "object",
                "$defs": {"seat": object_schema(required=["row"], row="integer")},
                "properties": {
                    "note": {"type": ["string", "null"], "default": None},
                    "guests": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 8,
                        "description": "How many\ncome",
                    },
                    "seats": {"type": "array", "items": {"$ref": "#/$defs/seat"}},
                    "area": {"enum": ["in", "out"]},
                    "pair": {
                        "type": "array",
                        "prefixItems": [{"type": "number"}, {"type": "boolean"}],
                    },
                    "extra": {"type": "object", "additionalProperties": {"type": "number"}},
                },
                "required": ["guests"],
            },
        }
    ),
    ToolSpec("stop", "Stops."),
]


def test_json_is_compact_and_complete() -> None:
    text = write_tools_json(TOOLS)
    assert json.loads(text) == [t.to_dict() for t in TOOLS]
    assert text.count("\n") == 1
    assert ", " not in text.replace("a\n   table", "")


def test_signatures() -> None:
    assert write_tools_signatures(TOOLS) == (
        'book(guests: int, note: str | None = null, seats: list[{row: int}] = ..., area: "in" | '
        '"out" = ..., '
        "pair: tuple[float, bool] = ..., extra: dict[str, float] = ...)\n"
        "    Books a table.\n"
        "    guests: How many come (at least 1, at most 8)\n"
        "stop()\n"
        "    Stops."
    )


def test_outlines() -> None:
    assert write_tools_xml(TOOLS) == (
        "<book> Books a table.\n"
        "  <guests>integer, How many come (at least 1, at most 8)</guests>\n"
        "  <note>string or null, optional</note>\n"
        "  <seats> optional, repeat the element for every item\n"
        "    <row>integer</row>\n"
        "  </seats>\n"
        "  <area>one of in | out, optional</area>\n"
        "  <pair>JSON array, optional</pair>\n"
        "  <extra>JSON object, optional</extra>\n"
        "</book>\n"
        "<stop> Stops.\n"
        "</stop>"
    )


def test_recursion_is_cut() -> None:
    node = object_schema(me={"$ref": "#"}, us={"type": "array", "items": {"$ref": "#"}})
    spec = [ToolSpec.of({"name": "f", "parameters": node})]
    for text in (write_tools_signatures(spec), write_tools_xml(spec)):
        assert 20 < len(text) < 4000
    assert len(write_tools_signatures(spec, max_depth=1)) < len(
        write_tools_signatures(spec, max_depth=2)
    )


def test_many_choices_are_cut() -> None:
    assert python_type({"enum": list(range(100))}, {}).endswith("39 | ...")


@each_case
def test_kind(node: dict[str, Any], expected: str) -> None:
    assert kind_of(node) == expected


def test_resolve_merges_and_overrides() -> None:
    root = {
        "$defs": {
            "a/b": {
                "type": "object",
                "properties": {"x": {"type": "null"}},
                "required": ["x"],
                "title": "T",
            }
        }
    }
    ref = {"$ref": "#/$defs/a~1b"}
    merged = resolve(
        {"allOf": [ref, {"properties": {"y": {}}, "required": ["y"]}], "title": "mine"}, root
    )
    assert merged["title"] == "mine"
    assert properties_of(merged) == [("y", {}, True), ("x", {"type": "null"}, True)]
    assert resolve({**ref, "title": "mine"}, root)["title"] == "mine"
    assert resolve(True, root) == {}


@pytest.mark.parametrize("ref", ["#/$defs/a", "#/$defs/missing", "other.json", 7])
def test_refs_that_lead_nowhere(ref: Any) -> None:
    with pytest.raises(BadToolSpec, match=r"\$ref"):
        resolve({"$ref": ref}, {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}})


def test_required_without_a_schema_and_forbidden_properties() -> None:
    assert properties_of({"properties": {"a": False, "b": True}, "required": ["c"]}) == [
        ("c", {}, True),
        ("b", True, False),
    ]


def test_draft_7_tuples() -> None:
    node = {"items": [{"type": "string"}], "additionalItems": False}
    assert positions_of(node) == [{"type": "string"}]
    assert items_of(node) is False
    assert positions_of({"items": {"type": "string"}}) == []


# Type rules: each format's examples are what they say they are, read by the format itself.


TYPES = {
    "number": float,
    "integer": int,
    "boolean": bool,
    "string": str,
    "array": list,
    "object": dict,
}
# Protocol -> a call around one parameter as its rules write it.
AROUND = {
    "hermes": '<tool_call>{{"name": "f", "arguments": {{{}}}}}</tool_call>',
    "morph_xml": "<f>{}</f>",
    "qwen3_coder_xml": "<tool_call>\n<function=f>\n{}\n</function>\n</tool_call>",
    "yaml_xml": "<f>\n{}\n</f>",
    "pythonic": "[f({})]",
}
# These write types themselves; the others have them from the schema, and forgive more.
STRICT = ("hermes", "pythonic")
RULES = [
    pytest.param(protocol, rule, id=f"{protocol}-{rule.json_type}")
    for protocol in AROUND
    for rule in tp.protocols()[protocol].type_rules.rules
]


def read_value(protocol: str, rule: TypeRule, value: str) -> object:
    """What the format reads where a model writes the rule's example; None where it reads nothing."""
    schema = {"type": "object", "properties": {rule.parameter: {"type": rule.json_type}}}
    pair = tp.protocols()[protocol].type_rules.write_pair(rule.parameter, value)
    result = tp.parse(
        AROUND[protocol].format(pair), protocol, [{"name": "f", "parameters": schema}],
        {"coerce": "none", "repair": False} if protocol in STRICT else None,
    )  # fmt: skip
    call = result.calls[0] if result.calls else None
    if call is None or not call.valid or rule.parameter not in call.arguments:
        return None
    return call.arguments[rule.parameter]


@asked_of(("protocol", "rule"), RULES)
def test_the_right_example_has_its_type_in_its_own_format(protocol: str, rule: TypeRule) -> None:
    assert type(read_value(protocol, rule, rule.example)) is TYPES[rule.json_type]


@pytest.mark.parametrize(("protocol", "rule"), [r for r in RULES if r.values[0] in STRICT])
def test_the_wrong_example_is_not_read(protocol: str, rule: TypeRule) -> None:
    assert read_value(protocol, rule, rule.anti_pattern) is None


@pytest.mark.parametrize("protocol", sorted(family_heads()))
def test_every_protocol_speaks_of_every_type_in_one_order(protocol: str) -> None:
    rules = tp.protocols()[protocol].type_rules.rules
    assert [r.json_type for r in rules] == [r.json_type for r in JSON_TYPE_RULES.rules]


@each_case
def test_rules_speak_the_language_of_their_format(protocol: str, line: str) -> None:
    assert line in tp.protocols()[protocol].type_rules.render()


def test_rules_of_a_format_made_from_data_use_its_words() -> None:
    invoke = tp.Protocol.from_spec(
        id="invoke", body="tags", function="invoke", parameter="arg", attribute=True
    )
    assert '<arg name="city">Tokyo</arg>' in invoke.type_rules.render()


def test_the_agreed_pairs_are_there() -> None:
    text = JSON_TYPE_RULES.render()
    for right, wrong in (
        ('"lat": 35.6897', '"lat": "35.6897"'),
        ('"count": 10', '"count": "10"'),
        ('"enabled": true', '"enabled": "true"'),
        ('"city": "Tokyo"', '"city": Tokyo'),
    ):
        assert f"CORRECT: {right}  WRONG: {wrong}\n" in text
    assert text.count("\n") == len(JSON_TYPE_RULES.rules) - 1
