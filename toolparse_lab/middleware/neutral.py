"""Texts of users and documents without the delimiters of the format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..formats.neutral import neutral
from ..parser.echoes import MOST_NESTED, NO_TEXT


def without_delimiters(messages: Any, delimiters: tuple[str, ...]) -> Any:
    """Return the messages with the texts of users neutralised.

    Results are written by the protocol.

    messages: as the caller gave them, not checked yet. Anything but a list of messages comes back
    as it is, and the caller's objects are not changed.
    """
    if not delimiters or not isinstance(messages, (list, tuple)):
        return messages
    out = [_without(message, delimiters) for message in messages]
    if all(a is b for a, b in zip(out, messages, strict=True)):
        return messages
    return out


def _without(message: Any, delimiters: tuple[str, ...]) -> Any:
    """Return a message, or a copy with its texts neutralised where a user said it."""
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


def documents_without(documents: Any, delimiters: tuple[str, ...]) -> Any:
    """Return the documents of a request with their texts neutralised, whatever their shape.

    documents: texts, or mappings with texts at any place in them. The caller's objects are not
    changed.
    """
    return _clean(documents, delimiters, 0) if delimiters else documents


def _part(part: Any, delimiters: tuple[str, ...]) -> Any:
    """Return a part of a content, documents included.

    Images and the like stay as they are.
    """
    kind = part.get("type") if isinstance(part, Mapping) else None
    if isinstance(kind, str) and kind.startswith(NO_TEXT):
        return part
    return _clean(part, delimiters, 0)


def _clean(value: Any, delimiters: tuple[str, ...], depth: int) -> Any:
    """Return a value with all texts in it neutralised.

    A value nested too deep is no text of a prompt.
    """
    if isinstance(value, str):
        return neutral(value, delimiters)
    if depth > MOST_NESTED:
        return value
    if isinstance(value, Mapping):
        return {key: _clean(member, delimiters, depth + 1) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_clean(item, delimiters, depth + 1) for item in value)
    return value
