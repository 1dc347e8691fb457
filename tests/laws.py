"""The laws every parse must keep, as functions that raise AssertionError. Used by tests and by fuzzing."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import toolparse_lab as tp
from toolparse_lab.protocols.base import Opening, Protocol, Reading
from toolparse_lab.protocols.json_mix import HERMES
from toolparse_lab.registry import protocol_of
from toolparse_lab.rjson.positions import apply_edits
from toolparse_lab.toolspec import tool_specs
from toolparse_lab.types import Edit, Span
from toolparse_lab.values import leaves, pointer_set, read_strict, same, write_canonical

LONG = 2048  # above this many characters not every split is tried

Log = list[tuple[Any, ...]]


def run_chunks(chunks: Iterable[str], protocol: Any, tools: Any, options: Any = None) -> tuple[tp.ParseResult, Log]:
    """The result and the merged event log of one chunking."""
    parser = tp.stream(protocol, tools, options)
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
    """What is left of a log once everything from `start` on is void; text is never void (law 12)."""
    kept: Log = []
    for kind, a, b, calls in log:
        if b <= start and not (kind == "CallStart" and a == b == start):
            kept.append((kind, a, b, calls))
        else:
            assert kind in ("CallStart", "CallDelta", "ReasoningDelta", "Markup"), f"{kind} was retracted"
            if a < start:
                kept.append((kind, a, start, calls))
    return kept


def chunkings(raw: str, delimiters: Sequence[str] = (), seed: int = 0) -> Iterator[list[str]]:
    """Every two-way split (of a long text those near delimiters and 500 at random), and character by character."""
    if len(raw) <= LONG:
        cuts: Iterable[int] = range(len(raw) + 1)
    else:
        near = {i + d for lit in delimiters if lit for i in _finds(raw, lit) for d in range(-2, len(lit) + 3)}
        rng = random.Random(seed)
        cuts = sorted({c for c in near if 0 <= c <= len(raw)} | {rng.randrange(len(raw)) for _ in range(500)})
    for cut in cuts:
        yield [raw[:cut], raw[cut:]]
    yield list(raw)


def _finds(raw: str, literal: str) -> Iterator[int]:
    at = raw.find(literal)
    while at >= 0:
        yield at
        at = raw.find(literal, at + 1)


def check_all(
    raw: str, protocol: Any, tools: Any = None, options: Any = None, *, every_split: bool = True
) -> tp.ParseResult:
    """Laws 1 to 6, 8, 9, 11 and 12 on one text."""
    result, log = run_chunks([raw], protocol, tools, options)
    assert result.raw == raw.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    raw = result.raw
    check_partition(result)
    check_log(result, log)
    check_serial(result)
    for call in result.calls:
        check_call(result, call)
    check_edits(result, protocol)
    if every_split:
        heads = [
            lit for p in tp.protocols().values() for lit in p.envelope.heads({t.name: t for t in tool_specs(tools)})
        ]
        for chunks in chunkings(raw, heads):
            other, other_log = run_chunks(chunks, protocol, tools, options)
            assert other == result, f"the result depends on the split {[c[-20:] for c in chunks[:1]]}"
            assert other_log == log, f"the event log depends on the split {[c[-20:] for c in chunks[:1]]}"
    return result


def check_partition(result: tp.ParseResult) -> None:
    at = 0
    for segment in result.segments:
        assert segment.span.start == at, "segments leave a gap or overlap"
        assert len(segment.span) > 0, "an empty segment"
        if segment.body is not None:
            assert segment.span.covers(segment.body)
        at = segment.span.end
    assert at == len(result.raw), "segments do not reach the end"


def check_log(result: tp.ParseResult, log: Log) -> None:
    at = 0
    calls: list[tp.ToolCall] = []
    for _kind, start, end, found in log:
        assert start == at, f"the event log leaves a gap or says something twice at {at}: {log}"
        at = end
        calls.extend(found or ())
    assert at == len(result.raw), "the event log does not reach the end"
    assert tuple(calls) == result.calls, "the events' calls are not the result's"


def check_serial(result: tp.ParseResult) -> None:
    text = json.dumps(result.to_dict())
    again = tp.ParseResult.from_dict(json.loads(text))
    assert again == result
    for a, b in zip(result.calls, again.calls, strict=True):
        assert dict(a.origins.get()) == dict(b.origins.get())


def check_call(result: tp.ParseResult, call: tp.ToolCall) -> None:
    assert call.segment == result.segments[call.segment_index]
    if not call.readable:
        assert call.status in ("truncated", "undecodable")
        return
    value = read_strict(call.source_json)
    for step in call.steps:
        if step.stage == "coerce":
            value = pointer_set(value, step.path, json_copy(step.after))
    assert write_canonical(value) == call.arguments_json, "the steps do not lead from source to arguments"
    tool = next((t for t in result.tools if t.name == call.name), None)
    if tool is not None:
        again = tp.coerce(read_strict(call.arguments_json), tool.schema_json, result.options.coerce, one_item=True)
        assert again.steps == (), f"coercing twice makes a step: {again.steps}"
    if call.name_span is not None:
        written = call.name_span.of(result.raw)
        assert written == call.name or "\\" in written or "&" in written, f"the name's span says {written!r}"
    table = call.origins.get()
    for path, _leaf in leaves(read_strict(call.arguments_json)):
        assert path in table, f"no origin for {path!r}"
        assert call.segment.span.covers(table[path].span) or len(table[path].span) == 0


def json_copy(value: Any) -> Any:
    return read_strict(write_canonical(value))


def check_edits(result: tp.ParseResult, used: Any) -> None:
    """Laws 4 and 5, body by body: the edited body reads strictly to the same; a strict body has no edit."""
    protocol = protocol_of(used) if used != "auto" else None
    tools = {t.name: t for t in result.tools}
    by_segment: dict[int, list[tp.ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)
    for index, calls in by_segment.items():
        segment = result.segments[index]
        if not all(c.readable for c in calls) or segment.body is None:
            continue
        recovered = segment.kind == "recovered"  # read as JSON, whatever the protocol
        owner = HERMES if recovered else protocol or protocol_of(calls[0].protocol)
        body = segment.body
        edits = sorted((e for c in calls for e in c.edits), key=lambda e: (e.span.start, e.span.end))
        for a, b in pairwise(edits):
            assert a.span.end <= b.span.start, f"edits overlap: {a} {b}"
        local = [Edit(Span(e.span.start - body.start, e.span.end - body.start), e.text, e.rule) for e in edits]
        edited = apply_edits(body.of(result.raw), local)
        reading = _strict_reading(owner, calls[0], tools)
        assert owner.codec.strict(edited, reading), f"the edited body is not strict: {edited[:200]!r}"
        values = [d.arguments for d in owner.codec.read(edited, reading)]
        assert len(values) == len(calls)
        for value, call in zip(values, calls, strict=True):
            assert same(value, read_strict(call.source_json)), "the edited body reads to something else"
        if owner.codec.strict(body.of(result.raw), reading):
            assert not edits, f"a strict body was edited: {edits}"


def _strict_reading(owner: Protocol, call: tp.ToolCall, tools: Any) -> Reading:
    return Reading(Opening(0, name=call.name), True, False, 1000, tools)
