"""From one closed body to its calls: decode, then coerce, then validate.

And where each argument came from.
"""

# How it works
# ------------
# A body goes through a row of stages, each of which adds what it changed (steps) or found wrong
# (problems): decode (the codec's work), closer, tool, canonical text, fit, origins.
#
# State: none between bodies. A resolver is the protocol, tools and options; all else is passed on.
#
# Invariant: spans leave here as offsets in raw. What a codec says counts from the beginning of its
# body, and each stage adds body.start exactly once. `source_json` with the coercion steps applied
# in order gives `arguments_json`.
#
# Cost: most calls are good ones, and `fits` says so in one look; then nothing is coerced, validated
# or traced. Origins are traced only when somebody asks for one, or where a step or problem needs
# its span.

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from ..arguments.rjson.damage import Refusal
from ..arguments.schema.coerce import coerce, may_be_wrapped
from ..arguments.schema.plain import read_texts, takes_texts
from ..arguments.schema.scalars import UNRECORDED, Record
from ..arguments.schema.validate import find_problems, fits
from ..arguments.schema.view import view_of
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
from ..core.types.call import LateAccount, make_call, make_late_call
from ..core.types.call import Reading as Candidate
from ..core.types.spans import StepSpans, make_problem
from ..core.values import Value, escape_token, write_canonical
from ..formats.base import Decoded, Opening, Places, Protocol, Reading, Tools
from ..formats.python.call import read_instead
from ..formats.tool_names import near_tool, offered_name
from .provenance import find_spans, find_step_spans, trace_table

