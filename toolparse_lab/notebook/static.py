"""A widget's static view as an output of its own, which the live widget hides."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any
from uuid import uuid4

from ..core.types import ParseResult
from ..views import render_result
from ..views.show import visible


def static_id() -> str:
    """Return an id for the element of a static view."""
    return f"toolparse-static-{uuid4().hex}"


def show_both(element_id: str, result: ParseResult, bundle: Any) -> None:
    """Show the static view of a result, then the widget. See `show_html`."""
    show_html(element_id, visible(str(result)), render_result(result), bundle)


def show_html(element_id: str, text: str, html: str, bundle: Any) -> None:
    """Show a static view, then the widget that hides it.

    A saved notebook is read without a kernel: then the static view is the rest, and a bundle that
    held both would show an error in its place. bundle: the return value of the widget's own
    `_repr_mimebundle_`.
    """
    # A notebook has it, other programs need not; its functions have no types.
    display: Callable[..., Any] = import_module("IPython.display").display

    html = f'<div id="{element_id}">{html}</div>'
    display({"text/plain": text, "text/html": html}, raw=True)
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
    if isinstance(data, Mapping):
        live = {kind: part for kind, part in data.items() if kind != "text/html"}
        # Readers without widgets would print this beside the static view.
        display({**live, "text/plain": ""}, metadata, raw=True)
