"""The drawings of a report: intervals and the ladder of help, as inline SVG that prints and can be read aloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from .cells import UNRECORDED
from .html_parts import esc
from .text import percent, points, span

# Okabe and Ito's colours, from what the model wrote to what help added.
STEPS: Mapping[str, tuple[str, str]] = {
    "strict": ("#0072B2", "as written"),
    "repaired": ("#56B4E9", "+ repairs"),
    "safe": ("#009E73", "+ lossless coercion"),
    "coerced": ("#F0E442", "+ looser coercion"),
}


def interval_svg(cell: Mapping[Any, Any], level: float) -> str:
    """A rate with its interval on a scale of 0 to 100 %; the dashed line goes from worst to best."""
    if pd.isna(cell["success"]):
        return f'<span class="none">{esc(cell["reason"] or UNRECORDED)}</span>'

    low, rate, high = (float(cell[c]) for c in ("ci_low", "success", "ci_high"))
    said = f"{percent(rate)}, {level:.0%} interval {span(low, high)} %".replace("95%", "95 %")
    grid = "".join(_line(x / 100, x / 100, 3, 17, 0.18) for x in (0, 50, 100))
    wide = ""
    if cell["missing"] and not pd.isna(cell["worst"]):
        wide = (
            f'<line x1="{_at(cell["worst"])}" x2="{_at(cell["best"])}" y1="10" y2="10" stroke="currentColor" '
            'stroke-opacity=".55" stroke-dasharray="2 3"/>'
        )
    ends = "".join(
        f'<line x1="{_at(x)}" x2="{_at(x)}" y1="6" y2="14" stroke="var(--ok)" stroke-width="2"/>' for x in (low, high)
    )
    return (
        f'<svg height="20" role="img" aria-label="{esc(said)}"><title>{esc(said)}</title>'
        f"{_line(0, 1, 10, 10, 0.18)}{grid}{wide}"
        f'<line x1="{_at(low)}" x2="{_at(high)}" y1="10" y2="10" stroke="var(--ok)" stroke-width="4"/>'
        f'{ends}<circle cx="{_at(rate)}" cy="10" r="5" fill="var(--ok)"/></svg>'
    )


def difference_svg(row: Mapping[Any, Any], level: float) -> str:
    """A difference with its interval on a scale of -100 to +100 points; the line in the middle is no difference."""
    if pd.isna(row["difference"]):
        return '<span class="none">no case in common</span>'
    low, gap, high = ((1 + float(row[c])) / 2 for c in ("ci_low", "difference", "ci_high"))
    said = (
        f"{points(row['difference'])} points, {level:.0%} interval {points(row['ci_low'])} to {points(row['ci_high'])}"
    )
    ends = "".join(
        f'<line x1="{_at(x)}" x2="{_at(x)}" y1="6" y2="14" stroke="var(--ok)" stroke-width="2"/>' for x in (low, high)
    )
    return (
        f'<svg height="20" role="img" aria-label="{esc(said)}"><title>{esc(said)}</title>'
        f"{_line(0, 1, 10, 10, 0.18)}{_line(0.5, 0.5, 1, 19, 0.6)}"
        f'<line x1="{_at(low)}" x2="{_at(high)}" y1="10" y2="10" stroke="var(--ok)" stroke-width="4"/>'
        f'{ends}<circle cx="{_at(gap)}" cy="10" r="5" fill="var(--ok)"/></svg>'
    )


def ladder_svg(levels: Sequence[Mapping[Any, Any]]) -> str:
    """The ladder of one cell on a scale of 0 to 100 %: a piece for each level's gain, and a tick where the naive
    parser stands. Harm is no piece; the table beside the drawing says it."""
    known = {str(r["level"]): r for r in levels if not pd.isna(r["success"])}
    naive = known.pop("naive", None)
    if not known:
        return f'<span class="none">{UNRECORDED}</span>'
    pieces, said, reached = [], [], 0.0
    for name, step in zip(STEPS, known.values(), strict=False):
        top = float(step["success"])
        said.append(f"{step['level']} {percent(top)}")
        if top > reached:
            pieces.append(
                f'<rect x="{_at(reached)}" width="{_at(top - reached)}" y="3" height="14" fill="{STEPS[name][0]}"/>'
            )
            reached = top
    tick = ""
    if naive is not None:
        said.append(f"naive parser {percent(naive['success'])}")
        at = _at(float(naive["success"]))
        tick = (
            f'<line x1="{at}" x2="{at}" y1="0" y2="20" stroke="var(--page)" stroke-width="5"/>'
            f'<line x1="{at}" x2="{at}" y1="0" y2="20" stroke="currentColor" stroke-width="2"/>'
        )
    text = ", ".join(said)
    frame = '<rect x="0" y="3" width="100%" height="14" fill="currentColor" fill-opacity=".07"/>'
    return (
        f'<svg height="20" role="img" aria-label="{esc(text)}"><title>{esc(text)}</title>'
        f"{frame}{''.join(pieces)}{tick}</svg>"
    )


def ladder_key(coerced: str, policy: str) -> str:
    """What the colours of the ladder mean; `coerced` is the policy that the last step stands for."""
    names = {**{n: text for n, (_, text) in STEPS.items()}, "coerced": f"+ coercion by the policy {coerced}"}
    if coerced == policy:
        del names["coerced"]
    items = [f'<li><i style="background:{STEPS[n][0]}"></i>{esc(text)}</li>' for n, text in names.items()]
    items.append('<li><i style="background:currentColor;width:.2em"></i>a naive parser</li>')
    return f'<ul class="key">{"".join(items)}</ul>'


def _line(x1: float, x2: float, y1: float, y2: float, opacity: float) -> str:
    return (
        f'<line x1="{100 * x1:.6g}%" x2="{100 * x2:.6g}%" y1="{y1}" y2="{y2}" stroke="currentColor" '
        f'stroke-opacity="{opacity}"/>'
    )


def _at(x: float) -> str:
    return f"{100 * x:.2f}%"
