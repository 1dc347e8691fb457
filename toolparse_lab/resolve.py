"""From one closed body to its calls: decode, then coerce, then validate; and where each argument came from."""

from __future__ import annotations

from dataclasses import dataclass

from .protocols.base import Decoded, Protocol, Reading, Tools
from .provenance import find_spans, find_step_spans, trace_origins
from .rjson.damage import Refusal
from .schema.coerce import coerce
from .schema.validate import find_problems, fits, validate
from .types import (
    CallStatus,
    Edit,
    OriginTable,
    ParseOptions,
    Problem,
    Segment,
    Span,
    Step,
    ToolCall,
)
from .values import write_canonical


@dataclass(slots=True)  # made for every call, and a frozen one takes twice the time
class Body:
    """A finished body and where it stands. `start` is its offset in raw."""

    text: str
    start: int
    opener: int
    closed: bool
    kind: str  # how it was closed, see scan.Close
    protocol: str = ""  # the format that opened it, where several are read at once
    name: str = ""  # the tool, where the opener names it
    name_span: Span | None = None


class Resolver:
    """Turns bodies into calls under one protocol, one set of tools and one set of options."""

    def __init__(self, protocol: Protocol, tools: Tools, options: ParseOptions) -> None:
        self.protocol = protocol
        self.tools = tools
        self.options = options

    def decode(self, body: Body, reading: Reading) -> tuple[Decoded, ...] | Refusal:
        try:
            return self.protocol.codec.read(body.text, reading)
        except Refusal as no:
            return no
        except Exception as e:  # model text must never raise; a fault of ours becomes a problem that says so
            return Refusal("parser.failed", f"{type(e).__name__}: {e}", 0)

    def calls(
        self, decoded: tuple[Decoded, ...] | Refusal, body: Body, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """The calls of one body, numbered from `index`; a body that was refused is one call without arguments."""
        if isinstance(decoded, Refusal):
            return (self._unread(decoded, body, segment, segment_index, index),)
        if not decoded:
            no = Refusal("decode.empty", "there is no call in this body", 0)
            return (self._unread(no, body, segment, segment_index, index),)
        if len(decoded) == 1:
            return (self._call(decoded[0], body, segment, segment_index, index),)
        return tuple(self._call(d, body, segment, segment_index, index + i) for i, d in enumerate(decoded))

    def _unread(self, no: Refusal, body: Body, segment: Segment, segment_index: int, index: int) -> ToolCall:
        at = body.start + min(no.position, len(body.text))
        cut = not body.closed
        status: CallStatus = "truncated" if cut else "undecodable"
        problems = [
            Problem("decode", no.code, "error", no.message, "", Span(at, min(at + 1, body.start + len(body.text))))
        ]
        if cut:
            problems.insert(
                0, Problem("scan", "call.truncated", "error", "the text ends inside this call", "", segment.span)
            )
        name, name_span = body.name, body.name_span
        if not name and no.name_at is not None:
            name, name_span = no.name, Span(*no.name_at).shift(body.start)
        return ToolCall(
            index=index, segment_index=segment_index, name=name, name_span=name_span, wire_id=None,
            protocol=body.protocol or self.protocol.id, status=status, confidence=1.0,
            source_json="", arguments_json="", problems=tuple(problems), segment=segment,
        )  # fmt: skip

    def _call(self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int) -> ToolCall:
        problems = [_shifted(p, body.start) for p in d.problems] if d.problems else []
        if not d.readable:
            return ToolCall(
                index=index, segment_index=segment_index, name=d.name, name_span=_shift(d.name_span, body.start),
                wire_id=d.wire_id, protocol=body.protocol or self.protocol.id,
                status="truncated" if d.truncated else "undecodable",
                confidence=1.0, source_json="", arguments_json="",
                edits=_edits(d.edits, body.start), problems=tuple(problems), segment=segment,
            )  # fmt: skip
        if body.kind != "closer" or not body.closed:
            note = _closer_note(body, segment)
            if note is not None:
                problems.append(note)
        tool = self.tools.get(d.name)
        status: CallStatus = "ok"
        if self.tools and tool is None:
            status = "unknown_tool"
            known = ", ".join(list(self.tools)[:8])
            problems.append(
                Problem("read", "call.unknown-tool", "error", f"{d.name!r} is none of the tools: {known}", "",
                        _shift(d.name_span, body.start))
            )  # fmt: skip
        source_json = write_canonical(d.arguments)
        steps = tuple(_placed(s, body) for s in d.steps) if d.steps else ()
        arguments_json, value = source_json, d.arguments
        coerced: tuple[Step, ...] = ()
        # One look is enough for arguments that plainly are what the schema says, which most are.
        fit = tool is not None and fits(d.arguments, tool.schema_json, self.options.coerce)
        if tool is not None and not fit and self.options.coerce != "none":
            result = coerce(d.arguments, tool.schema_json, self.options.coerce, one_item=d.untyped)
            coerced = result.steps
            if coerced:
                try:
                    arguments_json, value = write_canonical(result.value), result.value
                except TypeError:  # the Go policy reads "inf" as a number, which no call may carry
                    coerced = ()
                    message = "coercion gave a number that is not finite, so the arguments stay as they were"
                    problems.append(Problem("coerce", "coerce.not-finite", "error", message))
        origins = OriginTable(lambda: trace_origins(d, coerced, body.start, body.text)[0])
        if coerced:
            for step, span in zip(coerced, find_step_spans(d, coerced, body.start, body.text), strict=True):
                object.__setattr__(step, "span", span)  # nobody else has seen these steps yet
            steps += coerced
        if tool is not None and not fit and self.options.validate:
            # What did not fit under these policies was not changed by them, and does not fit now.
            looked_at = not coerced and self.options.coerce in ("none", "safe")
            found = (find_problems if looked_at else validate)(value, tool.schema_json)
            if found:
                spans = find_spans(d, coerced, body.start, body.text, [p.path for p in found])
                problems.extend(
                    Problem(p.stage, p.code, p.severity, p.message, p.path, span)
                    for p, span in zip(found, spans, strict=True)
                )
        said = d.name_span
        if said is not None:
            said = Span(said.start + body.start, said.end + body.start)
        return ToolCall(
            index, segment_index, d.name, said, d.wire_id, body.protocol or self.protocol.id,
            status, 1.0, source_json, arguments_json, _edits(d.edits, body.start) if d.edits else (), steps,
            tuple(problems), segment, origins,
        )  # fmt: skip


def _closer_note(body: Body, segment: Segment) -> Problem | None:
    """What is to be said of how the body was closed; nothing where its own closer did it."""
    if body.kind == "rescued":
        message = "the closer stood inside what reads as an open string"
        return Problem("scan", "call.rescued-closer", "warning", message, "", segment.span)
    if body.kind == "wrong":
        message = "the body is whole, but another format's closer stands behind it"
        return Problem("scan", "call.wrong-closer", "warning", message, "", segment.span)
    if not body.closed or body.kind == "implicit":
        message = "the body is whole, its closer is missing"
        return Problem("scan", "call.missing-closer", "warning", message, "", segment.span)
    return None


def _edits(edits: tuple[Edit, ...], by: int) -> tuple[Edit, ...]:
    return tuple(Edit(e.span.shift(by), e.text, e.rule) for e in edits)


def _shift(span: Span | None, by: int) -> Span | None:
    return None if span is None else span.shift(by)


def _shifted(p: Problem, by: int) -> Problem:
    return Problem(p.stage, p.code, p.severity, p.message, p.path, _shift(p.span, by))


def _placed(s: Step, body: Body) -> Step:
    span = s.span.shift(body.start) if s.span is not None else None
    return Step(s.stage, s.rule, s.path, span, s.before, s.after)
