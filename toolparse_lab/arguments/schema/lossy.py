"""The policy `lossy`, the negative control that does whatever makes a value validate."""

from __future__ import annotations

import re

from ...core.types import Step
from ...core.values import Value, escape_token, number, write_canonical
from .budget import Budget
from .conforms import conforms
from .kinds import is_type
from .view import View
from .walk import Walk

# How it works. It starts from the most generous policy there is, and then replaces whatever is
# still wrong, from the leaves up; its arguments always look right and mean little. A parser that
# scores no better than this one reads nothing into its arguments.

_SOME_NUMBER = re.compile(r"(-?)0*+([0-9]*)(?:[.,]([0-9]+))?")
_YES = frozenset(("true", "yes", "y", "on", "1", "ja", "oui", "si"))
_MAX_DEPTH = 100  # of a value that is looked into


def coerce_lossy(value: Value, view: View) -> tuple[Value, list[Step]]:
    """Policy `middleware`, then anything that makes the rest validate. Returns value and steps."""
    walk = Walk("middleware", False, Budget(value))
    # The same walk notes the steps of both.
    coerced = walk.value(value, view, "", 0)
    return _force(coerced, view, "", walk, 0), walk.steps


def _force(value: Value, view: View, path: str, walk: Walk, depth: int) -> Value:
    if depth > _MAX_DEPTH or view.open or conforms(view, value, walk.budget):
        return value

    # A container of the right type is wrong somewhere inside, or lacks a member: it stays. Even
    # this policy does not make up a member that the model never mentioned.
    if isinstance(value, dict) and view.allows("object"):
        return {
            key: _force(member, child, f"{path}/{escape_token(key)}", walk, depth + 1)
            if (child := view.child(key))
            else member
            for key, member in value.items()
        }
    if isinstance(value, list) and view.allows("array"):
        return [
            _force(item, child, f"{path}/{i}", walk, depth + 1) if (child := view.item(i)) else item
            for i, item in enumerate(value)
        ]

    forced = _made_up(value, view)
    if forced is value or not conforms(view, forced, walk.budget):
        return value
    return walk.note("coerce.lossy", path, value, forced)


def _made_up(value: Value, view: View) -> Value:
    # Some value of the wanted type that has something to do with this one, if only the place. The
    # value itself if no type is wanted, or only types that nothing is made up for.
    if view.any_of:
        # In the schema's order, which is the order of its author's preference.
        made_up = ((branch, _made_up(value, branch)) for branch in view.any_of)
        return next((new for branch, new in made_up if conforms(branch, new)), value)

    if isinstance(value, (dict, list)):
        text = write_canonical(value)  # Python cannot print deep nesting
    else:
        text = value if isinstance(value, str) else str(value)
    if view.enum is not None:
        # Case and white space are what a model gets wrong most often.
        plain = text.strip().casefold()
        alike = (member for member in view.enum if str(member).casefold() == plain)
        return next(alike, view.enum[0] if view.enum else value)

    for name in view.types or ():
        if is_type(value, name):
            return value
        if name in ("integer", "number"):
            return _some_number(text, name)
        if name == "boolean":
            return text.strip().lower() in _YES
        if name == "string":
            return text
        if name == "array":
            return [value]
        if name == "object":
            return {}
    return value


def _some_number(text: str, kind: str) -> Value:
    # The first number in the text, with a comma or a point, 0 where there is none. Its parts stay
    # strings, so that no number is too long. An integer is cut at its point.
    digit = re.search("-?[0-9]", text)
    match = _SOME_NUMBER.match(text, digit.start()) if digit else None
    if match is None:
        return 0
    sign, whole, part = match[1], match[2] or "0", (match[3] or "").rstrip("0")
    if kind == "number" and part:
        return number(f"{sign}{whole}.{part}")
    return number(f"{sign}{whole}" if whole != "0" else "0")
