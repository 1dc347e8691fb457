"""Ways to compare one argument's value with the wanted one, by name, and which of them is used where."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from ...errors import BadOptions, UnknownRule
from ...values import Num, Value, pointer_tokens

Matcher: TypeAlias = Callable[[Value, Value], bool]
"""(actual, wanted) -> equal enough."""


def same_exactly(actual: Value, wanted: Value) -> bool:
    """Equality of scalars: of one JSON type, numbers as decimals."""
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return actual is wanted
    if isinstance(actual, (int, float, Decimal)) and isinstance(wanted, (int, float, Decimal)):
        return _decimal(actual) == _decimal(wanted)
    return type(actual) is type(wanted) and bool(actual == wanted)


def _decimal(x: int | float | Decimal) -> int | Decimal:
    if isinstance(x, (int, Decimal)):
        return x
    try:
        return Decimal(x.text if isinstance(x, Num) else float.__repr__(x))
    except InvalidOperation:  # an exponent beyond the decimal module's limits
        return Decimal("NaN")


def _casefold(actual: Value, wanted: Value) -> bool:
    if isinstance(actual, str) and isinstance(wanted, str):
        return unicodedata.normalize("NFKC", actual).casefold() == unicodedata.normalize("NFKC", wanted).casefold()
    return same_exactly(actual, wanted)


def normalised_text(text: str) -> str:
    """Text for loose comparison: compatibility form, case folded, without punctuation and white space."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC")


def _normalised(actual: Value, wanted: Value) -> bool:
    if isinstance(actual, str) and isinstance(wanted, str):
        a, b = normalised_text(actual), normalised_text(wanted)
        return a == b and (bool(a) or actual == wanted)  # two texts of punctuation only are compared as they are
    return same_exactly(actual, wanted)


_BFCL_IGNORES = re.compile(r"[ ,./\-_*^]")


def _bfcl(actual: Value, wanted: Value) -> bool:
    """Texts as the Berkeley Function Calling Leaderboard compares them."""
    if isinstance(actual, str) and isinstance(wanted, str):
        a, b = (_BFCL_IGNORES.sub("", text).lower().replace("'", '"') for text in (actual, wanted))
        return a == b
    return same_exactly(actual, wanted)


def _regex(actual: Value, wanted: Value) -> bool:
    return isinstance(actual, str) and isinstance(wanted, str) and re.fullmatch(wanted, actual, re.DOTALL) is not None


def approximate(relative: float = 1e-6, absolute: float = 1e-9) -> Matcher:
    """A matcher of numbers that may differ by a share of the wanted one or by an absolute amount."""

    def approximately(actual: Value, wanted: Value) -> bool:
        if not (_is_number(actual) and _is_number(wanted)):
            return same_exactly(actual, wanted)
        x, y = Decimal(_decimal(actual)), Decimal(_decimal(wanted))
        if not (x.is_finite() and y.is_finite()):
            return x == y
        try:
            return bool(abs(x - y) <= max(Decimal(repr(absolute)), abs(y) * Decimal(repr(relative))))
        except ArithmeticError:  # exponents beyond the decimal module's limits
            return x == y

    return approximately


def _ignore(actual: Value, wanted: Value) -> bool:
    return True


MATCHERS: dict[str, Matcher] = {
    "exact": same_exactly,
    "casefold": _casefold,
    "normalised": _normalised,
    "regex": _regex,
    "approximate": approximate(),
    "bfcl": _bfcl,
    "ignore": _ignore,
}


def matcher_of(x: str | Matcher) -> Matcher:
    """A matcher by name, or the function itself; raises UnknownRule."""
    if callable(x):
        return x
    if x not in MATCHERS:
        raise UnknownRule("no matcher of this name", got=x, expected=", ".join(MATCHERS))
    return MATCHERS[x]


@dataclass(frozen=True)
class Matchers:
    """How values are compared: by path first, then by JSON type, else exactly.

    `paths` maps ``"/city"`` or, for one tool only, ``"get_weather/city"`` to a matcher; ``*`` stands for any one
    token (``"/items/*/name"``). `types` maps string, number, boolean or null to one.

    >>> loose = Matchers(paths={"book/city": "regex"}, types={"string": "normalised"})
    >>> loose.of("Oslo")("OSLO", "Oslo"), loose.at("book", "/city")("Oslo", "O.*"), loose.at("book", "/day")
    (True, True, None)
    """

    paths: Mapping[str, str | Matcher] = field(default_factory=dict)
    types: Mapping[str, str | Matcher] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for x in (*self.paths.values(), *self.types.values()):
            matcher_of(x)
        if unknown := sorted(set(self.types) - {"string", "number", "boolean", "null"}):
            raise BadOptions("unknown JSON type", got=", ".join(unknown), expected="string, number, boolean, null")

    def at(self, tool: str, path: str) -> Matcher | None:
        """The matcher for a path of a tool, or None."""
        if not self.paths:
            return None
        for pattern, x in self.paths.items():
            name, slash, rest = pattern.partition("/")
            if name and name != tool:
                continue
            wanted = pointer_tokens(slash + rest)
            here = pointer_tokens(path)
            if len(wanted) == len(here) and all(w in ("*", h) for w, h in zip(wanted, here, strict=True)):
                return matcher_of(x)
        return None

    @property
    def plain(self) -> bool:
        """Whether every value is compared exactly, but for the wishes of a target."""
        return not self.paths and not self.types

    def of(self, value: Value) -> Matcher:
        if not self.types:
            return same_exactly
        kind = json_type(value)
        return matcher_of(self.types[kind]) if kind in self.types else same_exactly


DEFAULT_MATCHERS = Matchers()


def _is_number(x: Value) -> bool:
    return isinstance(x, (int, float, Decimal)) and not isinstance(x, bool)


def json_type(x: Value) -> str:
    if isinstance(x, bool):
        return "boolean"
    if _is_number(x):
        return "number"
    return "string" if isinstance(x, str) else "null" if x is None else "other"
