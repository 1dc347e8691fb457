"""Pure views of a ParseResult: HTML without JavaScript, and ANSI for terminals.

Everything is escaped here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.late import late_names

if TYPE_CHECKING:
    from .ansi import render_ansi
    from .html import render_diff, render_result
    from .side_by_side import render_side_by_side
    from .templating import render_page

__all__ = ["render_ansi", "render_diff", "render_page", "render_result", "render_side_by_side"]

if not TYPE_CHECKING:
    __getattr__ = late_names(
        __name__,
        {
            "ansi": "render_ansi",
            "html": "render_diff render_result",
            "side_by_side": "render_side_by_side",
            "templating": "render_page",
        },
    )
