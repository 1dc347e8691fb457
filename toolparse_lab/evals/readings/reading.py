"""One parser's reading of a text: its calls, and their counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ...core.types import CallStatus, ParseResult, Problem, ToolCall


@dataclass(frozen=True, slots=True)
class ReadCall:
    """A call as one parser reads it. status, valid: as of a ToolCall."""

    name: str
    arguments_json: str
    status: CallStatus
    valid: bool

    @property
    def is_executable(self) -> bool:
        """True if the call may be run: it was read whole, its tool is there, and its arguments
        satisfy the schema.
        """
        return self.status == "ok" and self.valid


@dataclass(frozen=True, slots=True)
class Reading:
    """The calls that one parser makes of the text.

    kind: 'protocol' for ours, 'outside' for a callable. result: the whole parse, of ours. failure:
    the error of an outside parser, or why its return value is not a list of calls. agrees: the same
    letter for the same executable calls in the same order, '' if there are none.
    """

    name: str
    kind: Literal["protocol", "outside"]
    calls: tuple[ReadCall, ...]
    result: ParseResult | None = None
    failure: str | None = None
    agrees: str = ""

    @property
    def executable(self) -> tuple[tuple[str, str], ...]:
        """(name, canonical arguments) of the calls that may be run, in the order of the text."""
        return tuple((call.name, call.arguments_json) for call in self.calls if call.is_executable)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """All complaints of the parse, or none for parsers of others."""
        if self.result is None:
            return ()
        return tuple(self.result.all_problems())

    @property
    def n_repairs(self) -> int | None:
        """The number of repairs, or None for parsers of others, which do not say."""
        if self.result is None:
            return None
        return sum(len(call.edits) for call in self.result.calls)

    @property
    def n_coercions(self) -> int | None:
        """The number of coercions, or None for parsers of others, which do not say."""
        if self.result is None:
            return None
        return sum(_count_coercions(call) for call in self.result.calls)


def _count_coercions(call: ToolCall) -> int:
    """Return the number of coercion steps of a call."""
    return sum(step.stage == "coerce" for step in call.steps)
