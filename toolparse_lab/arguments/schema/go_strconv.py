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
    """Return the result of `strconv.ParseFloat(text, 64)`."""
    if text.isascii() and _SPECIAL.fullmatch(text):
        return float(text)

    value = _finite_or_overflow(text)
    return None if value in _INFINITIES else value


def _finite_or_overflow(text: str) -> float | None:
    if _DECIMAL.fullmatch(text):
        return float(text.replace("_", ""))
    if not _HEX.fullmatch(text):
        return None

    try:
        return float.fromhex(text.replace("_", ""))
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
    if text in _TRUE:
        return True
    return False if text in _FALSE else None


def format_v(value: float | int | bool) -> str:
    """The text `%v` writes: the shortest digits that read back."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value in _INFINITIES or value != value:  # only NaN differs from itself
        return _format_special(value)
    return _format_finite(value)


def _format_special(value: float) -> str:
    if value > 0:
        return "+Inf"
    return "-Inf" if value < 0 else "NaN"


def _format_finite(value: float) -> str:
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
    mantissa = significant[0]
    if len(significant) > 1:
        mantissa += "." + significant[1:]

    sign = "+" if power >= 0 else "-"
    return f"{mantissa}e{sign}{abs(power):02d}"


def _with_point(significant: str, scale: int, power: int) -> str:
    if scale >= 0:
        return significant + "0" * scale
    if power >= 0:
        return f"{significant[: power + 1]}.{significant[power + 1 :]}"

    return f"0.{'0' * (-power - 1)}{significant}"
