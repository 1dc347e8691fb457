"""Intervals of the counts of an ablation: shares of calls and values, and prices of rescues.

How it works. A share here is pooled: values of all calls, as they are counted in the tables. Those
of one case are not independent, so the case is the unit: the interval is Wilson's at the number of
independent values that the spread between cases implies, which is Wilson's own where each case has
one. A price is a ratio of two sums. Its interval, like that of a Shapley share, comes from
resampling cases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats as scipy_stats

from ...evals.reports.figures import Interval
from ...evals.reports.figures.stats import NAN, Flags, Keys, codes_of, counts_of, wilson

Numbers: TypeAlias = Sequence[float] | npt.NDArray[Any]

DRAWS = 2000
_HUGE = 1e300


def share_of(values: Flags, cases: Keys, level: float) -> Interval:
    """Return the share of values that are true, with its interval.

    NaN without values.

    >>> i = share_of([True] * 8 + [False] * 2, range(10), 0.95); (round(i.low, 3), round(i.high, 3))
    (0.49, 0.943)
    """
    codes, names = codes_of(cases)
    hits, sizes = counts_of(values, codes, len(names))
    n, m = float(sizes.sum()), len(sizes)
    if n == 0:
        return Interval(NAN, NAN, NAN)
    share = float(hits.sum() / n)
    # The sandwich estimate: each case counts by how far its hits are from its share of all.
    variance = float(((hits - share * sizes) ** 2).sum()) / n**2
    effective = float(m)
    if 0 < share < 1 and m > 1:
        # Where every case has the same mixed share, cases explain nothing and every value counts.
        implied = min(n, share * (1 - share) / variance) if variance > 0 else n
        # The variance is itself an estimate from m cases; values that tell no more than their cases
        # do not need this.
        effective = max(min(implied, float(m)), implied * _few(n, m, level))
    spread = wilson(share * effective, effective, level)
    return Interval(share, spread.low, spread.high)


def _few(n: float, m: int, level: float) -> float:
    # The factor on the effective size that allows for there being only m cases. 1 if every case has
    # one value.
    q = (1 + level) / 2
    # Korn and Graubard: the ratio of the t quantiles for as many values and for as many cases.
    widths = float(scipy_stats.t.ppf(q, n - 1) / scipy_stats.t.ppf(q, m - 1))
    return widths**2 * (m - 1) / m * n / (n - 1)


def ratio_of(totals: Numbers, counts: Numbers, cases: Keys, level: float) -> Interval:
    """sum(totals) / sum(counts), such as tokens for a rescue, with an interval from resampling
    cases.

    The upper end is infinite where a resample may well hold nothing that counts, or NaN if nothing
    counts at all.
    """
    codes, names = codes_of(cases)
    m = len(names)
    pair = (np.asarray(numbers, dtype=float) for numbers in (totals, counts))
    table = np.column_stack([counts_of(numbers, codes, m)[0] for numbers in pair])
    total, count = table.sum(axis=0)
    if not count > 0 or math.isnan(total):
        return Interval(NAN, NAN, NAN)
    sums, n = _resampled(table).T
    # Nothing bought for nothing says nothing of the price.
    some = (sums != 0) | (n > 0)
    # A number as large as this stands for an infinite one, which has no quantiles.
    ratios = np.divide(sums[some], n[some], out=np.full(some.sum(), _HUGE), where=n[some] > 0)
    low, high = (x if x < _HUGE / 1e6 else math.inf for x in _percentiles(ratios, m, level))
    return Interval(float(total / count), low, high)


def mean_of(gains: Numbers, cases: Keys, level: float) -> Interval:
    """The mean over cases of their means of numbers of -1 to 1, with an interval from resampling
    cases, or NaN without numbers.

    Where all are the same, resampling would claim certainty: the interval then allows for as many
    cases of another kind as Wilson's does when none of m was seen.
    """
    codes, names = codes_of(cases)
    if not len(names):
        return Interval(NAN, NAN, NAN)
    sums, sizes = counts_of(np.asarray(gains, dtype=float), codes, len(names))
    means = sums / sizes
    if np.ptp(means) == 0:
        unseen, mean = wilson(0, len(means), level).high, float(means[0])
        return Interval(mean, max(-1.0, mean - unseen), min(1.0, mean + unseen))
    return ratio_of(means, np.ones(len(means)), names, level)


def _percentiles(rates: npt.NDArray[Any], m: int, level: float) -> tuple[float, float]:
    # Hesterberg's expanded percentiles.
    tail = (1 - level) / 2
    # A resample is less spread than the cases it is drawn from, by sqrt((m - 1) / m), and a normal
    # tail is shorter than that of t; expanding the tails makes up for both.
    if m > 1:
        wide = math.sqrt(m / (m - 1)) * scipy_stats.t.ppf(tail, m - 1)
        tail = float(scipy_stats.norm.cdf(wide))
    low, high = np.quantile(rates, [tail, 1 - tail])
    return float(low), float(high)


def _resampled(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
    # Draws × columns, the same ones every time. Equal rows are drawn together, which is the same
    # draw.
    rows, counts = np.unique(table, axis=0, return_counts=True)
    m = int(counts.sum())
    sums: npt.NDArray[Any] = np.random.default_rng(0).multinomial(m, counts / m, size=DRAWS) @ rows
    return sums
