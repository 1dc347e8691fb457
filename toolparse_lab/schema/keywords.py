"""Keywords that the validator library is not left to answer: patterns, with a limit on their time, and multiples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

from ..numerals import exact
from ..values import BigNum, Num, Value, write_canonical
from .conforms import is_type
from .patterns import found

_MOST_DIGITS = 10_000  # of a number that is divided: the cost grows with their square


def brief(text: str, limit: int = 60) -> str:
    """A text cut to a message's length."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def said(value: Value) -> str:
    """A value in a message, briefly; a number as it was written."""
    if isinstance(value, (Num, BigNum)):
        return brief(value.text)
    try:
        return brief(repr(value))
    except (RecursionError, ValueError):  # too deep, or an int too long, for Python to print
        return brief(write_canonical(value))


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not found(pattern, instance):
        yield ValidationError(f"{brief(instance)!r} does not match {pattern!r}")


def _pattern_properties(validator: Any, patterns: dict[str, Any], instance: Any, schema: Any) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for key, member in instance.items():
            if found(pattern, key):
                yield from validator.descend(member, subschema, path=key, schema_path=pattern)


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if is_type(instance, "number") and not is_multiple(instance, factor):
        yield ValidationError(f"{said(instance)} is not a multiple of {said(factor)}")


def is_multiple(number: Value, factor: Value) -> bool:
    """Whether a number is a multiple of another, by their decimal digits; raises ArithmeticError for too many.

    >>> is_multiple(0.3, 0.1), is_multiple(0.35, 0.1)
    (True, False)
    """
    (whole, power), (part, part_power) = _scaled(number), _scaled(factor)
    if part == 0:
        raise ZeroDivisionError("nothing is a multiple of 0")
    shift = power - part_power
    if shift >= 0:
        return whole * pow(10, shift, part) % part == 0
    return whole == 0 or (-shift <= _MOST_DIGITS and whole % (part * 10**-shift) == 0)


def _scaled(number: Value) -> tuple[int, int]:
    """A finite number as an integer and the power of ten it is multiplied with; without its sign."""
    _, digits, power = Decimal(exact(number)).as_tuple()
    if not isinstance(power, int) or len(digits) > _MOST_DIGITS:
        raise ArithmeticError("a number of too many digits")
    return int(Decimal((0, digits, 0))), power


KEYWORDS: dict[str, Callable[..., Iterator[Any]]] = {
    "multipleOf": _multiple_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
}
"""Keyword -> what yields its errors, in the library's form."""
