"""The numbers of a report: cells, intervals, paired tests and gates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate with its interval; NaN where there is nothing to count.

    Stores keep it too, so it is here, where no package of numbers is imported.
    """

    rate: float
    low: float
    high: float
