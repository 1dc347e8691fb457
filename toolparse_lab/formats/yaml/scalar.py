"""Values of unquoted YAML scalars: the core schema of YAML 1.2, and the tool's schema in doubt."""

from __future__ import annotations

import re

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
    # The text of a string among the schema's own values is that string.
    if view is not None and view.enum and any(type(m) is str and m == text for m in view.enum):
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        # In JSON's own spelling it is a boolean, whatever the schema wants.
        odd = text not in ("true", "false") and _wants_text(view, "boolean")
        return text if odd else _BOOLEAN[text]

    # Most scalars are words, and most others are JSON's own numbers: these two checks come first.
    if _JSON_NUMBER.fullmatch(text):
        return _number(text)
    if text[0] not in _NUMBER_STARTS:
        return text

    zeros = _ZEROS.fullmatch(text)
    if zeros:
        # An identifier such as 007 may well begin with zeros: only a schema makes it a number.
        types = view.types or () if view is not None else ()
        if "string" in types or not {"integer", "number"}.intersection(types):
            return text
        return _number(zeros[1].replace("+", "") + zeros[2])
    value = _odd_number(text)
    if value is None:
        return text
    # As text it keeps all its characters, so it stays one where the schema has a place for texts
    # and none for this kind of number.
    kind = "integer" if isinstance(value, int) else "number"
    return text if _wants_text(view, kind) else value


def _odd_number(text: str) -> Number | str | None:
    # A number as YAML writes it and JSON does not. None if it is no number, the text itself if its
    # exponent is beyond every number.
    radix = _RADIX.get(text[:2])
    if radix:
        base, pattern = radix
        # One that is too long could not be written in decimal again.
        is_number = len(text) <= _MAX_DIGITS and pattern.fullmatch(text)
        return int(text[2:], base) if is_number else None

    match = _FLOAT.fullmatch(text)
    if match is None:
        return None
    sign, whole, point, fraction, exponent = match.groups(default="")
    if not whole and not fraction:
        return None
    # Brought to JSON's spelling: no plus, a digit on each side of the point.
    point += (fraction or "0") if point else ""
    return _number(("-" if sign == "-" else "") + (whole or "0") + point + exponent)


def _number(text: str) -> Number | str:
    # the text where the exponent is beyond every number
    try:
        return number(text)
    except ValueError:
        return text


def _wants_text(view: View | None, kind: str) -> bool:
    # The schema admits text, and not this kind of value. An integer is also a number.
    if view is None or view.types is None or "string" not in view.types:
        return False
    return kind not in view.types and not (kind == "integer" and "number" in view.types)
