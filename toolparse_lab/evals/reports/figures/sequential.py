"""Intervals that hold at every look: one may stop when they say enough, and go on later.

How it works. A gambler with capital 1 bets against "the mean is m" on one case after the other. A
bet is fair where m is the truth, so by Ville's inequality the capital ever reaches 1/alpha with
chance at most alpha. The m that no such capital speaks against are a confidence sequence: it covers
the truth at all looks together with chance 1 - alpha, however the looks were chosen (Waudby-Smith
and Ramdas 2024). Here the capital is the mean of sixteen gamblers, eight sizes of bets on either
side of m, so nothing has to be tuned, and the order of the cases has no effect on it.

Values are per case and lie between 0 and 1: a rate, or half of one plus a difference of rates. The
cases have to come in random order. Cost: the distinct values times the grid of m.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from .interval import Interval

Values: TypeAlias = npt.NDArray[Any]

# Sizes of the bets, as shares of the largest one after which no case can cost all capital.
_BETS = 0.8 * 0.5 ** np.arange(8)
_GRID = 2001


def log_capital(counts: Values, points: Values, mean: float) -> Values:
    """Return the logarithm of the capital after betting against a mean.

    counts: cases by value in the last axis, any axes before it. points: the values, each from 0 to
    1. mean: between 0 and 1.

    >>> round(float(log_capital(np.array([0, 40]), np.array([0.0, 1.0]), 0.5)), 1)
    20.7
    """
    bets = np.concatenate([_BETS / max(mean, 1e-12), -_BETS / max(1 - mean, 1e-12)])
    # One row a gambler, one column a value; where the mean is 0 or 1, no bet there can be lost.
    gains = np.log1p(np.maximum(bets[:, None] * (points[None, :] - mean), -1 + 1e-12))
    logs = np.asarray(counts, dtype=float) @ gains.T
    highest = logs.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logs - highest).mean(axis=-1)) + highest[..., 0]
    return np.asarray(total)


def anytime_interval(values: Any, alpha: float = 0.05) -> Interval:
    """Return the mean of values from 0 to 1 with its interval, which holds at every look.

    Without a value nothing is known: 0 to 1.

    >>> i = anytime_interval([1] * 90 + [0] * 10)
    >>> i.low < 0.9 < i.high
    True
    """
    values = np.asarray(list(values), dtype=float)
    if not len(values):
        return Interval(math.nan, 0.0, 1.0)
    points, counts = np.unique(values, return_counts=True)
    mean = float(values.mean())
    # Two grids: all means, and once more about the ends that the first one finds.
    low, high = _ends(counts, points, np.linspace(0, 1, 201), alpha, mean)
    fine = np.linspace(max(0.0, low - 0.006), min(1.0, high + 0.006), _GRID)
    low, high = _ends(counts, points, fine, alpha, mean)
    return Interval(mean, min(low, mean), max(high, mean))


def anytime_difference(differences: Any, alpha: float = 0.05) -> Interval:
    """Return the mean of differences from -1 to 1 with its interval, which holds at every look."""
    values = (np.asarray(list(differences), dtype=float) + 1) / 2
    interval = anytime_interval(values, alpha)
    return Interval(2 * interval.rate - 1, 2 * interval.low - 1, 2 * interval.high - 1)


def _ends(
    counts: Values, points: Values, grid: Values, alpha: float, mean: float
) -> tuple[float, float]:
    # One step of the grid is added on either side, so that the interval is never too narrow.
    possible = [m for m in grid if log_capital(counts, points, float(m)) < math.log(1 / alpha)]
    step = float(grid[1] - grid[0])
    if not possible:  # the grid stepped over all of them
        return max(0.0, mean - step), min(1.0, mean + step)
    return max(0.0, float(possible[0]) - step), min(1.0, float(possible[-1]) + step)


def answers_frame(rows: Sequence[tuple[str, int, Interval, str]]) -> pd.DataFrame:
    """Return one row per answer: name, cases, mean, low, high, verdict.

    rows: name, cases, interval and verdict of each.
    """
    columns = ["name", "cases", "mean", "low", "high", "verdict"]
    return pd.DataFrame([(n, k, i.rate, i.low, i.high, v) for n, k, i, v in rows], columns=columns)
