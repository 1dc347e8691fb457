"""The workbench: change a text or how it is read, and see the parse change."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ...core.errors import BadOptions, ToolparseError
from ...core.toolspec import ToolsLike
from ...core.types import ParseResult
from ...formats.like import ProtocolLike
from ...views import render_result
from ...views.show import visible
from ..messages import Answering, answered
from ..page import front, show_html, source, static_id, write_view
from .view import (
    Setup,
    beside,
    choices,
    choices_of,
    comparison_of,
    setups_of,
    snippet_of,
    timeline_of,
    view_of,
)


def bench_module() -> str:
    """Return the front end: the parse view's module, and the workbench around it."""
    base = front("parse_view.js").rsplit("\nfunction render(", 1)[0]
    return base + "\n" + source("bench/workbench.js")


def bench_style() -> str:
    """Return the style of both."""
    return source("parse_view.css") + "\n" + source("bench/workbench.css")


class Workbench(Answering, anywidget.AnyWidget):
    """The interactive workbench, as `tp.workbench(…)` shows it. `result` and `setup` have the
    changes of a person, for the next cell.
    """

    _esm = bench_module()
    _css = bench_style()
    _state = traitlets.Dict().tag(sync=True)

    def __init__(self, subjects: list[Setup], **traits: Any) -> None:
        self._desk = Desk(subjects)
        super().__init__(_state=self._desk.state(static_id()), **traits)
        self.on_msg(self._answer)

    @property
    def setup(self) -> Setup:
        """The text shown and how it was read, with the changes of a person."""
        return self._desk.setup

    @property
    def result(self) -> ParseResult:
        """The parse shown."""
        return self._desk.result

    def _answer(self, widget: Any, content: Any, buffers: Any) -> None:
        self.send(self.reply(content))

    def reply(self, message: Any) -> dict[str, Any]:
        """Return the answer to a message of the front end, see `Desk.answer`."""
        reply, status = answered(self._desk.answer, message)
        if status != 400:
            return dict(reply)
        serial = message.get("serial") if isinstance(message, Mapping) else None
        return {**reply, "kind": "error", "serial": serial, "status": status}

    def state(self) -> dict[str, Any]:
        """Return what a front end begins with that finds the text as it is now."""
        return self._desk.state(self._state["static"])

    def export_html(self, path: str | Path) -> Path:
        """Write the present view to one file that works from disk, and return its path. It has no
        kernel, so the text cannot be changed there.
        """
        state = self._desk.state()
        state["view"] |= {"timeline": timeline_of(self.setup)}
        return write_view(
            path,
            "Workbench",
            state,
            render_result(self.result),
            bench_module(),
            bench_style(),
            mount="new Bench(document.getElementById('toolparse-bench'), {data}, null);",
            ids=("toolparse-bench", "toolparse-state"),
        )

    def _ipython_display_(self, **kwargs: Any) -> None:
        text, html = visible(str(self.result)), render_result(self.result)
        show_html(self._state["static"], text, html, super()._repr_mimebundle_(**kwargs))


def workbench(
    subject: Any, protocol: ProtocolLike = "auto", tools: ToolsLike = None, **options: Any
) -> Workbench:
    """Open the workbench, see `tp.workbench`. Raises BadOptions for another subject."""
    if options and not isinstance(subject, str):
        raise BadOptions(
            "options say how a text is read; this has been read already", got=min(options)
        )
    return Workbench(setups_of(subject, protocol, tools, **options))


class Desk:
    """The setups on the workbench, and the answers to its front end, whatever carries them.

    `setup` is the present one with the person's changes, `result` its parse.
    """

    def __init__(self, subjects: list[Setup]) -> None:
        self._subjects = subjects
        self.setup = subjects[0]
        self._index = 0
        self.result: ParseResult

    def state(self, static: str = "") -> dict[str, Any]:
        """Return what the front end begins with. static: the id of the view that it hides."""
        recorded = choices_of(self._subjects[self._index])
        return {
            "choices": choices(),
            "static": static,
            "recorded": recorded,
            "view": self.view(),
        }

    def view(self) -> dict[str, Any]:
        """Read the setup again and return its view."""
        view, self.result = view_of(self.setup)
        return view | {"index": self._index, "count": len(self._subjects)}

    def answer(self, message: Any) -> dict[str, Any] | None:
        """Return the answer to a message of the front end: a reply of its kind, or an error in
        words. None for a message of no known kind.
        """
        kind = message.get("kind") if isinstance(message, Mapping) else None
        reply: dict[str, Any] = {}
        before = self.setup, self._index
        try:
            if kind == "parse":
                self.setup = self.setup.changed(dict(message.get("values") or {}))
                reply["view"] = self.view()
            elif kind == "go":  # to another subject, as it was recorded
                last = len(self._subjects) - 1
                self._index = min(max(int(message.get("index") or 0), 0), last)
                self.setup = self._subjects[self._index]
                reply["view"] = self.view()
            elif kind == "timeline":
                reply["timeline"] = timeline_of(self.setup, int(message.get("size") or 0))
            elif kind == "compare":
                reply["rows"] = comparison_of(self.setup)
            elif kind == "beside":
                values = dict(message.get("values") or {})
                reply["rows"] = beside(self.result, self.setup, values)
            elif kind == "keep":
                reply["text"] = snippet_of(self.setup, self.result, str(message.get("as")))
            else:
                return None
        except ToolparseError as e:
            reply = {"error": visible(str(e))}
        except Exception:
            # Members that are not what they should be; what they changed is taken back.
            self.setup, self._index = before
            raise
        return {"kind": kind, "serial": message.get("serial"), **reply}
