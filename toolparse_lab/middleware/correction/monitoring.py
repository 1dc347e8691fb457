"""Corrected calls compared with four thresholds, and the cost of the corrections.

The thresholds and their advice are the Go orchestrator's. Unlike there, each rate
names its denominator: a rate of nothing is NaN, and breaks no threshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from .call import CorrectedCall


@dataclass(frozen=True, slots=True)
class Threshold:
    """One gate.

    Attributes:
        of: the quantity counted, out of what.
        worse: which side of the limit breaks it.
    """

    name: str
    of: str
    worse: Literal["above", "below"]
    limit: float
    advice: str


THRESHOLDS = (
    Threshold(
        "coercion rate", "calls with a coercion / calls", "above", 0.20,
        "Review prompt, may need enhancement",
    ),
    Threshold(
        "feedback rate", "calls with a correction / calls", "above", 0.05,
        "Layer 2 may need improvement",
    ),
    Threshold(
        "correction success", "calls rescued / calls with a correction", "below", 0.80,
        "Review correction prompt",
    ),
    Threshold(
        "total success", "calls that the tool accepted / calls", "below", 0.95,
        "Investigate edge cases",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reading:
    """A threshold, and the count that it is compared with.

    `rate` is NaN if the total is 0.
    """

    threshold: Threshold
    count: int
    total: int

    @property
    def rate(self) -> float:
        """The share, 0 to 1."""
        return self.count / self.total if self.total else math.nan

    @property
    def ok(self) -> bool:
        """False if the rate is on the worse side of the limit. The limit itself is not."""
        # Counts are compared and not rates: 19 of 20 is 95 %, whatever the division gives.
        share = self.threshold.limit * self.total
        if math.isclose(self.count, share, abs_tol=1e-9) or not self.total:
            return True
        return (self.count > share) == (self.threshold.worse == "below")

    def __str__(self) -> str:
        rate = f"{self.rate:.1%}" if self.total else "not measured"
        words = "ok" if self.ok else self.threshold.advice
        return f"{self.threshold.name}: {rate} ({self.count} of {self.total}), {words}"


def readings_of(calls: Iterable[CorrectedCall]) -> tuple[Reading, ...]:
    """Compare calls with `THRESHOLDS`, in their order.

    A correction counts whether or not it was of use. A call counts as accepted or rescued only
    where the tool took it.

    >>> from toolparse_lab.middleware.correction import readings_of, run_call
    >>> call = run_call({"name": "f"}, {}, lambda: 1)
    >>> [reading.threshold.name for reading in readings_of([call])]
    ['coercion rate', 'feedback rate', 'correction success', 'total success']
    """
    calls = list(calls)
    corrected = [call for call in calls if call.corrections]
    counts = (
        (sum(bool(call.steps) for call in calls), len(calls)),
        (len(corrected), len(calls)),
        (sum(call.rescued for call in corrected), len(corrected)),
        (sum(call.ok for call in calls), len(calls)),
    )
    return tuple(
        Reading(threshold, count, total)
        for threshold, (count, total) in zip(THRESHOLDS, counts, strict=True)
    )


@dataclass(frozen=True, slots=True)
class CostRow:
    """One scenario of the cost table.

    Attributes:
        seconds: mean wall-clock time of a call, NaN without one.
    """

    scenario: str
    calls: int
    model_calls: int
    accepted: int
    seconds: float


SCENARIOS = ("no correction", "1 correction", "2 or more corrections", "corrections used in vain")


def cost_table(calls: Sequence[CorrectedCall], seconds: Sequence[float]) -> tuple[CostRow, ...]:
    """Return the cost of corrections, a row each of `SCENARIOS`, from measured values.

    Args:
        seconds: the time of each call, in the order of the calls.

    Raises ValueError if one has none.

    >>> from toolparse_lab.middleware.correction import cost_table, run_call
    >>> call = run_call({"name": "f"}, {}, lambda: 1)
    >>> [(row.scenario, row.calls) for row in cost_table([call], [0.2])][:2]
    [('no correction', 1), ('1 correction', 0)]
    """
    groups: dict[str, list[tuple[CorrectedCall, float]]] = {name: [] for name in SCENARIOS}
    for call, took in zip(calls, seconds, strict=True):
        groups[scenario_of(len(call.corrections), ok=call.ok)].append((call, took))
    return tuple(
        CostRow(
            name,
            len(group),
            sum(call.model_calls for call, _ in group),
            sum(call.ok for call, _ in group),
            math.fsum(took for _, took in group) / len(group) if group else math.nan,
        )
        for name, group in groups.items()
    )


def scenario_of(corrections: int, *, ok: bool) -> str:
    """Return the row of `SCENARIOS` that a call with so many corrections belongs to.

    >>> scenario_of(2, ok=True), scenario_of(2, ok=False)
    ('2 or more corrections', 'corrections used in vain')
    """
    if not corrections:
        return SCENARIOS[0]
    if not ok:
        return SCENARIOS[3]
    return SCENARIOS[min(corrections, 2)]
