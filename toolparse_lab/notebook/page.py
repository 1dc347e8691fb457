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
from ..core.files import replace_file
from ..core.types import ParseResult
from ..views import render_page, render_result
from ..views.html import standalone


def checked(result: Any) -> ParseResult:
    """Return a ParseResult as it is. Raises BadOptions for another subject."""
    if not isinstance(result, ParseResult):
        raise BadOptions("the parse view shows a ParseResult", got=type(result).__name__)
    return result


def export_html(result: ParseResult, path: str | Path, *, title: str = "Parse view") -> Path:
    """Write the interactive view to one HTML file and return its path.

    The file works from disk and without network, since it carries its front end. Without JavaScript
    it shows the same, its stages folded.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.notebook import export_html
    >>> export_html(tp.parse("Hi", "hermes"), tempfile.mkdtemp() + "/view.html").name
    'view.html'
    """
    return write_view(path, title, render_result(checked(result)))


def write_view(path: str | Path, title: str, html: str, about: str = "") -> Path:
    """Write a view to one HTML file, in which its front end makes tabs and links of it, and return
    its path.
    """
    module = front() + (
        '\nconst view = document.getElementById("view");\nmount(view, { html: view.innerHTML });\n'
        'keepTheme(document.querySelector("[data-themes]"));\n'
    )
    page = render_page(title, f'<div id="view">{html}</div>', about, module=module)
    return replace_file(path, [page])


def source(name: str) -> str:
    """Return a file of this folder."""
    return files(__package__).joinpath(name).read_text("utf-8")


def front() -> str:
    """Return the module of the front end, one for all views."""
    return source("screens.js")


def as_widget(html: str) -> str:
    """Return a part as a widget has it. JupyterLab leaves the keys to it for the attribute."""
    return f'<div class="tpx widget" data-lm-suppress-shortcuts="true">{html}</div>'


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

    html = f'<div id="{element_id}">{standalone(html)}</div>'
    display({"text/plain": text, "text/html": html}, raw=True)
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    if isinstance(data, Mapping):
        live = {kind: part for kind, part in data.items() if kind != "text/html"}
        # Readers without widgets would print this next to the static view.
        display({**live, "text/plain": ""}, metadata, raw=True)
