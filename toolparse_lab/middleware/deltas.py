"""Events of the parser as OpenAI deltas, which add up to the message of the whole answer.

How it works: nothing of the message that went out is taken back, so three things wait. White space
waits for a word or for the end, because between two calls it is not content (`Runs`). Reasoning
waits from the first opener of a call on, because reasoning that was never closed may turn out to
contain calls (`_Thoughts`). A call waits until it is whole, so it is one delta. What can be seen of
it before is not part of the message: a delta `tool_input`, which is for display. Text is final when
the parser gives it out. Each character is looked at once, and once more where an opener may begin
at the end of a piece of reasoning.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ..core.toolspec import ToolSpec
from ..core.types import (
    CallEnd,
    Event,
    Markup,
    ParseOptions,
    ReasoningDelta,
    Recovered,
    Retract,
    Span,
    TextDelta,
    ToolCall,
    Withdrawn,
)
from ..core.values import unescape
from ..formats.base import Protocol
from ..formats.scan import partial_start
from ..parser.tool_input import Part, ToolInputs, whole_input
from .answer import Answer, Runs
from .attempts import Attempts, CallIds, tool_call

Delta: TypeAlias = dict[str, Any]


def deltas_of(answer: Answer, *, inputs: bool = False) -> tuple[Delta, ...]:
    """Return the deltas of a finished answer that goes out at once: reasoning, content, calls.

    inputs: the input of each call is shown before it.
    """
    message = answer.message
    deltas: list[Delta] = [
        {key: message[key]} for key in ("reasoning_content", "content") if message.get(key)
    ]
    for i, call in enumerate(answer.tool_calls):
        if inputs:
            function = call["function"]
            deltas += _shown(whole_input(call["id"], function["name"], function["arguments"]))
        deltas.append({"tool_calls": [{"index": i, **call}]})
    return tuple(deltas)


class Deltas:
    """Deltas of one answer.

    text_of: the text of a span. one_call: only the first call goes out. options: of the parser, by
    which inputs are shown while they are written, None for none.
    """

    def __init__(
        self,
        protocol: Any,
        tools: Iterable[ToolSpec],
        text_of: Callable[[Span], str],
        ids: CallIds,
        attempts: Attempts,
        *,
        one_call: bool = False,
        options: ParseOptions | None = None,
    ) -> None:
        self._text_of = text_of
        self._inputs: ToolInputs | None = None
        if options is not None:
            self._inputs = ToolInputs(protocol, tools, options, text_of, ids.of, ids.forget)
        self._ids = ids
        self._attempts = attempts
        self._runs = Runs()
        heads: tuple[str, ...] = ()
        if isinstance(protocol, Protocol):
            heads = protocol.envelope.heads({tool.name: tool for tool in tools})
        self._thoughts = _Thoughts(heads)
        self._n_calls = 0
        self._most = 1 if one_call else math.inf

    def of(self, events: Iterable[Event]) -> tuple[Delta, ...]:
        """Return the deltas of the next events, neighbours of one kind joined."""
        deltas: list[Delta] = []
        inputs = self._inputs
        for event in events:
            if inputs is not None:
                inputs.note(event)
            if isinstance(event, ReasoningDelta):
                self._runs.cut()
                text = self._text_of(event.span)
                if event.escaped:
                    # A JSON string of reasoning is whole when it comes: no call can begin in it.
                    text = self._thoughts.end() + unescape(text)
                else:
                    text = self._thoughts.add(event.span.start, text)
                _add(deltas, "reasoning_content", text)
            elif isinstance(event, Retract):
                self._thoughts.cut_at(event.start)
                self._drop_inputs(deltas)
            else:
                # Something else follows the reasoning, so it held no call.
                _add(deltas, "reasoning_content", self._thoughts.end())
                self._add_event(deltas, event)

        if inputs is not None and self._n_calls < self._most:
            deltas += _shown(inputs.show())
        return tuple(deltas)

    def end(self) -> tuple[Delta, ...]:
        """Return the deltas of the text that waited until the end."""
        deltas: list[Delta] = []
        _add(deltas, "reasoning_content", self._thoughts.end())
        _add(deltas, "content", self._runs.end())
        self._drop_inputs(deltas)
        return tuple(deltas)

    def _add_event(self, deltas: list[Delta], event: Event) -> None:
        if isinstance(event, TextDelta):
            text = self._text_of(event.span)
            _add(deltas, "content", self._runs.add(unescape(text) if event.escaped else text))
        elif isinstance(event, Markup):
            self._runs.cut()
        elif isinstance(event, (CallEnd, Recovered)) and event.calls:
            self._add_calls(deltas, event.calls)
        elif isinstance(event, Withdrawn):
            self._withdraw(deltas, event.calls)

    def _add_calls(self, deltas: list[Delta], calls: tuple[ToolCall, ...]) -> None:
        # The calls of one body, or its text where none of them can be made.
        usable = self._attempts.usable(calls)
        if not usable:
            self._drop_inputs(deltas, calls)
            _add(deltas, "content", self._runs.add(self._text_of(calls[0].segment.span)))
            return
        self._runs.cut()
        for call in usable:
            if self._n_calls < self._most:
                raw = self._text_of(call.segment.span)
                body = {"index": self._n_calls, **tool_call(call, self._ids, raw)}
                if self._inputs is not None:
                    deltas += _shown(self._inputs.of_call(call, **body["function"]))
                    body["id"] = self._ids.of(call)
                deltas.append({"tool_calls": [body]})
                self._n_calls += 1
        self._drop_inputs(deltas, calls)

    def _withdraw(self, deltas: list[Delta], calls: tuple[ToolCall, ...]) -> None:
        # Calls were thoughts, and their texts are content of the message. The deltas of the calls
        # themselves went out long ago; the answer has none of them.
        segments = {call.segment_index: call.segment for call in calls}
        for segment in segments.values():
            _add(deltas, "content", self._runs.add(self._text_of(segment.span)))
        if self._inputs is not None:
            deltas += _shown(self._inputs.withdrawn(calls))

    def _drop_inputs(self, deltas: list[Delta], calls: Iterable[ToolCall] = ()) -> None:
        if self._inputs is not None:
            deltas += _shown(self._inputs.drop(calls))


def _shown(parts: Iterable[Part]) -> list[Delta]:
    return [{"tool_input": part} for part in parts]


def _add(deltas: list[Delta], key: str, text: str) -> None:
    # To the last delta where that has the same key.
    if not text:
        return
    if deltas and key in deltas[-1]:
        deltas[-1][key] += text
    else:
        deltas.append({key: text})


class _Thoughts:
    # State: `_waiting` is the text that waits, `_start` its offset in the raw text, `_opened`
    # whether it begins with a whole opener. Then nothing goes out before `end` or `cut_at`.

    def __init__(self, heads: tuple[str, ...]) -> None:
        self._heads = heads
        self._waiting: list[str] = []
        self._start = 0
        self._opened = False

    def add(self, start: int, text: str) -> str:
        if not self._waiting:
            self._start = start
        self._waiting.append(text)
        if self._opened:
            return ""
        text = "".join(self._waiting)
        offsets = [offset for head in self._heads if (offset := text.find(head)) >= 0]
        at = min(offsets, default=-1)
        self._opened = at >= 0
        if at < 0:
            # The end of the text may be the beginning of an opener.
            at = partial_start(text, self._heads) if self._heads else len(text)
        self._waiting = [text[at:]] if at < len(text) else []
        self._start += at
        return text[:at]

    def cut_at(self, offset: int) -> None:
        # A call was read at `offset` of the raw text after all. Text before it still goes out.
        if self._waiting:
            self._waiting = ["".join(self._waiting)[: max(0, offset - self._start)]]

    def end(self) -> str:
        # Called at the end, and before anything that is not reasoning.
        text = "".join(self._waiting)
        self._waiting.clear()
        self._opened = False
        return text
