"""Schemas compiled into what coercion asks of them."""

from __future__ import annotations

import json
from typing import Any

from tests.tables import asked_of, every_case
from toolparse_lab.arguments.schema.conforms import conforms
from toolparse_lab.arguments.schema.kinds import is_type
from toolparse_lab.arguments.schema.sound import unwrap_json_schema
from toolparse_lab.arguments.schema.view import view_of
from toolparse_lab.core.values import Num


def test_types_in_order_of_preference() -> None:
    assert view_of({"type": ["null", "string", "integer", "object"]}).types == (
        "object",
        "integer",
        "string",
        "null",
    )
    assert view_of({"properties": {}}).types == ("object",)
    assert view_of({"additionalProperties": False}).types == ("object",)
    assert view_of({"items": {}}).types == ("array",)
    assert view_of({"prefixItems": []}).types == ("array",)
    assert view_of({"minimum": 1}).types is None
    assert view_of({"type": "string"}).leaf == "string"
    assert view_of({"type": "string", "enum": ["a"]}).leaf is None


@asked_of("schema", [{}, True, None, "{}"])
def test_open_schemas(schema: Any) -> None:
    view = view_of(schema)
    assert view.open
    assert view.types is None
    assert conforms(view, {"any": 1})


ROOT = {
    "$defs": {"N": {"type": "integer"}, "a/b": {"type": "string"}, "List": [{"type": "null"}]},
    "type": "object",
    "properties": {
        "n": {"$ref": "#/$defs/N", "description": "kept"},
        "s": {"$ref": "#/$defs/a~1b"},
        "first": {"$ref": "#/$defs/List/0"},
        "self": {"$ref": "#"},
        "missing": {"$ref": "#/$defs/Nope"},
        "away": {"$ref": "https://example.invalid/x"},
        "both": {"allOf": [{"$ref": "#/$defs/N"}, {"minimum": 1}, {"enum": [1, 2]}]},
        "maybe": {"anyOf": [{"$ref": "#/$defs/N"}, {"type": "null"}]},
    },
}


def test_references() -> None:
    p = view_of(ROOT).properties
    assert p["n"].types == ("integer",)
    assert p["s"].types == ("string",)
    assert p["first"].types == ("null",)
    assert p["self"].properties["n"].types == ("integer",)
    assert p["missing"].types is None
    assert p["away"].types is None
    assert p["both"].types == ("integer",)
    assert p["both"].enum == (1, 2)
    assert [b.types for b in p["maybe"].any_of] == [("integer",), ("null",)]


def test_a_circle_of_references_says_nothing() -> None:
    circle = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
    assert view_of({"$defs": circle, "$ref": "#/$defs/A"}).types is None


def test_members() -> None:
    view = view_of(
        {
            "properties": {"a": {"type": "integer"}, "free": True},
            "patternProperties": {"^x_": {"type": "boolean"}, "(a+)+": {"type": "null"}},
            "additionalProperties": {"type": "string"},
        }
    )

    def types(key: str) -> Any:
        child = view.child(key)
        return child and child.types

    assert types("a") == ("integer",)
    assert types("x_1") == ("boolean",)
    assert types("other") == ("string",)
    assert types("aaaa") == ("string",), "a pattern that may take for ever is not used"
    assert view.properties["free"].fixed
    assert view_of({"properties": {}}).child("z") is None
    assert view_of({"additionalProperties": False}).child("z") is None


def test_items() -> None:
    new = view_of({"prefixItems": [{"type": "integer"}], "items": {"type": "string"}})
    old = view_of({"items": [{"type": "integer"}], "additionalItems": {"type": "string"}})
    for view in (new, old):
        assert [v.types for v in view.prefix] == [("integer",)]
        assert view.items is not None
        assert view.items.types == ("string",)
    assert view_of({"type": "array"}).items is None


@every_case
def test_what_is_admitted(schema: Any, string: bool, null: bool) -> None:
    view = view_of(schema)
    assert (view.admits_string(), view.admits_null()) == (string, null)


CONFORMS: list[tuple[Any, Any, bool]] = [
    ({"type": "integer"}, 3.0, True),
    ({"type": "integer"}, True, False),
    ({"type": "number"}, Num("1e5"), True),
    ({"enum": [1, "a"]}, 1.0, True),
    ({"enum": [1, "a"]}, True, False),
    ({"const": None}, None, True),
    ({"type": "object", "required": ["a"]}, {}, False),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, {"a": 1}, False),
    ({"type": "object", "additionalProperties": False}, {"a": 1}, False),
    ({"type": "object", "additionalProperties": {"type": "integer"}}, {"a": "x"}, False),
    ({"type": "array", "items": {"type": "integer"}}, [1, "x"], False),
    ({"type": "array", "prefixItems": [{"type": "integer"}]}, [1, "x"], True),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "x", False),
]


@asked_of(("schema", "value", "right"), CONFORMS)
def test_conforms_agrees_with_the_validator(schema: Any, value: Any, right: bool) -> None:
    import jsonschema

    assert conforms(view_of(schema), value) is right
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is right


@every_case
def test_is_type(value: Any, names: list[str]) -> None:
    every = ("object", "array", "boolean", "number", "integer", "string", "null")
    assert {n for n in every if is_type(value, n)} == {*names}


def test_views_of_equal_schemas_are_shared() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert view_of(schema) is view_of(json.loads(json.dumps(schema)))


def test_unwrap() -> None:
    assert unwrap_json_schema({"jsonSchema": {"jsonSchema": {"type": "null"}}}) == {"type": "null"}
    assert unwrap_json_schema({"jsonSchema": True}) is True
    assert unwrap_json_schema({"jsonSchema": 5}) == {"jsonSchema": 5}
