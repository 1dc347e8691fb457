"""Arguments in the strict form of their schema, and back: nothing is lost on the way."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.tools import object_schema
from toolparse_lab.arguments.schema.strict_form import (
    plain_arguments,
    strict_arguments,
    strict_form,
)

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
NULLABLE: list[Drawn] = [
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
    nullable = st.sampled_from(NULLABLE)
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
def test_every_instance_comes_back_from_the_strict_form(drawn: tuple[dict[str, Any], Any]) -> None:
    schema, arguments = drawn
    assert is_valid(arguments, schema)
    strict = strict_arguments(arguments, schema)
    assert is_valid(strict, strict_form(schema).schema)
    assert plain_arguments(strict, schema)[0] == arguments


@settings(deadline=None)
@given(tools())
def test_changes_are_the_whole_way_back(drawn: tuple[dict[str, Any], Any]) -> None:
    schema, arguments = drawn
    strict = strict_arguments(arguments, schema)
    _, changes = plain_arguments(strict, schema)
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
