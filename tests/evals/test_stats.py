"""Checked against the libraries' own functions and against exact computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from tests.tables import asked_of
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures import stats


@pytest.mark.parametrize(("k", "n"), [(0, 7), (1, 7), (8, 10), (7, 7), (250, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson(k: int, n: int, level: float) -> None:
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, alpha=1 - level, method="wilson")
    got = stats.wilson(k, n, level)
    assert (got.low, got.high) == pytest.approx((low, high), abs=1e-12)
    assert got.rate == k / n


def test_wilson_of_nothing_is_nan() -> None:
    assert all(math.isnan(x) for x in (stats.wilson(0, 0).rate, stats.wilson(0, 0).low))
    with pytest.raises(BadOptions):
        stats.wilson(1, 2, 95)


def agresti_coull(k: int, n: int) -> tuple[float, float]:
    """statsmodels' interval, whose quantile is normal; with many cases a t's is the same."""
    from statsmodels.stats.proportion import proportion_confint

    low, high = proportion_confint(k, n, method="agresti_coull")
    return float(low), float(high)


@asked_of(("k", "n"), [(800, 1000), (5, 2000), (1990, 2000)])
def test_single_trials_of_many_cases_have_agresti_and_coulls_interval(k: int, n: int) -> None:
    got = stats.clustered_interval([True] * k + [False] * (n - k), range(n))
    low, high = agresti_coull(k, n)
    assert (got.low, got.high) == pytest.approx((max(0, low), min(1, high)), abs=1e-4)


def test_copies_and_numbers_of_trials_change_nothing() -> None:
    single = stats.clustered_interval([True] * 8 + [False] * 2, range(10))
    copies = stats.clustered_interval([True] * 24 + [False] * 6, [i // 3 for i in range(30)])
    # One case holds twenty of the trials, as in a log.
    uneven = stats.clustered_interval([True] * 27 + [False] * 2, [0] * 19 + list(range(10)))
    assert single == copies == uneven
    assert single.rate == 0.8


def test_clusters_hold_cases_together() -> None:
    values = [True] * 16 + [False] * 4
    alone = stats.clustered_interval(values, range(20))
    # Each conversation is two cases that end alike: half as many units.
    pairs = stats.clustered_interval(values, range(20), clusters={c: c // 2 for c in range(20)})
    assert pairs == stats.clustered_interval([True] * 8 + [False] * 2, range(10))
    assert pairs.high - pairs.low > 1.2 * (alone.high - alone.low)
    some = stats.clustered_interval(values, range(20), clusters={0: "x"})
    assert some == alone, "cases without a cluster stand for themselves"


def test_cases_that_explain_nothing_do_not_widen_the_interval() -> None:
    """Every case has four successes of five: the trials are as many as if each were a case."""
    cases = [case for case in range(2000) for _ in range(5)]
    got = stats.clustered_interval([trial > 0 for _ in range(2000) for trial in range(5)], cases)
    assert got.rate == 0.8
    assert (got.low, got.high) == pytest.approx(agresti_coull(8000, 10_000), abs=1e-4)


def test_clustered_interval_against_the_cluster_robust_error() -> None:
    rng = np.random.default_rng(1)
    chances = rng.beta(2, 2, 60)
    values = [bool(rng.random() < p) for p in chances for _ in range(5)]
    cases = [i for i in range(60) for _ in range(5)]
    x = np.array(values, float)
    residuals = (x - x.mean()).reshape(60, 5).sum(axis=1)
    se = math.sqrt((residuals**2).sum()) / len(x)
    got = stats.clustered_interval(values, cases)
    assert (got.high - got.low) / 2 == pytest.approx(1.96 * se, rel=0.1)


def test_edges() -> None:
    assert math.isnan(stats.clustered_interval([], []).rate)
    assert math.isnan(stats.case_rate([], []))
    one = stats.clustered_interval([True], ["a"])
    assert (one.rate, one.low, one.high) == (1.0, 0.0, 1.0)
    with pytest.raises(BadOptions):
        stats.clustered_interval([True], ["a"], 95)


def test_holm() -> None:
    nan = float("nan")
    got = stats.holm([0.01, nan, 0.04, 0.03])
    assert got[0] == pytest.approx(0.03)
    assert math.isnan(got[1])
    assert got[2:] == pytest.approx([0.06, 0.06])
    assert stats.holm([]) == []


@asked_of("seed", range(5))
def test_holm_is_what_statsmodels_says(seed: int) -> None:
    from statsmodels.stats.multitest import multipletests

    rng = np.random.default_rng(seed)
    ps = [*(rng.random(12) ** 3), 0.02, 0.02, 1.0, 0.0]
    assert stats.holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


def test_bounds() -> None:
    assert stats.bounds([True] * 3 + [False], range(4), range(4, 10)) == (0.3, 0.9)
    # The missing trial of a case that was asked again.
    assert stats.bounds([True, True], ["a", "b"], ["b"]) == (0.75, 1.0)
    assert all(math.isnan(x) for x in stats.bounds([], [], []))


def test_distinct_share() -> None:
    assert stats.distinct_share(
        ["x", "x", "x", "y", "z", "w"], ["a", "a", "a", "b", "b", "c"]
    ) == pytest.approx(2 / 3)
    assert math.isnan(stats.distinct_share(["x"], ["a"]))


@asked_of("k", [1, 2, 3])
def test_pass_at_k_and_pass_all_k_count_every_choice(k: int) -> None:
    values, cases = [True, False, False, True, True, True, False], ["a"] * 4 + ["b"] * 3
    groups = [values[:4], values[4:]]
    some = np.mean([np.mean([any(c) for c in itertools.combinations(g, k)]) for g in groups])
    every = np.mean([np.mean([all(c) for c in itertools.combinations(g, k)]) for g in groups])
    assert stats.pass_at_k(values, cases, k) == pytest.approx(some)
    assert stats.pass_all_k(values, cases, k) == pytest.approx(every)
    assert math.isnan(stats.pass_at_k(values, cases, 5))
    with pytest.raises(BadOptions):
        stats.pass_at_k(values, cases, 0)


# Figures that others have published or printed, so that a mistake shared with a library would show
# too.


def test_one_case_says_nothing_of_others() -> None:
    got = stats.clustered_interval([True, False, True], ["a"] * 3)
    assert got.low < 0.2
    assert got.high > 0.95
