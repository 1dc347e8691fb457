"""From one closed body to its calls: decode, coerce, validate."""

# How it works
# ------------
# A body goes through stages: decode (by the codec), closer, tool, canonical text, fit, origins.
# Each adds steps for its changes and problems for its findings.
#
# State: none between bodies.
#
# Invariant: spans of a codec count from the beginning of its body, and each stage adds body.start
# exactly once. `source_json` with the coercion steps applied in order gives `arguments_json`.
#
# Cost: for most calls `fits` is true at once, and nothing is coerced or validated. Origins are
# traced on demand, or where a step or problem needs its span.

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, TypeVar

from ..arguments.rjson.strict import Refusal
from ..arguments.schema.coerce import coerce
from ..arguments.schema.plain import may_be_wrapped, parameter_names, read_texts
from ..arguments.schema.scalars import Record
from ..arguments.schema.validate import UNCHECKED, find_problems, fits
from ..core.toolspec import ToolSpec
from ..core.types import (
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
from ..core.types.call import make_call
from ..core.types.spans import Severity, StepSpans, make_edit, make_problem
from ..core.values import escape_token, write_canonical
from ..formats.base import DecodeContext, Decoded, Opening, Protocol, Tools, with_step
from ..formats.python.call import read_instead
from ..formats.tool_names import near_tool, offered_name
from .provenance import find_spans, trace_table

Outcome: TypeAlias = tuple[Decoded, ...] | Refusal  # of a codec: its calls, or its refusal
# How a body was closed, where its own closer did not do it -> what to say of that.
_CLOSER_NOTES = {
    "rescued": ("call.rescued-closer", "the closer stood inside what reads as an open string"),
    "wrong": (
        "call.wrong-closer",
        "the body is whole, but another format's closer follows it",
    ),
    "implicit": ("call.missing-closer", "the body is whole, its closer is missing"),
}
_ESCAPED = "read.escaped-name"
_TOOLS_IN_MESSAGE = 8  # names of tools that a message lists


@dataclass(slots=True)  # made for every call, and a frozen one takes twice the time
class Body:
    """A finished body and its place. `start` and `opener` are offsets in raw."""

    text: str
    start: int
    opener: int
    closed: bool
    kind: str  # how it was closed, see scan.Close
    protocol: str = ""  # the format that opened it, where several are read at once
    name: str = ""  # the tool, where the opener names it
    name_span: Span | None = None


_QUOTED = "the call is inside another call, or in what only shows it, which does not end before"


def as_draft(
    call: ToolCall,
    code: str = "call.inside-value",
    message: str = _QUOTED,
    severity: Severity = "error",
) -> ToolCall:
    """Return a call as a draft, which is shown and never executed."""
    span = call.segment.span if call.segment else None
    problem = Problem("scan", code, severity, message, "", span)
    # One that could not be read keeps saying why.
    status = "draft" if call.status in ("ok", "unknown_tool") else call.status
    return replace(call, status=status, problems=(problem, *call.problems))


class Resolver:
    """Turns bodies into calls under one protocol, one set of tools and one set of options."""

    def __init__(self, protocol: Protocol, tools: Tools, options: ParseOptions) -> None:
        self.protocol = protocol
        self.tools = tools
        self.options = options

    def reading(self, opening: Opening, closed: bool) -> DecodeContext:
        """Return the facts that a codec may use in reading the body behind `opening`."""
        options, envelope = self.options, self.protocol.envelope
        depth = options.max_depth
        return DecodeContext(opening, closed, options.repair, depth, self.tools, None, envelope)

    def decode(self, body: Body, context: DecodeContext) -> Outcome:
        # Never raises: a refusal comes back, since it becomes a call as well, and so does a
        # fault.
        try:
            return self.protocol.codec.read(body.text, context)
        except Refusal as refusal:
            calls = read_instead(body.text, context)
            return calls or self._read_as_another(body, context) or refusal
        except Exception as e:
            # Model text must never raise; a fault of ours becomes a problem that says so.
            return _fault(e)

    def _read_as_another(self, body: Body, context: DecodeContext) -> tuple[Decoded, ...]:
        # A model may write another format that has this very opener. Read is what that format reads
        # strictly, as calls of tools on offer.
        if not (context.repair and context.closed and self.tools) or body.protocol:
            return ()
        size = body.start - body.opener
        head = next((h for h in self.protocol.envelope.heads(self.tools) if len(h) == size), "")
        if not head:
            return ()
        from ..formats.auto import AUTO  # start-up time: reads every format

        opening = AUTO.envelope.open(head + body.text, 0, True, self.tools)
        if not isinstance(opening, Opening) or opening.owner is None or opening.end != size:
            return ()
        try:
            calls = opening.owner.codec.read(body.text, replace(context, opening=opening))
        except Refusal:
            return ()
        if not all(c.readable and not c.edits and c.name in self.tools for c in calls):
            return ()
        body.protocol = opening.owner.id
        return tuple(with_step(call, "read.other-format") for call in calls)

    def calls(
        self, decoded: Outcome, body: Body, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """Return the calls of one body, numbered from `index`. A body that was refused is one call
        without arguments. segment, segment_index: theirs, and its place among the segments.
        """
        if not decoded and not isinstance(decoded, Refusal):
            decoded = Refusal("decode.empty", "there is no call in this body", 0)
        if not isinstance(decoded, Refusal) and len(decoded) == 1:
            try:
                return (self._call(decoded[0], body, segment, segment_index, index),)
            except Exception as e:
                decoded = _fault(e)
        if isinstance(decoded, Refusal):
            return (self._refused(decoded, body, segment, segment_index, index),)
        return tuple(
            call
            for i, d in enumerate(decoded)
            for call in self.calls((d,), body, segment, segment_index, index + i)
        )

    def leading(
        self, body: Body, opening: Opening, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        # The calls that are whole in front of the damage of a body that was refused.
        try:
            decoded = self.protocol.codec.leading(body.text, self.reading(opening, body.closed))
        except Exception:
            # The refusal itself is reported; a codec's second fault adds nothing to it.
            return ()
        return self.calls(decoded, body, segment, segment_index, index) if decoded else ()

    # calls without arguments

    def _refused(
        self, refusal: Refusal, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        # The name is the opener's, or one that the refusal could still make out.
        problems: list[Problem] = []
        if not body.closed:
            message = "the text ends inside this call"
            problems.append(
                make_problem("scan", "call.truncated", "error", message, "", segment.span)
            )
        end = body.start + len(body.text)
        at = min(body.start + refusal.position, end)
        span = Span(at, min(at + 1, end))  # one character, none at the end of the body
        problems.append(make_problem("decode", refusal.code, "error", refusal.message, "", span))
        name, name_span = body.name, body.name_span
        if not name and refusal.name_at is not None:
            name, name_span = refusal.name, Span(*refusal.name_at).shift(body.start)
        readings = (r.shift(body.start) for r in refusal.readings)
        return make_call(
            index, segment_index, name, name_span, None, body.protocol or self.protocol.id,
            "undecodable" if body.closed else "truncated", 1.0, "", "",
            problems=tuple(problems),
            segment=segment,
            readings=tuple(replace(r, name=r.name or name) for r in readings),
        )  # fmt: skip

    def _unreadable(
        self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        # Its problems come from the codec, which alone knows why.
        start = body.start
        return make_call(
            index, segment_index, d.name, d.name_span and d.name_span.shift(start), d.wire_id,
            body.protocol or self.protocol.id, "truncated" if d.truncated else "undecodable",
            1.0, "", "",
            edits=tuple(Edit(e.span.shift(start), e.text, e.rule) for e in d.edits),
            problems=_shifted(d.problems, start),
            segment=segment,
            readings=tuple(reading.shift(start) for reading in d.readings),
        )  # fmt: skip

    # a call that was read, stage by stage

    def _call(
        self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        if not d.readable:
            return self._unreadable(d, body, segment, segment_index, index)
        # Arguments are passed by position, and stages with nothing to do are not called: this runs
        # for every call, and a Python call costs as much as the whole look at a good one's closer.
        start = body.start
        problems = [*_shifted(d.problems, start)] if d.problems else []
        if body.kind != "closer" or not body.closed:
            # A body may be whole at the end of the text, where its closer is missing as well.
            note = _CLOSER_NOTES.get(
                body.kind if body.closed or body.kind in _CLOSER_NOTES else "implicit"
            )
            if note is not None:
                problems.append(Problem("scan", note[0], "warning", note[1], "", segment.span))

        tool = self.tools.get(d.name)
        status: CallStatus = "ok"
        if tool is None and self.tools:
            d, tool = self._respelt(d)
            if tool is None:
                status = "unknown_tool"
                names = ", ".join(list(self.tools)[:_TOOLS_IN_MESSAGE])
                near = near_tool(d.name, self.tools)
                hint = f"; the one near to it is {near!r}" if near else ""
                message = f"{d.name!r} is none of the tools: {names}{hint}"
                at = d.name_span and d.name_span.shift(start)
                problems.append(Problem("read", "call.unknown-tool", "error", message, "", at))

        steps = _shifted(d.steps, start) if d.steps else ()
        source_json, arguments_json, coerced = self._fitted(d, tool, body, problems)
        if coerced:
            steps += coerced

        name_span = d.name_span
        if name_span is not None:
            name_span = Span(name_span.start + start, name_span.end + start)
        edits: list[Edit] = []
        for edit in d.edits:
            span = Span(edit.span.start + start, edit.span.end + start)
            edits.append(make_edit(span, edit.text, edit.rule))
        origins = OriginTable(partial(trace_table, d, coerced, start, body.text))
        return make_call(
            index, segment_index, d.name, name_span, d.wire_id, body.protocol or self.protocol.id,
            status, 1.0, source_json, arguments_json, tuple(edits), steps, tuple(problems), segment,
            origins,
        )  # fmt: skip

    def _respelt(self, d: Decoded) -> tuple[Decoded, ToolSpec | None]:
        offered = offered_name(d.name, self.tools)
        if offered is None:
            return d, None
        name, span = offered.name, d.name_span
        # Escapes inside the name would shift the places in it.
        if span is not None and len(span) == len(d.name) and offered.rule != _ESCAPED:
            span = Span(span.start + offered.start, span.start + offered.start + len(name))
        step = Step("read", offered.rule, "", None, d.name, name)
        call = replace(d, name=name, name_span=span, steps=(*d.steps, step))
        return call, self.tools[name]

    def _fitted(
        self, d: Decoded, tool: ToolSpec | None, body: Body, problems: list[Problem]
    ) -> tuple[str, str, tuple[Step, ...]]:
        # Arguments as JSON before and after they are fit to the schema, and the steps. tool: None
        # if the tool is unknown, so that nothing is known of its arguments.
        policy = self.options.coerce
        # One look is enough for arguments that plainly are what the schema says, which most are;
        # and one pass for texts that plainly say what it wants.
        if d.untyped and policy == "safe" and tool is not None and type(d.arguments) is dict:
            record = Record("safe")
            arguments_json = read_texts(d.arguments.items(), tool.schema_json, record)
            if arguments_json is not None:
                steps = tuple(record.steps)
                if not steps:
                    return arguments_json, arguments_json, ()
                StepSpans(steps, partial(find_spans, d, steps, body.start, body.text))
                return write_canonical(d.arguments), arguments_json, steps

        source_json = write_canonical(d.arguments)
        if tool is None:
            return source_json, source_json, ()
        known = parameter_names(tool.schema_json)
        is_known = known is None or known[1] or d.arguments.keys() <= known[0]
        if (
            (is_known or not self.options.validate)
            and not may_be_wrapped(d.arguments)
            and fits(d.arguments, tool.schema_json, policy, d.untyped)
        ):
            return source_json, source_json, ()

        coerced: tuple[Step, ...] = ()
        value, arguments_json = d.arguments, source_json
        if policy != "none":
            result = coerce(value, tool.schema_json, policy, one_item=d.untyped, raw_text=d.untyped)
            problems.extend(result.problems)
            try:
                # Arguments are an object, also where the schema is that of a list or a text.
                if result.steps and isinstance(result.value, dict):
                    arguments_json = write_canonical(result.value)
                    coerced, value = result.steps, result.value
                    spans = partial(find_spans, d, coerced, body.start, body.text)
                    StepSpans(coerced, spans)
            except TypeError:  # the Go policy reads "inf" as a number, which no call may carry
                message = (
                    "coercion gave a number that is not finite, so the arguments stay as they were"
                )
                problems.append(Problem("coerce", "coerce.not-finite", "error", message))
        if not self.options.validate:
            return source_json, arguments_json, coerced
        if known is not None and isinstance(value, dict) and not value.keys() <= known[0]:
            unknown = [name for name in value if name not in known[0]]
            # Some models write a call without arguments as {"": {}}.
            choice, is_closed = self.options.unknown_arguments, known[1]
            is_empty = value == {"": {}} and choice == "keep" and not is_closed
            if choice == "drop" or is_empty:
                after = {name: v for name, v in value.items() if name in known[0]}
                step = Step("coerce", "coerce.unknown-argument", "", None, value, after)
                value, arguments_json, coerced = after, write_canonical(after), (*coerced, step)
                StepSpans(coerced, partial(find_spans, d, coerced, body.start, body.text))
            elif not is_closed:
                problems += self._unknown_arguments(unknown, known[0], d, coerced, body, tool)

        # What did not fit under these policies was not changed by them, and does not fit now; so
        # the look whether it fits, with which `validate` begins, is left out.
        misfit = is_known and not coerced and policy in ("none", "safe")
        misfit = misfit and not may_be_wrapped(d.arguments)
        found = (
            find_problems(value, tool.schema_json)
            if misfit or not fits(value, tool.schema_json)
            else ()
        )
        if found:
            places = find_spans(d, coerced, body.start, body.text, [p.path for p in found])
            refuses = self.options.unchecked == "refuse"
            problems.extend(
                Problem(
                    p.stage, p.code, "error" if refuses and p.code == UNCHECKED else p.severity,
                    p.message, p.path, span,
                )
                for p, span in zip(found, places, strict=True)
            )  # fmt: skip
        return source_json, arguments_json, coerced

    def _unknown_arguments(
        self,
        unknown: list[str],
        known: frozenset[str],
        d: Decoded,
        coerced: tuple[Step, ...],
        body: Body,
        tool: ToolSpec,
    ) -> list[Problem]:
        severity: Severity = "error" if self.options.unknown_arguments == "refuse" else "info"
        paths = ["/" + escape_token(name) for name in unknown]
        problems = []
        for name, path, span in zip(
            unknown, paths, find_spans(d, coerced, body.start, body.text, paths), strict=True
        ):
            near = near_tool(name, known) if name else None
            names = ", ".join(sorted(known)[:_TOOLS_IN_MESSAGE]) or "none"
            hint = f"; the nearest is {near!r}" if near else ""
            message = f"{name!r} is no parameter of {tool.name}, which has {names}{hint}"
            code = "call.unknown-argument"
            problems.append(Problem("validate", code, severity, message, path, span))
        return problems


def _fault(error: Exception) -> Refusal:
    return Refusal("parser.failed", f"{type(error).__name__}: {error}", 0)


_Placed = TypeVar("_Placed", Problem, Step)


def _shifted(items: tuple[_Placed, ...], by: int) -> tuple[_Placed, ...]:
    return tuple(i if i.span is None else replace(i, span=i.span.shift(by)) for i in items)
