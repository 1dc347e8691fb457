"""`Workbench`: the widget, and its answers to the front end."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from ...core.errors import BadOptions
from ...core.toolspec import ToolsLike
from ...core.types import ParseResult
from ...formats.like import ProtocolLike
from ...views import render_page, render_result
from ..payload import payload_json
from ..static import show_both, static_id
from .desk import Desk
from .setup import Setup, setups_of
from .timeline import timeline_of


def bench_module() -> str:
    """Return the front end: the parse view's module, and the workbench around it."""
    base = _source("toolparse_lab.notebook", "parse_view.js").rsplit("\nfunction render(", 1)[0]
    return base + "\n" + _source(__package__, "workbench.js")


def bench_style() -> str:
    """Return the style of both."""
    parts = (("toolparse_lab.notebook", "parse_view.css"), (__package__, "workbench.css"))
    return "\n".join(_source(package, name) for package, name in parts)


def _source(package: str, name: str) -> str:
    return files(package).joinpath(name).read_text("utf-8")


class Workbench(anywidget.AnyWidget):
    """The interactive workbench, as `tp.workbench(…)` shows it.

    `result` and `setup` have the changes of a person, for the next cell. subjects: the setups to go
    through.
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
        """The text that appears and how it was read, with the changes of a person."""
        return self._desk.setup

    @property
    def result(self) -> ParseResult:
        """The parse that appears."""
        return self._desk.result

    def _answer(self, widget: Any, content: Any, buffers: Any) -> None:
        """Answer a message of the front end."""
        reply = self._desk.answer(content)
        if reply is not None:
            self.send(reply)

    def export_html(self, path: str | Path) -> Path:
        """Write the present view to one file that works from disk, and give back its path.

        There is no kernel behind it: the text cannot be changed there.
        """
        state = self._desk.state()
        state["view"] |= {"timeline": timeline_of(self.setup)}
        module = bench_module() + (
            "\nconst data = document.getElementById('toolparse-state');"
            "\nnew Bench(document.getElementById('toolparse-bench'),"
            " JSON.parse(data.textContent), null);\n"
        )
        body = (
            '<div id="toolparse-bench"></div>'
            f'<script type="application/json" id="toolparse-state">{payload_json(state)}</script>'
            f"<noscript>{render_result(self.result)}</noscript>"
        )
        target = Path(path)
        page = render_page("Workbench", body, css=bench_style(), module=module)
        target.write_text(page, encoding="utf-8")
        return target

    def _ipython_display_(self, **kwargs: Any) -> None:
        """Show the static view as an output of its own, then the widget, which hides it."""
        show_both(self._state["static"], self.result, super()._repr_mimebundle_(**kwargs))


def workbench(
    subject: Any, protocol: ProtocolLike = "auto", tools: ToolsLike = None, **options: Any
) -> Workbench:
    """Open a text, a parse, a trial, or the failures of a run on the workbench.

    subject: a text. A ParseResult. A Trial. Trials. Or a Run, whose failures are shown one after
    the other. protocol, tools, options: how a text is read. The options are those of
    `ParseOptions`. Raises BadOptions for another subject.

    >>> import toolparse_lab as tp
    >>> bench = tp.workbench('<tool_call>{"name": "f", "arguments": {}}</tool_call>', "hermes")
    >>> bench.result.calls[0].name
    'f'
    """
    if options and not isinstance(subject, str):
        raise BadOptions(
            "options say how a text is read; this has been read already", got=min(options)
        )
    return Workbench(setups_of(subject, protocol, tools, **options))
