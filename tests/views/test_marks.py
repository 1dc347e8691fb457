"""Marks and runs: what is highlighted, and that overlapping marks become runs that partition the
text."""

from __future__ import annotations

import random

from tests.render_samples import EXAMPLE, example, several
from toolparse_lab.core.types import ParseResult, Span
from toolparse_lab.views.marks import Mark, clip, marks_of, runs_of


def found(result: ParseResult) -> list[tuple[str, str, str | None]]:
    return [(m.kind, m.span.of(result.raw), m.path) for m in marks_of(result)]


def test_every_part_of_the_example_is_marked() -> None:
    assert found(example()) == [
        ("call", EXAMPLE, None), ("opener", "<tool_call>", None), ("name", "f", None),
        ("argument", "1", "/a"), ("edit", ",", None), ("closer", "</tool_call>", None),
    ]  # fmt: skip


def test_marks_of_several_calls() -> None:
    marks = found(several())
    assert ("reasoning", "<think>Weather 😀 & news.</think>", None) in marks
    assert ("argument", "Zürich 😀", "/city") in marks
    assert ("argument", "wind", "/options/fields/0") in marks
    assert ("problem", "metric", "/units") in marks
    assert ("edit", "", None) in marks
    assert ("unclosed", '<tool_call>{"name": "cut", "argum', None) in marks
    assert not any(path == "/options" for _, _, path in marks), "only leaves have marks"


def test_a_mark_says_its_value_place_and_rule() -> None:
    (mark,) = (m for m in marks_of(example()) if m.kind == "argument")
    assert mark.rules == ("coerce.integer-from-string",)
    assert mark.title == (
        "argument /a = 1 · characters 45 to 46 · "
        "coerce.integer-from-string: Text that is exactly an integer becomes one."
    )


def test_leaves_of_a_coerced_value_carry_its_rule() -> None:
    rules = {m.path: m.rules for m in marks_of(several()) if m.kind == "argument"}
    assert rules["/options/fields/1"] == ("coerce.array-from-csv",)
    assert rules["/city"] == ()


def test_runs_know_exactly_the_marks_around_them() -> None:
    rng = random.Random(7)
    for _ in range(300):
        length = rng.randint(0, 20)
        spans = []
        for _ in range(rng.randint(0, 8)):
            a, b = sorted((rng.randint(0, length), rng.randint(0, length)))
            spans.append(Span(a, b))
        spans.sort(key=lambda s: (s.start, -s.end))
        runs = runs_of(spans, length)
        solid = [r for r in runs if r.end > r.start]
        assert [i for r in solid for i in range(r.start, r.end)] == list(range(length))
        for run in solid:
            around = [
                i
                for i, s in enumerate(spans)
                if s.start <= run.start and run.end <= s.end and len(s)
            ]
            assert list(run.marks) == around
        empty = {i for r in runs if r.start == r.end for i in r.marks if not len(spans[i])}
        assert empty == {i for i, s in enumerate(spans) if not len(s)}


def test_deep_nesting_keeps_stacks_short() -> None:
    depth = 5_000
    spans = [Span(i, 2 * depth - i) for i in range(depth)]
    runs = runs_of(spans, 2 * depth)
    assert len(runs) == 2 * depth - 1
    assert max(len(r.marks) for r in runs) == 12
    middle = next(r for r in runs if r.start == depth - 1)
    assert middle.marks[-1] == depth - 1, "the innermost marks are the ones that are kept"


def test_clip_cuts_runs_at_the_borders() -> None:
    runs = runs_of([Span(2, 8)], 10)
    assert [(r.start, r.end) for r in clip(runs, 4, 9)] == [(4, 8), (8, 9)]


def test_a_shared_origin_is_one_mark() -> None:
    mark = Mark("argument", Span(0, 1), "argument /a = 1, /b = 2", 0, ("/a", "/b"), (), exact=False)
    assert mark.path is None
    assert "structural change" in mark.title
