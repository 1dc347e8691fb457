"""`AnswerStream`: an answer that comes in pieces, and its deltas in OpenAI's shape, which add up to
the message of the whole answer.
"""

# How it works: nothing of the message that went out is taken back, so three things wait. White
# space waits for a word or for the end, because between two calls it is not content (`Runs`).
# Reasoning waits from the first opener of a call on, because reasoning that was never closed may
# turn out to contain calls (`_Thoughts`). A call waits for the end of the answer, because a closing
# think tag, or the words after it, may show that it was only a thought or an example. What can be
# seen of it before is not part of the message: deltas `tool_input`, which are for display, and of
# which the last waits as well. Each character is looked at once, and once more where an opener may
# begin at the end of a piece of reasoning.

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import TYPE_CHECKING, Any, TypeAlias

from ..core.errors import ParserClosed
from ..core.types import (
    CallEnd,
    Event,
    Markup,
    ParseResult,
    ReasoningDelta,
    Recovered,
    Retract,
    TextDelta,
    ToolCall,
    Withdrawn,
)
from ..core.values import unescape
from ..entry.parse import with_lost_calls
from ..formats.base import Protocol
from ..formats.scan import partial_start
from ..parser.engine import StreamParser
from .answer import Answer, Runs, answer_of, passed_through
from .attempts import CallIds, tool_call
from .content_parts import Part, ToolInputs, whole_input
from .debug import debug_level, log_answer, log_out, log_raw
from .turn import AnswerReading, Turn

if TYPE_CHECKING:
    from ..entry.foreign.parser import ForeignParser

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
    """Deltas of one answer. inputs: those of calls are shown while they are written."""

    def __init__(
        self,
        reading: AnswerReading,
        turn: Turn,
        parser: StreamParser | ForeignParser,
        ids: CallIds,
        *,
        inputs: bool,
    ) -> None:
        protocol, tools = reading.protocol, turn.tools
        self._text_of = parser.text_of
        self._inputs: ToolInputs | None = None
        if inputs:
            self._inputs = ToolInputs(
                protocol, tools, parser.options, parser.text_of, ids.of, ids.forget
            )
        self._ids = ids
        self._attempts = reading.attempts
        self._runs = Runs()
        heads: tuple[str, ...] = ()
        if isinstance(protocol, Protocol):
            heads = protocol.envelope.heads({tool.name: tool for tool in tools})
        self._thoughts = _Thoughts(heads)
        self.calls: list[ToolCall] = []  # those of the message so far, which wait for the end
        self._most = 1 if turn.one_call else None

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
                if isinstance(event, TextDelta):
                    text = self._text_of(event.span)
                    text = unescape(text) if event.escaped else text
                    _add(deltas, "content", self._runs.add(text))
                elif isinstance(event, Markup):
                    self._runs.cut()
                elif isinstance(event, (CallEnd, Recovered)) and event.calls:
                    self._add_calls(deltas, event.calls)
                elif isinstance(event, Withdrawn):
                    # Calls were thoughts, or only shown, and their texts are content.
                    segments = {call.segment_index: call.segment for call in event.calls}
                    for segment in segments.values():
                        _add(deltas, "content", self._runs.add(self._text_of(segment.span)))
                    withdrawn = {call.index for call in event.calls}
                    self.calls = [call for call in self.calls if call.index not in withdrawn]
                    self._drop_inputs(deltas, event.calls)

        if inputs is not None and (self._most is None or len(self.calls) < self._most):
            deltas += _shown(inputs.show())
        return tuple(deltas)

    def end(self) -> tuple[Delta, ...]:
        """Return the deltas of the text and the calls that waited until the end."""
        deltas: list[Delta] = []
        _add(deltas, "reasoning_content", self._thoughts.end())
        _add(deltas, "content", self._runs.end())
        for index, call in enumerate(self.calls[: self._most]):
            raw = self._text_of(call.segment.span)
            body = {"index": index, **tool_call(call, self._ids, raw)}
            if self._inputs is not None:
                deltas += _shown(self._inputs.of_call(call, **body["function"]))
                body["id"] = self._ids.of(call)
            deltas.append({"tool_calls": [body]})
        self._drop_inputs(deltas, self.calls)
        return tuple(deltas)

    def _add_calls(self, deltas: list[Delta], calls: tuple[ToolCall, ...]) -> None:
        # The calls of one body, or its text where none of them can be made.
        usable = self._attempts.usable(calls)
        if usable:
            self._runs.cut()
            self.calls += usable
        else:
            _add(deltas, "content", self._runs.add(self._text_of(calls[0].segment.span)))
        made = {call.index for call in usable}
        self._drop_inputs(deltas, [call for call in calls if call.index not in made])

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
    # Reasoning that waits, because a call may begin in it.
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


