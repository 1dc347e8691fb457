"""Interactive notebook views on anywidget.

Nothing here is imported before a view is asked for, and anywidget only for a live one.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .page import export_html

if TYPE_CHECKING:
    from .parse_view import CoercionDiff, ParseView
else:

    def __getattr__(name: str) -> Any:
        """Return a widget, whose module needs the extra `jupyter`."""
        if name in ("CoercionDiff", "ParseView"):
            return getattr(importlib.import_module("toolparse_lab.notebook.parse_view"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# `widgets.browser.Browser` needs pandas, which a parse view does not.
__all__ = ["CoercionDiff", "ParseView", "export_html"]
