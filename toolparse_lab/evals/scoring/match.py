"""Matching calls to a target: order-free, numbers as decimals, alternatives, defaults, pluggable
comparison.

A target is a list of calls ``{"name": …, "arguments": {…}}``. Anywhere in it, an object whose keys
all begin with one of the four words below is no value but a wish:

- ``{"$any": [a, b]}``: any of these. For a call, a name or a value
- ``{"$optional": true, …}``: may be absent. Beside it ``$any`` or ``$value``, or nothing (any
  value will do). In a call, beside ``name`` and ``arguments``
- ``{"$value": x}``: exactly x, read as it stands, for arguments that look like a wish themselves
- ``{"$match": "regex", "$value": "par.*"}``: compared by a matcher of `MATCHERS`

>>> match_calls([("f", {"a": 1.0})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).ok
True
>>> match_calls([("f", {"a": 3})], [{"name": "f", "arguments": {"a": {"$any": [1, 2]}}}]).detail
'f: /a is 3, wanted one of 1, 2'
"""

# How it works. Every call is compared with every wanted call (`differences`), which gives a table;
# a cell without any is a fit. The verdict is a pairing in that table that leaves no call and no
# required target over (`pairing`). Only where there is none is the cheapest one looked for, to have
# something to explain. Cost: calls × targets comparisons, each linear in the arguments; the
# explanation of up to `EXACT_LIMIT` calls looks at 2^targets subsets.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values.printable import counted
from ..cases.matchers import DEFAULT_MATCHERS, Matchers
from ..cases.target import is_optional
from .differences import Call, Difference, compare_call, cost_of
from .pairing import cheapest_pairs, complete_pairs, greedy_pairs

EXACT_LIMIT = 8
"""Up to so many calls the pairing that explains a mismatch is the best one, above it a greedy one;
the verdict is exact for any number."""

# From the most telling difference to the least.
_ORDER = ("name", "missing_argument", "extra_argument", "wrong_argument")
_MOST_NAMES = 5

Row: TypeAlias = list[tuple[Difference, ...]]
"""The differences between one call and each wanted one."""


@dataclass(frozen=True, slots=True)
class Match:
    """The verdict on calls beside a target, with its reasons.

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

    calls: the text read. target: the wanted calls, in the form of the head of this file.
    tools: those of the case, for the defaults in their schemas. matchers: how values are compared.
    """
    required = _required(target)
    if not target and calls:
        return Match(False, "unexpected_call", f"{_names(calls)} called where no call was wanted")
    if not len(required) <= len(calls) <= len(target):
        return Match(False, "count", _count_detail(calls, len(required), len(target)))

    table = _compare_all(calls, target, tools, matchers)
    pairs = complete_pairs(table, len(calls), len(target), required)
    if pairs is not None:
        return Match(True, pairs=pairs)
    return _explain(calls, target, table, required)


def _count_detail(calls: Sequence[Call], least: int, most: int) -> str:
    number = f"{least} to {most}" if least < most else str(most)
    names = _names(calls) or "none"
    return f"{counted(len(calls), 'call')} instead of {number}: {names}"


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
    required = _required(target)
    if not len(required) <= len(calls) <= len(target):
        return False

    table = _compare_all(calls, target, tools, matchers)
    return complete_pairs(table, len(calls), len(target), required) is not None


def _required(target: Sequence[Any]) -> list[int]:
    return [i for i, want in enumerate(target) if not is_optional(want)]


def _compare_all(
    calls: Sequence[Call],
    target: Sequence[Any],
    tools: Sequence[ToolSpec],
    matchers: Matchers,
) -> list[Row]:
    # A row per call, and in it a cell per wanted call, empty if the two fit.
    schemas = {tool.name: tool.schema for tool in tools}
    return [[compare_call(call, want, schemas, matchers) for want in target] for call in calls]


def _explain(
    calls: Sequence[Call], target: Sequence[Any], table: list[Row], required: list[int]
) -> Match:
    costs = [[cost_of(differences) for differences in row] for row in table]
    note = ""
    if max(len(calls), len(target)) <= EXACT_LIMIT:
        pairs = cheapest_pairs(costs, len(target), set(required))
    else:
        pairs = greedy_pairs(costs, len(target))
        note = f"more than {EXACT_LIMIT} calls: the pairing behind this explanation is greedy"

    differences: list[Difference] = []
    for i, j in pairs:
        differences += table[i][j]
    if not differences:  # every call fits something, but some wanted call is left over
        detail = f"a wanted call is missing beside {_names(calls)}"
        return Match(False, "count", detail, (), tuple(pairs), note)

    first = min(differences, key=lambda d: _ORDER.index(d.code))
    return Match(False, first.code, first.detail, tuple(differences), tuple(pairs), note)


def _names(calls: Sequence[Call]) -> str:
    names = [name or "?" for name, _ in calls]
    text = ", ".join(names[:_MOST_NAMES])
    more = len(names) - _MOST_NAMES
    if more <= 0:
        return text
    return f"{text} and {more} more"
