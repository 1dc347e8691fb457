"""Pure views of a ParseResult: HTML without JavaScript, and ANSI for terminals.

Everything is escaped here.
"""

from __future__ import annotations

from .ansi import render_ansi
from .html import render_diff, render_result
from .side_by_side import render_side_by_side
from .templating import render_page

__all__ = ["render_ansi", "render_diff", "render_page", "render_result", "render_side_by_side"]
