"""An answer as content parts, the shape that chat front ends take: text, and tool calls with their input as JSON.

A call that could not be read is a text part with its original text, and a failure that names the reason. White space
alone between two calls is no part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from typing import Protocol as Interface

from .api import parse_text, stream
from .errors import BadOptions
from .protocols.base import Protocol
from .types import (
    CallEnd,
    Event,
    ParseOptions,
    ParseResult,
    Problem,
    ReasoningDelta,
    Recovered,
    Segment,
    Span,
    TextDelta,
    ToolCall,
)

Part = dict[str, Any]
OnError = Callable[[str, Mapping[str, Any]], None]

_MESSAGES = {
    "json": "Could not process JSON tool call, keeping original text.",
    "xml": "Could not process XML tool call, keeping original text: {text}",
    "yaml": "Could not process YAML tool call, keeping original text.",
    "other": "Could not process tool call, keeping original text.",
}


def parts_of(result: ParseResult) -> list[Part]:
    """The parts of a whole answer, in order."""
    by_segment = _calls_by_segment(result.calls)
    parts: list[Part] = []
    for index, segment in enumerate(result.segments):
        parts.extend(_segment_parts(result.raw, segment, by_segment.get(index, ())))
    return parts


def _segment_parts(raw: str, segment: Segment, calls: Iterable[ToolCall]) -> list[Part]:
    text = segment.said(raw)
    if segment.kind == "text":
        return [{"type": "text", "text": text}] if text.strip() else []
    if segment.kind == "reasoning":
        return [{"type": "reasoning", "text": text}]
    if segment.kind == "markup":
        return []
    read = [c for c in calls if c.readable]
    return [call_part(c) for c in read] if read else [{"type": "text", "text": text}]


def call_part(call: ToolCall) -> Part:
    """A call as a part; its id is its place among the calls, or the id that its text carries."""
    return {
        "type": "tool-call",
        "toolCallId": call.wire_id or f"call_{call.index}",
        "toolName": call.name,
        "input": call.arguments_json,
    }


def _calls_by_segment(calls: Iterable[ToolCall]) -> dict[int, list[ToolCall]]:
    found: dict[int, list[ToolCall]] = {}
    for call in calls:
        found.setdefault(call.segment_index, []).append(call)
    return found


def failures_of(result: ParseResult) -> list[tuple[str, dict[str, Any]]]:
    """(message, metadata) for each segment with a call that could not be read, in order."""
    return [
        failure
        for calls in _calls_by_segment(result.calls).values()
        for failure in [_failure(lambda span: span.of(result.raw), calls)]
        if failure is not None
    ]


def _failure(text_of: Callable[[Span], str], calls: Iterable[ToolCall]) -> tuple[str, dict[str, Any]] | None:
    """What to report of one segment: its first call that could not be read."""
    for call in calls:
        problem = next((p for p in call.problems if _is_failure(p)), None)
        if problem is None or call.readable:
            continue
        text = text_of(call.segment.span)
        return failure_message(call.protocol, text), {
            "toolCall": text,
            "toolName": call.name or None,
            "code": problem.code,
            "message": problem.message,
            "span": (call.segment.span.start, call.segment.span.end),
        }
    return None


def failure_message(protocol: str, text: str) -> str:
    """What is said of a call in that protocol whose text could not be read."""
    return _MESSAGES[_kind(protocol)].format(text=text)


def _is_failure(problem: Problem) -> bool:
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")


def _kind(protocol: str) -> str:
    if protocol == "morph_xml":
        return "xml"
    if protocol == "yaml_xml":
        return "yaml"
    return "json" if protocol in ("hermes", "gemma") or protocol.startswith("json_mix") else "other"


def call_safely(on_error: OnError, message: str, metadata: Mapping[str, Any]) -> None:
    with contextlib.suppress(Exception):  # a reporter that fails must not take the answer with it
        on_error(message, metadata)


class PushParser(Interface):
    """What `tp.stream` returns, as far as parts need it."""

    def feed(self, chunk: str) -> tuple[Event, ...]: ...

    def close(self) -> ParseResult: ...

    def last_events(self) -> tuple[Event, ...]: ...

    def text_of(self, span: Span) -> str: ...


class PartStream:
    """Stream parts out of a push parser: text-start, text-delta, text-end, tool-input-start, -delta, -end, tool-call.

    A text block is closed before a call; a delta never holds white space that may turn out to stand alone between two
    calls. `input_events=False` leaves the tool-input parts out.
    """

    def __init__(self, parser: PushParser, on_error: OnError | None = None, *, input_events: bool = True) -> None:
        self.parser = parser
        self.on_error = on_error
        self.input_events = input_events
        self._block = 0
        self._open = False
        self._blank = ""  # white space that is text only if a word follows

    def feed(self, chunk: str) -> list[Part]:
        """The parts that a chunk settles."""
        events = self.parser.feed(chunk)
        return self._parts(events)

    def close(self) -> list[Part]:
        """The parts that the end settles; the last text block is closed."""
        self.parser.close()
        parts = self._parts(self.parser.last_events())
        self._end_text(parts)
        return parts

    def _parts(self, events: Iterable[Event]) -> list[Part]:
        parts: list[Part] = []
        for event in events:
            if isinstance(event, TextDelta):
                self._text(parts, self.parser.text_of(event.span))
            elif isinstance(event, ReasoningDelta):
                self._end_text(parts)
                parts.append({"type": "reasoning-delta", "delta": self.parser.text_of(event.span)})
            elif isinstance(event, (CallEnd, Recovered)):
                self._end_text(parts)
                self._calls(parts, event.calls)
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
        read = [c for c in calls if c.readable]
        if not read and calls:
            self._text(parts, self.parser.text_of(calls[0].segment.span))
            self._end_text(parts)
        for call in read:
            part = call_part(call)
            if self.input_events:
                name = {"id": part["toolCallId"]}
                parts.append({"type": "tool-input-start", **name, "toolName": call.name})
                parts.append({"type": "tool-input-delta", **name, "delta": part["input"]})
                parts.append({"type": "tool-input-end", **name})
            parts.append(part)
        if self.on_error is not None:
            failure = _failure(self.parser.text_of, calls)
            if failure is not None:
                call_safely(self.on_error, *failure)


def parse_generated_text(protocol: Protocol, *, text: str, tools: Any, options: Any) -> list[Part]:
    """The parts of a whole answer; see `Protocol.parse_generated_text`."""
    chosen, on_error = read_options(options)
    result = parse_text(text, protocol, tools, chosen)
    if on_error is not None:
        for message, metadata in failures_of(result):
            call_safely(on_error, message, metadata)
    return parts_of(result)


def create_stream_parser(protocol: Protocol, *, tools: Any, options: Any) -> PartStream:
    """The parts of a stream; see `Protocol.create_stream_parser`."""
    input_events = True
    if isinstance(options, Mapping) and "input_events" in options:
        options = dict(options)
        input_events = bool(options.pop("input_events"))
    chosen, on_error = read_options(options)
    return PartStream(stream(protocol, tools, chosen), on_error, input_events=input_events)


def extract_tool_call_segments(protocol: Protocol, *, text: str, tools: Any) -> list[str]:
    """The pieces of a text that are read as calls; see `Protocol.extract_tool_call_segments`."""
    result = parse_text(text, protocol, tools)
    return [s.span.of(result.raw) for s in result.segments if s.kind in ("call", "recovered")]


def read_options(options: Any) -> tuple[ParseOptions, OnError | None]:
    """What a parse may do and who is told of failures, from the options of the reading methods; raises BadOptions."""
    if isinstance(options, ParseOptions):
        return options, None
    if options is not None and not isinstance(options, Mapping):
        raise BadOptions("options are ParseOptions or a mapping", got=type(options).__name__)
    rest = dict(options or {})
    told = [rest.pop(key) for key in ("on_error", "onError") if key in rest]
    on_error: OnError | None = next((f for f in told if f is not None), None)
    if on_error is not None and not callable(on_error):
        raise BadOptions("on_error is called as on_error(message, metadata)", got=type(on_error).__name__)
    return ParseOptions.of({"coerce": "middleware", **rest}), on_error
