"""Figures as files: pages and Markdown, cells that a spreadsheet shows as they are, LaTeX for
papers, JUnit XML for continuous integration; and the functions that `hooks` calls to show and save
a figure.

A figure knows nothing of pages: it asks `hooks` for its text, HTML, Markdown or file. Each of these
is one function at the end, with the function that does it registered for each type of figure. A new
kind of figure adds its lines there.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd

from ....core.errors import BadOptions, StoreError
from ....core.remote import written
from ....views.junit import add_suite, add_test, add_verdict, junit_file, xml_text
from ....views.show import visible
from ..figures.cells import UNRECORDED, Matrix, groups
from ..figures.comparison import ArmComparison, Flip
from ..figures.gates import GateResult
from ..figures.report import Report
from ..figures.view import rows_of
from .html import (
    render_comparison,
    render_comparison_page,
    render_flip,
    render_gate,
    render_matrix,
    render_report,
)
from .tables import success
from .text import (
    comparison_markdown,
    comparison_text,
    matrix_text,
    render_markdown,
    render_text,
)

WRITERS: Mapping[str, Callable[[Report, Path, GateResult | None], object]] = {
    ".html": lambda report, file, gate: _write(file, render_report(report, page=True, gate=gate)),
    ".md": lambda report, file, gate: _write(file, render_markdown(report, gate)),
    ".csv": lambda report, file, gate: _csv(report.frame, file),
    ".parquet": lambda report, file, gate: report.frame.to_parquet(file, index=False),
    ".tex": lambda report, file, gate: _write(file, render_latex(report)),
    ".xml": lambda report, file, gate: _write(file, render_junit(report, gate)),
}
"""Suffix -> what writes such a file: one self-contained page, Markdown, the frame of cells as CSV
or Parquet, a LaTeX table, JUnit XML. Only the page, Markdown and
JUnit have a place for a gate."""


def _write(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


def _csv(frame: pd.DataFrame, file: Path) -> None:
    plain_cells(frame).to_csv(file, index=False)


def save_report(report: Report, path: str | Path, gate: GateResult | None = None) -> Path:
    """Write a report as its suffix says and return its path.

    Raises BadOptions for a suffix that `WRITERS` lacks, and StoreError where the file cannot be
    written.
    """
    return save_file(path, WRITERS, lambda writer, file: writer(report, file, gate), "a report")


def save_comparison(comparison: ArmComparison, path: str | Path) -> Path:
    """Write a comparison and return its path: .html, .md, .csv or .parquet.

    Raises BadOptions for another suffix, and StoreError where the file cannot be written.
    """
    writers: Mapping[str, Callable[[Path], object]] = {
        ".html": lambda file: _write(file, render_comparison_page(comparison)),
        ".md": lambda file: _write(file, comparison_markdown(comparison)),
        ".csv": lambda file: _csv(comparison.frame, file),
        ".parquet": lambda file: comparison.frame.to_parquet(file, index=False),
    }
    return save_file(path, writers, lambda writer, file: writer(file), "a comparison")


def save_file(
    path: str | Path, writers: Mapping[str, Any], write: Callable[[Any, Path], object], what: str
) -> Path:
    """Write a file with the writer for its suffix, and return its path.

    writers: by suffix. write: called with the writer and the path. what: the contents as an error
    names them. Raises BadOptions for a suffix without a writer, StoreError where writing fails.
    """
    file = Path(path)
    writer = writers.get(file.suffix.lower())
    if writer is None:
        raise BadOptions(
            f"{what} is not written as this kind of file",
            got=file.name,
            expected=", ".join(writers),
        )
    try:
        with written(path) as own:
            write(writer, own)
    except OSError as e:  # no such folder, a full disk: nothing that a traceback explains
        raise StoreError(f"{what} cannot be written", got=f"{path}: {e.strerror or e}") from None
    return file


# Full-width signs count in some spreadsheets.
_FORMULA = ("=", "+", "-", "@", "|", "%", "＝", "＋", "－", "＠")


def plain_cells(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame whose texts a spreadsheet shows as they are: no hidden character, and an
    apostrophe before what it would take for a formula.

    Only for tables that people open. A file that is read again keeps its texts.
    """

    def plain(x: Any) -> Any:
        if not isinstance(x, str):
            return x
        # Spreadsheets pass over white space before the sign.
        return ("'" if x.lstrip().startswith(_FORMULA) else "") + visible(x)

    texts = frame.select_dtypes(exclude=["number", "bool"])
    return frame.assign(**{str(name): texts[name].map(plain) for name in texts})


