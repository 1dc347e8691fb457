"""`Source`: a place in the model's request, where a value of its answer stands already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from .spans import Span

# Role of a message -> what a sentence calls it.
_WORDS = {
    "user": "user message",
    "tool": "tool result",
    "function": "tool result",
    "document": "document",
    "system": "system message",
    "developer": "system message",
    "assistant": "assistant message",
}


@dataclass(frozen=True, slots=True)
class Source:
    """A place in the request: the message's role and index, counted from 0, and the span in it.

    The span counts in the message's text, its parts joined by line breaks. Documents beside the
    messages have the role `document` and an index of their own.
    """

    role: str
    message: int
    span: Span

    def __str__(self) -> str:
        return f"{_WORDS.get(self.role, 'message of ' + repr(self.role))} {self.message}"


Sources: TypeAlias = Mapping[str, tuple[Source, ...]]
"""JSON Pointer into the arguments -> places in the request; '' is the whole call"""


def sources_out(sources: Sources) -> list[list[Any]]:
    """[path, role, message, start, end] for each place, in the table's order."""
    return [
        [path, s.role, s.message, s.span.start, s.span.end]
        for path, places in sources.items()
        for s in places
    ]


def sources_in(rows: Iterable[Any]) -> dict[str, tuple[Source, ...]]:
    """Return the table of rows that `sources_out` wrote."""
    table: dict[str, tuple[Source, ...]] = {}
    for path, role, message, start, end in rows:
        table[path] = (*table.get(path, ()), Source(role, message, Span(start, end)))
    return table
