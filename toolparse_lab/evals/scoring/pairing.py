"""Pairs of calls and wanted calls: a target of its own for each call."""

# How it works. Rows are calls, columns are targets. Whether there is a pairing at all is found by
# augmenting paths, exact for any number. The cheapest one, which explains a mismatch, is the best
# of all for a few columns, by a bit mask of those in use, and a greedy one for many.

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Choices: TypeAlias = dict[int, tuple[int, tuple[int, ...]]]
"""Columns in use, as a bit mask -> the cost of the rows so far and the column that each took."""
Pairs: TypeAlias = list[tuple[int, int]]
"""(call index, target index) of the calls, in order."""

Table: TypeAlias = Sequence[Sequence[Sequence[object]]]
"""A row per call with a cell per target, empty if the two fit."""

_LEFT_OUT = 100_000  # the cost of a required target without a call: more than any differences


def complete_pairs(
    table: Table, calls: int, targets: int, required: list[int]
) -> tuple[tuple[int, int], ...] | None:
    """Return a target of its own for every call, and a call for every required target.

    None if there is no such pairing.

    calls, targets: the two sizes of the table. required: the indexes of the targets that may not be
    absent.
    """
    fits = _fits_of(table, targets)
    if fits is None:
        return None
    pairs = _pair_all(fits, targets)
    if pairs is None:
        return None

    # A matching that covers every call and one that covers every required target give one that
    # covers both (Mendelsohn and Dulmage), so the two can be asked for apart.
    by_target = [[i for i in range(calls) if j in fits[i]] for j in required]
    if _pair_all(by_target, calls) is None:
        return None
    return tuple(pairs)


def _fits_of(table: Table, targets: int) -> list[list[int]] | None:
    # None if a call fits no target: then there is no pairing, and the search can be spared.
    fits = []
    for row in table:
        fitting = [j for j in range(targets) if not row[j]]
        if not fitting:
            return None
        fits.append(fitting)
    return fits


def _pair_all(choices: list[list[int]], size: int) -> Pairs | None:
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


def cheapest_pairs(costs: list[list[int]], size: int, required: set[int]) -> Pairs:
    """Return the pairing of every row with the least cost.

    Leaving a required column out costs more than anything.

    Row by row, the best choice of columns is kept for every set of columns in use (a bit mask), so
    that the cost is rows × size × 2^size.

    costs: of each row with each of `size` columns.

    >>> cheapest_pairs([[0, 5], [0, 9]], 2, set())
    [(0, 1), (1, 0)]
    """
    best: Choices = {0: (0, ())}
    for row in costs:
        best = _with_one_more(best, row, size)

    def total(item: tuple[int, tuple[int, tuple[int, ...]]]) -> tuple[int, tuple[int, ...]]:
        """Return the whole cost of a choice.

        The picks make equal costs come in a fixed order.
        """
        used, (cost, picks) = item
        left_out = sum(not used >> j & 1 for j in required)
        return cost + _LEFT_OUT * left_out, picks

    _, (_, picks) = min(best.items(), key=total)
    return list(enumerate(picks))


def _with_one_more(best: Choices, row: list[int], size: int) -> Choices:
    # The cheapest choice for every set of columns, with one row more than in `best`: {0: (0, ())}
    # and a row that costs [3, 5] give {1: (3, (0,)), 2: (5, (1,))}.
    longer: Choices = {}
    for used, (cost, picks) in best.items():
        for j in range(size):
            if used >> j & 1:
                continue
            mask = used | 1 << j
            entry = (cost + row[j], (*picks, j))
            if mask not in longer or entry < longer[mask]:
                longer[mask] = entry
    return longer


def greedy_pairs(costs: list[list[int]], size: int) -> Pairs:
    """Return a pairing in which each row takes the cheapest column that is free.

    costs: of each row with each of `size` columns, of which there are enough.

    >>> greedy_pairs([[0, 5], [0, 9]], 2)
    [(0, 0), (1, 1)]
    """
    free = set(range(size))
    pairs = []
    for i, row in enumerate(costs):
        j = min(free, key=lambda j: (row[j], j))
        free.discard(j)
        pairs.append((i, j))
    return pairs
