"""The parse view as one HTML file, for which neither a notebook nor anywidget is needed."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from ..core.errors import BadOptions
from ..core.types import ParseResult
from ..views import render_page, render_result
from .payload import payload_json, payload_of


def checked(result: Any) -> ParseResult:
    """Return a ParseResult as it is. Raises BadOptions for another subject."""
    if not isinstance(result, ParseResult):
        raise BadOptions("the parse view shows a ParseResult", got=type(result).__name__)
    return result


def export_html(result: ParseResult, path: str | Path, *, title: str = "Parse view") -> Path:
    """Write the interactive view to one HTML file, and return its path.

    The file works from disk without network.

    The file runs only the front-end module it carries. Without JavaScript it shows the static view.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.notebook import export_html
    >>> export_html(tp.parse("Hi", "hermes"), tempfile.mkdtemp() + "/view.html").name
    'view.html'
    """
    data = payload_json(payload_of(checked(result)))
    # The front end of the notebook, with two lines that mount it where there is no notebook.
    module = _source("parse_view.js") + (
        "\nconst data = document.getElementById('toolparse-payload');"
        "\nmount(document.getElementById('toolparse-view'), JSON.parse(data.textContent));\n"
    )
    body = (
        '<div id="toolparse-view"></div>'
        f'<script type="application/json" id="toolparse-payload">{data}</script>'
        f"<noscript>{render_result(result)}</noscript>"
    )
    target = Path(path)
    page = render_page(title, body, css=_source("parse_view.css"), module=module)
    target.write_text(page, encoding="utf-8")
    return target


def _source(name: str) -> str:
    return files(__package__).joinpath(name).read_text("utf-8")