# In one step, because replacing one after the other would escape what was put in before.
_TEX = str.maketrans(
    {
        **{c: "\\" + c for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "–": "--",
    }
    | {
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "−": "$-$",
        "\xa0": "~",
        # A hidden character is shown between these.
        "⟨": r"\textlangle{}",
        "⟩": r"\textrangle{}",
    }
)


def render_latex(report: Report) -> str:
    r"""Return the cells as a LaTeX table. It takes ``\usepackage{booktabs}``."""

    def line(cells: Any) -> str:
        texts = (visible(" ".join(cell.split("\n"))).translate(_TEX) for cell in cells)
        return " & ".join(texts) + r" \\"

    table = success(report).drawn("tex")
    alignment = "l" * table.n_left + "r" * (len(table.head) - table.n_left)
    lines = [
        f"% {visible(' '.join(report.title.split()))}. Success in percent, policy {report.policy}, "
        "intervals clustered by case.",
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        line(name for name, _ in table.head),
        "\\midrule",
        *map(line, table.rows),
        "\\bottomrule",
        "\\end{tabular}",
        "",
    ]
    return "\n".join(lines)


# JUnit XML.
_COLUMNS = (
    "case_id", "trial_id", "outcome", "sub_code", "detail", "missing_reason", "score_success",
    "latency",
)  # fmt: skip


def render_junit(report: Report, gate: GateResult | None = None) -> str:
    """Return JUnit XML: a suite for each cell, a test for each of its cases, and a suite for the
    checks of a gate.

    A case fails if no majority of its judged trials succeeded. One for which there are only the
    provider's failures is an error, one without a target or without a record is skipped.
    """
    # The standard library's writer is enough for this: nothing is read, and it escapes all text.
    root = ET.Element("testsuites", name=xml_text(report.title))
    if gate is not None:
        suite = add_suite(root, "gate")
        for check in gate.checks:
            test = add_test(suite, "gate", f"{check.cell}: {check.metric}")
            if not check.ok:
                failure = add_verdict(test, "failure", check.sentence)
                told = [str(a) for a in gate.answers if a.cell == check.cell]
                failure.text = xml_text("\n".join(told))

    failing: dict[Any, ET.Element] = {}  # by the row of the trial whose text they are to hold
    for values, part in groups(report.headline, report.by):
        name = report.cell_name(dict(zip(report.by, values, strict=True)))
        suite = add_suite(root, name)
        # Column by column: a frame for each case would take a hundred times as long.
        columns = [part[c].astype(object).where(part[c].notna(), None).tolist() for c in _COLUMNS]
        cases: dict[str, list[dict[str, Any]]] = {}
        for label, cells in zip(part.index, zip(*columns, strict=True), strict=True):
            row = {"label": label, **dict(zip(_COLUMNS, cells, strict=True))}
            cases.setdefault(str(row["case_id"]), []).append(row)
        for case_id, trials in cases.items():
            test = add_test(suite, name, case_id, sum(t["latency"] or 0.0 for t in trials))
            failing |= _judge(test, trials)
    whole = report.view.whole(report.headline.loc[list(failing)])
    for element, row in zip(failing.values(), rows_of(whole), strict=True):
        lines = [f"trial {row['trial_id']}", *report.view.why(row)[1:], str(row["raw"] or "")]
        element.text = xml_text("\n".join(lines))

    return junit_file(root)


def _judge(test: ET.Element, trials: list[dict[str, Any]]) -> dict[Any, ET.Element]:
    # Returns the failure, by the row of its first trial.
    judged = [t for t in trials if t["score_success"] is not None]
    errors = [t for t in trials if t["outcome"] == "provider_error"]
    if not judged and errors:
        add_verdict(test, "error", f"{errors[0]['missing_reason']}: {errors[0]['detail']}")
    elif not judged:
        add_verdict(test, "skipped", trials[0]["missing_reason"] or UNRECORDED)
    wrong = [t for t in judged if not t["score_success"]]
    right = len(judged) - len(wrong)
    if wrong and right <= len(wrong):  # a tie is not a majority
        first = wrong[0]
        code = "/".join(str(first[c]) for c in ("outcome", "sub_code") if first[c])
        message = f"{right} of {len(judged)} trials succeeded; {code}: {first['detail']}"
        return {first["label"]: add_verdict(test, "failure", message)}
    return {}


@singledispatch
def figure_text(figure: Any, **options: Any) -> str:
    """Return a figure as plain text for a terminal. A report takes `width`."""
    raise TypeError(f"no text for a {type(figure).__name__}")


@singledispatch
def figure_html(figure: Any, **options: Any) -> str:
    """Return a figure as HTML. A report takes `page` and `gate`."""
    raise TypeError(f"no HTML for a {type(figure).__name__}")


@singledispatch
def figure_markdown(figure: Any) -> str:
    """Return a figure as GitHub-flavoured Markdown."""
    raise TypeError(f"no Markdown for a {type(figure).__name__}")


@singledispatch
def save_figure(figure: Any, path: str | Path, **options: Any) -> Path:
    """Write a figure to a file and return its path. A report takes `gate`.

    Raises BadOptions for a suffix that its kind is not written as, and StoreError where the file
    cannot be written.
    """
    raise TypeError(f"no file for a {type(figure).__name__}")


figure_text.register(ArmComparison, comparison_text)
figure_text.register(Matrix, matrix_text)
figure_text.register(Report, render_text)

figure_html.register(ArmComparison, render_comparison)
figure_html.register(Flip, render_flip)
figure_html.register(GateResult, render_gate)
figure_html.register(Matrix, render_matrix)
figure_html.register(Report, render_report)

figure_markdown.register(Report, render_markdown)

save_figure.register(ArmComparison, save_comparison)
save_figure.register(Report, save_report)
