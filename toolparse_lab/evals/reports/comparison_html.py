"""Comparisons of two arms as HTML: the figures, and the flipped cases, each of which unfolds into both parse views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ...render import render_result
from .comparison import COMPARISON_COLUMNS
from .html_parts import Head, answer_view, esc, fragment, page, table, unfolding
from .svg import difference_svg
from .text import comparison_rows

if TYPE_CHECKING:
    from ..scoring.trial import Trial
    from .comparison import ArmComparison, Flip

MAX_FLIPS = 100
"""How many flips a page unfolds; a notebook's output unfolds a tenth of them."""


def render_comparison(comparison: ArmComparison) -> str:
    """A comparison for a notebook's output."""
    return fragment(_body(comparison, "h3", MAX_FLIPS // 10))


def render_comparison_page(comparison: ArmComparison) -> str:
    """A comparison as a whole document."""
    return page(f"{comparison.b} against {comparison.a}", fragment(_body(comparison, "h1", MAX_FLIPS)))


def render_flip(flip: Flip) -> str:
    """Both sides of one flipped case."""
    asked = f'<p class="sub">asked: {esc(flip.a.case.input_text)}</p>'
    sides = "".join(_side(name, trial) for name, trial in (("a", flip.a), ("b", flip.b)))
    return fragment(f'<p><b>{esc(flip.case_id)}</b> {esc(flip.direction)}</p>{asked}<div class="pair">{sides}</div>')


def _side(name: str, trial: Trial) -> str:
    said = trial.score or trial.missing_reason
    view = render_result(trial.result) if trial.result else ""
    return f'<div class="trial"><p><b>{name}: {esc(trial.arm)}</b> {esc(said)}</p>{view}</div>'


def _body(c: ArmComparison, heading: str, unfolded: int) -> str:
    strata = [str(x) for x in c.frame if x not in COMPARISON_COLUMNS]
    title = f"<{heading}>{esc(c.b)} against {esc(c.a)}</{heading}>"
    sub = (
        f'<p class="sub">by {esc(c.on.replace("_", " "))}, policy {esc(c.policy)}, paired on cases. Right of the '
        f"middle {esc(c.b)} is better.</p>"
    )
    names, told, _ = comparison_rows(c)
    head: Head = _kinds(names, len(strata))
    rows = [
        [*map(esc, row[: len(strata) + 4]), difference_svg(r, c.level), *map(esc, row[len(strata) + 4 :])]
        for row, r in zip(told, c.frame.to_dict("records"), strict=True)
    ]
    notes = "".join(f"<li>{esc(n)}</li>" for n in (*c.notes, _TESTS))
    return f'{title}{sub}{table(head, rows)}{_flips(c, strata, unfolded)}{_unpaired(c)}<ul class="notes">{notes}</ul>'


_TESTS = (
    "p rates: the sign-flip test on the cases' rates. p majority: McNemar's exact test on the majority of each case's "
    "trials. Both by Holm over the rows. Intervals resample cases with all their trials."
)


def _kinds(names: list[str], left: int) -> list[tuple[str, str]]:
    """The head of the table of figures, with a column for the drawing behind the difference."""
    kinds = [(n.replace("_", " "), "l k") for n in names[:left]] + [(n, "") for n in names[left:]]
    kinds[left + 3] = (names[left + 3], "rate")
    kinds.insert(left + 4, ("−100 … +100 points", "iv"))
    return kinds


def _flips(c: ArmComparison, strata: list[str], unfolded: int) -> str:
    n = len(c.flips)
    lead = f"<h4>{n} case{'' if n == 1 else 's'} flipped</h4>"
    items = []
    for flip in c.flips.head(unfolded).to_dict("records"):
        where = " · ".join(str(flip[s]) for s in strata if str(flip[s]))
        said = f"{flip['case_id']} {flip['direction']}: {flip['outcome_a']} → {flip['outcome_b']}"
        items.append(unfolding(f"{said} ({where})" if where else said, _views(c, flip)))
    more = f'<p class="sub">… and {n - unfolded} more, in .flips.</p>' if n > unfolded else ""
    return lead + "".join(items) + more


def _unpaired(c: ArmComparison) -> str:
    if c.unpaired.empty:
        return ""
    names = [str(x) for x in c.unpaired]
    head: Head = tuple((n.replace("_", " "), "l") for n in names)
    rows = [[esc(x) for x in row] for row in c.unpaired.head(MAX_FLIPS).itertuples(index=False, name=None)]
    more = len(c.unpaired) - MAX_FLIPS
    rest = f'<p class="sub">… and {more} more, in .unpaired.</p>' if more > 0 else ""
    return unfolding(f"{len(c.unpaired)} cases that only one side has", table(head, rows) + rest)


def _views(c: ArmComparison, flip: Mapping[Any, Any]) -> str:
    sides = []
    for i, (side, name) in enumerate((("a", c.a), ("b", c.b))):
        rows = c.shown[i] if c.shown else None
        key = flip[f"trial_id_{side}"]
        view = answer_view(rows.loc[key].to_dict()) if rows is not None and key in rows.index else ""
        sides.append(f'<div class="side"><p class="sub">{esc(name)}</p>{view}</div>')
    return f'<div class="pair">{"".join(sides)}</div>'
