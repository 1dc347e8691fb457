"""The drawings of a report, as inline SVG that prints and can be read aloud, or as text:
intervals, the ladder of help, outcomes, and what a success costs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views import style
from ....views.templating import Markup, macro
from ...scoring.outcomes import OUTCOMES
from ..figures.cells import UNRECORDED, groups
from .columns import Row, percent, points, span

if TYPE_CHECKING:
    from ..figures.report import Report

TEMPLATES = "evals/reports/pages/templates"
_DRAWINGS = f"{TEMPLATES}/drawings.html"
TRADEOFFS = "Success against cost and time"
MOST_DOTS = 60
"""The cells of a drawing of costs; more than these hide each other."""
BAR = 20  # columns of an interval in a terminal

# From what the model wrote to what help added.
STEPS: Mapping[str, tuple[str, str]] = {
    "strict": (style.BLUE, "as written"),
    "repaired": (style.SKY, "+ repairs"),
    "safe": (style.GREEN, "+ lossless coercion"),
    "coerced": (style.YELLOW, "+ looser coercion"),
}
_HATCH = "repeating-linear-gradient(135deg,transparent 0 4px,rgba(255,255,255,.45) 4px 7px)"
FILLS: Mapping[str, tuple[str, str, bool]] = {
    "correct": (style.GREEN, "#000", False),
    "abstained_correctly": (style.GREEN, "#000", True),
    "wrong_call": (style.VERMILLION, "#000", False),
    "abstained_wrongly": (style.ORANGE, "#000", False),
    "self_answered": (style.YELLOW, "#000", False),
    "attempted_unparseable": (style.PURPLE, "#000", False),
    "fabricated": ("#000000", "#fff", False),
    "reader_error": ("#000000", "#fff", True),
    "truncated": (style.SKY, "#000", False),
    "reasoning_only": (style.SKY, "#000", True),
    "empty": (style.BLUE, "#fff", False),
    "refused": (style.BLUE, "#fff", True),
    "context_overflow": ("#999999", "#000", False),
    "provider_error": ("#999999", "#000", True),
    "ungraded": ("#dddddd", "#000", False),
    UNRECORDED: ("#dddddd", "#000", True),
}
"""Outcome -> (colour, colour of its text, hatched), in the order of the parts of a bar: successes,
then the model's, the parser's and the provider's share. A second outcome of one colour is hatched,
and every part is named in text as well."""


def interval_bar(low: float, rate: float, high: float, width: int = BAR) -> str:
    """Return an interval on a scale of 0 to 100 %: ├ and ┤ its ends, ● the rate.

    low, rate, high: shares. Blanks where the rate is unknown. width: of the drawing, in columns.

    >>> interval_bar(0.2, 0.5, 1.0, 10)
    '··├──●───┤'
    """
    if math.isnan(rate):
        return " " * width
    # A share of 1 is at the last column, not after it.
    first, middle, last = (min(width - 1, int(x * width)) for x in (low, rate, high))
    cells = ["·"] * first + ["─"] * (last + 1 - first) + ["·"] * (width - 1 - last)
    # The rate last, so that it shows where an end is at the same column.
    cells[first], cells[last] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)


def _at(share: Any) -> str:
    return f"{100 * float(share):.2f}%"


def interval_svg(cell: Mapping[Any, Any], level: float) -> Markup:
    """Return a rate with its interval on a scale of 0 to 100 %.

    The dashed line goes from worst to best.
    """
    if pd.isna(cell["success"]):
        return macro(_DRAWINGS, "absent", cell["reason"] or UNRECORDED)
    low, rate, high = (float(cell[c]) for c in ("ci_low", "success", "ci_high"))
    words = f"{percent(rate)}, {level:.0%} interval {span(low, high)} %".replace("95%", "95 %")
    drawing = {"label": words, "low": _at(low), "middle": _at(rate), "high": _at(high)}
    # Without missing trials worst and best are the rate itself, and there is no line to draw.
    dashed = cell["missing"] and not pd.isna(cell["worst"])
    ends = {c: _at(cell[c]) if dashed else "" for c in ("worst", "best")}
    return macro(_DRAWINGS, "interval", drawing | ends)


def difference_svg(row: Mapping[Any, Any], level: float) -> Markup:
    """Return a difference with its interval on a scale of -100 to +100 points.

    The line in the middle is no difference.
    """
    if pd.isna(row["difference"]):
        return macro(_DRAWINGS, "absent", "no case in common")
    low, gap, high = (row[c] for c in ("ci_low", "difference", "ci_high"))
    words = f"{points(gap)} points, {level:.0%} interval {points(low)} to {points(high)}"
    # From -1 … 1 to the width of the drawing, whose middle is no difference.
    places = [_at((1 + float(x)) / 2) for x in (low, gap, high)]
    drawing = dict(zip(("low", "middle", "high"), places, strict=True))
    return macro(_DRAWINGS, "difference", {"label": words, **drawing})


def ladders(report: Report) -> list[tuple[str, Markup]]:
    """Return (name, drawing) of each cell's ladder."""
    levels = dict(groups(report.ladder, report.by))
    return [
        (
            report.cell_name(cell),
            ladder_svg(levels[tuple(str(cell[c]) for c in report.by)].to_dict("records")),
        )
        for cell in report.frame.to_dict("records")
    ]


