"""An answer as content parts, the shape that chat front ends take: text, and tool calls with their
input as JSON.

A call that could not be read is a text part with its original text, and a failure that names the
reason. White space alone between two calls is no part.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import BadOptions, UnwritableCall
from ..core.toolspec import ToolSpec
from ..core.types import (
    CallDelta,
    CallEnd,
    CallStart,
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
from ..core.values import write_canonical
from ..entry.foreign.protocol import AnyProtocol, ForeignProtocol, TheirStream
from ..entry.parse import Reader, parse_text, stream
from ..formats.base import FAILURE, Protocol
from ..formats.registry import protocols
from ..formats.scan import partial_start

if TYPE_CHECKING:
    from ..entry.foreign.parser import ForeignParser
    from ..parser.engine import StreamParser

Part = dict[str, Any]
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
            calls = [call_part(c) for c in by_segment.get(index, ()) if _is_made(c)]
            # Nothing of an answer may get lost: a call that nobody can read, or that was only
            # thought or shown, is text as it was written.
            parts += calls or [{"type": "text", "text": text}]
        elif kind == "reasoning" or (kind == "text" and text.strip()):
            parts.append({"type": kind, "text": text})
    return parts


def _is_made(call: ToolCall) -> bool:
    # One of an unknown tool too: who runs the parts says so to the model.
    return call.status in ("ok", "unknown_tool")


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

    protocol: the one that parsed the result, if it has no id.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.middleware import failures_of
    >>> result = tp.parse('<tool_call>{"name"', "hermes")
    >>> failures_of(result)[0][0]
    'Could not process JSON tool call, keeping original text.'
    """
    groups = calls_by_segment(result.calls).values()
    failures = (_failure(lambda span: span.of(result.raw), calls, protocol) for calls in groups)
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
# before is `ToolInputs`'. Reasoning may be retracted too, where a call ends it that was never
# closed; what was handed out of it by then stays.
#
# Cost: that of `text_of`, which is called for the last characters only, and that of `ToolInputs`.


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
        id = f"text_{self._block}"
        if not self._open:
            self._blank += text
            if not self._blank.strip():
                return
            text, self._blank = self._blank, ""
            parts.append({"type": "text-start", "id": id})
            self._open = True
        parts.append({"type": "text-delta", "id": id, "delta": text})

    def _end_text(self, parts: list[Part]) -> None:
        self._blank = ""
        if self._open:
            parts.append({"type": "text-end", "id": f"text_{self._block}"})
            self._open = False
            self._block += 1

    def _calls(self, parts: list[Part], calls: tuple[ToolCall, ...]) -> None:
        made = [c for c in calls if _is_made(c)]
        inputs = self._inputs
        if calls and not made:
            parts += inputs.drop(calls) if inputs is not None else ()
            self._text(parts, self.parser.text_of(calls[0].segment.span))
            self._end_text(parts)
        for call in made:
            part = call_part(call)
            if inputs is not None:
                parts += inputs.of_call(call, call.name, part["input"])
            parts.append(part)
        if inputs is not None:
            parts += inputs.drop(c for c in calls if not _is_made(c))
        if self.on_error is not None:
            failure = _failure(self.parser.text_of, calls, self.parser.protocol)
            if failure is not None:
                call_safely(self.on_error, *failure)


def parse_generated_text(
    protocol: AnyProtocol, text: str, tools: Any = None, options: Any = None
) -> list[Part]:
    """Return the parts of a whole answer.

    A part is `{type: "text", text}` or `{type: "tool-call", toolCallId, toolName, input}`.
    `input` is JSON text.

    Args:
        options: None, ParseOptions, or a mapping of its fields, with `on_error` (or `onError`),
            called as on_error(message, metadata) for each call that could not be read, whose
            part is its text. The policy of coercion is 'middleware' by default.
    """
    if isinstance(protocol, ForeignProtocol):
        return protocol.parse_generated_text(text, tools, options)
    parse_options, on_error = read_options(options)
    result = parse_text(text, protocol, tools, parse_options)
    if on_error is not None:
        for message, metadata in failures_of(result, protocol):
            call_safely(on_error, message, metadata)
    return parts_of(result)


def create_stream_parser(
    protocol: AnyProtocol, tools: Any = None, options: Any = None
) -> PartStream | TheirStream:
    """Return a parser of chunks. Its `feed(chunk)` and `close()` return stream parts.

    Args:
        options: as for `parse_generated_text`. With `input_events=False` the parts
            tool-input-start, -delta and -end drop out.
    """
    if isinstance(protocol, ForeignProtocol):
        return protocol.create_stream_parser(tools, options)
    input_events = True
    if isinstance(options, Mapping):
        options = dict(options)
        input_events = bool(options.pop("input_events", True))
    parse_options, on_error = read_options(options)
    return PartStream(stream(protocol, tools, parse_options), on_error, input_events=input_events)


