"""The parts of another's parser, as a ParseResult of ours: where they belong in the raw text, and
what their calls are."""

# How it works
# ------------
# A foreign parser gives texts and calls, in order, and no positions. Its texts are looked for in
# raw, and what lies between two of them belongs to the calls between them; the pieces that its own
# `extract_tool_call_segments` names, where it has one, divide that more exactly.
#
# State: a cursor in raw behind the last text that was placed, and the calls that came since
# (`pending`). A text is looked for behind the cursor, and behind the names of the pending calls.
#
# Invariant: the pieces partition raw. Characters that no part accounts for are markup, with a
# problem that says so; a part without characters goes with its neighbour.
#
# Cost: a text that is not there costs a search of the rest, once (`missing`).
#
# The result is what their `parse_generated_text` says of the whole text: a foreign parser gives no
# promise that its answer for a beginning will stand, and text that was handed out cannot be taken
# back. So `tp.stream` of such an object holds its events until `close`. Their own stream parser is
# what `create_stream_parser` gives, and `check_protocol` says whether the two agree.

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal, cast

from ...core.errors import ParserClosed, SetupError, UnknownName
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
    SegmentKind,
    Span,
    TextDelta,
    ToolCall,
    calls_by_segment,
)
from ...core.types.call_pieces import joined, member
from ...core.values import leaves, read_strict, write_canonical
from ...formats.base import Decoded, Protocol
from ...parser.recognition.echoes import judged
from ...parser.recognition.request import request_texts
from ...parser.resolve import Body, Resolver
from ...parser.state import not_a_chunk
from .protocol import ForeignProtocol, tools_for_them

# calls' own texts looked through for a name, where there are more or fewer of them than calls
_AHEAD = 8
_NEAR = 64  # characters behind a text in which a second place of it makes the first doubtful


@dataclass(frozen=True, slots=True)
class TheirPart:
    """One part of theirs: a text, reasoning, or a call with its name and its input as it came."""

    kind: Literal["text", "reasoning", "call"]
    text: str = ""
    name: str = ""
    input: Any = None
    id: str = ""


@dataclass(slots=True)
class Piece:
    """A piece of raw and the calls read from it."""

    kind: SegmentKind
    start: int
    end: int
    calls: list[TheirPart] = field(default_factory=list)


def place(raw: str, parts: Sequence[TheirPart], call_texts: Sequence[str]) -> Placement:
    """Cut `raw` into pieces with the calls they hold.

    call_texts: those that the parser names as its calls' texts, in order. May be empty.
    """
    placing = Placement(raw, call_texts)
    missing: set[str] = set()
    for i, part in enumerate(parts):
        text = part.text
        if part.kind == "call":
            placing.pending.append(part)
        if part.kind == "call" or not text:
            continue
        at = None if text in missing else placing.find(text, i == len(parts) - 1)
        if at is None:
            placing.unplaced = True
            missing.add(text)
            placing.complain_of_text(_short(text))
            continue
        end = at + len(text)
        # A call's own text may have the text too.
        doubtful = placing.pending and not placing.spans
        if doubtful and text in raw[at + 1 : end + len(text) + _NEAR]:
            message = "follows the call more than once; the first place was taken"
            placing.complain(
                "foreign.ambiguous-place", f"{_short(text)} {message}", Span(at, end), "info"
            )
        placing.fill(at)
        placing.pieces.append(Piece(part.kind, at, end))
        placing.cursor = end

    placing.fill(len(raw))
    placing.house()
    # Without empty pieces; a text may come in several parts, and white space between two of them.
    pieces: list[Piece] = []
    for piece in placing.pieces:
        if pieces and pieces[-1].kind == piece.kind == "text" and piece.start < piece.end:
            pieces[-1] = Piece("text", pieces[-1].start, piece.end)
        elif piece.start < piece.end:
            pieces.append(piece)
    placing.pieces = pieces
    return placing


