"""The language of targets: wanted calls, rules for all calls of an answer, and the words that stand
for a wish instead of a value.
"""

# How it works. A target is JSON in which some objects are wishes, told from values by their keys:
# all of them begin with ``$`` and are among six. An object that only looks like one is written
# inside ``$value``, and nothing inside ``$value`` is looked at as a wish again. A rule stands where
# a wanted call stands, and has one key: it says what its calls have to do with those of the answer.
# `$at_least` is a rule among calls and a wish in the place of arguments, with the same meaning:
# these, and perhaps others. So is `$never`.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from .matchers import MATCHERS

Complaint: TypeAlias = tuple[str, Any, str]
"""What is wrong with something that was written down: message, what was got, what was expected."""

WISHES = frozenset({"$any", "$optional", "$value", "$match", "$never", "$at_least"})
RULES: Mapping[str, str] = {
    "$ordered": "these calls and no others, in this order",
    "$at_least": "these calls, and perhaps others; with $ordered inside, in this order",
    "$only": "no other calls than these, each as often as is liked",
    "$never": "none of these calls",
}
"""The rules of a target -> what they ask of the calls of an answer."""
ANY = "$any"
"""In the place of arguments: whatever they are."""
_CALL = '{"name": …, "arguments": {…}}'


def is_wish(x: Any) -> bool:
    """Return True for an object of a target that is a wish instead of a value.

    >>> is_wish({"$any": [1, 2]}), is_wish({"$any": [1], "unit": "m"}), is_wish({})
    (True, False, False)
    """
    return _is_mapping(x) and bool(x) and WISHES.issuperset(x)


def plain_wish(want: Any) -> Any:
    """Return the value inside a wish that has just one, anything else as it is.

    >>> plain_wish({"$value": 3, "$optional": True}), plain_wish({"$any": [3]})
    (3, {'$any': [3]})
    """
    return want["$value"] if is_wish(want) and "$value" in want else want


def rule_of(item: Any) -> str:
    """Return the word of a rule, '' for a wanted call.

    >>> rule_of({"$ordered": [{"name": "f"}]}), rule_of({"name": "f"})
    ('$ordered', '')
    """
    if not _is_mapping(item) or len(item) != 1:
        return ""
    word = next(iter(item))
    return word if word in RULES else ""


def rules_apart(target: Any) -> Any:
    """Return a target that is one object of rules as a list of them, any other as it is.

    >>> rules_apart({"$at_least": [{"name": "f"}], "$never": [{"name": "g"}]})
    [{'$at_least': [{'name': 'f'}]}, {'$never': [{'name': 'g'}]}]
    """
    if _is_mapping(target) and target and RULES.keys() >= target.keys():
        return [{rule: items} for rule, items in target.items()]
    return target


def rule_calls(item: Any) -> list[Any]:
    """Return the calls of a rule, by which a tool that `$only` or `$never` names without arguments
    is meant with any.
    """
    rule, calls = rule_of(item), wanted_calls(item[rule_of(item)])
    if rule not in ("$only", "$never"):
        return calls
    return [_with_any(call) for call in calls]


def _with_any(call: Any) -> Any:
    if "$any" in call:
        return {**call, "$any": [_with_any(one) for one in call["$any"]]}
    return {"arguments": ANY, **call}


def is_inner_order(items: Any) -> bool:
    """Return True for the calls of a rule that are one `$ordered`."""
    return isinstance(items, list) and len(items) == 1 and rule_of(items[0]) == "$ordered"


def wanted_calls(target: Iterable[Any]) -> list[Any]:
    """Return the calls that a target names as right ones, in order; of one without rules, itself.

    >>> wanted_calls([{"$at_least": [{"name": "f"}]}, {"$never": [{"name": "g"}]}])
    [{'name': 'f'}]
    """
    calls: list[Any] = []
    for item in target:
        rule = rule_of(item)
        if not rule:
            calls.append(item)
        elif rule != "$never":
            calls += wanted_calls(item[rule])
    return calls


def needs_call(target: Iterable[Any]) -> bool:
    """Return True if an answer without any call cannot be right.

    >>> needs_call([{"$never": [{"name": "f"}]}]), needs_call([{"name": "f"}])
    (False, True)
    """
    return any(
        needs_call(item[rule]) if rule in ("$ordered", "$at_least") else not rule
        for item in target
        if not is_optional(item)
        for rule in [rule_of(item)]
    )


def is_optional(want: Any) -> bool:
    """Return True for a wanted call or value that may be absent."""
    return _is_mapping(want) and want.get("$optional") is True


def _is_mapping(x: Any) -> bool:
    # Asked of every value of every target: the two commonest answers are given without asking the
    # abstract class, which takes much longer.
    kind = type(x)
    return kind is dict or (kind is not str and isinstance(x, Mapping))


def check_target(target: list[Any]) -> Complaint | None:
    """Return the first complaint about a target, a list of any content, or None.

    >>> check_target([{"name": "f"}]) is None, check_target([{"arguments": {}}])[0]
    (True, 'a wanted call has no name')
    """
    return next(_of_items(target), None)


