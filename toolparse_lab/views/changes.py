"""Anything changed and what was wrong, as one list that every view shows in the same words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..core.rules import CODES, RULES
from ..core.types import ParseResult, Problem, Span, Step, ToolCall
from .tree import json_of

ChangeKind: TypeAlias = Literal["repair", "read", "coerce"]


@dataclass(frozen=True, slots=True)
class Change:
    """One repair (raw characters) or step (JSON values).

    `before` and `after` are text ready to be escaped.
    """

    kind: ChangeKind
    call: int
    path: str
    rule: str
    before: str
    after: str
    span: Span | None

    @property
    def sentence(self) -> str:
        """The sentence that describes its rule, '' for an unknown one."""
        return sentence_of(self.rule)

    @property
    def lossless(self) -> bool:
        """True if its rule is known to lose nothing."""
        return is_lossless(self.rule)


def protocol_words(result: ParseResult) -> str:
    """Return the protocol of a result, with the formats that matched where it was 'auto'.

    >>> import toolparse_lab as tp
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> protocol_words(tp.parse(text))
    'auto (hermes)'
    """
    matched = [name for name in result.formats if name != result.protocol]
    if result.protocol != "auto" or not matched:
        return result.protocol
    return f"auto ({', '.join(matched)})"


def sentence_of(rule: str) -> str:
    """Return the sentence of a rule or of a problem's code.

    rule: the id of either. '' for one that a user's own protocol brought along.

    >>> sentence_of("my_protocol.some_rule")
    ''
    """
    entry = RULES.get(rule) or CODES.get(rule)
    if entry is None:
        return ""
    return entry.sentence


def is_lossless(rule: str) -> bool:
    """Return True for a rule known to lose nothing.

    A rule that no one described counts as one that may.
    """
    if rule not in RULES:
        return False
    return RULES[rule].lossless


def step_change(call: ToolCall, step: Step) -> Change:
    """Return the change that a step of a call made, its two values as JSON text."""
    kind: ChangeKind = "coerce" if step.stage == "coerce" else "read"
    return Change(
        kind, call.index, step.path, step.rule, json_of(step.before), json_of(step.after), step.span
    )


def changes_of(call: ToolCall, raw: str) -> Iterator[Change]:
    """Return the call's repairs in text order, then its steps in the order they were applied.

    raw: the whole text, for the characters that a repair replaced. Lazy, because a view shows only
    the first few hundred.
    """
    for edit in call.edits:
        yield Change("repair", call.index, "", edit.rule, edit.span.of(raw), edit.text, edit.span)
    for step in call.steps:
        yield step_change(call, step)


def problems_of(result: ParseResult) -> Iterator[tuple[int | None, Problem]]:
    """Return every problem with the index of its call, None for the text's own, which go first."""
    for problem in result.problems:
        yield None, problem
    for call in result.calls:
        for problem in call.problems:
            yield call.index, problem


# The words are the same in tooltips, tables and on the terminal.
def place(span: Span | None) -> str:
    """Return the place of a span, in words: code points, the end not included.

    >>> place(Span(3, 8)), place(Span(3, 3)), place(None)
    ('characters 3 to 8', 'before character 3', '')
    """
    if span is None:
        return ""
    if not len(span):
        return f"before character {span.start}"
    return f"characters {span.start} to {span.end}"
