"""Reports as plain text: for a terminal, and as GitHub-flavoured Markdown."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ....core.values.printable import counted
from ....core.values.wording import NOTHING, plain_points, share, span
from ....views import show
from ....views.show import text_width, visible
from ..figures.conclusion import conclusion_of, conclusion_of_comparison, kinds_of_column
from ..figures.gates import MARGIN
from ..figures.ladder import left_out_layers
from ..figures.report import Report, levels_legend
from .columns import Column, Listing, Section, n_left_of
from .tables import (
    RUNGS,
    codes,
    comparison,
    contrast,
    failures,
    flipped_cases,
    listings_of,
    strata_of,
    success,
)

if TYPE_CHECKING:
    from ..figures.cells import Matrix
    from ..figures.comparison import ArmComparison
    from ..figures.gates import GateResult

_PROSE = 120  # columns of the sentences, which no one reads across a wide screen
_MOST_ROWS = 8  # of a table in a terminal
_MOST_FLIPS = 20  # cases that are named
_SHORTEST_NAME = 8  # letters that remain of a name, however narrow the terminal
_NOTHING = "There are no trials in this report."


def headline(report: Report) -> str:
    """Return what a report is made from: how many answers and cases were judged, and how many not,
    of how many models and formats.
    """
    cells = report.frame
    if not report.has_targets:
        rows, others = report.headline, ["missing"]
        n = int(report.ungraded["n"].sum())
        words = f"{counted(n, 'answer')} without a target"
    else:
        rows = report.headline[report.headline["score_success"].notna()]
        others = ["missing", "ungraded"]
        words = f"{counted(int(cells['n'].sum()), 'answer')} judged"
    parts = [words, counted(rows["case_id"].nunique(), "case")]
    sizes = [(cells[name].nunique(), kinds_of_column(name)) for name in report.by if len(cells)]
    if several := [f"{size:,} {kind}" for size, kind in sizes if size > 1]:
        parts.append(" × ".join(several))
    parts.append(report.policy_said)
    return " · ".join(
        [*parts, *(f"{n:,} {name}" for name in others if (n := int(cells[name].sum())))]
    )


def said_before(report: Report) -> set[str]:
    """Return the sections that a text leaves out, because its first tables say the same.

    The first has the levels of help, and the verdicts if there are no targets; the causes the rest.
    """
    said = {"Problem codes", "Less and more help", "What happened"}
    return said if report.has_targets else said | {"Verdicts"}


def render_text(report: Report, width: int | None = None) -> str:
    """Return the report for a terminal of `width` columns, its own when None.

    A part that does not fit drops out of the table.
    """
    # The fallback is what a log of a continuous integration gets.
    width = width or shutil.get_terminal_size((120, 24)).columns
    prose = min(width, _PROSE)
    lines = [report.title, headline(report), ""]
    if report.frame.empty:
        return "\n".join([*lines, _NOTHING])

    # What is concluded, then what it rests on, in the order of a page.
    conclusion = conclusion_of(report)
    lines += textwrap.wrap(_printable(conclusion.text), prose)
    first = success(report)
    table, columns = _fitting(first, width)
    # Section by section only figures follow, so that the words are said once, here.
    legend = levels_legend(report, {column.head for column in columns})
    if not report.has_targets:
        legend = first.lead
    lines += ["", table, "", *textwrap.wrap(_printable(legend), prose), ""]
    differences = contrast(conclusion, report.level)
    if len(differences.rows) > 1:
        table, _ = _fitting(differences, width, _MOST_ROWS)
        lines += [table, ""]
    # These two show trials to look at, which no width takes away.
    wide = [x for x in (failures(report), codes(report)) if x.rows]
    if len(wide) == 2 and _counts(wide[0]) >= _counts(wide[1]):  # each failure has one code
        wide.pop()
    said = said_before(report)
    others = [x for x in listings_of(report) if x.title not in said]
    for listing, most in [*((x, None) for x in wide), *((x, width) for x in others)]:
        # A ladder without its last rungs would say nothing of them.
        table, _ = _fitting(listing, most, None if listing.title == RUNGS else _MOST_ROWS)
        colon = "" if listing.title.endswith("?") else ":"
        answer = f"{colon} {_printable(listing.answer)}" if listing.answer else ""
        lines += [*textwrap.wrap(listing.title + answer, prose), table, ""]
    left_out = left_out_layers(report.ladder) if report.has_targets else []
    if len(left_out) == 1:  # there is a table of layers, one of which it does not have
        lines += [*left_out, ""]
    if conclusion.note:
        lines += [*textwrap.wrap(conclusion.note, prose), ""]
    for warning in report.warnings:
        lines += textwrap.wrap(
            _printable(warning), prose, initial_indent="! ", subsequent_indent="  "
        )
    return "\n".join(lines).rstrip()


def _counts(listing: Listing) -> set[tuple[str, int]]:
    return {(str(row.get("sub_code") or row.get("code")), row["n"]) for row in listing.rows}


def _fitting(
    listing: Listing, width: int | None, most_rows: int | None = None
) -> tuple[str, list[Column]]:
    # (the widest form of a table that fits, its columns). Without steps of their own, columns are
    # dropped from the right, down to those that name a row and one figure. The width of a table is
    # known when it is drawn.
    columns = listing.on("text")
    cells = {id(c): [c.cell(row) for row in listing.rows[:most_rows]] for c in columns}
    n_left = n_left_of(column.kind for column in columns)
    steps = sorted({column.drop for column in columns if column.drop})
    if steps:
        forms = [[c for c in columns if not 0 < c.drop <= step] for step in (0, *steps)]
    else:
        forms = [columns[:n] for n in range(len(columns), min(n_left, len(columns) - 1), -1)]

    for form in forms:
        head = [column.head for column in form]
        rows = list(zip(*(cells[id(column)] for column in form), strict=True))
        to_the_left = {i for i, column in enumerate(form) if "t" in column.kind.split()}
        table = aligned(head, rows, n_left, to_the_left)
        excess = max(map(text_width, table.splitlines())) - (width or 0)
        if width is None or excess <= 0:
            return table, form
    if steps:  # no name may be longer than what brings the narrowest form to the width
        longest = max(len(name) for row in rows for name in row[:n_left])
        limit = max(_SHORTEST_NAME, longest - excess)
        cut = [
            [*(n if len(n) <= limit else n[: limit - 1] + "…" for n in row[:n_left]), *row[n_left:]]
            for row in rows
        ]
        table = aligned(head, cut, n_left)
    return table, form


def aligned(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    n_left: int,
    more_left: set[int] | None = None,
) -> str:
    """Return a table of texts, with every column padded to one width.

    n_left: so many of the first columns are aligned to the left, and those whose numbers are in
    `more_left`. The others to the right. Each row has a text for every column of `head`.

    >>> print(aligned(["case", "n"], [["a", "10"], ["bc", "7"]], 1))
    case   n
    ────  ──
    a     10
    bc     7
    """
    to_the_right = set(range(n_left, len(head))) - (more_left or set())
    # Made visible before it is measured, because a sign may be wider than what it replaces.
    first, *others = [[_printable(text) for text in row] for row in (head, *rows)]
    columns = zip(first, *others, strict=True)
    rule = ["─" * max(map(text_width, column)) for column in columns]
    return "\n".join(show.aligned([first, rule, *others], to_the_right))


def _printable(text: str) -> str:
    # Nothing may move a terminal's cursor or change its colours.
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def matrix_text(m: Matrix) -> str:
    """Return a matrix for a terminal: success with its interval.

    A combination that no trial has is a dash.
    """

    def text(row: Any, column: Any) -> str:
        cell = cells.get((row, column))
        if cell is None or not cell["n"]:
            return NOTHING
        interval = span(cell["ci_low"], cell["ci_high"], cell["n"])
        return f"{share(cell['success'], cell['n'])} [{interval}]"

    cells = {(cell[m.rows], cell[m.columns]): cell for cell in m.frame.to_dict("records")}
    columns = list(m.table.columns)
    rows = [[str(name), *(text(name, column) for column in columns)] for name in m.table.index]
    table = aligned([f"{m.rows} \\ {m.columns}", *map(str, columns)], rows, 1)
    return f"{m.measure}, policy {m.policy}\n{table}"


def comparison_legend() -> str:
    """Return the sentences on how a comparison's figures are made."""
    return (
        "difference: the mean of the cases' differences, each case counted once, in points. p: the "
        "sign-flip test on them (McNemar's exact test where each case has one trial), by Holm over "
        "the rows and for all pairs of arms. only: cases that one arm's majority alone gets right. "
        f"verdict: worse is shown; not worse rules out a drop of {plain_points(MARGIN)} points; "
        "anything else cannot be told from these cases."
    )


