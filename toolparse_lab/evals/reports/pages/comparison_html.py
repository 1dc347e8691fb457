"""Comparisons of two arms as HTML: the figures, and the flipped cases, each of which unfolds into
both parse views.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views import render_side_by_side
from ....views.templating import Markup, render
from ..figures.comparison import COMPARISON_COLUMNS
from .html_parts import TEMPLATES, Table, TrialView, fragment, page, read_row, trial_view, view_of
from .svg import difference_svg
from .text import comparison_legend, comparison_rows

if TYPE_CHECKING:
    from ....core.types import ParseResult
    from ...scoring.trial import Trial
    from ..figures.comparison import ArmComparison, Flip

MAX_FLIPS = 100
"""How many flips a page unfolds; a notebook's output unfolds a tenth of them."""


def render_comparison(comparison: ArmComparison) -> str:
    """Return a comparison for a notebook's output."""
    return fragment(_body(comparison, "h3", MAX_FLIPS // 10))


def render_comparison_page(comparison: ArmComparison) -> str:
    """Return a comparison as a whole document."""
    title = f"{comparison.b} against {comparison.a}"
    return page(title, fragment(_body(comparison, "h1", MAX_FLIPS)))


def render_flip(flip: Flip) -> str:
    """Return both sides of one flipped case."""
    body = render(
        f"{TEMPLATES}/flip.html",
        case_id=flip.case_id,
        direction=flip.direction,
        question=flip.a.case.input_text,
        sides=[_side("a", flip.a), _side("b", flip.b)],
        readings=_readings((flip.a.arm, flip.a.result), (flip.b.arm, flip.b.result)),
    )
    return fragment(body)


def _readings(*sides: tuple[str, ParseResult | None]) -> Markup:
    # '' where the sides are of two answers.
    (name_a, a), (name_b, b) = sides
    if a is None or b is None or a.raw != b.raw:
        return Markup()
    return Markup(render_side_by_side(a, b, (name_a, name_b)))


def _side(name: str, trial: Trial) -> dict[str, object]:
    return {
        "name": name,
        "arm": trial.arm,
        "score": trial.score or trial.missing_reason,
        "view": view_of(trial.result) if trial.result else Markup(),
    }


def _body(c: ArmComparison, heading: str, max_flips: int) -> str:
    n = len(c.flips)
    return render(
        f"{TEMPLATES}/comparison.html",
        heading=heading,
        title=f"{c.b} against {c.a}",
        on=c.on.replace("_", " "),
        policy=c.policy,
        better=c.b,
        figures=_figures(c),
        flip_count=f"{n} case{'' if n == 1 else 's'} flipped",
        # Two parse views for each: a page of all flips of a long run would not open.
        flips=[_flip_view(c, flip) for flip in c.flips.head(max_flips).to_dict("records")],
        more_flips=n - max_flips,
        unpaired=_unpaired(c),
        notes=[*c.notes, comparison_legend()],
    )


def _strata(c: ArmComparison) -> list[str]:
    return [str(name) for name in c.frame if name not in COMPARISON_COLUMNS]


def _figures(c: ArmComparison) -> Table:
    names, texts, n_strata = comparison_rows(c)
    head = [(name.replace("_", " "), "l k") for name in names[:n_strata]]
    head += [(name, "") for name in names[n_strata:]]
    difference = n_strata + 3  # behind the cases and both rates
    head[difference] = (names[difference], "rate")
    head.insert(difference + 1, ("−100 … +100 points", "iv"))
    rows = []
    for cells, figures in zip(texts, c.frame.to_dict("records"), strict=True):
        drawing = difference_svg(figures, c.level)
        rows.append([*cells[: difference + 1], drawing, *cells[difference + 1 :]])
    return Table(head, rows)


@dataclass(frozen=True, slots=True)
class _FlipView:
    summary: str
    sides: list[tuple[str, TrialView | None]]
    readings: Markup


def _flip_view(c: ArmComparison, flip: Mapping[Any, Any]) -> _FlipView:
    summary = f"{flip['case_id']} {flip['direction']}: {flip['outcome_a']} → {flip['outcome_b']}"
    stratum = [str(flip[name]) for name in _strata(c) if str(flip[name])]
    if stratum:
        summary += f" ({' · '.join(stratum)})"
    # A comparison that somebody put together has no rows behind its flips.
    rows_a, rows_b = c.flip_rows or (None, None)
    row_a, row_b = _row_of(rows_a, flip["trial_id_a"]), _row_of(rows_b, flip["trial_id_b"])
    sides = [(name, trial_view(row) if row else None) for name, row in ((c.a, row_a), (c.b, row_b))]
    readings = Markup()
    if row_a and row_b and row_a.get("raw") == row_b.get("raw"):
        readings = _readings((c.a, read_row(row_a)), (c.b, read_row(row_b)))
    return _FlipView(summary, sides, readings)


def _row_of(rows: pd.DataFrame | None, trial_id: Any) -> dict[Any, Any] | None:
    if rows is None or trial_id not in rows.index:
        return None
    return dict(rows.loc[trial_id].to_dict())


@dataclass(frozen=True, slots=True)
class _Unpaired:
    count: int
    table: Table
    more: int


def _unpaired(c: ArmComparison) -> _Unpaired | None:
    if c.unpaired.empty:
        return None
    head = [(str(name).replace("_", " "), "l") for name in c.unpaired]
    first = c.unpaired.head(MAX_FLIPS).itertuples(index=False, name=None)
    count = len(c.unpaired)
    return _Unpaired(count, Table(head, first), count - MAX_FLIPS)