def extract_tool_call_segments(protocol: AnyProtocol, text: str, tools: Any = None) -> list[str]:
    """Return the pieces of `text` that are calls, delimiters included.

    Unreadable calls are among them.
    """
    if isinstance(protocol, ForeignProtocol):
        return protocol.extract_tool_call_segments(text, tools)
    result = parse_text(text, protocol, tools)
    return [s.span.of(result.raw) for s in result.segments if s.kind in ("call", "recovered")]


def read_options(options: Any) -> tuple[ParseOptions, OnError | None]:
    """Return the parse options and the reporter of failures.

    options: ParseOptions, or a mapping of their fields and `on_error` (or `onError`), of which the
    coercion policy is 'middleware' unless it names one, or None for an empty one. Raises
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


# The input of a call, shown while the model writes it.
#
# The parts are those of an AI SDK: tool-input-start, tool-input-delta and tool-input-end. They are
# for display. A call may be executed when it comes itself, after the end of its input, and an input
# that began and becomes no call is taken back with tool-input-error.
#
# An input is JSON text, and the model may write Python, XML or a format of one row in a table. So
# no text of the model is translated here. The format itself says how a text parameter begins and
# ends: it writes a call with a mark as the value, and what is before and after the mark are the two
# halves of a `_Slot`. The text so far and the second half are a whole call where that parameter is
# being written. It is read by the parser and coerced as the whole call will be, and its input is
# the final one as far as the value goes. That is `_look`. From there on only what is new is read,
# between both halves (`_more`), until the value ends.
#
# Invariant: an input that ends equals the call's. What was input is compared with the call when
# that is whole (`of_call`), and an input that it does not continue is taken back. Before that
# nothing is shown of the end of the value, so what was input is never JSON that a program could
# execute.
#
# Cost: `_look` reads the whole body, so the body has to grow by a sixteenth before the next one.
# `_more` reads each character once, and the halves again for every `_PIECE` of them. Together they
# are linear in the text.

_MARK = "Zq9mark"  # a word that every format writes as it is
_PIECE = 32  # characters of a value that are worth a look
_FEW = 4  # characters of a small body that are
_MOST_TRIED = 2  # tools, and slots of each, at one look
_BEGINS_MORE = "\\&<"  # an escape, an entity or a tag may begin here
_LONGEST = 12  # of an escape or an entity
_NO_CALL = "This input is not a call after all."
_CHANGED = "This input was read otherwise in the end."


def _why_draft(call: ToolCall) -> str:
    return call.problems[0].message if call.problems else "the call is a draft"


class _Slot(NamedTuple):
    # A text parameter of a tool as the format writes it: before its value, and after it.
    tool: str
    parameter: str
    before: str
    after: str


@dataclass(slots=True)
class _Input:
    # An input on display. text: all deltas so far. wire_id: as the text gave it by then.
    id: str
    wire_id: str | None
    name: str
    text: list[str]

    def add(self, text: str) -> Part:
        self.text.append(text)
        return _delta(self.id, text)


def whole_input(id: str, name: str, text: str) -> list[Part]:
    """Return the parts of an input that is shown at once."""
    return [_start(id, name), *_rest(id, text)]


class _Format:
    # Writes the text parameters of some tools, and reads a body that was completed.

    def __init__(
        self, protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions
    ) -> None:
        self._protocol = protocol
        self._tools = {tool.name: tool for tool in tools}
        # As the whole answer is read, but nothing is guessed: a repair may read the rest otherwise.
        self._options = replace(
            options, repair=False, recover=False, validate=False, reasoning="auto"
        )
        self._reader: Reader | None = None
        self._slots: dict[str, tuple[_Slot, ...]] = {}

    def calls(self, text: str) -> tuple[ToolCall, ...]:
        # None for a body that is not clean.
        if self._reader is None:
            self._reader = Reader(self._protocol, tuple(self._tools.values()), self._options)
        calls = self._reader.parse(text).calls
        # A format that is a whole message has segments of its own for its calls.
        clean = all(c.ok and not c.edits and c.segment.span.start == 0 for c in calls)
        return calls if clean else ()

    def slots(self, text: str) -> Iterable[_Slot]:
        # The parameters that may be the one that is being written, the last named first.
        for name in _last_named(self._tools, text):
            if name not in self._slots:
                self._slots[name] = tuple(_slots_of(self._protocol, self._tools[name]))
            ends = {slot.parameter: slot for slot in self._slots[name]}
            tried: set[str] = set()
            for parameter in _last_named(ends, text):
                slot = ends[parameter]
                if slot.after not in tried:
                    tried.add(slot.after)
                    yield slot


class ToolInputs:
    """The inputs of one answer's calls.

    Give it every event (`note`), ask it for the rest of each call that is made (`of_call`), end
    each body with `drop`, and `show` what the text so far says.

    text_of: the text of a span. id_of: the id of a call, also of one that is still written. forget:
    told the index of a call whose id is void.
    """

    def __init__(
        self,
        protocol: Any,
        tools: Iterable[ToolSpec],
        options: ParseOptions,
        text_of: Callable[[Span], str],
        id_of: Callable[[ToolCall], str],
        forget: Callable[[int], object] = bool,
    ) -> None:
        # 'auto' writes no calls, and nothing is known of how another's protocol does.
        writes = isinstance(protocol, Protocol) and protocol.id != "auto"
        self._format = _Format(protocol, tuple(tools), options) if writes else None
        self._text_of = text_of
        self._id_of, self._forget = id_of, forget
        self._n_calls = 0  # of the bodies that ended
        self._inputs: dict[int, _Input] = {}  # index of a call -> what is shown of it
        # The open body: from the opener's start to the end of what was seen.
        self._start = self._seen = 0
        self._open = False
        self._next = 0  # where the text has to be for the next look
        # The parameter that is being written, and how far its value was shown.
        self._slot: _Slot | None = None
        self._at = 0

    def note(self, event: Event) -> None:
        """Take in an event, before the parts of it are made."""
        if isinstance(event, CallDelta):
            self._seen = event.span.end
        elif isinstance(event, CallStart):
            self._start, self._seen = event.span.start, event.span.end
            self._open = self._format is not None
            self._next = self._seen + _FEW
            self._slot = None
        elif isinstance(event, (CallEnd, Recovered)):
            self._open = False
            self._n_calls += len(event.calls)
        elif isinstance(event, Retract):
            self._slot = None
            self._seen = event.start
            self._open = self._open and event.start > self._start

    def of_call(self, call: ToolCall, name: str, arguments: str) -> list[Part]:
        """Return the parts before a call that is made, which end its input.

        name, arguments: the tool and the input, as those who execute the call get them.
        """
        input = self._inputs.pop(call.index, None)
        if input is None:
            return whole_input(self._id_of(call), name, arguments)

        so_far = "".join(input.text)
        same = (call.wire_id, name) == (input.wire_id, input.name)
        if same and arguments.startswith(so_far):
            return _rest(input.id, arguments[len(so_far) :])
        self._forget(call.index)
        return [_error(input, _CHANGED), *whole_input(self._id_of(call), name, arguments)]

    def drop(self, calls: Iterable[ToolCall] = ()) -> list[Part]:
        """Take back the inputs of some calls, which say why, and those of calls that never came."""
        if not self._inputs or self._open:
            return []

        # The first problem of a draft says why it is one, even where that is a warning.
        why = {
            c.index: [p.message for p in c.problems if p.severity == "error" or c.status == "draft"]
            for c in calls
        }
        parts: list[Part] = []
        for index in [i for i in self._inputs if i in why or i >= self._n_calls]:
            self._forget(index)
            parts.append(_error(self._inputs.pop(index), next(iter(why.get(index, ())), _NO_CALL)))
        return parts

    def withdrawn(self, calls: Iterable[ToolCall]) -> list[Part]:
        """Return the parts that take back calls which came already: they were thoughts, or only
        shown.
        """
        return [
            _error(_Input(self._id_of(c), None, c.name, []), f"Do not execute it: {_why_draft(c)}.")
            for c in calls
        ]

    def show(self) -> list[Part]:
        """Return what the text so far adds to the inputs of the open body."""
        format = self._format
        if format is None or not self._open or self._seen < self._next:
            return []
        return self._look(format) if self._slot is None else self._more(format, self._slot)

    def _look(self, format: _Format) -> list[Part]:
        # Read the body from its opener, and show what its calls have in common with the end.
        self._next = self._seen + max(_FEW, (self._seen - self._start) // 16)
        text = self._text_of(Span(self._start, self._seen))
        for slot in format.slots(text):
            so_far = text[: _settled(text, slot.after)]
            calls = format.calls(so_far + slot.after)
            if not calls or calls[-1].name != slot.tool or not _ends_in(calls[-1], slot):
                continue

            self._slot, self._at = slot, self._start + len(so_far)
            self._next = self._at + _PIECE
            # The last value is still written: its quote and the brace are not there yet.
            texts = [call.arguments_json[:-1] for call in calls]
            texts[-1] = texts[-1][:-1]
            return [p for i, text in enumerate(texts) for p in self._up_to(i, calls[i], text)]

        return []

    def _more(self, format: _Format, slot: _Slot) -> list[Part]:
        # Show what was added to the value that is being written.
        self._next = self._seen + max(_PIECE, (self._seen - self._at) // 16)
        text = self._text_of(Span(self._at, self._seen))
        new = text[: _settled(text, slot.after)]
        if not new:
            return []

        # A letter before it: some formats trim a value, and this is no beginning of one.
        calls = format.calls(f"{slot.before}x{new}{slot.after}")
        value = calls[0].arguments.get(slot.parameter) if len(calls) == 1 else None
        if type(value) is not str or calls[0].arguments.keys() != {slot.parameter}:
            # The value is over. The next one is found by a look at the whole.
            self._slot = None
            self._next = self._seen + max(_FEW, (self._seen - self._start) // 16)
            return []
        if _is_half(value):
            return []

        self._at += len(new)
        return [next(reversed(self._inputs.values())).add(write_canonical(value)[2:-1])]

    def _up_to(self, place: int, call: ToolCall, text: str) -> list[Part]:
        # Nothing where the input says something else than was shown: the end of the call decides.
        call = replace(call, index=self._n_calls + place)
        input = self._inputs.get(call.index)
        if input is None:
            input = self._inputs[call.index] = _Input(
                self._id_of(call), call.wire_id, call.name, [text]
            )
            return [_start(input.id, input.name), _delta(input.id, text)]

        so_far = "".join(input.text)
        if input.name != call.name or not text.startswith(so_far) or text == so_far:
            return []
        return [input.add(text[len(so_far) :])]


def _last_named(names: Iterable[str], text: str) -> list[str]:
    # The few names that are nearest to the text's end.
    places = sorted(((text.rfind(name), len(name), name) for name in names), reverse=True)
    return [name for at, _, name in places[:_MOST_TRIED] if at >= 0]


def _slots_of(protocol: Protocol, tool: ToolSpec) -> Iterable[_Slot]:
    # The parameters that are plain text, as the format writes them.
    schema = tool.schema
    properties = schema.get("properties") if isinstance(schema, dict) else None
    for name, member in (properties or {}).items():
        # A value of an enum, or one that a format is declared for, may be coerced as a whole.
        if not isinstance(member, dict) or member.get("type") != "string":
            continue
        if not member.keys().isdisjoint(("enum", "const", "format", "anyOf", "oneOf", "allOf")):
            continue
        try:
            example = protocol.write_call(tool.name, write_canonical({name: _MARK}), tool)
        except UnwritableCall:
            continue
        before, mark, after = example.partition(_MARK)
        if mark and after and _MARK not in after:
            yield _Slot(tool.name, name, before, after)


def _settled(text: str, after: str) -> int:
    # How much of a value's text is final, whatever follows. A part of `after` at the end is held
    # back, and so are white space, which a format may trim, and the beginning of an escape, an
    # entity or a tag.
    end = partial_start(text, (after, after.lstrip()))
    late = max(0, end - _LONGEST)
    places = [at for sign in _BEGINS_MORE if (at := text.find(sign, late, end)) >= 0]
    # In a row of backslashes every second one is escaped, so none of them is split off.
    return len(text[: min(places, default=end)].rstrip("\\").rstrip())


def _ends_in(call: ToolCall, slot: _Slot) -> bool:
    # The last value is a text of that parameter, and one that no format trims: the beginning is
    # there, and no white space at the end.
    arguments = call.arguments
    if next(reversed(arguments), None) != slot.parameter:
        return False
    value = arguments[slot.parameter]
    return type(value) is str and value[-1:].strip() != "" and not _is_half(value)


def _is_half(value: str) -> bool:
    # Half of a surrogate pair, as an escape may leave it.
    return bool(value) and "\ud800" <= value[-1] <= "\udbff"


def _start(id: str, name: str) -> Part:
    return {"type": "tool-input-start", "id": id, "toolName": name}


def _delta(id: str, text: str) -> Part:
    return {"type": "tool-input-delta", "id": id, "delta": text}


def _rest(id: str, text: str) -> list[Part]:
    return [_delta(id, text), {"type": "tool-input-end", "id": id}]


def _error(input: _Input, why: str) -> Part:
    part = {"type": "tool-input-error", "id": input.id, "toolName": input.name}
    return {**part, "errorText": why}
