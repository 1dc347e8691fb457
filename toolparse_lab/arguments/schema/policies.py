"""The two policies that stand for something: `seed-layer2`, a Go orchestrator's coercion exactly,
and `lossy`, the negative control that does whatever makes a value validate.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...core.types import Step
from ...core.values import Num, Value, escape_token, number, pointer_tokens, write_canonical
from .budget import Budget
from .conforms import conforms
from .go_strconv import format_v, parse_bool, parse_float, parse_int
from .kinds import is_type
from .references import unwrap_json_schema
from .view import View
from .walk import Walk

# How it works. Both are measures for the others, and so they are kept apart from the walk. The Go
# policy is a port: it looks at the members of the top level and at nothing else, and every odd rule
# of it is strconv's. The lossy one starts from the most generous policy there is, and then replaces
# whatever is still wrong, from the leaves up; its arguments always look right and mean little.

_FLOATS = frozenset(("number", "float64", "float", "double"))
_INTEGERS = frozenset(("integer", "int", "int64", "int32"))
_BOOLEANS = frozenset(("boolean", "bool"))
GO_KINDS = {
    "coerce.go-parse-float": "float64",
    "coerce.go-parse-int": "int64",
    "coerce.go-parse-bool": "bool",
}
_LARGEST_EXACT = 2**53  # from here on, not every integer is a float
_SOME_NUMBER = re.compile(r"(-?)0*+([0-9]*)(?:[.,]([0-9]+))?")
_YES = frozenset(("true", "yes", "y", "on", "1", "ja", "oui", "si"))
_MAX_DEPTH = 100  # of a value that `lossy` looks into


def coerce_like_go(value: Value, schema: Any) -> tuple[Value, list[Step]]:
    """Top-level text arguments only, by the type's name in lower case."""
    if not isinstance(value, dict):
        return value, []

    kinds = _type_names(unwrap_json_schema(schema))
    out = dict(value)
    steps: list[Step] = []

    for key, member in value.items():
        kind = kinds.get(key)
        if kind is None or not isinstance(member, str):
            continue

        # The orchestrator compares the type's name without regard to case.
        new, rule = _parse_like_go(member, kind.lower())
        if new is not None:
            out[key] = new
            steps.append(Step("coerce", rule, "/" + escape_token(key), None, member, new))

    return (out, steps) if steps else (value, [])


def _type_names(schema: Any) -> dict[str, str]:
    # The orchestrator knows no lists of types: it leaves such a member alone.
    if isinstance(schema, (list, tuple)):
        # A capability's own list of parameters, as the orchestrator has it.
        schema = {"properties": {p["name"]: p for p in schema if _is_parameter(p)}}
    members = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(members, dict):
        return {}

    # A member whose node is malformed has no type, and is left alone like one without a schema.
    kinds = {name: _type_name(node) for name, node in members.items()}
    return {name: kind for name, kind in kinds.items() if kind is not None}


def _is_parameter(x: Any) -> bool:
    return isinstance(x, dict) and isinstance(x.get("name"), str)


def _type_name(node: Any) -> str | None:
    kind = node.get("type") if isinstance(node, dict) else None
    return kind if isinstance(kind, str) else None


def go_log_line(step: Step) -> str:
    """Return a step of `seed-layer2` as the orchestrator logs it: `key: string(OLD) -> float64(NEW)`."""
    kind = GO_KINDS[step.rule]
    new = float(step.after) if kind == "float64" else step.after
    (key,) = pointer_tokens(step.path)
    return f"{key}: string({step.before}) -> {kind}({format_v(new)})"


def _parse_like_go(text: str, kind: str) -> tuple[Value, str]:
    if kind in _FLOATS:
        x = parse_float(text)
        return (None if x is None else _as_go_writes(x)), "coerce.go-parse-float"
    if kind in _INTEGERS:
        return parse_int(text), "coerce.go-parse-int"
    if kind in _BOOLEANS:
        return parse_bool(text), "coerce.go-parse-bool"

    return None, ""


def _as_go_writes(x: float) -> Value:
    if x.is_integer() and abs(x) < _LARGEST_EXACT:
        return int(x) if x or not str(x).startswith("-") else Num("-0")

    is_finite = x - x == 0
    return Num(repr(x)) if is_finite else x


