"""Reports as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from .tables import Section, ladder_section, sections_of
from .text import cell_rows, comparison_rows, headline, outcome_name, percent

if TYPE_CHECKING:
    from .comparison import ArmComparison
    from .gates import GateResult
    from .report import Report


def render_markdown(report: Report, gate: GateResult | None = None) -> str:
    """The whole report; a gate's verdict stands at its top."""
    out = [f"# {_md(report.title)}", "", _md(headline(report)), ""]
    if gate is not None:
        out += [
            f"## Gate {'passed' if gate.ok else 'failed'}",
            "",
            *(f"- {_md(c.sentence)}" for c in gate.failures or gate.checks),
            "",
        ]
    if report.frame.empty:
        return "\n".join([*out, "There are no trials in this report.", ""])
    out += [*(f"> {_md(w)}\n>" for w in report.warnings), ""]
    head, rows, left = cell_rows(report, bars=False, rates=())
    out += ["## Success", "", *_table(head, rows, left), "", *_section(ladder_section(report), len(report.by))]
    out += ["## What happened", "", *_outcomes(report), ""]
    if len(report.failures):
        rows = [
            [outcome_name(f["outcome"], f["sub_code"]), str(f["n"]), percent(f["share"]), f["example"], f["trial_ids"]]
            for f in report.failures.to_dict("records")
        ]
        out += ["## What went wrong", "", *_table(["outcome", "n", "share", "for example", "trials"], rows, 1), ""]
    for section in sections_of(report):
        out += _section(section)
    out += ["## Method", "", *(f"- {_md(n)}" for n in report.notes), ""]
    return "\n".join(out)


def render_comparison_markdown(c: ArmComparison) -> str:
    """A comparison with its flipped cases, for a pull request's comment."""
    head, rows, left = comparison_rows(c)
    out = [f"# {_md(c.b)} against {_md(c.a)}", "", f"By {_md(c.on)}, policy {_md(c.policy)}, paired on cases.", ""]
    out += [*_table(head, rows, left), "", f"## Flipped cases: {len(c.flips)}", ""]
    names = [str(x) for x in c.flips if x not in ("success_a", "success_b")]
    told = [["" if pd.isna(x) else x for x in row] for row in c.flips[names].to_numpy().tolist()]
    out += [*_table([n.replace("_", " ") for n in names], told, len(names)), ""] if told else []
    return "\n".join([*out, *(f"- {_md(n)}" for n in c.notes), ""])


def _outcomes(report: Report) -> list[str]:
    wide = report.waterfall.pivot(index=list(report.by), columns="outcome", values="n").fillna(0).astype(int)
    order = list(dict.fromkeys(report.waterfall["outcome"]))
    wide = wide.reindex(columns=[o for o in order if o in wide])
    names = [tuple(r[c] for c in report.by) for r in report.frame.to_dict("records")]
    counts = {i if isinstance(i, tuple) else (i,): r for i, r in zip(wide.index, wide.to_numpy().tolist(), strict=True)}
    return _table([*report.by, *wide.columns], [[*n, *map(str, counts[n])] for n in names], len(report.by))


def _section(section: Section, left: int | None = None) -> list[str]:
    starts = left or next((i for i, (_, c) in enumerate(section.head) if "k" not in c.split()), 1)
    head, rows = [name for name, _ in section.head], section.rows
    if section.examples:
        head, rows = [*head, "for example"], tuple((*r, e) for r, e in zip(rows, section.examples, strict=True))
    table = _table(head, rows, starts)
    return [f"## {_md(section.title)}", "", _md(section.lead), "", *table, ""]


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]], left: int) -> list[str]:
    marks = ["---" if i < left else "---:" for i in range(len(head))]
    cells = [[_md(x) for x in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in ([_md(x) for x in head], marks, *cells)]


_MARKDOWN = str.maketrans({**{c: "\\" + c for c in "\\`*_[]|#"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"})


def _md(x: Any) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, on one line."""
    return " ".join(str(x).split()).translate(_MARKDOWN)
