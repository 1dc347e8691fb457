"""Interactive notebook views on anywidget.

Nothing here is imported before a view is asked for.
"""

from __future__ import annotations

from .parse_view import ParseView, export_html

# `widgets.browser.Browser` needs pandas, which a parse view does not.
__all__ = ["ParseView", "export_html"]
