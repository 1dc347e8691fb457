"""Answers to a forced tool choice: the whole text is one call as JSON, or no call at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..api import parse_text
from ..protocols.base import Opening, Reading
from ..protocols.json_call import JsonCall
from ..protocols.json_mix import HERMES
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
    own = parse_text(raw, protocol, tools, options)
    bare = _Rest(own, Span(0, len(own.raw)))
    strict = _one_call(bare, allowed, replace(options, repair=False))
    if isinstance(strict, ParseResult):
        return strict
    rest = _without_markup(own)
    read = _one_call(rest, allowed, options)
    if isinstance(read, ParseResult):
        return read
    if len(own.calls) == 1 and own.calls[0].ok and own.calls[0].name in {t.name for t in allowed}:
        return own
    message = f"the answer is not one call of {', '.join(t.name for t in allowed)}: {read}"
    problem = Problem("read", "choice.no-call", "error", message, "", rest.span)
    return rest.result(Segment("text", rest.span), (), (problem,))


@dataclass(frozen=True)
class _Rest:
    """What is left of an answer without the reasoning and markup around it. own: the parse that found those."""

    own: ParseResult
    span: Span
    before: tuple[Segment, ...] = ()
    behind: tuple[Segment, ...] = ()

    def result(self, segment: Segment, calls: tuple[ToolCall, ...], problems: tuple[Problem, ...] = ()) -> ParseResult:
        segments = (*self.before, *((segment,) if len(segment.span) else ()), *self.behind)
        return replace(self.own, segments=segments, calls=calls, problems=problems)


def _without_markup(own: ParseResult) -> _Rest:
    """The answer from the first word behind its reasoning on, to the markup at its very end."""
    first = 0
    for i, segment in enumerate(own.segments):
        if segment.kind in ("reasoning", "markup"):
            first = i + 1
        elif segment.kind != "text" or segment.span.of(own.raw).strip():
            break
    last = len(own.segments)
    while last > first and own.segments[last - 1].kind == "markup":
        last -= 1
    before, behind = own.segments[:first], own.segments[last:]
    start = before[-1].span.end if before else 0
    end = behind[0].span.start if behind else len(own.raw)
    return _Rest(own, Span(start, end), before, behind)


def _one_call(rest: _Rest, allowed: Sequence[ToolSpec], options: ParseOptions) -> ParseResult | str:
    """The result if the rest is one call as JSON, otherwise the reason why it is not."""
    text = rest.span.of(rest.own.raw)
    inner = text.strip()
    start = rest.span.start + len(text) - len(text.lstrip())
    tools = {t.name: t for t in allowed}
    try:
        decoded = _CODEC.read(inner, Reading(Opening(0), True, options.repair, options.max_depth, tools))
    except Refusal as no:
        return no.message
    if any(e.rule == _PROSE for d in decoded for e in d.edits):
        return "there are other words beside it"
    if len(decoded) != 1:
        return f"it says {len(decoded)} calls"
    segment = Segment("call", rest.span, Span(start, start + len(inner)))
    body = Body(inner, start, rest.span.start, True, "closer", rest.own.protocol)
    # The protocol is asked for nothing but its id, which the body brings along.
    (call,) = Resolver(HERMES, tools, options).calls(decoded, body, segment, len(rest.before), 0)
    if not call.ok:
        return next((p.message for p in call.problems if p.severity == "error"), call.status)
    return rest.result(segment, (call,))


def parse_like_seed(raw: str, protocol_id: str, tools: Sequence[ToolSpec], options: ParseOptions) -> ParseResult:
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
    call = ToolCall(
        index=0, segment_index=0, name=name if isinstance(name, str) and name else "unknown", name_span=None,
        wire_id=None, protocol=protocol_id, status="ok", confidence=1.0, source_json=arguments,
        arguments_json=arguments, problems=problems, segment=segment,
    )  # fmt: skip
    return ParseResult(raw, protocol_id, options, (segment,), (call,), (), tuple(tools))
