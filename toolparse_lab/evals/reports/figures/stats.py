"""The statistics of reports: intervals clustered by case, paired tests, bounds and noise. Built on
scipy.

Rates are shares of 0 to 1. `values` are successes (True or False) and `clusters` the case of each:
trials of one case are not independent, so every interval and test here treats the case as the unit.

statsmodels is no dependency: its Wilson interval, exact McNemar test and Holm adjustment are what
the tests compare these with, but it is large and slow to import for the few lines that scipy does
not have.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import stats

from ....errors import BadOptions

Flags: TypeAlias = Sequence[bool] | npt.NDArray[Any]
Keys: TypeAlias = Sequence[Any] | npt.NDArray[Any]
NAN = float("nan")
DRAWS = 10_000
_HUGE = 1e300
_COARSEST = 5040
"""The finest grid on which the sign-flip test lays differences of rates: parts of a success."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate with its interval; NaN where there is nothing to count."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two arms on the same cases, by the majority of each case's trials.

    `ties` are cases where an arm has no majority; they are left out. `p` is exact (binomial) and
    two-sided.
    """

    n: int
    both: int
    only_a: int
    only_b: int
    neither: int
    ties: int
    p: float


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval; counts need not be whole, so that an effective sample size can be
    given.

    >>> i = wilson(8, 10); (round(i.low, 3), round(i.high, 3))
    (0.49, 0.943)
    """
    _check_level(level)
    if n <= 0:
        return Interval(NAN, NAN, NAN)
    z = float(stats.norm.ppf((1 + level) / 2))
    p = successes / n
    # The score test turned around: the rates that these successes would not speak against.
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives the rate itself up to rounding.
    return Interval(
        p, 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half)
    )