# How a body was closed, where its own closer did not do it -> what to say of that.
_CLOSER_NOTES = {
    "rescued": ("call.rescued-closer", "the closer stood inside what reads as an open string"),
    "wrong": (
        "call.wrong-closer",
        "the body is whole, but another format's closer stands behind it",
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


class Resolver:
    """Turns bodies into calls under one protocol, one set of tools and one set of options."""

    __slots__ = ("_plain_tools", "options", "protocol", "tools")

    def __init__(self, protocol: Protocol, tools: Tools, options: ParseOptions) -> None:
        """Take the protocol whose bodies come, the tools on offer by name, and the options."""
        self.protocol = protocol
        self.tools = tools
        self.options = options
        self._plain_tools: Mapping[str, ToolSpec] | None = None

    @property
    def plain_tools(self) -> Mapping[str, ToolSpec]:
        """The tools whose arguments may be read in one pass over their texts, by name.

        Worked out when first asked for, since many answers hold no call.
        """
        if self._plain_tools is None:
            tools = self.tools if self.options.coerce == "safe" else {}
            self._plain_tools = {n: t for n, t in tools.items() if takes_texts(t.schema_json)}
        return self._plain_tools

    def reading(self, opening: Opening, closed: bool) -> Reading:
        """Return the facts that a codec may use in reading the body behind `opening`."""
        options = self.options
        envelope = self.protocol.envelope
        return Reading(
            opening, closed, options.repair, options.max_depth, self.tools, None, envelope
        )

    def decode(self, body: Body, reading: Reading) -> tuple[Decoded, ...] | Refusal:
        """Return the codec's reading of a body.

        A refusal comes back, since it becomes a call as well.

        Never raises: a fault of a codec is a refusal that says so.
        """
        try:
            return self.protocol.codec.read(body.text, reading)
        except Refusal as refusal:
            return read_instead(body.text, reading) or refusal
        except Exception as e:
            # Model text must never raise; a fault of ours becomes a problem that says so.
            return _fault(e)

    def calls(
        self,
        decoded: tuple[Decoded, ...] | Refusal,
        body: Body,
        segment: Segment,
        segment_index: int,
        index: int,
    ) -> tuple[ToolCall, ...]:
        """Return the calls of one body, numbered from `index`.

        A body that was refused is one call without arguments.

        decoded: the codec's calls, or its refusal. body: where they stand. segment, segment_index:
        the segment they belong to, and its place among the segments.
        """
        if isinstance(decoded, Refusal):
            return (self._refused(decoded, body, segment, segment_index, index),)
        if len(decoded) == 1:
            try:  # as `_safe_call`, which would be one Python call more for nearly every body
                return (self._call(decoded[0], body, segment, segment_index, index),)
            except Exception as e:
                return (self._refused(_fault(e), body, segment, segment_index, index),)
        if not decoded:
            empty = Refusal("decode.empty", "there is no call in this body", 0)
            return (self._refused(empty, body, segment, segment_index, index),)
        return tuple(
            self._safe_call(d, body, segment, segment_index, index + i)
            for i, d in enumerate(decoded)
        )

    def leading(
        self, body: Body, opening: Opening, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """Return the calls that stand whole in front of the damage of a body that was refused."""
        try:
            decoded = self.protocol.codec.leading(body.text, self.reading(opening, body.closed))
        except Exception:
            # The refusal itself is reported; a codec's second fault adds nothing to it.
            return ()
        return self.calls(decoded, body, segment, segment_index, index) if decoded else ()

    def plain_call(
        self,
        texts: list[tuple[str, str]],
        tool: ToolSpec,
        opening: Opening,
        body: str,
        name_at: int,
        segment: Segment,
        segment_index: int,
        index: int,
    ) -> ToolCall | None:
        """Return the call of a body that its codec showed in one look.

        None if its texts are not plainly what its tool wants. The same as `decode` and `calls`
        return otherwise.

        texts: the arguments. opening: the opener before the body. body: its characters. name_at:
        the offset of the tool's name in raw. The rest as for `calls`.
        """
        arguments_json = read_texts(texts, tool.schema_json, UNRECORDED)
        if arguments_json is None:
            return None
        return make_late_call(
            index,
            segment_index,
            tool.name,
            Span(name_at, name_at + len(tool.name)),
            opening.owner.id if opening.owner else self.protocol.id,
            arguments_json,
            segment,
            LateAccount(_plain_account, self, tool, opening, body, segment),
        )

    # calls without arguments

    def _refused(
        self, refusal: Refusal, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        """Return the call of a body that no codec could read.

        If the text ends inside the body it is truncated, else undecodable. The name is the
        opener's, or one that the refusal could still make out.
        """
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
        return make_call(
            index,
            segment_index,
            name,
            name_span,
            None,
            body.protocol or self.protocol.id,
            "undecodable" if body.closed else "truncated",
            1.0,
            "",
            "",
            problems=tuple(problems),
            segment=segment,
            readings=tuple(_named(r.shift(body.start), name) for r in refusal.readings),
        )

    def _unreadable(
        self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        """Return a call without arguments among those of a body that its codec could read.

        Its problems come from the codec, which alone knows why.
        """
        return ToolCall(
            index=index,
            segment_index=segment_index,
            name=d.name,
            name_span=_shift(d.name_span, body.start),
            wire_id=d.wire_id,
            protocol=body.protocol or self.protocol.id,
            status="truncated" if d.truncated else "undecodable",
            confidence=1.0,
            source_json="",
            arguments_json="",
            edits=_shift_edits(d.edits, body.start),
            problems=_shift_problems(d.problems, body.start),
            segment=segment,
            readings=tuple(reading.shift(body.start) for reading in d.readings),
        )

    # a call that was read, stage by stage

    def _safe_call(
        self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        """Return one call through all stages.

        A fault of ours in one of them is a refusal that says so.
        """
        try:
            return self._call(d, body, segment, segment_index, index)
        except Exception as e:
            return self._refused(_fault(e), body, segment, segment_index, index)

    def _call(
        self, d: Decoded, body: Body, segment: Segment, segment_index: int, index: int
    ) -> ToolCall:
        """Return one call that the codec read, through all stages."""
        if not d.readable:
            return self._unreadable(d, body, segment, segment_index, index)
        # Arguments are passed by position, and stages with nothing to do are not called: this runs
        # for every call, and a Python call costs as much as the whole look at a good one's closer.
        start = body.start
        problems = [*_shift_problems(d.problems, start)] if d.problems else []
        if body.kind != "closer" or not body.closed:
            problems.extend(_closer_notes(body, segment))

        tool = self.tools.get(d.name)
        status: CallStatus = "ok"
        if tool is None and self.tools:
            d, tool = self._respelt(d)
        if d.edits and tool is not None:
            d = _without_escapes(d, tool)
        if tool is None and self.tools:
            status = "unknown_tool"
            problems.append(self._unknown_tool(d, start))

        steps = _shift_steps(d.steps, start) if d.steps else ()
        source_json, arguments_json, coerced = self._fitted(d, tool, body, problems)
        if coerced:
            steps += coerced

        name_span = d.name_span
        if name_span is not None:
            name_span = Span(name_span.start + start, name_span.end + start)
        return make_call(
            index,
            segment_index,
            d.name,
            name_span,
            d.wire_id,
            body.protocol or self.protocol.id,
            status,
            1.0,
            source_json,
            arguments_json,
            _shift_edits(d.edits, start) if d.edits else (),
            steps,
            tuple(problems),
            segment,
            OriginTable(partial(trace_table, d, coerced, start, body.text)),
        )

    def _respelt(self, d: Decoded) -> tuple[Decoded, ToolSpec | None]:
        """Return a call and its tool where its name means one of the tools.

        The call as it was, and None, where it does not.
        """
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

    def _unknown_tool(self, d: Decoded, start: int) -> Problem:
        """Return the problem of a call whose name is not a tool's.

        start: the body's offset in raw.
        """
        names = ", ".join(list(self.tools)[:_TOOLS_IN_MESSAGE])
        near = near_tool(d.name, self.tools)
        hint = f"; the one near to it is {near!r}" if near else ""
        message = f"{d.name!r} is none of the tools: {names}{hint}"
        span = _shift(d.name_span, start)
        return Problem("read", "call.unknown-tool", "error", message, "", span)

    def _fitted(
        self, d: Decoded, tool: ToolSpec | None, body: Body, problems: list[Problem]
    ) -> tuple[str, str, tuple[Step, ...]]:
        """Return arguments as JSON before and after they are fit to the schema, and the steps.

        What the schema says against the result is added to the problems. tool: None if it is none
        of those on offer, so that nothing is known of its arguments.
        """
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
                StepSpans(steps, partial(find_step_spans, d, steps, body.start, body.text))
                return write_canonical(d.arguments), arguments_json, steps

        source_json = write_canonical(d.arguments)
        if tool is None or (
            not may_be_wrapped(d.arguments)
            and fits(d.arguments, tool.schema_json, policy, d.untyped)
        ):
            return source_json, source_json, ()

        coerced, value, arguments_json = self._coerce(d, tool, body, source_json, problems)
        if self.options.validate:
            problems.extend(self._validate(d, tool, body, coerced, value))
        return source_json, arguments_json, coerced

    def _coerce(
        self,
        d: Decoded,
        tool: ToolSpec,
        body: Body,
        source_json: str,
        problems: list[Problem],
    ) -> tuple[tuple[Step, ...], Value, str]:
        """Fit arguments to the schema: the steps, with spans in raw, the new value, and its text.

        No step, and the arguments as they were, where the policy changes nothing. A result that
        JSON cannot carry is dropped, and a problem added that says so.
        """
        policy = self.options.coerce
        if policy == "none":
            return (), d.arguments, source_json
        result = coerce(
            d.arguments, tool.schema_json, policy, one_item=d.untyped, raw_text=d.untyped
        )
        problems.extend(result.problems)
        if not result.steps:
            return (), d.arguments, source_json
        try:
            arguments_json = write_canonical(result.value)
        except TypeError:  # the Go policy reads "inf" as a number, which no call may carry
            message = (
                "coercion gave a number that is not finite, so the arguments stay as they were"
            )
            problems.append(Problem("coerce", "coerce.not-finite", "error", message))
            return (), d.arguments, source_json

        StepSpans(result.steps, partial(find_step_spans, d, result.steps, body.start, body.text))
        return result.steps, result.value, arguments_json

    def _validate(
        self, d: Decoded, tool: ToolSpec, body: Body, coerced: tuple[Step, ...], value: Value
    ) -> list[Problem]:
        """Return the schema's complaints about a value that did not plainly fit, with their spans.

        value: the arguments after coercion. coerced: the steps that led there, through which the
        paths of complaints are traced back to raw.
        """
        # What did not fit under these policies was not changed by them, and does not fit now; so
        # the look whether it fits, with which `validate` begins, is left out.
        misfit = not coerced and self.options.coerce in ("none", "safe")
        misfit = misfit and not may_be_wrapped(d.arguments)
        # As `validate`, which would be a call more.
        if not misfit and fits(value, tool.schema_json):
            return []
        problems = find_problems(value, tool.schema_json)
        if not problems:
            return []
        spans = find_spans(d, coerced, body.start, body.text, [p.path for p in problems])
        return [
            Problem(p.stage, p.code, p.severity, p.message, p.path, span)
            for p, span in zip(problems, spans, strict=True)
        ]


def _plain_account(
    resolver: Resolver, tool: ToolSpec, opening: Opening, body: str, segment: Segment
) -> tuple[str, tuple[Step, ...], OriginTable]:
    """Return source, steps and origins of a plain call, as its codec reads the body.

    tool: that of the call. The rest as for `plain_call`.
    """
    start = (segment.body or segment.span).start
    (d,) = resolver.protocol.codec.read(body, resolver.reading(opening, True))
    record = Record("safe")
    if isinstance(d.arguments, dict):
        read_texts(d.arguments.items(), tool.schema_json, record)
    steps = tuple(record.steps)
    if steps:
        StepSpans(steps, partial(find_step_spans, d, steps, start, body))
    table = OriginTable(partial(trace_table, d, steps, start, body))
    return write_canonical(d.arguments), steps, table


def _fault(error: Exception) -> Refusal:
    """Return a fault of ours as the refusal of the body that it happened at."""
    return Refusal("parser.failed", f"{type(error).__name__}: {error}", 0)


def _closer_notes(body: Body, segment: Segment) -> list[Problem]:
    """Return the warning about how a body was closed.

    None if its own closer did it.
    """
    kind = body.kind
    # A body may be whole at the end of the text, where its closer is missing as well.
    if kind not in _CLOSER_NOTES:
        if body.closed:
            return []
        kind = "implicit"
    code, message = _CLOSER_NOTES[kind]
    return [Problem("scan", code, "warning", message, "", segment.span)]


def _without_escapes(d: Decoded, tool: ToolSpec) -> Decoded:
    """Return a call without the backslashes of Markdown in names of parameters."""
    arguments = d.arguments
    if not isinstance(arguments, dict) or not any("\\_" in key for key in arguments):
        return d
    properties = view_of(tool.schema_json).properties
    names: dict[str, str] = {}
    for key in arguments:
        plain = key.replace("\\_", "_")
        if key not in properties and plain in properties and plain not in arguments:
            names[key] = plain
    steps = tuple(Step("read", _ESCAPED, "", None, old, new) for old, new in names.items())
    plain_arguments = {names.get(key, key): value for key, value in arguments.items()}
    return replace(
        d,
        arguments=plain_arguments,
        steps=(*d.steps, *steps),
        places=partial(_plain_places, d, names),
    )


def _plain_places(d: Decoded, names: Mapping[str, str]) -> Places:
    """Return the places of a call, under the plain names of its parameters."""
    paths = {escape_token(old): escape_token(new) for old, new in names.items()}
    moved: dict[str, tuple[int, int]] = {}
    for path, place in d.places().items():
        first, slash, rest = path.removeprefix("/").partition("/")
        moved[f"/{paths.get(first, first)}{slash}{rest}" if path else ""] = place
    return moved


def _named(reading: Candidate, name: str) -> Candidate:
    """Return a reading with a call's name, where it has none of its own."""
    return reading if reading.name else replace(reading, name=name)


def _shift(span: Span | None, by: int) -> Span | None:
    """Return a span moved by an offset, if there is one."""
    return None if span is None else span.shift(by)


def _shift_edits(edits: tuple[Edit, ...], by: int) -> tuple[Edit, ...]:
    """Return the edits with their spans moved by an offset."""
    return tuple(Edit(e.span.shift(by), e.text, e.rule) for e in edits)


def _shift_problems(problems: tuple[Problem, ...], by: int) -> tuple[Problem, ...]:
    """Return the problems with their spans moved by an offset."""
    return tuple(
        Problem(p.stage, p.code, p.severity, p.message, p.path, _shift(p.span, by))
        for p in problems
    )


def _shift_steps(steps: tuple[Step, ...], by: int) -> tuple[Step, ...]:
    """Return the steps with their spans moved by an offset."""
    return tuple(
        Step(s.stage, s.rule, s.path, _shift(s.span, by), s.before, s.after) for s in steps
    )
