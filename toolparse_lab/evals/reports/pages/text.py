"""Reports as plain text for a terminal."""

from __future__ import annotations

import math
import shutil
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....core.values.printable import counted
from ..figures.comparison import COMPARISON_COLUMNS, MARGIN
from ..figures.notes import levels_legend
from .numbers import percent, points, span
from .tables import CODES_TITLE, Section, sections_of

if TYPE_CHECKING:
    from ..figures.comparison import ArmComparison
    from ..figures.matrix import Matrix
    from ..figures.report import Report

_BAR = 20  # columns of an interval
_SCALE = f"0{'100 %':>{_BAR - 1}}"
_PROSE = 120  # columns of the sentences, which no one reads across a wide screen
_MOST_ROWS = 8  # failures, and problem codes
_SHORTEST_NAME = 8  # letters that remain of a name, however narrow the terminal


def interval_bar(low: float, rate: float, high: float, width: int = _BAR) -> str:
    """Return an interval on a scale of 0 to 100 %: ├ and ┤ its ends, ● the rate.

    low, rate, high: shares. Blanks where the rate is unknown. width: of the drawing, in columns.

    >>> interval_bar(0.2, 0.5, 1.0, 10)
    '··├──●───┤'
    """
    if math.isnan(rate):
        return " " * width

    # A share of 1 is at the last column, not behind it.
    first, middle, last = (min(width - 1, int(x * width)) for x in (low, rate, high))
    cells = ["·"] * width
    for i in range(first, last + 1):
        cells[i] = "─"

    # The rate last, so that it shows where an end is at the same column.
    cells[first], cells[last] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)


def headline(report: Report) -> str:
    """Return the report in one line: how many trials and cases were judged, and how many not."""
    cells = report.frame
    judged = report.headline["score_success"].notna()
    cases = report.headline.loc[judged, "case_id"].nunique()
    judged_trials = counted(int(cells["n"].sum()), "trial")
    parts = [f"{judged_trials} judged", counted(cases, "case"), report.policy_said]

    missing = int(cells["missing"].sum())
    if missing:
        parts.append(f"{missing} missing")
    ungraded = int(cells["ungraded"].sum())
    if ungraded:
        parts.append(f"{ungraded} ungraded")
    return " · ".join(parts)


def leader_of(report: Report) -> str:
    """Return the highest and the lowest cell, a sentence, or "" without a rate.

    Two cells whose intervals overlap are not called better and worse.
    """
    cells = report.frame[report.frame["success"].notna()]
    if cells.empty:
        return ""
    ranked = cells.sort_values("success", ascending=False, kind="stable").to_dict("records")
    best, worst = ranked[0], ranked[-1]
    if len(ranked) == 1:
        return f"{_rate_of(report, best)}."
    sentence = f"Highest: {_rate_of(report, best)}. Lowest: {_rate_of(report, worst)}."
    if best["ci_low"] <= worst["ci_high"]:
        sentence += " Their intervals overlap."
    return sentence


def _rate_of(report: Report, cell: Mapping[Any, Any]) -> str:
    interval = span(cell["ci_low"], cell["ci_high"])
    within = f" ({interval} %)" if interval else ""
    return f"{report.cell_name(cell)} {percent(cell['success'])}{within}"


_RATES = ("strict", "repaired", "coerced", "naive", "fabricated", "coercion_rate")
# What a terminal gets, from wide to narrow: bars, rates, differences from the baseline.
_WIDTHS: tuple[tuple[bool, tuple[str, ...], bool], ...] = (
    (True, _RATES, True),
    (False, _RATES, True),
    (False, ("strict", "repaired", "coerced", "naive"), True),
    (False, ("strict", "naive"), True),
    (False, ("strict", "naive"), False),
    (False, (), False),
)


def cell_rows(
    report: Report, *, bars: bool, rates: Sequence[str] = _RATES, differences: bool = True
) -> tuple[list[str], list[list[str]], int]:
    """Return (head, rows, number of left-aligned columns) of the table of cells.

    `bars` adds the intervals as drawings, `rates` names the shares beside success, and
    `differences` leaves out those from a baseline where it is False.
    """
    against = differences and report.baseline is not None
    extra = tuple(c for c in ("missing", "ungraded") if report.frame[c].any())
    level = f"{report.level:.0%}".replace("%", " %")

    head = [*(name.replace("_", " ") for name in report.by), "success", f"{level} interval"]
    if bars:
        head.append(_SCALE)
    head += ["n", "cases", *extra]
    head += [rate.replace("_", " ") for rate in rates]
    if against:
        head += [f"Δ {report.baseline}", "Δ interval", "p Holm"]

    rows = []
    for cell in report.frame.to_dict("records"):
        row = [str(cell[c]) for c in report.by]
        row += _success(cell, bars=bars)
        row += [str(cell[c]) for c in ("n", "n_cases", *extra)]
        row += [percent(cell[c]) for c in rates]
        if against:
            row += _difference(cell)
        rows.append(row)
    return head, rows, len(report.by)


