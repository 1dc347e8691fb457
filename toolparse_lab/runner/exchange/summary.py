"""`Summary`, the counts of a run so far, and `RunEvent`, one thing that happened in it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from ...core.values.printable import counted
from ...core.values.wording import money, seconds
from .types import Completion, Request

EventKind = Literal["asked", "recorded", "retry", "failed", "given_up", "stopped", "finished"]


class GivenUp(TypedDict):
    """Why a model was given up (an error kind and its last message), how many questions were not
    sent to it, and after how many calls and seconds of its endpoint that was.
    """

    kind: str
    message: str
    not_asked: int
    calls: int
    seconds: float


LIMITS = ("max_cost", "max_calls", "deadline")
"""The limits that stop a run before they are passed: US dollars, calls, seconds."""


@dataclass(slots=True)
class Summary:
    """The outcome of a call of `run_requests`.

    `stopped` says why it ended early, None if it did not.
    """

    run_id: str | None = None
    planned: int = 0
    """different questions"""
    cached: int = 0
    """answered by the store, not asked"""
    done: int = 0
    failed: int = 0
    """failed for good, retries included"""
    calls: int = 0
    """requests sent, retries included"""
    retries: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known"""
    unpriced: int = 0
    """answers without a known price"""
    seconds: float = 0.0
    # The limit, or what else ended it; a run that a limit stopped is taken up again by the same
    # call.
    stopped: Literal["max_cost", "max_calls", "deadline", "interrupted", "error"] | None = None
    failures: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, GivenUp] = field(default_factory=dict)
    """models that were not asked on, by alias"""

    @property
    def missing(self) -> int:
        """Questions without an answer: failed ones and those not asked.

        A later run of the same plan asks exactly these.
        """
        return self.planned - self.cached - self.done

    @property
    def complete(self) -> bool:
        """True if every question has an answer.

        A run that was stopped early may be complete: the limit was reached by its last answer.
        """
        return self.missing == 0

    def count(self, error_kind: str | None) -> None:
        """Count one more question, which was asked once. error_kind: None for an answer."""
        self.planned += 1
        self.calls += 1
        if error_kind is None:
            self.done += 1
        else:
            self.failed += 1
            self.failures[error_kind] += 1

    def to_dict(self) -> dict[str, Any]:
        """Return JSON, as it is stored with the run."""
        return {**dataclasses.asdict(self), "failures": dict(self.failures)}

    def joined(self, later: Summary) -> Summary:
        """Return this summary and that of a later part of the same run, as one.

        Counts, costs and seconds are added. How the run ended comes from the later part. A model
        that was given up in both parts keeps the later reason, and its open questions of both.
        """
        counts = {
            f.name: getattr(self, f.name) + getattr(later, f.name)
            for f in dataclasses.fields(Summary)
            if f.name not in ("run_id", "stopped", "given_up")
        }
        given_up = dict(self.given_up)
        for alias, reason in later.given_up.items():
            before = given_up[alias]["not_asked"] if alias in given_up else 0
            given_up[alias] = {**reason, "not_asked": before + reason["not_asked"]}
        return Summary(run_id=self.run_id, stopped=later.stopped, given_up=given_up, **counts)

    def __str__(self) -> str:
        """Return the line that a run ends with in a terminal: counts, calls, seconds, US dollars,
        and notes.
        """
        counts = [f"{self.done} recorded", f"{self.cached} known before", f"{self.failed} failed"]
        open_questions = self.missing - self.failed
        if open_questions:
            counts.append(f"{open_questions} left to ask")
        calls = counted(self.calls, "call")
        text = f"{', '.join(counts)}; {calls} in {seconds(self.seconds)}, {money(self.cost)}"
        if self.unpriced:
            text += f" and {counted(self.unpriced, 'answer')} without a known price"
        # A run without any of these is a good one.
        notes = []
        if self.failures:
            kinds = ", ".join(f"{kind} {n}" for kind, n in self.failures.most_common())
            notes.append(f"failures: {kinds}")
        notes += [
            f"{alias} was given up after {counted(reason['calls'], 'call')} in "
            f"{seconds(reason['seconds'])} ({reason['kind']}: {reason['message']}), "
            f"{reason['not_asked']} not asked"
            for alias, reason in self.given_up.items()
        ]
        if self.stopped:
            notes.append(f"stopped: {self.stopped}")
        return "; ".join((text, *notes))


@dataclass(frozen=True, slots=True)
class RunEvent:
    """The argument of `on_event`.

    "recorded", "retry" and "failed" come after the completion was written. With "given_up" comes
    the last question that failed.
    """

    kind: EventKind
    summary: Summary
    request: Request | None = None
    completion: Completion | None = None
