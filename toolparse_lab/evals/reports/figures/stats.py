"""The statistics of one arm: rates with intervals clustered by case, bounds and repeated trials,
and intervals that hold at every look. Differences of two arms are in `differences.py`.

Rates are shares of 0 to 1. `values` are successes (True or False) and `cases` the case of each:
trials of one case are not independent, so the case is the unit of every interval here. Each case
counts once, however many trials it has: a log in which a few cases have most of the trials says no
more about the others for it.

Neither scipy.stats nor statsmodels is imported here: their values are what the tests compare these
with, but each of them takes longer to import than a report takes to make.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from ....core.errors import BadOptions
from . import Interval

Array: TypeAlias = npt.NDArray[Any]
Flags: TypeAlias = Sequence[bool] | Array
Keys: TypeAlias = Sequence[Any] | Array
NAN = float("nan")


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Return Wilson's score interval. Counts need not be whole: a sample size may be effective.

    >>> i = wilson(8, 10); (round(i.low, 3), round(i.high, 3))
    (0.49, 0.943)
    """
    check_level(level)
    if n <= 0:
        return Interval(NAN, NAN, NAN)
    z = normal_quantile(level)
    p = successes / n
    # The score test turned around: the rates that these successes would not speak against.
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives the rate itself up to rounding.
    return Interval(
        p, 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half)
    )


def case_rate(values: Flags, cases: Keys) -> float:
    """Return the mean over cases of the share of a case's trials that succeeded, NaN without any.

    With equal numbers of trials it is the share of all trials.

    >>> case_rate([True, True, True, False], ["a", "a", "a", "b"])
    0.5
    """
    hits, sizes, _ = _by_case(values, cases)
    return _mean_rate(hits, sizes)


def clustered_interval(
    values: Flags, cases: Keys, level: float = 0.95, clusters: Mapping[Any, Any] | None = None
) -> Interval:
    """Return `case_rate` with an interval whose unit is the case, or a coarser one: `clusters`,
    case -> the unit that was drawn, such as a conversation.

    It is Agresti and Coull's interval at the effective sample size, the number of independent
    trials whose rate would vary as much (Franco, Little, Louis and Slud, Journal of Survey
    Statistics and Methodology 7, 2019), with a t quantile where they are few. See
    `benchmarks/intervals.py` for its coverage.

    >>> i = clustered_interval([True] * 8 + [False] * 2, range(10))
    >>> i.rate, round(i.low, 3), round(i.high, 3)
    (0.8, 0.462, 0.971)
    """
    check_level(level)
    hits, sizes, names = _by_case(values, cases)
    if not len(sizes):
        return Interval(NAN, NAN, NAN)
    rates, units = hits / sizes, cluster_codes(names, clusters)
    sums, counts = np.bincount(units, weights=rates), np.bincount(units).astype(float)
    sums, counts = sums[counts > 0], counts[counts > 0]
    # Half a cluster succeeds and half a one fails beside those that were seen: without them rates
    # of 0 and 1 would vary by nothing.
    size = float(counts.mean())
    total = size * (len(counts) + 1)
    middle = (float(sums.sum()) + size / 2) / total
    rest = float(((sums - counts * middle) ** 2).sum())
    rest += size**2 / 2 * (middle**2 + (1 - middle) ** 2)
    # No more than if all trials were independent, each case counted once: Kish's size.
    kish = len(sizes) ** 2 / float((1 / sizes).sum())
    n = min(kish, middle * (1 - middle) * total**2 / rest - 1)
    z = normal_quantile(level)
    rate = _mean_rate(hits, sizes)
    centre = (rate * n + z * z / 2) / (n + z * z)
    # Twice the usual degrees of freedom: the z²/2 successes and failures have widened it already.
    half = _t_quantile(level, max(1, round(2 * (n - 1))))
    half *= math.sqrt(centre * (1 - centre) / (n + z * z))
    return Interval(rate, max(0.0, centre - half), min(1.0, centre + half))


