"""Ways to compare one argument's value with the wanted one, by name, and which of them is used
where.
"""

# How it works. A matcher takes two values and says if they are equal enough. Which one is used is
# settled for each value by its path, then by its JSON type; `scoring.match` asks for every
# value that it compares, and skips the question where `Matchers.plain` says that nothing was set.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import TypeAlias

from ...core.errors import BadOptions, UnknownName
from ...core.values import Num, Value, pointer_tokens

Matcher: TypeAlias = Callable[[Value, Value], bool]
"""(actual, expected) -> equal enough."""


def same_exactly(actual: Value, expected: Value) -> bool:
    """Return True for equal scalars: of one JSON type, numbers as decimals.

    >>> same_exactly(1, 1.0), same_exactly(True, 1), same_exactly("1", 1)
    (True, False, False)
    """
    # True equals 1 in Python, but not in JSON.
    if isinstance(actual, bool) or isinstance(expected, bool):
        return actual is expected

    if isinstance(actual, (int, float, Decimal)) and isinstance(expected, (int, float, Decimal)):
        return _decimal(actual) == _decimal(expected)

    return type(actual) is type(expected) and bool(actual == expected)


def _decimal(x: int | float | Decimal) -> int | Decimal:
    # NaN, which is equal to nothing, where decimals cannot hold the number.
    if isinstance(x, (int, Decimal)):
        return x
    try:
        return Decimal(x.text if isinstance(x, Num) else float.__repr__(x))
    except InvalidOperation:  # an exponent beyond the decimal module's limits
        return Decimal("NaN")


def normalised_text(text: str) -> str:
    """Return a text in compatibility form, case folded, without punctuation and white space.

    >>> normalised_text("St. John's, N.L.")
    'stjohnsnl'
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(c for c in folded if unicodedata.category(c)[0] not in "PZC")


def _by_text(form: Callable[[str], str]) -> Matcher:
    # Two strings in some form; anything else is compared exactly.
    def matches(actual: Value, expected: Value) -> bool:
        if isinstance(actual, str) and isinstance(expected, str):
            return form(actual) == form(expected)
        return same_exactly(actual, expected)

    return matches


_BFCL_IGNORES = re.compile(r"[ ,./\-_*^]")


def _regex(actual: Value, expected: Value) -> bool:
    # From end to end, and a dot matches line breaks too.
    if not (isinstance(actual, str) and isinstance(expected, str)):
        return False
    return re.fullmatch(expected, actual, re.DOTALL) is not None


def approximate(relative: float = 1e-6, absolute: float = 1e-9) -> Matcher:
    """Return a matcher of numbers that differ from the wanted one by no more than a share of it, or
    the absolute amount if that is larger.

    >>> near = approximate(relative=0.1)
    >>> near(109, 100), near(111, 100)
    (True, False)
    """

    def approximately(actual: Value, expected: Value) -> bool:
        if not (_is_number(actual) and _is_number(expected)):
            return same_exactly(actual, expected)
        x, y = Decimal(_decimal(actual)), Decimal(_decimal(expected))
        # Numbers that decimals cannot hold are NaN here, which is near to nothing.
        if not (x.is_finite() and y.is_finite()):
            return x == y
        try:
            allowed = max(Decimal(repr(absolute)), abs(y) * Decimal(repr(relative)))
            return bool(abs(x - y) <= allowed)
        except ArithmeticError:  # exponents beyond the decimal module's limits
            return x == y

    return approximately


MATCHERS: dict[str, Matcher] = {
    "exact": same_exactly,
    "casefold": _by_text(lambda text: unicodedata.normalize("NFKC", text).casefold()),
    # Of punctuation alone, nothing else would be left to compare.
    "normalised": _by_text(lambda text: normalised_text(text) or text),
    "regex": _regex,
    "approximate": approximate(),
    # As the Berkeley Function Calling Leaderboard: case, spaces, some punctuation and the kind of
    # quotes do not count.
    "bfcl": _by_text(lambda text: _BFCL_IGNORES.sub("", text).lower().replace("'", '"')),
    "ignore": lambda actual, expected: True,
}


def matcher_of(x: str | Matcher) -> Matcher:
    """Return a matcher of `MATCHERS` by name, or the function itself. Raises UnknownName."""
    if callable(x):
        return x
    if x not in MATCHERS:
        raise UnknownName(
            "no matcher of this name", got=x, expected=", ".join(MATCHERS), code="unknown-rule"
        )
    return MATCHERS[x]


@dataclass(frozen=True)
class Matchers:
    """The matchers of values: by path first, then by JSON type, else exactly.

    `paths` maps ``"/city"`` or, for one tool only, ``"get_weather/city"`` to a matcher. ``*``
    stands for any one token (``"/items/*/name"``). `types` maps string, number, boolean or null to
    one.

    >>> loose = Matchers(paths={"book/city": "regex"}, types={"string": "normalised"})
    >>> loose.of("Oslo")("OSLO", "Oslo"), loose.at("book", "/city")("Oslo", "O.*")
    (True, True)
    >>> loose.at("book", "/day") is None
    True
    """

    paths: Mapping[str, str | Matcher] = field(default_factory=dict)
    types: Mapping[str, str | Matcher] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise UnknownName for an unknown matcher, BadOptions for an unknown JSON type."""
        for x in (*self.paths.values(), *self.types.values()):
            matcher_of(x)

        if unknown := sorted(set(self.types) - {"string", "number", "boolean", "null"}):
            expected = "string, number, boolean, null"
            raise BadOptions("unknown JSON type", got=", ".join(unknown), expected=expected)

    def at(self, tool: str, path: str) -> Matcher | None:
        """Return the matcher of the first pattern that fits a JSON Pointer into the arguments of a
        tool, or None.
        """
        if not self.paths:
            return None

        tokens = pointer_tokens(path)
        for pattern, matcher in self.paths.items():
            # In front of the pointer is the tool, or nothing for all tools.
            name, slash, rest = pattern.partition("/")
            if name not in ("", tool):
                continue
            wanted = pointer_tokens(slash + rest)
            if len(wanted) == len(tokens) and all(
                want in ("*", token) for want, token in zip(wanted, tokens, strict=True)
            ):
                return matcher_of(matcher)
        return None

    @property
    def plain(self) -> bool:
        """Return True if every value is compared exactly, but for the wishes of a target."""
        return not self.paths and not self.types

    def of(self, value: Value) -> Matcher:
        """Return the matcher for a wanted value, whose JSON type decides."""
        if not self.types:
            return same_exactly
        return matcher_of(self.types.get(_json_type(value), same_exactly))


DEFAULT_MATCHERS = Matchers()
STRICTNESS: Mapping[str, Matchers] = {
    "exact": DEFAULT_MATCHERS,
    "casefold": Matchers(types={"string": "casefold"}),
    "normalised": Matchers(types={"string": "normalised"}),
    "approximate": Matchers(types={"string": "normalised", "number": "approximate"}),
    "any value": Matchers(types=dict.fromkeys(("string", "number", "boolean", "null"), "ignore")),
}
"""From strict to loose: as scored; case of letters; punctuation and white space too; numbers up to
a millionth; the right tool with the right arguments, whatever their scalar values."""


def _is_number(x: Value) -> bool:
    return isinstance(x, (int, float, Decimal)) and not isinstance(x, bool)


def _json_type(x: Value) -> str:
    # "other" for objects and arrays.
    if x is None:
        return "null"
    # Before the numbers, since True is an int to Python.
    if isinstance(x, bool):
        return "boolean"
    if _is_number(x):
        return "number"
    return "string" if isinstance(x, str) else "other"
