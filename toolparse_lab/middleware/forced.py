"""Answers to a forced tool choice: the whole text is calls as JSON, or no call at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..arguments.rjson.strict import Refusal, read_if_strict
from ..core.toolspec import ToolSpec
from ..core.types import CallStatus, ParseOptions, ParseResult, Problem, Segment, Span, ToolCall
from ..core.values import read_strict, write_canonical
from ..core.values.printable import counted
from ..entry.parse import parse_text
from ..formats.base import DecodeContext, Opening
from ..formats.json.call import JsonCall
from ..formats.json.mix import HERMES
from ..formats.like import ProtocolLike
from ..parser.resolve import Body, Resolver

_CODEC = JsonCall("", "")
_PROSE = "rjson.prose"


def parse_forced(
    raw: str,
    protocol: ProtocolLike,
    tools: Sequence[ToolSpec],
    allowed: Sequence[ToolSpec],
    options: ParseOptions,
    *,
    cut: bool = False,
    many: bool = False,
) -> ParseResult:
    """Return the one call of an answer: strict JSON, then JSON that can be repaired, then a call in
    the protocol's own form.

    Reasoning before the call is reasoning. If there is not exactly one call of such a tool, the
    result has no call and a problem `choice.no-call`.
    tools: those that were offered.
    allowed: those of which one must be called.
    cut: the answer ended early, so that only a text that closes itself is a call.
    many: several calls are right as well, as a list or in any other form. All of them, or none.
    """
    own = parse_text(raw, protocol, tools, options)
    # Strict JSON first, over the whole text: what looks like markup may be in its strings.
    whole = _Rest(own, Span(0, len(own.raw)))
    strict = _json_calls(whole, allowed, replace(options, repair=False), cut, many)
    if isinstance(strict, ParseResult):
        return strict
    rest = _without_markup(own)
    outcome = _json_calls(rest, allowed, options, cut, many)
    if isinstance(outcome, ParseResult):
        return outcome
    names = [t.name for t in allowed]
    if _is_number(len(own.calls), many) and all(c.ok and c.name in names for c in own.calls):
        return own
    number = "calls" if many else "one call"
    message = f"the answer is not {number} of {', '.join(names)}: {outcome}"
    problem = Problem("read", "choice.no-call", "error", message, "", rest.span)
    return rest.result(Segment("text", rest.span), (), (problem,))


def parse_formatted(
    raw: str,
    protocol: ProtocolLike,
    tools: Sequence[ToolSpec],
    options: ParseOptions,
    *,
    cut: bool = False,
) -> ParseResult:
    """Return the calls of an answer that is JSON: either calls, exactly as `{name, arguments}`, or
    JSON of the caller's own form, which is all text. Anything that is not JSON is read by the
    protocol.
    """
    own = parse_text(raw, protocol, tools, options)
    rest = _without_markup(own)
    # Strict JSON first, over the whole text: what looks like markup may be in its strings.
    for part, part_options in (
        (_Rest(own, Span(0, len(own.raw))), replace(options, repair=False)),
        (rest, options),
    ):
        outcome = _json_calls(part, tools, part_options, cut, True)
        if isinstance(outcome, ParseResult):
            # A step of reading: name or arguments were in another place than a call has them.
            steps = [step.stage for call in outcome.calls for step in call.steps]
            if "read" not in steps:
                return outcome
        if read_if_strict(part.span.of(own.raw), options.max_depth) is not None:
            return part.result(Segment("text", part.span), ())
    return own


def _is_number(n_calls: int, many: bool) -> bool:
    return n_calls == 1 or (many and n_calls > 1)


@dataclass(frozen=True)
class _Rest:
    # An answer without the reasoning and markup around it, which the parse by the protocol names.
    own: ParseResult
    span: Span
    before: tuple[Segment, ...] = ()
    after: tuple[Segment, ...] = ()

    def result(
        self, segment: Segment, calls: tuple[ToolCall, ...], problems: tuple[Problem, ...] = ()
    ) -> ParseResult:
        # The only content is `segment`, left out where it is empty.
        content = (segment,) if len(segment.span) else ()
        segments = (*self.before, *content, *self.after)
        return replace(self.own, segments=segments, calls=calls, problems=problems)


def _without_markup(own: ParseResult) -> _Rest:
    # Up to the first words that are neither reasoning nor markup.
    first = 0
    for i, segment in enumerate(own.segments):
        if segment.kind in ("reasoning", "markup"):
            first = i + 1
        elif segment.kind != "text" or segment.span.of(own.raw).strip():
            break
    # Tokens that end a turn stand after the call.
    last = len(own.segments)
    while last > first and own.segments[last - 1].kind == "markup":
        last -= 1
    before, after = own.segments[:first], own.segments[last:]
    start = before[-1].span.end if before else 0
    end = after[0].span.start if after else len(own.raw)
    return _Rest(own, Span(start, end), before, after)


# A resolver needs a protocol, but asks it for nothing but its id, which the body brings along.
_ANY_PROTOCOL = HERMES


def _json_calls(
    rest: _Rest, allowed: Sequence[ToolSpec], options: ParseOptions, cut: bool, many: bool
) -> ParseResult | str:
    # Gives the result if the rest is calls as JSON, otherwise the reason why it is not.
    text = rest.span.of(rest.own.raw)
    inner = text.strip()
    start = rest.span.start + len(text) - len(text.lstrip())
    tools = {t.name: t for t in allowed}

    # After a comma or a colon something was to come, whatever the provider says of the end.
    is_whole = not cut and not inner.endswith((",", ":"))
    try:
        decoded = _CODEC.read(
            inner, DecodeContext(Opening(0), is_whole, options.repair, options.max_depth, tools)
        )
    except Refusal as no:
        return no.message

    # The repair that drops prose would make a call of an answer that says something else as well.
    if any(e.rule == _PROSE for d in decoded for e in d.edits):
        return "there are other words beside it"
    if not _is_number(len(decoded), many):
        return f"it says {counted(len(decoded), 'call')}"

    segment = Segment("call", rest.span, Span(start, start + len(inner)))
    body = Body(inner, start, rest.span.start, True, "closer", rest.own.protocol)
    calls = tuple(
        Resolver(_ANY_PROTOCOL, tools, options).calls(decoded, body, segment, len(rest.before), 0)
    )
    for call in calls:
        if not call.ok:
            return next((p.message for p in call.problems if p.severity == "error"), call.status)

    return rest.result(segment, calls)


def parse_like_ai_sdk_2(
    raw: str,
    protocol_id: str,
    tools: Sequence[ToolSpec],
    options: ParseOptions,
    *,
    cut: bool = False,
) -> ParseResult:
    """Return the reading of the oldest version: strict JSON only, no coercion, and a call of
    `unknown` with the arguments `{}` if the answer is something else.

    tools, options: are noted in the result. Nothing is checked against them.
    cut: the answer ended early. One that is not JSON then is a truncated call.
    """
    everything = Span(0, len(raw))
    problems: tuple[Problem, ...] = ()
    value: object = None

    try:
        value = read_strict(raw)
    except (ValueError, RecursionError) as e:
        message = f"the answer is no JSON: {e}"
        problems = (Problem("decode", "choice.no-call", "error", message, "", everything),)

    body = value if isinstance(value, dict) else {}
    arguments = write_canonical(body.get("arguments") or {})
    name = body.get("name")
    name = name if isinstance(name, str) and name else "unknown"
    segment = Segment("call", everything, everything)
    status: CallStatus = "truncated" if cut and problems else "ok"
    call = ToolCall(
        0, 0, name, None, None, protocol_id, status, 1.0, arguments, arguments,
        problems=problems, segment=segment,
    )  # fmt: skip
    return ParseResult(raw, protocol_id, options, (segment,), (call,), (), tuple(tools))
