"""The success of the readable calls of an answer under each policy, worked out once."""

from __future__ import annotations

from dataclasses import replace

from ...arguments.schema.coerce import coerce
from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, ToolCall
from ...core.values import Value, read_strict, same
from ..cases.case import Case
from ..cases.matchers import Matchers
from .differences import Call
from .fabrication import find_fabrication
from .match import Match, agree, match_calls
from .rescues import Rescues, is_recovery, judge_rescues

# Steps that undo what a provider's API asks for.
_OF_THE_API = ("read.dotted-name", "read.strict-null")


class Levels:
    """The readable calls of one answer beside their target.

    A call's value and the verdict on all of them are asked for by several stages and levels, so
    they are worked out once and kept.
    """

    def __init__(
        self,
        case: Case,
        result: ParseResult,
        calls: list[ToolCall],
        tools: tuple[ToolSpec, ...],
        matchers: Matchers,
    ) -> None:
        """Compare nothing yet.

        calls: the readable ones, of tools that were offered.
        """
        self.target = case.target or []
        self.result = result
        self.ok_calls = calls
        self.tools = tools
        self.matchers = matchers

        self._values: dict[str, Value] = {}  # by JSON text
        # The calls that were held to the target, and True if they met it.
        self._matched: tuple[list[Call], bool] | None = None
        self._match: Match | None = None  # the same with its reasons

    def match(self) -> Match:
        """Hold the calls, coerced as they are, to the target."""
        calls = self._calls("arguments_json")
        match = match_calls(calls, self.target, self.tools, self.matchers)
        self._matched = calls, match.ok
        self._match = match
        return match

    def source_and_safe(self, success: bool, fabricated: bool) -> tuple[bool, bool]:
        """Return the success of the arguments as found, and of those under the safe policy.

        success: that under the trial's own policy. fabricated: a call holds values that are not in
        the text.
        """
        if fabricated or any(_is_coerced(call) for call in self.ok_calls):
            source = self._source_matches()
        else:
            source = success  # what was coerced is what was found, and was looked at already
        return source, self._safe(success, source)

    def is_as_written(self) -> bool:
        """Return True if all calls are the model's own writing in its own format alone."""
        return not any(_is_touched(call) for call in self.ok_calls)

    def rescues(self) -> Rescues:
        """Return the outcome of the values that rules changed in the readable calls."""
        if not self.ok_calls:
            return ()
        values = [value for _, value in self._calls("arguments_json")]
        return judge_rescues(
            self.result.raw,
            self.ok_calls,
            values,
            self.target,
            self._match,
            self.tools,
            self.matchers,
        )

    def _source_matches(self) -> bool:
        raw = self.result.raw
        if any(find_fabrication(raw, call, coerced=False) for call in self.ok_calls):
            return False

        return agree(self._calls("source_json"), self.target, self.tools, self.matchers)

    def _safe(self, success: bool, source: bool) -> bool:
        # Computed only where this trial's own policy and the arguments as found leave it open.
        policy = self.result.options.coerce
        if policy == "safe":
            return success
        # What is right without coercion counts as right with a lossless one.
        if policy == "none" and source:
            return True

        calls = [(call.name, _coerce_safely(call, self.tools)) for call in self.ok_calls]
        return agree(calls, self.target, self.tools, self.matchers)

    def met_by(self, calls: list[Call]) -> bool:
        """Return True if other calls, read in another way, meet the target."""
        # Often they are the very calls that were held to the target a moment ago.
        if self._matched is not None and _are_same_calls(calls, self._matched[0]):
            return self._matched[1]
        return agree(calls, self.target, self.tools, self.matchers)

    def _calls(self, field: str) -> list[Call]:
        return [(c.name, self.value(getattr(c, field) or "{}")) for c in self.ok_calls]

    def value(self, text: str) -> Value:
        """Return the value of a call's JSON.

        It is asked for several times, and no one changes it.
        """
        if text not in self._values:
            self._values[text] = read_strict(text)
        return self._values[text]


def _are_same_calls(a: list[Call], b: list[Call]) -> bool:
    if len(a) != len(b):
        return False
    return all(name == other and same(x, y) for (name, x), (other, y) in zip(a, b, strict=True))


def _is_coerced(call: ToolCall) -> bool:
    # Also by a step that left the arguments as they were.
    if call.source_json != call.arguments_json:
        return True
    return any(step.stage == "coerce" for step in call.steps)


def as_provider_wrote(call: ToolCall) -> ToolCall:
    """Return a provider's own call without the steps that undo what its API asks for: the model
    could not write the dots of a tool's name, nor leave out a parameter in a strict mode.
    """
    steps = tuple(step for step in call.steps if step.rule not in _OF_THE_API)
    return call if len(steps) == len(call.steps) else replace(call, steps=steps)


def _is_touched(call: ToolCall) -> bool:
    # Not the model's own writing in its own format alone: repaired, changed by a step, recovered
    # from a text that is not a call as it is, or ended by a rule because its closer is missing.
    if call.edits or call.steps:
        return True
    if call.segment.kind == "recovered":
        return True
    return any(is_recovery(problem.code) for problem in call.problems)


def _coerce_safely(call: ToolCall, tools: tuple[ToolSpec, ...]) -> Value:
    # Without the call's own tool there is nothing to coerce by.
    value = read_strict(call.source_json or "{}")
    schema = next((tool.schema for tool in tools if tool.name == call.name), None)
    if schema is None:
        return value
    return coerce(value, schema, "safe").value
