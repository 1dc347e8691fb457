"""From a ParseResult to highlighted ranges of `raw`, and from overlapping ranges to runs that do not overlap.

A mark is one range with one meaning. Marks nest and touch; `runs_of` cuts the text at every border, so that each run
carries the stack of marks around it, outermost first. Both are linear in the text and the marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..types import ParseResult, Span, ToolCall
from .changes import place, problems_of, sentence_of
from .show import one_line, visible
from .tree import rows_of

MarkKind: TypeAlias = Literal[
    "reasoning", "markup", "call", "recovered", "unclosed", "opener", "closer", "name", "argument", "edit", "problem"
]
LAYERS: tuple[MarkKind, ...] = (
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
)
_LAYER = {kind: i for i, kind in enumerate(LAYERS)}
_STACK = 12  # marks shown at one character: nested complaints could otherwise make the output quadratic
_PATHS = 8  # paths named in one tooltip


@dataclass(frozen=True, slots=True)
class Mark:
    """One range. `paths` are the arguments it stands for: several where a structural change left one common origin."""

    kind: MarkKind
    span: Span
    label: str
    call: int | None = None
    paths: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    exact: bool = True

    @property
    def path(self) -> str | None:
        """The argument it stands for, when it is one."""
        return self.paths[0] if len(self.paths) == 1 else None

    @property
    def title(self) -> str:
        """All of it in one line: label, place, rules with their sentences."""
        parts = [self.label, place(self.span)]
        if not self.exact:
            parts.append("the nearest place: a structural change left it none of its own")
        parts += [f"{rule}: {sentence}" if (sentence := sentence_of(rule)) else rule for rule in self.rules]
        return visible(" · ".join(parts))


@dataclass(frozen=True, slots=True)
class Run:
    """`raw[start:end]` and the indexes of its marks, outermost first. Empty runs are insertion points."""

    start: int
    end: int
    marks: tuple[int, ...]


def marks_of(result: ParseResult) -> list[Mark]:
    """Every mark of the result, sorted by start, then longest first, then layer."""
    marks: list[Mark] = []
    by_segment: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)
    for i, segment in enumerate(result.segments):
        calls = by_segment.get(i, [])
        first = calls[0].index if calls else None
        if segment.kind == "text":
            continue
        names = ", ".join(one_line(c.name or "?", 40) for c in calls[:_PATHS])
        label = f"{segment.kind} {names}".strip()
        if not segment.closed:
            marks.append(Mark("unclosed", segment.span, f"{label}: the text ended before its closer", first))
        else:
            marks.append(Mark(segment.kind, segment.span, label, first))
        if segment.body is not None and segment.kind in ("call", "recovered", "reasoning"):
            opener = Span(segment.span.start, segment.body.start)
            closer = Span(segment.body.end, segment.span.end)
            if len(opener):
                marks.append(Mark("opener", opener, f"opener of the {segment.kind}", first))
            if len(closer):
                marks.append(Mark("closer", closer, f"closer of the {segment.kind}", first))
    for call in result.calls:
        marks += _call_marks(call, result.raw)
    marks += _problem_marks(result)
    marks.sort(key=lambda m: (m.span.start, -m.span.end, _LAYER[m.kind]))
    return marks


def _call_marks(call: ToolCall, raw: str) -> list[Mark]:
    marks: list[Mark] = []
    if call.name_span is not None:
        marks.append(Mark("name", call.name_span, f"tool name {one_line(call.name, 60)}", call.index))
    shared: dict[Span, list[tuple[str, str, tuple[str, ...], bool]]] = {}
    for row in rows_of(call):
        if row.leaf and row.origin is not None and row.path:
            leaf = (row.path, row.text, row.rules, row.origin.exact)
            shared.setdefault(row.origin.span, []).append(leaf)
    for span, found in shared.items():
        paths = tuple(path for path, *_ in found)
        rules = tuple(dict.fromkeys(rule for _, _, some, _ in found for rule in some))
        label = ", ".join(f"{one_line(path, 60)} = {one_line(text, 60)}" for path, text, *_ in found[:_PATHS])
        if len(found) > _PATHS:
            label += f" and {len(found) - _PATHS:,} more"
        exact = all(exact for *_, exact in found)
        marks.append(Mark("argument", span, f"argument {label}", call.index, paths, rules, exact))
    for edit in call.edits:
        before, after = one_line(edit.span.of(raw), 40), one_line(edit.text, 40)
        if not edit.text:
            label = f"repair: {before} is dropped"
        elif not len(edit.span):
            label = f"repair: {after} is added"
        else:
            label = f"repair: {before} is read as {after}"
        marks.append(Mark("edit", edit.span, label, call.index, (), (edit.rule,)))
    return marks


def _problem_marks(result: ParseResult) -> list[Mark]:
    merged: dict[tuple[int | None, Span], Mark] = {}
    for call, problem in problems_of(result):
        if problem.span is None:
            continue
        key = (call, problem.span)
        label = f"{problem.severity}: {one_line(problem.message, 160)}"
        at = (problem.path,) if problem.path else ()
        if (old := merged.get(key)) is None:
            merged[key] = Mark("problem", problem.span, label, call, at, (problem.code,))
        elif problem.code not in old.rules:
            merged[key] = Mark(
                "problem", problem.span, f"{old.label} · {label}", call, old.paths, (*old.rules, problem.code)
            )
    return list(merged.values())


def runs_of(spans: Sequence[Span], length: int) -> list[Run]:
    """The text cut at every border of the marks' `spans`, which are sorted by start, then longest first.

    The runs partition `range(length)`; marks without characters of their own add empty runs at their place.
    """
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
    # The open marks are a linked list: a new one goes on the inside, and any may close, each in constant time.
    outer = [-1] * len(spans)
    inner = [-1] * len(spans)
    top = -1
    runs: list[Run] = []
    for border, after in zip(borders, [*borders[1:], length], strict=True):
        for i in ends.get(border, ()):
            out, inn = outer[i], inner[i]
            if out >= 0:
                inner[out] = inn
            if inn >= 0:
                outer[inn] = out
            else:
                top = out
        if border in points:
            runs.append(Run(border, border, (*_stack(top, outer), *points[border])))
        for i in starts.get(border, ()):
            outer[i] = top
            if top >= 0:
                inner[top] = i
            top = i
        if after > border:
            runs.append(Run(border, after, _stack(top, outer)))
    return runs


def _stack(top: int, outer: Sequence[int]) -> tuple[int, ...]:
    found: list[int] = []
    while top >= 0 and len(found) < _STACK:
        found.append(top)
        top = outer[top]
    return tuple(reversed(found))


def clip(runs: Iterable[Run], start: int, end: int) -> list[Run]:
    """The parts of runs that lie within `start` and `end`."""
    kept: list[Run] = []
    for run in runs:
        if run.start == run.end:
            if start <= run.start <= end:
                kept.append(run)
        elif run.start < end and run.end > start:
            kept.append(Run(max(run.start, start), min(run.end, end), run.marks))
    return kept