def _success(cell: Mapping[Any, Any], *, bars: bool) -> list[str]:
    low, rate, high = cell["ci_low"], cell["success"], cell["ci_high"]
    texts = [percent(rate), span(low, high)]
    if bars:
        texts.append(interval_bar(low, rate, high))
    return texts


def _difference(cell: Mapping[Any, Any]) -> list[str]:
    if pd.isna(cell["difference"]):
        return ["–", "", ""]

    gap, low, high = (100 * cell[c] for c in ("difference", "diff_low", "diff_high"))
    return [f"{gap:+.0f}", f"{low:+.0f}…{high:+.0f}", f"{cell['p_holm']:.3f}"]


def render_text(report: Report, width: int | None = None) -> str:
    """Return the report for a terminal of `width` columns, its own when None.

    A part that does not fit drops out of the table.
    """
    # The fallback is what a log of a continuous integration gets.
    width = width or shutil.get_terminal_size((120, 24)).columns
    lines = [report.title, headline(report), ""]
    if report.frame.empty:
        return "\n".join([*lines, "There are no trials in this report."])

    table, rates = _fitting_table(report, width)
    prose = min(width, _PROSE)
    # Section by section only figures follow, so that the words are said once, here.
    legend = textwrap.wrap(_visible(levels_legend(report, rates)), prose)
    lines += [table, "", *legend, ""]
    if len(report.failures):
        lines += ["what went wrong", _failures_table(report.failures.head(_MOST_ROWS)), ""]
    if len(report.codes):
        lines += ["problem codes", _codes_table(report.codes.head(_MOST_ROWS)), ""]

    for section in sections_of(report):
        if section.title != CODES_TITLE:  # shown above, with the trials to look at
            lines += [_lowered(section.title), _section_table(section, width), ""]

    for warning in report.warnings:
        lines += textwrap.wrap(
            _visible(warning), prose, initial_indent="! ", subsequent_indent="  "
        )
    return "\n".join(lines).rstrip()


def _lowered(title: str) -> str:
    return title[:1].lower() + title[1:]


def _section_table(section: Section, width: int) -> str:
    # Sentences are left to the page and to Markdown: in a terminal they leave no room for figures.
    # Columns are dropped from the right, down to those that name a row and one figure.
    # "w" is the class of a column of sentences, "k" that of one that names the row.
    columns = [i for i, (_, kind) in enumerate(section.head) if "w" not in kind.split()]
    names = [i for i in columns if "k" in section.head[i][1].split()]
    fewest = len(names) + 1

    while True:
        head = [section.head[i][0] for i in columns]
        rows = [[_visible(row[i]) for i in columns] for row in section.rows[:_MOST_ROWS]]
        table = aligned(head, rows, len(names))

        if len(columns) <= fewest or _table_width(table) <= width:
            return table
        columns.pop()


def _fitting_table(report: Report, width: int) -> tuple[str, Sequence[str]]:
    # From wide to narrow; the width of a table is known when it is drawn.
    for bars, rates, differences in _WIDTHS:
        head, rows, n_left = cell_rows(report, bars=bars, rates=rates, differences=differences)
        centred = {n_left + 2} if bars else set()
        table = aligned(head, rows, n_left, centred)
        excess = _table_width(table) - width
        if excess <= 0:
            return table, rates

    # The narrowest form is still too wide: no name may be longer than what brings it to the width.
    longest = max(len(name) for row in rows for name in row[:n_left])
    limit = max(_SHORTEST_NAME, longest - excess)
    cut = []
    for row in rows:
        names = [_clipped(name, limit) for name in row[:n_left]]
        cut.append([*names, *row[n_left:]])
    return aligned(head, cut, n_left), rates


def _failures_table(failures: pd.DataFrame) -> str:
    rows = [
        [
            outcome_name(failure["outcome"], failure["sub_code"]),
            str(failure["n"]),
            percent(failure["share"]),
            failure["trial_ids"],
        ]
        for failure in failures.to_dict("records")
    ]
    return aligned(["outcome", "n", "share", "trials"], rows, 1, {3})


def _codes_table(codes: pd.DataFrame) -> str:
    rows = [
        [code["code"], str(code["n"]), percent(code["share"]), code["trial_ids"]]
        for code in codes.to_dict("records")
    ]
    return aligned(["code", "n", "share", "trials"], rows, 1, {3})


def outcome_name(outcome: str, sub_code: str) -> str:
    """Return an outcome with its sub-code, where it has one.

    >>> outcome_name("wrong_call", "wrong_tool"), outcome_name("empty", "")
    ('wrong_call/wrong_tool', 'empty')
    """
    if not sub_code:
        return outcome
    return f"{outcome}/{sub_code}"


def _clipped(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return text[: limit - 1] + "…"


def aligned(
    head: Sequence[str], rows: Sequence[Sequence[str]], n_left: int, centred: set[int] | None = None
) -> str:
    """Return a table of texts, with every column padded to one width.

    n_left: so many of the first columns are aligned to the left, and those whose numbers are in
    `centred`. The others to the right. Each row has a text for every column of `head`.

    >>> print(aligned(["case", "n"], [["a", "10"], ["bc", "7"]], 1))
    case   n
    ────  ──
    a     10
    bc     7
    """
    to_the_left = set(range(n_left)) | (centred or set())
    # Made visible before it is measured, because a sign may be wider than what it stands for.
    clean = [[_visible(text) for text in row] for row in (head, *rows)]
    widths = [max(map(_width, column)) for column in zip(*clean, strict=True)]

    lines = []
    for row in clean:
        cells = []
        for i, text in enumerate(row):
            padding = " " * (widths[i] - _width(text))
            cells.append(text + padding if i in to_the_left else padding + text)
        lines.append("  ".join(cells).rstrip())

    rule = "  ".join("─" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]])


