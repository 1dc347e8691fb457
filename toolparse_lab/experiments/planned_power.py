"""The power of a plan, before anything is asked."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Protocol, TypedDict, Unpack

from ..core.errors import BadOptions
from ..evals.reports.figures.power import Power, assumed_spread, check_shares, power_of

_NAME = "two arms of this plan"


class Assumptions(TypedDict, total=False):
    """Assumptions about a comparison that no one has run yet. See `power.assumed_spread`."""

    rate: float
    correlation: float
    flips: float | None
    noise: float


class EarlierRun(Protocol):
    """A Run, as far as it is necessary here. Plans do not know runs."""

    run_id: str

    def power(self, drop: float, *, power: float, alpha: float) -> Sequence[Power]:
        """Return the power of each of its comparisons."""
        ...


def planned_power(
    cases: int,
    trials: int,
    drop: float,
    *,
    like: EarlierRun | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
    **assumptions: Unpack[Assumptions],
) -> Power:
    """Return the power of a comparison of two arms over so many cases.

    like: an earlier run. Of its comparisons the one with the largest spread is taken for this one,
    at the trials that the earlier run had. assumptions: rate, correlation, flips and noise, as for
    `power.assumed_spread`, whose defaults are the most cautious values. Raises BadOptions.

    >>> print(planned_power(200, 1, 0.05, flips=0.2))  # doctest: +NORMALIZE_WHITESPACE
    two arms of this plan: 200 cases show a drop of 9.1 points or more (80% power). A drop of 5.0
    points needs 658 cases; these find it 30% of the time. Spread: assumed: 20% of the cases flip.
    """
    check_shares(drop=drop, power=power, alpha=alpha)
    if like is None:
        spread = assumed_spread(cases, drop, trials=trials, **assumptions)
        return power_of(_NAME, spread, drop, power=power, alpha=alpha)
    if assumptions:
        raise BadOptions(
            "an earlier run says what else would be assumed",
            got=", ".join(assumptions),
            hint="leave out like= or these",
        )
    rows = like.power(drop, power=power, alpha=alpha)
    widest = max((row.spread for row in rows), key=lambda spread: spread.mean_square(drop))
    source = f"{widest.source}, in run {like.run_id}"
    spread = dataclasses.replace(widest, cases=cases, source=source)
    return power_of(_NAME, spread, drop, power=power, alpha=alpha)
