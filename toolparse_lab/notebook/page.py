"""Views as HTML files, for which neither a notebook nor anywidget is needed, and the static view
that a widget hides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any
from uuid import uuid4

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
    """Write the interactive view to one HTML file and return its path.

    The file works from disk and without network, since it carries its front end. Without JavaScript
    it shows the static view.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.notebook import export_html
    >>> export_html(tp.parse("Hi", "hermes"), tempfile.mkdtemp() + "/view.html").name
    'view.html'
    """
    payload = payload_of(checked(result))
    html = render_result(result)
    css = source("parse_view.css")
    return write_view(path, title, payload, html, front("parse_view.js"), css)


def write_view(
    path: str | Path,
    title: str,
    payload: dict[str, Any],
    html: str,
    module: str,
    css: str,
    *,
    mount: str = "mount(document.getElementById('toolparse-view'), {data});",
    ids: tuple[str, str] = ("toolparse-view", "toolparse-payload"),
) -> Path:
    """Write a view to one HTML file and return its path.

    html: the static view. module: the front end of the notebook. mount: the line that mounts it
    where there is no notebook. ids: of the elements of the view and of its data.
    """
    view, data = ids
    module += f"\nconst data = document.getElementById('{data}');\n"
    module += mount.format(data="JSON.parse(data.textContent)") + "\n"
    body = (
        f'<div id="{view}"></div>'
        f'<script type="application/json" id="{data}">{payload_json(payload)}</script>'
        f"<noscript>{html}</noscript>"
    )
    target = Path(path)
    target.write_text(render_page(title, body, css=css, module=module), encoding="utf-8")
    return target


def source(name: str) -> str:
    """Return a file of a front end, by its path in this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


def front(name: str) -> str:
    """Return the module of a front end, what all of them share first."""
    return source("dom.js") + source(name)


def static_id() -> str:
    """Return an id for the element of a static view."""
    return f"toolparse-static-{uuid4().hex}"


def show_html(element_id: str, text: str, html: str, bundle: Any) -> None:
    """Show a static view as an output of its own, then the widget that hides it.

    A saved notebook is read without a kernel: then the static view remains, and a bundle of both
    would show an error in its place. bundle: the return value of the widget's own
    `_repr_mimebundle_`.
    """
    # A notebook has it, other programs need not; its functions have no types.
    display: Callable[..., Any] = import_module("IPython.display").display

    html = f'<div id="{element_id}">{html}</div>'
    display({"text/plain": text, "text/html": html}, raw=True)
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    if isinstance(data, Mapping):
        live = {kind: part for kind, part in data.items() if kind != "text/html"}
        # Readers without widgets would print this next to the static view.
        display({**live, "text/plain": ""}, metadata, raw=True)