# Complaints in the order in which a person would read the call. Only the first is ever asked for,
# so that nothing after a complaint is reached.


def _of_items(target: list[Any]) -> Iterator[Complaint]:
    rules = [rule for item in target if (rule := rule_of(item))]
    for item in target:
        rule = rule_of(item)
        if not rule:
            yield from _of_call(item)
            continue
        items = item[rule]
        if not isinstance(items, list) or not items:
            yield f"{rule} is a list of calls", item, f'{{"{rule}": [{_CALL}]}}'
        if rule == "$at_least" and is_inner_order(items):
            items = items[0]["$ordered"]
            if not isinstance(items, list) or not items:
                yield "$ordered is a list of calls", item, f'{{"$ordered": [{_CALL}]}}'
        for call in items:
            if rule_of(call):
                yield f"a rule inside {rule}", call, _CALL
            yield from _of_call(call)
    plain = len(target) - len(rules)
    alone = [rule for rule in rules if rule in ("$ordered", "$at_least")]
    if alone and (plain or len(alone) > 1):
        expected = f'{{"{alone[0]}": […]}} alone, or beside $only and $never'
        yield f"{alone[0]} says what all calls are, beside other wanted calls", target, expected
    if len(set(rules)) < len(rules):
        yield "one rule twice", target, "each rule once"


def _of_call(item: Any) -> Iterator[Complaint]:
    if not isinstance(item, Mapping):
        yield "a wanted call is no object", item, _CALL
    if "$any" in item:
        calls = item["$any"]
        if not isinstance(calls, list) or not calls or set(item) - {"$any", "$optional"}:
            yield "$any of calls is a list of calls", item, '{"$any": [' + _CALL + "]}"
        for call in calls:
            yield from _of_call(call)
        return
    if unknown := sorted(set(item) - {"name", "arguments", "$optional"}):
        yield f"unknown key {unknown[0]!r} in a wanted call", item, _CALL

    name, arguments = item.get("name"), item.get("arguments", {})
    if is_wish(name):
        names = name.get("$any")
        if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
            yield "$any of a name is a list of names", name, '{"$any": ["a", "b"]}'
    elif not isinstance(name, str) or not name:
        yield "a wanted call has no name", item, _CALL
    if not isinstance(arguments, Mapping) and arguments != ANY:
        yield "the arguments of a wanted call are no object", arguments, f'an object, or "{ANY}"'
    yield from _of_optional(item)
    yield from _of_value(arguments)


def _of_optional(x: Mapping[str, Any]) -> Iterator[Complaint]:
    if "$optional" in x and not isinstance(x["$optional"], bool):
        yield "$optional is true or false", x["$optional"], "true"


def _of_value(x: Any) -> Iterator[Complaint]:
    inner: Any = ()  # where wishes may be; `$value` is read as it is
    if is_wish(x):
        yield from _of_optional(x)
        if "$any" in x:
            inner = x["$any"]
            if not isinstance(inner, list) or not inner:
                yield "$any is a list with at least one value", x, '{"$any": [1, 2]}'
            if "$value" in x or "$match" in x:
                yield "$any stands alone or beside $optional", x, '{"$any": [1, 2]}'
        elif "$never" in x:
            inner = x["$never"]
            if not isinstance(inner, list) or not inner or set(x) - {"$never", "$optional"}:
                yield "$never is a list of values", x, '{"$never": [1, 2]}'
        elif "$at_least" in x:
            inner = x["$at_least"]
            if not isinstance(inner, Mapping) or set(x) - {"$at_least", "$optional"}:
                yield "$at_least of arguments is an object", x, '{"$at_least": {"city": "Oslo"}}'
            inner = inner.values() if isinstance(inner, Mapping) else ()
        elif "$match" in x:
            name, pattern = x["$match"], x.get("$value")
            if name not in MATCHERS:
                yield "no matcher of this name", name, ", ".join(MATCHERS)
            if name == "regex" and (reason := _regex_complaint(pattern)):
                yield f"this is no regular expression: {reason}", pattern, "a regular expression"
    elif isinstance(x, Mapping):
        yield from _of_near_wish(x)
        inner = x.values()
    elif isinstance(x, list):
        inner = x
    for value in inner:
        yield from _of_value(value)


def _of_near_wish(x: Mapping[str, Any]) -> Iterator[Complaint]:
    # As a value it would equal no argument, and nobody would be told.
    names = [key for key in x if isinstance(key, str) and key.startswith("$")]
    unknown = [key for key in names if key not in WISHES]
    if not unknown or len(names) < len(x):
        return
    keys = ", ".join(sorted(WISHES))
    as_value = f'{{"$value": …}} around it, if it is a value; keys of a wish: {keys}'
    if len(unknown) < len(names):
        yield f"unknown key {unknown[0]!r} in a wish", x, as_value
    elif len(names) == 1 and names[0][1:] in MATCHERS:
        wish = f'{{"$match": "{names[0][1:]}", "$value": …}}'
        yield f"a matcher is named in $match, not as {names[0]}", x, f"{wish}; or {as_value}"


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
