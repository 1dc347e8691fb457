"""JSON numbers that remember the characters they were written with.

An integer of at most 4,000 digits is a Python int. Every other number is a `Num`, a float with its lexeme, or, where
a float would be infinite or wrongly zero, a `BigNum`, a Decimal with its lexeme: ``1e999``, and integers of more
digits than Python turns into text and back without complaint (4,300). Both are exact, whatever is done with them as
JSON: they are compared, validated and written by their lexemes. Only an exponent of more than 18 digits, which no
number of Python's can hold, is refused, as text that is no JSON.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TypeAlias

INT_DIGITS = 4000  # below CPython's default int/str conversion limit of 4,300 digits

_new_float = float.__new__
_new_decimal = Decimal.__new__


class Num(float):
    """A JSON number that is no plain integer, with its lexeme in `text`. Also ``-0``, which int cannot hold."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Num:
        try:
            self = _new_float(cls, text)
        except (ValueError, OverflowError):  # pragma: no cover - lexemes come from number grammars
            raise ValueError(f"not a JSON number: {text[:40]!r}") from None
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[Num], tuple[str]]:
        return (Num, (self.text,))

    def __deepcopy__(self, memo: object) -> Num:
        return self


class BigNum(Decimal):
    """A JSON number beyond what a float holds, exactly, with its lexeme in `text`."""

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> BigNum:
        try:
            self = _new_decimal(cls, text)
        except ArithmeticError:
            raise ValueError(f"a number beyond every exponent: {text[:40]!r}") from None
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[BigNum], tuple[str]]:
        return (BigNum, (self.text,))

    def __deepcopy__(self, memo: object) -> BigNum:
        return self


Number: TypeAlias = int | Num | BigNum


def number(text: str) -> Number:
    """The value of any JSON number lexeme; raises ValueError for an exponent beyond every number."""
    digits = text[1:] if text[:1] == "-" else text
    if digits.isdigit() and text != "-0":
        return int(text) if len(digits) <= INT_DIGITS else BigNum(text)
    return real(text)


def real(text: str) -> Num | BigNum:
    """The value of a lexeme with a point or an exponent; raises ValueError for an exponent beyond every number."""
    x = Num(text)
    if x and x - x == 0.0:
        return x
    mantissa = text.lower().partition("e")[0]
    return x if x == 0.0 and not mantissa.strip("-0.") else BigNum(text)


def plain_number(x: Num | BigNum) -> float | Decimal:
    """What a user gets: a float, or a Decimal where a float would lose digits."""
    if isinstance(x, BigNum):
        return Decimal(x)
    text, value = x.text, float(x)
    short = float.__repr__(value)
    if short == text:
        return value
    try:
        return value if math.isfinite(value) and Decimal(text) == Decimal(short) else Decimal(text)
    except ArithmeticError:  # a zero with an exponent beyond Decimal's own range
        return value


def exact(x: float | Decimal) -> int | float | Decimal:
    """A number that compares as its digits say; a float means the digits it prints."""
    if isinstance(x, (int, Decimal)) or not (isinstance(x, Num) or math.isfinite(x)):
        return x
    try:
        return Decimal(x.text if isinstance(x, Num) else float.__repr__(x))
    except ArithmeticError:  # as above
        return float(x)


def is_whole(x: float | Decimal) -> bool:
    """Whether a number has no fraction: 3.0 and 1e999 have none."""
    if isinstance(x, float) and math.isfinite(x):
        return x.is_integer()
    x = exact(x)
    return isinstance(x, Decimal) and x.is_finite() and x == x.to_integral_value()


def digits_of(n: int) -> str:
    """The decimal digits of an int, also of one too long for Python's own limit."""
    try:
        return int.__repr__(n)
    except ValueError:
        return format(Decimal(n), "f")
