"""Answers to a forced tool choice: the whole text is one call as JSON, or no call at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..api import parse
from ..protocols.base import Decoded, Opening, Reading
from ..protocols.json_call import JsonCall
from ..registry import protocol_of
from ..resolve import Body, Resolver
from ..rjson.damage import Refusal
from ..toolspec import ToolSpec
from ..types import ParseOptions, ParseResult, Problem, Segment, Span, ToolCall
from ..values import read_strict, write_canonical

_CODEC = JsonCall("", "")
_PROSE = "rjson.prose"


def parse_forced(
    raw: str, protocol: object, tools: Sequence[ToolSpec], allowed: Sequence[ToolSpec], options: ParseOptions
) -> ParseResult:
    """The one call of an answer: strict JSON, then JSON that can be repaired, then a call in the protocol's own form.

    allowed: the tools of which one must be called. Reasoning before the call is reasoning. Where there is not exactly
    one call of such a tool, the result has no call and a problem `choice.no-call`.
    """
    own = parse(raw, protocol, tools, options)
    raw = own.raw  # halves of a character that came apart are joined there
    strict = _whole(raw, Span(0, len(raw)), (), allowed, replace(options, repair=False), protocol)
    if isinstance(strict, ParseResult):
        return strict
    before = _reasoning_before(own)
    rest = Span(before[-1].span.end if before else 0, len(raw))
    after = _markup_behind(own, len(before))
    if after:
        rest = Span(rest.start, after[0].span.start)
    read = _whole(raw, rest, before, allowed, options, protocol, after)
    if isinstance(read, ParseResult):
        return read
    if len(own.calls) == 1 and own.calls[0].ok and own.calls[0].name in {t.name for t in allowed}:
        return own
    segments = (*before, *((Segment("text", rest),) if len(rest) else ()), *after)
    message = f"the answer is not one call of {', '.join(t.name for t in allowed)}: {read}"
    problem = Problem("read", "choice.no-call", "error", message, "", rest)
    return replace(own, segments=segments, calls=(), problems=(problem,))


def _reasoning_before(result: ParseResult) -> tuple[Segment, ...]:
    """The segments before the first word of the answer itself, if there is any reasoning or markup among them."""
    last = 0
    for i, segment in enumerate(result.segments):
        if segment.kind in ("reasoning", "markup"):
            last = i + 1
        elif segment.kind != "text" or segment.span.of(result.raw).strip():
            break
    return result.segments[:last]


def _markup_behind(result: ParseResult, start: int) -> tuple[Segment, ...]:
    """The markup at the very end."""
    end = len(result.segments)
    while end > start and result.segments[end - 1].kind == "markup":
        end -= 1
    return result.segments[end:]


def _whole(
    raw: str,
    span: Span,
    before: tuple[Segment, ...],
    allowed: Sequence[ToolSpec],
    options: ParseOptions,
    protocol: object,
    after: tuple[Segment, ...] = (),
) -> ParseResult | str:
    """The result if `raw[span]` is one call as JSON, otherwise the reason why it is not."""
    text = span.of(raw)
    inner = text.strip()
    start = span.start + (len(text) - len(text.lstrip()))
    tools = {t.name: t for t in allowed}
    try:
        decoded = _CODEC.read(inner, Reading(Opening(0), True, options.repair, options.max_depth, tools))
    except Refusal as no:
        return no.message
    if any(e.rule == _PROSE for d in decoded for e in d.edits):
        return "there are other words beside it"
    if len(decoded) != 1:
        return f"it says {len(decoded)} calls"
    return _result(raw, span, (start, inner), before, decoded, allowed, options, protocol, after)


def _result(
    raw: str,
    span: Span,
    body: tuple[int, str],
    before: tuple[Segment, ...],
    decoded: tuple[Decoded, ...],
    allowed: Sequence[ToolSpec],
    options: ParseOptions,
    protocol: object,
    after: tuple[Segment, ...],
) -> ParseResult | str:
    start, inner = body
    segment = Segment("call", span, Span(start, start + len(inner)))
    known = parse("", protocol, allowed, options)
    resolver = Resolver(protocol_of("hermes"), {t.name: t for t in allowed}, options)
    unit = Body(inner, start, span.start, True, "closer", known.protocol)
    (call,) = resolver.calls(decoded, unit, segment, len(before), 0)
    if not call.ok:
        return next((p.message for p in call.problems if p.severity == "error"), call.status)
    return replace(known, raw=raw, segments=(*before, segment, *after), calls=(call,))


def parse_like_seed(raw: str, protocol: object, tools: Sequence[ToolSpec], options: ParseOptions) -> ParseResult:
    """What the oldest version made of such an answer: strict JSON only, no coercion, and a call of `unknown` with the
    arguments `{}` where it is something else."""
    problems: tuple[Problem, ...] = ()
    value: object = None
    try:
        value = read_strict(raw)
    except (ValueError, RecursionError) as e:
        problems = (Problem("decode", "choice.no-call", "error", f"the answer is no JSON: {e}", "", Span(0, len(raw))),)
    body = value if isinstance(value, dict) else {}
    name = body.get("name")
    arguments = write_canonical(body.get("arguments") or {})
    segment = Segment("call", Span(0, len(raw)), Span(0, len(raw)))
    known = parse("", protocol, tools, options)
    call = ToolCall(
        index=0, segment_index=0, name=name if isinstance(name, str) and name else "unknown", name_span=None,
        wire_id=None, protocol=known.protocol, status="ok", confidence=1.0, source_json=arguments,
        arguments_json=arguments, problems=problems, segment=segment,
    )  # fmt: skip
    return replace(known, raw=raw, segments=(segment,) if raw else (), calls=(call,))
