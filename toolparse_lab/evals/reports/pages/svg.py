"""The drawings of a report: intervals and the ladder of help, as inline SVG that prints and can be
read aloud.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ....views.templating import Markup, macro
from ..figures.cells import UNRECORDED
from .html_parts import TEMPLATES
from .numbers import percent, points, span

_DRAWINGS = f"{TEMPLATES}/drawings.html"

# Okabe and Ito's colours, from what the model wrote to what help added.
STEPS: Mapping[str, tuple[str, str]] = {
    "strict": ("#0072B2", "as written"),
    "repaired": ("#56B4E9", "+ repairs"),
    "safe": ("#009E73", "+ lossless coercion"),
    "coerced": ("#F0E442", "+ looser coercion"),
}


@dataclass(frozen=True, slots=True)
class _Interval:
    # Places are percentages of the width. `worst` and `best` are '' where nothing is missing.
    label: str
    low: str
    middle: str
    high: str
    worst: str = ""
    best: str = ""


@dataclass(frozen=True, slots=True)
class _Piece:
    start: str
    width: str
    colour: str


@dataclass(frozen=True, slots=True)
class _Ladder:
    # `tick` is the place of the naive parser, '' for none.
    label: str
    pieces: Sequence[_Piece]
    tick: str


def interval_svg(cell: Mapping[Any, Any], level: float) -> Markup:
    """Return a rate with its interval on a scale of 0 to 100 %.

    The dashed line goes from worst to best.
    """
    if pd.isna(cell["success"]):
        return macro(_DRAWINGS, "absent", cell["reason"] or UNRECORDED)
    low, rate, high = (float(cell[c]) for c in ("ci_low", "success", "ci_high"))
    words = f"{percent(rate)}, {level:.0%} interval {span(low, high)} %".replace("95%", "95 %")
    # Without missing trials worst and best are the rate itself, and there is no line to draw.
    worst = best = ""
    if cell["missing"] and not pd.isna(cell["worst"]):
        worst, best = _at(cell["worst"]), _at(cell["best"])
    drawing = _Interval(words, _at(low), _at(rate), _at(high), worst, best)
    return macro(_DRAWINGS, "interval", drawing)


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
    return macro(_DRAWINGS, "difference", _Interval(words, *places))


def ladder_svg(levels: Sequence[Mapping[Any, Any]]) -> Markup:
    """Return the ladder of one cell on a scale of 0 to 100 %: a piece for each level's gain, and a
    tick where the naive parser stands. Harm is no piece. The table beside the drawing says it.
    """
    steps = {str(r["level"]): r for r in levels if not pd.isna(r["success"])}
    naive = steps.pop("naive", None)
    if not steps:
        return macro(_DRAWINGS, "absent", UNRECORDED)
    pieces: list[_Piece] = []
    words: list[str] = []
    reached = 0.0
    # Where the loosest policy is also the headline's, there are fewer levels than colours.
    for (colour, _), step in zip(STEPS.values(), steps.values(), strict=False):
        top = float(step["success"])
        words.append(f"{step['level']} {percent(top)}")
        # A piece only where something was gained: harm would be drawn to the left of nothing.
        if top > reached:
            pieces.append(_Piece(_at(reached), _at(top - reached), colour))
            reached = top
    tick = ""
    if naive is not None:
        words.append(f"naive parser {percent(naive['success'])}")
        tick = _at(float(naive["success"]))
    return macro(_DRAWINGS, "ladder", _Ladder(", ".join(words), pieces, tick))


def ladder_key(coerced: str, policy: str) -> Markup:
    """Return the legend that the colours of the ladder mean.

    `coerced` is the policy that the last step stands for.
    """
    steps = dict(STEPS)
    steps["coerced"] = (steps["coerced"][0], f"+ coercion by the policy {coerced}")
    if coerced == policy:
        del steps["coerced"]
    return macro(_DRAWINGS, "ladder_key", steps.values())


def _at(share: float) -> str:
    return f"{100 * share:.2f}%"
