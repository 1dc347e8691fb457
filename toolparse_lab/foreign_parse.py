"""What somebody else's parser says, as a ParseResult of ours.

Its parts are brought onto raw (see `placing`), and from there on a call is a call: coerced, validated and explained
like our own. What it raises becomes a Problem.

The result is what their `parse_generated_text` says of the whole text, whatever the chunking: a foreign parser gives no
promise that what it says of a beginning will stand, and text that was sent cannot be unsent. So `tp.stream` of such an
object holds its events until `close`. Their own stream parser is what `create_stream_parser` gives, and
`tp.check_protocol` says whether the two agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from .errors import ParserClosed
from .foreign import ForeignProtocol, TheirOptions, tools_for_them
from .placing import Said, place
from .protocols.base import Decoded, Protocol
from .resolve import Body, Resolver
from .toolspec import ToolSpec
from .types import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Markup,
    Origin,
    OriginTable,
    ParseOptions,
    ParseResult,
    Problem,
    ReasoningDelta,
    Segment,
    Span,
    TextDelta,
    ToolCall,
)
from .values import leaves, read_strict, write_canonical


class ForeignParser:
    """Collects one text and lets their protocol read it at the end; see the module. silent: nobody wants its events,
    which cost nothing here."""

    def __init__(
        self, protocol: ForeignProtocol, tools: tuple[ToolSpec, ...], options: ParseOptions, *, silent: bool = False
    ) -> None:
        self.protocol = protocol
        self.tools = {t.name: t for t in tools}
        self.options = options
        self._specs = tools
        self._chunks: list[str] = []
        self._events: list[Event] = []
        self._result: ParseResult | None = None

    def feed(self, chunk: str) -> tuple[Event, ...]:
        """Takes a chunk; no event comes before `close`. Raises ParserClosed after it."""
        if self._result is not None:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        self._chunks.append(chunk)
        return ()

    def close(self) -> ParseResult:
        """The result; their exceptions are problems of it."""
        if self._result is None:
            raw = "".join(self._chunks).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            self._chunks = [raw]
            self._result = self._read(raw)
            self._events = list(_events_of(self._result))
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """The events that closing settled; empty before `close` and when read a second time."""
        events, self._events = tuple(self._events), []
        return events

    def text_of(self, span: Span) -> str:
        """The characters of a span of what was fed."""
        return span.of("".join(self._chunks))

    def _read(self, raw: str) -> ParseResult:
        problems: list[Problem] = []
        said = _said_by(self.protocol, raw, self._specs, problems)
        named: list[str] = []
        if said and self.protocol.method("extract_tool_call_segments") is not None:
            try:
                named = self.protocol.extract_tool_call_segments(raw, self._specs)
            except Exception as e:
                problems.append(_failed("extract_tool_call_segments", e))
        placed = place(raw, said, named) if said is not None else place(raw, (Said("text", raw),), ())
        problems.extend(placed.problems)
        for call in placed.homeless:
            message = f"the parser says a call of {call.name!r}, but there is no text it could stand in"
            problems.append(Problem("scan", "foreign.no-place", "error", message))
        segments = tuple(
            Segment(p.kind, Span(p.start, p.end), Span(p.start, p.end) if p.kind in ("call", "reasoning") else None)
            for p in placed.pieces
        )
        calls: list[ToolCall] = []
        # Bodies bring the protocol's id along, and that is all a resolver would ask of it here.
        resolver = Resolver(cast(Protocol, self.protocol), self.tools, self.options)
        for i, (piece, segment) in enumerate(zip(placed.pieces, segments, strict=True)):
            if piece.calls:
                body = Body(segment.span.of(raw), piece.start, piece.start, True, "closer", self.protocol.id)
                decoded = tuple(_decoded(c, body.text, len(piece.calls) == 1) for c in piece.calls)
                calls.extend(map(_placed_roughly, resolver.calls(decoded, body, segment, i, len(calls))))
        return ParseResult(
            raw=raw, protocol=self.protocol.id, options=self.options, segments=segments, calls=tuple(calls),
            problems=tuple(problems), tools=self._specs,
        )  # fmt: skip


def _said_by(
    protocol: ForeignProtocol, raw: str, tools: tuple[ToolSpec, ...], problems: list[Problem]
) -> list[Said] | None:
    """What their parser says of a text; None where it fails."""
    most = 2 * len(raw) + 1000  # a generator that never ends must not hang us

    def on_error(message: Any = "", metadata: Any = None, *_: Any) -> None:
        problems.append(_reported(raw, str(message), metadata))

    try:
        parts = protocol.ask(
            "parse_generated_text", text=raw, tools=tools_for_them(tools), options=TheirOptions({"on_error": on_error})
        )
        if isinstance(parts, (str, Mapping)) or not isinstance(parts, Iterable):
            raise TypeError(f"it returned {type(parts).__name__}, not a list of parts")
        found = list(islice(parts, most + 1))
        if len(found) > most:
            raise ValueError(f"it returned more than {most} parts")
    except Exception as e:
        problems.append(_failed("parse_generated_text", e))
        return None
    return list(read_parts(found, problems))


def read_parts(parts: Iterable[Any], problems: list[Problem]) -> Iterator[Said]:
    """What parts say, whichever way their keys are spelt; one that says nothing known is a problem."""
    for part in parts:
        if isinstance(part, str):
            yield Said("text", part)
            continue
        get = part.get if isinstance(part, Mapping) else lambda key, part=part: getattr(part, key, None)
        kind, text = get("type"), get("text")
        name = next((v for k in ("toolName", "tool_name", "name") if isinstance(v := get(k), str)), None)
        if kind in ("text", "reasoning") and isinstance(text, str):
            yield Said("reasoning" if kind == "reasoning" else "text", text)
        elif kind in ("tool-call", "tool_call") and name is not None:
            given = next((v for k in ("input", "arguments", "args") if (v := get(k)) is not None), None)
            id = next((v for k in ("toolCallId", "tool_call_id", "id") if isinstance(v := get(k), str)), "")
            yield Said("call", "", name, given, id)
        else:
            message = f"a part that is neither text nor call: {str(part)[:80]}"
            problems.append(Problem("scan", "foreign.bad-part", "warning", message))


def _failed(method: str, e: Exception) -> Problem:
    return Problem("scan", "parser.failed", "error", f"{method} raised {type(e).__name__}: {e}")


def _reported(raw: str, message: str, metadata: Any) -> Problem:
    span = None
    if isinstance(metadata, Mapping):
        text = metadata.get("toolCall", metadata.get("tool_call"))
        at = raw.find(text) if isinstance(text, str) and text else -1
        span = Span(at, at + len(text)) if at >= 0 else None
    return Problem("decode", "foreign.reported", "error", message or "the parser reported an error", "", span)


def _decoded(call: Said, text: str, alone: bool) -> Decoded:
    at = text.find(call.name) if call.name and alone else -1  # of several, the first place is not each one's own
    name_span = Span(at, at + len(call.name)) if at >= 0 else None
    wire_id = (
        call.id if alone and call.id and call.id in text else None
    )  # an id made up while parsing would differ every time
    value = {} if call.input is None else call.input
    try:
        value = read_strict(value) if isinstance(value, str) else read_strict(write_canonical(value))
    except (TypeError, ValueError, RecursionError) as e:
        problem = Problem("read", "call.not-an-object", "error", f"the call's input is no JSON: {e}")
        return Decoded(call.name, None, name_span, wire_id, problems=(problem,), readable=False)
    if not isinstance(value, dict):
        problem = Problem("read", "call.not-an-object", "error", "the call's input is no JSON object")
        return Decoded(call.name, None, name_span, wire_id, problems=(problem,), readable=False)
    return Decoded(call.name, value, name_span, wire_id)


def _placed_roughly(call: ToolCall) -> ToolCall:
    """Where in the call a value stood is not known: the call itself is its origin, and not an exact one."""
    if not call.readable:
        return call

    def table() -> dict[str, Origin]:
        origin = Origin(call.segment.span, False)
        found = {"": origin}
        for path, _ in leaves(read_strict(call.arguments_json)):
            parts = path.split("/")
            found.update({"/".join(parts[:n]): origin for n in range(2, len(parts) + 1)})
        return found

    return replace(call, origins=OriginTable(table))


def _events_of(result: ParseResult) -> Iterator[Event]:
    kinds: dict[str, type[TextDelta | ReasoningDelta | Markup]]
    kinds = {"text": TextDelta, "reasoning": ReasoningDelta, "markup": Markup}
    held: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        held.setdefault(call.segment_index, []).append(call)
    for i, segment in enumerate(result.segments):
        if segment.kind in kinds:
            yield kinds[segment.kind](segment.span)
            continue
        start, end = segment.span.start, segment.span.end
        yield CallStart(Span(start, start))
        yield CallDelta(segment.span)
        yield CallEnd(Span(end, end), tuple(held.get(i, ())))
