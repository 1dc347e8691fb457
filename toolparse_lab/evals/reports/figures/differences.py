"""The difference of two arms, paired on cases: its interval, its p, and the smallest drop that the
data could have shown.

How it works. Each case that both arms were judged on gives one number, the success rate of b's
trials less that of a's, whatever the number of trials. The difference is the mean of these numbers.
Trials are never pooled: an arm whose hard cases timed out would look better than it is.

The interval is Wald's with two pseudo-clusters, one that rose and one that fell. With one trial a
case that is Bonett and Price's adjusted interval. With several trials the pseudo-clusters rise and
fall by less, as one trial more or less moves a case less. It holds with few cases and at rates near
one, where the plain one is far too narrow.

p is the sign-flip test: if the arms are alike, each cluster's difference could as well have the
other sign. With one trial a case that is McNemar's exact test. With unequal numbers of trials a
case's difference is skewed and the flips are not alike. p is then the larger of theirs and that of
the interval.

`benchmarks/intervals.py` measures coverage and false positives. Its table is in
docs/measurements.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd

from .stats import (
    NAN,
    Array,
    Flags,
    Keys,
    check_level,
    cluster_codes,
    codes_of,
    counts_of,
    normal_quantile,
)

ALPHA = 0.05
"""p, adjusted, at which a difference is told from chance."""
_COARSEST = 5040
"""The finest grid on which the sign-flip test lays differences of rates: parts of a success."""
_FEWEST = 6
"""Clusters that must fall, and none rise, before a sign-flip test gives a p of at most .05."""


@dataclass(frozen=True, slots=True)
class Difference:
    """b against a over the cases that both were judged on.

    Figures that are unknown are NaN.

    rate_a, rate_b: the mean over cases of each arm's rate. rate: rate_b less rate_a, with `low` and
    `high`. p: two-sided. n_cases, n_a, n_b: cases, and trials of them. only_a, only_b: cases that
    the majority of one arm's trials alone gets right. ties: cases without a majority. changed:
    cases whose rate differs. low_if_lost: `low` if every case that a has and b lacks had failed in
    b. smallest: the smallest drop that these cases could have shown, above 1 if no drop could.
    by_chance: how far equal arms lie apart at most in 95 of 100 comparisons, if their cases differ
    as much as these.
    """

    rate: float = NAN
    low: float = NAN
    high: float = NAN
    p: float = NAN
    rate_a: float = NAN
    rate_b: float = NAN
    n_cases: int = 0
    n_a: int = 0
    n_b: int = 0
    only_a: int = 0
    only_b: int = 0
    ties: int = 0
    changed: int = 0
    low_if_lost: float = NAN
    smallest: float = NAN
    by_chance: float = NAN


def decides(low: pd.Series[Any], high: pd.Series[Any], p: pd.Series[Any]) -> str:
    """Return which of interval and p decides where they disagree in a row, '' where none does."""
    known = p.notna()
    if not ((low * high > 0) != (p <= ALPHA))[known].any():
        return ""
    return (
        "Where the interval and p disagree, p decides: the test is exact and allows for all tests "
        "made here, the interval is an approximation for one row."
    )


def paired_difference(
    a: Flags,
    a_cases: Keys,
    b: Flags,
    b_cases: Keys,
    level: float = 0.95,
    clusters: Mapping[Any, Any] | None = None,
    *,
    alpha: float = 0.05,
) -> Difference:
    """Return the difference of two arms.

    a, b: True for each trial that succeeded. a_cases, b_cases: the case of each. clusters: as for
    `clustered_interval`. alpha: the p at which a difference is shown, which `smallest` goes by.

    >>> d = paired_difference([True] * 12, range(12), [c < 2 for c in range(12)], range(12))
    >>> round(d.rate, 3), d.only_a, round(d.p, 4)
    (-0.833, 10, 0.002)
    """
    check_level(level)
    cases, ha, na, hb, nb = _both(a, a_cases, b, b_cases)
    # A case without a judged trial in one arm says nothing about their difference.
    shared = (na > 0) & (nb > 0)
    lost = (na > 0) & (nb == 0)
    if not shared.any():
        return Difference()

    units = cluster_codes(cases, clusters)
    rate_a, rate_b = ha[shared] / na[shared], hb[shared] / nb[shared]
    gaps = _Gaps(rate_b - rate_a, units[shared], np.minimum(na, nb)[shared], level)
    p, visible = _flips(ha[shared], na[shared], hb[shared], nb[shared], units[shared], alpha)
    if (na != nb)[shared].any():
        p = max(p, gaps.p)
    all_gaps = np.concatenate([gaps.values, -(ha[lost] / na[lost])])
    worst = _Gaps(all_gaps, units[np.concatenate([np.where(shared)[0], np.where(lost)[0]])],
                  np.concatenate([gaps.trials, na[lost]]), level)  # fmt: skip
    # 1 where most trials of the case succeed, -1 where most fail, 0 for a tie.
    x, y = np.sign(2 * rate_a - 1), np.sign(2 * rate_b - 1)
    decided = (x != 0) & (y != 0)
    only_a, only_b = int((decided & (x > y)).sum()), int((decided & (y > x)).sum())
    return Difference(
        rate=gaps.mean,
        low=gaps.low,
        high=gaps.high,
        p=p,
        rate_a=float(rate_a.mean()),
        rate_b=float(rate_b.mean()),
        n_cases=len(gaps.values),
        n_a=int(na[shared].sum()),
        n_b=int(nb[shared].sum()),
        only_a=only_a,
        only_b=only_b,
        ties=int((~decided).sum()),
        changed=int((rate_a != rate_b).sum()),
        low_if_lost=worst.low,
        smallest=gaps.smallest(visible),
        by_chance=gaps.by_chance,
    )


def _both(a: Flags, a_cases: Keys, b: Flags, b_cases: Keys) -> tuple[Array, ...]:
    # (the cases of both arms, successes and trials of a in each, those of b).
    codes, cases = codes_of(a_cases, b_cases)
    m = len(cases)
    return cases, *counts_of(a, codes[: len(a)], m), *counts_of(b, codes[len(a) :], m)


class _Gaps:
    # values: a difference for each case. units: its cluster. trials: those of the arm that has
    # fewer.
    def __init__(self, values: Array, units: Array, trials: Array, level: float) -> None:
        self.values = values
        self.trials = trials
        self.mean = float(values.mean())
        numbers = np.unique(units, return_inverse=True)[1]
        sums, sizes = np.bincount(numbers, weights=values), np.bincount(numbers).astype(float)
        self._m = len(sizes)
        # The sign-flip test's own spread: every difference could as well have the other sign.
        self.by_chance = normal_quantile(0.95) * math.sqrt(float((sums**2).sum())) / len(values)
        # The two pseudo-clusters are of the usual size.
        size = float(sizes.mean())
        # As far as one trial more or less moves a case, most of which may have one alone.
        self._step = math.sqrt(float((1 / trials).mean()))
        total = size * (self._m + 2)
        middle = float(sums.sum()) / total
        rest = float(((sums - sizes * middle) ** 2).sum())
        rest += size**2 * ((self._step - middle) ** 2 + (self._step + middle) ** 2)
        self._error = math.sqrt(rest) / total
        self._middle = middle
        self._half = normal_quantile(level) * self._error
        self.low, self.high = max(-1.0, middle - self._half), min(1.0, middle + self._half)

    @property
    def p(self) -> float:
        return math.erfc(abs(self._middle) / self._error / math.sqrt(2))

    def smallest(self, visible: float) -> float:
        # The smallest drop that both the interval and the sign-flip test could have shown. visible:
        # the smallest sum of differences of which the test says so, NaN if the cases that differ
        # are too few for any.
        if self._m < _FEWEST:
            return math.inf
        if math.isnan(visible):
            visible = _FEWEST / float(self.trials.mean())
        return max(self._half, visible / len(self.values))


def sign_flip(a: Flags, a_cases: Keys, b: Flags, b_cases: Keys) -> float:
    """Return the exact two-sided p of the sign-flip test on the rates of the cases both arms have,
    with one trial a case McNemar's exact test. NaN without shared cases.

    >>> round(sign_flip([True] * 5, range(5), [False] * 5, range(5)), 4)
    0.0625
    """
    _, ha, na, hb, nb = _both(a, a_cases, b, b_cases)
    shared = (na > 0) & (nb > 0)
    if not shared.any():
        return NAN
    units = np.arange(int(shared.sum()))
    return _flips(ha[shared], na[shared], hb[shared], nb[shared], units)[0]


def _flips(
    ha: Array, na: Array, hb: Array, nb: Array, units: Array, alpha: float = 0.05
) -> tuple[float, float]:
    # (p, the smallest sum of differences with a p of at most alpha, NaN without one). A cluster
    # flips as a whole.
    # Rates of cases with 2 and 3 trials are sixths of a success, and so on: on the grid of the
    # least common multiple every difference is a whole number of steps.
    unit = math.lcm(*(int(n) for n in np.unique(np.concatenate([na, nb]))))
    if unit > _COARSEST:
        # With very uneven numbers of trials the exact sums are too many; a finer grid changes p by
        # less than it shows.
        unit = _COARSEST
    gaps = np.rint(unit * (hb / nb - ha / na))
    steps = np.bincount(np.unique(units, return_inverse=True)[1], weights=gaps).astype(int)
    # The distribution of the sum of all differences under random signs, one size of difference at
    # a time: `count` coins of that size are a binomial stretched to it.
    sums = np.ones(1)
    for size, count in zip(*np.unique(np.abs(steps[steps != 0]), return_counts=True), strict=True):
        spread = np.zeros(2 * size * count + 1)
        spread[:: 2 * size] = _coins(int(count))
        sums = _convolved(sums, spread)
    # Two-sided: all sums at least as far from nothing as the observed one.
    middle = len(sums) // 2
    # The chance of a sum at least so far from nothing, by its distance.
    beyond = np.cumsum(sums[middle:][::-1])[::-1] * 2
    beyond[0] = 1.0
    p = float(min(1.0, max(0.0, beyond[abs(int(steps.sum()))])))
    enough = np.flatnonzero(beyond <= alpha + 1e-12)
    # A distance that no sum has is none.
    enough = enough[sums[middle + enough] > 0] if len(enough) else enough
    return p, float(enough[0]) / unit if len(enough) else NAN


@lru_cache(maxsize=256)
def _coins(count: int) -> Array:
    if count <= 500:
        return np.array([math.comb(count, k) / 2**count for k in range(count + 1)])
    k = np.arange(1, count + 1)
    logs = np.concatenate([[0.0], np.cumsum(np.log(count - k + 1) - np.log(k))])
    chances = np.exp(logs - logs.max())
    return np.asarray(chances / chances.sum())


def _convolved(a: Array, b: Array) -> Array:
    # The chances of the sum of two independent numbers.
    if min(len(a), len(b)) < 200:
        return np.convolve(a, b)
    size = len(a) + len(b) - 1
    spectrum = np.fft.rfft(a, size) * np.fft.rfft(b, size)
    return np.fft.irfft(spectrum, size)


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Return the exact two-sided p of McNemar's test from the two discordant counts.

    >>> mcnemar_exact(0, 5)
    0.0625
    """
    n = only_a + only_b
    if n == 0:
        return 1.0
    return float(min(1.0, 2 * _coins(n)[: min(only_a, only_b) + 1].sum()))
