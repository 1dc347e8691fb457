"""The calls of an answer that become tool calls of its message, in what form and with which ids.

A call that is `ok` always does. A call of a tool that was not offered and an unreadable one
are attempts that failed: they stay text, or are handed on as calls, so that a program that only
looks at tool calls learns of them and can let the model try again.
"""

# How a broken call is kept from running. What is handed on as its arguments is the text of the
# attempt, and that must never be read as arguments after all: some programs complete JSON that was
# cut off, or take what comes before a mistake. No reader of JSON accepts a text whose first
# character begins no JSON value, whatever follows, so where the attempt begins like JSON a word is
# put in front of it. Echoes and calls inside other calls are readable and not the model's to make;
# they are never handed on.

from __future__ import annotations

import os
import random
import string
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from ..core.types import ToolCall

UnknownTools: TypeAlias = Literal["text", "call"]
BrokenCalls: TypeAlias = Literal["text", "call"]

UNREADABLE = "unreadable_call"  # the name of a call that names no tool

_MARK = "unreadable: "
_BEGINS_NO_JSON = "<@*|#"


class Attempts(NamedTuple):
    """What becomes of attempts that failed: they are 'text', or a 'call' like others.

    unknown_tools: calls of tools that were not offered. broken_calls: calls that are unreadable
    or cut off, and those of tools that were not offered too.
    """

    unknown_tools: UnknownTools = "text"
    broken_calls: BrokenCalls = "text"

    @property
    def hands_on_unknown(self) -> bool:
        return "call" in self

    @property
    def hands_on_broken(self) -> bool:
        return self.broken_calls == "call"

    def usable(self, calls: Iterable[ToolCall]) -> list[ToolCall]:
        """Return those of one answer's or body's calls that become tool calls of the message."""
        usable: list[ToolCall] = []
        segments: set[int] = set()
        for call in calls:
            if call.status == "ok" or (call.status == "unknown_tool" and self.hands_on_unknown):
                usable.append(call)
            # The text of a body is handed on once, however many calls of it are broken.
            elif self.hands_on_broken and is_broken(call) and call.segment_index not in segments:
                segments.add(call.segment_index)
                usable.append(call)
        return usable


ALL_TEXT = Attempts()  # attempts that failed stay text


def is_broken(call: ToolCall) -> bool:
    return call.status in ("truncated", "undecodable")


def tool_call(call: ToolCall, ids: CallIds, raw: str) -> dict[str, Any]:
    """Return a call in OpenAI shape, its arguments as the canonical JSON text of the parse.

    raw: the text of the call's segment, which is the arguments of a broken call.
    """
    if is_broken(call):
        return _shape(ids.of(call), call.name or UNREADABLE, unreadable_arguments(raw))
    return _shape(ids.of(call), call.name, call.arguments_json)


def unreadable_call(name: str | None, raw: str) -> dict[str, Any]:
    """Return an answer that should have been a call and is not, as a call in OpenAI shape.

    name: of the tool that had to be called, None if it could be any. raw: the answer's text.
    """
    return _shape(new_call_id(), name or UNREADABLE, unreadable_arguments(raw))


def unreadable_arguments(raw: str) -> str:
    """Return the text of an attempt as arguments that no reader of JSON accepts.

    >>> unreadable_arguments("<tool_call>{"), unreadable_arguments('{"city": "Os')
    ('<tool_call>{', 'unreadable: {"city": "Os')
    """
    text = raw.lstrip()
    return text if text and text[0] in _BEGINS_NO_JSON else _MARK + text


def attempt_of(arguments: Any) -> str | None:
    """Return the text of an attempt from the arguments that it was handed on as.

    None for others.

    >>> attempt_of(unreadable_arguments('{"city": "Os')), attempt_of('{"city": "Oslo"}')
    ('{"city": "Os', None)
    """
    if not isinstance(arguments, str) or not arguments:
        return None
    if arguments.startswith(_MARK):
        return arguments.removeprefix(_MARK)
    return arguments if arguments[0] in _BEGINS_NO_JSON else None


def _shape(call_id: str, name: str, arguments: str) -> dict[str, Mapping[str, Any] | str]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# Transport ids are made where a message is rendered; the parser itself makes none.

_ALPHABET = string.ascii_letters + string.digits
# One of them for every byte: the ids come from one look at the random bits instead of 24.
_LETTERS = bytes(ord(_ALPHABET[i % len(_ALPHABET)]) for i in range(256))

# A generator of our own, because a program may set the seed of Python's; ids must differ, but
# nothing depends on their being hard to guess.
_DICE = random.Random()  # noqa: S311
# Two processes that share its state would give the same ids.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_DICE.seed)


def new_call_id() -> str:
    """Return a new id: `call_` and 24 letters and digits."""
    return "call_" + _DICE.getrandbits(192).to_bytes(24, "little").translate(_LETTERS).decode()


class CallIds:
    """The ids of one answer's calls: the same one each time a call's id is asked for.

    An id that the text carries is used where it is the first call with it, otherwise a new one is
    made.
    """

    def __init__(self) -> None:
        self._by_index: dict[int, str] = {}

    def of(self, call: ToolCall) -> str:
        """Return the id of a call of the one answer that this object is for."""
        if call.index not in self._by_index:
            wire = call.wire_id
            # Models repeat ids, but a result must name exactly one call.
            if not wire or wire in self._by_index.values():
                wire = new_call_id()
            # An answer may be read twice at the same time; both readings get the first one's id.
            self._by_index.setdefault(call.index, wire)
        return self._by_index[call.index]

    def forget(self, index: int) -> None:
        """Let the call of an index have another id than the one that was announced for it."""
        self._by_index.pop(index, None)
