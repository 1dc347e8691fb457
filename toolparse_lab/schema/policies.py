"""The two policies that stand for something: `seed-layer2`, a Go orchestrator's coercion to the letter, and `lossy`,
the negative control that does whatever makes a value validate."""

from __future__ import annotations

import re
from typing import Any

from ..types import Step
from ..values import Num, Value, escape_token, write_canonical
from .conforms import is_type
from .go_strconv import parse_bool, parse_float, parse_int
from .view import View, unwrap_json_schema
from .walk import Walk

_FLOATS = frozenset(("number", "float64", "float", "double"))
_INTEGERS = frozenset(("integer", "int", "int64", "int32"))
_BOOLEANS = frozenset(("boolean", "bool"))
_SOME_NUMBER = re.compile(r"-?[0-9]+(?:[.,][0-9]+)?")
_YES = frozenset(("true", "yes", "y", "on", "1", "ja", "oui", "si"))


def coerce_like_go(value: Value, schema: Any) -> tuple[Value, list[Step]]:
    """Top-level text arguments only, by the type's name in lower case; what strconv refuses stays as it is."""
    schema = unwrap_json_schema(schema)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return value, []
    out = dict(value)
    steps: list[Step] = []
    for key, member in value.items():
        declared = properties.get(key)
        kind = declared.get("type") if isinstance(declared, dict) else None
        if not isinstance(member, str) or not isinstance(kind, str):
            continue
        new, rule = _go(member, kind.lower())
        if new is not None:
            out[key] = new
            steps.append(Step("coerce", rule, "/" + escape_token(key), None, member, new))
    return (out, steps) if steps else (value, [])


def _go(text: str, kind: str) -> tuple[Value, str]:
    if kind in _FLOATS:
        number = parse_float(text)
        return (None if number is None else _float(number)), "coerce.go-parse-float"
    if kind in _INTEGERS:
        return parse_int(text), "coerce.go-parse-int"
    if kind in _BOOLEANS:
        return parse_bool(text), "coerce.go-parse-bool"
    return None, ""


def _float(number: float) -> Value:
    """A finite float as Go's JSON would write it: an integer without a point."""
    if number.is_integer() and abs(number) < 2**53:
        return int(number)
    return Num(repr(number)) if number - number == 0 else number


def coerce_lossy(value: Value, view: View) -> tuple[Value, list[Step]]:
    """Policy `middleware`, then anything that makes what is left validate."""
    walk = Walk("middleware")
    out = _force(walk.value(value, view, "", 0), view, "", walk, 0)
    return out, walk.steps


def _force(value: Value, view: View, path: str, walk: Walk, depth: int) -> Value:
    if depth > 100 or view.open or view.conforms(value):
        return value
    if isinstance(value, dict) and view.allows("object"):
        out = dict(value)
        for key, member in value.items():
            child = view.child(key)
            if child is not None:
                out[key] = _force(member, child, f"{path}/{escape_token(key)}", walk, depth + 1)
        return out
    if isinstance(value, list) and view.allows("array"):
        prefix, items = view.prefix, view.items
        return [
            item if child is None else _force(item, child, f"{path}/{i}", walk, depth + 1)
            for i, item in enumerate(value)
            for child in [prefix[i] if i < len(prefix) else items]
        ]
    forced = _made_up(value, view)
    if forced is value or not view.conforms(forced):
        return value
    return walk.note("coerce.lossy", path, value, forced)


def _made_up(value: Value, view: View) -> Value:
    """Some value of the wanted type that has something to do with this one, if only the place."""
    if view.any_of:
        return next((m for b in view.any_of for m in [_made_up(value, b)] if b.conforms(m)), value)
    if view.enum is not None:
        text = _as_text(value).strip().casefold()
        same = [m for m in view.enum if str(m).casefold() == text]
        return (same or list(view.enum) or [value])[0]
    text = _as_text(value)
    for name in view.types or ():
        if is_type(value, name):
            return value
        if name in ("integer", "number"):
            found = _SOME_NUMBER.search(text)
            number = float(found[0].replace(",", ".")) if found else 0.0
            return int(number) if name == "integer" or number.is_integer() else Num(repr(number))
        if name == "boolean":
            return text.strip().lower() in _YES
        if name == "string":
            return text
        if name == "array":
            return [value]
        if name == "object":
            return {}
    return value


def _as_text(value: Value) -> str:
    if isinstance(value, (dict, list)):
        return write_canonical(value)  # Python cannot print what nests deep
    return value if isinstance(value, str) else str(value)