def coerce_lossy(value: Value, view: View) -> tuple[Value, list[Step]]:
    """Policy `middleware`, then anything that makes the rest validate."""
    # A negative control: a parser that scores no better than this one reads nothing into its
    # arguments.
    walk = Walk("middleware", False, Budget(value))
    # The same walk notes the steps of both.
    coerced = walk.value(value, view, "", 0)
    return _force(coerced, view, "", walk, 0), walk.steps


def _force(value: Value, view: View, path: str, walk: Walk, depth: int) -> Value:
    if depth > _MAX_DEPTH or view.open or conforms(view, value, walk.budget):
        return value

    # A container of the right type is wrong somewhere inside, or lacks a member: it stays.
    if isinstance(value, dict) and view.allows("object"):
        return _force_members(value, view, path, walk, depth)
    if isinstance(value, list) and view.allows("array"):
        return _force_items(value, view, path, walk, depth)
    return _force_leaf(value, view, path, walk)


def _force_leaf(value: Value, view: View, path: str, walk: Walk) -> Value:
    forced = _made_up(value, view)
    if forced is value or not conforms(view, forced, walk.budget):
        return value

    return walk.note("coerce.lossy", path, value, forced)


def _force_members(
    value: dict[str, Value], view: View, path: str, walk: Walk, depth: int
) -> dict[str, Value]:
    # Even this policy does not make up a member that the model never mentioned.
    out = dict(value)
    for key, member in value.items():
        child = view.child(key)
        if child is not None:
            out[key] = _force(member, child, f"{path}/{escape_token(key)}", walk, depth + 1)

    return out


def _force_items(value: list[Value], view: View, path: str, walk: Walk, depth: int) -> list[Value]:
    out = list(value)
    for i, item in enumerate(value):
        child = view.item(i)
        if child is not None:
            out[i] = _force(item, child, f"{path}/{i}", walk, depth + 1)

    return out


def _made_up(value: Value, view: View) -> Value:
    if view.any_of:
        return _made_up_for_branch(value, view)

    text = _as_text(value)
    if view.enum is not None:
        return _made_up_member(value, text, view.enum)

    return _made_up_of_type(value, text, view.types or ())


def _made_up_of_type(value: Value, text: str, types: tuple[str, ...]) -> Value:
    for name in types:
        if is_type(value, name):
            return value
        make = _MAKERS.get(name)
        if make is not None:
            return make(value, text)

    return value


def _made_up_for_branch(value: Value, view: View) -> Value:
    # A branch that nothing can be made up for is passed over, not reported.
    for branch in view.any_of:
        made_up = _made_up(value, branch)
        if conforms(branch, made_up):
            return made_up

    return value


def _made_up_member(value: Value, text: str, members: tuple[Value, ...]) -> Value:
    # Case and white space are what a model gets wrong most often.
    text = text.strip().casefold()
    for member in members:
        if str(member).casefold() == text:
            return member

    return members[0] if members else value


def _made_up_integer(value: Value, text: str) -> Value:
    sign, whole, _ = _some_number(text)
    return number(f"{sign}{whole}" if whole != "0" else "0")


def _made_up_number(value: Value, text: str) -> Value:
    sign, whole, part = _some_number(text)
    return number(f"{sign}{whole}.{part}") if part else _made_up_integer(value, text)


def _some_number(text: str) -> tuple[str, str, str]:
    # Sign, whole part, fraction: as strings, so that no number is too long. The fraction is '' for
    # a whole number.
    digit = re.search("-?[0-9]", text)
    match = _SOME_NUMBER.match(text, digit.start()) if digit else None
    if match is None:
        return "", "0", ""

    return match[1], match[2] or "0", (match[3] or "").rstrip("0")


# Type -> what makes some value of it out of a value and its text.
_MAKERS: dict[str, Callable[[Value, str], Value]] = {
    "integer": _made_up_integer,
    "number": _made_up_number,
    "boolean": lambda value, text: text.strip().lower() in _YES,
    "string": lambda value, text: text,
    "array": lambda value, text: [value],
    "object": lambda value, text: {},
}


def _as_text(value: Value) -> str:
    # Containers as JSON, for Python cannot print deep nesting.
    if isinstance(value, (dict, list)):
        return write_canonical(value)
    return value if isinstance(value, str) else str(value)
