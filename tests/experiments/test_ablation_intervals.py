"""Intervals of pooled shares, prices and mean gains, with cases as their units."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats as scipy_stats
from statsmodels.stats.proportion import proportion_confint

import toolparse_lab as tp
from toolparse_lab.experiments.ablation.example import example_ablation
from toolparse_lab.experiments.ablation.intervals import mean_of, ratio_of, share_of


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (3, 10), (25, 25), (1, 2), (0, 1), (70, 90)])
def test_a_share_of_one_value_a_case_has_wilsons_interval(hits: int, n: int) -> None:
    got = share_of([i < hits for i in range(n)], range(n), 0.95)
    low, high = proportion_confint(hits, n, 0.05, "wilson")
    assert (got.rate, got.low, got.high) == pytest.approx((hits / n, low, high))


def test_copies_of_a_value_tell_no_more_than_one() -> None:
    flags = [i % 3 > 0 for i in range(12)]
    once = share_of(flags, range(12), 0.95)
    copies = share_of(
        [x for x in flags for _ in range(5)], [i for i in range(12) for _ in "12345"], 0.95
    )
    assert (copies.rate, copies.low, copies.high) == pytest.approx((once.rate, once.low, once.high))
    # Values that differ within a case tell more, and never less than its cases do.
    mixed = share_of([i % 3 > 0 for i in range(60)], [i // 5 for i in range(60)], 0.95)
    assert mixed.high - mixed.low < once.high - once.low
    # The pooled share: a case with many values counts for as many.
    assert share_of([True, True, True, False], "aaab", 0.95).rate == 0.75
    assert math.isnan(share_of([], [], 0.95).rate)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_a_ratio_against_every_resample(level: float) -> None:
    totals, counts = [300.0, 100.0, 50.0, 250.0, 10.0], [2, 1, 1, 3, 1]
    got = ratio_of(totals, counts, range(5), level)
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
    assert ratio_of([1, 2, 3], [1, 0, 1], "aaa", level).rate == 3


def test_a_ratio_of_little() -> None:
    for totals, counts, cases in (([5.0], [0], "a"), ([], [], ""), ([math.nan, 1], [1, 1], "ab")):
        assert math.isnan(ratio_of(totals, counts, cases, 0.95).rate)
    free = ratio_of([0.0] * 9, [1] + [0] * 8, range(9), 0.95)
    assert (free.rate, free.low, free.high) == (0, 0, 0)
    dear = ratio_of([10.0] * 9, [1] + [0] * 8, range(9), 0.95)
    assert dear.rate == 90
    assert dear.high == math.inf, "a resample may well hold no rescue"


def test_a_mean_is_that_of_its_cases() -> None:
    got = mean_of([1.0, 0.0, 0.0, -1.0, 0.5], "aabcd", 0.95)
    assert got.rate == pytest.approx((0.5 + 0 - 1 + 0.5) / 4)
    assert -1 <= got.low < got.rate < got.high <= 1
    same = mean_of([0.0] * 20, range(20), 0.95)
    assert same.rate == 0
    assert same.low == -same.high < 0, "twenty equal cases are no certainty"
    assert math.isnan(mean_of([], [], 0.95).low)


def test_a_comparison_has_the_interval_of_the_gain_that_it_asks_for(tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        lab.replaying(tp.example_recording(ablation=True))
        ablation = example_ablation(lab, progress=False)
        frame = ablation.attribution
        for protocol in ("hermes", "morph_xml"):
            (gain,) = frame[
                (frame["rung"] == "gold")
                & (frame["layer"] == "layer 1")
                & (frame["protocol"] == protocol)
            ].to_dict("records")
            a, b = f"{protocol} no-rules", f"{protocol} type-rules"
            (plain,) = ablation.run.compare(a, b, policy="none", pairs=1).frame.to_dict("records")
            assert (plain["difference"], plain["ci_low"], plain["ci_high"]) == (
                gain["gain"], gain["gain_low"], gain["gain_high"],
            )  # fmt: skip
            # Under safe, coercion stands beside both arms.
            (safe,) = ablation.run.compare(a, b, policy="safe").frame.to_dict("records")
            cells = ablation.cells.set_index(["protocol", "cell"])["gold"][protocol]
            assert (safe["success_a"], safe["success_b"]) == (cells["S010"], cells["S110"])
