"""The strict form of a schema: what is sent, what is left out, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.tables import every_case
from tests.tools import object_schema
from toolparse_lab.arguments.schema.strict_form import (
    plain_arguments,
    strict_arguments,
    strict_form,
)
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


@every_case
def test_what_cannot_be_said_is_refused_with_its_place(
    schema: dict[str, Any], keyword: str, path: str
) -> None:
    with pytest.raises(NoStrictForm) as raised:
        member_of(schema, **{"$defs": {"P": STRING}})
    assert (raised.value.keyword, raised.value.path) == (keyword, path)
    assert keyword in str(raised.value)
    assert isinstance(raised.value, BadToolSpec)


@every_case
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


# Arguments in the strict form of their schema, and back: nothing is lost on the way.


# A schema is drawn together with a strategy for its instances: (schema, instances).
Drawn = tuple[dict[str, Any], st.SearchStrategy[Any]]

SCALARS: list[Drawn] = [
    ({"type": "string", "maxLength": 3}, st.text("abn", max_size=3)),
    ({"type": "integer", "minimum": 0}, st.integers(0, 9)),
    ({"type": "boolean"}, st.booleans()),
    ({"enum": ["a", 2]}, st.sampled_from(["a", 2])),
    ({"const": "null"}, st.just("null")),
]
# Legal values of a required member alone: left out, null could not be told from null.
NULLABLE_VALUES: list[Drawn] = [
    ({"type": ["string", "null"]}, st.none() | st.text("ab", max_size=2)),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, st.none() | st.integers()),
]


def array_of(items: Drawn) -> Drawn:
    schema, instances = items
    return {"type": "array", "items": schema}, st.lists(instances, max_size=3)


def union_of(branches: list[Drawn]) -> Drawn:
    return {"anyOf": [schema for schema, _ in branches]}, st.one_of([own for _, own in branches])


@st.composite
def objects(draw: st.DrawFn, members: st.SearchStrategy[Drawn]) -> Drawn:
    names = draw(st.lists(st.sampled_from(["a", "b", "c/d", "~"]), unique=True, max_size=4))
    chance = st.booleans()
    required = [name for name in names if draw(chance)]
    nullable = st.sampled_from(NULLABLE_VALUES)
    drawn = {name: draw(members | nullable if name in required else members) for name in names}
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema for name, (schema, _) in drawn.items()},
    }
    if draw(chance) or required:
        schema["required"] = required
    if draw(chance):
        schema["additionalProperties"] = False
    instances = st.fixed_dictionaries(
        {name: drawn[name][1] for name in required},
        optional={name: own for name, (_, own) in drawn.items() if name not in required},
    )
    return schema, instances


def tagged(branches: list[Drawn]) -> Drawn:
    """A union of objects that one member tells apart."""
    return union_of([_with_tag(number, branch) for number, branch in enumerate(branches)])


def _with_tag(number: int, branch: Drawn) -> Drawn:
    schema, instances = branch
    properties = {**schema["properties"], "kind": {"const": number}}
    required = [*schema.get("required", ()), "kind"]
    return (
        {**schema, "properties": properties, "required": required},
        instances.map(lambda value: {**value, "kind": number}),
    )


FLAT = objects(st.sampled_from(SCALARS))
NODES: st.SearchStrategy[Drawn] = st.recursive(
    st.sampled_from(SCALARS) | st.lists(FLAT, min_size=2, max_size=3).map(tagged),
    lambda inner: objects(inner) | inner.map(array_of),
    max_leaves=8,
)


@st.composite
def tools(draw: st.DrawFn) -> tuple[dict[str, Any], Any]:
    """A tool's schema and arguments that are valid under it."""
    schema, instances = draw(objects(NODES))
    return schema, draw(instances)


def is_valid(value: Any, schema: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(value))


@settings(deadline=None)
@given(tools())
def test_every_instance_comes_back_and_changes_are_the_whole_way(
    drawn: tuple[dict[str, Any], Any],
) -> None:
    schema, arguments = drawn
    assert is_valid(arguments, schema)
    strict = strict_arguments(arguments, schema)
    assert is_valid(strict, strict_form(schema).schema)
    plain, changes = plain_arguments(strict, schema)
    assert plain == arguments
    for change in changes:
        lost = {name: change.before[name] for name in change.before.keys() - change.after.keys()}
        assert lost
        assert set(lost.values()) == {None}
    assert bool(changes) is (strict != arguments)


def test_members_that_differ_tell_branches_apart() -> None:
    schema = {
        "properties": {
            "x": {
                "anyOf": [
                    {"type": "object", "properties": {"a": {"type": "string"}}},
                    {"type": "object", "properties": {"b": {"type": "string"}}},
                ]
            }
        }
    }
    assert strict_arguments({"x": {"b": "1"}}, schema) == {"x": {"b": "1"}}
    assert strict_arguments({"x": {}}, schema) == {"x": {"a": None}}
    value, changes = plain_arguments({"x": {"b": None}}, schema)
    assert value == {"x": {}}
    assert [change.path for change in changes] == ["/x"]


def test_what_fits_no_branch_is_left_as_it_is() -> None:
    branch = {"type": "object", "properties": {"a": {"type": "string"}, "k": {"type": "integer"}}}
    other = {"type": "object", "properties": {"c": {"type": "string"}}}
    schema = {"properties": {"x": {"anyOf": [branch, other]}}}
    value = {"x": {"a": None, "k": "no number"}}
    assert plain_arguments(value, schema) == (value, ())


def test_a_schema_that_holds_itself_and_values_of_any_depth() -> None:
    tree = object_schema(name="string", part={"$ref": "#/$defs/Tree"})
    schema = {"$ref": "#/$defs/Tree", "$defs": {"Tree": tree}}
    value = {"name": "a", "part": {"part": {"name": "b"}}}
    strict = {"name": "a", "part": {"name": None, "part": {"name": "b", "part": None}}}
    assert strict_arguments(value, schema) == strict
    assert plain_arguments(strict, schema)[0] == value
    assert [change.path for change in plain_arguments(strict, schema)[1]] == ["/part", "/part/part"]

    deep: dict[str, Any] = {"name": None}
    for _ in range(5000):
        deep = {"part": deep}
    assert plain_arguments(deep, schema) == (deep, ())  # nobody nests like that


def test_null_by_the_schema_s_own_default_stays() -> None:
    schema = {"properties": {"a": {"type": ["string", "null"], "default": None}}}
    assert plain_arguments({"a": None}, schema) == ({"a": None}, ())
    assert strict_arguments({}, schema) == {"a": None}
