"""The statistics of reports: intervals clustered by case, paired tests, bounds and noise. Built on scipy, statsmodels.

Rates are shares of 0 to 1. `values` are successes (True or False) and `clusters` the case of each: trials of one case
are not independent, so every interval and test here treats the case as the unit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

from ..errors import BadOptions

NAN = float("nan")
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class Interval:
    """A rate with its interval; NaN where there is nothing to count."""

    rate: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class PairedTest:
    """Two arms on the same cases, by the majority of each case's trials.

    `ties` are cases where an arm has no majority; they are left out. `p` is exact (binomial) and two-sided.
    """

    n: int
    both: int
    only_a: int
    only_b: int
    neither: int
    ties: int
    p: float


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """Wilson's score interval; counts need not be whole, so that an effective sample size can be given.

    >>> i = wilson(8, 10); (round(i.low, 3), round(i.high, 3))
    (0.49, 0.943)
    """
    _check_level(level)
    if n <= 0:
        return Interval(NAN, NAN, NAN)
    z = float(stats.norm.ppf((1 + level) / 2))
    p = successes / n
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    # At the ends the formula gives the rate itself up to rounding.
    return Interval(p, 0.0 if p == 0 else max(0.0, middle - half), 1.0 if p == 1 else min(1.0, middle + half))


def clustered_interval(
    values: Sequence[bool],
    clusters: Sequence[Any],
    level: float = 0.95,
    method: str = "analytic",
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """An interval of the rate with cases as clusters.

    'analytic' is Wilson's interval at the effective sample size that the cluster-robust variance implies: n where
    every case has one trial, the number of cases where a case's trials all agree. 'bootstrap' resamples cases, by
    percentiles. Without variance (all or none) the effective size is the number of cases.
    """
    _check_level(level)
    if method not in ("analytic", "bootstrap"):
        raise BadOptions("unknown method of an interval", got=method, expected="analytic or bootstrap")
    hits, sizes = _by_cluster(values, clusters)
    n, m = float(sizes.sum()), len(sizes)
    if n == 0:
        return Interval(NAN, NAN, NAN)
    p = float(hits.sum() / n)
    if method == "bootstrap":
        if p in (0.0, 1.0):
            return wilson(p * m, m, level)
        rates = _resampled(hits, sizes, draws, seed)
        low, high = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2])
        return Interval(p, float(low), float(high))
    variance = float(((hits - p * sizes) ** 2).sum()) / n**2
    effective = min(n, p * (1 - p) / variance) if 0 < p < 1 and variance > 0 else float(m)
    spread = wilson(p * effective, effective, level)
    return Interval(p, spread.low, spread.high)


def paired_mcnemar(a: Sequence[bool], a_cases: Sequence[Any], b: Sequence[bool], b_cases: Sequence[Any]) -> PairedTest:
    """Exact McNemar test on per-case majorities, over the cases both arms have."""
    left, right = _majorities(a, a_cases), _majorities(b, b_cases)
    shared = [c for c in left if c in right]
    pairs = [(left[c], right[c]) for c in shared]
    decided = [(x, y) for x, y in pairs if x is not None and y is not None]
    only_a = sum(x and not y for x, y in decided)
    only_b = sum(y and not x for x, y in decided)
    both = sum(bool(x and y) for x, y in decided)
    return PairedTest(
        len(decided), both, int(only_a), int(only_b), len(decided) - both - int(only_a) - int(only_b),
        len(pairs) - len(decided), mcnemar_exact(int(only_a), int(only_b)) if decided else NAN,
    )  # fmt: skip


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """The exact two-sided p of McNemar's test from the two discordant counts.

    >>> mcnemar_exact(0, 5)
    0.0625
    """
    n = only_a + only_b
    return 1.0 if n == 0 else float(stats.binomtest(min(only_a, only_b), n, 0.5).pvalue)


def bootstrap_difference(
    a: Sequence[bool],
    a_cases: Sequence[Any],
    b: Sequence[bool],
    b_cases: Sequence[Any],
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Interval:
    """rate(b) - rate(a) over the cases both arms have, with a percentile interval from resampling those cases."""
    _check_level(level)
    left, right = _table(a, a_cases), _table(b, b_cases)
    shared = [c for c in left if c in right]
    if not shared:
        return Interval(NAN, NAN, NAN)
    ha, na = np.array([left[c] for c in shared], float).T
    hb, nb = np.array([right[c] for c in shared], float).T
    rng = np.random.default_rng(seed)
    picks = rng.multinomial(len(shared), np.full(len(shared), 1 / len(shared)), size=draws)
    rates = (picks @ hb) / (picks @ nb) - (picks @ ha) / (picks @ na)
    low, high = np.quantile(rates, [(1 - level) / 2, (1 + level) / 2])
    return Interval(float(hb.sum() / nb.sum() - ha.sum() / na.sum()), float(low), float(high))


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values, in the order given; NaN stays NaN and does not count as a test."""
    from statsmodels.stats.multitest import multipletests

    known = [i for i, p in enumerate(ps) if p == p]
    out = [NAN] * len(ps)
    if known:
        adjusted = multipletests([ps[i] for i in known], method="holm")[1]
        for i, p in zip(known, adjusted, strict=True):
            out[i] = float(p)
    return out


