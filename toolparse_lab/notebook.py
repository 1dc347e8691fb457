"""What `hooks` calls: the views and frames behind `.debug()`, `.frame()` and rich display."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from .errors import MissingExtra
from .render import render_diff, render_result
from .render.cells import escaped
from .render.show import visible
from .types import ParseResult, ToolCall

HTML_VIEWS: dict[type, Callable[[Any], str]] = {ParseResult: render_result, ToolCall: render_diff}
"""The static HTML of each type that has one; a module that brings another type adds its view
here."""


def debug(result: ParseResult, **options: Any) -> Any:
    """The interactive parse view of a result; options are those of `ParseView`.

    Raises MissingExtra where the `jupyter` extra is not installed.
    """
    try:
        widgets = importlib.import_module("toolparse_lab.widgets")
    except ImportError as e:
        if _ours(e):
            raise
        raise MissingExtra(
            "the interactive view needs anywidget",
            got=str(e),
            hint="pip install 'toolparse_lab[jupyter]'",
        ) from e
    return widgets.ParseView(result, **options)


def html(subject: Any) -> str:
    """Static HTML of a subject: its own view, that of its nearest base class, or its text,
    escaped."""
    for kind in type(subject).__mro__:
        if kind in HTML_VIEWS:
            return HTML_VIEWS[kind](subject)
    return f'<pre style="white-space:pre-wrap">{escaped(subject)}</pre>'


def text(subject: Any) -> str:
    """Plain text of a subject for display: what model text would do to a terminal is shown instead
    of done."""
    return visible(str(subject))


def frame(result: ParseResult) -> Any:
    """The calls of a result as a pandas frame, one row a call; raises MissingExtra where pandas is
    not installed."""
    try:
        frames = importlib.import_module("toolparse_lab.evals.frames.recorded")
    except ImportError as e:
        if _ours(e):
            raise
        raise MissingExtra(
            "frames need pandas", got=str(e), hint="pip install 'toolparse_lab[lab]'"
        ) from e
    return frames.calls_frame(result)


def _ours(error: ImportError) -> bool:
    """An import that failed inside this package is a defect to show, not an extra to install."""
    return (error.name or "").partition(".")[0] == "toolparse_lab"
