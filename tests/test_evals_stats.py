"""Checked against the libraries' own functions and against exact computations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint

from toolparse_lab.errors import BadOptions
from toolparse_lab.evals.reports.figures import stats


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


def test_cases_that_explain_nothing_do_not_widen_the_interval() -> None:
    """Every case has four successes of five, so trials of one case are no more alike than
    others."""
    cases = [case for case in range(200) for _ in range(5)]
    got = stats.clustered_interval([trial > 0 for _ in range(200) for trial in range(5)], cases)
    plain = stats.wilson(800, 1000)
    assert (got.low, got.high) == pytest.approx((plain.low, plain.high), abs=0.001)
    one = stats.clustered_interval([True, True, False], ["a"] * 3)
    assert one.high - one.low == pytest.approx(
        stats.wilson(2 / 3, 1).high - stats.wilson(2 / 3, 1).low
    )


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


@pytest.mark.parametrize("level", [0.3, 0.5, 0.7])
def test_bootstrap_difference_against_every_resample(level: float) -> None:
    a, b = [True, False, False, True], [True, True, False, True]
    cases = [0, 1, 2, 3]
    exact = sorted(
        np.mean([b[i] - a[i] for i in pick]) for pick in itertools.product(range(4), repeat=4)
    )
    tail = scipy_stats.norm.cdf(math.sqrt(4 / 3) * scipy_stats.t.ppf((1 - level) / 2, 3))
    got = stats.bootstrap_difference(a, cases, b, cases, level, draws=20_000)
    assert got.rate == 0.25
    assert got.low == pytest.approx(np.quantile(exact, tail), abs=0.01)
    assert got.high == pytest.approx(np.quantile(exact, 1 - tail), abs=0.01)
    assert stats.bootstrap_difference(b, cases, a, cases).rate == -0.25
    assert math.isnan(stats.bootstrap_difference([True], [0], [True], [1]).rate)


def test_bootstrap_difference_leaves_unshared_cases_out() -> None:
    got = stats.bootstrap_difference([True, False], ["x", "only a"], [True, False], ["x", "only b"])
    assert got.rate == 0.0


@pytest.mark.parametrize(
    ("a", "b", "gap"), [(True, True, 0.0), (False, True, 1.0), (True, False, -1.0)]
)
def test_equal_differences_are_no_certainty(a: bool, b: bool, gap: float) -> None:
    got = stats.bootstrap_difference([a] * 20, range(20), [b] * 20, range(20))
    unseen = proportion_confint(0, 20, method="wilson")[1]
    assert got.rate == gap
    assert (got.low, got.high) == pytest.approx((max(-1, gap - unseen), min(1, gap + unseen)))


def test_holm() -> None:
    nan = float("nan")
    got = stats.holm([0.01, nan, 0.04, 0.03])
    assert got[0] == pytest.approx(0.03)
    assert math.isnan(got[1])
    assert got[2:] == pytest.approx([0.06, 0.06])
    assert stats.holm([]) == []


@pytest.mark.parametrize("seed", range(5))
def test_holm_is_what_statsmodels_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    ps = [*(rng.random(12) ** 3), 0.02, 0.02, 1.0, 0.0]
    assert stats.holm(ps) == pytest.approx(multipletests(ps, method="holm")[1].tolist())


@pytest.mark.parametrize(("b", "c"), [(0, 0), (0, 5), (3, 9), (20, 7), (4, 4)])
def test_sign_flip_of_single_trials_is_mcnemar(b: int, c: int) -> None:
    left = [True] * b + [False] * c + [True] * 6
    right = [False] * b + [True] * c + [True] * 6
    cases = range(b + c + 6)
    assert stats.sign_flip(left, cases, right, cases) == pytest.approx(stats.mcnemar_exact(b, c))


@pytest.mark.parametrize("seed", range(4))
def test_sign_flip_against_scipys_exact_permutation_test(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 5, 8)
    a = [rng.random(n) < 0.4 for n in sizes]
    b = [rng.random(n) < 0.7 for n in sizes]
    cases = np.repeat(np.arange(8), sizes).tolist()
    rates = [np.array([x.mean() for x in side]) for side in (a, b)]
    want = scipy_stats.permutation_test(
        rates,
        lambda x, y: np.sum(y - x),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
    )
    assert stats.sign_flip(
        np.concatenate(a).tolist(), cases, np.concatenate(b).tolist(), cases
    ) == pytest.approx(want.pvalue, abs=1e-9)


def test_sign_flip_sees_what_majorities_hide() -> None:
    """Ten cases that each lose one of three trials: no majority changes, but that is no chance."""
    cases = [c for c in range(10) for _ in range(3)]
    a, b = [True] * 30, [True, True, False] * 10
    assert stats.paired_mcnemar(a, cases, b, cases).p == 1
    assert stats.sign_flip(a, cases, b, cases) == pytest.approx(2 / 2**10)
    assert stats.sign_flip(a, cases, a, cases) == 1
    assert math.isnan(stats.sign_flip([True], ["x"], [True], ["y"]))


def test_sign_flip_of_very_uneven_numbers_of_trials_stays_near() -> None:
    rng = np.random.default_rng(3)
    sizes = [7, 11, 13, 17, 19, 23, 29, 31]
    a, b = ([rng.random(n) < p for n in sizes] for p in (0.3, 0.8))
    cases = np.repeat(np.arange(len(sizes)), sizes).tolist()
    rates = [np.array([x.mean() for x in side]) for side in (a, b)]
    want = scipy_stats.permutation_test(
        rates,
        lambda x, y: np.sum(y - x),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="two-sided",
    )
    assert stats.sign_flip(
        np.concatenate(a).tolist(), cases, np.concatenate(b).tolist(), cases
    ) == pytest.approx(want.pvalue, abs=0.01)


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
    assert stats.distinct_share(
        ["x", "x", "x", "y", "z", "w"], ["a", "a", "a", "b", "b", "c"]
    ) == pytest.approx(2 / 3)
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


# Figures that others have published or printed, so that a mistake shared with a library would show
# too.


def test_wilson_against_newcombe() -> None:
    """R. G. Newcombe, Two-sided confidence intervals for the single proportion, Statistics in
    Medicine 17 (1998), table I, method 3."""
    for k, n, low, high in (
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ):
        got = stats.wilson(k, n)
        assert (got.low, got.high) == pytest.approx((low, high), abs=5e-5)


def test_mcnemar_against_the_binomial_by_hand() -> None:
    """2 · (C(12,0) + … + C(12,3)) / 2**12 for 3 against 9."""
    assert stats.mcnemar_exact(3, 9) == pytest.approx(
        2 * sum(math.comb(12, i) for i in range(4)) / 2**12
    )


def test_pass_at_k_against_its_definition() -> None:
    """M. Chen et al., Evaluating large language models trained on code (2021): 1 - C(n-c, k) / C(n,
    k)."""
    values = [True] * 3 + [False] * 7
    assert stats.pass_at_k(values, ["a"] * 10, 1) == pytest.approx(0.3)
    assert stats.pass_at_k(values, ["a"] * 10, 5) == pytest.approx(1 - 21 / 252)
    assert stats.pass_all_k(values, ["a"] * 10, 3) == pytest.approx(1 / 120)


def test_coverage_of_the_clustered_interval() -> None:
    rng = np.random.default_rng(7)
    hits = 0
    for _ in range(300):
        chances = rng.beta(1.2, 0.8, 30)
        values = [bool(x) for x in (rng.random((30, 3)) < chances[:, None]).ravel()]
        i = stats.clustered_interval(values, [c for c in range(30) for _ in range(3)])
        hits += i.low <= 0.6 <= i.high
    assert scipy_stats.binomtest(hits, 300, 0.95).pvalue > 0.001, hits


@pytest.mark.parametrize(("cases", "trials"), [(5, 5), (6, 10), (10, 5)])
def test_intervals_of_few_cases_are_not_too_narrow(cases: int, trials: int) -> None:
    """Without a correction for few cases these hold the true rate in 82 to 89 of 100
    experiments."""
    rng = np.random.default_rng(11)
    ids = np.repeat(np.arange(cases), trials)
    rates = gaps = 0
    for _ in range(300):
        chances, others = rng.beta(0.8, 0.2, (2, cases))
        x, y = ((rng.random((cases, trials)) < c[:, None]).ravel() for c in (chances, others))
        i, j = (
            stats.clustered_interval(x, ids),
            stats.bootstrap_difference(x, ids, y, ids, draws=2000),
        )
        rates += i.low <= 0.8 <= i.high
        gaps += j.low <= 0 <= j.high
    assert min(rates, gaps) >= 270, (rates, gaps)


def test_one_case_says_nothing_of_others() -> None:
    got = stats.clustered_interval([True, False, True], ["a"] * 3)
    assert got.low < 0.2
    assert got.high > 0.95


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_bootstrap_ratio_against_every_resample(level: float) -> None:
    totals, counts = [300.0, 100.0, 50.0, 250.0, 10.0], [2, 1, 1, 3, 1]
    got = stats.bootstrap_ratio(totals, counts, range(5), level)
    assert got.rate == sum(totals) / sum(counts)
    every = [
        sum(totals[i] for i in draw) / sum(counts[i] for i in draw)
        for draw in itertools.product(range(5), repeat=5)
    ]
    tail = scipy_stats.norm.cdf((5 / 4) ** 0.5 * scipy_stats.t.ppf((1 - level) / 2, 4))
    low, high = np.quantile(every, [tail, 1 - tail])
    assert got.low == pytest.approx(low, abs=8)
    assert got.high == pytest.approx(high, abs=8)
    # Trials of one case are one unit.
    assert stats.bootstrap_ratio([1, 2, 3], [1, 0, 1], ["a"] * 3).rate == 3


def test_bootstrap_ratio_of_little() -> None:
    assert math.isnan(stats.bootstrap_ratio([5.0], [0], ["a"]).rate)
    assert math.isnan(stats.bootstrap_ratio([], [], []).rate)
    assert math.isnan(stats.bootstrap_ratio([math.nan, 1], [1, 1], "ab").rate)
    free = stats.bootstrap_ratio([0.0] * 9, [1] + [0] * 8, range(9))
    assert (free.rate, free.low, free.high) == (0, 0, 0)
    dear = stats.bootstrap_ratio([10.0] * 9, [1] + [0] * 8, range(9))
    assert dear.rate == 90
    assert dear.high == math.inf, "a resample may well hold no rescue"
