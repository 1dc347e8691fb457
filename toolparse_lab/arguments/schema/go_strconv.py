"""Go's strconv, as the policy `seed-layer2` needs it: the texts that ParseFloat, ParseInt and
ParseBool accept, and `%v`.
"""

from __future__ import annotations

import re
from decimal import Decimal

# How it works. Go's and Python's number texts differ in details: underscores, hexadecimal floats,
# spaces, other scripts' digits. So a pattern in Go's words decides if a text is a number at all,
# and only then Python computes it; both round to the nearest double, so that the values are equal.

# Underscores may separate digits, as in Go's own number literals.
_D = r"[0-9](?:_?[0-9])*"
_H = r"[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_D}(?:\.(?:{_D})?)?|\.{_D})(?:[eE][+-]?{_D})?")
_HEX = re.compile(rf"[+-]?0[xX]_?(?:{_H}(?:\.(?:{_H})?)?|\.{_H})[pP][+-]?{_D}")
_SPECIAL = re.compile(r"([+-]?)inf(?:inity)?|nan", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INT64 = 2**63
_INT64_DIGITS = 19  # longer ones overflow, and reading them would cost the square of their length
_INFINITIES = (float("inf"), float("-inf"))


def parse_float(text: str) -> float | None:
    """Return the result of `strconv.ParseFloat(text, 64)`.

    None if it fails (overflow included).

    >>> parse_float("1_000"), parse_float("0x1p4"), parse_float("1e309"), parse_float(" 1")
    (1000.0, 16.0, None, None)
    """
    if text.isascii() and _SPECIAL.fullmatch(text):
        return float(text)

    value = _finite_or_overflow(text)
    return None if value in _INFINITIES else value


def _finite_or_overflow(text: str) -> float | None:
    """Return a number in decimal or hexadecimal digits.

    Infinite or None if it is too large.

    Python reads the same digits once the underscores are out. Only its error differs, which for
    hexadecimal digits is an exception instead of infinity.

    >>> _finite_or_overflow("1e999"), _finite_or_overflow("0x1p9999"), _finite_or_overflow("1,5")
    (inf, None, None)
    """
    if _DECIMAL.fullmatch(text):
        return float(text.replace("_", ""))
    if not _HEX.fullmatch(text):
        return None

    try:
        return float.fromhex(text.replace("_", ""))
    except OverflowError:
        return None


def parse_int(text: str) -> int | None:
    """Return the result of `strconv.ParseInt(text, 10, 64)`, or None if it fails.

    >>> parse_int("-007"), parse_int("9223372036854775808"), parse_int("1_000")
    (-7, None, None)
    """
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > _INT64_DIGITS:
        return None

    value = int(digits or "0")
    if text[0] == "-":
        value = -value

    return value if -_INT64 <= value < _INT64 else None


def parse_bool(text: str) -> bool | None:
    """Return the result of `strconv.ParseBool(text)`, or None if it fails.

    >>> parse_bool("T"), parse_bool("0"), parse_bool("yes")
    (True, False, None)
    """
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def format_v(value: float | int | bool) -> str:
    """The text `%v` writes: the shortest digits that read back.

    A float has an exponent below 1e-4 and from 1e+06 on.

    >>> format_v(1e6), format_v(0.00001), format_v(2.50)
    ('1e+06', '1e-05', '2.5')
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value in _INFINITIES or value != value:  # only NaN differs from itself
        return _format_special(value)
    return _format_finite(value)


def _format_special(value: float) -> str:
    """Return the word for infinity or NaN, as Go spells it.

    >>> _format_special(float("-inf")), _format_special(float("nan"))
    ('-Inf', 'NaN')
    """
    if value > 0:
        return "+Inf"
    return "-Inf" if value < 0 else "NaN"


def _format_finite(value: float) -> str:
    """Return a finite float, from the digits that Python's own shortest form has.

    Both languages print the shortest digits that read back, so that only their layout differs.

    >>> _format_finite(-0.0), _format_finite(123456.0), _format_finite(1234567.0)
    ('-0', '123456', '1.234567e+06')
    """
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    minus = "-" if sign else ""
    significant = "".join(map(str, digits)).rstrip("0")
    if not significant:
        return minus + "0"

    # value = significant × 10^scale, and its first digit stands for 10^power
    scale = int(exponent) + len(digits) - len(significant)
    power = len(significant) - 1 + scale
    if power < -4 or power >= 6:
        return minus + _with_exponent(significant, power)

    return minus + _with_point(significant, scale, power)


def _with_exponent(significant: str, power: int) -> str:
    """Digits with a point behind the first, and an exponent of at least two digits.

    significant: the digits without zeros at the end.
    power: the power of ten of the first digit.

    >>> _with_exponent("25", -7)
    '2.5e-07'
    """
    mantissa = significant[0]
    if len(significant) > 1:
        mantissa += "." + significant[1:]

    sign = "+" if power >= 0 else "-"
    return f"{mantissa}e{sign}{abs(power):02d}"


def _with_point(significant: str, scale: int, power: int) -> str:
    """Digits with the zeros and the point that their place asks for.

    scale: the power of ten of the last digit. power: of the first.

    >>> _with_point("25", 1, 2), _with_point("25", -1, 0), _with_point("25", -4, -3)
    ('250', '2.5', '0.0025')
    """
    if scale >= 0:
        return significant + "0" * scale
    if power >= 0:
        return f"{significant[: power + 1]}.{significant[power + 1 :]}"

    return f"0.{'0' * (-power - 1)}{significant}"
