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

# How it works. Every call is compared with every wanted call (`differences`), which gives a table;
# a cell without any is a fit. The verdict is a pairing in that table that leaves no call and no
# required target over, found by augmenting paths, exact for any number. Only where there is none is
# the cheapest one looked for, to have something to explain. Cost: calls × targets comparisons, each
# linear in the arguments; the explanation of up to `EXACT_LIMIT` calls looks at 2^targets subsets.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values.printable import counted
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from ..cases.target import is_optional
from .differences import Call, Difference, compare_call, cost_of

EXACT_LIMIT = 8
"""Up to so many calls the pairing that explains a mismatch is the best one, above it a greedy one;
the verdict is exact for any number."""

# From the most telling difference to the least.
_ORDER = ("name", "missing_argument", "extra_argument", "wrong_argument")
_MOST_NAMES = 5

# The differences between each call (a row) and each wanted one (a column).
_Table: TypeAlias = list[list[tuple[Difference, ...]]]
# (call index, target index) of the calls, in order.
_Pairs: TypeAlias = list[tuple[int, int]]
_LEFT_OUT = 100_000  # the cost of a required target without a call: more than any differences


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
    """Compare (name, arguments) pairs with a target, in any order.

    An argument whose value is the schema's default may be written or left out on either side.

    calls: those that were read. target: the wanted calls, in the form of the head of this file.
    tools: those of the case, for the defaults in their schemas. matchers: how values are compared.
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

    costs = [[cost_of(differences) for differences in row] for row in table]
    note = ""
    if most <= EXACT_LIMIT:
        pairs = _cheapest_pairs(costs, most, required)
    else:
        note = f"more than {EXACT_LIMIT} calls: the pairing behind this explanation is greedy"
        free, pairs = set(range(most)), []
        for i, row in enumerate(costs):
            _, j = min((row[j], j) for j in free)
            free.discard(j)
            pairs.append((i, j))

    differences = tuple(one for i, j in pairs for one in table[i][j])
    if not differences:  # every call fits something, but some wanted call is left over
        detail = f"a wanted call is missing beside {_names(calls)}"
        return Match(False, "count", detail, (), tuple(pairs), note)
    first = min(differences, key=lambda d: _ORDER.index(d.code))
    return Match(False, first.code, first.detail, differences, tuple(pairs), note)


def agree(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec] = (),
    matchers: Matchers = DEFAULT_MATCHERS,
) -> bool:
    """Return True if `match_calls` finds that calls and target agree, without the reasons where
    they do not.

    The arguments are those of `match_calls`.

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
    return [[compare_call(call, want, schemas, matchers) for want in target] for call in calls]


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
