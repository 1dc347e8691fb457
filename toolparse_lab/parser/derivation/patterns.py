"""A text that a regular expression matches, its named groups as slots."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable
from typing import Any

# The parser of Python's own `re`: its tree is all that is needed, and nothing is matched here.
_PARSER = importlib.import_module("re._parser")
_LONGEST = 1000  # characters of one repetition


class UnsampledPattern(ValueError):
    """Raised for a pattern that is none, or one whose texts cannot be told from it."""


def sample_of(pattern: str) -> str:
    """Return a text that a pattern matches, each named group as its name in braces.

    What may be missing drops out, of alternatives the first is taken, and a group without a name
    is `{1}`, a run of digits `{index}`. Raises UnsampledPattern.

    >>> sample_of(r"<call>\\s*<function=(?P<name>[^>]+)>")
    '<call><function={name}>'
    """
    try:
        tree = _PARSER.parse(pattern, re.DOTALL)
        names = {number: name for name, number in tree.state.groupdict.items()}
        return "".join(_sample(tree, names, 0))
    except (re.error, RecursionError, OverflowError, TypeError) as error:
        raise UnsampledPattern(str(error)) from None


def _sample(tree: Iterable[Any], names: dict[int, str], depth: int) -> list[str]:
    """Return the parts of a text that a parsed pattern matches.

    Raises UnsampledPattern.
    """
    if depth > 40:
        raise UnsampledPattern("nested too deep")
    parts: list[str] = []
    for kind, argument in tree:
        parts += _SAMPLES.get(str(kind), _nothing)(argument, names, depth)
    return parts


def _nothing(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return nothing, for parts that take no characters: anchors and looks around."""
    return []


def _literal(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return a character."""
    return [chr(argument)]


def _set(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return a character of a set: white space where it is one of it, else its first literal."""
    for kind, value in argument:
        if str(kind) == "CATEGORY" and str(value).endswith("CATEGORY_SPACE"):
            return ["\n"]
        if str(kind) == "LITERAL":
            return [chr(value)]
    return ["x"]


def _any(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return a letter."""
    return ["x"]


def _repeat(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return as many of the inside as there have to be."""
    least: int = argument[0]
    inside = argument[2]
    if _is_digit(inside):
        return ["{index}"] if least else []
    parts = _sample(inside, names, depth + 1)
    if len(parts) * least > _LONGEST:
        raise UnsampledPattern("a repetition that is too long")
    return parts * least


def _is_digit(tree: Any) -> bool:
    """Return True if a parsed pattern is one digit."""
    if len(tree) != 1 or str(tree[0][0]) != "IN":
        return False
    return all(str(value).endswith("CATEGORY_DIGIT") for _, value in tree[0][1])


def _group(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return the slot of a group that is captured, else a text of its inside."""
    number, _, _, inside = argument
    if number is not None:
        return ["{" + names.get(number, str(number)) + "}"]
    return _sample(inside, names, depth + 1)


def _branch(argument: Any, names: dict[int, str], depth: int) -> list[str]:
    """Return a text of the first alternative."""
    return _sample(argument[1][0], names, depth + 1)


_SAMPLES = {
    "LITERAL": _literal,
    "IN": _set,
    "ANY": _any,
    "NOT_LITERAL": _any,
    "CATEGORY": _any,
    "MAX_REPEAT": _repeat,
    "MIN_REPEAT": _repeat,
    "POSSESSIVE_REPEAT": _repeat,
    "SUBPATTERN": _group,
    "BRANCH": _branch,
}
