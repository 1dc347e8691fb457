"""An answer as content parts, the shape that chat front ends take: text, and tool calls with their
input as JSON.

A call that could not be read is a text part with its original text, and a failure that names the
reason. White space alone between two calls is no part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import BadOptions
from ..core.types import (
    CallEnd,
    Event,
    ParseOptions,
    ParseResult,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Span,
    TextDelta,
    ToolCall,
    Withdrawn,
    calls_by_segment,
)
from ..formats.base import FAILURE, Protocol
from ..formats.registry import protocols
from .foreign.protocol import AnyProtocol
from .parse import parse_text, stream
from .tool_input import Part, ToolInputs

if TYPE_CHECKING:
    from .foreign.parser import ForeignParser
    from .parse import StreamParser

OnError = Callable[[str, Mapping[str, Any]], None]


def parts_of(result: ParseResult) -> list[Part]:
    """Return the parts of a whole answer, in order.

    Calls have their input as JSON text, in the order of the segments. Text of white space alone
    drops out.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware import parts_of
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> [part["type"] for part in parts_of(tp.parse("Hi " + text, "hermes"))]
    ['text', 'tool-call']
    """
    by_segment = calls_by_segment(result.calls)
    parts: list[Part] = []
    for index, segment in enumerate(result.segments):
        text, kind = segment.said(result.raw), segment.kind
        if kind in ("call", "recovered"):
            calls = [call_part(c) for c in by_segment.get(index, ()) if c.readable]
            # Nothing of an answer may get lost: a call that nobody can read is shown as it was
            # written.
            parts += calls or [{"type": "text", "text": text}]
        elif kind == "reasoning" or (kind == "text" and text.strip()):
            parts.append({"type": kind, "text": text})
    return parts


def call_part(call: ToolCall) -> Part:
    """Return a call as a part."""
    part = {"type": "tool-call", "toolCallId": _id_of(call), "toolName": call.name}
    return {**part, "input": call.arguments_json}


def _id_of(call: ToolCall) -> str:
    # No random one, so that two parses of a text agree.
    return call.wire_id or f"call_{call.index}"


def failures_of(
    result: ParseResult, protocol: AnyProtocol | None = None
) -> list[tuple[str, dict[str, Any]]]:
    """Return (message, metadata) per segment with an unreadable call, in order.

    Args:
        protocol: the one that read the result, where no id stands for it.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware import failures_of
    >>> result = tp.parse('<tool_call>{"name"', "hermes")
    >>> failures_of(result)[0][0]
    'Could not process JSON tool call, keeping original text.'
    """
    groups = calls_by_segment(result.calls).values()
    failures = [_failure(lambda span: span.of(result.raw), calls, protocol) for calls in groups]
    return [failure for failure in failures if failure is not None]


def _failure(
    text_of: Callable[[Span], str], calls: Iterable[ToolCall], protocol: AnyProtocol | None
) -> tuple[str, dict[str, Any]] | None:
    # (message, metadata) of the first call of a segment that could not be read.
    for call in calls:
        problem = next(filter(is_failure, call.problems), None)
        if problem is not None and not call.readable:
            return failure_of(call, problem, text_of(call.segment.span), protocol)
    return None


def is_failure(problem: Problem) -> bool:
    """Return True for an error of reading a call, not of its arguments' values."""
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")


def failure_of(
    call: ToolCall, problem: Problem, text: str, protocol: AnyProtocol | None = None
) -> tuple[str, dict[str, Any]]:
    """Return (message, metadata) about a call whose text could not be read.

    protocol: the one that read the whole answer, which need not be registered.
    """
    owner = protocol
    # Under 'auto' each call has a format of its own.
    if protocol is None or protocol.id != call.protocol:
        owner = protocols().get(call.protocol)
    span = call.segment.span
    metadata: dict[str, Any] = {"toolCall": text, "toolName": call.name or None}
    metadata |= {"code": problem.code, "message": problem.message, "span": (span.start, span.end)}
    return FAILURE if owner is None else owner.failure_of(text), metadata


def call_safely(on_error: OnError, message: str, metadata: Mapping[str, Any]) -> None:
    """Report a failure. What the reporter itself raises is dropped."""
    with contextlib.suppress(Exception):  # a reporter that fails must not take the answer with it
        on_error(message, metadata)


# How it works
# ------------
# State: `_open` is true between text-start and text-end, and `_block` counts the blocks. `_blank`
# is white space that came while no block is open: it begins a block only if a word follows.
#
# Invariant: an event is translated once, when it comes. Text is final, so its parts are never
# wrong. A call is handed out whole, because its deltas may be retracted; what can be shown of it
# before is `tool_input`'s. Reasoning may be retracted too, where a call ends it that was never
# closed; what was handed out of it by then stays.
#
# Cost: that of `text_of`, which is called for the last characters only, and that of `tool_input`.


