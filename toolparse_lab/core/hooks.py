"""The one place where a low layer reaches upward: rich display, `.debug()`, `.frame()`, the pages
of a report's figures, a middleware's calls of litellm.

The modules named here are in rooms above the caller. They are imported when first asked for, never
at import time.
"""

from __future__ import annotations

import importlib
from typing import Any

# Module below the package -> its functions, each of a name of its own.
UPWARD = {
    "evals.reports.pages.charts": ("figure_chart",),
    "evals.reports.pages.files": ("figure_html", "figure_markdown", "figure_text", "save_figure"),
    "formats.spec": ("from_spec",),
    "formats.surface": ("format_tool_call", "format_tool_response", "format_tools"),
    "integrations.litellm_bridge.calls": ("acompletion_with", "completion_with"),
    "notebook.display": ("browse", "debug", "frame", "html", "text", "workbench"),
}
_MODULES = {name: module for module, names in UPWARD.items() for name in names}


def call(name: str, subject: Any, *arguments: Any, **options: Any) -> Any:
    """Return the function of that name applied to `subject`."""
    module = importlib.import_module(f"toolparse_lab.{_MODULES[name]}")
    return getattr(module, name)(subject, *arguments, **options)


def mimebundle(subject: Any) -> dict[str, str]:
    """text/plain and text/html only: no widget model, so that it reads the same with no kernel."""
    return {"text/plain": call("text", subject), "text/html": call("html", subject)}
