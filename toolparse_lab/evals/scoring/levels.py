"""The success of the readable calls of an answer under each policy, worked out once, and that of
the script that people write first: a regex and `json.loads`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

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
    """The readable calls of one answer with their target.

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
        """Compare nothing yet. calls: the readable ones, of tools that were offered."""
        self.target = case.target or []
        self.result = result
        self.ok_calls = calls
        self.tools = tools
        self.matchers = matchers
        self._values: dict[str, Value] = {}  # by JSON text
        # The calls that were held to the target, and the verdict.
        self._matched: tuple[list[Call], Match] | None = None

    def match(self) -> Match:
        calls = self._calls("arguments_json")
        match = match_calls(calls, self.target, self.tools, self.matchers)
        self._matched = calls, match
        return match

    def source_and_safe(self, success: bool, fabricated: bool) -> tuple[bool, bool]:
        """Return the success of the arguments as found, and of those under the safe policy.

        success: that under the trial's own policy. fabricated: a call holds values that are not in
        the text.
        """
        source = success  # what was not coerced is what was found, and was looked at already
        if fabricated or any(
            # Also by a step that left the arguments as they were.
            call.source_json != call.arguments_json or any(s.stage == "coerce" for s in call.steps)
            for call in self.ok_calls
        ):
            raw = self.result.raw
            source = not any(find_fabrication(raw, call, coerced=False) for call in self.ok_calls)
            source = source and self._meets(self._calls("source_json"))

        # Computed only where this trial's own policy and the arguments as found leave it open.
        policy = self.result.options.coerce
        if policy == "safe":
            return source, success
        # What is right without coercion counts as right with a lossless one.
        if policy == "none" and source:
            return source, True
        tools = {tool.name: tool for tool in reversed(self.tools)}
        calls = []
        for call in self.ok_calls:
            value = read_strict(call.source_json or "{}")
            # Without the call's own tool there is nothing to coerce by.
            if call.name in tools and tools[call.name].schema is not None:
                value = coerce(value, tools[call.name].schema, "safe").value
            calls.append((call.name, value))
        return source, self._meets(calls)

    def is_as_written(self) -> bool:
        """Return True if all calls are the model's own writing in its own format alone: not
        repaired, changed by a step, recovered from a text that is not a call as it is, or ended by
        a rule because the closer is missing.
        """
        return not any(
            call.edits
            or call.steps
            or call.segment.kind == "recovered"
            or any(is_recovery(problem.code) for problem in call.problems)
            for call in self.ok_calls
        )

    def rescues(self) -> Rescues:
        """Return the outcome of the values that rules changed in the readable calls."""
        if not self.ok_calls:
            return ()
        values = [value for _, value in self._calls("arguments_json")]
        match = self._matched[1] if self._matched is not None else None
        raw, target = self.result.raw, self.target
        return judge_rescues(raw, self.ok_calls, values, target, match, self.tools, self.matchers)

    def met_naively(self, raw: str, *, native: bool) -> bool:
        """Return True if the calls that `naive_calls` finds meet the target."""
        calls = naive_calls(raw, native=native)
        # Often they are the very calls that were held to the target a moment ago.
        if self._matched is not None:
            others, match = self._matched
            if len(calls) == len(others) and all(
                name == other and same(x, y)
                for (name, x), (other, y) in zip(calls, others, strict=True)
            ):
                return match.ok
        return self._meets(calls)

    def _meets(self, calls: list[Call]) -> bool:
        return agree(calls, self.target, self.tools, self.matchers)

    def _calls(self, field: str) -> list[Call]:
        return [(c.name, self.value(getattr(c, field) or "{}")) for c in self.ok_calls]

    def value(self, text: str) -> Value:
        """Return the value of a call's JSON, read once. It is not to be changed."""
        if text not in self._values:
            self._values[text] = read_strict(text)
        return self._values[text]


def as_provider_wrote(call: ToolCall) -> ToolCall:
    """Return a provider's own call without the steps that undo what its API asks for: the model
    could not write the dots of a tool's name, nor leave out a parameter in a strict mode.
    """
    steps = tuple(step for step in call.steps if step.rule not in _OF_THE_API)
    return call if len(steps) == len(call.steps) else replace(call, steps=steps)


def naive_calls(raw: str, *, native: bool = False) -> list[tuple[str, Any]]:
    """Return the calls that a regex for a JSON object and `json.loads` would find, none if that
    fails.

    native: `raw` is a native message, whose calls need no regex.

    >>> naive_calls('Sure: {"name": "f", "arguments": {"a": 1}}')
    [('f', {'a': 1})]
    >>> naive_calls("{'name': 'f', 'arguments': {}}")
    []
    """
    try:
        if native:
            functions = [c["function"] for c in json.loads(raw).get("tool_calls") or ()]
            return [(f["name"], json.loads(f["arguments"])) for f in functions]

        # From the first brace to the last.
        start, end = raw.find("{"), raw.rfind("}")
        if start < 0 or end < start:
            return []
        call = json.loads(raw[start : end + 1])
        name, arguments = call["name"], call["arguments"]
        # Of other types than a call's, it is none.
        return [(name, arguments)] if isinstance(name, str) and isinstance(arguments, dict) else []
    except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
