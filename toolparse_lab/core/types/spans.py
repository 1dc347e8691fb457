"""Ranges of a text and the record about them: spans, origins, edits, segments, steps, problems; and
their stored form.
"""

# All are frozen, and none holds the text: a span means something only together with the `raw` it
# was made for. Offsets are Python code points, half-open. JavaScript counts UTF-16 units, so views
# convert them once, where they leave Python.
#
# A repair is an edit of `raw` and never a new string: the repaired text, a diff and a proof that
# nothing else was changed are all computed from the edits. A coercion is a step on values. Each
# change is recorded once, as one or the other.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from operator import attrgetter
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from ..values import Value, read_strict, unescape, write_canonical

P = ParamSpec("P")
T = TypeVar("T")

# How it works. A frozen dataclass sets each of its own fields through a function call, because its
# instances refuse anything else, and of many fields that is most of the time that a call takes. A
# twin with the same slots that is not frozen sets them directly; its instances become ones of the
# class as soon as they are made, which Python allows where the slots are equal, and nobody ever
# sees a twin.


def maker_of(cls: Callable[P, T]) -> Callable[P, T]:
    """Return a function that makes instances of a frozen dataclass with slots, only sooner."""

    # In a fifth of the time, where there are many fields.
    def become(self: Any) -> None:
        self.__class__ = cls

    rows = [
        (row.name, Any, field(default=row.default, default_factory=row.default_factory))
        for row in fields(cls)  # type: ignore[arg-type]
    ]
    twin: Any = make_dataclass(
        f"_{cls.__name__}",
        rows,
        namespace={"__post_init__": become},
        slots=True,
        eq=False,
        repr=False,
    )
    return twin  # type: ignore[no-any-return]


SegmentKind: TypeAlias = Literal["text", "reasoning", "markup", "call", "recovered"]
Severity: TypeAlias = Literal["error", "warning", "info"]
Stage: TypeAlias = Literal["scan", "repair", "decode", "read", "coerce", "validate"]


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """Half-open range of code points of `raw`.

    >>> Span(2, 5).of("abcdefg")
    'cde'
    """

    start: int
    end: int

    def __init__(self, start: int, end: int) -> None:
        # A dozen are made for every call; what a frozen dataclass writes here takes twice the time.
        _set_start(self, start)
        _set_end(self, end)

    def __len__(self) -> int:
        # So an empty span is false: compare with None instead.
        return self.end - self.start

    def of(self, raw: str) -> str:
        """Return the characters of the span in `raw`."""
        return raw[self.start : self.end]

    def shift(self, by: int) -> Span:
        """Return the span `by` characters further on.

        Turns offsets in a body into offsets in raw, where `by` is the body's beginning.

        >>> Span(2, 5).shift(10)
        Span(start=12, end=15)
        """
        return Span(self.start + by, self.end + by)

    def covers(self, other: Span) -> bool:
        """Return True if all of `other` is inside.

        An empty span may be at either end.

        >>> Span(2, 5).covers(Span(3, 5)), Span(2, 5).covers(Span(4, 6))
        (True, False)
        """
        return self.start <= other.start and other.end <= self.end


# The slots' own descriptors: a frozen instance refuses `self.start = …`, and these are the quickest
# way around.
_set_start: Callable[[Span, int], None] = Span.__dict__["start"].__set__
_set_end: Callable[[Span, int], None] = Span.__dict__["end"].__set__


@dataclass(frozen=True, slots=True)
class Origin:
    """The place of a value in `raw`: the value without its quotes.

    `exact` is False if the value's own place is not known, as after some repairs and coercions. The
    span is then that of its source.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.parse(text, "hermes").calls[0].origin("/a")
    Origin(span=Span(start=45, end=46), exact=True)
    """

    span: Span
    exact: bool = True

    @property
    def start(self) -> int:
        """The offset of the value's first character."""
        return self.span.start

    @property
    def end(self) -> int:
        """The offset after the value's last character."""
        return self.span.end


@dataclass(frozen=True, slots=True)
class Edit:
    """One repair: `raw[span]` is read as `text`.

    Edits of a call are sorted and never overlap.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tp.parse(text, "hermes").calls[0].edits[0]
    Edit(span=Span(start=47, end=48), text='', rule='rjson.trailing-comma')
    """

    span: Span
    text: str
    rule: str


make_edit = maker_of(Edit)
rule_of = attrgetter("rule")
"""Return the rule of an edit or a step."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of `raw`, which the segments of a result partition.

    `body` is the call's or reasoning's inner text. `closed` is False if the text ended before its
    closer. `escaped`: the text is inside a JSON string, so that its characters in `raw` are
    escaped.

    >>> import toolparse_lab as tp
    >>> tp.parse("Well. <tool_call>{", "hermes").segments[0]
    Segment(kind='text', span=Span(start=0, end=6), body=None, closed=True, escaped=False)
    """

    kind: SegmentKind
    span: Span
    body: Span | None = None
    closed: bool = True
    escaped: bool = False

    def said(self, raw: str) -> str:
        """Return the text: its characters in `raw`, or their meaning inside a JSON string.

        Of reasoning it is the inner text, without its tag.
        """
        span = self.span
        if self.kind == "reasoning" and self.body is not None:
            span = self.body
        text = span.of(raw)
        return unescape(text) if self.escaped else text


make_segment = maker_of(Segment)