class PartStream:
    """Stream parts out of a push parser.

    The parts are text-start, text-delta, text-end, tool-input-start, -delta, -end and tool-call.

    A text block is closed before a call. A delta never holds white space that may turn out to stand
    alone between two calls. The input of a call comes while it is written, and is taken back with
    tool-input-error if no call follows it. `input_events=False` leaves the tool-input parts out.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware import PartStream
    >>> parts = PartStream(tp.stream("hermes"))
    >>> [part["type"] for part in [*parts.feed("Hi"), *parts.close()]]
    ['text-start', 'text-delta', 'text-end']
    """

    def __init__(
        self,
        parser: StreamParser | ForeignParser,
        on_error: OnError | None = None,
        *,
        input_events: bool = True,
    ) -> None:
        self.parser = parser
        self.on_error = on_error
        self._inputs: ToolInputs | None = None
        if input_events:
            self._inputs = ToolInputs(
                parser.protocol, parser.tools.values(), parser.options, parser.text_of, _id_of
            )
        self._block = 0
        self._open = False
        self._blank = ""  # white space that is text only if a word follows

    def feed(self, chunk: str) -> list[Part]:
        """Return the parts that a chunk settles."""
        events = self.parser.feed(chunk)
        return self._parts(events)

    def close(self) -> list[Part]:
        """Return the parts that the end settles. The last text block is closed."""
        self.parser.close()
        parts = self._parts(self.parser.last_events())
        self._end_text(parts)
        return parts if self._inputs is None else [*parts, *self._inputs.drop()]

    def _parts(self, events: Iterable[Event]) -> list[Part]:
        parts: list[Part] = []
        inputs = self._inputs
        for event in events:
            if inputs is not None:
                inputs.note(event)
            if isinstance(event, TextDelta):
                self._text(parts, self.parser.text_of(event.span))
            elif isinstance(event, ReasoningDelta):
                self._end_text(parts)
                parts.append({"type": "reasoning-delta", "delta": self.parser.text_of(event.span)})
            elif isinstance(event, (CallEnd, Recovered)):
                self._end_text(parts)
                self._calls(parts, event.calls)
            elif isinstance(event, Retract) and inputs is not None:
                parts += inputs.drop()
            elif isinstance(event, Withdrawn) and inputs is not None:
                parts += inputs.withdrawn(event.calls)

        more = inputs.show() if inputs is not None else ()
        if more:
            self._end_text(parts)
            parts += more
        return parts

    def _text(self, parts: list[Part], text: str) -> None:
        if not self._open:
            self._blank += text
            if not self._blank.strip():
                return
            text, self._blank = self._blank, ""
            parts.append({"type": "text-start", "id": f"text_{self._block}"})
            self._open = True
        parts.append({"type": "text-delta", "id": f"text_{self._block}", "delta": text})

    def _end_text(self, parts: list[Part]) -> None:
        self._blank = ""
        if self._open:
            parts.append({"type": "text-end", "id": f"text_{self._block}"})
            self._open = False
            self._block += 1

    def _calls(self, parts: list[Part], calls: tuple[ToolCall, ...]) -> None:
        readable = [c for c in calls if c.readable]
        inputs = self._inputs
        if calls and not readable:
            parts += inputs.drop(calls) if inputs is not None else ()
            self._text(parts, self.parser.text_of(calls[0].segment.span))
            self._end_text(parts)
        for call in readable:
            part = call_part(call)
            if inputs is not None:
                parts += inputs.of_call(call, call.name, part["input"])
            parts.append(part)
        if inputs is not None:
            parts += inputs.drop(c for c in calls if not c.readable)
        if self.on_error is not None:
            failure = _failure(self.parser.text_of, calls, self.parser.protocol)
            if failure is not None:
                call_safely(self.on_error, *failure)


def parse_generated_text(protocol: Protocol, *, text: str, tools: Any, options: Any) -> list[Part]:
    """Return the parts of a whole answer. See `Protocol.parse_generated_text`.

    The reporter in the options is called once for each segment that could not be read.
    """
    parse_options, on_error = read_options(options)
    result = parse_text(text, protocol, tools, parse_options)
    if on_error is not None:
        for message, metadata in failures_of(result, protocol):
            call_safely(on_error, message, metadata)
    return parts_of(result)


def create_stream_parser(protocol: Protocol, *, tools: Any, options: Any) -> PartStream:
    """Return the parts of a stream. See `Protocol.create_stream_parser`."""
    input_events = True
    if isinstance(options, Mapping):
        options = dict(options)
        input_events = bool(options.pop("input_events", True))
    parse_options, on_error = read_options(options)
    return PartStream(stream(protocol, tools, parse_options), on_error, input_events=input_events)


def extract_tool_call_segments(protocol: Protocol, *, text: str, tools: Any) -> list[str]:
    """Return the pieces of a text read as calls. See `Protocol.extract_tool_call_segments`."""
    result = parse_text(text, protocol, tools)
    return [s.span.of(result.raw) for s in result.segments if s.kind in ("call", "recovered")]


def read_options(options: Any) -> tuple[ParseOptions, OnError | None]:
    """Return the parse options and the reporter of failures, from the options of the reading
    methods.

    options: ParseOptions, None, or a mapping of their fields and `on_error` (or `onError`). Unless
    it names one, a mapping has the coercion policy 'middleware', and so has None. Raises
    BadOptions.
    """
    if isinstance(options, ParseOptions):
        return options, None
    if options is None:
        options = {}
    elif not isinstance(options, Mapping):
        raise BadOptions(
            "options are ParseOptions or a mapping",
            got=type(options).__name__,
            expected='such as {"coerce": "safe"}',
        )

    fields = dict(options)
    reporters = fields.pop("on_error", None), fields.pop("onError", None)
    on_error = reporters[1] if reporters[0] is None else reporters[0]
    if on_error is not None and not callable(on_error):
        raise BadOptions(
            "on_error is called as on_error(message, metadata)", got=type(on_error).__name__
        )
    return ParseOptions.of({"coerce": "middleware", **fields}), on_error
