"""What a run reports while it goes on and when it is over: `Summary` and `RunEvent`."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from .types import Completion, Request

EventKind = Literal["asked", "recorded", "retry", "failed", "given_up", "stopped", "finished"]


class GivenUp(TypedDict):
    """Why a model was given up (an error kind and its last message), and how many questions were not sent to it."""

    kind: str
    message: str
    not_asked: int


LIMITS = ("max_cost", "max_calls", "deadline")
"""What stops a run before it is passed: US dollars, calls, seconds."""


@dataclass(slots=True)
class Summary:
    """What became of a call of `run_requests`; `stopped` says why it ended early, None where it did not."""

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
    stopped: Literal["max_cost", "max_calls", "deadline", "interrupted", "error"] | None = None
    failures: Counter[str] = field(default_factory=Counter)
    given_up: dict[str, GivenUp] = field(default_factory=dict)
    """models that were not asked on, by alias"""

    @property
    def missing(self) -> int:
        """Questions without an answer: failed ones and those not asked."""
        return self.planned - self.cached - self.done

    @property
    def complete(self) -> bool:
        return self.missing == 0

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "failures": dict(self.failures)}

    def joined(self, later: Summary) -> Summary:
        """This one and that of a later part of the same run, together."""
        counts = {
            f.name: getattr(self, f.name) + getattr(later, f.name)
            for f in dataclasses.fields(Summary)
            if f.name not in ("run_id", "stopped", "given_up")
        }
        given_up = dict(self.given_up)
        for alias, why in later.given_up.items():
            before = given_up[alias]["not_asked"] if alias in given_up else 0
            given_up[alias] = {**why, "not_asked": why["not_asked"] + before}
        return Summary(run_id=self.run_id, stopped=later.stopped, given_up=given_up, **counts)

    def __str__(self) -> str:
        parts = [f"{self.done} recorded", f"{self.cached} known before", f"{self.failed} failed"]
        left = self.missing - self.failed
        if left:
            parts.append(f"{left} left to ask")
        text = f"{', '.join(parts)}; {self.calls} calls in {self.seconds:.1f} s, ${self.cost:.4f}"
        if self.unpriced:
            text += f" and {self.unpriced} answers without a known price"
        if self.failures:
            text += "; failures: " + ", ".join(f"{kind} {n}" for kind, n in self.failures.most_common())
        for alias, why in self.given_up.items():
            text += f"; {alias} was given up ({why['kind']}: {why['message']}), {why['not_asked']} not asked"
        return f"{text}; stopped: {self.stopped}" if self.stopped else text


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What `on_event` is given. "recorded", "retry" and "failed" come after the completion was written; with
    "given_up" comes the last question that failed."""

    kind: EventKind
    summary: Summary
    request: Request | None = None
    completion: Completion | None = None