def noise_floor(values: Sequence[bool], clusters: Sequence[Any]) -> float:
    """How often two trials of one case by one arm disagree; NaN where no case has two.

    >>> noise_floor([True, False, True, True], ["a", "a", "b", "b"])
    0.5
    """
    hits, sizes = _by_cluster(values, clusters)
    many = sizes >= 2
    if not many.any():
        return NAN
    k, n = hits[many], sizes[many]
    return float((2 * k * (n - k) / (n * (n - 1))).mean())


def bounds(successes: int, n: int, missing: int) -> tuple[float, float]:
    """The rate if every missing trial had failed, and if every one had succeeded.

    >>> bounds(6, 8, 2)
    (0.6, 0.8)
    """
    total = n + missing
    return (NAN, NAN) if total == 0 else (successes / total, (successes + missing) / total)


def distinct_share(texts: Sequence[Any], clusters: Sequence[Any]) -> float:
    """The mean share of different answers among a case's trials, over the cases with two or more; NaN without any."""
    groups: dict[Any, list[Any]] = {}
    for text, case in zip(texts, clusters, strict=True):
        groups.setdefault(case, []).append(text)
    shares = [len(set(g)) / len(g) for g in groups.values() if len(g) >= 2]
    return float(np.mean(shares)) if shares else NAN


def pass_at_k(values: Sequence[bool], clusters: Sequence[Any], k: int) -> float:
    """The chance that at least one of k trials of a case succeeds, without bias, over cases with k trials or more."""
    return _over_cases(values, clusters, k, lambda n, c: 1 - math.comb(n - c, k) / math.comb(n, k))


def pass_all_k(values: Sequence[bool], clusters: Sequence[Any], k: int) -> float:
    """The chance that all of k trials of a case succeed (pass^k), without bias, over cases with k trials or more."""
    return _over_cases(values, clusters, k, lambda n, c: math.comb(c, k) / math.comb(n, k))


def _over_cases(values: Sequence[bool], clusters: Sequence[Any], k: int, chance: Any) -> float:
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise BadOptions("k is a number of trials", got=k, expected="1 or more")
    hits, sizes = _by_cluster(values, clusters)
    found = [chance(int(n), int(c)) for c, n in zip(hits, sizes, strict=True) if n >= k]
    return float(np.mean(found)) if found else NAN


def _check_level(level: float) -> None:
    if not 0 < level < 1:
        raise BadOptions("a confidence level lies between 0 and 1", got=level, expected="0.95, for example")


def _table(values: Sequence[bool], clusters: Sequence[Any]) -> dict[Any, list[int]]:
    table: dict[Any, list[int]] = {}
    for value, case in zip(values, clusters, strict=True):
        row = table.setdefault(case, [0, 0])
        row[0] += bool(value)
        row[1] += 1
    return table


def _by_cluster(values: Sequence[bool], clusters: Sequence[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    rows = np.array(list(_table(values, clusters).values()), float).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _resampled(hits: npt.NDArray[Any], sizes: npt.NDArray[Any], draws: int, seed: int) -> npt.NDArray[Any]:
    m = len(sizes)
    picks = np.random.default_rng(seed).multinomial(m, np.full(m, 1 / m), size=draws)
    rates: npt.NDArray[Any] = (picks @ hits) / (picks @ sizes)
    return rates


def _majorities(values: Sequence[bool], cases: Sequence[Any]) -> dict[Any, bool | None]:
    return {c: None if 2 * k == n else 2 * k > n for c, (k, n) in _table(values, cases).items()}