def comparison_text(c: ArmComparison) -> str:
    """Return a comparison for a terminal: its figures, the first flips, and its notes."""
    width = shutil.get_terminal_size((200, 24)).columns
    figures, n = comparison(c), len(c.flips)
    conclusion = conclusion_of_comparison(c, strata_of(c))
    lines = [
        f"{c.b} against {c.a}: two {kinds_of_column(c.on)}, policy {c.policy}, paired on cases",
        *textwrap.wrap(conclusion.text, min(width, _PROSE)),
        "",
        _fitting(figures, width)[0] if figures.rows else "no cases",
        "",
        f"{counted(n, 'case')} flipped",
    ]
    if n:
        lines.append(_fitting(flipped_cases(c, _MOST_FLIPS), None)[0])
    if n > _MOST_FLIPS:
        lines.append(f"… and {n - _MOST_FLIPS:,} more")
    notes = [*c.notes, *filter(None, [conclusion.note]), comparison_legend()]
    return "\n".join(_printable(line) for text in (*lines, *notes) for line in text.split("\n"))


def render_markdown(report: Report, gate: GateResult | None = None) -> str:
    """Return the whole report as Markdown. A gate's verdict is at its top."""
    out = [f"# {md(report.title)}", "", md(headline(report)), ""]
    if gate is not None:
        out += [f"## Gate {'passed' if gate.ok else 'failed'}", ""]
        out += [f"- {md(check.sentence)}" for check in gate.failures or gate.checks]
        if gate.answers:
            out += ["", md(f"{gate.against}:"), ""]
            out += [f"- {'<br>'.join(map(md, str(a).splitlines()))}" for a in gate.answers]
        out.append("")
    if report.frame.empty:
        return "\n".join([*out, _NOTHING, ""])
    conclusion = conclusion_of(report)
    out += [f"**{md(conclusion.first)}.** {md(conclusion.rest)}".rstrip(), ""]
    # An empty line of the quotation keeps two warnings from running into one.
    out += [f"> {md(warning)}\n>" for warning in report.warnings]
    out.append("")
    out += section_lines(success(report).drawn("md"))
    if (differences := contrast(conclusion, report.level)).rows:
        out += section_lines(replace(differences, title="The same cases").drawn("md"))
    if (wrong := failures(report)).rows:
        out += section_lines(wrong.drawn("md"))
    for listing in listings_of(report):
        answer = f"{listing.answer[:1].upper()}{listing.answer[1:]}. " if listing.answer else ""
        out += section_lines(replace(listing, lead=answer + listing.lead).drawn("md"))
    out += ["## Method", "", *(f"- {md(note)}" for note in report.notes), ""]
    return "\n".join(out)


