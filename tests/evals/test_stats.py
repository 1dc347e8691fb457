"""Rates and differences of two arms, against the libraries' own functions and exact computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tests.tables import asked_of
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures import stats
from toolparse_lab.evals.reports.figures.differences import (
    mcnemar_exact,
    paired_difference,
    sign_flip,
)


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


# Differences of two arms.


def single(b: int, c: int, same: int = 6) -> tuple[list[bool], list[bool], range]:
    """Arms that differ in b cases lost and c gained, with one trial a case."""
    left = [True] * b + [False] * c + [True] * same
    right = [False] * b + [True] * c + [True] * same
    return left, right, range(b + c + same)


def test_every_case_counts_once() -> None:
    # Case x has four trials in b, y one: pooled, b would have 4 of 5.
    a, a_cases = [True, True], ["x", "y"]
    b, b_cases = [True] * 4 + [False], ["x"] * 4 + ["y"]
    got = paired_difference(a, a_cases, b, b_cases)
    assert (got.rate_a, got.rate_b, got.rate) == (1.0, 0.5, -0.5)
    assert (got.n_cases, got.n_a, got.n_b) == (2, 2, 5)


def test_majorities_and_shared_cases() -> None:
    a = [True, True, False, False, False, True, True, False]
    a_cases = ["x", "x", "x", "y", "y", "y", "z", "z"]
    b = [False, True, True, False]
    b_cases = ["x", "y", "z", "w"]
    got = paired_difference(a, a_cases, b, b_cases)
    assert (got.n_cases, got.only_a, got.only_b, got.ties) == (3, 1, 1, 1)
    nothing = paired_difference([True], ["x"], [True], ["y"])
    assert nothing.n_cases == 0
    assert all(math.isnan(x) for x in (nothing.rate, nothing.low, nothing.p, nothing.smallest))
    with pytest.raises(BadOptions):
        paired_difference([True], ["x"], [True], ["x"], 95)


@asked_of(("b", "c", "same"), [(0, 5, 30), (3, 9, 40), (20, 7, 10), (0, 0, 20)])
def test_the_interval_of_single_trials_is_bonett_and_prices(b: int, c: int, same: int) -> None:
    """D. G. Bonett and R. M. Price, Adjusted Wald confidence interval for a difference of binomial
    proportions based on paired data, J. Educ. Behav. Stat. 37 (2012)."""
    n = b + c + same
    x, y = (c + 1) / (n + 2), (b + 1) / (n + 2)
    half = 1.959964 * math.sqrt((x + y - (x - y) ** 2) / (n + 2))
    left, right, cases = single(b, c, same)
    got = paired_difference(left, cases, right, cases)
    assert (got.low, got.high) == pytest.approx((x - y - half, x - y + half), abs=1e-6)


@asked_of("gap", [0.0, 1.0, -1.0])
def test_equal_differences_are_no_certainty(gap: float) -> None:
    a, b = [gap < 0] * 20, [gap > 0] * 20
    got = paired_difference(a, range(20), b, range(20))
    assert got.rate == gap
    assert got.low <= gap <= got.high
    assert got.high - got.low > 0.1


def test_lost_cases_count_as_failures_in_the_worst_case() -> None:
    a, cases = [True] * 100, range(100)
    all_there = paired_difference(a, cases, a, cases)
    assert all_there.low_if_lost == all_there.low
    three = paired_difference(a, cases, [True] * 3, range(3))
    assert (three.n_cases, three.rate) == (3, 0.0)
    assert three.low_if_lost < -0.9


def test_the_smallest_drop_that_could_have_been_shown() -> None:
    def of(n: int, trials: int = 1) -> float:
        cases = [c for c in range(n) for _ in range(trials)]
        return paired_difference([True] * len(cases), cases, [True] * len(cases), cases).smallest

    assert of(5) == math.inf, "five cases give p = 0.0625 at best"
    assert of(10) == 0.6, "six of ten must fall"
    assert of(84) == pytest.approx(6 / 84)
    assert of(20, 5) < of(20)
    # Three cases rose and eleven fell, p = 0.057: with fourteen that differ, ten more must fall.
    left, right, cases = single(11, 3, 70)
    near = paired_difference(left, cases, right, cases)
    assert near.p > 0.05
    assert near.smallest == pytest.approx(10 / 84)
    left, right, cases = single(6, 0, 4)
    shown = paired_difference(left, cases, right, cases)
    assert shown.p < 0.05
    assert -shown.rate >= shown.smallest


def test_clusters_flip_as_a_whole() -> None:
    left, right, cases = single(12, 0, 8)
    alone = paired_difference(left, cases, right, cases)
    pairs = paired_difference(left, cases, right, cases, clusters={c: c // 2 for c in cases})
    assert pairs.rate == alone.rate
    assert pairs.p == pytest.approx(mcnemar_exact(6, 0))
    assert alone.p == pytest.approx(mcnemar_exact(12, 0))
    assert pairs.high - pairs.low > 1.2 * (alone.high - alone.low)


def test_with_unequal_trials_p_is_never_below_that_of_the_interval() -> None:
    """One trial against twenty at a rate of .9: most cases fall a little, few rise by much."""
    rng = np.random.default_rng(2)
    wrong = 0
    for _ in range(200):
        a = rng.random(20) < 0.9
        b = rng.random(400) < 0.9
        got = paired_difference(a, range(20), b, np.repeat(np.arange(20), 20))
        assert got.p >= sign_flip(a, range(20), b, np.repeat(np.arange(20), 20))
        wrong += got.p <= 0.05
    assert wrong <= 20


@asked_of(("b", "c"), [(0, 0), (0, 5), (3, 9), (20, 7), (4, 4)])
def test_mcnemar_exact(b: int, c: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    want = 1.0 if b == c == 0 else mcnemar([[5, b], [c, 5]], exact=True).pvalue
    assert mcnemar_exact(b, c) == pytest.approx(want)


@asked_of(
    ("seed", "sizes", "within"),
    [*((seed, (), 1e-9) for seed in range(4)), (3, (7, 11, 13, 17, 19, 23, 29, 31), 0.01)],
)
def test_sign_flip_against_scipys_exact_permutation_test(
    seed: int, sizes: tuple[int, ...], within: float
) -> None:
    """Very uneven numbers of trials are near to it."""
    rng = np.random.default_rng(seed)
    trials = sizes or tuple(rng.integers(1, 5, 8))
    a, b = ([rng.random(n) < p for n in trials] for p in (0.3, 0.75))
    cases = np.repeat(np.arange(8), trials).tolist()
    rates = [np.array([x.mean() for x in side]) for side in (a, b)]
    want = scipy_stats.permutation_test(
        rates,
        lambda x, y: np.sum(y - x),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
    )
    found = sign_flip(np.concatenate(a).tolist(), cases, np.concatenate(b).tolist(), cases)
    assert found == pytest.approx(want.pvalue, abs=within)


def test_sign_flip_sees_what_majorities_hide() -> None:
    """Ten cases that each lose one of three trials: no majority changes, but that is no chance."""
    cases = [c for c in range(10) for _ in range(3)]
    a, b = [True] * 30, [True, True, False] * 10
    assert paired_difference(a, cases, b, cases).only_a == 0
    assert sign_flip(a, cases, b, cases) == pytest.approx(2 / 2**10)
    assert sign_flip(a, cases, a, cases) == 1
    assert math.isnan(sign_flip([True], ["x"], [True], ["y"]))
