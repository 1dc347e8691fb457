"""Markdown tables of the pages that are made from code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def write_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A Markdown table, line by line."""
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(c.replace("|", "\\|") for c in row) + " |" for row in cells]
