"""How each kind of figure is shown and saved: functions that `hooks` calls for the figures.

A figure knows nothing of pages: it asks `hooks` for its text, HTML, Markdown or file. Each of these
is one function here, with the function that does it registered for each type of figure. A new kind
of figure adds its lines at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import singledispatch
from pathlib import Path
from typing import Any

import pandas as pd

from ....core.errors import BadOptions, StoreError
from ....views import render_page
from ....views.cells import escaped
from ....views.show import visible
from ..figures.cells import Matrix
from ..figures.comparison import ArmComparison, Flip
from ..figures.gates import GateResult
from ..figures.report import Report
from .exports import plain_cells, render_junit, render_latex, write_workbook
from .html import (
    render_comparison,
    render_comparison_page,
    render_flip,
    render_gate,
    render_matrix,
    render_report,
)
from .text import (
    comparison_markdown,
    comparison_text,
    matrix_text,
    md,
    render_markdown,
    render_text,
)

WRITERS: Mapping[str, Callable[[Report, Path, GateResult | None], object]] = {
    ".html": lambda report, file, gate: _write(file, render_report(report, page=True, gate=gate)),
    ".md": lambda report, file, gate: _write(file, render_markdown(report, gate)),
    ".csv": lambda report, file, gate: _csv(report.frame, file),
    ".xlsx": lambda report, file, gate: write_workbook(report, file),
    ".parquet": lambda report, file, gate: report.frame.to_parquet(file, index=False),
    ".tex": lambda report, file, gate: _write(file, render_latex(report)),
    ".xml": lambda report, file, gate: _write(file, render_junit(report, gate)),
}
"""Suffix -> what writes such a file: one self-contained page, Markdown, the frame of cells as CSV
or Parquet, all tables as an Excel workbook, a LaTeX table, JUnit XML. Only the page, Markdown and
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
    return _save_with_frame(
        path,
        lambda: render_comparison_page(comparison),
        lambda: comparison_markdown(comparison),
        comparison.frame,
        "a comparison",
    )


def save_sentences(title: str, text: str, frame: pd.DataFrame, path: str | Path) -> Path:
    """Write figures that are told in sentences and return the path: .html and .md have the
    sentences, .csv and .parquet the numbers.

    text: one line per row of `frame`, and its notes. Raises BadOptions for another suffix, and
    StoreError where the file cannot be written.
    """
    lines = visible(text).splitlines()
    items = "".join(f"<li>{escaped(line)}</li>" for line in lines)
    return _save_with_frame(
        path,
        lambda: render_page(title, f"<h1>{escaped(title)}</h1><ul>{items}</ul>"),
        lambda: "\n".join([f"# {md(title)}", "", *(f"- {md(line)}" for line in lines), ""]),
        frame,
        "such figures",
    )


def _save_with_frame(
    path: str | Path,
    html: Callable[[], str],
    markdown: Callable[[], str],
    frame: pd.DataFrame,
    what: str,
) -> Path:
    writers: Mapping[str, Callable[[Path], object]] = {
        ".html": lambda file: _write(file, html()),
        ".md": lambda file: _write(file, markdown()),
        ".csv": lambda file: _csv(frame, file),
        ".parquet": lambda file: frame.to_parquet(file, index=False),
    }
    return save_file(path, writers, lambda writer, file: writer(file), what)


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
        write(writer, file)
    except OSError as e:  # no such folder, a full disk: nothing that a traceback explains
        raise StoreError(f"{what} cannot be written", got=f"{path}: {e.strerror or e}") from None
    return file


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
