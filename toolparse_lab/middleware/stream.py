"""`AnswerStream`: an answer that comes in pieces."""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping

from ..core.errors import ParserClosed
from ..core.types import ParseResult
from ..parser.parse import with_lost_calls
from .answer import Answer, answer_of, passed_through
from .attempts import CallIds
from .debug import debug_level, log_answer, log_out, log_raw
from .deltas import Delta, Deltas, deltas_of
from .reading import AnswerReading
from .turn import Turn


class AnswerStream:
    """An answer that comes in pieces: feed it texts of any size, then close it.

    The contents of all deltas make the message's content, their tool calls its tool calls. Nothing
    of these is taken back. A delta `tool_input` shows the input of a call that is still written.
    Never execute it: the call follows in `tool_calls`, or a part tool-input-error takes the input
    back. An answer that must be a call, or has a format of the caller's own, says nothing before
    its end.

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
            self._deltas = Deltas(
                reading.protocol,
                turn.tools,
                self._parser.text_of,
                self._ids,
                reading.attempts,
                one_call=turn.one_call,
                options=self._parser.options if tool_input else None,
            )

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