class Placement:
    """The pieces of raw, the fault with the parts, and calls for which raw has no character."""

    def __init__(self, raw: str, call_texts: Sequence[str]) -> None:
        self._raw = raw
        self.problems: list[Problem] = []
        self.pieces: list[Piece] = []
        self.homeless: list[TheirPart] = []
        self.cursor = 0  # after the last piece
        self.pending: list[TheirPart] = []  # calls that came since
        self.unplaced = False  # a text came since that is not in raw
        self.spans: list[tuple[int, int]] = []  # the calls' own texts, in order
        end = 0
        for text in call_texts:
            at = raw.find(text, end) if text else -1
            if at < 0:
                self.complain_of_text(f"the call's text {_short(text)}")
                continue
            end = at + len(text)
            self.spans.append((at, end))

    def complain(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        severity: Literal["warning", "info"] = "warning",
    ) -> None:
        self.problems.append(Problem("scan", code, severity, message, "", span))

    def complain_of_text(self, what: str) -> None:
        self.complain("foreign.text-not-in-raw", f"{what} does not stand in the text")

    def find(self, text: str, last: bool) -> int | None:
        # The last part is looked for at the end first: the end of the text is most likely there.
        raw, cursor = self._raw, self.cursor
        if not self.pending and raw.startswith(text, cursor):
            return cursor
        if last and raw.endswith(text) and len(raw) - len(text) >= cursor:
            return len(raw) - len(text)
        # A text after a call is after the call's name, if the name is written out.
        start = cursor
        for call in self.pending:
            name_at = raw.find(call.name, start)
            if name_at < 0:
                break
            start = name_at + len(call.name)

        at = self._outside(text, start)
        return at if at is not None else self._outside(text, cursor)

    def _outside(self, text: str, start: int) -> int | None:
        # The first place that does not cut into a call's own text; one that contains it as a whole
        # does not. Spans are in order, so only the first and the last that the range touches can be
        # cut.
        spans, at = self.spans, self._raw.find(text, start)
        while at >= 0:
            end, after = at + len(text), 0
            first = bisect_right(spans, at, key=lambda s: s[1])
            for i in (first, bisect_left(spans, end, key=lambda s: s[0]) - 1):
                a, b = spans[i] if 0 <= i < len(spans) else (end, at)
                if a < end and at < b and not (at <= a and b <= end):
                    # Inside a call's text no place can be right, so the search goes on after it.
                    after = max(at + 1, b if at > a else at + 1)
                    break
            if not after:
                return at
            at = self._raw.find(text, after)
        return None

    def fill(self, end: int) -> None:
        # Pieces of the gap up to `end`, for the calls that are pending. A gap without text makes an
        # empty piece of them.
        at = self.cursor
        inside: list[tuple[int, int]] = []
        if self.pending:
            low = bisect_left(self.spans, at, key=lambda s: s[0])
            high = bisect_right(self.spans, end, lo=low, key=lambda s: s[1])
            inside = self.spans[low:high]
            gap = self._raw[at:end]
            if not inside and gap.strip():
                # None is known: all of the gap but the white space around it.
                inside = [(at + len(gap) - len(gap.lstrip()), at + len(gap.rstrip()))]
        for (first, after), calls in zip(inside, self._share(inside), strict=True):
            self._between(at, first)
            if calls:
                self.pieces.append(Piece("call", first, after, calls))
            else:
                self._between(first, after)
            at = after
        self._between(at, end)
        if self.pending and not inside:
            self.pieces.append(Piece("call", at, at, self.pending))
        self.pending = []
        self.unplaced = False

    def _between(self, start: int, end: int) -> None:
        # Characters that no part accounts for. White space is text, and so is the source of a
        # text that is not in raw as it is.
        text = self._raw[start:end]
        if start < end and (self.unplaced or not text.strip()):
            self.pieces.append(Piece("text", start, end))
        elif start < end:
            self.pieces.append(Piece("markup", start, end))
            message = f"no part accounts for {_short(text)}"
            self.complain("foreign.dropped-text", message, Span(start, end))

    def _share(self, spans: list[tuple[int, int]]) -> list[list[TheirPart]]:
        # One call each where there are as many spans, else by the names in them. Both are in order:
        # a call never belongs to a span before that of the call before it.
        if len(self.pending) == len(spans):
            return [[call] for call in self.pending]
        shares: list[list[TheirPart]] = [[] for _ in spans]
        current = 0
        for call in self.pending if spans else ():
            # Only a few spans ahead, so that many calls stay linear.
            ahead = range(current, min(len(spans), current + _AHEAD))
            named = (i for i in ahead if call.name in self._raw[slice(*spans[i])])
            current = next(named, current)
            shares[current].append(call)
        return shares

    def house(self) -> None:
        # Calls without a character of their own go to the piece before them, or else the first;
        # the homeless have no piece at all. A text with such a call becomes a call's piece.
        first = next((p for p in self.pieces if p.end > p.start), None)
        before: Piece | None = None
        for piece in self.pieces:
            if piece.end > piece.start:
                before = piece
                continue
            near = before or first
            if near is None:
                self.homeless += piece.calls
            elif piece.calls:
                name = _short(piece.calls[0].name)
                message = "has no characters of its own; it is shown on what stands next to it"
                self.complain("foreign.no-place", f"{name} {message}", Span(near.start, near.end))
                near.kind = "call"
                near.calls.extend(piece.calls)
            piece.calls = []


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


