"""Reports as HTML without any outside reference: styles inline, intervals as SVG, readable without a script.

Text of models, cases and providers is escaped wherever it is put in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ..scoring.outcomes import OUTCOMES, SUB_CODES
from .cells import UNRECORDED, groups
from .html_parts import esc, fragment, gate_section, page, table, unfolded_rows
from .svg import interval_svg, ladder_key, ladder_svg
from .tables import Section, key_head, ladder_section, sections_of
from .text import headline, percent, points, span

if TYPE_CHECKING:
    from .gates import GateResult
    from .matrix import Matrix
    from .report import Report

EXAMPLES = 3
"""How many examples of each failure a page opens."""

_HATCH = "repeating-linear-gradient(135deg,transparent 0 4px,rgba(255,255,255,.45) 4px 7px)"
# Okabe and Ito's colours; a second outcome of one colour is hatched, and every part is named in text as well.
_FILLS: dict[str, tuple[str, str, bool]] = {
    "correct": ("#009E73", "#000", False),
    "abstained_correctly": ("#009E73", "#000", True),
    "wrong_call": ("#D55E00", "#000", False),
    "abstained_wrongly": ("#E69F00", "#000", False),
    "self_answered": ("#F0E442", "#000", False),
    "attempted_unparseable": ("#CC79A7", "#000", False),
    "fabricated": ("#000000", "#fff", False),
    "truncated": ("#56B4E9", "#000", False),
    "reasoning_only": ("#56B4E9", "#000", True),
    "empty": ("#0072B2", "#fff", False),
    "refused": ("#0072B2", "#fff", True),
    "context_overflow": ("#999999", "#000", False),
    "provider_error": ("#999999", "#000", True),
    "ungraded": ("#dddddd", "#000", False),
    UNRECORDED: ("#dddddd", "#000", True),
}
_DRAWN = tuple(_FILLS)
"""Order of the parts of a bar: successes first, then the model's, the parser's and the provider's share."""


def render_page(report: Report, gate: GateResult | None = None) -> str:
    """A whole document, light or dark as the reader's system asks."""
    return page(report.title, fragment(_body(report, gate, EXAMPLES)))


def render_fragment(report: Report, gate: GateResult | None = None) -> str:
    """The report for a notebook's output; of every failure it opens one example, where a page opens three, and more."""
    return fragment(_body(report, gate, 1))


def _body(report: Report, gate: GateResult | None, examples: int) -> str:
    parts = [f"<h1>{esc(report.title)}</h1>", f'<p class="sub">{esc(headline(report))}</p>']
    parts += [f'<p class="stop">{esc(w)}</p>' for w in report.warnings]
    if gate is not None:
        parts.append(gate_section(gate))
    if report.frame.empty:
        parts.append("<p>There are no trials in this report.</p>")
    else:
        parts += [_tiles(report), _success(report), _ladder(report), _matrix_section(report), _bars(report)]
        trials = _by_id(report)
        parts.append(_failures(report, trials, examples))
        parts += [_section(s, trials if examples > 1 else trials.head(0)) for s in sections_of(report)]
        notes = "".join(f"<li>{esc(n)}</li>" for n in report.notes if n not in report.warnings)
        parts.append(f'<h2>How to read this</h2><ul class="notes">{notes}</ul>')
    return "".join(parts)


def _section(section: Section, trials: pd.DataFrame) -> str:
    under = [unfolded_rows([trials.loc[i].to_dict()]) if i in trials.index else "" for i in section.examples]
    return f'<h2>{esc(section.title)}</h2><p class="sub">{esc(section.lead)}</p>{_plain_table(section, under)}'


def _plain_table(section: Section, under: Sequence[str] = ()) -> str:
    coded = ["c" in kind.split() for _, kind in section.head]
    rows = [
        [f"<code>{esc(x)}</code>" if code else esc(x) for x, code in zip(row, coded, strict=True)]
        for row in section.rows
    ]
    return table(section.head, rows, under)


def _by_id(report: Report) -> pd.DataFrame:
    """Every trial that an example may name: those of the headline before those of the looser policy."""
    named = [t["trial_ids"] for t in (report.failures, report.codes, report.coercions)]
    ids = {i for column in named for text in column for i in text.split(", ")}
    held = report.trials[report.trials["trial_id"].isin(ids)]
    held = pd.concat([held[held["policy"] == p] for p in dict.fromkeys((report.policy, report.coerced_policy))])
    return held.drop_duplicates("trial_id").set_index("trial_id", drop=False)


