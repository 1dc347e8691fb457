"""Values of unquoted YAML scalars: the core schema of YAML 1.2, and the tool's schema in doubt."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...arguments.schema.view import View
from ...core.values import Value, number
from ...core.values.numbers import Number

_MAX_DIGITS = 3000  # of a hexadecimal or octal integer, so that it can still be written in decimal
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {w: w[0] in "tT" for w in ("true", "True", "TRUE", "false", "False", "FALSE")}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_FLOAT = re.compile(r"([-+]?)(0|[1-9][0-9]*)?(?:(\.)([0-9]*))?([eE][-+]?[0-9]+)?")
_ZEROS = re.compile(r"([-+]?)0+([0-9]+)")
_NUMBER_STARTS = frozenset("+-.0123456789")
_RADIX = {"0x": (16, re.compile(r"0x[0-9a-fA-F]+")), "0o": (8, re.compile(r"0o[0-7]+"))}


def resolve_plain(text: str, view: View | None = None) -> Value:
    """Return the meaning of an unquoted scalar in YAML 1.2's core schema.

    No yes and no, no dates, no base 60. If the schema wants text and another spelling would lose
    characters (`007`, `0x1F`, `+5`), it stays text. Leading zeros are a number only where the
    schema wants one. Not-a-number and infinity are text: JSON has neither.

    view: the schema of the value, None if nothing is known of it.

    >>> [resolve_plain(text) for text in ("3", "1.50", "True", "~", "no", "2024-01-15")]
    [3, 1.5, True, None, 'no', '2024-01-15']
    >>> [resolve_plain(text) for text in ("007", "0x1F", "1_000")]
    ['007', 31, '1_000']
    """
    if view is not None and view.enum and _is_member(text, view.enum):
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return _boolean(text, view)

    # Most scalars are words, and most others are JSON's own numbers: these two checks come first.
    if _JSON_NUMBER.fullmatch(text):
        return _number(text)
    if text[0] not in _NUMBER_STARTS:
        return text
    return _spelt_number(text, view)


def _boolean(text: str, view: View | None) -> Value:
    # In JSON's own spelling it is a boolean, whatever the schema wants.
    if text not in ("true", "false") and _wants_text(view, "boolean"):
        return text
    return _BOOLEAN[text]


def _spelt_number(text: str, view: View | None) -> Value:
    # As text it keeps all its characters, so it stays one where the schema has a place for texts
    # and none for this kind of number.
    zeros = _ZEROS.fullmatch(text)
    if zeros:
        return _with_leading_zeros(zeros, view)

    value = _odd_number(text)
    if value is None:
        return text
    kind = "integer" if isinstance(value, int) else "number"
    return text if _wants_text(view, kind) else value


def _with_leading_zeros(zeros: re.Match[str], view: View | None) -> Value:
    # An identifier such as 007 may well begin with zeros.
    if not _wants_number(view) or _wants_text(view, ""):
        return zeros[0]
    return _number(zeros[1].replace("+", "") + zeros[2])


def _is_member(text: str, enum: Sequence[Value]) -> bool:
    return text in [member for member in enum if isinstance(member, str)]


def _odd_number(text: str) -> Number | str | None:
    # None if it is no number, the text itself if its exponent is beyond every number
    radix = _RADIX.get(text[:2])
    if radix:
        return _integer_of(text, *radix)

    match = _FLOAT.fullmatch(text)
    if match is None:
        return None

    return _decimal(*match.groups(default=""))


def _decimal(
    sign: str, whole: str, point: str, fraction: str, exponent: str
) -> Number | str | None:
    # from its parts, each of which may be empty
    if not whole and not fraction:
        return None

    # Brought to JSON's spelling: no plus, a digit on each side of the point.
    number_text = "-" if sign == "-" else ""
    number_text += whole or "0"
    if point:
        number_text += f".{fraction or '0'}"
    return _number(number_text + exponent)


def _integer_of(text: str, base: int, pattern: re.Pattern[str]) -> int | None:
    # None as well for one that is too long: it could not be written in decimal again.
    if len(text) > _MAX_DIGITS or not pattern.fullmatch(text):
        return None
    return int(text[2:], base)


def _number(text: str) -> Number | str:
    # the text where the exponent is beyond every number
    try:
        return number(text)
    except ValueError:
        return text


def _wants_number(view: View | None) -> bool:
    # Only then leading zeros are one: many an identifier begins with them.
    if view is None or view.types is None:
        return False
    return "integer" in view.types or "number" in view.types


def _wants_text(view: View | None, kind: str) -> bool:
    # The schema admits text, and not this kind: "integer", "number", "boolean", or "" for none.
    if view is None or view.types is None or "string" not in view.types:
        return False
    if kind == "integer" and "number" in view.types:
        return False
    return kind not in view.types