class AnswerStream:
    """An answer that comes in pieces: feed it texts of any size, then close it.

    The contents of all deltas make the message's content, their tool calls its tool calls. Nothing
    of these is taken back, because calls come at the end. A delta `tool_input` shows the input of a
    call that is still written. Never execute it: the call follows in `tool_calls`, or a part
    tool-input-error takes the input back. An answer that must be a call, or has a format of the
    caller's own, says nothing before its end.

    >>> from toolparse_lab import hermes_tool_middleware as middleware
    >>> tools = [{"name": "f"}]
    >>> question = [{"role": "user", "content": "Hi"}]
    >>> turn = middleware.transform_params({"messages": question, "tools": tools})
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> stream = middleware.wrap_stream(turn)
    >>> deltas = [*stream.feed(text[:20]), *stream.feed(text[20:])]
    >>> last, answer = stream.close()
    >>> answer.finish_reason
    'tool_calls'
    """

    def __init__(
        self,
        reading: AnswerReading,
        turn: Turn,
        debug_summary: MutableMapping[str, str] | None = None,
        call_ids: CallIds | None = None,
        *,
        tool_input: bool = True,
    ) -> None:
        self._reading = reading
        self._shows_inputs = tool_input
        self._turn = turn
        self._summary = debug_summary
        self._level = debug_level() if turn.active else "off"
        self._texts: list[str] = []
        self._ids = CallIds() if call_ids is None else call_ids
        self._end: tuple[tuple[Delta, ...], Answer] | None = None
        self._parser = None
        # Such an answer is read as a whole, so it has no parser and its texts are collected.
        if turn.active and not turn.read_whole:
            self._parser = reading.readers(turn)[1].stream(turn.asked)
            self._deltas = Deltas(reading, turn, self._parser, self._ids, inputs=tool_input)

    @property
    def waiting(self) -> tuple[str, ...]:
        """The tools of the calls that wait for the end of the answer."""
        return () if self._parser is None else tuple(call.name for call in self._deltas.calls)

    def feed(self, text: str) -> tuple[Delta, ...]:
        """Return the deltas that a piece of text settles.

        Raises ParserClosed after `close`.

        Args:
            text: of any size, '' included. The deltas are in OpenAI's shape.
        """
        if self._end is not None:
            raise ParserClosed("this answer is closed", hint="make a new one with wrap_stream")
        # Level 'parse' logs the whole answer at its end.
        if self._level == "stream" and text:
            log_raw(text)
        if self._parser is not None:
            deltas = self._deltas.of(self._parser.feed(text))
        else:
            self._texts.append(text)
            deltas = ({"content": text},) if text and not self._turn.active else ()
        self._log(deltas)
        return deltas

    def close(
        self, finish_reason: str | None = None, *, called: bool = False, reasoning: str = ""
    ) -> tuple[tuple[Delta, ...], Answer]:
        """Return the last deltas, and the whole.

        A second call returns the same.

        Args:
            finish_reason: the words that the provider said, None if it said nothing.
            called: the provider made calls itself, so that a text that says nothing is not a
                failure.
            reasoning: the words that the provider said as reasoning.
        """
        if self._end is None:
            deltas, answer = self._finish(finish_reason, called, reasoning)
            self._log(deltas)
            log_answer(answer, self._level, self._summary if self._turn.active else None)
            self._end = deltas, answer
        return self._end

    def _finish(
        self, finish_reason: str | None, called: bool, reasoning: str
    ) -> tuple[tuple[Delta, ...], Answer]:
        if not self._turn.active:
            return (), passed_through("".join(self._texts), finish_reason)
        if self._parser is not None:
            result = self._parser.close()
            result = with_lost_calls(result, finish_reason, reasoning, called=called)
            deltas = self._deltas.of(self._parser.last_events())
            deltas += self._deltas.end()
            return deltas, self._answer(result, finish_reason)
        text = "".join(self._texts)
        # The provider made the forced call itself.
        if called and not text.strip():
            return (), passed_through(text or None, finish_reason)
        result = self._reading.parse_whole(self._turn, text, finish_reason)
        answer = self._answer(result, finish_reason)
        return deltas_of(answer, inputs=self._shows_inputs), answer

    def _answer(self, result: ParseResult, finish_reason: str | None) -> Answer:
        reading, turn = self._reading, self._turn
        reading.tell_failures(result, turn, streamed=True)
        return answer_of(
            result,
            finish_reason,
            self._ids,
            attempts=reading.attempts,
            one_call=turn.one_call,
            tool_name=turn.tool_name,
        )

    def _log(self, deltas: Iterable[Delta]) -> None:
        if self._level == "stream":
            for delta in deltas:
                if "tool_input" not in delta:
                    log_out(delta)
