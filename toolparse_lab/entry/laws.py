"""The laws of every parse, each a function that raises LawBroken.

They hold for any text whatever, so they can be checked on text that no one has read: on cases, on
random text, on the recorded answers of a model.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..arguments.rjson.positions import apply_edits
from ..arguments.schema.coerce import coerce
from ..core.errors import UnwritableCall
from ..core.toolspec import ToolSpec, tool_specs
from ..core.types import Edit, ParseResult, ToolCall, calls_by_segment
from ..core.types.call_pieces import joined
from ..core.values import leaves, pointer_set, read_strict, same, write_canonical
from ..formats.base import DecodeContext, Opening, Protocol
from ..formats.json.mix import HERMES
from ..formats.registry import protocol_of, protocols
from .parse import parse, stream

LONG = 2048  # above this many characters not every split is tried

_STRING = {"type": "string"}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "f": {"a": {"type": "integer"}, "s": _STRING},
    "put": {
        "path": _STRING,
        "tags": {"type": "array", "items": _STRING},
        "o": {"type": "object", "properties": {"k": {"type": "number"}}},
    },
}
TOOLS = tool_specs(
    [
        {"name": name, "parameters": {"type": "object", "properties": properties}}
        for name, properties in _PARAMETERS.items()
    ]
)
# Pieces that mean something to some format, and characters that scanners stumble over.
ODD = (
    "{", "}", "[", "]", '"', "'", "\\", ",", ":", "//", "/*", "<", ">", "</", "&", "&lt;", "`",
    "```", "```json\n", "\n", "\r\n", " ", "\t", "x", "é", "😀", "\ud83d", "\udc00", "\x00", "“",
    "<think>", "</think>", "1", "true", "None",
)  # fmt: skip

Log = list[tuple[Any, ...]]
_DELTAS = frozenset(("TextDelta", "ReasoningDelta", "CallDelta"))
_RETRACTABLE = frozenset(("CallStart", "CallDelta", "ReasoningDelta", "Markup"))


class LawBroken(AssertionError):
    """A law that does not hold, and why."""

    def __init__(self, law: str, why: str) -> None:
        self.law = law
        self.why = why
        super().__init__(f"{law}: {why}")


@dataclass(frozen=True, slots=True)
class Trial:
    """One text, parsed: the object of the laws. `log` is the merged event log."""

    raw: str
    protocol: Any
    tools: Any
    options: Any
    result: ParseResult
    log: Log


def run_chunks(
    chunks: Iterable[str], protocol: Any, tools: Any, options: Any = None
) -> tuple[ParseResult, Log]:
    """Return the result and the merged event log of one chunking, events of closing included."""
    return feed_chunks(stream(protocol, tools, options), chunks)


def feed_chunks(parser: Any, chunks: Iterable[str]) -> tuple[ParseResult, Log]:
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    result = parser.close()
    return result, merge([*events, *parser.last_events()])


def merge(events: Iterable[Any]) -> Log:
    """Return the event log (kind, start, end, calls), which is the same for every chunking: without
    what was retracted, neighbouring deltas of one kind as one.
    """
    log: Log = []
    for event in events:
        kind = type(event).__name__
        if kind == "Retract":
            rest: Log = []
            for name, a, b, calls in log:
                # An opener without characters at this very place is void as well.
                if b <= event.start and not (name == "CallStart" and a == b == event.start):
                    rest.append((name, a, b, calls))
                    continue
                if name not in _RETRACTABLE:
                    raise LawBroken("text is final", f"{name} was retracted")
                # An entry that reaches over the place is cut there.
                if a < event.start:
                    rest.append((name, a, event.start, calls))
            log = rest
            continue
        if kind == "Withdrawn":
            # Calls keep the reading that took the place of an earlier one.
            new = {call.index: call for call in event.calls}
            log = [
                (name, a, b, calls and tuple(new.get(call.index, call) for call in calls))
                for name, a, b, calls in log
            ]
            continue

        start, end = event.span.start, event.span.end
        if kind == "Recovered" and start == end:
            log = [(name, a, b, calls and ()) for name, a, b, calls in log]
        is_delta = kind in _DELTAS
        if is_delta and log and log[-1][0] == kind and log[-1][2] == start:
            log[-1] = (kind, log[-1][1], end, None)
        elif start < end or not is_delta:
            log.append((kind, start, end, getattr(event, "calls", None)))

    return log


def chunkings(
    raw: str, delimiters: Sequence[str] = (), seed: int = 0, most: int = LONG
) -> Iterator[list[str]]:
    """Yield every two-way split, and character by character.

    Of a text longer than `most` characters, up to 200 splits near delimiters and up to 200
    anywhere, drawn by lot with `seed`.

    >>> list(chunkings("ab"))
    [['', 'ab'], ['a', 'b'], ['ab', ''], ['a', 'b']]
    """
    cuts: Iterable[int] = range(len(raw) + 1)
    if len(raw) > most:
        rng = random.Random(seed)  # noqa: S311 - splits, not secrets
        count = min(200, most)
        anywhere = {rng.randrange(len(raw)) for _ in range(count)}
        # In delimiters and up to two characters next to them splits do most harm.
        near: set[int] = set()
        for delimiter in filter(None, delimiters):
            start = raw.find(delimiter)
            while start >= 0:
                near.update(range(max(0, start - 2), start + len(delimiter) + 3))
                start = raw.find(delimiter, start + 1)
        near_delimiters = [cut for cut in sorted(near) if cut <= len(raw)]
        # A text of nothing but delimiters is near one everywhere, and its splits repeat themselves.
        if len(near_delimiters) > count:
            near_delimiters = rng.sample(near_delimiters, count)
        cuts = sorted({*near_delimiters, *anywhere})

    for cut in cuts:
        yield [raw[:cut], raw[cut:]]
    yield list(raw)


def try_text(raw: str, protocol: Any, tools: Any = None, options: Any = None) -> Trial:
    # Raises LawBroken for a protocol that raises or a log that takes text back.
    try:
        result, log = run_chunks([raw], protocol, tools, options)
    except LawBroken:
        raise
    except Exception as e:
        raise LawBroken("total", f"raised {type(e).__name__}: {e}") from e

    # The parser joins the halves of a surrogate pair.
    _hold(result.raw == joined([raw]), "partition", "the result's raw text is another one")
    return Trial(result.raw, protocol, tools, options, result, log)


def check_all(
    raw: str,
    protocol: Any,
    tools: Any = None,
    options: Any = None,
    *,
    every_split: bool = True,
    most: int = LONG,
) -> ParseResult:
    """Check every law on one text and return its result. Raises LawBroken.

    every_split: also split invariance. most: see `chunkings`.

    >>> check_all("<tool_call>{", "hermes").calls[0].status
    'truncated'
    """
    trial = try_text(raw, protocol, tools, options)
    for law, check in TEXT_LAWS.items():
        if law != "split invariance":
            check(trial)
        elif every_split:
            check_splits(trial, most)

    return trial.result


def _hold(condition: bool, law: str, why: str) -> None:
    if not condition:
        raise LawBroken(law, why)


def check_partition(result: ParseResult) -> None:
    """The segments, joined, are raw. Raises LawBroken with the law 'partition'."""
    at = 0
    for segment in result.segments:
        _hold(segment.span.start == at, "partition", "segments leave a gap or overlap")
        _hold(len(segment.span) > 0, "partition", "an empty segment")
        is_inside = segment.body is None or segment.span.covers(segment.body)
        _hold(is_inside, "partition", "a body outside its segment")
        at = segment.span.end
    _hold(at == len(result.raw), "partition", "segments do not reach the end")


def check_splits(trial: Trial, most: int = LONG) -> None:
    # Splits are most likely to do harm in openers, so those of all protocols are looked for.
    by_name = {t.name: t for t in tool_specs(trial.tools)}
    all_protocols = list(protocols().values())
    if isinstance(trial.protocol, Protocol):
        all_protocols.append(trial.protocol)

    heads = [head for protocol in all_protocols for head in protocol.envelope.heads(by_name)]
    for chunks in chunkings(trial.raw, heads, most=most):
        other, log = run_chunks(chunks, trial.protocol, trial.tools, trial.options)
        where = f"[…{chunks[0][-20:]!r}, …]" if len(chunks) == 2 else "character by character"
        _hold(other == trial.result, "split invariance", f"the result depends on the split {where}")
        _hold(log == trial.log, "split invariance", f"the event log depends on the split {where}")


def check_log(result: ParseResult, log: Log) -> None:
    # The events, with retractions honoured, say every character once, and their calls are those of
    # the result, in the same order.
    at = 0
    calls: list[ToolCall] = []
    for _kind, start, end, of_event in log:
        if start != at:
            why = f"the event log leaves a gap or says something twice at {at}: {log}"
            raise LawBroken("log replay", why)
        at = end
        calls.extend(of_event or ())
    _hold(at == len(result.raw), "log replay", "the event log does not reach the end")
    _hold(tuple(calls) == result.calls, "log replay", "the events' calls are not the result's")


def check_serial(result: ParseResult) -> None:
    """The result survives JSON, origins included."""
    # Through text, because a tuple would survive a dict.
    text = json.dumps(result.to_dict())
    again = ParseResult.from_dict(json.loads(text))
    _hold(again == result, "serial", "the result that was read back is another one")

    # They are not part of its equality.
    for a, b in zip(result.calls, again.calls, strict=True):
        is_same = dict(a.origins.get()) == dict(b.origins.get())
        _hold(is_same, "serial", "the origins that were read back are others")


def check_calls(result: ParseResult) -> None:
    for call in result.calls:
        _check_call(result, call)


def _check_call(result: ParseResult, call: ToolCall) -> None:
    is_there = call.segment == result.segments[call.segment_index]
    _hold(is_there, "partition", "a call's segment is none of the result's")
    if not call.readable:
        # It has no arguments, so only its status is looked at.
        is_refused = call.status in ("truncated", "undecodable")
        _hold(is_refused, "trace replay", "an unreadable call of another status")
        return

    # The steps of coercion, applied to the source, give the arguments. Steps of other stages, such
    # as validation, change no value.
    value = read_strict(call.source_json)
    for step in call.steps:
        if step.stage == "coerce":
            # A copy: a later step may set a value inside an earlier one, which has to stay.
            after = read_strict(write_canonical(step.after))
            value = pointer_set(value, step.path, after)
    reached = write_canonical(value) == call.arguments_json
    _hold(reached, "trace replay", "the steps do not lead from source to arguments")

    # A call of a tool that no one offered was not coerced, so there is nothing to repeat.
    tool = next((t for t in result.tools if t.name == call.name), None)
    if tool is not None:
        arguments = read_strict(call.arguments_json)
        # A text of JSON is no item of the list that a schema wants, and the call is invalid.
        policy, one_item = result.options.coerce, call.valid
        again = coerce(arguments, tool.schema_json, policy, one_item=one_item)
        _hold(again.steps == (), "idempotent", f"coercing twice makes a step: {again.steps}")

    if call.name_span is not None:
        text = call.name_span.of(result.raw)
        # A name may be written with escapes of JSON or entities of XML, or without its dots.
        dotted = any(step.rule == "read.dotted-name" for step in call.steps)
        name = call.name.replace(".", "_") if dotted else call.name
        right = text == name or "\\" in text or "&" in text
        _hold(right, "trace replay", f"the name's span says {text!r}")

    table = call.origins.get()
    for path, _leaf in leaves(read_strict(call.arguments_json)):
        _hold(path in table, "trace replay", f"no origin for {path!r}")
        span = table[path].span
        # A value that a repair added is nowhere in the text, so its span is empty.
        inside = call.segment.span.covers(span) or len(span) == 0
        _hold(inside, "trace replay", f"the origin of {path!r} is outside its call")


_JSON_BODY = re.compile(r"\s*+(?:\[\s*+)?\{")


def check_edits(result: ParseResult, used: Any, law: str) -> None:
    # Body by body: the edited body reads strictly to the same. A body that is strict has no edit.
    # used: the protocol of the parse. law: 'edit law' or 'strict identity', one at a time.
    for index, calls in calls_by_segment(result.calls).items():
        segment = result.segments[index]
        if segment.body is None or not all(call.readable for call in calls):
            continue

        owner = _owner(result, used, index, calls)
        tools = {tool.name: tool for tool in result.tools}
        body = segment.body
        # Arguments may be in the opener, between the name and the body.
        name = calls[0].name_span
        attributes = result.raw[name.end : body.start] if name else ""
        opening = Opening(0, name=calls[0].name, attributes=attributes)
        context = DecodeContext(opening, True, False, 1000, tools)
        edits = sorted((e for c in calls for e in c.edits), key=lambda e: e.span)
        if law == "edit law":
            for a, b in pairwise(edits):
                _hold(a.span.end <= b.span.start, "edit law", f"edits overlap: {a} {b}")
            local = [Edit(e.span.shift(-body.start), e.text, e.rule) for e in edits]
            edited = apply_edits(body.of(result.raw), local)
            strict = owner.codec.strict(edited, context)
            _hold(strict, "edit law", f"the edited body is not strict: {edited[:200]!r}")

            values = [decoded.arguments for decoded in owner.codec.read(edited, context)]
            same_number = len(values) == len(calls)
            _hold(same_number, "edit law", "the edited body holds another number of calls")
            for value, call in zip(values, calls, strict=True):
                right = same(value, read_strict(call.source_json))
                _hold(right, "edit law", "the edited body reads to something else")
        elif owner.codec.strict(body.of(result.raw), context):
            _hold(not edits, "strict identity", f"a strict body was edited: {edits}")


def _owner(result: ParseResult, used: Any, index: int, calls: list[ToolCall]) -> Protocol:
    # With 'auto' each segment may be of another protocol, which its calls name.
    segment = result.segments[index]
    if segment.kind == "recovered" and segment.body is not None:
        name = calls[0].name_span
        if name is not None and name.end <= segment.body.start:
            return protocol_of("glm4_9b")  # nothing but arguments, after a line with the name
        # Read as JSON or as Python, whatever the protocol; a list may be either.
        is_json = _JSON_BODY.match(segment.body.of(result.raw))
        return HERMES if is_json else protocol_of("pythonic")

    if any(step.rule == "read.python-body" for step in calls[0].steps):
        return protocol_of("pythonic")
    id = calls[0].protocol
    if "auto" in (used, getattr(used, "id", "")):
        return protocol_of(id)

    protocol = protocol_of(used)
    return protocol if protocol.id == id else protocol_of(id)


def check_round_trip(protocol: Any, tool: ToolSpec, arguments_json: str) -> bool:
    """Return False if writing raises UnwritableCall, True if the call reads back the same. Raises
    LawBroken."""
    # A call that cannot be written is refused, never changed.
    try:
        text = protocol.write_call(tool.name, arguments_json, tool)
    except UnwritableCall:
        return False
    except Exception as e:
        raise LawBroken("round trip", f"writing raised {type(e).__name__}: {e}") from e

    calls = parse(text, protocol, [tool]).calls
    named = [c.name for c in calls if c.ok] == [tool.name]
    _hold(named, "round trip", f"{text!r} reads as {[str(c) for c in calls]}")
    right = same(read_strict(calls[0].arguments_json), read_strict(arguments_json))
    _hold(right, "round trip", f"{text!r} reads as {calls[0].arguments_json}")
    return True


TEXT_LAWS: Mapping[str, Callable[[Trial], None]] = {
    "partition": lambda t: check_partition(t.result),
    "log replay": lambda t: check_log(t.result, t.log),
    "serial": lambda t: check_serial(t.result),
    "trace replay": lambda t: check_calls(t.result),
    "edit law": lambda t: check_edits(t.result, t.protocol, "edit law"),
    "strict identity": lambda t: check_edits(t.result, t.protocol, "strict identity"),
    "split invariance": check_splits,
}
"""The laws of one text, by name; 'trace replay' is checked together with 'idempotent'."""
