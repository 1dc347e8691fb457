"""The input of a call, shown while the model writes it.

The parts are those of an AI SDK: tool-input-start, tool-input-delta and tool-input-end. They are
for display. A call may be executed when it comes itself, after the end of its input, and an input
that began and becomes no call is taken back with tool-input-error.
"""

# How it works
# ------------
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

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core.errors import UnwritableCall
from ..core.toolspec import ToolSpec
from ..core.types import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    ParseOptions,
    ParseResult,
    Recovered,
    Retract,
    Span,
    ToolCall,
)
from ..core.values import write_canonical
from ..formats.base import Protocol
from ..formats.scan import partial_start
from .parse import Reader

Part = dict[str, Any]

_MARK = "Zq9mark"  # a word that every format writes as it is
_PIECE = 32  # characters of a value that are worth a look
_FEW = 4  # characters of a small body that are
_MOST_TRIED = 2  # tools, and slots of each, at one look
_BEGINS_MORE = "\\&<"  # an escape, an entity or a tag may begin here
_LONGEST = 12  # of an escape or an entity
_NO_CALL = "This input is not a call after all."
_THOUGHT = "This call was a thought of the model. Do not execute it."
_CHANGED = "This input was read otherwise in the end."


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


def whole_input(id: str, name: str, text: str) -> list[Part]:
    """Return the parts of an input that is shown at once."""
    return [_start(id, name), _delta(id, text), _end(id)]


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
        result: ParseResult = self._reader.parse(text)
        calls = result.calls
        # A format that is a whole message has segments of its own for its calls.
        if all(c.ok and not c.edits and c.segment.span.start == 0 for c in calls):
            return calls
        return ()

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

    Give it every event, ask it for the rest of each call that is made (`of_call`), end each body
    with `drop`, and `show` what the text so far says.

    text_of: the text of a span. id_of: the id of a call. A call that is still written has the
    index and the wire id that it will have. forget: told the index of a call whose id is void.
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
            return [_delta(input.id, arguments[len(so_far) :]), _end(input.id)]
        self._forget(call.index)
        return [_error(input, _CHANGED), *whole_input(self._id_of(call), name, arguments)]

    def drop(self, calls: Iterable[ToolCall] = ()) -> list[Part]:
        """Take back the inputs of some calls, which say why, and those of calls that never came."""
        if not self._inputs or self._open:
            return []

        why = {c.index: [p.message for p in c.problems if p.severity == "error"] for c in calls}
        parts: list[Part] = []
        for index in [i for i in self._inputs if i in why or i >= self._n_calls]:
            self._forget(index)
            parts.append(_error(self._inputs.pop(index), next(iter(why.get(index, ())), _NO_CALL)))
        return parts

    def withdrawn(self, calls: Iterable[ToolCall]) -> list[Part]:
        """Return the parts that take back calls which came already: they were thoughts."""
        return [_error(_Input(self._id_of(c), None, c.name, []), _THOUGHT) for c in calls]

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
        input = next(reversed(self._inputs.values()))
        input.text.append(write_canonical(value)[2:-1])
        return [_delta(input.id, input.text[-1])]

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
        input.text.append(text[len(so_far) :])
        return [_delta(input.id, input.text[-1])]


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


def _end(id: str) -> Part:
    return {"type": "tool-input-end", "id": id}


def _error(input: _Input, why: str) -> Part:
    part = {"type": "tool-input-error", "id": input.id, "toolName": input.name}
    return {**part, "errorText": why}
