"""Server-sent events: the text that a streaming endpoint sends over HTTP, as its JSON messages.

Nothing here raises on account of the text. A line that ended early, an event that is not JSON,
comments and unknown fields are part of real dumps. The unreadable part counts, so that no one takes
the rest for the whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core.values import read_strict

# How a dump is read. It is cut into lines at any of the three line ends of the format; an empty
# line ends an event, whose `data:` lines are joined. Real servers break the format in one way above
# all: they leave out the empty line. So a `data:` line that begins a JSON object also begins an
# event, where the lines before it are one whole object already. Each line is parsed at most twice.

_BREAK = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"(?:data|event|id|retry)(?::|\Z)|:")
_FIRST = re.compile(r"\ufeff?\s*(?:(?:data|event|id|retry):|:)")
_FIELDS = ("data:", "event:", "id:", "retry:")
# Members by which the messages of chat streams are known.
_CHAT_MEMBERS = ("choices", "type", "error", "output")
DONE = "[DONE]"


@dataclass(frozen=True, slots=True)
class Events:
    """The content of an event stream.

    messages: the JSON objects of its events, in order. done: whether the end mark `[DONE]` was
    seen. unreadable: data that is not a JSON object, as it stands there. One that ended early at
    the very end is among them.
    """

    messages: tuple[Any, ...]
    done: bool = False
    unreadable: tuple[str, ...] = ()


def is_event_stream(text: str) -> bool:
    """Return True for a dump of an event stream, False for a model's words about one.

    Every line must be a line of the event stream format (`data:`, `event:`, `id:`, `retry:`, a
    comment that begins with a colon, or empty, the last one may be cut off), and the first event's
    data must be `[DONE]` or a JSON object with one of the members by which chat streams are known:
    `choices`, `type`, `error` or `output`. Prose before, between or after the lines makes it text.

    >>> is_event_stream('data: {"choices": []}\\n\\ndata: [DONE]\\n\\n')
    True
    >>> is_event_stream('A stream looks like this:\\ndata: {"choices": []}')
    False

    It has to be strict: a text taken for a stream by mistake loses everything the model wrote
    around it.
    """
    if not _FIRST.match(text):
        return False
    lines = _BREAK.split(text.removeprefix("\ufeff"))
    # White space alone counts as empty, as servers behind proxies write it. The last line may have
    # ended anywhere, also in the middle of a field's name.
    odd = next((i for i, line in enumerate(lines) if line.strip() and not _LINE.match(line)), None)
    if odd is not None:
        is_last = odd == len(lines) - 1
        if not is_last or not any(name.startswith(lines[odd]) for name in _FIELDS):
            return False

    # The first event decides; a dump of comments alone has none, and tells nothing.
    first = next(iter(_data_of_events(lines)), None)
    if first is None:
        return False
    if first.strip() == DONE:
        return True
    message = _read(first)
    return message is not None and any(name in message for name in _CHAT_MEMBERS)


def read_events(text: str) -> Events:
    """Return the messages of an event stream. Lines of no known form are skipped."""
    messages: list[Mapping[str, Any]] = []
    unreadable: list[str] = []
    done = False
    # What comes after the end mark is read too: joined dumps have several of them.
    for data in _data_of_events(_BREAK.split(text.removeprefix("\ufeff"))):
        if data.strip() == DONE:
            done = True
            continue
        message = _read(data)
        if message is None:
            unreadable.append(data)
        else:
            messages.append(message)
    return Events(tuple(messages), done, tuple(unreadable))


def _data_of_events(lines: list[str]) -> list[str]:
    # Some servers leave out the empty line between two events.
    events: list[str] = []
    parts: list[str] = []

    def end_event() -> None:
        if parts:
            events.append("\n".join(parts))
            parts.clear()

    for line in lines:
        if not line.strip():
            end_event()
            continue
        name, _, value = line.partition(":")
        if name == "data":
            value = value.removeprefix(" ")
            # An event of its own although no empty line ended the one before? Data of one event
            # may be spread over several lines, which must not be torn apart: so the lines before
            # have to be a whole JSON object.
            begins = value.lstrip()[:1] == "{" or value.strip() == DONE
            if parts and begins and _read("\n".join(parts)) is not None:
                end_event()
            parts.append(value)
    end_event()
    return events


def _read(data: str) -> Mapping[str, Any] | None:
    # Only an object can be a message of a chat stream.
    try:
        value = read_strict(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
