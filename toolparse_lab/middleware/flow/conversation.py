"""The outcome of a tool loop: the turns it took, the tools it ran, and why it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...core.types import ParseResult, ToolCall
from ...core.values import write_canonical
from ...formats.results import ToolResult
from ...runner.exchange.types import Completion, Request
from .. import Answer

Stop: TypeAlias = Literal[
    "answered",
    "unreadable_call",
    "max_turns",
    "no_runnable_tool",
    "not_run",
    "tool_failed",
    "unwritable_result",
    "provider_error",
    "not_asked",
]
STOPS: Mapping[Stop, str] = {
    "answered": "The model answered without a call.",
    "unreadable_call": "A call was tried or required, and none could be read.",
    "max_turns": "The last turn allowed still held calls; they were not run.",
    "no_runnable_tool": "A call needs a tool that cannot be run here; nothing of its turn was run.",
    "not_run": "The results of its calls are not recorded, and reading a recording runs no "
    "function.",
    "tool_failed": "A tool failed, and failures end this loop.",
    "unwritable_result": "A tool's result cannot be written in the format of the model.",
    "provider_error": "The provider failed.",
    "not_asked": "The next question has no answer yet.",
}
"""Why a conversation ended -> one sentence."""
OPEN: tuple[Stop, ...] = ("not_asked", "not_run")
"""The ends of a conversation that may go on once more is recorded."""


@dataclass(frozen=True, slots=True)
class ToolRun:
    """One call and its outcome.
    status: 'ran'. 'failed', the tool raised or gave an error. 'rejected', the arguments do not fit
    the tool's schema, so that it was not run and the model is told why. call_id: the same whenever
    the conversation is replayed.
    """

    call: ToolCall
    call_id: str
    result: ToolResult
    status: Literal["ran", "failed", "rejected"]


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """One question as it was sent, its recorded answer, its reading, and the calls that were run.

    answer is None if the provider failed.
    """

    request: Request
    completion: Completion
    answer: Answer | None = None
    runs: tuple[ToolRun, ...] = ()

    @property
    def result(self) -> ParseResult | None:
        """The parse of the answer, or None if there is none, or no call was allowed.

        The parse holds every call that was seen, those that could not be read included. `runs`
        holds only those that were run.
        """
        return self.answer.result if self.answer else None


@dataclass(frozen=True, slots=True)
class Conversation:
    """A finished tool loop, or as much of it as has answers.

    stop: one of `STOPS`. messages: the conversation in OpenAI shape, as the caller of a model with
    tool calls would keep it, the given messages first. pending: the question that has no answer,
    where stop is 'not_asked'.
    """

    turns: tuple[ConversationTurn, ...]
    stop: Stop
    messages: tuple[Mapping[str, Any], ...] = ()
    pending: Request | None = None

    @property
    def answer(self) -> str | None:
        """The text of the final answer, or None if the conversation did not end with one."""
        # The last text beside calls that were not run is no answer.
        if self.stop != "answered" or not self.turns or self.turns[-1].answer is None:
            return None

        content = self.turns[-1].answer.message.get("content")
        return content if isinstance(content, str) else ""

    @property
    def runs(self) -> tuple[ToolRun, ...]:
        """The tool runs of all turns, in order.

        A turn whose calls were not run, such as the last one allowed, adds nothing.
        """
        return tuple(run for turn in self.turns for run in turn.runs)

    @property
    def counts(self) -> Mapping[str, int]:
        """Status of a tool run -> how many: 'ran', 'failed', 'rejected'.

        Each status is a key, even where no run has it.
        """
        return {"ran": 0, "failed": 0, "rejected": 0, **Counter(run.status for run in self.runs)}

    def __str__(self) -> str:
        """Return the conversation as text, turn by turn, and why it ended."""
        lines: list[str] = []
        for number, turn in enumerate(self.turns, 1):
            lines += _lines_of(number, turn)

        return "\n".join([*lines, f"{self.stop}: {STOPS[self.stop]}"])


def _lines_of(number: int, turn: ConversationTurn) -> Iterator[str]:
    """Yield one turn as text: the answer or the provider's error, then its tool runs.

    number: the place of the turn in the conversation, from 1.
    turn: one question with its answer. Without an answer its error message stands in the text.

    Each run is a line of its own behind it, indented by three spaces.
    """
    text = turn.completion.error_message
    if turn.answer:
        text = turn.answer.message.get("content")

    yield f"{number}. {text if isinstance(text, str) else ''}".rstrip()

    for run in turn.runs:
        result = write_canonical(run.result.content)
        yield f"   {run.call.name}({run.call.arguments_json}) {run.status}: {result}"
