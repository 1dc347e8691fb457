"""Checked against the libraries' own functions and against exact computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from toolparse_lab.errors import BadOptions
from toolparse_lab.evals import stats


@pytest.mark.parametrize(("k", "n"), [(0, 7), (1, 7), (8, 10), (7, 7), (250, 1000)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_wilson(k: int, n: int, level: float) -> None:
    low, high = proportion_confint(k, n, alpha=1 - level, method="wilson")
    got = stats.wilson(k, n, level)
    assert (got.low, got.high) == pytest.approx((low, high), abs=1e-12)
    assert got.rate == k / n


def test_wilson_of_nothing_is_nan() -> None:
    assert all(math.isnan(x) for x in (stats.wilson(0, 0).rate, stats.wilson(0, 0).low))
    with pytest.raises(BadOptions):
        stats.wilson(1, 2, 95)


def test_clustered_interval_is_wilson_for_single_trials() -> None:
    values = [True] * 8 + [False] * 2
    got = stats.clustered_interval(values, list(range(10)))
    want = stats.wilson(8, 10)
    assert (got.low, got.high) == pytest.approx((want.low, want.high))


def test_clustered_interval_counts_copies_once() -> None:
    values = [True] * 24 + [False] * 6
    got = stats.clustered_interval(values, [i // 3 for i in range(30)])
    want = stats.wilson(8, 10)
    assert (got.low, got.high) == pytest.approx((want.low, want.high))
    all_right = stats.clustered_interval([True] * 30, [i // 3 for i in range(30)])
    assert (all_right.low, all_right.high) == pytest.approx((stats.wilson(10, 10).low, 1.0))


def test_clustered_interval_against_the_cluster_robust_error() -> None:
    rng = np.random.default_rng(1)
    chances = rng.beta(2, 2, 60)
    values = [bool(rng.random() < p) for p in chances for _ in range(5)]
    cases = [i for i in range(60) for _ in range(5)]
    x = np.array(values, float)
    residuals = (x - x.mean()).reshape(60, 5).sum(axis=1)
    se = math.sqrt((residuals**2).sum()) / len(x)
    got = stats.clustered_interval(values, cases)
    assert (got.high - got.low) / 2 == pytest.approx(1.96 * se, rel=0.05)
    plain = stats.wilson(sum(values), len(values))
    assert got.high - got.low > 1.3 * (plain.high - plain.low)
    boot = stats.clustered_interval(values, cases, method="bootstrap", seed=2)
    assert (boot.low, boot.high) == pytest.approx((got.low, got.high), abs=0.02)
    assert boot == stats.clustered_interval(values, cases, method="bootstrap", seed=2)
    assert boot != stats.clustered_interval(values, cases, method="bootstrap", seed=3)


def test_clustered_interval_edges() -> None:
    assert math.isnan(stats.clustered_interval([], []).rate)
    assert stats.clustered_interval([True], ["a"], method="bootstrap").high == 1.0
    with pytest.raises(BadOptions):
        stats.clustered_interval([True], ["a"], method="guess")


@pytest.mark.parametrize(("b", "c"), [(0, 0), (0, 5), (3, 9), (20, 7), (4, 4)])
def test_mcnemar_exact(b: int, c: int) -> None:
    want = 1.0 if b == c == 0 else mcnemar([[5, b], [c, 5]], exact=True).pvalue
    assert stats.mcnemar_exact(b, c) == pytest.approx(want)


def test_paired_mcnemar_uses_majorities_and_shared_cases() -> None:
    a = [True, True, False, False, False, True, True, False]
    a_cases = ["x", "x", "x", "y", "y", "y", "z", "z"]
    b = [False, True, True, False]
    b_cases = ["x", "y", "z", "w"]
    got = stats.paired_mcnemar(a, a_cases, b, b_cases)
    assert (got.n, got.only_a, got.only_b, got.both, got.neither, got.ties) == (2, 1, 1, 0, 0, 1)
    assert got.p == 1.0
    assert math.isnan(stats.paired_mcnemar([True], ["x"], [True], ["y"]).p)


def test_bootstrap_difference_against_every_resample() -> None:
    a, b = [True, False, False, True], [True, True, False, True]
    cases = [0, 1, 2, 3]
    exact = sorted(np.mean([b[i] - a[i] for i in pick]) for pick in itertools.product(range(4), repeat=4))
    got = stats.bootstrap_difference(a, cases, b, cases, draws=20_000)
    assert got.rate == 0.25
    assert got.low == pytest.approx(np.quantile(exact, 0.025), abs=0.01)
    assert got.high == pytest.approx(np.quantile(exact, 0.975), abs=0.01)
    assert stats.bootstrap_difference(b, cases, a, cases).rate == -0.25
    assert math.isnan(stats.bootstrap_difference([True], [0], [True], [1]).rate)


def test_bootstrap_difference_leaves_unshared_cases_out() -> None:
    got = stats.bootstrap_difference([True, False], ["x", "only a"], [True, False], ["x", "only b"])
    assert (got.rate, got.low, got.high) == (0.0, 0.0, 0.0)


def test_holm() -> None:
    nan = float("nan")
    got = stats.holm([0.01, nan, 0.04, 0.03])
    assert got[0] == pytest.approx(0.03)
    assert math.isnan(got[1])
    assert got[2:] == pytest.approx([0.06, 0.06])
    assert stats.holm([]) == []


def test_noise_floor_is_the_chance_that_two_trials_differ() -> None:
    values = [True, True, False, False, False, True]
    cases = ["a", "a", "a", "b", "b", "c"]
    pairs = [x != y for x, y in itertools.combinations(values[:3], 2)]
    assert stats.noise_floor(values, cases) == pytest.approx((np.mean(pairs) + 0) / 2)
    assert math.isnan(stats.noise_floor([True], ["a"]))


def test_bounds() -> None:
    assert stats.bounds(3, 4, 6) == (0.3, 0.9)
    assert all(math.isnan(x) for x in stats.bounds(0, 0, 0))


def test_distinct_share() -> None:
    assert stats.distinct_share(["x", "x", "x", "y", "z", "w"], ["a", "a", "a", "b", "b", "c"]) == pytest.approx(2 / 3)
    assert math.isnan(stats.distinct_share(["x"], ["a"]))


@pytest.mark.parametrize("k", [1, 2, 3])
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


def test_coverage_of_the_clustered_interval() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(300):
        chances = rng.beta(1.2, 0.8, 30)
        values = [bool(x) for x in (rng.random((30, 3)) < chances[:, None]).ravel()]
        i = stats.clustered_interval(values, [c for c in range(30) for _ in range(3)])
        hits += i.low <= 0.6 <= i.high
    assert scipy_stats.binomtest(hits, 300, 0.95).pvalue > 0.001, hits
