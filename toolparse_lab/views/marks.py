"""From a ParseResult to highlighted ranges of `raw`, and from overlapping ranges to runs that do
not overlap.

A mark is one range with one meaning. Marks nest and touch. `runs_of` cuts the text at every border,
so that each run carries the stack of marks around it, outermost first. Both are linear in the text
and the marks, but for sorting them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, cast, get_args

from ..core.types import ParseResult, Segment, Span, ToolCall
from .rows import Row, place, problems_of, rows_of, sentence_of
from .show import one_line, visible

MarkKind: TypeAlias = Literal[
    "reasoning",
    "markup",
    "call",
    "recovered",
    "unclosed",
    "opener",
    "closer",
    "name",
    "argument",
    "edit",
    "problem",
]
# The kinds from the outermost in: where spans are equal, a later kind is within an earlier.
LAYERS: tuple[MarkKind, ...] = get_args(MarkKind)
_LAYER = {kind: i for i, kind in enumerate(LAYERS)}
# Marks of one character: nested complaints could otherwise make the output quadratic.
_STACK = 12
_PATHS = 8  # paths named in one tooltip


@dataclass(frozen=True, slots=True)
class Mark:
    """One range of the text with one meaning. `paths` are its arguments: several where a structural
    change left one common origin.
    """

    kind: MarkKind
    span: Span
    label: str
    call: int | None = None
    paths: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    exact: bool = True

    @property
    def path(self) -> str | None:
        """The JSON Pointer of its argument, None for none and for several."""
        return self.paths[0] if len(self.paths) == 1 else None

    @property
    def coerced(self) -> bool:
        """True for an argument of which something was coerced.

        >>> Mark("argument", Span(0, 1), "", rules=("coerce.integer",)).coerced
        True
        """
        return self.kind == "argument" and any(r.startswith("coerce.") for r in self.rules)

    @property
    def title(self) -> str:
        """All of it in one line of visible text: label, place, rules with their sentences."""
        parts = [self.label, place(self.span)]
        if not self.exact:
            parts.append("the nearest place: a structural change left it none of its own")

        for rule in self.rules:
            sentence = sentence_of(rule)
            parts.append(f"{rule}: {sentence}" if sentence else rule)
        return visible(" · ".join(parts))


@dataclass(frozen=True, slots=True)
class Run:
    """`raw[start:end]` and the indexes of its marks, outermost first. Empty: an insertion point."""

    start: int
    end: int
    marks: tuple[int, ...]


def marks_of(result: ParseResult) -> list[Mark]:
    """Return every mark of the result, sorted by start, then longest first, then layer.

    In this order a mark comes before those inside it, as `runs_of` needs them.
    """
    by_segment: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)

    marks: list[Mark] = []
    for i, segment in enumerate(result.segments):
        if segment.kind != "text":
            marks += _segment_marks(segment, by_segment.get(i, []))

    members: list[Mark] = []
    for call in result.calls:
        marks += _call_marks(call, rows_of(call))
        marks += _edit_marks(call, result.raw)
        members += member_marks(call, result.raw)

    # Both members are the place of the complaint, which itself is about one character.
    marks += members
    marks += (mark for mark in _problem_marks(result) if not _is_within(mark, members))
    marks.sort(key=lambda m: (m.span.start, -m.span.end, _LAYER[m.kind]))
    return marks


def _segment_marks(segment: Segment, calls: Sequence[ToolCall]) -> Iterator[Mark]:
    # The marks carry the index of the first call in the segment.
    first = calls[0].index if calls else None
    names = ", ".join(one_line(c.name or "?", 40) for c in calls[:_PATHS])
    label = f"{segment.kind} {names}".strip()

    if segment.closed:
        yield Mark(cast(MarkKind, segment.kind), segment.span, label, first)
    else:
        label += ": the text ended before its closer"
        yield Mark("unclosed", segment.span, label, first)

    # All before the body is the opener, and all after it the closer.
    if segment.body is None or segment.kind not in ("call", "recovered", "reasoning"):
        return
    opener = Span(segment.span.start, segment.body.start)
    closer = Span(segment.body.end, segment.span.end)
    if len(opener):
        yield Mark("opener", opener, f"opener of the {segment.kind}", first)
    if len(closer):
        yield Mark("closer", closer, f"closer of the {segment.kind}", first)


def _call_marks(call: ToolCall, rows: Iterable[Row]) -> Iterator[Mark]:
    # Arguments of one origin have one mark. Containers and the arguments as a whole have none:
    # theirs would cover everything inside them.
    if call.name_span is not None:
        label = f"tool name {one_line(call.name, 60)}"
        yield Mark("name", call.name_span, label, call.index)

    by_origin: dict[Span, list[Row]] = {}
    for row in rows:
        if row.leaf and row.origin is not None and row.path:
            by_origin.setdefault(row.origin.span, []).append(row)

    for span, leaves in by_origin.items():
        label = ", ".join(
            f"{one_line(leaf.path, 60)} = {one_line(leaf.text, 60)}" for leaf in leaves[:_PATHS]
        )
        if len(leaves) > _PATHS:
            label += f" and {len(leaves) - _PATHS:,} more"
        yield Mark(
            "argument",
            span,
            f"argument {label}",
            call.index,
            paths=tuple(leaf.path for leaf in leaves),
            # Each rule once, in the order in which the arguments have them.
            rules=tuple(dict.fromkeys(rule for leaf in leaves for rule in leaf.rules)),
            exact=all(leaf.origin.exact for leaf in leaves if leaf.origin is not None),
        )


def _edit_marks(call: ToolCall, raw: str) -> Iterator[Mark]:
    # The mark of an insertion is empty.
    for edit in call.edits:
        before = one_line(edit.span.of(raw), 40)
        after = one_line(edit.text, 40)

        if not edit.text:
            label = f"repair: {before} is dropped"
        elif not len(edit.span):
            label = f"repair: {after} is added"
        else:
            label = f"repair: {before} is read as {after}"

        yield Mark("edit", edit.span, label, call.index, rules=(edit.rule,))


def member_marks(call: ToolCall, raw: str) -> Iterator[Mark]:
    """Yield both members of a key with two values, which are the place of its complaint."""
    for reading in call.readings:
        for edit in reading.edits:
            if edit.rule == "rjson.double-key":
                member = edit.span.of(raw).strip(", \t\r\n")
                start = raw.index(member, edit.span.start)
                label = f"one of two values: {one_line(member, 60)}"
                span = Span(start, start + len(member))
                yield Mark("problem", span, label, call.index, rules=("decode.duplicate-key",))


def _is_within(mark: Mark, others: Iterable[Mark]) -> bool:
    return any(
        other.call == mark.call and other.rules == mark.rules and other.span.covers(mark.span)
        for other in others
    )


def _problem_marks(result: ParseResult) -> list[Mark]:
    # Problems of one call and place are one mark with the labels of all; no code is repeated.
    merged: dict[tuple[int | None, Span], Mark] = {}
    for call, problem in problems_of(result):
        if problem.span is None:
            continue

        key = (call, problem.span)
        label = f"{problem.severity}: {one_line(problem.message, 160)}"
        mark = merged.get(key)
        if mark is None:
            paths = (problem.path,) if problem.path else ()
            merged[key] = Mark("problem", problem.span, label, call, paths, (problem.code,))
        elif problem.code not in mark.rules:
            label = f"{mark.label} · {label}"
            merged[key] = replace(mark, label=label, rules=(*mark.rules, problem.code))
    return list(merged.values())


# How `runs_of` works. It walks the borders of all marks from left to right and keeps the marks
# that are open as a list linked both ways, from the innermost (`top`) outwards: a mark that begins
# is put on the inside, and one that ends is taken out wherever it is, each in constant time. Marks
# need not nest. A mark without characters makes an empty run at its place and never enters the
# list.


def runs_of(spans: Sequence[Span], length: int) -> list[Run]:
    """Return the text, cut at every border of the marks' `spans`.

    spans: sorted by start, then longest first. length: that of the text. The runs partition
    `range(length)`. Marks without characters of their own add empty runs at their place.

    >>> [(run.start, run.end, run.marks) for run in runs_of([Span(0, 4), Span(1, 2)], 5)]
    [(0, 1, (0,)), (1, 2, (0, 1)), (2, 4, (0,)), (4, 5, ())]
    """
    # Place -> the numbers of the marks that end, begin, or are without characters there.
    ends: dict[int, list[int]] = {}
    starts: dict[int, list[int]] = {}
    points: dict[int, list[int]] = {}
    for i, span in enumerate(spans):
        if len(span):
            starts.setdefault(span.start, []).append(i)
            ends.setdefault(span.end, []).append(i)
        else:
            points.setdefault(span.start, []).append(i)

    borders = sorted({0, length, *starts, *ends, *points})
    marks = _OpenMarks(len(spans))
    runs: list[Run] = []
    # At a border marks end before others begin; those without characters come between the two.
    for border, after in zip(borders, [*borders[1:], length], strict=True):
        for i in ends.get(border, ()):
            marks.close(i)
        if border in points:
            runs.append(Run(border, border, (*marks.stack(), *points[border])))
        for i in starts.get(border, ()):
            marks.open(i)
        if after > border:
            runs.append(Run(border, after, marks.stack()))
    return runs


class _OpenMarks:
    """The marks around the current place, by their number among all marks, linked from the
    innermost outwards and back. -1 is no mark.
    """

    def __init__(self, count: int) -> None:
        self._outer = [-1] * count
        self._inner = [-1] * count
        self._top = -1

    def open(self, i: int) -> None:
        """Put a mark on the inside of all others."""
        self._outer[i] = self._top
        if self._top >= 0:
            self._inner[self._top] = i
        self._top = i

    def close(self, i: int) -> None:
        """Take a mark out, wherever it is, and link its neighbours."""
        outer, inner = self._outer[i], self._inner[i]
        if outer >= 0:
            self._inner[outer] = inner

        if inner >= 0:
            self._outer[inner] = outer
        else:
            self._top = outer

    def stack(self) -> tuple[int, ...]:
        """Return the numbers of the innermost marks, at most `_STACK` of them, outermost first."""
        stack: list[int] = []
        i = self._top
        while i >= 0 and len(stack) < _STACK:
            stack.append(i)
            i = self._outer[i]
        return tuple(reversed(stack))


def without_middle(
    runs: Sequence[Run], length: int, most: int
) -> tuple[list[Run], int, int, list[Run]]:
    """Return the head and the tail of a text of too many characters: the runs of the head, where it
    ends, where the tail begins, and the runs of the tail.
    """
    # The head says more than the tail, of which a quarter is enough.
    head, tail = most * 3 // 4, length - most // 4
    return clip(runs, 0, head), head, tail, clip(runs, tail, length)


def clip(runs: Iterable[Run], start: int, end: int) -> list[Run]:
    """Return the parts of runs between two offsets in the text.

    >>> clip([Run(0, 4, ()), Run(4, 4, (0,)), Run(4, 9, ())], 2, 4)
    [Run(start=2, end=4, marks=()), Run(start=4, end=4, marks=(0,))]
    """
    parts: list[Run] = []
    for run in runs:
        if run.start == run.end:
            # An insertion point at either end belongs to the part.
            if start <= run.start <= end:
                parts.append(run)
        elif run.start < end and run.end > start:
            parts.append(Run(max(run.start, start), min(run.end, end), run.marks))
    return parts
