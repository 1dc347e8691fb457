"""How figures appear and saved, by their type: functions that `hooks` calls for the figures.

A figure knows nothing of pages: it asks `hooks` for its text, HTML, Markdown or file. Each of these
is one function here, with the function that does it registered for each type of figure. A new kind
of figure adds its lines at the end.
"""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import Any

from ..figures.comparison import ArmComparison, Flip
from ..figures.gates import GateResult
from ..figures.matrix import Matrix
from ..figures.report import Report
from .comparison_html import render_comparison, render_flip
from .files import save_comparison, save_report
from .html import render_gate, render_report
from .markdown import render_markdown
from .matrix_html import render_matrix
from .text import comparison_text, render_matrix_text, render_text


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
    """Write a figure to a file and return its path.

    A report takes `gate`.

    Raises BadOptions for a suffix that its kind is not written as, and StoreError where the file
    cannot be written.
    """
    raise TypeError(f"no file for a {type(figure).__name__}")


figure_text.register(ArmComparison, comparison_text)
figure_text.register(Matrix, render_matrix_text)
figure_text.register(Report, render_text)

figure_html.register(ArmComparison, render_comparison)
figure_html.register(Flip, render_flip)
figure_html.register(GateResult, render_gate)
figure_html.register(Matrix, render_matrix)
figure_html.register(Report, render_report)

figure_markdown.register(Report, render_markdown)

save_figure.register(ArmComparison, save_comparison)
save_figure.register(Report, save_report)