def _tiles(report: Report) -> str:
    """The figures that sum a report up; a range where there are several cells, because a mean of arms means little."""
    frame = report.frame
    within = " in the lowest and the highest cell" if frame["n"].gt(0).sum() > 1 else ""
    policy = "each policy" if "policy" in report.by else report.policy
    tiles = [
        (_range(frame["success"]), f"success under {policy}{within}"),
        (_range(frame["strict"]), "as written, without any help"),
        (_range(frame["naive"]), "with a naive parser"),
        (_range(frame["fabricated"]), "fabricated by reading"),
        (f"{frame['n'].sum():,}", f"trials judged in {len(frame)} cell{'s' if len(frame) != 1 else ''}"),
    ]
    return '<ul class="tiles">' + "".join(f"<li><b>{esc(a)}</b><span>{esc(b)}</span></li>" for a, b in tiles) + "</ul>"


def _range(rates: pd.Series[Any]) -> str:
    known = rates.dropna()
    if known.empty:
        return "–"
    low, high = percent(known.min()), percent(known.max())
    return low if low == high else f"{low.removesuffix(' %')} – {high}"


def _success(report: Report) -> str:
    frame = report.frame
    level = f"{report.level:.0%}".replace("%", " %")
    extra = [c for c in ("missing", "ungraded") if frame[c].any()]
    against = report.baseline is not None
    head = [*key_head(report), ("success", "rate"), (f"0 – 100 %, {level} interval", "iv"), ("interval, %", "")]
    head += [(c, "") for c in ("n", "cases", *extra)]
    if against:
        head += [(f"against {report.baseline}", "full"), ("p (Holm)", "")]
    rows = []
    for cell in frame.to_dict("records"):
        row = [*(esc(cell[c] or "–") for c in report.by), percent(cell["success"]), interval_svg(cell, report.level)]
        row += [span(cell["ci_low"], cell["ci_high"]) or "–", *(str(cell[c]) for c in ("n", "n_cases", *extra))]
        rows.append([*row, *_difference(report, cell)] if against else row)
    lead = "Bars are intervals clustered by case, dots the measured share."
    if "missing" in extra:
        lead += " Dashed lines reach from the worst to the best that the missing trials leave open."
    return f'<h2>Success</h2><p class="sub">{lead}</p>{table(head, rows)}'


def _ladder(report: Report) -> str:
    section = ladder_section(report)
    levels = dict(groups(report.ladder, report.by))
    drawn = []
    for cell in report.frame.to_dict("records"):
        mine = levels[tuple(str(cell[c]) for c in report.by)].to_dict("records")
        drawn.append(f'<div class="bar"><div>{esc(report.cell_name(cell))}</div>{ladder_svg(mine)}</div>')
    key = ladder_key(report.coerced_policy, report.policy)
    return (
        f'<h2>{section.title}</h2><p class="sub">{esc(section.lead)}</p>{key}<div class="bars">{"".join(drawn)}</div>'
        f"{_plain_table(section)}"
    )


def _difference(report: Report, cell: Mapping[Any, Any]) -> tuple[str, str]:
    if pd.isna(cell["difference"]):
        is_base = cell[report.baseline_column] == report.baseline
        return ('<span class="none">baseline</span>' if is_base else "–"), "–"
    low, high = points(cell["diff_low"]), points(cell["diff_high"])
    gap = f'{points(cell["difference"])} <span class="sub">[{low}, {high}]</span>'
    return gap, f"{cell['p_holm']:.3f}"


def _matrix_section(report: Report) -> str:
    rows = "arm" if "arm" in report.by else "prompt_protocol"
    if not {"model", rows} <= set(report.by):
        return ""
    title = "Arm × model" if rows == "arm" else "Protocol × model"
    return f'<h2>{title}</h2><p class="sub">Success with its interval.</p>{render_matrix(report.matrix(rows))}'


