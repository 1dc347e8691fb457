"""The cost of a success, in money and in time, as drawings: success by the mean cost of an answer,
and by its median seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views.templating import Markup, macro
from .html_parts import TEMPLATES
from .numbers import percent

if TYPE_CHECKING:
    from ..figures.report import Report

TITLE = "Success against cost and time"
MOST_DOTS = 60
"""The cells of a drawing; more than these hide each other."""


@dataclass(frozen=True, slots=True)
class Dot:
    """A cell in a drawing: its number, name and figures in words, its place in percent of the width
    and the height, and whether no other cell is both better and cheaper.
    """

    number: int
    words: str
    x: str
    y: str
    leads: bool


@dataclass(frozen=True, slots=True)
class Tradeoff:
    """A drawing of success (up) by something that one would rather have little of (right)."""

    title: str
    greatest: str
    drawing: Markup
    dots: Sequence[Dot]


def tradeoffs_of(report: Report) -> list[Tradeoff]:
    """Return the drawings of a report: of the values that two cells or more have figures, and not
    all 0.
    """
    frame = report.frame[report.frame["success"].notna() & report.frame["n"].gt(0)]
    if not 2 <= len(frame) <= MOST_DOTS:
        return []
    amounts = (
        ("US dollars an answer", frame["cost"].astype(float) / frame["n"], "${:.4g}"),
        ("seconds to the end, median", frame["latency_p50"].astype(float), "{:.3g} s"),
    )
    drawings = [_tradeoff(report, frame, *amount) for amount in amounts]
    return [drawing for drawing in drawings if drawing is not None]


def _tradeoff(
    report: Report, frame: pd.DataFrame, title: str, amounts: pd.Series[Any], form: str
) -> Tradeoff | None:
    # None if fewer than two cells have the amount, or all have 0.
    is_recorded = amounts.notna()
    cells, costs = frame[is_recorded].to_dict("records"), amounts[is_recorded].tolist()
    greatest = max(costs, default=0.0)
    if len(cells) < 2 or greatest <= 0:
        return None

    rates = [float(cell["success"]) for cell in cells]
    front = leaders(rates, costs)
    dots = [
        _dot(report, n, cell, cost, form.format(cost), greatest, n in front)
        for n, (cell, cost) in enumerate(zip(cells, costs, strict=True))
    ]
    words = f"success by {title}: " + "; ".join(dot.words for dot in dots)
    drawing = macro(f"{TEMPLATES}/drawings.html", "scatter", words, dots)
    return Tradeoff(title, form.format(greatest), drawing, dots)


def _dot(
    report: Report,
    n: int,
    cell: Mapping[Any, Any],
    cost: float,
    amount: str,
    greatest: float,
    leads: bool,
) -> Dot:
    rate = float(cell["success"])
    words = f"{report.cell_name(cell)}: {percent(rate)}, {amount}"
    return Dot(n + 1, words, f"{2 + 94 * cost / greatest:.2f}%", f"{94 - 88 * rate:.2f}%", leads)


def leaders(rates: Sequence[float], costs: Sequence[float]) -> set[int]:
    """Return the places of the pairs that no other beats: at least as good in both, and better in
    one.

    >>> sorted(leaders([0.9, 0.5, 0.4, 0.9], [3.0, 1.0, 2.0, 3.0]))
    [0, 1, 3]
    """
    front: set[int] = set()
    best, cheapest = -1.0, -1.0
    # From cheap to dear, the better first: a later pair leads only where it is better than all
    # before it, or equal to the last leader.
    for n in sorted(range(len(rates)), key=lambda i: (costs[i], -rates[i])):
        if rates[n] > best or (rates[n] == best and costs[n] == cheapest):
            front.add(n)
            best, cheapest = rates[n], costs[n]
    return front
