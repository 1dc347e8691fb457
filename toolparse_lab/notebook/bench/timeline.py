"""A stream, replayed: the text that each chunk settled, and the text held back behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core.types import CallEnd, Recovered, Retract, Withdrawn
from ...parser.parse import Reader
from ...views.show import shorten, visible
from .setup import Setup

MOST_STEPS = 1_500
"""Chunks of a replay; a longer text comes in larger ones."""
_MOST_CALL = 400  # characters of a call's arguments in an event


def timeline_of(setup: Setup, size: int = 0) -> dict[str, Any]:
    """Return the replay of a text in chunks of `size` characters. 0: as recorded, else one each.

    `ends` are where each chunk ends, in code points. `events` has for each chunk a list of [kind,
    start, end, words]. The replay's last list is that of the end of the text. `settled` is how far
    the events after each chunk reach: the text behind it waits.
    """
    chunks = list(setup.chunks) if not size and "".join(setup.chunks) == setup.raw else []
    is_recorded = bool(chunks)
    if not chunks:
        size = max(size, 1, -(-len(setup.raw) // MOST_STEPS))
        chunks = [setup.raw[i : i + size] for i in range(0, len(setup.raw), size)]
    parser = Reader(setup.protocol, setup.tools, setup.options).stream(setup.request or None)
    ends, settled, events = [], [], []
    at = reach = 0
    for chunk in chunks:
        rows = list(_rows(parser.feed(chunk)))
        at += len(chunk)
        reach = _reach(rows, reach)
        ends.append(at)
        settled.append(reach)
        events.append(rows)
    parser.close()
    last_events = getattr(parser, "last_events", None)
    last = list(_rows(last_events())) if last_events else []
    ends.append(at)
    settled.append(len(setup.raw))
    events.append(last)
    return {
        "size": size,
        "recorded": is_recorded,
        "ends": ends,
        "settled": settled,
        "events": events,
    }


def _reach(rows: Sequence[Sequence[Any]], reach: int) -> int:
    """Return how far the events reach.

    One that takes others back is reached again behind it.
    """
    for _, start, end, _ in rows:
        reach = max(end, start) if end >= 0 else start
    return reach


def _rows(events: Any) -> Iterator[list[Any]]:
    """Yield events as [kind, start, end, words]."""
    for event in events:
        kind = type(event).__name__
        if isinstance(event, Retract):
            yield [kind, event.start, -1, f"all from character {event.start} on is taken back"]
            continue
        span = getattr(event, "span", None)
        if span is None:  # a part of another package's parser
            yield [kind, 0, -1, visible(shorten(str(event), _MOST_CALL))]
            continue
        words = ""
        if isinstance(event, CallEnd | Recovered | Withdrawn):
            words = ", ".join(map(_call_words, event.calls))
        yield [kind, span.start, span.end, words]


def _call_words(call: Any) -> str:
    """Return a call in one line."""
    text = f"{call.name or 'no name'}({call.arguments_json or call.status})"
    return visible(shorten(text, _MOST_CALL))
