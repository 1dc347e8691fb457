"""Interactive notebook views on anywidget. Nothing here is imported before a view is asked for."""

from __future__ import annotations

from .parse_view import ParseView, export_html

__all__ = ["ParseView", "export_html"]
