"""Server-sent events: the text that a streaming endpoint sends over HTTP, as its JSON messages.

Nothing here raises on account of the text. A line that was cut off, an event that is no JSON, comments and unknown
fields are part of real dumps; what could not be read is counted, so that nobody takes the rest for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..values import read_strict

_BREAK = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"(?:data|event|id|retry)(?::|\Z)|:")
_FIRST = re.compile(r"\ufeff?\s*(?:(?:data|event|id|retry):|:)")
_FIELDS = ("data:", "event:", "id:", "retry:")
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Events:
    """What an event stream says.

    messages: the JSON objects of its events, in order. done: whether the end mark `[DONE]` was seen. unreadable: data
    that is no JSON object, as it stands there; one that was cut off at the very end is among them.
    """

    messages: tuple[Mapping[str, Any], ...]
    done: bool
    unreadable: tuple[str, ...]


def is_event_stream(text: str) -> bool:
    """Whether a text is a dump of an event stream and not a model's words about one.

    Every line must be a line of the event stream format (`data:`, `event:`, `id:`, `retry:`, a comment that begins
    with a colon, or empty; the last one may be cut off), and the first event's data must be `[DONE]` or a JSON object
    with one of the members by which chat streams are known: `choices`, `type`, `error` or `output`. Prose before,
    between or behind the lines makes it text.

    >>> is_event_stream('data: {"choices": []}\\n\\ndata: [DONE]\\n\\n')
    True
    >>> is_event_stream('A stream looks like this:\\ndata: {"choices": []}')
    False
    """
    if not _FIRST.match(text):
        return False
    lines = _BREAK.split(text.removeprefix("\ufeff"))
    *whole, last = lines
    if not all(not line.strip() or _LINE.match(line) for line in whole):
        return False
    if last.strip() and not _LINE.match(last) and not any(f.startswith(last) for f in _FIELDS):
        return False
    for data in _datas(lines):
        if data.strip() == DONE:
            return True
        message = _read(data)
        return message is not None and any(k in message for k in ("choices", "type", "error", "output"))
    return False


def read_events(text: str) -> Events:
    """The messages of an event stream; see `Events`."""
    messages: list[Mapping[str, Any]] = []
    unreadable: list[str] = []
    done = False
    for data in _datas(_BREAK.split(text.removeprefix("\ufeff"))):
        if data.strip() == DONE:
            done = True
            continue
        message = _read(data)
        if message is None:
            unreadable.append(data)
        else:
            messages.append(message)
    return Events(tuple(messages), done, tuple(unreadable))


def _datas(lines: list[str]) -> list[str]:
    """The data of each event: its `data:` lines joined. Some servers leave out the empty line between two events."""
    found: list[str] = []
    parts: list[str] = []
    for line in lines:
        if not line.strip():
            if parts:
                found.append("\n".join(parts))
                parts = []
            continue
        name, _, value = line.partition(":")
        if name != "data":
            continue
        value = value.removeprefix(" ")
        if parts and (value.lstrip()[:1] == "{" or value.strip() == DONE) and _read("\n".join(parts)) is not None:
            found.append("\n".join(parts))
            parts = []
        parts.append(value)
    if parts:
        found.append("\n".join(parts))
    return found


def _read(data: str) -> Mapping[str, Any] | None:
    """A JSON object of any depth, None for everything else."""
    try:
        value = read_strict(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
