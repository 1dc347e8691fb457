"""The stored form of the small types: lists of JSON values, in an order that is part of
the format.
"""

# `ToolCall` and `ParseResult` put these rows into their dicts. Each type has two functions here,
# one for each direction, and `…_in(…_out(x)) == x`.
#
# A row may get longer at its end, as a segment's did; nothing in it moves, since stored results are
# read for years. A change that breaks this needs another `options.VERSION`.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..values import read_strict
from .spans import Edit, Origin, Problem, Segment, Span, Step


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
