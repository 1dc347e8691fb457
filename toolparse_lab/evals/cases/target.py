"""The language of targets: wanted calls, and the four words that stand for a wish instead of a value."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from .matchers import MATCHERS

WISHES = frozenset({"$any", "$optional", "$value", "$match"})


def is_wish(x: Any) -> bool:
    """Whether an object of a target is one of the four wishes instead of a value."""
    return _is_mapping(x) and bool(x) and WISHES.issuperset(x)


def plain_wish(want: Any) -> Any:
    """The value inside a wish, where it holds just one."""
    return want["$value"] if is_wish(want) and "$value" in want else want


def is_optional(want: Any) -> bool:
    return _is_mapping(want) and want.get("$optional") is True


def _is_mapping(x: Any) -> bool:
    """Asked of every value of every target: the two commonest answers are given without asking the abstract class."""
    kind = type(x)
    return kind is dict or (kind is not str and isinstance(x, Mapping))


def check_target(target: list[Any]) -> tuple[str, Any, str] | None:
    """What is wrong with a target, as (message, got, expected); None where nothing is."""
    for item in target:
        if complaint := _check_call(item):
            return complaint
    return None


def _check_call(item: Any) -> tuple[str, Any, str] | None:
    shape = '{"name": …, "arguments": {…}}'
    if not isinstance(item, Mapping):
        return "a wanted call is no object", item, shape
    if "$any" in item:
        if not isinstance(item["$any"], list) or not item["$any"] or set(item) - {"$any", "$optional"}:
            return "$any of calls is a list of calls", item, '{"$any": [' + shape + "]}"
        return next((c for one in item["$any"] if (c := _check_call(one))), None)
    if unknown := sorted(set(item) - {"name", "arguments", "$optional"}):
        return f"unknown key {unknown[0]!r} in a wanted call", item, shape
    name: Any = item.get("name")
    if is_wish(name):
        names = name.get("$any")
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            return "$any of a name is a list of names", name, '{"$any": ["a", "b"]}'
    elif not isinstance(name, str) or not name:
        return "a wanted call has no name", item, shape
    arguments = item.get("arguments", {})
    if not isinstance(arguments, Mapping):
        return "the arguments of a wanted call are no object", arguments, "an object"
    return _check_optional(item) or _check_value(arguments)


def _check_optional(x: Mapping[str, Any]) -> tuple[str, Any, str] | None:
    if "$optional" in x and not isinstance(x["$optional"], bool):
        return "$optional is true or false", x["$optional"], "true"
    return None


def _check_value(x: Any) -> tuple[str, Any, str] | None:
    if is_wish(x):
        if complaint := _check_optional(x):
            return complaint
        if "$any" in x and (not isinstance(x["$any"], list) or not x["$any"]):
            return "$any is a list with at least one value", x, '{"$any": [1, 2]}'
        if "$any" in x and ("$value" in x or "$match" in x):
            return "$any stands alone or beside $optional", x, '{"$any": [1, 2]}'
        if "$match" in x:
            if x["$match"] not in MATCHERS:
                return "no matcher of this name", x["$match"], ", ".join(MATCHERS)
            if x["$match"] == "regex" and (why := _regex_complaint(x.get("$value"))):
                return f"this is no regular expression: {why}", x.get("$value"), "a regular expression"
        return next((c for v in x.get("$any", ()) if (c := _check_value(v))), None)
    inner = list(x.values()) if isinstance(x, Mapping) else x if isinstance(x, list) else []
    return next((c for v in inner if (c := _check_value(v))), None)


@lru_cache(maxsize=1024)
def _regex_complaint(pattern: Any) -> str:
    if not isinstance(pattern, str):
        return "it is no text"
    try:
        re.compile(pattern)
    except re.error as e:
        return str(e)
    return ""
