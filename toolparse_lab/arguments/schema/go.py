"""The policy `go-strconv`: the coercion of a Go orchestrator, ported exactly, and as much of Go's
strconv as it needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from ...core.types import Step
from ...core.values import Num, Value, escape_token, pointer_tokens
from .sound import unwrap_json_schema

# How it works. The orchestrator looks at the members of the top level and at nothing else, and
# every odd rule is strconv's. Go's and Python's number texts differ in details: underscores,
# hexadecimal floats, spaces, other scripts' digits. So a pattern in Go's words decides if a text is
# a number at all, and only then Python computes it; both round to the nearest double, so that the
# values are equal.

GO_KINDS = {
    "coerce.go-parse-float": "float64",
    "coerce.go-parse-int": "int64",
    "coerce.go-parse-bool": "bool",
}
_LARGEST_EXACT = 2**53  # from here on, not every integer is a float
# Underscores may separate digits, as in Go's own number literals.
_D = r"[0-9](?:_?[0-9])*"
_H = r"[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_D}(?:\.(?:{_D})?)?|\.{_D})(?:[eE][+-]?{_D})?")
_HEX = re.compile(rf"[+-]?0[xX]_?(?:{_H}(?:\.(?:{_H})?)?|\.{_H})[pP][+-]?{_D}")
_SPECIAL = re.compile(r"([+-]?)inf(?:inity)?|nan", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_BOOLEANS = {
    **dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True),
    **dict.fromkeys(("0", "f", "F", "FALSE", "false", "False"), False),
}
_INT64 = 2**63
_INT64_DIGITS = 19  # longer ones overflow, and reading them would cost the square of their length
_INFINITIES = (float("inf"), float("-inf"))


def coerce_like_go(value: Value, schema: Any) -> tuple[Value, list[Step]]:
    """Top-level text arguments only, by the type's name in any case. Returns value and steps.

    A text that strconv refuses stays as it is. schema: as it came, before any view of it.
    """
    if not isinstance(value, dict):
        return value, []

    kinds = _type_names(unwrap_json_schema(schema))
    out = dict(value)
    steps: list[Step] = []
    for key, member in value.items():
        kind = kinds.get(key)
        if kind is None or not isinstance(member, str):
            continue

        parse, rule = _PARSERS.get(kind.lower(), (None, ""))
        new = parse(member) if parse else None
        if new is not None:
            out[key] = new
            steps.append(Step("coerce", rule, "/" + escape_token(key), None, member, new))

    return (out, steps) if steps else (value, [])


def _type_names(schema: Any) -> dict[str, str]:
    if isinstance(schema, (list, tuple)):
        # A capability's own list of parameters, as the orchestrator has it.
        named = [p for p in schema if isinstance(p, dict) and isinstance(p.get("name"), str)]
        schema = {"properties": {p["name"]: p for p in named}}
    members = schema.get("properties") if isinstance(schema, dict) else None
    if not isinstance(members, dict):
        return {}

    # The orchestrator knows no lists of types: it leaves such a member alone, and a malformed one.
    return {
        name: node["type"]
        for name, node in members.items()
        if isinstance(node, dict) and isinstance(node.get("type"), str)
    }


def go_log_line(step: Step) -> str:
    """Return a step as the orchestrator logs it: `key: string(OLD) -> float64(NEW)`."""
    kind = GO_KINDS[step.rule]
    new = float(step.after) if kind == "float64" else step.after
    (key,) = pointer_tokens(step.path)
    return f"{key}: string({step.before}) -> {kind}({format_v(new)})"


def _number(text: str) -> Value:
    # As Go's JSON has it: an integer without a point, and a zero with its sign. Infinity and NaN
    # stay floats, since JSON has no text for them.
    x = parse_float(text)
    if x is None:
        return None
    if x.is_integer() and abs(x) < _LARGEST_EXACT:
        return int(x) if x or not str(x).startswith("-") else Num("-0")

    is_finite = x - x == 0
    return Num(repr(x)) if is_finite else x


# strconv


def parse_float(text: str) -> float | None:
    """Return the result of `strconv.ParseFloat(text, 64)`, None if it fails (overflow included)."""
    if text.isascii() and _SPECIAL.fullmatch(text):
        return float(text)

    digits = text.replace("_", "")
    if _DECIMAL.fullmatch(text):
        value = float(digits)
        return None if value in _INFINITIES else value
    if not _HEX.fullmatch(text):
        return None

    try:
        return float.fromhex(digits)
    except OverflowError:
        return None


def parse_int(text: str) -> int | None:
    """Return the result of `strconv.ParseInt(text, 10, 64)`, or None if it fails."""
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > _INT64_DIGITS:
        return None

    value = int(digits or "0")
    if text[0] == "-":
        value = -value

    return value if -_INT64 <= value < _INT64 else None


def parse_bool(text: str) -> bool | None:
    """Return the result of `strconv.ParseBool(text)`, or None if it fails."""
    return _BOOLEANS.get(text)


# Name of a type, in lower case -> what reads a text as one, and the rule.
_PARSERS: Mapping[str, tuple[Callable[[str], Value], str]] = {
    **dict.fromkeys(("number", "float64", "float", "double"), (_number, "coerce.go-parse-float")),
    **dict.fromkeys(("integer", "int", "int64", "int32"), (parse_int, "coerce.go-parse-int")),
    **dict.fromkeys(("boolean", "bool"), (parse_bool, "coerce.go-parse-bool")),
}


def format_v(value: float | int | bool) -> str:
    """Return the text `%v` writes: of a float, the shortest digits that read back, with an
    exponent below 1e-4 and from 1e+06 on.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in _INFINITIES:
        return "+Inf" if value > 0 else "-Inf"

    # Both languages print the shortest digits that read back, so that only their layout differs.
    shortest = Decimal(repr(value)).normalize()
    if -4 <= shortest.adjusted() < 6 or not shortest:
        return f"{shortest:f}"
    mantissa, _, power = f"{shortest:e}".partition("e")
    return f"{mantissa}e{int(power):+03d}"
