"""Answers of Cohere's chat, of both versions, whole and as events."""

from __future__ import annotations

from typing import Any

from ...core.types.call_pieces import label
from ...core.types.call_pieces import member as get
from .assembly import Assembly
from .parts import first_of, take_part
from .shapes import counts_of_usage, items, parts_in, take_own_message

_REASONS = {
    "COMPLETE": "stop", "STOP_SEQUENCE": "stop", "MAX_TOKENS": "length", "TOOL_CALL": "tool_calls",
    "ERROR_TOXIC": "content_filter", "USER_CANCEL": "stop",
}  # fmt: skip
EVENTS = frozenset((
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta",
    "tool-call-start", "tool-call-delta", "tool-call-end", "citation-start", "citation-end",
    "message-end",
))  # fmt: skip


def is_cohere(obj: Any) -> bool:
    """Return True for a whole answer of its chat."""
    if isinstance(get(obj, "generation_id"), str) and isinstance(get(obj, "text"), str):
        return True
    message, reason = get(obj, "message"), label(get(obj, "finish_reason"))
    is_own = reason in _REASONS or get(message, "tool_plan") is not None
    return message is not None and get(message, "content") is not message and is_own


def take_cohere(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole answer of its chat."""
    message = get(obj, "message")
    if message is None:  # version 1: its own calls have parameters
        assembly.say(get(obj, "text"))
        for call in parts_in(get(obj, "tool_calls")):
            if get(call, "name") is None:
                assembly.miss("tool_calls", call)
                continue
            index = assembly.next_index()
            assembly.call(index, name=get(call, "name"), arguments=get(call, "parameters"))
    else:
        take_own_message(message, assembly)
    assembly.choices = 1
    assembly.identify(obj)
    _end(obj, assembly)
    return True


def take_cohere_event(event: Any, assembly: Assembly) -> bool:
    """Take in an event of version 2."""
    assembly.choices = max(assembly.choices, 1)
    kind, delta = get(event, "type"), get(event, "delta")
    message = get(delta, "message")
    if kind == "message-start":
        assembly.identify(event)
    elif kind in ("content-start", "content-delta"):
        content = get(message, "content")
        part = first_of(content, ("thinking",))
        if isinstance(part, str):
            assembly.think(part)
        else:
            # A piece has a type only where it begins.
            take_part(content, assembly, assembly.next_index())
    elif kind == "tool-plan-delta":
        assembly.think(get(message, "tool_plan"))
    elif kind in ("tool-call-start", "tool-call-delta"):
        calls = get(message, "tool_calls")
        call = (items(calls) or [calls])[0]
        function = get(call, "function")
        assembly.call(
            ("call", label(get(event, "index"))),
            id=get(call, "id"),
            name=get(function, "name"),
            arguments=get(function, "arguments"),
        )
    elif kind == "message-end":
        if (error := get(delta, "error")) is not None:
            assembly.fail(error)
        _end(delta, assembly)
    return True


def _end(obj: Any, assembly: Assembly) -> None:
    assembly.finish(get(obj, "finish_reason"), _REASONS)
    tokens = get(get(obj, "usage"), "tokens") or get(get(obj, "meta"), "tokens")
    if tokens is not None:
        assembly.usage = counts_of_usage(get(tokens, "input_tokens"), get(tokens, "output_tokens"))