def render_matrix(m: Matrix) -> str:
    """The matrix with inline styles only, so that it stands alone anywhere."""
    line = "1px solid rgba(128,128,128,.3)"
    base = f"padding:.5em .75em;border:{line};text-align:center;font-variant-numeric:tabular-nums;white-space:nowrap"
    found = {(c[m.rows], c[m.columns]): c for c in m.frame.to_dict("records")}
    names, columns = (list(dict.fromkeys(m.frame[c])) for c in (m.rows, m.columns))
    head = "".join(f'<th scope="col" style="{base};font-weight:600">{esc(c)}</th>' for c in columns)
    body = ""
    for name in names:
        cells = "".join(_matrix_cell(found.get((name, c)), base) for c in columns)
        body += f'<tr><th scope="row" style="{base};text-align:left;font-weight:600">{esc(name)}</th>{cells}</tr>'
    return (
        '<div style="overflow-x:auto;max-width:100%" tabindex="0" role="region" aria-label="matrix">'
        '<table style="border-collapse:collapse;width:auto;margin:.4em 0">'
        f'<thead><tr><th style="{base};text-align:left;font-weight:400;opacity:.7">{esc(m.rows.replace("_", " "))}</th>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _matrix_cell(cell: Mapping[Any, Any] | None, base: str) -> str:
    small = "display:block;font-size:.8em;font-weight:400;opacity:.75"
    if cell is None or pd.isna(cell["success"]):
        why = (cell["reason"] if cell else "") or UNRECORDED
        return f'<td style="{base};opacity:.75"><i>–</i><span style="{small}">{esc(why)}</span></td>'
    # The blue stays under half strength, so that the page's own text colour is readable on it in light and dark.
    tint = f"background:rgba(0,114,178,{0.04 + 0.4 * float(cell['success']):.3f});print-color-adjust:exact"
    missing = f" · {cell['missing']} missing" if cell["missing"] else ""
    return (
        f'<td style="{base};{tint}"><b style="font-weight:650">{percent(cell["success"])}</b>'
        f'<span style="{small}">{span(cell["ci_low"], cell["ci_high"])} %</span>'
        f'<span style="{small}">n {cell["n"]} · {cell["n_cases"]} cases{missing}</span></td>'
    )


def _label(outcome: str) -> str:
    return OUTCOMES[outcome].label if outcome in OUTCOMES else outcome


def _fill(outcome: str) -> str:
    colour, text, hatched = _FILLS[outcome]
    return f"background:{f'{_HATCH},' if hatched else ''}{colour};color:{text}"


def _bars(report: Report) -> str:
    keys = {c: report.waterfall[c] for c in report.by}
    parts = []
    for cell in report.frame.to_dict("records"):
        mine = report.waterfall
        for c in report.by:
            mine = mine[keys[c].loc[mine.index] == cell[c]]
        counts = {r["outcome"]: r for r in mine.to_dict("records")}
        drawn = [counts[o] for o in _DRAWN if o in counts]
        total = sum(r["n"] for r in drawn)
        segments = "".join(_segment(r) for r in drawn)
        key = "".join(
            f'<li><i style="{_fill(r["outcome"])}"></i>{esc(_label(r["outcome"]))} {r["n"]}</li>' for r in drawn
        )
        parts.append(
            f'<div class="bar"><div>{esc(report.cell_name(cell))}<span>{total} trials</span></div>'
            f'<div class="stack">{segments}</div><ul class="key">{key}</ul></div>'
        )
    return (
        '<h2>What happened</h2><p class="sub">Every trial has one outcome. A parser that failed is never counted as a '
        f'model that stayed silent.</p><div class="bars">{"".join(parts)}</div>'
    )


def _segment(r: Mapping[Any, Any]) -> str:
    label, share = _label(r["outcome"]), float(r["share"])
    # A label needs about one hundredth of the width for each of its letters.
    shown = f"<em>{esc(label)} </em>{r['n']}" if share * 100 > len(label) + 4 else str(r["n"]) if share > 0.045 else ""
    shown = shown.replace("<em>", '<em style="font-style:normal">')
    return (
        f'<div class="seg" style="width:{100 * share:.3f}%;{_fill(r["outcome"])}" '
        f'title="{esc(label)}: {r["n"]} ({percent(share)})">{shown}</div>'
    )


def _failures(report: Report, trials: pd.DataFrame, examples: int) -> str:
    if report.failures.empty:
        return "<h2>What went wrong</h2><p>Nothing.</p>"
    head = (("outcome", "l k full"), ("trials", ""), ("share", ""), ("meaning and an example", "l w"))
    rows, under = [], []
    for f in report.failures.to_dict("records"):
        name = _label(f["outcome"]) + (f": {f['sub_code'].replace('_', ' ')}" if f["sub_code"] else "")
        meaning = SUB_CODES.get(f["sub_code"]) or OUTCOMES[f["outcome"]].sentence
        example = f["example"] if len(f["example"]) <= 240 else f["example"][:237] + "…"
        rows.append(
            [esc(name), str(f["n"]), percent(f["share"]), f'{esc(meaning)}<br><span class="sub">{esc(example)}</span>']
        )
        ids = f["trial_ids"].split(", ")[:examples]
        under.append(unfolded_rows(trials.loc[ids].to_dict("records")))
    lead = "Each example unfolds into what the model wrote and how it was read."
    return f'<h2>What went wrong</h2><p class="sub">{lead}</p>{table(head, rows, under)}'