def ladder_svg(levels: Sequence[Row]) -> Markup:
    """Return the ladder of one cell on a scale of 0 to 100 %: a piece for each level's gain, and a
    tick for the naive parser. Harm is not a piece: the table with the drawing says it.
    """
    steps = {str(r["level"]): r for r in levels if not pd.isna(r["success"])}
    naive = steps.pop("naive", None)
    if not steps:
        return macro(_DRAWINGS, "absent", UNRECORDED)
    pieces: list[dict[str, str]] = []
    words: list[str] = []
    reached = 0.0
    # If the loosest policy is also the headline's, there are fewer levels than colours.
    for (colour, _), step in zip(STEPS.values(), steps.values(), strict=False):
        top = float(step["success"])
        words.append(f"{step['level']} {percent(top)}")
        # A piece only where something was gained: harm would be drawn to the left of nothing.
        if top > reached:
            pieces.append({"start": _at(reached), "width": _at(top - reached), "colour": colour})
            reached = top
    tick = ""
    if naive is not None:
        words.append(f"naive parser {percent(naive['success'])}")
        tick = _at(naive["success"])
    drawing = {"label": ", ".join(words), "pieces": pieces, "tick": tick}
    return macro(_DRAWINGS, "ladder", drawing)


def ladder_key(report: Report) -> Markup:
    """Return what the colours of the ladder mean."""
    steps = dict(STEPS)
    words = f"+ coercion by the policy {report.coerced_policy}"
    steps["coerced"] = (steps["coerced"][0], words)
    if report.coerced_policy == report.policy:
        del steps["coerced"]
    return macro(_DRAWINGS, "ladder_key", steps.values())


def label_of(outcome: str) -> str:
    # An outcome that is not in `OUTCOMES`, such as that of a missing record, is its own label.
    return OUTCOMES[outcome].label if outcome in OUTCOMES else outcome


def outcome_bars(report: Report) -> list[dict[str, Any]]:
    """Return a bar for each cell: its name, its trials, and the parts of its outcomes."""
    rows_of_cells: dict[tuple[Any, ...], dict[str, Row]] = {}
    for row in report.waterfall.to_dict("records"):
        keys = tuple(row[c] for c in report.by)
        rows_of_cells.setdefault(keys, {})[row["outcome"]] = row
    bars = []
    for cell in report.frame.to_dict("records"):
        rows = rows_of_cells[tuple(cell[c] for c in report.by)]
        parts = [_part(rows[outcome]) for outcome in FILLS if outcome in rows]
        total = sum(part["n"] for part in parts)
        bars.append({"name": report.cell_name(cell), "total": total, "parts": parts})
    return bars


def _part(row: Row) -> dict[str, Any]:
    outcome, n, share = row["outcome"], row["n"], float(row["share"])
    label = label_of(outcome)
    colour, text_colour, is_hatched = FILLS[outcome]
    # The browser does not say what fits, since a page has no script. A label needs about one
    # hundredth of the width for each of its letters.
    label_fits = share * 100 > len(label) + 4
    return {
        "label": label,
        "n": n,
        "width": f"{100 * share:.3f}",
        "fill": f"background:{f'{_HATCH},' if is_hatched else ''}{colour};color:{text_colour}",
        "title": f"{label}: {n} ({percent(share)})",
        "shows_label": label_fits,
        "shows_count": label_fits or share > 0.045,
    }


@dataclass(frozen=True, slots=True)
class Dot:
    """A cell in a drawing of costs: its number, name and figures in words, its place in percent of
    the width and the height, and whether no other cell is both better and cheaper.
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
    """Return success by the mean cost of an answer, and by its median seconds: each if two cells or
    more have the amount, and not all 0.
    """
    frame = report.frame[report.frame["success"].notna() & report.frame["n"].gt(0)]
    if not 2 <= len(frame) <= MOST_DOTS:
        return []
    amounts = (
        ("US dollars an answer", frame["cost"].astype(float) / frame["n"], "${:.4g}"),
        ("seconds to the end, median", frame["latency_p50"].astype(float), "{:.3g} s"),
    )
    drawings = []
    for title, amount, form in amounts:
        cells, costs = frame[amount.notna()].to_dict("records"), amount.dropna().tolist()
        greatest = max(costs, default=0.0)
        if len(cells) < 2 or greatest <= 0:
            continue
        rates = [float(cell["success"]) for cell in cells]
        front = leaders(rates, costs)
        dots = [
            Dot(
                n + 1,
                f"{report.cell_name(cell)}: {percent(rate)}, {form.format(cost)}",
                f"{2 + 94 * cost / greatest:.2f}%",
                f"{94 - 88 * rate:.2f}%",
                n in front,
            )
            for n, (cell, cost, rate) in enumerate(zip(cells, costs, rates, strict=True))
        ]
        words = f"success by {title}: " + "; ".join(dot.words for dot in dots)
        drawing = macro(_DRAWINGS, "scatter", words, dots)
        drawings.append(Tradeoff(title, form.format(greatest), drawing, dots))
    return drawings


def leaders(rates: Sequence[float], costs: Sequence[float]) -> set[int]:
    """Return the places of the pairs that no other beats: at least as good in both, and better in
    one.

    >>> sorted(leaders([0.9, 0.5, 0.4, 0.9], [3.0, 1.0, 2.0, 3.0]))
    [0, 1, 3]
    """
    front: set[int] = set()
    best, cheapest = -1.0, -1.0
    # From cheap to dear, the better first: a later pair leads only if it is better than all before
    # it, or equal to the last leader.
    for n in sorted(range(len(rates)), key=lambda i: (costs[i], -rates[i])):
        if rates[n] > best or (rates[n] == best and costs[n] == cheapest):
            front.add(n)
            best, cheapest = rates[n], costs[n]
    return front
