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
    """Return the schema without the bounds of its members, and those bounds.

    A bound that is not a number stays where it is, for the library to complain of. Nodes with a
    reference stay whole: the node of the reference may have bounds of its own.

    >>> split_bounds({"properties": {"days": {"type": "integer", "minimum": 1}}})[0]
    {'properties': {'days': {'type': 'integer'}}}
    """
    members = _members(schema)
    limits = {name: _limits(node) for name, node in members.items()}
    bounds = tuple((name, _checks(own)) for name, own in limits.items() if own)
    if not bounds:
        return schema, ()

    unbounded = {name: _without(node, limits[name]) for name, node in members.items()}
    return {**schema, "properties": unbounded}, bounds


def _members(schema: Any) -> dict[str, Any]:
    """Return the members that a schema declares itself.

    None if it refers to another node.

    schema: any node, also one that is not a mapping at all.

    >>> _members({"properties": {"n": {"type": "integer"}}})
    {'n': {'type': 'integer'}}
    """
    if not isinstance(schema, dict) or "$ref" in schema:
        return {}

    members = schema.get("properties")
    return members if isinstance(members, dict) else {}


def _checks(limits: dict[str, Any]) -> tuple[Check, ...]:
    """Bounds by keyword as what is checked, in their order.

    limits: keyword -> bound, as `_limits` returns them.
    """
    return tuple((*_KEYWORDS[keyword], limit) for keyword, limit in limits.items())


def _without(node: Any, limits: dict[str, Any]) -> Any:
    """Return a member's schema without its bounds, or itself if it has none.

    >>> _without({"type": "integer", "minimum": 1}, {"minimum": 1})
    {'type': 'integer'}
    """
    if not limits:
        return node
    return {keyword: v for keyword, v in node.items() if keyword not in limits}


def _limits(node: Any) -> dict[str, Any]:
    """Return the bounds of one member's schema, by keyword.

    None if it refers to another node.

    >>> _limits({"type": "integer", "minimum": 1, "maximum": "many"})
    {'minimum': 1}
    """
    if not isinstance(node, dict) or "$ref" in node:
        return {}
    return {k: v for k, v in node.items() if k in _KEYWORDS and is_type(v, "number")}


def within(value: Value, bounds: Bounds) -> bool:
    """Tell if the members of an object keep to the bounds.

    A member of another type has none.

    A missing member has none either: whether it may be missing is another keyword's matter.

    >>> bounds = split_bounds({"properties": {"name": {"maxLength": 3}}})[1]
    >>> [within({"name": name}, bounds) for name in ("Ann", "Anna", 5)]
    [True, False, True]
    """
    if not isinstance(value, dict):
        return True
    return all(_keeps_to(value[name], checks) for name, checks in bounds if name in value)


def _keeps_to(member: Value, checks: tuple[Check, ...]) -> bool:
    """Tell if one member keeps to its bounds.

    A bound compares the size that its keyword is about: the number itself, or the length of a text
    or list.

    checks: comparison, type it is about, and bound, one for each keyword. A member of another type
    passes.
    """
    # A member of a wrong type is the business of the keyword `type`.
    for holds, kind, bound in checks:
        if not is_type(member, kind):
            continue

        # Characters of a text are code points, as JSON Schema counts them.
        measure = member if kind == "number" else len(member)
        if not holds(measure, bound):
            return False

    return True
