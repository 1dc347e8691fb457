"""Reports as GitHub-flavoured Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....views.show import visible
from .numbers import percent
from .tables import Section, ladder_section, sections_of
from .text import cell_rows, comparison_legend, comparison_rows, headline, outcome_name

if TYPE_CHECKING:
    from ..figures.comparison import ArmComparison
    from ..figures.gates import GateResult
    from ..figures.report import Report


def render_markdown(report: Report, gate: GateResult | None = None) -> str:
    """Return the whole report. A gate's verdict stands at its top."""
    out = [f"# {md(report.title)}", "", md(headline(report)), ""]
    if gate is not None:
        out += [f"## Gate {'passed' if gate.ok else 'failed'}", ""]
        out += [f"- {md(check.sentence)}" for check in gate.failures or gate.checks]
        out.append("")
    if report.frame.empty:
        return "\n".join([*out, "There are no trials in this report.", ""])
    # An empty line of the quotation keeps two warnings from running into one.
    out += [f"> {md(warning)}\n>" for warning in report.warnings]
    head, rows, n_left = cell_rows(report, bars=False, rates=())
    out += ["", "## Success", "", *_table(head, rows, n_left), ""]
    out += section_lines(ladder_section(report), len(report.by))
    out += ["## What happened", "", *_outcomes(report), ""]
    if len(report.failures):
        out += ["## What went wrong", "", *_failures(report.failures), ""]
    for section in sections_of(report):
        out += section_lines(section)
    out += ["## Method", "", *(f"- {md(note)}" for note in report.notes), ""]
    return "\n".join(out)


def render_comparison_markdown(c: ArmComparison) -> str:
    """Return a comparison with its flipped cases, for a pull request's comment."""
    head, rows, n_left = comparison_rows(c)
    out = [
        f"# {md(c.b)} against {md(c.a)}",
        "",
        f"By {md(c.on)}, policy {md(c.policy)}, paired on cases.",
        "",
        *_table(head, rows, n_left),
        "",
        f"## Flipped cases: {len(c.flips)}",
        "",
    ]
    if len(c.flips):
        out += [*_flips(c.flips), ""]
    notes = [*c.notes, comparison_legend()]
    return "\n".join([*out, *(f"- {md(note)}" for note in notes), ""])


def _failures(failures: pd.DataFrame) -> list[str]:
    rows = [
        [
            outcome_name(failure["outcome"], failure["sub_code"]),
            str(failure["n"]),
            percent(failure["share"]),
            failure["example"],
            failure["trial_ids"],
        ]
        for failure in failures.to_dict("records")
    ]
    return _table(["outcome", "n", "share", "for example", "trials"], rows, 1)


def _flips(flips: pd.DataFrame) -> list[str]:
    # Anything not known is left blank.
    # Every flip is from one majority to the other, so that the rates say little more.
    texts = flips.drop(columns=["success_a", "success_b"]).astype(object)
    rows = texts.where(texts.notna(), "").to_numpy().tolist()
    head = [str(name).replace("_", " ") for name in texts]
    return _table(head, rows, len(head))


def _outcomes(report: Report) -> list[str]:
    by = list(report.by)
    order = list(dict.fromkeys(report.waterfall["outcome"]))
    # An outcome that a cell does not have has no row in the waterfall.
    counts: dict[tuple[Any, ...], dict[str, int]] = {}
    for row in report.waterfall.to_dict("records"):
        counts.setdefault(tuple(row[c] for c in by), {})[row["outcome"]] = row["n"]
    rows = []
    for cell in report.frame.to_dict("records"):
        keys = tuple(cell[c] for c in by)
        rows.append([*keys, *(str(counts[keys].get(outcome, 0)) for outcome in order)])
    return _table([*by, *order], rows, len(by))


def section_lines(section: Section, n_left: int | None = None) -> list[str]:
    """Return the lines of a section.

    Its first `n_left` columns are left-aligned. Without a number, those that name a row.
    """
    names_row = ["k" in classes.split() for _, classes in section.head]
    if not n_left:
        n_left = names_row.index(False) if False in names_row else 1

    head = [name for name, _ in section.head]
    rows: Sequence[Sequence[Any]] = section.rows
    if section.examples:
        head.append("for example")
        rows = [(*row, name) for row, name in zip(rows, section.examples, strict=True)]

    table = _table(head, rows, n_left)
    return [f"## {md(section.title)}", "", md(section.lead), "", *table, ""]


def _table(head: Sequence[Any], rows: Sequence[Sequence[Any]], n_left: int) -> list[str]:
    n_right = len(head) - n_left
    marks = ["---"] * n_left + ["---:"] * n_right
    return [
        _row(map(md, head)),
        _row(marks),
        *(_row(map(md, row)) for row in rows),
    ]


def _row(cells: Iterable[str]) -> str:
    # The cells are Markdown.
    return f"| {' | '.join(cells)} |"


# What starts markup within a line, or ends a cell of a table.
_MARKDOWN = str.maketrans(
    {**{c: "\\" + c for c in "\\`*_[]|#"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def md(x: Any) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no hidden character, on one
    line.
    """
    return visible(" ".join(str(x).split())).translate(_MARKDOWN)
