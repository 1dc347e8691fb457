"""Matching calls to a target: order-free, numbers as decimals, alternatives, defaults, pluggable
comparison.

A target is a list of calls ``{"name": …, "arguments": {…}}``. Anywhere in it, an object whose keys
all begin with one of the four words below is no value but a wish:

- ``{"$any": [a, b]}``: any of these. For a call, a name or a value
- ``{"$optional": true, …}``: may be absent. Beside it ``$any`` or ``$value``, or nothing (any
  value will do). In a call, next to ``name`` and ``arguments``
- ``{"$value": x}``: exactly x, read as it is, for arguments that look like a wish themselves
- ``{"$match": "regex", "$value": "par.*"}``: compared by a matcher of `MATCHERS`

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values import Value, escape_token, pointer_tokens, write_canonical
from ...core.values.printable import counted
from ..cases.matchers import DEFAULT_MATCHERS, MATCHERS, Matchers, matcher_of
from ..cases.target import is_optional, is_wish, plain_wish

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
    names.
    """

    code: str
    path: str
    tool: str
    actual: Any = None
    expected: Any = None

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
            return f"{self.tool}: {self.path} is missing, wanted {_say(self.expected)}"

        expected = "none" if self.code == "extra_argument" else _say(self.expected)
        place = f"{self.tool}: {self.path or 'the arguments'}"
        return f"{place} is {_say(self.actual)}, wanted {expected}"


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
    comparison = _Comparison(name, schema, matchers)
    comparison.compare(arguments, want.get("arguments", {}), "", schema)
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
        self, actual: Mapping[str, Value], want: Mapping[str, Any], path: str, schema: Any
    ) -> None:
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
        if actual.keys() != want.keys():
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


def _say(x: Any) -> str:
    if not is_wish(x):
        return beginning_of(write_canonical(x))

    # A wish by the first of its parts that says something.
    if "$match" in x:
        name = str(x["$match"])
        return f"{name} {_say(x['$value'])}" if "$value" in x else name
    if "$any" in x:
        return "one of " + ", ".join(_say(value) for value in x["$any"])
    return _say(x["$value"]) if "$value" in x else "anything"


# The differences between each call (a row) and each wanted one (a column).
_Table: TypeAlias = list[list[tuple[Difference, ...]]]
# (call index, target index) of the calls, in order.
_Pairs: TypeAlias = list[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Match:
    """The verdict on calls held to a target, with its reasons.

    `code` is '' where they agree, else the most telling sub-code. `pairs` (call index, target
    index) is the pairing that `differences` are told by. `note` says where that pairing was not
    searched to the end.
    """

    ok: bool
    code: str = ""
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    pairs: tuple[tuple[int, int], ...] = ()
    note: str = ""


def match_calls(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> Match:
    """Compare (name, arguments) pairs with a target in the form of the head of this file, in any
    order. tools: for the defaults in their schemas. matchers: how values are compared.
    """
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

    differences = tuple(one for i, j in pairs for one in table[i][j])
    if not differences:  # every call fits something, but some wanted call is left over
        detail = f"a wanted call is missing beside {_names(calls)}"
        return Match(False, "count", detail, (), tuple(pairs), note)
    order = list(_WEIGHT)
    first = min(differences, key=lambda d: order.index(d.code))
    return Match(False, first.code, first.detail, differences, tuple(pairs), note)


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
    required = [i for i, want in enumerate(target) if not is_optional(want)]
    if not len(required) <= len(calls) <= len(target):
        return False
    table = _compare_all(calls, target, tools, matchers)
    return _complete_pairs(table, len(target), required) is not None


def _compare_all(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec],
    matchers: Matchers,
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
