"""The short way of validation: plain schemas, of which our own view knows all there is to know.

A schema is plain if it has no other keywords than those `conforms` looks at, annotations, and
bounds of its members. A value that plainly conforms to one never reaches the validator library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from ...core.types import Policy
from ...core.values import Value, read_plain
from .bounds import Bounds, split_bounds, within
from .budget import OverBudget
from .conforms import TooDeep, conforms
from .raw_texts import holds_typed_text
from .references import node_at, unwrap_json_schema
from .scalars import holds_bare_null
from .type_names import has_own_type_names
from .view import View, view_of

# How it works. The keywords of every node are gone through once a schema, and the answer is cached
# by its text. What is left for each value is one pass of `conforms` and a comparison a bound. The
# short way may only ever say "this value is right": whatever it is not sure of is asked of the
# library, which also has the words for what is wrong.

_CHANGES_NOTHING: tuple[Policy, ...] = ("none", "safe")  # they leave whatever conforms as it is
# The keywords that never make a value wrong, and with them those `conforms` looks at.
_ANNOTATIONS = frozenset(
    ("title", "description", "default", "examples", "$schema", "$comment", "deprecated", "readOnly",
     "writeOnly", "format")
)  # fmt: skip
_PLAIN = _ANNOTATIONS | frozenset(
    ("type", "properties", "required", "enum", "const", "items", "prefixItems", "anyOf",
     "additionalProperties", "$defs", "definitions")
)  # fmt: skip
_DEFINITIONS = frozenset(("$defs", "definitions"))
_NODES_BY_NAME = ("properties", "$defs", "definitions")
_NODES_IN_ORDER = ("prefixItems", "anyOf")


def fits(value: Value, schema_json: str, policy: Policy = "safe", raw_text: bool = False) -> bool:
    """Tell if a value plainly conforms to a plain schema."""
    # True: the policy changes nothing in it, and `validate` finds no problem. False says nothing.
    if raw_text and holds_bare_null(value):
        return False

    plain = plain_schema(schema_json)
    if plain is None:
        return False

    view, bounds = plain
    if raw_text and holds_typed_text(value, view):
        return False
    try:
        # These two policies are asked about for nearly every call, and leave whatever conforms.
        if policy in _CHANGES_NOTHING:
            stays = conforms(view, value)
        else:
            # `middleware` reads text by the schema even where text is legal, so under it only plain
            # scalars are sure to stay. Of the others nothing is known.
            stays = policy == "middleware" and view.of_leaves(value)
            stays = stays and view.required <= value.keys()
        if not stays:
            return False
    except (OverBudget, TooDeep):
        return False

    return not bounds or within(value, bounds)


def plain_members(value: Value, schema_json: str) -> frozenset[str]:
    """Return the members of an object that plainly are right, of which the library need not be asked."""
    # A member with bounds is left to the library, which has the words for a value out of bounds.
    plain = plain_schema(schema_json)
    if plain is None or '"$ref"' in schema_json:
        return frozenset()  # a reference may lead to another member's schema

    view, bounds = plain
    if type(value) is not dict or view.box is not dict:
        return frozenset()

    bounded = {name for name, _ in bounds}
    leaves = view.leaves
    return frozenset(
        name
        for name, member in value.items()
        if type(member) in leaves.get(name, ()) and name not in bounded
    )


@lru_cache(maxsize=2048)
def plain_schema(schema_json: str) -> tuple[View, Bounds] | None:
    """Return the view of a plain schema and the bounds of its members."""
    try:
        return _judged(schema_json)
    except Exception:  # of all the ways in which a schema can be broken; looked at once a schema
        return None


def _judged(schema_json: str) -> tuple[View, Bounds] | None:
    schema, bounds = split_bounds(unwrap_json_schema(read_plain(schema_json)))
    stack: list[Any] = [schema]
    visited: set[int] = set()

    while stack:
        node = stack.pop()
        if isinstance(node, bool) or id(node) in visited:
            continue

        # By identity, so that a definition that refers to itself is gone through once.
        visited.add(id(node))
        if not isinstance(node, dict):
            return None
        if "$ref" in node:
            # What a reference leads to must be plain as well.
            target = _target(node, schema)
            if target is None:
                return None
            stack.append(target)
        elif _is_plain(node):
            stack.extend(_nodes_below(node))
        else:
            return None

    return (view_of(schema_json), bounds) if has_own_type_names(schema) else None


def _is_plain(node: dict[str, Any]) -> bool:
    if not node.keys() <= _PLAIN:
        return False

    # Draft 7's tuples and other odd values are left to the library.
    if not isinstance(node.get("items", {}), dict):
        return False
    if not isinstance(node.get("additionalProperties", {}), (dict, bool)):
        return False
    return all(isinstance(node.get(keyword, []), list) for keyword in ("required", "enum"))


def _nodes_below(node: dict[str, Any]) -> Iterator[Any]:
    # None, which is not a node, where a keyword is malformed: the caller then gives up.
    for keyword in _NODES_BY_NAME:
        yield from _values_of(node.get(keyword, {}))
    for keyword in _NODES_IN_ORDER:
        yield from _items_of(node.get(keyword, []))
    for keyword in ("items", "additionalProperties"):
        if keyword in node:
            yield node[keyword]


def _values_of(nodes: Any) -> Iterable[Any]:
    return nodes.values() if isinstance(nodes, dict) else [None]


def _items_of(nodes: Any) -> Iterable[Any]:
    return nodes if isinstance(nodes, list) else [None]


def _target(node: dict[str, Any], schema: Any) -> Any:
    if not _may_stand_beside(node, schema) or not isinstance(node["$ref"], str):
        return None

    target = node_at(schema, node["$ref"])
    if not isinstance(target, dict) or not target or "$ref" in target:
        return None

    return target


def _may_stand_beside(node: dict[str, Any], schema: Any) -> bool:
    # Definitions may be next to the reference of the whole schema.
    beside = node.keys() - _ANNOTATIONS - {"$ref"}
    return not beside or (node is schema and beside <= _DEFINITIONS)
