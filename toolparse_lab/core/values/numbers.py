"""JSON numbers that remember the characters they were written with.

An integer of at most 4,000 digits is a Python int. Every other number is a `Num`, a float with its
lexeme, or, where a float would be infinite or wrongly zero, a `BigNum`, a Decimal with its lexeme:
``1e999``, and integers of more digits than Python turns into text and back without complaint
(4,300). Both are exact, whatever is done with them as JSON: they are compared, validated and
written by their lexemes. Only an exponent of more than 18 digits, which no number of Python's can
hold, is refused, as text that is not JSON.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Self, TypeAlias

INT_DIGITS = 4000  # below CPython's default int/str conversion limit of 4,300 digits

_new_float = float.__new__
_new_decimal = Decimal.__new__


class _Lexeme:
    __slots__ = ()
    text: str

    def __reduce__(self) -> tuple[type[Self], tuple[str]]:
        return (type(self), (self.text,))

    def __deepcopy__(self, memo: object) -> Self:
        return self


class Num(_Lexeme, float):
    """A JSON number that is not a plain integer, with its lexeme in `text`."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> Num:
        try:
            self = _new_float(cls, text)
        except (ValueError, OverflowError):  # pragma: no cover - lexemes come from number grammars
            raise ValueError(f"not a JSON number: {text[:40]!r}") from None
        self.text = text
        return self


class BigNum(_Lexeme, Decimal):
    """A JSON number beyond the precision of a float, exactly, with its lexeme in `text`."""

    __slots__ = ("text",)

    def __new__(cls, text: str) -> BigNum:
        try:
            self = _new_decimal(cls, text)
        except ArithmeticError:
            raise ValueError(f"a number beyond every exponent: {text[:40]!r}") from None
        self.text = text
        return self


Number: TypeAlias = int | Num | BigNum


def number(text: str) -> Number:
    """Return the value of any JSON number lexeme."""
    digits = text.removeprefix("-")
    # -0 is a number that int cannot hold.
    if not digits.isdigit() or text == "-0":
        return real(text)
    return int(text) if len(digits) <= INT_DIGITS else BigNum(text)


def real(text: str) -> Num | BigNum:
    """Return the value of a lexeme with a point or an exponent."""
    x = Num(text)
    # Infinity minus itself is NaN, so this is true of every finite number but zero.
    if x and x - x == 0.0:
        return x
    # A float is zero where the digits are, or where the exponent is too small for it.
    mantissa = text.lower().partition("e")[0]
    is_zero = x == 0.0 and not mantissa.strip("-0.")
    return x if is_zero else BigNum(text)


def plain_number(x: Num | BigNum) -> float | Decimal:
    """Return the number that a user gets: a float, or a Decimal where a float would lose digits."""
    if isinstance(x, BigNum):
        return Decimal(x)
    value = float(x)
    short = float.__repr__(value)
    # Most lexemes are the shortest that mean their float, as Python itself writes it.
    if short == x.text:
        return value
    try:
        exactly = Decimal(x.text)
        loses_digits = not math.isfinite(value) or exactly != Decimal(short)
    except ArithmeticError:  # a zero with an exponent beyond Decimal's own range
        return value

    return exactly if loses_digits else value


def exact(x: float | Decimal) -> int | float | Decimal:
    """Return a number that compares as its digits say."""
    if isinstance(x, (int, Decimal)):
        return x
    if not isinstance(x, Num) and not math.isfinite(x):
        return x
    try:
        return Decimal(x.text if isinstance(x, Num) else float.__repr__(x))
    except ArithmeticError:  # as above
        return float(x)


def is_whole(x: float | Decimal) -> bool:
    """Return True for a number without a fraction, such as 3.0 and 1e999."""
    if isinstance(x, float) and math.isfinite(x):
        return x.is_integer()
    x = exact(x)
    return isinstance(x, Decimal) and x.is_finite() and x == x.to_integral_value()


def digits_of(n: int) -> str:
    """Return the decimal digits of an int, also of one too long for Python's own limit."""
    try:
        return int.__repr__(n)
    except ValueError:
        return format(Decimal(n), "f")