def clustered_interval(
    values: Flags,
    clusters: Keys,
    level: float = 0.95,
    method: str = "analytic",
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """An interval of the rate with cases as clusters.

    'analytic' is Wilson's interval at the effective sample size that the cluster-robust variance
    implies, with Korn and Graubard's correction for few cases: n where every case has one trial,
    the number of cases where a case's trials all agree, all or none of all cases included.
    'bootstrap' resamples cases, by expanded percentiles.
    """
    _check_level(level)
    if method not in ("analytic", "bootstrap"):
        raise BadOptions(
            "unknown method of an interval", got=method, expected="analytic or bootstrap"
        )
    hits, sizes = _by_cluster(values, clusters)
    n, m = float(sizes.sum()), len(sizes)
    if n == 0:
        return Interval(NAN, NAN, NAN)
    p = float(hits.sum() / n)
    if method == "bootstrap":
        # Every resample of equal trials is alike, which would claim certainty.
        if p in (0.0, 1.0):
            return wilson(p * m, m, level)
        drawn_hits, drawn_sizes = _resampled(np.column_stack([hits, sizes]), draws, seed).T
        return Interval(p, *_percentiles(drawn_hits / drawn_sizes, m, level))
    # The sandwich estimate: each case counts by how far its successes are from its share of all.
    variance = float(((hits - p * sizes) ** 2).sum()) / n**2
    effective = float(m)
    if 0 < p < 1 and m > 1:
        # Where every case has the same mixed share, cases explain nothing and every trial counts.
        implied = min(n, p * (1 - p) / variance) if variance > 0 else n
        # The variance is itself an estimate from m cases; trials that tell no more than their cases
        # do not need this.
        effective = max(min(implied, float(m)), implied * _few(n, m, level))
    spread = wilson(p * effective, effective, level)
    return Interval(p, spread.low, spread.high)


def paired_mcnemar(a: Flags, a_cases: Keys, b: Flags, b_cases: Keys) -> PairedTest:
    """Exact McNemar test on per-case majorities, over the cases both arms have."""
    ha, na, hb, nb = _pairs(a, a_cases, b, b_cases)
    # 1 where most trials of the case succeed, -1 where most fail, 0 for a tie.
    x, y = np.sign(2 * ha - na), np.sign(2 * hb - nb)
    decided = (x != 0) & (y != 0)
    only_a, only_b = int((decided & (x > y)).sum()), int((decided & (y > x)).sum())
    both, n = int((decided & (x > 0) & (y > 0)).sum()), int(decided.sum())
    p = mcnemar_exact(only_a, only_b) if n else NAN
    return PairedTest(n, both, only_a, only_b, n - both - only_a - only_b, len(x) - n, p)


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test from the two discordant counts.

    >>> mcnemar_exact(0, 5)
    0.0625
    """
    n = only_a + only_b
    if n == 0:
        return 1.0
    return float(stats.binomtest(min(only_a, only_b), n, 0.5).pvalue)


def sign_flip(a: Flags, a_cases: Keys, b: Flags, b_cases: Keys) -> float:
    """The exact two-sided p of the sign-flip test on the cases' rates, over the cases both arms
    have.

    If the arms are alike, each case's difference of rates could as well have the other sign. Every
    trial counts, not only majorities that change; with one trial a case it is McNemar's exact test.
    NaN without shared cases.

    >>> round(sign_flip([True] * 5, range(5), [False] * 5, range(5)), 4)
    0.0625
    """
    from scipy.signal import fftconvolve  # slow to import, and only comparisons need it

    ha, na, hb, nb = _pairs(a, a_cases, b, b_cases)
    if not len(na):
        return NAN
    # Rates of cases with 2 and 3 trials are sixths of a success, and so on: on the grid of the
    # least common multiple every difference is a whole number of steps.
    unit = math.lcm(*(int(n) for n in np.unique(np.concatenate([na, nb]))))
    if unit > _COARSEST:
        # With very uneven numbers of trials the exact sums are too many; a finer grid changes p by
        # less than it shows.
        unit = _COARSEST
    steps = np.rint(unit * (hb / nb - ha / na)).astype(int)
    # The distribution of the sum of all differences under random signs, one size of difference at
    # a time: `count` coins of that size are a binomial stretched to it.
    sums = np.ones(1)
    for size, count in zip(*np.unique(np.abs(steps[steps != 0]), return_counts=True), strict=True):
        spread = np.zeros(2 * size * count + 1)
        spread[:: 2 * size] = stats.binom.pmf(np.arange(count + 1), count, 0.5)
        sums = fftconvolve(sums, spread) if len(sums) > 1 else spread
    # Two-sided: all sums at least as far from nothing as the observed one.
    middle = len(sums) // 2
    far = np.abs(np.arange(len(sums)) - middle) >= abs(int(steps.sum()))
    return float(min(1.0, max(0.0, sums[far].sum())))


def bootstrap_difference(
    a: Flags,
    a_cases: Keys,
    b: Flags,
    b_cases: Keys,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """rate(b) - rate(a) over the cases both arms have, with an interval from resampling those
    cases.

    The interval is by expanded percentiles: plain ones are too narrow with few cases. Where every
    case has the same difference, resampling would claim certainty: the interval then allows for as
    many cases of another kind as Wilson's interval does when none of m was seen.
    """
    _check_level(level)
    table = np.column_stack(_pairs(a, a_cases, b, b_cases))
    if not len(table):
        return Interval(NAN, NAN, NAN)
    ha, na, hb, nb = table.T
    gaps = hb / nb - ha / na
    if np.ptp(gaps) == 0:  # the same difference in every case
        unseen = wilson(0, len(gaps), level).high
        return Interval(gap := float(gaps[0]), max(-1.0, gap - unseen), min(1.0, gap + unseen))
    ha, na, hb, nb = _resampled(table, draws, seed).T
    low, high = _percentiles(hb / nb - ha / na, len(table), level)
    ha, na, hb, nb = table.sum(axis=0)
    return Interval(float(hb / nb - ha / na), low, high)


def bootstrap_ratio(
    totals: Sequence[float] | npt.NDArray[Any],
    counts: Sequence[float] | npt.NDArray[Any],
    clusters: Keys,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """sum(totals) / sum(counts), such as the cost of a rescue, with an interval from resampling
    cases.

    The upper end is infinite where a resample may well hold nothing that is counted; NaN where
    nothing is counted at all.
    """
    _check_level(level)
    codes, m = _codes(clusters)
    pair = (np.asarray(values, dtype=float) for values in (totals, counts))
    table = np.column_stack([_counts(values, codes, m)[0] for values in pair])
    total, count = table.sum(axis=0)
    if not count > 0 or total != total:
        return Interval(NAN, NAN, NAN)
    # Such numbers are rarely equal, so that draws cost more here than those of flags do.
    sums, n = _resampled(table, DRAWS // 5, seed).T
    # Nothing bought for nothing says nothing of the price.
    sums, n = sums[(sums != 0) | (n > 0)], n[(sums != 0) | (n > 0)]
    # A number as large as this stands for an infinite one, which has no quantiles.
    ratios = np.divide(sums, n, out=np.full(len(n), _HUGE), where=n > 0)
    low, high = (x if x < _HUGE / 1e6 else math.inf for x in _percentiles(ratios, m, level))
    return Interval(float(total / count), low, high)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given; NaN stays NaN and does not count as a test.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    numbers = sorted((p, i) for i, p in enumerate(ps) if p == p)
    out = [NAN] * len(ps)
    # No adjusted value is below that of a smaller p.
    highest = 0.0
    for rank, (p, i) in enumerate(numbers):
        highest = max(highest, min(1.0, p * (len(numbers) - rank)))
        out[i] = highest
    return out


def noise_floor(values: Flags, clusters: Keys) -> float:
    """The share of pairs of trials of one case by one arm that disagree; NaN where no case has two.

    >>> noise_floor([True, False, True, True], ["a", "a", "b", "b"])
    0.5
    """
    hits, sizes = _by_cluster(values, clusters)
    many = sizes >= 2
    if not many.any():
        return NAN
    k, n = hits[many], sizes[many]
    # Of the n (n - 1) / 2 pairs of a case's trials, k (n - k) are of one success and one failure.
    return float((2 * k * (n - k) / (n * (n - 1))).mean())


def bounds(successes: int, n: int, missing: int) -> tuple[float, float]:
    """The rate if every missing trial had failed, and if every one had succeeded.

    >>> bounds(6, 8, 2)
    (0.6, 0.8)
    """
    total = n + missing
    return (NAN, NAN) if total == 0 else (successes / total, (successes + missing) / total)


def distinct_share(texts: Keys, clusters: Keys) -> float:
    """The mean share of different answers among a case's trials, over the cases with two or more;
    NaN without any."""
    both = pd.DataFrame(
        {
            "text": pd.Series(list(texts), dtype=object),
            "case": pd.Series(list(clusters), dtype=object),
        }
    )
    sizes = both.groupby("case", sort=False)["text"].size()
    different = both.drop_duplicates().groupby("case", sort=False)["text"].size()
    shares = (different / sizes)[sizes >= 2]
    return float(shares.mean()) if len(shares) else NAN


def are_copies(texts: Keys, clusters: Keys) -> bool:
    """True where no case has two different answers, so that its further trials were no trials.

    >>> are_copies(["x", "x", "y"], ["a", "a", "b"]), are_copies(["x", "z", "y"], ["a", "a", "b"])
    (True, False)
    """
    return len(set(zip(texts, clusters, strict=True))) == len(set(clusters))


def pass_at_k(values: Flags, clusters: Keys, k: int) -> float:
    """The chance that at least one of k trials of a case succeeds, without bias, over cases with k
    trials or more."""
    return _over_cases(values, clusters, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all_k(values: Flags, clusters: Keys, k: int) -> float:
    """The chance that all of k trials of a case succeed (pass^k), without bias, over cases with k
    trials or more."""
    return _over_cases(values, clusters, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _over_cases(values: Flags, clusters: Keys, k: int, chance: Any) -> float:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadOptions("k is a number of trials", got=k, expected="1 or more")
    hits, sizes = _by_cluster(values, clusters)
    chances = [chance(int(n), int(c)) for c, n in zip(hits, sizes, strict=True) if n >= k]
    return float(np.mean(chances)) if chances else NAN


def _few(n: float, m: int, level: float) -> float:
    """The factor on the effective size of n trials of m cases that allows for there being only m
    cases; 1 where every case has one trial."""
    if m < 2:
        return 0.0
    q = (1 + level) / 2
    # Korn and Graubard: the ratio of the t quantiles for as many trials and for as many cases.
    widths = float(stats.t.ppf(q, n - 1) / stats.t.ppf(q, m - 1))
    return widths**2 * (m - 1) / m * n / (n - 1)


def _percentiles(rates: npt.NDArray[Any], m: int, level: float) -> tuple[float, float]:
    """The ends of a bootstrap interval from m cases, by Hesterberg's expanded percentiles."""
    tail = (1 - level) / 2
    # A resample is less spread than the cases it is drawn from, by sqrt((m - 1) / m), and a normal
    # tail is shorter than that of t; expanding the tails makes up for both.
    if m > 1:
        tail = float(stats.norm.cdf(math.sqrt(m / (m - 1)) * stats.t.ppf(tail, m - 1)))
    low, high = np.quantile(rates, [tail, 1 - tail])
    return float(low), float(high)


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise BadOptions(
            "a confidence level lies between 0 and 1", got=level, expected="0.95, for example"
        )


def _by_cluster(values: Flags, clusters: Keys) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """(successes, trials) of each case, in order of first appearance."""
    codes, m = _codes(clusters)
    return _counts(values, codes, m)


def _codes(*clusters: Keys) -> tuple[npt.NDArray[Any], int]:
    """(a number for each entry of all clusters in a row, how many numbers there are)."""
    # An index of objects, because NumPy would make a table of cases that are tuples.
    arrays = [
        c if isinstance(c, np.ndarray) else pd.Index(list(c), dtype=object, tupleize_cols=False)
        for c in clusters
    ]
    joined = arrays[0]
    if len(arrays) > 1:
        joined = np.concatenate([np.asarray(c, dtype=object) for c in arrays])
    codes, uniques = pd.factorize(joined)
    return codes, len(uniques)


def _counts(
    values: Flags, codes: npt.NDArray[Any], m: int
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    hits = np.bincount(codes, weights=np.asarray(values, dtype=float), minlength=m)
    return hits, np.bincount(codes, minlength=m).astype(float)


def _pairs(
    a: Flags, a_cases: Keys, b: Flags, b_cases: Keys
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """(successes and trials of a, successes and trials of b) of each case that both arms have."""
    codes, m = _codes(a_cases, b_cases)
    (ha, na), (hb, nb) = _counts(a, codes[: len(a)], m), _counts(b, codes[len(a) :], m)
    # A case without a judged trial in one arm says nothing about their difference.
    both = (na > 0) & (nb > 0)
    return ha[both], na[both], hb[both], nb[both]


def _resampled(table: npt.NDArray[Any], draws: int, seed: int) -> npt.NDArray[Any]:
    """Column sums of `draws` resamples of the rows: draws × columns.

    Equal rows are drawn together, which is the same draw: with few trials a case there are few
    different rows, however many cases there are.
    """
    rows, counts = np.unique(table, axis=0, return_counts=True)
    m = int(counts.sum())
    sums: npt.NDArray[Any] = (
        np.random.default_rng(seed).multinomial(m, counts / m, size=draws) @ rows
    )
    return sums