@dataclass(frozen=True, slots=True)
class Step:
    """One recorded change on the way from raw text to arguments.

    `path` is a JSON Pointer into the arguments, `span` the raw characters it concerns (None when
    there are none). `before` and `after` are the changed subtree as values. `before_json` and
    `after_json` render them.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {"a": "1",}}</tool_call>'
    >>> tools = [{"name": "f", "parameters": {"properties": {"a": {"type": "integer"}}}}]
    >>> step = tp.parse(text, "hermes", tools).calls[0].steps[0]
    >>> step.rule, step.path, step.before, step.after
    ('coerce.integer-from-string', '/a', '1', 1)
    """

    stage: Stage
    rule: str
    path: str
    span: Span | None
    before: Value
    after: Value

    @property
    def before_json(self) -> str:
        """The subtree before the change, as canonical JSON text."""
        # Rendered here: most steps are only counted.
        return write_canonical(self.before)

    @property
    def after_json(self) -> str:
        """The subtree after the change, as canonical JSON text."""
        return write_canonical(self.after)

    @property
    def lossless(self) -> bool:
        """True if the rule neither guesses nor loses anything.

        Raises UnknownName for a step of a newer version, whose rule is not here.
        """
        from ..rules import rule_of  # start-up time: parsing needs no rule's description

        return rule_of(self.rule).lossless


make_step = maker_of(Step)
_set_step_span: Callable[[Step, Any], None] = Step.__dict__["span"].__set__


def settle_late(cls: type, name: str, late: type, settle: Callable[[Any, Any], None]) -> None:
    """Let `settle(instance, value)` fill a slot when it is first read with a `late` value in it."""
    slot = cls.__dict__[name]

    def get(instance: Any) -> Any:
        value = slot.__get__(instance)
        if type(value) is late:
            settle(instance, value)
            value = slot.__get__(instance)
        return value

    setattr(cls, name, property(get, slot.__set__))


class StepSpans:
    """The spans of one call's coercion steps, which are found when the first one is read.

    Most steps are counted, and nobody asks where they were; to find that takes as long as the
    coercion.
    """

    __slots__ = ("_find", "_steps")

    def __init__(
        self, steps: tuple[Step, ...], find: Callable[[], tuple[Span | None, ...]]
    ) -> None:
        self._steps = steps
        self._find = find
        for step in steps:
            _set_step_span(step, self)

    def settle(self) -> None:
        """Give each step its span."""
        for step, span in zip(self._steps, self._find(), strict=True):
            _set_step_span(step, span)


settle_late(Step, "span", StepSpans, lambda _, spans: spans.settle())


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem of a parse.

    `code` is a permanent id (see `rules`), `path` a JSON Pointer into the arguments or ''.

    >>> import toolparse_lab as tp
    >>> tp.parse("<tool_call>{", "hermes").calls[0].problems[0].code
    'call.truncated'
    """

    stage: Stage
    code: str
    severity: Severity
    message: str
    path: str = ""
    span: Span | None = None


make_problem = maker_of(Problem)


# stored form

# `ToolCall` and `ParseResult` put these rows into their dicts. Each type has two functions here,
# one for each direction, and `…_in(…_out(x)) == x`.
#
# A row may get longer at its end, as a segment's did; nothing in it moves, since stored results are
# read for years. A change that breaks this needs another `options.VERSION`.


def span_out(span: Span | None) -> list[int] | None:
    """[start, end], or None for no span."""
    return None if span is None else [span.start, span.end]


def span_in(row: Any) -> Span | None:
    """Return the span of a row that `span_out` wrote."""
    return None if row is None else Span(row[0], row[1])


def segment_out(segment: Segment) -> list[Any]:
    """[kind, start, end, body, closed], and True behind them for an escaped segment."""
    span = segment.span
    row = [segment.kind, span.start, span.end, span_out(segment.body), segment.closed]
    # Older results have no such member, and most segments need none.
    if segment.escaped:
        row.append(True)
    return row


def segment_in(row: Any) -> Segment:
    """Return the segment of a row that `segment_out` wrote."""
    kind, start, end, body, closed, *escaped = row
    return Segment(kind, Span(start, end), span_in(body), closed, bool(escaped))


def edit_out(edit: Edit) -> list[Any]:
    """[start, end, text, rule]."""
    return [edit.span.start, edit.span.end, edit.text, edit.rule]


def edit_in(row: Any) -> Edit:
    """Return the edit of a row that `edit_out` wrote."""
    start, end, text, rule = row
    return Edit(Span(start, end), text, rule)


def step_out(step: Step) -> list[Any]:
    """[stage, rule, path, span, before, after], the values as canonical JSON text."""
    # As text, since a JSON reader would turn 3.0 and 1e999 into numbers without their lexemes.
    span = span_out(step.span)
    return [step.stage, step.rule, step.path, span, step.before_json, step.after_json]


def step_in(row: Any) -> Step:
    """Return the step of a row that `step_out` wrote."""
    stage, rule, path, span, before, after = row
    return Step(stage, rule, path, span_in(span), read_strict(before), read_strict(after))


def problem_out(problem: Problem) -> list[Any]:
    """[stage, code, severity, message, path, span]."""
    return [
        problem.stage,
        problem.code,
        problem.severity,
        problem.message,
        problem.path,
        span_out(problem.span),
    ]


def problem_in(row: Any) -> Problem:
    """Return the problem of a row that `problem_out` wrote."""
    stage, code, severity, message, path, span = row
    return Problem(stage, code, severity, message, path, span_in(span))


def origins_out(origins: Mapping[str, Origin]) -> list[list[Any]]:
    """[path, start, end, exact] for each origin, in the table's order."""
    return [[path, o.span.start, o.span.end, o.exact] for path, o in origins.items()]


def origins_in(rows: Any) -> dict[str, Origin]:
    """Return the table of rows that `origins_out` wrote."""
    return {path: Origin(Span(start, end), exact) for path, start, end, exact in rows}
