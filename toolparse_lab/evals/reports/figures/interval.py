"""A rate with its interval, which stores keep and figures show; it needs no package of numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate with its interval; NaN where there is nothing to count."""

    rate: float
    low: float
    high: float
