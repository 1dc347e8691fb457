"""The parts of another's parser, as a ParseResult of ours."""

# How it works
# ------------
# Their parts are brought onto raw (see `placing`), and from there on a call is a call: coerced,
# validated and explained like our own. An exception of theirs becomes a Problem.
#
# The result is what their `parse_generated_text` says of the whole text, whatever the chunking: a
# foreign parser gives no promise that its answer for a beginning will stand, and text that was
# handed out cannot be taken back. So `tp.stream` of such an object holds its events until `close`.
# Their own stream parser is what `create_stream_parser` gives, and `tp.check_protocol` says whether
# the two agree.

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, cast

from ...core.errors import ParserClosed
from ...core.toolspec import ToolSpec
from ...core.types import (
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
from ...core.values import Value, leaves, read_strict, write_canonical
from ...formats.base import Decoded, Protocol
from ..echoes import judged
from ..feed import not_a_chunk
from ..request_texts import request_texts
from ..resolve import Body, Resolver
from .placing import Piece, Placement, TheirPart, place
from .protocol import ForeignProtocol, TheirOptions, tools_for_them

# A generator that never ends must not hang us: so many parts for each character, and so many more.
_PARTS_PER_CHARACTER = 2
_MORE_PARTS = 1000
# The spellings under which other SDKs have a call's members; the first that is there counts.
_NAME_KEYS = ("toolName", "tool_name", "name")
_INPUT_KEYS = ("input", "arguments", "args")
_ID_KEYS = ("toolCallId", "tool_call_id", "id")


class ForeignParser:
    """Collects one text and lets their protocol read it at the end.

    See the module.

    silent: as for `StreamParser`. Events cost nothing here. request: the request.
    """

    def __init__(
        self,
        protocol: ForeignProtocol,
        tools: tuple[ToolSpec, ...],
        options: ParseOptions,
        *,
        silent: bool = False,
        request: Any = None,
    ) -> None:
        """Begin with no text. Their protocol is not called before `close`."""
        self._request = request_texts(request)
        self.protocol = protocol
        self.tools = {t.name: t for t in tools}
        self.options = options
        self._specs = tools
        self._chunks: list[str] = []
        self._events: list[Event] = []
        self._result: ParseResult | None = None

    def feed(self, chunk: str | None) -> tuple[Event, ...]:
        """Takes a chunk, or None for an empty one.

        No event comes before `close`. Raises ParserClosed after it, and UnreadableInput for
        anything that is neither text nor None.
        """
        if self._result is not None:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        if isinstance(chunk, str):
            self._chunks.append(chunk)
        elif chunk is not None:
            raise not_a_chunk(chunk)
        return ()

    def close(self) -> ParseResult:
        """Return the result.

        Their exceptions are problems of it.

        A second call returns the same result.
        """
        if self._result is None:
            # A pair of surrogates that was cut apart is one character again.
            joined = "".join(self._chunks).encode("utf-16-le", "surrogatepass")
            raw = joined.decode("utf-16-le", "surrogatepass")
            self._chunks = [raw]
            self._result = judged(self._read(raw), self._request)
            self._events = list(_events_of(self._result))
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """Return the events that closing settled.

        Empty before `close` and when read a second time.
        """
        events, self._events = tuple(self._events), []
        return events

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far.

        Before `close` the chunks are joined for each call.
        """
        return span.of("".join(self._chunks))

    def _read(self, raw: str) -> ParseResult:
        """Return the result of a whole text.

        Raises nothing: a fault of theirs is a problem, and the text stays.
        """
        problems: list[Problem] = []
        placement = self._place(raw, problems)
        segments = tuple(map(_segment, placement.pieces))
        calls: list[ToolCall] = []
        # Bodies bring the protocol's id along, and that is all a resolver would ask of it here.
        resolver = Resolver(cast(Protocol, self.protocol), self.tools, self.options)

        for i, (piece, segment) in enumerate(zip(placement.pieces, segments, strict=True)):
            if piece.calls:
                text = segment.span.of(raw)
                body = Body(text, piece.start, piece.start, True, "closer", self.protocol.id)
                alone = len(piece.calls) == 1
                decoded = tuple(_decoded(call, text, alone) for call in piece.calls)
                resolved = resolver.calls(decoded, body, segment, i, len(calls))
                calls.extend(map(_with_rough_origins, resolved))

        return ParseResult(
            raw=raw,
            protocol=self.protocol.id,
            options=self.options,
            segments=segments,
            calls=tuple(calls),
            problems=tuple(problems),
            tools=self._specs,
        )

    def _place(self, raw: str, problems: list[Problem]) -> Placement:
        """Return the pieces of `raw` with their calls, as their methods report.

        Adds problems.

        A call for which raw has no character at all drops out, with a problem of severity error.
        """
        parts = _parts_of(self.protocol, raw, self._specs, problems)
        if parts is None:
            # Their parser failed: all of it is text.
            placement = place(raw, (TheirPart("text", raw),), ())
        else:
            placement = place(raw, parts, self._call_texts(raw, problems) if parts else ())

        problems.extend(placement.problems)

        for call in placement.homeless:
            message = (
                f"the parser says a call of {call.name!r}, but there is no text it could stand in"
            )
            problems.append(Problem("scan", "foreign.no-place", "error", message))

        return placement

    def _call_texts(self, raw: str, problems: list[Problem]) -> list[str]:
        """Return the texts that they name as calls.

        None if they have no such method, or it fails.
        """
        if self.protocol.method("extract_tool_call_segments") is None:
            return []
        try:
            return self.protocol.extract_tool_call_segments(raw, self._specs)
        except Exception as e:
            problems.append(_failed("extract_tool_call_segments", e))
            return []


def _segment(piece: Piece) -> Segment:
    """Return the segment of a piece.

    A call's body is all of it, since nothing says where it begins.
    """
    span = Span(piece.start, piece.end)
    return Segment(piece.kind, span, span if piece.kind in ("call", "reasoning") else None)


def _parts_of(
    protocol: ForeignProtocol, raw: str, tools: tuple[ToolSpec, ...], problems: list[Problem]
) -> list[TheirPart] | None:
    """Return the parts that their parser makes of a text, or None if it fails.

    Adds problems.

    They get the tools as AI SDKs hand them over, and options with an `on_error` that adds problems.
    """

    def on_error(message: Any = "", metadata: Any = None, *_: Any) -> None:
        """Add their message as a problem of the result."""
        problems.append(_reported(raw, str(message), metadata))

    limit = _PARTS_PER_CHARACTER * len(raw) + _MORE_PARTS

    try:
        parts = protocol.ask(
            "parse_generated_text",
            text=raw,
            tools=tools_for_them(tools),
            options=TheirOptions({"on_error": on_error}),
        )
        if isinstance(parts, (str, Mapping)) or not isinstance(parts, Iterable):
            raise TypeError(f"it returned {type(parts).__name__}, not a list of parts")
        collected = list(islice(parts, limit + 1))
        if len(collected) > limit:
            raise ValueError(f"it returned more than {limit} parts")
    except Exception as e:
        problems.append(_failed("parse_generated_text", e))
        return None

    return list(read_parts(collected, problems))


def read_parts(parts: Iterable[Any], problems: list[Problem]) -> Iterator[TheirPart]:
    """Read parts, in whichever way their keys are spelt.

    A part may be a string, a mapping or an object. One that is neither text nor call is a problem.
    """
    for part in parts:
        their_part = TheirPart("text", part) if isinstance(part, str) else _read_part(part)
        if their_part is not None:
            yield their_part
        else:
            message = f"a part that is neither text nor call: {str(part)[:80]}"
            problems.append(Problem("scan", "foreign.bad-part", "warning", message))


def _read_part(part: Any) -> TheirPart | None:
    """Return a part that is a mapping or an object.

    None if it is neither text nor call.

    Name, input and id may have the names that other SDKs give them. An input may be JSON text or a
    value.
    """
    kind, text = _member(part, "type"), _member(part, "text")
    if kind in ("text", "reasoning") and isinstance(text, str):
        return TheirPart("reasoning" if kind == "reasoning" else "text", text)
    if kind not in ("tool-call", "tool_call"):
        return None
    name = _first_text(part, _NAME_KEYS)
    if name is None:
        return None
    inputs = (_member(part, key) for key in _INPUT_KEYS)
    input = next((value for value in inputs if value is not None), None)
    return TheirPart("call", "", name, input, _first_text(part, _ID_KEYS) or "")


def _member(part: Any, key: str) -> Any:
    """Return a member of a mapping or an attribute of an object.

    None if it is missing.
    """
    return part.get(key) if isinstance(part, Mapping) else getattr(part, key, None)


def _first_text(part: Any, keys: tuple[str, ...]) -> str | None:
    """Return the first of some members that is a string."""
    for key in keys:
        value = _member(part, key)
        if isinstance(value, str):
            return value
    return None


def _failed(method: str, e: Exception) -> Problem:
    """Return the problem of a method of theirs that raised.

    method: the name in our spelling.
    """
    return Problem("scan", "parser.failed", "error", f"{method} raised {type(e).__name__}: {e}")


def _reported(raw: str, message: str, metadata: Any) -> Problem:
    """Return the problem that they reported through `on_error`, with its place if they name the
    text.

    metadata: the fields that they report beside the message. Its member `toolCall` is the text of
        the call.
    """
    message = message or "the parser reported an error"
    text = None
    if isinstance(metadata, Mapping):
        text = metadata.get("toolCall", metadata.get("tool_call"))
    span = _find(raw, text) if isinstance(text, str) else None
    return Problem("decode", "foreign.reported", "error", message, "", span)


def _find(text: str, part: str) -> Span | None:
    """Return the first place of a part in a text, or None if it is empty or not there.

    Returns a span in `text`. Of several places the first.
    """
    at = text.find(part) if part else -1
    return Span(at, at + len(part)) if at >= 0 else None


def _decoded(call: TheirPart, text: str, alone: bool) -> Decoded:
    """Return a call of theirs as a codec would have read it from `text`. alone: the only one in it.

    An input that is not a JSON object makes an unreadable call, since arguments are an object.
    """
    # Of several, the first place of a name is not each one's own.
    name_span = _find(text, call.name) if alone else None
    # An id made up while parsing would differ every time.
    wire_id = call.id if alone and call.id and call.id in text else None

    try:
        value = _strict(call.input)
        complaint = None if isinstance(value, dict) else "the call's input is no JSON object"
    except (TypeError, ValueError, RecursionError) as e:
        value, complaint = None, f"the call's input is no JSON: {e}"

    if complaint is None:
        return Decoded(call.name, value, name_span, wire_id)
    problem = Problem("read", "call.not-an-object", "error", complaint)
    return Decoded(call.name, None, name_span, wire_id, problems=(problem,), readable=False)


def _strict(input: Any) -> Value:
    """Return an input as a value of ours: JSON text is read, Python values are written and read
    back.

    No input is an empty object. Raises TypeError, ValueError or RecursionError for anything that is
    not JSON.
    """
    if input is None:
        return {}
    return read_strict(input if isinstance(input, str) else write_canonical(input))


def _with_rough_origins(call: ToolCall) -> ToolCall:
    """Return the call with itself as the origin of every value, marked as inexact: they say no
    places.
    """
    if not call.readable:
        return call

    def table() -> dict[str, Origin]:
        """Return the call's own place as the origin of every value."""
        origin = Origin(call.segment.span, False)
        origins = {"": origin}
        for path, _ in leaves(read_strict(call.arguments_json)):
            parts = path.split("/")
            for size in range(2, len(parts) + 1):
                origins["/".join(parts[:size])] = origin
        return origins

    return replace(call, origins=OriginTable(table))


def _events_of(result: ParseResult) -> Iterator[Event]:
    """Yield the events that a parser of ours might have sent for such a result."""
    kinds: dict[str, type[TextDelta | ReasoningDelta | Markup]]
    kinds = {"text": TextDelta, "reasoning": ReasoningDelta, "markup": Markup}
    calls: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        calls.setdefault(call.segment_index, []).append(call)

    for i, segment in enumerate(result.segments):
        if segment.kind in kinds:
            yield kinds[segment.kind](segment.span)
            continue
        # Opener and closer are unknown, and so of no length.
        start, end = segment.span.start, segment.span.end
        yield CallStart(Span(start, start))
        yield CallDelta(segment.span)
        yield CallEnd(Span(end, end), tuple(calls.get(i, ())))