def comparison_markdown(c: ArmComparison) -> str:
    """Return a comparison with its flipped cases, for a pull request's comment."""
    flips = flipped_cases(c).drawn("md")
    conclusion = conclusion_of_comparison(c, strata_of(c))
    out = [
        f"# {md(c.b)} against {md(c.a)}",
        "",
        f"**{md(conclusion.first)}.** {md(conclusion.rest)}".rstrip(),
        "",
        f"Two {md(kinds_of_column(c.on))}, policy {md(c.policy)}, paired on cases.",
        "",
        *_table(comparison(c).drawn("md")),
        "",
    ]
    out += section_lines(flips) if flips.rows else [f"## {flips.title}", ""]
    notes = [*c.notes, *filter(None, [conclusion.note]), comparison_legend()]
    return "\n".join([*out, *(f"- {md(note)}" for note in notes), ""])


def section_lines(section: Section) -> list[str]:
    """Return the lines of a section in Markdown. The columns that name a row are left-aligned."""
    lead = [md(section.lead), ""] if section.lead else []
    return [f"## {md(section.title)}", "", *lead, *_table(section), ""]


def _table(section: Section) -> list[str]:
    head = [name for name, _ in section.head]
    rows: Sequence[Sequence[Any]] = section.rows
    if section.examples:
        head.append("for example")
        rows = [(*row, name) for row, name in zip(rows, section.examples, strict=True)]
    marks = ["---"] * section.n_left + ["---:"] * (len(head) - section.n_left)
    lines = [map(md, head), marks, *(map(md, row) for row in rows)]
    return [f"| {' | '.join(cells)} |" for cells in lines]


# What starts markup within a line, or ends a cell of a table.
_MARKDOWN = str.maketrans(
    {**{c: "\\" + c for c in "\\`*_[]|#"}, "<": "&lt;", ">": "&gt;", "&": "&amp;"}
)


def md(x: Any) -> str:
    """Return text that Markdown shows as it is: no markup, no HTML, no hidden character, on one
    line.
    """
    return visible(" ".join(str(x).split())).translate(_MARKDOWN)
