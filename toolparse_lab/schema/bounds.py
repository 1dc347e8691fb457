"""Bounds of an object's members, such as `minimum` and `maxLength`, held to without the validator library."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from ..values import Value
from .conforms import is_type

Bounds: TypeAlias = tuple[tuple[str, tuple[tuple[Callable[[Any, Any], bool], str, Any], ...]], ...]
"""(member, ((comparison, what is compared, bound), …)), in the schema's order."""

# keyword -> the comparison that must hold, and what is compared: the number itself, or a length
_KEYWORDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "number"),
    "maximum": (operator.le, "number"),
    "exclusiveMinimum": (operator.gt, "number"),
    "exclusiveMaximum": (operator.lt, "number"),
    "minLength": (operator.ge, "string"),
    "maxLength": (operator.le, "string"),
    "minItems": (operator.ge, "array"),
    "maxItems": (operator.le, "array"),
}


def split_bounds(schema: Any) -> tuple[Any, Bounds]:
    """The schema without the bounds of its members, and those bounds. A bound that is no number stays where it is.

    >>> split_bounds({"properties": {"days": {"type": "integer", "minimum": 1}}})[0]
    {'properties': {'days': {'type': 'integer'}}}
    """
    members = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(members, dict) or "$ref" in schema:
        return schema, ()
    found: list[tuple[str, tuple[tuple[Callable[[Any, Any], bool], str, Any], ...]]] = []
    rest = dict(members)
    for name, node in members.items():
        if not isinstance(node, dict) or "$ref" in node:
            continue
        bounds = {k: v for k, v in node.items() if k in _KEYWORDS and is_type(v, "number")}
        if bounds:
            found.append((name, tuple((*_KEYWORDS[k], v) for k, v in bounds.items())))
            rest[name] = {k: v for k, v in node.items() if k not in bounds}
    return ({**schema, "properties": rest}, tuple(found)) if found else (schema, ())


def within(value: Value, bounds: Bounds) -> bool:
    """Whether the members of an object keep to the bounds; a member of another type has none."""
    if not isinstance(value, dict):
        return True
    for name, checks in bounds:
        if name in value:
            member = value[name]
            for holds, kind, bound in checks:
                if is_type(member, kind) and not holds(member if kind == "number" else len(member), bound):
                    return False
    return True
