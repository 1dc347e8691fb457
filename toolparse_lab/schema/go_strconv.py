"""Go's strconv, as the policy `seed-layer2` needs it: what ParseFloat, ParseInt and ParseBool accept, and `%v`."""

from __future__ import annotations

import re
from decimal import Decimal

_D = r"[0-9](?:_?[0-9])*"
_H = r"[0-9a-fA-F](?:_?[0-9a-fA-F])*"
_DECIMAL = re.compile(rf"[+-]?(?:{_D}(?:\.(?:{_D})?)?|\.{_D})(?:[eE][+-]?{_D})?")
_HEX = re.compile(rf"[+-]?0[xX]_?(?:{_H}(?:\.(?:{_H})?)?|\.{_H})[pP][+-]?{_D}")
_SPECIAL = re.compile(r"([+-]?)inf(?:inity)?|nan", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_TRUE = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_INT64 = 2**63


def parse_float(text: str) -> float | None:
    """What `strconv.ParseFloat(text, 64)` gives, or None where it fails (overflow included).

    >>> parse_float("1_000"), parse_float("0x1p4"), parse_float("1e309"), parse_float(" 1")
    (1000.0, 16.0, None, None)
    """
    special = _SPECIAL.fullmatch(text) if text.isascii() else None
    if special:
        return float(text)
    if _DECIMAL.fullmatch(text):
        value = float(text.replace("_", ""))
    elif _HEX.fullmatch(text):
        try:
            value = float.fromhex(text.replace("_", ""))
        except OverflowError:
            return None
    else:
        return None
    return None if value in (float("inf"), float("-inf")) else value


def parse_int(text: str) -> int | None:
    """What `strconv.ParseInt(text, 10, 64)` gives, or None where it fails."""
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > 19:
        return None
    value = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return value if -_INT64 <= value < _INT64 else None


def parse_bool(text: str) -> bool | None:
    """What `strconv.ParseBool(text)` gives, or None where it fails."""
    return True if text in _TRUE else False if text in _FALSE else None


def format_v(value: float | int | bool) -> str:
    """What `%v` writes: the shortest digits that read back, with an exponent below 1e-4 and from 1e+06 on."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    exponent = int(exponent)
    text = "".join(map(str, digits)).rstrip("0") or "0"
    exponent += len(digits) - len(text) if text != "0" else -exponent
    power = len(text) - 1 + exponent  # of ten, of the first digit
    minus = "-" if sign else ""
    if text == "0":
        return minus + "0"
    if power < -4 or power >= 6:
        mantissa = text[0] + ("." + text[1:] if len(text) > 1 else "")
        return f"{minus}{mantissa}e{'+' if power >= 0 else '-'}{abs(power):02d}"
    if exponent >= 0:
        return minus + text + "0" * exponent
    if power >= 0:
        return f"{minus}{text[: power + 1]}.{text[power + 1 :]}"
    return f"{minus}0.{'0' * (-power - 1)}{text}"