def _visible(text: str) -> str:
    # Nothing may move a terminal's cursor or change its colours.
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def _table_width(table: str) -> int:
    return max(map(_width, table.splitlines()))


def _width(text: str) -> int:
    return sum(map(_width_of, text))


def _width_of(char: str) -> int:
    if unicodedata.combining(char):  # drawn on the letter before it
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def render_matrix_text(m: Matrix) -> str:
    """Return a matrix for a terminal: success with its interval.

    A combination that no trial has is a dash.
    """
    cells = {(row[m.rows], row[m.columns]): row for row in m.frame.to_dict("records")}
    rows = []
    for name in m.table.index:
        texts = [_matrix_text(cells.get((name, column))) for column in m.table.columns]
        rows.append([str(name), *texts])

    head = [f"{m.rows} \\ {m.columns}", *map(str, m.table.columns)]
    return f"success, policy {m.policy}\n{aligned(head, rows, 1)}"


def _matrix_text(cell: Mapping[Any, Any] | None) -> str:
    if cell is None:
        return percent(None)

    text = percent(cell["success"])
    if cell["n"]:
        text += f" [{span(cell['ci_low'], cell['ci_high'])}]"
    return text


def comparison_rows(c: ArmComparison) -> tuple[list[str], list[list[str]], int]:
    """Return (head, rows, number of left-aligned columns) of a comparison's figures.

    The left-aligned columns name the stratum of a row. Differences are in points.
    """
    strata = [str(x) for x in c.frame if x not in COMPARISON_COLUMNS]
    head = [*strata, *_COMPARISON_HEAD]

    rows = []
    verdicts = c.regression().frame["verdict"]
    for figures, verdict in zip(c.frame.to_dict("records"), verdicts, strict=True):
        names = [str(figures[stratum]) for stratum in strata]
        rows.append([*names, *_comparison_cells(figures, verdict)])
    return head, rows, len(strata)


_COMPARISON_HEAD = (
    "cases", "a", "b", "b−a", "interval", "p", "only a", "only b", "verdict", "noise",
)  # fmt: skip


def _comparison_cells(figures: Mapping[Any, Any], verdict: str) -> list[str]:
    interval = p = "–"
    if not pd.isna(figures["difference"]):
        interval = f"{points(figures['ci_low'])} … {points(figures['ci_high'])}"
        p = f"{figures['p_holm']:.3f}"

    noise = [x for x in (figures["noise_a"], figures["noise_b"]) if not pd.isna(x)]
    return [
        str(figures["n_cases"]),
        percent(figures["success_a"]),
        percent(figures["success_b"]),
        points(figures["difference"]),
        interval,
        p,
        str(figures["only_a"]),
        str(figures["only_b"]),
        verdict,
        percent(max(noise, default=None)),
    ]


def comparison_legend(margin: float = MARGIN) -> str:
    """Return the sentences on how a comparison's figures are made."""
    return (
        "b−a: the mean of the cases' differences, each case counted once. p: the sign-flip test on "
        "them (McNemar's exact test where each case has one trial), by Holm over the rows and "
        "for all pairs of arms. only a, only b: cases that one arm's majority alone gets right. "
        f"verdict: worse is shown; not worse rules out a drop of {100 * margin:.3g} points; "
        "anything else cannot be told from these cases."
    )


def comparison_text(c: ArmComparison, flips: int = 20) -> str:
    """Return a comparison for a terminal: its figures, the first flips, and its notes.

    flips: the number of flipped cases that are named. The others are only counted.
    """
    head, rows, n_left = comparison_rows(c)
    n = len(c.flips)
    lines = [
        f"a {c.a}, b {c.b}: by {c.on}, policy {c.policy}, paired on cases, differences in points",
        "",
        aligned(head, rows, n_left) if rows else "no cases",
        "",
        f"{n} case{'' if n == 1 else 's'} flipped",
    ]
    if n:
        lines.append(_flips_table(c.flips.head(flips), head[:n_left]))
    if n > flips:
        lines.append(f"… and {n - flips} more")

    return "\n".join([*lines, *c.notes, comparison_legend()])


def _flips_table(flips: pd.DataFrame, strata: Sequence[str]) -> str:
    names = [*strata, *_FLIP_COLUMNS]
    texts = flips[names].astype(object)
    rows = texts.where(texts.notna(), "").astype(str).to_numpy().tolist()
    head = [name.replace("_", " ") for name in names]
    return aligned(head, rows, len(names))


_FLIP_COLUMNS = ("case_id", "direction", "outcome_a", "outcome_b", "trial_id_a", "trial_id_b")
