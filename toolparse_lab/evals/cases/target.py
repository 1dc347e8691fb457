"""The language of targets: wanted calls, and the four words that stand for a wish instead of a
value.
"""

# How it works. A target is JSON in which some objects are wishes, told from values by their keys:
# all of them begin with ``$`` and are among four. An object that only looks like one is written
# inside ``$value``, and nothing inside ``$value`` is looked at as a wish again.

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from .matchers import MATCHERS

Complaint: TypeAlias = tuple[str, Any, str]
"""What is wrong with something that was written down: message, what was got, what was expected."""

WISHES = frozenset({"$any", "$optional", "$value", "$match"})
_CALL = '{"name": …, "arguments": {…}}'


def is_wish(x: Any) -> bool:
    """Return True for an object of a target that is a wish instead of a value.

    >>> is_wish({"$any": [1, 2]}), is_wish({"$any": [1], "unit": "m"}), is_wish({})
    (True, False, False)
    """
    return _is_mapping(x) and bool(x) and WISHES.issuperset(x)


def plain_wish(want: Any) -> Any:
    """Return the value inside a wish, where it holds just one.

    Anything else as it is.

    >>> plain_wish({"$value": 3, "$optional": True}), plain_wish({"$any": [3]})
    (3, {'$any': [3]})
    """
    if is_wish(want) and "$value" in want:
        return want["$value"]
    return want


def is_optional(want: Any) -> bool:
    """Return True for a wanted call or value that may be absent."""
    return _is_mapping(want) and want.get("$optional") is True


def _is_mapping(x: Any) -> bool:
    # Asked of every value of every target: the two commonest answers are given without asking the
    # abstract class, which takes much longer.
    kind = type(x)
    return kind is dict or (kind is not str and isinstance(x, Mapping))


def check_target(target: list[Any]) -> Complaint | None:
    """Return the first complaint about a target, or None.

    target: the list of wanted calls, of any content.

    >>> check_target([{"name": "f"}]) is None, check_target([{"arguments": {}}])[0]
    (True, 'a wanted call has no name')
    """
    return _first(_check_call(item) for item in target)


def _first(complaints: Iterable[Complaint | None]) -> Complaint | None:
    # Takes complaints made one by one, so that the later ones are not looked for.
    return next((c for c in complaints if c is not None), None)


def _check_call(item: Any) -> Complaint | None:
    if not isinstance(item, Mapping):
        return "a wanted call is no object", item, _CALL
    if "$any" in item:
        return _check_any_call(item)

    unknown = sorted(set(item) - {"name", "arguments", "$optional"})
    if unknown:
        return f"unknown key {unknown[0]!r} in a wanted call", item, _CALL

    arguments = item.get("arguments", {})
    # The first complaint counts, in the order in which a person would read the call.
    return (
        _check_name(item)
        or _check_arguments(arguments)
        or _check_optional(item)
        or _check_value(arguments)
    )


def _check_arguments(arguments: Any) -> Complaint | None:
    if not isinstance(arguments, Mapping):
        return "the arguments of a wanted call are no object", arguments, "an object"
    return None


def _check_any_call(item: Mapping[str, Any]) -> Complaint | None:
    calls = item["$any"]
    others = set(item) - {"$any", "$optional"}
    if not isinstance(calls, list) or not calls or others:
        return "$any of calls is a list of calls", item, '{"$any": [' + _CALL + "]}"

    return _first(_check_call(call) for call in calls)


def _check_name(item: Mapping[str, Any]) -> Complaint | None:
    name: Any = item.get("name")
    if is_wish(name):
        if not _is_names(name.get("$any")):
            return "$any of a name is a list of names", name, '{"$any": ["a", "b"]}'
        return None

    if not isinstance(name, str) or not name:
        return "a wanted call has no name", item, _CALL
    return None


def _is_names(x: Any) -> bool:
    if not isinstance(x, list) or not x:
        return False
    return all(isinstance(name, str) for name in x)


def _check_optional(x: Mapping[str, Any]) -> Complaint | None:
    if "$optional" in x and not isinstance(x["$optional"], bool):
        return "$optional is true or false", x["$optional"], "true"
    return None


def _check_value(x: Any) -> Complaint | None:
    if is_wish(x):
        return _check_wish(x)
    if isinstance(x, Mapping):
        return _first(_check_value(v) for v in x.values())
    if isinstance(x, list):
        return _first(_check_value(v) for v in x)
    return None


def _check_wish(wish: Mapping[str, Any]) -> Complaint | None:
    # `$value` is not looked into: it is read as it is.
    complaint = _check_optional(wish)
    if complaint is not None:
        return complaint

    if "$any" in wish:
        return _check_alternatives(wish)
    if "$match" in wish:
        return _check_match(wish)
    return None


def _check_alternatives(wish: Mapping[str, Any]) -> Complaint | None:
    alternatives = wish["$any"]
    if not isinstance(alternatives, list) or not alternatives:
        return "$any is a list with at least one value", wish, '{"$any": [1, 2]}'
    if "$value" in wish or "$match" in wish:
        return "$any stands alone or beside $optional", wish, '{"$any": [1, 2]}'

    return _first(_check_value(alternative) for alternative in alternatives)


def _check_match(wish: Mapping[str, Any]) -> Complaint | None:
    name, pattern = wish["$match"], wish.get("$value")
    if name not in MATCHERS:
        return "no matcher of this name", name, ", ".join(MATCHERS)
    if name != "regex":
        return None

    reason = _regex_complaint(pattern)
    if reason:
        return f"this is no regular expression: {reason}", pattern, "a regular expression"
    return None


@lru_cache(maxsize=1024)
def _regex_complaint(pattern: Any) -> str:
    # Kept, since every case of a data set may use the same few patterns.
    if not isinstance(pattern, str):
        return "it is no text"
    try:
        re.compile(pattern)
    except re.error as e:
        return str(e)
    return ""
