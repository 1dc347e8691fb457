"""Matching calls to a target: order-free, numbers as decimals, alternatives, defaults, pluggable
comparison.

A target is a list of calls ``{"name": …, "arguments": {…}}``. Anywhere in it, an object whose keys
all begin with one of the four words below is no value but a wish:

- ``{"$any": [a, b]}``: any of these. For a call, a name or a value
- ``{"$optional": true, …}``: may be absent. Beside it ``$any`` or ``$value``, or nothing (any
  value will do). In a call, next to ``name`` and ``arguments``
- ``{"$value": x}``: exactly x, read as it is, for arguments that look like a wish themselves
- ``{"$match": "regex", "$value": "par.*"}``: compared by a matcher of `MATCHERS`
- ``{"$never": [a, b]}``: any value but these
- ``{"$at_least": {"city": "Oslo"}}``, for an object: these members, and perhaps others
- ``"$any"`` in the place of a call's arguments: whatever they are

A list of calls is all of them, in any order. Other wishes for the calls as a whole are rules, in
the place of a call: `cases.target.RULES`.

>>> match_calls([("f", {"a": 1.0})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).ok
True
>>> match_calls([("f", {"a": 3})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).detail
'f: /a is 3, wanted one of 1, 2'
"""

# How it works. A walk goes down a call and a wanted one at once, with the schema of the place: an
# argument whose value is the schema's default may be written or left out on either side. A place
# with a matcher or a wish is settled by that, scalars by the matcher of their type. Cost: linear in
# the arguments; a wish with alternatives is walked once for each.
#
# Every call is compared with every wanted call, which gives a table; a cell without any difference
# is a fit. The verdict is a pairing in that table that leaves no call and no required target over,
# found by augmenting paths, exact for any number. Only where there is none is the cheapest one
# looked for, to have something to explain. Cost: calls × targets comparisons; the explanation of up
# to `EXACT_LIMIT` calls looks at 2^targets subsets.

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.types import ToolCall
from ...core.values import Value, escape_token, pointer_tokens, write_canonical
from ...core.values.printable import counted
from ...views.rows import Fault
from ..cases.matchers import DEFAULT_MATCHERS, MATCHERS, Matchers, matcher_of
from ..cases.target import (
    ANY,
    is_inner_order,
    is_optional,
    is_wish,
    plain_wish,
    rule_calls,
    rule_of,
)

EXACT_LIMIT = 8
"""Up to so many calls the pairing that explains a mismatch is the best one, above it a greedy one;
the verdict is exact for any number."""

# The types whose `==` is equality in JSON, among values of one of them.
_SCALARS = frozenset((str, int, bool, type(None)))
# From the most telling difference to the least, how far each makes a call from a wanted one.
_WEIGHT = {"name": 1000, "missing_argument": 2, "extra_argument": 2, "wrong_argument": 1}
_LEFT_OUT = 100_000  # the cost of a required target without a call: more than any differences
_MOST_REFERENCES = 20  # a longer chain of $ref is taken for a circle
_MOST_NAMES = 5
_ABSENT: Any = object()

Call: TypeAlias = tuple[str, Value]
"""A call as it is compared: name and arguments."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which a call of `tool` is not the wanted one.

    `code` is a sub-code of `wrong_call`. `actual` and `expected` are the two values, or the two
    names. `call` is the index of the call where several are compared.
    """

    code: str
    path: str
    tool: str
    actual: Any = None
    expected: Any = None
    call: int = 0

    @property
    def detail(self) -> str:
        """The difference as one sentence, made when it is asked for: most are never shown.

        >>> Difference("wrong_argument", "/a", "f", 1, 2).detail
        'f: /a is 1, wanted 2'
        >>> Difference("name", "", "f", "f", ["g", "h"]).detail
        'f called instead of g or h'
        """
        if self.code == "name":
            names = " or ".join(map(str, self.expected))
            return f"{self.tool} called instead of {names}"
        if self.code == "missing_argument":
            return f"{self.tool}: {self.path} is missing, wanted {say_value(self.expected)}"

        expected = "none" if self.code == "extra_argument" else say_value(self.expected)
        place = f"{self.tool}: {self.path or 'the arguments'}"
        return f"{place} is {say_value(self.actual)}, wanted {expected}"


