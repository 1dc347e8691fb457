"""The types of JSON Schema: which value is a string, an integer, a number; and which type a name
means that people write by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from ...core.values import BigNum, Num, Value
from ...core.values.numbers import is_whole

# The types of a leaf, and the Python classes whose values plainly are one. A value of any other
# class is looked at more closely: 3.0 is an integer although it is a float.
LEAVES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, Num, float, BigNum),
    "boolean": (bool,),
    "null": (type(None),),
}

# Python class -> the types every value of it has. Classes of which others may be derived come with
# no order among them, except that `bool`, itself an `int`, is always found by its own entry.
_NAMES: Mapping[type, tuple[str, ...]] = {
    bool: ("boolean",),
    str: ("string",),
    int: ("integer", "number"),
    float: ("number",),
    Num: ("number",),
    Decimal: ("number",),
    BigNum: ("number",),
    dict: ("object",),
    list: ("array",),
    type(None): ("null",),
}


def is_type(value: Value, name: str) -> bool:
    """Return True if a value has a type of JSON Schema: 3.0 is an integer, True not a number."""
    names = _NAMES.get(type(value))
    if names is None:  # of a derived class, such as an enum
        names = next((own for base, own in _NAMES.items() if isinstance(value, base)), ())
    if name in names:
        return True

    return name == "integer" and isinstance(value, (float, Decimal)) and is_whole(value)


# How it works. A schema written by hand says `float` or `dict` where JSON Schema says `number` or
# `object`. By the letter such a schema is invalid and a value of it is never checked. A view asks
# `type_name` of each node; the validator library gets a copy of the schema with the right names,
# and `foreign_type_names` is what the tool's author is told. Only the keyword `type` of a schema
# node counts: a property may be called type, and so may a member of an example.

_MEANINGS: Mapping[str, tuple[str, ...]] = {
    "string": ("str", "text", "char"),
    "integer": ("int", "long", "short", "int32", "int64", "uint", "uint32", "uint64"),
    "number": ("float", "double", "decimal", "float32", "float64"),
    "boolean": ("bool",),
    "object": ("dict", "map", "struct", "record"),
    "array": ("list", "tuple", "set"),
    "null": ("none", "nonetype", "nil"),
}
_MEANING_OF: Mapping[str, str] = {
    name: meaning for meaning, names in _MEANINGS.items() for name in (meaning, *names)
}
# The keywords whose value is a node, a list of nodes, or nodes by name.
_NODE = (
    "items", "additionalItems", "additionalProperties", "not", "if", "then", "else", "contains",
    "propertyNames", "unevaluatedItems", "unevaluatedProperties", "jsonSchema",
)  # fmt: skip
_NODES = ("anyOf", "oneOf", "allOf", "prefixItems", "items")
_NODES_BY_NAME = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")


def type_name(name: str) -> str:
    """Return the type of JSON Schema that a name means, the name itself if it means none."""
    return name if name in _MEANINGS else _MEANING_OF.get(name.lower(), name)


def foreign_type_names(schema: Any) -> dict[str, str]:
    """Return the names in a schema that are not JSON Schema's own, with their meaning."""
    return {
        name: meaning
        for node in _nodes(schema)
        for name in names_in(node.get("type"))
        if (meaning := type_name(name)) != name
    }


def unknown_type_names(schema: Any) -> set[str]:
    """Return the names of types in a schema that are not JSON Schema's own."""
    names = {name for node in _nodes(schema) for name in names_in(node.get("type"))}
    return names - _MEANINGS.keys()


def has_own_type_names(schema: Any) -> bool:
    """Return True if all types in a schema are named as JSON Schema names them."""
    # `nullable`, which OpenAPI writes next to the type, is not such a name.
    return not unknown_type_names(schema) and not any(map(is_nullable, _nodes(schema)))


def is_nullable(node: Mapping[str, Any]) -> bool:
    """Return True if a node admits null next to its type in OpenAPI's way."""
    return node.get("nullable") is True


def with_own_type_names(schema: Any) -> None:
    """Put JSON Schema's own names into a schema, which is changed in place."""
    for node in _nodes(schema):
        keyword = node.get("type")
        if is_nullable(node) and isinstance(keyword, (str, list)):
            keyword = [*names_in(keyword), "null"]
        if isinstance(keyword, str):
            node["type"] = type_name(keyword)
        elif isinstance(keyword, list):
            once: list[Any] = []  # two names may mean one type, which a list may hold once
            for name in keyword:
                own = type_name(name) if isinstance(name, str) else name
                if own not in once:
                    once.append(own)
            node["type"] = once


def names_in(keyword: Any) -> list[str]:
    """Return the names in the value of the keyword `type`, one or a list of them."""
    names = keyword if isinstance(keyword, list) else [keyword]
    return [name for name in names if isinstance(name, str)]


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    todo = [schema]
    while todo:
        node = todo.pop()
        if not isinstance(node, dict):
            continue
        yield node
        for keyword, inner in node.items():
            if keyword in _NODES_BY_NAME and isinstance(inner, dict):
                todo.extend(inner.values())
            elif keyword in _NODES and isinstance(inner, list):
                todo.extend(inner)
            elif keyword in _NODE:
                todo.append(inner)
