"""Keywords that the validator library is not left to answer: patterns, with a limit on their time,
and multiples. And a count of all keywords that it looks at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Any

from ...core.values import BigNum, Num, Value, write_canonical
from ...core.values.numbers import exact
from .budget import Budget
from .kinds import is_type
from .patterns import matches

# How it works. The library lets a keyword be replaced by a generator of errors. Three of its own
# can be made slow or wrong by the values we see: patterns run without a limit, and multiples are
# taken of floats, where 0.3 is no multiple of 0.1. These are ours; all others stay the library's.

_MOST_DIGITS = 10_000  # of a number that is divided: the cost grows with their square


def brief(text: str, limit: int = 60) -> str:
    """Return a text cut to a message's length."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def brief_value(value: Value) -> str:
    """Return a value in a message, briefly."""
    if isinstance(value, (Num, BigNum)):
        return brief(value.text)
    try:
        return brief(repr(value))
    except (RecursionError, ValueError):  # too deep, or an int too long, for Python to print
        return brief(write_canonical(value))


# The library calls these with (validator, keyword's value, instance, schema), and takes errors.


def _pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Iterator[Any]:
    # The pattern may match anywhere in the text.
    # Late, as everywhere here: the library takes longer to load than most parses.
    from jsonschema.exceptions import ValidationError

    if isinstance(instance, str) and not matches(pattern, instance):
        yield ValidationError(f"{brief(instance)!r} does not match {pattern!r}")


def _pattern_properties(
    validator: Any, patterns: dict[str, Any], instance: Any, schema: Any
) -> Iterator[Any]:
    if not isinstance(instance, dict):
        return
    for pattern, subschema in patterns.items():
        for key, member in instance.items():
            if matches(pattern, key):
                yield from validator.descend(member, subschema, path=key, schema_path=pattern)


def _multiple_of(validator: Any, factor: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema.exceptions import ValidationError

    if is_type(instance, "number") and not is_multiple(instance, factor):
        yield ValidationError(f"{brief_value(instance)} is not a multiple of {brief_value(factor)}")


def is_multiple(number: Value, factor: Value) -> bool:
    """Tell if a number is a multiple of another, by their decimal digits."""
    # Raises ArithmeticError for a number of too many digits, ZeroDivisionError for a factor of 0.
    whole, power = _scaled(number)
    part, part_power = _scaled(factor)
    # Remainders by 0 have no answer, and a schema that asks for one is broken.
    if part == 0:
        raise ZeroDivisionError("nothing is a multiple of 0")

    # whole × 10^power over part × 10^part_power; the division stays among integers, for a float
    # would answer that 0.3 is no multiple of 0.1.
    shift = power - part_power
    if shift >= 0:
        return whole * pow(10, shift, part) % part == 0
    if whole == 0:
        return True

    return -shift <= _MOST_DIGITS and whole % (part * 10**-shift) == 0


def _scaled(number: Value) -> tuple[int, int]:
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

# A validator is kept for many values and threads; the budget is that of the value under way.
_BUDGET: ContextVar[Budget | None] = ContextVar("_BUDGET", default=None)


@contextmanager
def spending(budget: Budget) -> Iterator[None]:
    """Count every keyword looked at inside this block as a step of a budget."""
    token = _BUDGET.set(budget)
    try:
        yield
    finally:
        _BUDGET.reset(token)


def counted(check: Callable[..., Iterable[Any] | None]) -> Callable[..., Iterable[Any] | None]:
    """Return a keyword's function that first takes a step of the budget."""

    def check_with_budget(validator: Any, keyword: Any, instance: Any, schema: Any) -> Any:
        budget = _BUDGET.get()
        if budget is not None:
            budget.spend()
        return check(validator, keyword, instance, schema)

    return check_with_budget