def differences_between(
    call: Call, want: Any, tools: Sequence[ToolSpec], matchers: Matchers = DEFAULT_MATCHERS
) -> tuple[Difference, ...]:
    """Return how one call differs from one wanted call; of alternatives, from the nearest one.

    >>> [one.path for one in differences_between(("f", {"a": 1}), {"name": "f"}, ())]
    ['/a']
    """
    return _compare_call(call, want, {tool.name: tool.schema for tool in tools}, matchers)


def _cost_of(differences: Sequence[Difference]) -> int:
    return sum(_WEIGHT[difference.code] for difference in differences)


def _compare_call(
    call: Call, want: Any, schemas: Mapping[str, Any], matchers: Matchers
) -> tuple[Difference, ...]:
    # Of alternatives, the differences from the nearest one. schemas: those of the tools by name.
    name, arguments = call
    if "$any" in want:
        every = [_compare_call(call, one, schemas, matchers) for one in want["$any"]]
        return min(every, key=_cost_of)

    names = want["name"]
    allowed = names["$any"] if isinstance(names, Mapping) else [names]
    if name not in allowed:
        return (Difference("name", "", name, name, allowed),)

    schema = schemas.get(name, {})
    wanted = want.get("arguments", {})
    if wanted == ANY:
        return ()
    comparison = _Comparison(name, schema, matchers)
    comparison.compare(arguments, wanted, "", schema)
    return tuple(comparison.differences)


class _Comparison:
    # `root` is the schema of the tool, which references begin at. `plain`: no matcher but the
    # default ones is in use, so that scalars can be compared at once.
    __slots__ = ("differences", "matchers", "plain", "root", "tool")

    def __init__(self, tool: str, root: Any, matchers: Matchers) -> None:
        self.tool = tool
        self.root = root
        self.matchers = matchers
        self.plain = matchers.plain
        self.differences: list[Difference] = []

    def compare(self, actual: Value, want: Any, path: str, schema: Any) -> None:
        # want: a value or a wish. path: a JSON Pointer into the arguments. schema: that of the
        # value, perhaps a reference; anything if there is none.
        # Most values are scalars without a wish or a matcher of their own.
        if self.plain:
            kind = type(want)
            own = type(actual)
            if kind in _SCALARS and own in _SCALARS:
                # By type first: in Python, True equals 1.
                if own is not kind or actual != want:
                    self._add_wrong(path, actual, want)
                return

        matcher = self.matchers.at(self.tool, path)
        if matcher is not None:
            is_right = matcher(actual, plain_wish(want))
        elif is_wish(want):
            # `$match` first, since it may come with a `$value`; `$optional` alone takes any value.
            if "$match" in want:
                is_right = matcher_of(want["$match"])(actual, want.get("$value"))
            elif "$any" in want:
                is_right = any(self._fits(actual, one, path, schema) for one in want["$any"])
            elif "$never" in want:
                is_right = not any(self._fits(actual, one, path, schema) for one in want["$never"])
            elif "$at_least" in want:
                if isinstance(actual, Mapping):
                    self._compare_objects(actual, want["$at_least"], path, schema, more=True)
                    return
                is_right = False
            else:
                is_right = "$value" not in want or _is_same(actual, want["$value"], self.matchers)
        elif isinstance(want, Mapping) and isinstance(actual, Mapping):
            self._compare_objects(actual, want, path, schema)
            return
        elif isinstance(want, list) and isinstance(actual, list) and len(want) == len(actual):
            items = _resolve(schema, self.root).get("items")
            for i, (a, w) in enumerate(zip(actual, want, strict=True)):
                self.compare(a, w, f"{path}/{i}", items)
            return
        else:  # of two lengths nobody knows which item is the one too many
            is_right = _are_equal_scalars(actual, want, self.matchers)

        if not is_right:
            self._add_wrong(path, actual, want)

    def _compare_objects(
        self,
        actual: Mapping[str, Value],
        want: Mapping[str, Any],
        path: str,
        schema: Any,
        *,
        more: bool = False,
    ) -> None:
        # more: members that are not wanted are right too.
        properties = _resolve(schema, self.root).get("properties")
        if not isinstance(properties, Mapping):
            properties = {}

        # A loop without a call for each member, because every argument of every call comes by.
        plain = self.plain
        for key, inner in want.items():
            value = actual.get(key, _ABSENT)
            kind = type(inner)
            if plain and kind in _SCALARS and type(value) is kind and value == inner:
                continue  # what most arguments are
            place = f"{path}/{escape_token(key)}"
            own = properties.get(key)
            if value is _ABSENT:
                if is_optional(inner):
                    continue
                default = self._default(own)
                if default is _ABSENT or not self._fits(default, inner, place, {}, {}):
                    missing = Difference("missing_argument", place, self.tool, None, inner)
                    self.differences.append(missing)
                continue
            # Written out, the default is what leaving out would have said.
            default = self._default(own) if is_optional(inner) else _ABSENT
            if default is _ABSENT or not self._fits(value, {"$value": default}, place, {}, {}):
                self.compare(value, inner, place, own)

        # Equal keys are the rule, and comparing the two sets of them is done in C.
        if not more and actual.keys() != want.keys():
            for key, value in actual.items():
                if key in want:
                    continue
                place = f"{path}/{escape_token(key)}"
                default = self._default(properties.get(key))
                if default is not _ABSENT and self._fits(value, default, place, {}, {}):
                    continue
                if self.matchers.at(self.tool, place) is not MATCHERS["ignore"]:
                    self.differences.append(Difference("extra_argument", place, self.tool, value))

    def _default(self, schema: Any) -> Any:
        return _resolve(schema, self.root).get("default", _ABSENT)

    def _fits(self, actual: Value, want: Any, path: str, schema: Any, root: Any = None) -> bool:
        # A comparison of its own, so that no difference of this question is added to the answer.
        other = _Comparison(self.tool, self.root if root is None else root, self.matchers)
        other.compare(actual, want, path, schema)
        return not other.differences

    def _add_wrong(self, path: str, actual: Value, want: Any) -> None:
        self.differences.append(Difference("wrong_argument", path, self.tool, actual, want))