# A generator that never ends must not hang us: so many parts for each character, and so many more.
_PARTS_PER_CHARACTER = 2
_MORE_PARTS = 1000
# The spellings under which other SDKs have a call's members; the first that is there counts.
_NAME_KEYS = ("toolName", "tool_name", "name")
_INPUT_KEYS = ("input", "arguments", "args")
_ID_KEYS = ("toolCallId", "tool_call_id", "id")


class ForeignParser:
    """Collects one text and lets their protocol read it at the end. The arguments and methods are
    those of `StreamParser`.
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
        self._request = request_texts(request)
        self.protocol = protocol
        self.tools = {t.name: t for t in tools}
        self.options = options
        self._specs = tools
        self._chunks: list[str] = []
        self._events: list[Event] = []
        self._result: ParseResult | None = None

    def feed(self, chunk: str | None) -> tuple[Event, ...]:
        """Take a chunk. No event comes before `close`."""
        if self._result is not None:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        if isinstance(chunk, str):
            self._chunks.append(chunk)
        elif chunk is not None:
            raise not_a_chunk(chunk)
        return ()

    def close(self) -> ParseResult:
        """Return the result, the same each time. Their exceptions are problems of it."""
        if self._result is None:
            raw = joined(self._chunks)
            self._chunks = [raw]
            self._result = judged(self._read(raw), self._request)
            self._events = list(_events_of(self._result))
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """Return the events that closing settled: none before it, and none a second time."""
        events, self._events = tuple(self._events), []
        return events

    def text_of(self, span: Span) -> str:
        """Return the characters of a span. Before `close` the chunks are joined for each call."""
        return span.of("".join(self._chunks))

    def _read(self, raw: str) -> ParseResult:
        problems: list[Problem] = []
        parts = _parts_of(self.protocol, raw, self._specs, problems)
        call_texts: list[str] = []
        if parts and self.protocol.method("extract_tool_call_segments") is not None:
            try:
                call_texts = self.protocol.extract_tool_call_segments(raw, self._specs)
            except Exception as e:
                problems.append(_failed("extract_tool_call_segments", e))
        # All of it is text if their parser failed.
        placement = place(raw, (TheirPart("text", raw),) if parts is None else parts, call_texts)
        problems += placement.problems
        for lost in placement.homeless:
            message = (
                f"the parser says a call of {lost.name!r}, but there is no text it could stand in"
            )
            problems.append(Problem("scan", "foreign.no-place", "error", message))

        segments: list[Segment] = []
        calls: list[ToolCall] = []
        # Bodies bring the protocol's id along, which is all that a resolver asks of it here.
        resolver = Resolver(cast(Protocol, self.protocol), self.tools, self.options)
        for i, piece in enumerate(placement.pieces):
            span = Span(piece.start, piece.end)
            # A call's body is all of it, since nothing says where it begins.
            body_span = span if piece.kind in ("call", "reasoning") else None
            segments.append(Segment(piece.kind, span, body_span))
            if piece.calls:
                text = span.of(raw)
                body = Body(text, piece.start, piece.start, True, "closer", self.protocol.id)
                decoded = tuple(_decoded(call, text, len(piece.calls) == 1) for call in piece.calls)
                resolved = resolver.calls(decoded, body, segments[i], i, len(calls))
                calls.extend(map(_with_rough_origins, resolved))

        return ParseResult(
            raw, self.protocol.id, self.options, tuple(segments), tuple(calls), tuple(problems),
            self._specs,
        )  # fmt: skip


def _parts_of(
    protocol: ForeignProtocol, raw: str, tools: tuple[ToolSpec, ...], problems: list[Problem]
) -> list[TheirPart] | None:
    # None if their parser fails. They get the tools as AI SDKs hand them over, and an `on_error`
    # that adds problems.
    def on_error(message: Any = "", metadata: Any = None, *_: Any) -> None:
        # Member `toolCall` of their metadata is the text of the call, if they name it.
        text = None
        if isinstance(metadata, Mapping):
            text = metadata.get("toolCall", metadata.get("tool_call"))
        span = _find(raw, text) if isinstance(text, str) else None
        what = str(message) or "the parser reported an error"
        problems.append(Problem("decode", "foreign.reported", "error", what, "", span))

    limit = _PARTS_PER_CHARACTER * len(raw) + _MORE_PARTS

    try:
        parts = protocol.ask(
            "parse_generated_text",
            text=raw,
            tools=tools_for_them(tools),
            options=protocol.options_for({"on_error": on_error}),
        )
        if isinstance(parts, (str, Mapping)) or not isinstance(parts, Iterable):
            raise TypeError(f"it returned {type(parts).__name__}, not a list of parts")
        collected = list(islice(parts, limit + 1))
        if len(collected) > limit:
            raise ValueError(f"it returned more than {limit} parts")
    except (SetupError, UnknownName):
        # Their program is missing, or it has no such parser, of which the text knows nothing.
        raise
    except Exception as e:
        problems.append(_failed("parse_generated_text", e))
        return None

    return list(read_parts(collected, problems))


def read_parts(parts: Iterable[Any], problems: list[Problem]) -> Iterator[TheirPart]:
    """Read parts, in whichever way their keys are spelt.

    A part may be a string, a mapping or an object. One that is neither text nor call is a problem.
    """
    for part in parts:
        kind, text = member(part, "type"), member(part, "text")
        name = _first_text(part, _NAME_KEYS) if kind in ("tool-call", "tool_call") else None
        if isinstance(part, str):
            yield TheirPart("text", part)
        elif kind in ("text", "reasoning") and isinstance(text, str):
            yield TheirPart(kind, text)
        elif name is not None:
            # An input may be JSON text or a value.
            inputs = (member(part, key) for key in _INPUT_KEYS)
            input = next((value for value in inputs if value is not None), None)
            yield TheirPart("call", "", name, input, _first_text(part, _ID_KEYS) or "")
        else:
            message = f"a part that is neither text nor call: {str(part)[:80]}"
            problems.append(Problem("scan", "foreign.bad-part", "warning", message))


def _first_text(part: Any, keys: tuple[str, ...]) -> str | None:
    return next((text for key in keys if isinstance(text := member(part, key), str)), None)


def _failed(method: str, e: Exception) -> Problem:
    return Problem("scan", "parser.failed", "error", f"{method} raised {type(e).__name__}: {e}")


def _find(text: str, part: str) -> Span | None:
    at = text.find(part) if part else -1
    return Span(at, at + len(part)) if at >= 0 else None


def _decoded(call: TheirPart, text: str, alone: bool) -> Decoded:
    # An input that is not a JSON object makes an unreadable call. alone: the only one in `text`.
    # Of several, the first place of a name is not each one's own.
    name_span = _find(text, call.name) if alone else None
    # An id made up while parsing would differ every time.
    wire_id = call.id if alone and call.id and call.id in text else None

    try:
        # JSON text is read, Python values are written and read back; no input is an empty object.
        given = "{}" if call.input is None else call.input
        value = read_strict(given if isinstance(given, str) else write_canonical(given))
        complaint = None if isinstance(value, dict) else "the call's input is no JSON object"
    except (TypeError, ValueError, RecursionError) as e:
        value, complaint = None, f"the call's input is no JSON: {e}"

    if complaint is None:
        return Decoded(call.name, value, name_span, wire_id)
    problem = Problem("read", "call.not-an-object", "error", complaint)
    return Decoded(call.name, None, name_span, wire_id, problems=(problem,), readable=False)


def _with_rough_origins(call: ToolCall) -> ToolCall:
    # The call itself, marked as inexact, is the origin of every value: they say no places.
    if not call.readable:
        return call

    def table() -> dict[str, Origin]:
        origin = Origin(call.segment.span, False)
        paths = [path.split("/") for path, _ in leaves(read_strict(call.arguments_json))]
        above = ("/".join(path[:size]) for path in paths for size in range(2, len(path) + 1))
        return dict.fromkeys(["", *above], origin)

    return replace(call, origins=OriginTable(table))


def _events_of(result: ParseResult) -> Iterator[Event]:
    # The events that a parser of ours might have sent for such a result.
    kinds: dict[str, type[TextDelta | ReasoningDelta | Markup]]
    kinds = {"text": TextDelta, "reasoning": ReasoningDelta, "markup": Markup}
    calls = calls_by_segment(result.calls)
    for i, segment in enumerate(result.segments):
        if segment.kind in kinds:
            yield kinds[segment.kind](segment.span)
            continue
        # Opener and closer are unknown, and so of no length.
        start, end = segment.span.start, segment.span.end
        yield CallStart(Span(start, start))
        yield CallDelta(segment.span)
        yield CallEnd(Span(end, end), tuple(calls.get(i, ())))
