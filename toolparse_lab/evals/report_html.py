"""Reports as HTML without any outside reference: styles inline, intervals as SVG, readable without a script.

Text of models, cases and providers is escaped wherever it is put in.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import pandas as pd

from .cells import UNRECORDED
from .outcomes import OUTCOMES, SUB_CODES
from .report_text import headline, money, percent, span

if TYPE_CHECKING:
    from .report import Matrix, Report

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


def esc(x: Any) -> str:
    """Text for HTML; control characters that no document may hold are shown as their pictures."""
    text = "".join(chr(0x2400 + ord(c)) if c < " " and c not in "\n\t\r" else c for c in str(x))
    return html.escape(text.encode("utf-8", "backslashreplace").decode("utf-8"))


@lru_cache(maxsize=1)
def _css() -> str:
    return resources.files(__package__).joinpath("report.css").read_text(encoding="utf-8")


def render_page(report: Report) -> str:
    """A whole document, light or dark as the reader's system asks."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{esc(report.title)}</title>"
        "<style>html{background:#fff;color:#1a1d21}body{margin:0;padding:clamp(1rem,4vw,3rem)}"
        "body>.tpr{margin:0 auto}"
        "@media(prefers-color-scheme:dark){html{background:#14171a;color:#e6e8ea}.tpr{--ok:#56B4E9!important}}"
        "@media print{html{background:#fff;color:#000}body{padding:0}}</style></head>"
        f"<body>{render_fragment(report)}</body></html>\n"
    )


def render_fragment(report: Report) -> str:
    """The report for a notebook's output."""
    parts = [f"<h1>{esc(report.title)}</h1>", f'<p class="sub">{esc(headline(report))}</p>']
    parts += [f'<p class="stop">Stopped early: {esc(s)}</p>' for s in report.stops]
    if report.frame.empty:
        parts.append("<p>There are no trials in this report.</p>")
    else:
        parts += [
            _tiles(report), _success(report), _matrix_section(report), _bars(report), _failures(report),
            _codes(report), _coercions(report), _spent(report),
        ]  # fmt: skip
        notes = "".join(f"<li>{esc(n)}</li>" for n in report.notes)
        parts.append(f'<h2>How to read this</h2><ul class="notes">{notes}</ul>')
    return f'<div class="tpr"><style>{_css()}</style>{"".join(parts)}</div>'