def _is_same(a: Value, b: Any, matchers: Matchers) -> bool:
    # Wishes in `b` are read as they are: {"$any": [1]} is only the same as {"$any": [1]}.
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_is_same(a[key], b[key], matchers) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_is_same, a, b, repeat(matchers)))
    return _are_equal_scalars(a, b, matchers)


def _are_equal_scalars(actual: Value, want: Any, matchers: Matchers) -> bool:
    if isinstance(want, (Mapping, list)) or isinstance(actual, (Mapping, list)):
        return False
    return matchers.of(want)(actual, want)


def _resolve(schema: Any, root: Any) -> Mapping[str, Any]:
    if type(schema) is dict and "$ref" not in schema:
        return schema  # what most are

    for _ in range(_MOST_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        if not ref.startswith("#"):
            return {}
        node = root
        for token in pointer_tokens(ref[1:]):
            node = node.get(token) if isinstance(node, Mapping) else None
        if not isinstance(node, Mapping):
            return {}
        # What is next to $ref (a default, say) wins over what it refers to.
        schema = {**node, **{key: value for key, value in schema.items() if key != "$ref"}}
    return {}


def beginning_of(text: str, most: int = 80) -> str:
    """Return a text, cut where it is too long for a sentence."""
    return text if len(text) <= most else text[: most - 3] + "…"


def say_value(x: Any) -> str:
    """Return a value, or a wish for one, in words."""
    if not is_wish(x):
        return beginning_of(write_canonical(x))

    # A wish by the first of its parts that says something.
    if "$match" in x:
        name = str(x["$match"])
        return f"{name} {say_value(x['$value'])}" if "$value" in x else name
    if "$any" in x:
        return "one of " + ", ".join(say_value(value) for value in x["$any"])
    if "$never" in x:
        return "none of " + ", ".join(say_value(value) for value in x["$never"])
    if "$at_least" in x:
        return f"at least {say_value(x['$at_least'])}"
    return say_value(x["$value"]) if "$value" in x else "anything"


# The differences between each call (a row) and each wanted one (a column).
_Table: TypeAlias = list[list[tuple[Difference, ...]]]
# (call index, target index) of the calls, in order.
_Pairs: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Match:
    """The verdict on calls held to a target, with its reasons.

    `code` is '' where they agree, else the most telling sub-code. `pairs` (call index, index among
    the `wanted_calls` of the target) is the pairing that `differences` are told by. `note` says
    where that pairing was not searched to the end. `rows` has a line for each thing that is wrong.
    """

    ok: bool
    code: str = ""
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    note: str = ""
    rows: tuple[Fault, ...] = ()


def say_call(want: Any) -> str:
    """Return a wanted call in words, shortened.

    >>> say_call({"name": "f", "arguments": {"a": {"$any": [1, 2]}}})
    'f(a: one of 1, 2)'
    """
    if "$any" in want:
        return " or ".join(map(say_call, want["$any"]))
    name, arguments = want["name"], want.get("arguments", {})
    name = name if isinstance(name, str) else " or ".join(map(str, name["$any"]))
    if arguments == ANY:
        return f"{name}(…)"
    if is_wish(arguments):
        return f"{name}({say_value(arguments)})"
    return beginning_of(
        f"{name}({', '.join(f'{k}: {say_value(v)}' for k, v in arguments.items())})"
    )


def _said(call: Call) -> str:
    return beginning_of(f"{call[0] or '?'}({write_canonical(call[1])})")


def match_calls(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Match:
    """Compare (name, arguments) pairs with a target in the form of the head of this file, in any
    order, or by its rules. tools: for the defaults in their schemas. matchers: how values are
    compared.
    """
    if any(map(rule_of, target)):
        return _Rules(calls, target, tools, matchers).match()
    match = _match_all(calls, target, tools, matchers)
    if match.ok:
        return match
    told = match
    if match.code == "count" and not match.pairs:
        told = _likely_pairs(_compare_all(calls, target, tools, matchers))
    return replace(match, rows=_rows_of(calls, target, told))


def numbered(rows: Iterable[Fault], calls: Sequence[ToolCall]) -> tuple[Fault, ...]:
    """Return the rows of a match of some calls of a result, by the numbers that they have there."""
    return tuple(
        row if row.call is None else replace(row, call=calls[row.call].index) for row in rows
    )


def _rows_of(calls: Sequence[Call], target: Sequence[Any], match: Match) -> tuple[Fault, ...]:
    # Of calls that are paired, each difference; then calls and wanted calls without a pair.
    rows = []
    pairs = dict(match.pairs)
    for i, call in enumerate(calls):
        if i in pairs:
            want = target[pairs[i]]
            rows += [_row_of(one, want) for one in match.differences if one.call == i]
        else:
            rows.append(Fault(i, "", "unexpected_call", _said(call), "", call[0] or "?"))
    taken = set(pairs.values())
    if match.code == "count":
        got = beginning_of(", ".join(map(_said, calls)) or "no call")
        for j, want in enumerate(target):
            if j not in taken and not is_optional(want):
                rows.append(Fault(None, "", "count", got, say_call(want)))
    return tuple(rows)


def _row_of(one: Difference, want: Any) -> Fault:
    if one.code == "name":
        expected, found = " or ".join(map(str, one.expected)), one.tool
    else:
        expected = "" if one.code == "extra_argument" else say_value(one.expected)
        found = "" if one.code == "missing_argument" else say_value(one.actual)
    return Fault(one.call, one.path, one.code, found, expected, one.tool or "?", say_call(want))


def _likely_pairs(table: _Table) -> Match:
    # What is told of calls that are too many or too few: each with the nearest wanted call of its
    # name, the nearest ones first.
    near = sorted(
        (_cost_of(differences), i, j)
        for i, row in enumerate(table)
        for j, differences in enumerate(row)
        if all(one.code != "name" for one in differences)
    )
    pairs: dict[int, int] = {}
    for _, i, j in near:
        if i not in pairs and j not in pairs.values():
            pairs[i] = j
    told = tuple(replace(one, call=i) for i, j in pairs.items() for one in table[i][j])
    return Match(False, "count", "", told, tuple(pairs.items()))


def _match_all(
    calls: Sequence[Call], target: Sequence[Any], tools: Sequence[ToolSpec], matchers: Matchers
) -> Match:
    required = [i for i, want in enumerate(target) if not is_optional(want)]
    if not target and calls:
        return Match(False, "unexpected_call", f"{_names(calls)} called where no call was wanted")
    least, most = len(required), len(target)
    if not least <= len(calls) <= most:
        number = f"{least} to {most}" if least < most else str(most)
        names = _names(calls) or "none"
        return Match(False, "count", f"{counted(len(calls), 'call')} instead of {number}: {names}")

    table = _compare_all(calls, target, tools, matchers)
    pairs = _complete_pairs(table, most, required)
    if pairs is not None:
        return Match(True, pairs=tuple(pairs))

    costs = [[_cost_of(differences) for differences in row] for row in table]
    note = ""
    if most <= EXACT_LIMIT:
        pairs = _cheapest_pairs(costs, most, required)
    else:
        note = f"more than {EXACT_LIMIT} calls: the pairing that this explains is greedy"
        free, pairs = set(range(most)), []
        for i, row in enumerate(costs):
            _, j = min((row[j], j) for j in free)
            free.discard(j)
            pairs.append((i, j))

    differences = tuple(replace(one, call=i) for i, j in pairs for one in table[i][j])
    if not differences:  # every call fits something, but some wanted call is left over
        detail = f"a wanted call is missing beside {_names(calls)}"
        return Match(False, "count", detail, (), tuple(pairs), note)
    first = _first_of(differences)
    return Match(False, first.code, first.detail, differences, tuple(pairs), note)


def _first_of(differences: Sequence[Difference]) -> Difference:
    # The most telling one.
    order = list(_WEIGHT)
    return min(differences, key=lambda one: order.index(one.code))


def agree(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> bool:
    """Return True if `match_calls`, which has the reasons, finds that calls and target agree.

    >>> agree([("f", {"a": 1})], [{"name": "f", "arguments": {"a": 1.0}}])
    True
    """
    if any(map(rule_of, target)):
        return _Rules(calls, target, tools, matchers).match().ok
    required = [i for i, want in enumerate(target) if not is_optional(want)]
    if not len(required) <= len(calls) <= len(target):
        return False
    table = _compare_all(calls, target, tools, matchers)
    return _complete_pairs(table, len(target), required) is not None


class _Rules:
    # The rules of one target, in the order in which they stand; the first that is broken is told.
    def __init__(
        self,
        calls: Sequence[Call],
        target: Sequence[Any],
        tools: Sequence[ToolSpec],
        matchers: Matchers,
    ) -> None:
        self.calls = calls
        self.target = target
        self.tools = tools
        self.matchers = matchers

    def match(self) -> Match:
        pairs: tuple[tuple[int, int], ...] = ()
        plain = [item for item in self.target if not rule_of(item)]
        if plain:
            match = match_calls(self.calls, plain, self.tools, self.matchers)
            if not match.ok:
                return match
            pairs = match.pairs
        # The indices of a rule's calls go on from those of the items before it.
        offset = 0
        for item in self.target:
            rule = rule_of(item)
            if not rule:
                offset += 1
                continue
            items = rule_calls(item)
            match = self._held_to(rule, items, is_inner_order(item[rule]))
            if rule == "$never":
                if not match.ok:
                    return match
                continue
            shifted = tuple((i, j + offset) for i, j in match.pairs)
            offset += len(items)
            if not match.ok:
                return replace(match, pairs=shifted)
            pairs = pairs or shifted
        return Match(True, pairs=pairs)

    def _held_to(self, rule: str, items: list[Any], in_order: bool) -> Match:
        if rule == "$at_least":
            return self._at_least(items, in_order)
        held = {"$ordered": self._ordered, "$only": self._only, "$never": self._never}
        return held[rule](items)

    def _table(self, items: list[Any]) -> _Table:
        return _compare_all(self.calls, items, self.tools, self.matchers)

    def _ordered(self, items: list[Any]) -> Match:
        match = match_calls(self.calls, items, self.tools, self.matchers)
        if not match.ok:
            return match
        # Each call takes the next wanted one that fits, or one behind optional ones.
        fits = [[not differences for differences in row] for row in self._table(items)]
        optional = [is_optional(want) for want in items]
        # Where the calls so far may end -> their picks, each beside those before it.
        reached: dict[int, Any] = {0: ()}
        for row in fits:
            further: dict[int, Any] = {}
            picks = None
            for j, fit in enumerate(row):
                picks = reached.get(j) if picks is None else picks
                if picks is not None and fit:
                    further[j + 1] = (picks, j)
                if not optional[j]:
                    picks = None
            reached = further
        for start, picks in reached.items():
            if all(optional[start:]):
                taken = []
                while picks:
                    picks, j = picks
                    taken.append(j)
                return Match(True, pairs=tuple(enumerate(reversed(taken))))
        return self._out_of_order(items, match.pairs)

    def _out_of_order(self, items: list[Any], pairs: tuple[tuple[int, int], ...]) -> Match:
        wanted = ", ".join(map(say_call, items))
        detail = f"{_names(self.calls)} called in another order than {beginning_of(wanted)}"
        got = beginning_of(", ".join(map(_said, self.calls)))
        row = Fault(None, "", "order", got, f"in this order: {wanted}")
        return Match(False, "order", detail, (), pairs, rows=(row,))

    def _at_least(self, items: list[Any], in_order: bool) -> Match:
        table = self._table(items)
        required = [j for j, want in enumerate(items) if not is_optional(want)]
        fitting = [[i for i, row in enumerate(table) if not row[j]] for j in required]
        placed = _pair_all(fitting, len(self.calls))
        if placed is None:
            return self._lacking(items, table, required, fitting)
        if not in_order:
            return Match(True, pairs=tuple(sorted((i, required[k]) for k, i in placed)))
        pairs, start = [], 0
        for j, candidates in zip(required, fitting, strict=True):
            i = next((i for i in candidates if i >= start), None)
            if i is None:
                return self._out_of_order([items[j] for j in required], ())
            pairs.append((i, j))
            start = i + 1
        return Match(True, pairs=tuple(pairs))

    def _lacking(
        self, items: list[Any], table: _Table, required: list[int], fitting: list[list[int]]
    ) -> Match:
        # Each wanted call that no call fits, beside the nearest; else there are too few that do.
        rows, told, pairs = [], [], []
        got = _names(self.calls)
        for j, candidates in zip(required, fitting, strict=True):
            if candidates:
                continue
            near = min(range(len(table)), key=lambda i: _cost_of(table[i][j]), default=None)
            if near is None or any(one.code == "name" for one in table[near][j]):
                rows.append(Fault(None, "", "count", got or "no call", say_call(items[j])))
                continue
            pairs.append((near, j))
            differences = [replace(one, call=near) for one in table[near][j]]
            told += differences
            rows += [_row_of(one, items[j]) for one in differences]
        if told and len(pairs) == len([c for c in fitting if not c]):
            first = _first_of(told)
            told_by = tuple(told)
            return Match(False, first.code, first.detail, told_by, tuple(pairs), rows=tuple(rows))
        left = [items[j] for j, candidates in zip(required, fitting, strict=True) if not candidates]
        wanted = ", ".join(map(say_call, left or [items[j] for j in required]))
        if not rows:
            rows.append(Fault(None, "", "count", got, f"one call each for {wanted}"))
        detail = f"wanted at least {beginning_of(wanted)}, called {got or 'none'}"
        return Match(False, "count", detail, tuple(told), tuple(pairs), rows=tuple(rows))

    def _only(self, items: list[Any]) -> Match:
        pairs, told, rows = [], [], []
        for i, row in enumerate(self._table(items)):
            j = min(range(len(items)), key=lambda j: _cost_of(row[j]))
            pairs.append((i, j))
            for one in row[j]:
                told.append(replace(one, call=i))
                rows.append(_row_of(told[-1], items[j]))
        if not told:
            return Match(True, pairs=tuple(pairs))
        first = _first_of(told)
        detail = first.detail
        if first.code == "name":
            names = list(dict.fromkeys(say_call(want) for want in items))
            detail = f"{first.tool} called, and only {', '.join(names)} may be"
        return Match(False, first.code, detail, tuple(told), tuple(pairs), rows=tuple(rows))

    def _never(self, items: list[Any]) -> Match:
        for i, row in enumerate(self._table(items)):
            for j, differences in enumerate(row):
                if not differences:
                    name, said = self.calls[i][0], _said(self.calls[i])
                    never = f"never {say_call(items[j])}"
                    fault = Fault(i, "", "forbidden_call", said, never, name)
                    detail = f"{name} called, and {never} is wanted"
                    return Match(False, "forbidden_call", detail, rows=(fault,))
        return Match(True)


def _compare_all(
    calls: Sequence[Call], target: Sequence[Any], tools: Sequence[ToolSpec], matchers: Matchers
) -> _Table:
    schemas = {tool.name: tool.schema for tool in tools}
    return [[_compare_call(call, want, schemas, matchers) for want in target] for call in calls]


def _complete_pairs(table: _Table, targets: int, required: list[int]) -> _Pairs | None:
    # A target of its own for every call, and a call for every required target; None if there is
    # no such pairing.
    fits = [[j for j in range(targets) if not row[j]] for row in table]
    pairs = _pair_all(fits, targets) if all(fits) else None
    if pairs is None:
        return None
    # A matching that covers every call and one that covers every required target give one that
    # covers both (Mendelsohn and Dulmage), so the two can be asked for apart.
    by_target = [[i for i, fitting in enumerate(fits) if j in fitting] for j in required]
    return pairs if _pair_all(by_target, len(fits)) is not None else None


def _pair_all(choices: list[list[int]], size: int) -> _Pairs | None:
    # Augmenting paths: a column of its own for every row, None if there is none.
    rows: list[int | None] = [None] * size  # by column: the row that has it so far

    def place(row: int, tried: set[int]) -> bool:
        # tried: the columns that this search has looked at, so that it ends.
        for j in choices[row]:
            if j in tried:
                continue
            tried.add(j)
            other = rows[j]
            # The row that has the column may find another one, and so make room.
            if other is None or place(other, tried):
                rows[j] = row
                return True
        return False

    for row in range(len(choices)):
        if not place(row, set()):
            return None
    return sorted((row, j) for j, row in enumerate(rows) if row is not None)


def _cheapest_pairs(costs: list[list[int]], size: int, required: list[int]) -> _Pairs:
    # Row by row, the best choice of columns is kept for every set of columns in use (a bit mask),
    # with its cost and the column that each row took: {0: (0, ())} and a row that costs [3, 5] give
    # {1: (3, (0,)), 2: (5, (1,))}. So the cost is rows × size × 2^size. The picks make equal costs
    # come in a fixed order.
    best: dict[int, tuple[int, tuple[int, ...]]] = {0: (0, ())}
    for row in costs:
        longer: dict[int, tuple[int, tuple[int, ...]]] = {}
        for used, (cost, picks) in best.items():
            for j in range(size):
                mask = used | 1 << j
                entry = (cost + row[j], (*picks, j))
                if mask != used and (mask not in longer or entry < longer[mask]):
                    longer[mask] = entry
        best = longer

    def total(used: int) -> tuple[int, tuple[int, ...]]:
        cost, picks = best[used]
        return cost + _LEFT_OUT * sum(not used >> j & 1 for j in required), picks

    return list(enumerate(best[min(best, key=total)][1]))


def _names(calls: Sequence[Call]) -> str:
    names = [name or "?" for name, _ in calls]
    text = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    return f"{text} and {more} more" if more > 0 else text
