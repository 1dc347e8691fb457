"""A griffe extension: examples in docstrings become code blocks.

A docstring's example begins with `>>>` and ends with an empty line, as doctest reads it. Markdown
would take the marks for quotations.
"""

from __future__ import annotations

from typing import Any

import griffe


def fenced(text: str) -> str:
    """Return a docstring with a fence around each of its examples.

    >>> fenced("Add.\\n\\n>>> 1 + 1\\n2")
    'Add.\\n\\n```pycon\\n>>> 1 + 1\\n2\\n```'
    """
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        if not inside and line.lstrip().startswith(">>> "):
            lines.append("```pycon")
            inside = True
        elif inside and not line.strip():
            lines.append("```")
            inside = False
        lines.append(line)
    return "\n".join([*lines, "```"] if inside else lines)


class DoctestFences(griffe.Extension):
    """Fence the examples of every object that is loaded."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of one object; called once it is loaded with its members."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
