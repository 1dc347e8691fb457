"""The laws every parse must keep, each a function that raises LawBroken.

They hold for any text whatever, so they can be checked on text that nobody has read: on cases, on random text, on the
recorded answers of a model. `tp.check_protocol` runs them on a protocol of one's own.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .api import parse, stream
from .errors import UnwritableCall
from .protocols.base import Opening, Protocol, Reading
from .protocols.json_mix import HERMES
from .registry import protocol_of, protocols
from .rjson.positions import apply_edits
from .schema.coerce import coerce
from .toolspec import ToolSpec, tool_specs
from .types import Edit, ParseResult, Span, ToolCall
from .values import leaves, pointer_set, read_strict, same, write_canonical

LONG = 2048  # above this many characters not every split is tried

Log = list[tuple[Any, ...]]


class LawBroken(AssertionError):
    """A law that does not hold, and why."""

    def __init__(self, law: str, why: str) -> None:
        self.law = law
        self.why = why
        super().__init__(f"{law}: {why}")


@dataclass(frozen=True, slots=True)
class Trial:
    """One text, parsed: what the laws look at. `log` is the merged event log."""

    raw: str
    protocol: Any
    tools: Any
    options: Any
    result: ParseResult
    log: Log


def run_chunks(chunks: Iterable[str], protocol: Any, tools: Any, options: Any = None) -> tuple[ParseResult, Log]:
    """The result and the merged event log of one chunking."""
    parser = stream(protocol, tools, options)
    events: list[Any] = []
    for chunk in chunks:
        events.extend(parser.feed(chunk))
    result = parser.close()
    events.extend(parser.last_events())
    return result, merge(events)


def merge(events: Iterable[Any]) -> Log:
    """The event log with retracted parts taken back and neighbouring deltas of one kind made one."""
    log: Log = []
    for e in events:
        kind = type(e).__name__
        if kind == "Retract":
            log = retract(log, e.start)
            continue
        calls = getattr(e, "calls", None)
        mergeable = kind in ("TextDelta", "ReasoningDelta", "CallDelta")
        if mergeable and len(e.span) == 0:
            continue
        if mergeable and log and log[-1][0] == kind and log[-1][2] == e.span.start:
            log[-1] = (kind, log[-1][1], e.span.end, None)
        else:
            log.append((kind, e.span.start, e.span.end, calls))
    return log


def retract(log: Log, start: int) -> Log:
    """What is left of a log once everything from `start` on is void; text is never void."""
    kept: Log = []
    for kind, a, b, calls in log:
        if b <= start and not (kind == "CallStart" and a == b == start):
            kept.append((kind, a, b, calls))
        else:
            if kind not in ("CallStart", "CallDelta", "ReasoningDelta", "Markup"):
                raise LawBroken("text is final", f"{kind} was retracted")
            if a < start:
                kept.append((kind, a, start, calls))
    return kept


def chunkings(raw: str, delimiters: Sequence[str] = (), seed: int = 0, most: int = LONG) -> Iterator[list[str]]:
    """Every two-way split, of a text longer than `most` those near delimiters and up to 500 at random; and character by
    character."""
    if len(raw) <= most:
        cuts: Iterable[int] = range(len(raw) + 1)
    else:
        near = {i + d for lit in delimiters if lit for i in _finds(raw, lit) for d in range(-2, len(lit) + 3)}
        rng = random.Random(seed)  # noqa: S311 - splits, not secrets
        cuts = sorted(
            {c for c in near if 0 <= c <= len(raw)} | {rng.randrange(len(raw)) for _ in range(min(500, most))}
        )
    for cut in cuts:
        yield [raw[:cut], raw[cut:]]
    yield list(raw)


def _finds(raw: str, literal: str) -> Iterator[int]:
    at = raw.find(literal)
    while at >= 0:
        yield at
        at = raw.find(literal, at + 1)


def try_text(raw: str, protocol: Any, tools: Any = None, options: Any = None) -> Trial:
    """The text, parsed in one piece. Raises LawBroken for a protocol that raises or a log that takes text back."""
    try:
        result, log = run_chunks([raw], protocol, tools, options)
    except LawBroken:
        raise
    except Exception as e:
        raise LawBroken("total", f"raised {type(e).__name__}: {e}") from e
    joined = raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    _hold(result.raw == joined, "partition", "the result's raw text is another one")
    return Trial(result.raw, protocol, tools, options, result, log)


def check_all(
    raw: str, protocol: Any, tools: Any = None, options: Any = None, *, every_split: bool = True
) -> ParseResult:
    """Every law of one text; split invariance unless `every_split` is False. Raises LawBroken for the first that fails.

    >>> check_all("<tool_call>{", "hermes").calls[0].status
    'truncated'
    """
    trial = try_text(raw, protocol, tools, options)
    for law, check in TEXT_LAWS.items():
        if law != "split invariance" or every_split:
            check(trial)
    return trial.result


def _hold(condition: bool, law: str, why: str) -> None:
    if not condition:
        raise LawBroken(law, why)


def check_partition(result: ParseResult) -> None:
    """The segments, joined, are raw."""
    at = 0
    for segment in result.segments:
        _hold(segment.span.start == at, "partition", "segments leave a gap or overlap")
        _hold(len(segment.span) > 0, "partition", "an empty segment")
        _hold(segment.body is None or segment.span.covers(segment.body), "partition", "a body outside its segment")
        at = segment.span.end
    _hold(at == len(result.raw), "partition", "segments do not reach the end")


def check_splits(trial: Trial, most: int = LONG) -> None:
    """The result and the merged event log are the same for all splits."""
    known = {t.name: t for t in tool_specs(trial.tools)}
    spoken = [p for p in (trial.protocol,) if isinstance(p, Protocol)]
    heads = [lit for p in (*protocols().values(), *spoken) for lit in p.envelope.heads(known)]
    for chunks in chunkings(trial.raw, heads, most=most):
        other, log = run_chunks(chunks, trial.protocol, trial.tools, trial.options)
        where = f"[…{chunks[0][-20:]!r}, …]" if len(chunks) == 2 else "character by character"
        _hold(other == trial.result, "split invariance", f"the result depends on the split {where}")
        _hold(log == trial.log, "split invariance", f"the event log depends on the split {where}")


def check_log(result: ParseResult, log: Log) -> None:
    """The events, with retractions honoured, say every character once."""
    at = 0
    calls: list[ToolCall] = []
    for _kind, start, end, found in log:
        if start != at:
            raise LawBroken("log replay", f"the event log leaves a gap or says something twice at {at}: {log}")
        at = end
        calls.extend(found or ())
    _hold(at == len(result.raw), "log replay", "the event log does not reach the end")
    _hold(tuple(calls) == result.calls, "log replay", "the events' calls are not the result's")


def check_serial(result: ParseResult) -> None:
    """The result survives JSON, origins included."""
    text = json.dumps(result.to_dict())
    again = ParseResult.from_dict(json.loads(text))
    _hold(again == result, "serial", "the result that was read back is another one")
    for a, b in zip(result.calls, again.calls, strict=True):
        _hold(dict(a.origins.get()) == dict(b.origins.get()), "serial", "the origins that were read back are others")


def check_call(result: ParseResult, call: ToolCall) -> None:
    """The steps lead from the source to the arguments, coercing again makes no step, every argument has an origin."""
    _hold(call.segment == result.segments[call.segment_index], "partition", "a call's segment is none of the result's")
    if not call.readable:
        _hold(call.status in ("truncated", "undecodable"), "trace replay", "an unreadable call of another status")
        return
    value = read_strict(call.source_json)
    for step in call.steps:
        if step.stage == "coerce":
            value = pointer_set(value, step.path, _copy(step.after))
    reached = write_canonical(value) == call.arguments_json
    _hold(reached, "trace replay", "the steps do not lead from source to arguments")
    tool = next((t for t in result.tools if t.name == call.name), None)
    if tool is not None:
        again = coerce(read_strict(call.arguments_json), tool.schema_json, result.options.coerce, one_item=True)
        _hold(again.steps == (), "idempotent", f"coercing twice makes a step: {again.steps}")
    if call.name_span is not None:
        written = call.name_span.of(result.raw)
        right = written == call.name or "\\" in written or "&" in written
        _hold(right, "trace replay", f"the name's span says {written!r}")
    table = call.origins.get()
    for path, _leaf in leaves(read_strict(call.arguments_json)):
        _hold(path in table, "trace replay", f"no origin for {path!r}")
        inside = call.segment.span.covers(table[path].span) or len(table[path].span) == 0
        _hold(inside, "trace replay", f"the origin of {path!r} is outside its call")


def _copy(value: Any) -> Any:
    return read_strict(write_canonical(value))


def check_edits(result: ParseResult, used: Any, law: str = "") -> None:
    """Body by body: the edited body reads strictly to the same; a body that is strict has no edit.

    law: only 'edit law' or only 'strict identity'.
    """
    protocol = protocol_of(used) if "auto" not in (used, getattr(used, "id", "")) else None
    tools = {t.name: t for t in result.tools}
    by_segment: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)
    for index, calls in by_segment.items():
        segment = result.segments[index]
        if not all(c.readable for c in calls) or segment.body is None:
            continue
        recovered = segment.kind == "recovered"  # read as JSON, whatever the protocol
        if recovered:
            owner = HERMES
        elif protocol is not None and protocol.id == calls[0].protocol:
            owner = protocol
        else:
            owner = protocol_of(calls[0].protocol)
        body = segment.body
        edits = sorted((e for c in calls for e in c.edits), key=lambda e: (e.span.start, e.span.end))
        reading = Reading(Opening(0, name=calls[0].name), True, False, 1000, tools)
        if law != "strict identity":
            for a, b in pairwise(edits):
                _hold(a.span.end <= b.span.start, "edit law", f"edits overlap: {a} {b}")
            local = [Edit(Span(e.span.start - body.start, e.span.end - body.start), e.text, e.rule) for e in edits]
            edited = apply_edits(body.of(result.raw), local)
            strict = owner.codec.strict(edited, reading)
            _hold(strict, "edit law", f"the edited body is not strict: {edited[:200]!r}")
            values = [d.arguments for d in owner.codec.read(edited, reading)]
            _hold(len(values) == len(calls), "edit law", "the edited body holds another number of calls")
            for value, call in zip(values, calls, strict=True):
                right = same(value, read_strict(call.source_json))
                _hold(right, "edit law", "the edited body reads to something else")
        if law != "edit law" and owner.codec.strict(body.of(result.raw), reading):
            _hold(not edits, "strict identity", f"a strict body was edited: {edits}")


def check_round_trip(protocol: Any, tool: ToolSpec, arguments_json: str) -> bool:
    """A call that is written reads back the same, or writing raises UnwritableCall: then False is returned."""
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


def _check_calls(trial: Trial) -> None:
    for call in trial.result.calls:
        check_call(trial.result, call)


TEXT_LAWS: Mapping[str, Callable[[Trial], None]] = {
    "partition": lambda t: check_partition(t.result),
    "log replay": lambda t: check_log(t.result, t.log),
    "serial": lambda t: check_serial(t.result),
    "trace replay": _check_calls,
    "edit law": lambda t: check_edits(t.result, t.protocol, "edit law"),
    "strict identity": lambda t: check_edits(t.result, t.protocol, "strict identity"),
    "split invariance": check_splits,
}
"""The laws of one text, by name; 'trace replay' is checked together with 'idempotent'."""
