"""User texts of a conversation without the delimiters of the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..protocols.neutral import neutral


def without_delimiters(messages: Any, delimiters: tuple[str, ...]) -> Any:
    """The messages with the texts of users neutralised; results are written by the protocol.

    messages: as the caller gave them, not checked yet; what is no list of messages comes back as it
    is, and the caller's objects are not changed.
    """
    if not delimiters or not isinstance(messages, (list, tuple)):
        return messages
    out = [_without(message, delimiters) for message in messages]
    if all(a is b for a, b in zip(out, messages, strict=True)):
        return messages
    return out


def _without(message: Any, delimiters: tuple[str, ...]) -> Any:
    """A message, or a copy with its texts neutralised where a user said it."""
    if not isinstance(message, Mapping):
        dump = getattr(message, "model_dump", None)
        if not callable(dump) or getattr(message, "role", None) != "user":
            return message
        message = dump()
    if message.get("role") != "user":
        return message
    content = message.get("content")
    clean: Any = content
    if isinstance(content, str):
        clean = neutral(content, delimiters)
    elif isinstance(content, (list, tuple)):
        clean = type(content)(_part(part, delimiters) for part in content)
    return message if clean == content else {**message, "content": clean}


def _part(part: Any, delimiters: tuple[str, ...]) -> Any:
    """A part of a content; only texts are changed."""
    if isinstance(part, str):
        return neutral(part, delimiters)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": neutral(part["text"], delimiters)}
    return part
