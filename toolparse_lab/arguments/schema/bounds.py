"""Bounds of an object's members, such as `minimum` and `maxLength`, held to without the validator
library.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, TypeAlias

from ...core.values import Value
from .kinds import is_type

Check: TypeAlias = tuple[Callable[[Any, Any], bool], str, Any]
"""The comparison that must hold, what is compared, the bound."""

Bounds: TypeAlias = tuple[tuple[str, tuple[Check, ...]], ...]
"""(member, its checks), in the schema's order."""

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
    """Return the schema without the bounds of its members, and those bounds."""
    members = _members(schema)
    limits = {name: _limits(node) for name, node in members.items()}
    bounds = tuple((name, _checks(own)) for name, own in limits.items() if own)
    if not bounds:
        return schema, ()

    unbounded = {name: _without(node, limits[name]) for name, node in members.items()}
    return {**schema, "properties": unbounded}, bounds


def _members(schema: Any) -> dict[str, Any]:
    if not isinstance(schema, dict) or "$ref" in schema:
        return {}

    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _checks(limits: dict[str, Any]) -> tuple[Check, ...]:
    return tuple((*_KEYWORDS[keyword], limit) for keyword, limit in limits.items())


def _without(node: Any, limits: dict[str, Any]) -> Any:
    if not limits:
        return node
    return {keyword: v for keyword, v in node.items() if keyword not in limits}


def _limits(node: Any) -> dict[str, Any]:
    if not isinstance(node, dict) or "$ref" in node:
        return {}
    return {k: v for k, v in node.items() if k in _KEYWORDS and is_type(v, "number")}


def within(value: Value, bounds: Bounds) -> bool:
    """Tell if the members of an object keep to the bounds."""
    if not isinstance(value, dict):
        return True
    return all(_keeps_to(value[name], checks) for name, checks in bounds if name in value)


def _keeps_to(member: Value, checks: tuple[Check, ...]) -> bool:
    # A member of a wrong type is the business of the keyword `type`.
    for holds, kind, bound in checks:
        if not is_type(member, kind):
            continue

        # Characters of a text are code points, as JSON Schema counts them.
        measure = member if kind == "number" else len(member)
        if not holds(measure, bound):
            return False

    return True
