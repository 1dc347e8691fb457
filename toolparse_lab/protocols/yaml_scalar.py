"""What an unquoted YAML scalar means: the core schema of YAML 1.2, with the schema's word in doubt."""

from __future__ import annotations

import re

from ..numerals import Number
from ..schema.view import View
from ..values import Value, number

_MAX_DIGITS = 3000  # of a hexadecimal or octal integer, so that it can still be written in decimal
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {w: w[0] in "tT" for w in ("true", "True", "TRUE", "false", "False", "FALSE")}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_FLOAT = re.compile(r"([-+]?)(0|[1-9][0-9]*)?(?:(\.)([0-9]*))?([eE][-+]?[0-9]+)?")
_ZEROS = re.compile(r"([-+]?)0+([0-9]+)")
_RADIX = {"0x": (16, re.compile(r"0x[0-9a-fA-F]+")), "0o": (8, re.compile(r"0o[0-7]+"))}


def resolve_plain(text: str, view: View | None = None) -> Value:
    """What an unquoted scalar means in YAML 1.2's core schema. No yes and no, no dates, no base 60.

    Where the schema wants text and another spelling would lose characters (`007`, `0x1F`, `+5`), it stays text;
    leading zeros are a number only where the schema wants one. Not-a-number and infinity are text: JSON has neither.

    >>> [resolve_plain(t) for t in ("3", "1.50", "True", "~", "no", "2024-01-15", "007", "0x1F", "1_000")]
    [3, 1.5, True, None, 'no', '2024-01-15', '007', 31, '1_000']
    """
    if view is not None and view.enum and text in [m for m in view.enum if isinstance(m, str)]:
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        return text if text not in ("true", "false") and _wants_text(view, "boolean") else _BOOLEAN[text]
    if _JSON_NUMBER.fullmatch(text):
        return _number(text)
    if not text[0].isascii() or text[0] not in "+-.0123456789":
        return text
    zeros = _ZEROS.fullmatch(text)
    if zeros:
        wanted = view is not None and view.types is not None and bool({"integer", "number"} & set(view.types))
        return _number(zeros[1].replace("+", "") + zeros[2]) if wanted and not _wants_text(view, "") else text
    value = _odd_number(text)
    if value is None or _wants_text(view, "integer" if isinstance(value, int) else "number"):
        return text
    return value


def _odd_number(text: str) -> Number | str | None:
    """A number as YAML writes it and JSON does not."""
    radix = _RADIX.get(text[:2])
    if radix:
        base, pattern = radix
        return int(text[2:], base) if len(text) <= _MAX_DIGITS and pattern.fullmatch(text) else None
    m = _FLOAT.fullmatch(text)
    if m is None or not (m[2] or m[4]):
        return None
    sign = "-" if m[1] == "-" else ""
    fraction = f".{m[4] or '0'}" if m[3] else ""
    return _number(f"{sign}{m[2] or '0'}{fraction}{m[5] or ''}")


def _number(text: str) -> Number | str:
    """The number, or its text where the exponent is beyond every number."""
    try:
        return number(text)
    except ValueError:
        return text


def _wants_text(view: View | None, kind: str) -> bool:
    """The schema admits text here, and not this kind of value."""
    if view is None or view.types is None or "string" not in view.types:
        return False
    return kind not in view.types and not (kind == "integer" and "number" in view.types)
