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
    """Return the boolean that a word means, or the word where the schema wants a text.

    In JSON's own spelling it is a boolean, whatever the schema wants.

    text: one of the words in `_BOOLEAN`.

    >>> _boolean("True", None), _boolean("false", None)
    (True, False)
    """
    if text not in ("true", "false") and _wants_text(view, "boolean"):
        return text
    return _BOOLEAN[text]


def _spelt_number(text: str, view: View | None) -> Value:
    """Return the number that a text means in a spelling of YAML's own, or the text.

    As text it keeps all its characters, so it stays one where the schema has a place for texts and
    none for this kind of number.

    >>> _spelt_number("+5", None), _spelt_number("007", None), _spelt_number("-a", None)
    (5, '007', '-a')
    """
    zeros = _ZEROS.fullmatch(text)
    if zeros:
        return _with_leading_zeros(zeros, view)

    value = _odd_number(text)
    if value is None:
        return text
    kind = "integer" if isinstance(value, int) else "number"
    return text if _wants_text(view, kind) else value


def _with_leading_zeros(zeros: re.Match[str], view: View | None) -> Value:
    """Return the number behind leading zeros, where the schema wants one, else the text.

    zeros: the match of `_ZEROS`, with the sign and the digits that count in its groups.
    """
    # An identifier such as 007 may well begin with zeros.
    if not _wants_number(view) or _wants_text(view, ""):
        return zeros[0]
    return _number(zeros[1].replace("+", "") + zeros[2])


def _is_member(text: str, enum: Sequence[Value]) -> bool:
    """Return True if the schema lists this very text among its values.

    Other members of the list are no texts, and equal none.

    >>> _is_member("5", (5, "a")), _is_member("a", (5, "a"))
    (False, True)
    """
    return text in [member for member in enum if isinstance(member, str)]


def _odd_number(text: str) -> Number | str | None:
    """Return a number as YAML writes it and JSON does not, or None.

    The text itself if its exponent is beyond every number.

    >>> _odd_number("0x1F"), _odd_number("+.5"), _odd_number(".")
    (31, 0.5, None)
    """
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
    """Return a decimal number from its parts, each of which may be empty.

    None without a digit.

    >>> _decimal("-", "1", ".", "", "e2"), _decimal("", "", ".", "", "")
    (-100.0, None)
    """
    if not whole and not fraction:
        return None

    # Brought to JSON's spelling: no plus, a digit on each side of the point.
    number_text = "-" if sign == "-" else ""
    number_text += whole or "0"
    if point:
        number_text += f".{fraction or '0'}"
    return _number(number_text + exponent)


def _integer_of(text: str, base: int, pattern: re.Pattern[str]) -> int | None:
    """Return an integer with another base than ten, or None.

    None as well for one that is too long: it could not be written in decimal again.

    text: with its prefix, such as `0x`. pattern: of the digits that this base has.
    """
    if len(text) > _MAX_DIGITS or not pattern.fullmatch(text):
        return None
    return int(text[2:], base)


def _number(text: str) -> Number | str:
    """Return the number, or its text where the exponent is beyond every number.

    text: as JSON writes it.

    >>> _number("1.50"), _number("1e99999999999999999999")
    (1.5, '1e99999999999999999999')
    """
    try:
        return number(text)
    except ValueError:
        return text


def _wants_number(view: View | None) -> bool:
    """Return True if the schema names a kind of number.

    Only then leading zeros are one: many an identifier begins with them.

    view: the schema of the value, None if nothing is known of it.
    """
    if view is None or view.types is None:
        return False
    return "integer" in view.types or "number" in view.types


def _wants_text(view: View | None, kind: str) -> bool:
    """Return True if the schema admits text here, and not this kind of value.

    kind: "integer", "number", "boolean", or "" for none, so that text alone is asked for. An
    integer is also a number.

    >>> from toolparse_lab.arguments.schema.view import view_of
    >>> view = view_of({"type": ["string", "number"]})
    >>> _wants_text(view, "boolean"), _wants_text(view, "integer")
    (True, False)
    """
    if view is None or view.types is None or "string" not in view.types:
        return False
    if kind == "integer" and "number" in view.types:
        return False
    return kind not in view.types