def holm(ps: Sequence[float]) -> list[float]:
    """Return Holm's adjusted p values, in the order given. NaN stays NaN and is not a test.

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


def disagreement(hits: Any, sizes: Any) -> Any:
    """Return how often two trials of a case disagree, of the successes and trials of cases with two
    or more: twice the variance of a single trial about its case's rate, without bias.
    """
    # Of the n (n - 1) / 2 pairs of a case's trials, k (n - k) are of one success and one failure.
    return 2 * hits * (sizes - hits) / (sizes * (sizes - 1))


def bounds(values: Flags, cases: Keys, missing: Keys) -> tuple[float, float]:
    """Return the rate if every missing trial, named by its case, had failed or succeeded.

    >>> bounds([True] * 6 + [False] * 2, range(8), [8, 9])
    (0.6, 0.8)
    """
    every_case = [*cases, *missing]
    worst, best = ([*values, *[succeeds] * len(missing)] for succeeds in (False, True))
    return case_rate(worst, every_case), case_rate(best, every_case)


def distinct_share(texts: Keys, clusters: Keys) -> float:
    """Return the mean share of different answers among a case's trials, over cases with two or
    more.
    """
    columns = {"text": texts, "case": clusters}
    both = pd.DataFrame({c: pd.Series(list(x), dtype=object) for c, x in columns.items()})
    sizes = both.groupby("case", sort=False, observed=True)["text"].size()
    different = both.drop_duplicates().groupby("case", sort=False, observed=True)["text"].size()
    shares = (different / sizes)[sizes >= 2]
    return float(shares.mean()) if len(shares) else NAN


def are_copies(texts: Keys, clusters: Keys) -> bool:
    """Return True if no case has two different answers, so that its further trials were no trials.

    >>> are_copies(["x", "x", "y"], ["a", "a", "b"]), are_copies(["x", "z", "y"], ["a", "a", "b"])
    (True, False)
    """
    return len(set(zip(texts, clusters, strict=True))) == len(set(clusters))


def pass_at_k(values: Flags, clusters: Keys, k: int) -> float:
    """Return the chance that at least one of k trials succeeds, without bias, over cases with k."""
    return _over_cases(values, clusters, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all_k(values: Flags, clusters: Keys, k: int) -> float:
    """Return the chance that all of k trials succeed, without bias, over cases with k or more."""
    return _over_cases(values, clusters, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _over_cases(values: Flags, clusters: Keys, k: int, chance: Any) -> float:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadOptions("k is a number of trials", got=k, expected="1 or more")
    hits, sizes, _ = _by_case(values, clusters)
    chances = [chance(int(n), int(c)) for c, n in zip(hits, sizes, strict=True) if n >= k]
    return float(np.mean(chances)) if chances else NAN


@lru_cache(maxsize=64)
def normal_quantile(level: float) -> float:
    """Return the two-sided normal quantile: 1.96 for 0.95."""
    return NormalDist().inv_cdf((1 + level) / 2)


@lru_cache(maxsize=1024)
def _t_quantile(level: float, freedom: int) -> float:
    # In w, with t = sqrt(freedom) * tan(w), the chance of |t| is an elementary function: Abramowitz
    # and Stegun 26.7.3 and 26.7.4. Bisection, because Newton's steps leave the range at one degree.
    low, high = 0.0, math.pi / 2
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _t_within(middle, freedom) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(middle)


def _t_within(angle: float, freedom: int) -> float:
    # The chance of a t that is at most sqrt(freedom) * tan(angle) from 0.
    odd = freedom % 2
    square = math.cos(angle) ** 2
    # The terms are products of (1/2)(3/4)… for even degrees, and of (2/3)(4/5)… for odd ones.
    k = np.arange(1 + odd, freedom - 2 + odd, 2)
    terms = 1.0 + float(np.cumprod(square * k / (k + 1)).sum())
    if not odd:
        return math.sin(angle) * terms
    more = math.sin(angle) * math.cos(angle) * terms if freedom > 1 else 0.0
    return 2 / math.pi * (angle + more)


def check_level(level: float) -> None:
    """Raise BadOptions for anything that is not a level of confidence."""
    if not 0 < level < 1:
        raise BadOptions(
            "a confidence level lies between 0 and 1", got=level, expected="0.95, for example"
        )


def _by_case(values: Flags, cases: Keys) -> tuple[Array, Array, Array]:
    # In order of first appearance.
    codes, names = codes_of(cases)
    return *counts_of(values, codes, len(names)), names


def _mean_rate(hits: Array, sizes: Array) -> float:
    # Of equal numbers of trials the plain share, which has no rounding of its own.
    if not len(sizes):
        return NAN
    if (sizes == sizes[0]).all():
        return float(hits.sum() / sizes.sum())
    return float((hits / sizes).mean())


def codes_of(*keys: Keys) -> tuple[Array, Array]:
    """Return (a number for each entry of all keys in a row, the key of each number)."""
    # An index of objects, because NumPy would make a table of cases that are tuples.
    arrays = [
        c if isinstance(c, np.ndarray) else pd.Index(list(c), dtype=object, tupleize_cols=False)
        for c in keys
    ]
    joined = arrays[0]
    if len(arrays) > 1:
        joined = np.concatenate([np.asarray(c, dtype=object) for c in arrays])
    codes, names = pd.factorize(joined)
    return codes, np.asarray(names)


def cluster_codes(cases: Array, clusters: Mapping[Any, Any] | None) -> Array:
    """Return the number of each case's cluster, of its own where `clusters` does not say."""
    if clusters is None:
        return np.arange(len(cases))
    # A case without a cluster must not share one with the others that have none.
    units = [(True, clusters[c]) if c in clusters else (False, c) for c in cases.tolist()]
    return codes_of(units)[0]


def counts_of(values: Flags, codes: Array, m: int) -> tuple[Array, Array]:
    """Return (successes, trials) of each of m codes."""
    hits = np.bincount(codes, weights=np.asarray(values, dtype=float), minlength=m)
    return hits, np.bincount(codes, minlength=m).astype(float)


def failures_frame(rows: Sequence[tuple[str, int, int]]) -> pd.DataFrame:
    """Return one row per way of asking: probe, asked, failed, and Wilson's interval of the share of
    failures, low and high.
    """
    ends = [(i.low, i.high) for i in (wilson(failed, asked) for _, asked, failed in rows)]
    columns = ["probe", "asked", "failed", "low", "high"]
    return pd.DataFrame([(*a, *b) for a, b in zip(rows, ends, strict=True)], columns=columns)
