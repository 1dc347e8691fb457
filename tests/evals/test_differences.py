"""Differences of two arms, against exact computations and the libraries' own functions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats as scipy_stats

from tests.tables import asked_of
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures.differences import (
    mcnemar_exact,
    paired_difference,
    sign_flip,
)


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
