"""What was changed and what was wrong, as one list that every view shows in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..rules import CODES, RULES
from ..types import ParseResult, Problem, Span, Step, ToolCall
from .tree import json_of

ChangeKind: TypeAlias = Literal["repair", "read", "coerce"]


@dataclass(frozen=True, slots=True)
class Change:
    """One repair (raw characters) or step (JSON values). `before` and `after` are text ready to be escaped."""

    kind: ChangeKind
    call: int
    path: str
    rule: str
    before: str
    after: str
    span: Span | None

    @property
    def sentence(self) -> str:
        return sentence_of(self.rule)

    @property
    def lossless(self) -> bool:
        return is_lossless(self.rule)


def sentence_of(rule: str) -> str:
    """The rule's or code's sentence; '' for one that a user's own protocol brought along."""
    known = RULES.get(rule) or CODES.get(rule)
    return known.sentence if known else ""


def is_lossless(rule: str) -> bool:
    """Whether the rule is known to lose nothing; a rule nobody described is not."""
    return rule in RULES and RULES[rule].lossless


def step_change(call: ToolCall, step: Step) -> Change:
    kind: ChangeKind = "coerce" if step.stage == "coerce" else "read"
    return Change(kind, call.index, step.path, step.rule, json_of(step.before), json_of(step.after), step.span)


def changes_of(call: ToolCall, raw: str) -> Iterator[Change]:
    """The call's repairs in text order, then its steps in the order they were applied."""
    for edit in call.edits:
        yield Change("repair", call.index, "", edit.rule, edit.span.of(raw), edit.text, edit.span)
    for step in call.steps:
        yield step_change(call, step)


def problems_of(result: ParseResult) -> Iterator[tuple[int | None, Problem]]:
    """Every problem with the index of its call, None for the text's own."""
    for problem in result.problems:
        yield None, problem
    for call in result.calls:
        for problem in call.problems:
            yield call.index, problem


def place(span: Span | None) -> str:
    """Where a span is, in words: code points, the end not included."""
    if span is None:
        return ""
    if not len(span):
        return f"before character {span.start}"
    return f"characters {span.start} to {span.end}"