def _tiles(report: Report) -> str:
    """The figures that sum a report up; a range where there are several cells, because a mean of arms means little."""
    frame = report.frame
    within = " in the lowest and the highest cell" if frame["n"].gt(0).sum() > 1 else ""
    tiles = [
        (_range(frame["success"]), f"success under {report.policy}{within}"),
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


def interval_svg(cell: Mapping[Any, Any], level: float) -> str:
    """A rate with its interval on a scale of 0 to 100 %; the dashed line goes from worst to best."""
    if pd.isna(cell["success"]):
        return f'<span class="none">{esc(cell["reason"] or UNRECORDED)}</span>'

    def at(x: float) -> str:
        return f"{100 * x:.2f}%"

    low, rate, high = (float(cell[c]) for c in ("ci_low", "success", "ci_high"))
    said = f"{percent(rate)}, {level:.0%} interval {span(low, high)} %".replace("95%", "95 %")
    grid = "".join(
        f'<line x1="{x}%" x2="{x}%" y1="3" y2="17" stroke="currentColor" stroke-opacity=".18"/>' for x in (0, 50, 100)
    )
    wide = ""
    if cell["missing"] and not pd.isna(cell["worst"]):
        wide = (
            f'<line x1="{at(cell["worst"])}" x2="{at(cell["best"])}" y1="10" y2="10" stroke="currentColor" '
            'stroke-opacity=".55" stroke-dasharray="2 3"/>'
        )
    ends = "".join(
        f'<line x1="{at(x)}" x2="{at(x)}" y1="6" y2="14" stroke="var(--ok)" stroke-width="2"/>' for x in (low, high)
    )
    return (
        f'<svg height="20" role="img" aria-label="{esc(said)}"><title>{esc(said)}</title>'
        '<line x1="0" x2="100%" y1="10" y2="10" stroke="currentColor" stroke-opacity=".18"/>'
        f"{grid}{wide}"
        f'<line x1="{at(low)}" x2="{at(high)}" y1="10" y2="10" stroke="var(--ok)" stroke-width="4"/>'
        f'{ends}<circle cx="{at(rate)}" cy="10" r="5" fill="var(--ok)"/></svg>'
    )


def _table(head: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> str:
    """A table from (name, class) columns and cells that are HTML already; on a phone each row is a card."""
    # Notebooks set tables to equal columns and right-aligned cells, which only inline styles outrank.
    side = {c: ' style="text-align:left"' if "l" in c.split() else "" for _, c in head}
    top = "".join(f'<th class="{c}" scope="col"{side[c]}>{esc(n)}</th>' for n, c in head)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td class="{c}" data-label="{esc(n)}"{side[c]}>{x}</td>' for (n, c), x in zip(head, row, strict=True)
        )
        + "</tr>"
        for row in rows
    )
    return (
        '<div class="wrap"><table class="cards" style="table-layout:auto">'
        f"<thead><tr>{top}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _keys(report: Report) -> list[tuple[str, str]]:
    return [(c.replace("_", " "), "l k") for c in report.by]


def _success(report: Report) -> str:
    frame = report.frame
    level = f"{report.level:.0%}".replace("%", " %")
    extra = [c for c in ("missing", "ungraded") if frame[c].any()]
    levels = ("strict", "repaired", "coerced", "naive", "fabricated", "repair_rate", "coercion_rate")
    against = report.baseline is not None
    head = [*_keys(report), ("success", "rate"), (f"0 – 100 %, {level} interval", "iv"), ("interval, %", "")]
    head += [(c, "") for c in ("n", "cases", *extra)]
    if against:
        head += [(f"against {report.baseline}", "full"), ("p (Holm)", "")]
    rows, helped = [], []
    for cell in frame.to_dict("records"):
        keys = [esc(cell[c] or "–") for c in report.by]
        row = [*keys, percent(cell["success"]), interval_svg(cell, report.level)]
        row += [span(cell["ci_low"], cell["ci_high"]) or "–", *(str(cell[c]) for c in ("n", "n_cases", *extra))]
        rows.append([*row, *_difference(report, cell)] if against else row)
        helped.append([*keys, *(percent(cell[c]) for c in ("success", *levels))])
    lead = "Bars are intervals clustered by case, dots the measured share."
    if "missing" in extra:
        lead += " Dashed lines reach from the worst to the best that the missing trials leave open."
    more = [*_keys(report), (report.policy, "rate"), *((c.replace("_", " "), "") for c in levels)]
    return (
        f'<h2>Success</h2><p class="sub">{lead}</p>{_table(head, rows)}'
        '<h2>The same answers with less and more help</h2><p class="sub">What the text gives as written, after '
        f"repairs, and after coercion; what a naive parser makes of it; and how often help was needed.</p>"
        f"{_table(more, helped)}"
    )


def _difference(report: Report, cell: Mapping[Any, Any]) -> tuple[str, str]:
    if pd.isna(cell["difference"]):
        is_base = cell[report.baseline_column] == report.baseline
        return ('<span class="none">baseline</span>' if is_base else "–"), "–"
    low, high = 100 * cell["diff_low"], 100 * cell["diff_high"]
    gap = f'{100 * cell["difference"]:+.0f} <span class="sub">[{low:+.0f}, {high:+.0f}]</span>'
    return gap.replace("-", "−"), f"{cell['p_holm']:.3f}"


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
        '<div style="overflow-x:auto;max-width:100%"><table style="border-collapse:collapse;width:auto;margin:.4em 0">'
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


def _ids(text: str) -> str:
    return " ".join(f'<span class="id">{esc(t)}</span>' for t in text.split(", ") if t)


def _failures(report: Report) -> str:
    if report.failures.empty:
        return "<h2>What went wrong</h2><p>Nothing.</p>"
    head = [
        ("outcome", "l k full"),
        ("trials", ""),
        ("share", ""),
        ("meaning and an example", "l w"),
        ("trial ids", "l w"),
    ]
    rows = []
    for f in report.failures.to_dict("records"):
        name = _label(f["outcome"]) + (f": {f['sub_code'].replace('_', ' ')}" if f["sub_code"] else "")
        meaning = SUB_CODES.get(f["sub_code"]) or OUTCOMES[f["outcome"]].sentence
        example = f["example"] if len(f["example"]) <= 240 else f["example"][:237] + "…"
        rows.append(
            [esc(name), str(f["n"]), percent(f["share"]), f'{esc(meaning)}<br><span class="sub">{esc(example)}</span>',
             _ids(f["trial_ids"])]
        )  # fmt: skip
    return f"<h2>What went wrong</h2>{_table(head, rows)}"


def _codes(report: Report) -> str:
    if report.codes.empty:
        return ""
    head = [
        ("code", "l k full"),
        ("trials", ""),
        ("share", ""),
        ("success", ""),
        ("meaning", "l w"),
        ("trial ids", "l w"),
    ]
    rows = [
        [f"<code>{esc(c['code'])}</code>", str(c["n"]), percent(c["share"]), percent(c["success"]), esc(c["meaning"]),
         _ids(c["trial_ids"])]
        for c in report.codes.to_dict("records")
    ]  # fmt: skip
    lead = "What the parser complained of, and how often the trial was a success all the same."
    return f'<h2>Problem codes</h2><p class="sub">{lead}</p>{_table(head, rows)}'


def _coercions(report: Report) -> str:
    if report.coercions.empty:
        return ""
    head = [("rule", "l k full"), ("applied", ""), ("trials", ""), ("rescued", ""), ("false rescues", ""),
            ("false-rescue rate", ""), ("harmed", ""), ("meaning", "l w")]  # fmt: skip
    rows = [
        [f"<code>{esc(c['rule'])}</code>", *(str(c[k]) for k in ("applied", "trials", "rescued", "false_rescues")),
         percent(c["false_rescue_rate"]), str(c["harmed"]),
         esc(c["meaning"]) + ("" if c["lossless"] else ' <span class="sub">Not lossless.</span>')]
        for c in report.coercions.to_dict("records")
    ]  # fmt: skip
    lead = (
        f"Under the policy {esc(report.coerced_policy)}. Rescued: wrong without coercion, right with it. False rescue: "
        "made valid, yet not what was wanted. Harmed: right without it."
    )
    return f'<h2>Coercions</h2><p class="sub">{lead}</p>{_table(head, rows)}'


def _spent(report: Report) -> str:
    frame = report.frame
    if frame[["latency_p50", "cost", "tokens_mean"]].isna().all(axis=None):
        return ""
    head = [*_keys(report), ("latency p50, s", ""), ("p95, s", ""),
            ("tokens a reply", ""), ("cost, USD", ""), ("cost a success, USD", "")]  # fmt: skip
    rows = []
    for cell in frame.to_dict("records"):
        known = [f"{cell[c]:.2f}" if not pd.isna(cell[c]) else "–" for c in ("latency_p50", "latency_p95")]
        known.append("–" if pd.isna(cell["tokens_mean"]) else f"{cell['tokens_mean']:.0f}")
        rows.append(
            [*(esc(cell[c] or "–") for c in report.by), *known, money(cell["cost"]), money(cell["cost_per_success"])]
        )
    return f"<h2>Time and money</h2>{_table(head, rows)}"
