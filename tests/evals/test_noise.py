"""Noise: its two parts against known truth, by simulation, and the A/A difference of two runs."""

from __future__ import annotations

import numpy as np
import pytest

from tests.extensions.study.test_power import trials_of, twice
from toolparse_lab.evals.reports.figures.run_power import noise_table


def test_both_parts_add_up_to_the_variance_of_one_answer() -> None:
    """With the cases' rates known, the estimates are right on average."""
    random = np.random.default_rng(3)
    figures = []
    for _ in range(60):
        rates = random.beta(1, 1, 60)  # p (1 - p) is 1/6 on average, the variance of p 1/12
        table = random.random((60, 3)) < rates[:, None]
        cell = noise_table([trials_of({("m", "a"): table})])[0]
        figures.append((cell.prediction**2, cell.data**2, cell.again**2, cell.disagree))
    prediction, data, again, disagree = np.mean(figures, axis=0)
    assert prediction == pytest.approx(1 / 6 / 180, rel=0.05)
    assert data == pytest.approx(1 / 12 / 60, rel=0.12)
    assert again == pytest.approx(2 * prediction)
    assert disagree == pytest.approx(1 / 3, rel=0.05)


def test_two_runs_of_the_same_arm_differ_as_told() -> None:
    """The standard error is that of differences between runs; 95 % lie within 1.96 of it."""
    random = np.random.default_rng(4)
    rates = random.beta(2, 1, 80)
    inside, seen = 0, 0
    for _ in range(60):
        runs = random.random((2, 80, 4)) < rates[:, None]
        cell = noise_table([trials_of({("m", "a"): runs[0]})])[0]
        inside += abs(runs[0].mean() - runs[1].mean()) <= 1.96 * cell.again
        seen += abs(cell.difference) <= 1.96 * cell.difference_se
    assert inside / 60 >= 0.90
    assert seen / 60 >= 0.90


def test_one_trial_measures_nothing_and_two_runs_do() -> None:
    random = np.random.default_rng(5)
    runs = [trials_of({("m", "a"): random.random((40, 1)) < 0.5}) for _ in range(2)]
    runs[1]["raw"] += " again"
    alone = noise_table(runs[:1])[0]
    assert "cannot be measured" in str(alone)
    assert np.isnan(alone.again)
    both = noise_table(runs)
    assert both[0].trials == 80
    assert 0.3 < both[0].disagree < 0.7
    assert "in 19 of 20" in str(both)
    assert len(both.frame()) == 1
    assert "<li>" in both._repr_mimebundle_()["text/html"]


def test_copies_are_no_trials() -> None:
    frame = trials_of({("m", "a"): np.array([[1, 1], [0, 0]])})
    frame["raw"] = frame["case_id"]
    cell = noise_table([frame])[0]
    assert cell.copies
    assert "not asked anew" in str(cell)


def test_answers_that_were_only_read_again_count_once() -> None:
    frame = trials_of({("m", "a"): np.array([[1], [0], [1]])})
    frame = frame.assign(completion_key=frame["case_id"], created="2026-01-01")
    assert noise_table([frame, frame])[0].trials == 3


def test_an_endpoint_that_changed_is_told() -> None:
    table = np.array([[1, 1, 0, 0]] * 30 + [[0, 0, 1, 1]] * 2)
    assert "the endpoint changed" in str(noise_table([trials_of({("m", "a"): table})]))


@pytest.mark.parametrize("same_answers", [True, False])
def test_cases_with_one_question_are_no_more_cases(same_answers: bool) -> None:
    random = np.random.default_rng(9)
    once = trials_of({("m", "a"): random.random((40, 4)) < random.beta(1, 1, 40)[:, None]})
    doubled = noise_table([twice(once, same_answers=same_answers)])
    for name in ("cases", "trials", "rate", "disagree", "total", "again"):
        want = getattr(noise_table([once])[0], name)
        assert getattr(doubled[0], name) == pytest.approx(want), name
    assert "80 cases in all. They count as one case." in str(doubled)
