"""The strict form of a schema: what is sent, what is left out, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tables import each_case
from tests.tools import object_schema
from toolparse_lab.arguments.schema.strict_form import strict_form
from toolparse_lab.core.errors import BadToolSpec, NoStrictForm


def member_of(schema: dict[str, Any], **more: Any) -> Any:
    """The strict form of the one required member of a tool."""
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"], **more}
    return strict_form(whole).schema["properties"]["x"]


def test_objects_are_closed_and_every_member_is_required() -> None:
    schema = object_schema(
        required=["city"],
        city="string",
        days={"type": "integer", "description": "how many"},
        unit={"type": "string", "enum": ["C", "F"], "description": "of what"},
        at=object_schema(lat="number"),
    )
    null = {"type": "null"}
    at = {
        "type": "object",
        "properties": {"lat": {"type": ["number", "null"]}},
        "required": ["lat"],
        "additionalProperties": False,
    }
    unit = {"type": "string", "enum": ["C", "F"]}
    assert strict_form(schema).schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "days": {"type": ["integer", "null"], "description": "how many"},
            "unit": {"anyOf": [unit, null], "description": "of what"},
            "at": {"anyOf": [at, null]},
        },
        "required": ["city", "days", "unit", "at"],
        "additionalProperties": False,
    }
    assert schema["required"] == ["city"]  # what came in is as it was


def test_what_only_narrows_is_left_out_and_named() -> None:
    form = strict_form(
        {
            "properties": {
                "a~/b": {"type": "string", "minLength": 1, "format": "uri", "default": "x"},
                "n": {"type": "number", "minimum": 0, "exclusiveMinimum": True},
                "p": {"type": "string", "pattern": "^(?!x)", "format": "date"},
                "l": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                "u": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            }
        }
    )
    assert form.omitted == (
        "/properties/a~0~1b/format",
        "/properties/a~0~1b/minLength",
        "/properties/p/pattern",
        "/properties/l/uniqueItems",
        "/properties/u/oneOf",
    )
    assert form.schema["properties"]["a~/b"] == {"type": ["string", "null"]}
    assert form.schema["properties"]["n"] == {"type": ["number", "null"], "exclusiveMinimum": 0}
    assert form.schema["properties"]["u"] == {
        "anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]
    }


def test_type_names_written_by_hand_and_types_that_go_without_saying() -> None:
    assert member_of({"type": "float"}) == {"type": "number"}
    assert member_of({"enum": ["a", 1, None]})["type"] == ["string", "integer", "null"]
    assert member_of({"const": True}) == {"type": "boolean", "const": True}
    assert member_of({"items": {"type": "int"}})["type"] == "array"
    assert member_of({"properties": {}})["type"] == "object"


def test_definitions_come_along_once_they_are_referred_to() -> None:
    tree = object_schema(
        required=["name"], name="string", parts={"type": "array", "items": {"$ref": "#/$defs/Tree"}}
    )
    form = strict_form({"$ref": "#/$defs/Tree", "$defs": {"Tree": tree, "Unused": {"not": {}}}})
    schema = form.schema
    assert set(schema["$defs"]) == {"Tree"}
    assert schema["properties"] == schema["$defs"]["Tree"]["properties"]
    assert schema["required"] == ["name", "parts"]
    described = {"$ref": "#/definitions/P", "description": "where"}
    whole = {"definitions": {"P": {"type": "string"}}}
    assert member_of(described, **whole) == {
        "anyOf": [{"$ref": "#/definitions/P"}],
        "description": "where",
    }
    assert member_of({"allOf": [{"$ref": "#/definitions/P"}]}, **whole) == {
        "anyOf": [{"$ref": "#/definitions/P"}]
    }


def test_a_tool_without_parameters() -> None:
    closed = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    for schema in ({"type": "object"}, {"type": "object", "properties": {}}, {}):
        assert strict_form(schema).schema == closed


STRING = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}


@each_case
def test_what_cannot_be_said_is_refused_with_its_place(
    schema: dict[str, Any], keyword: str, path: str
) -> None:
    with pytest.raises(NoStrictForm) as raised:
        member_of(schema, **{"$defs": {"P": STRING}})
    assert (raised.value.keyword, raised.value.path) == (keyword, path)
    assert keyword in str(raised.value)
    assert isinstance(raised.value, BadToolSpec)


@each_case
def test_the_arguments_as_a_whole_are_one_closed_object(
    schema: dict[str, Any], keyword: str
) -> None:
    with pytest.raises(NoStrictForm) as raised:
        strict_form(schema)
    assert raised.value.keyword == keyword


def test_a_tag_tells_objects_of_the_same_members_apart() -> None:
    branches: list[dict[str, Any]] = [
        object_schema(required=["kind"], kind={"const": "a"}, n=STRING),
        object_schema(required=["kind", "n"], kind={"enum": ["b"]}, n=NULLABLE),
    ]
    assert len(member_of({"anyOf": branches})["anyOf"]) == 2
    branches[1]["properties"]["kind"]["enum"] = ["b", "a"]
    with pytest.raises(NoStrictForm):
        member_of({"anyOf": branches})


def test_null_by_default_is_the_same_as_left_out() -> None:
    schema = {"properties": {"a": {"anyOf": [STRING, {"type": "null"}], "default": None}}}
    assert strict_form(schema).schema["properties"]["a"] == {"anyOf": [STRING, {"type": "null"}]}
