"""Functions that `hooks` calls: the views and frames of `.debug()`, `.frame()` and rich display."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..core.errors import MissingExtra
from ..core.toolspec import ToolsLike
from ..core.types import ParseResult, ToolCall
from ..core.types.result import DebugView, Stage
from ..formats.like import ProtocolLike
from ..views import render_diff, render_result
from ..views.cells import escaped
from ..views.html import standalone
from ..views.show import visible

if TYPE_CHECKING:
    from .bench import Workbench

# The static HTML of each type that has one; a module with another type adds its view here.
HTML_VIEWS: dict[type, Callable[[Any], str]] = {
    ParseResult: render_result,
    ToolCall: render_diff,
}


def debug(result: ParseResult, *, stage: Stage = "raw", pinned: str = "") -> DebugView:
    """See `ParseResult.debug`. Raises MissingExtra without the `jupyter` extra."""
    view: DebugView = _widgets().ParseView(result, stage=stage, pinned=pinned)
    return view


def workbench(
    subject: Any, protocol: ProtocolLike = "auto", tools: ToolsLike = None, **options: Any
) -> Workbench:
    """Open a text, a parse, a trial, or the failures of a run on the workbench.

    Change the text, the protocol, the policy or the tools and see the parse change, replay the
    stream chunk by chunk, choose among readings, and save the result as a test.

    `bench.result` is the parse that it shows, after your changes too.

    Args:
        subject: the raw text of an answer, a ParseResult, a Trial, trials, or a Run, whose failures
            come one after the other.
        protocol, tools, options: for raw text, as for `parse`.

    Raises BadOptions for another subject, and MissingExtra without the `jupyter` extra.

    >>> bench = workbench('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "hermes")
    >>> bench.result.calls[0].name
    'f'
    """
    _widgets()
    room = importlib.import_module("toolparse_lab.notebook.bench")
    bench: Workbench = room.workbench(subject, protocol, tools, **options)
    return bench


def browse(frame: Any, **options: Any) -> Any:
    """Return the interactive view of a trials frame. Options are those of `Browser`.

    Raises MissingExtra without the `jupyter` extra.
    """
    _widgets()
    # Whoever has a frame has pandas, which the other views do not need.
    browser = importlib.import_module("toolparse_lab.notebook.browser")
    return browser.Browser(frame, **options)


def _widgets() -> Any:
    with _needing("jupyter", "the interactive view needs anywidget"):
        return importlib.import_module("toolparse_lab.notebook.parse_view")


@contextmanager
def _needing(extra: str, message: str) -> Iterator[None]:
    """Raise MissingExtra where an import fails for want of a package of the extra."""
    try:
        yield
    except ImportError as e:
        # An import that failed inside this package is a defect to show, not an extra to install.
        if (e.name or "").partition(".")[0] == "toolparse_lab":
            raise
        hint = f"in a checkout: pip install '.[{extra}]'"
        raise MissingExtra(message, got=str(e), hint=hint) from e


def html(subject: Any) -> str:
    """Return static HTML: the subject's view with its style, that of its nearest base, or its text,
    escaped.
    """
    for kind in type(subject).__mro__:
        if kind in HTML_VIEWS:
            return standalone(HTML_VIEWS[kind](subject))
    return f'<pre style="white-space:pre-wrap">{escaped(subject)}</pre>'


def text(subject: Any) -> str:
    """Return text for display: what model text would do to a terminal is shown instead."""
    return visible(str(subject))


def frame(result: ParseResult) -> Any:
    """Return a pandas frame, one row per call. Raises MissingExtra if pandas is missing."""
    with _needing("lab", "frames need pandas"):
        frames = importlib.import_module("toolparse_lab.evals.frames.recorded")
    return frames.calls_frame(result)
