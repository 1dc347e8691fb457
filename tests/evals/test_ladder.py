"""The ladder: each step against the comparison it stands for."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tests.trial_frames import trials_of, twice
from toolparse_lab.evals.reports.figures import stats
from toolparse_lab.evals.reports.figures.report import Report


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    random = np.random.default_rng(1)
    base = random.random((40, 2))
    shares = {"a": 0.4, "b": 0.6, "c": 0.9, "d": 0.5}
    frame = trials_of({("m", arm): base < share for arm, share in shares.items()})
    helped = random.random(len(frame))
    for name, share in (("repaired", 0.8), ("strict", 0.5)):
        frame[f"score_{name}"] = frame["score_success"] & (helped < share)
    frame["score_safe"] = frame["score_success"]
    return frame


def test_steps_of_reading_add_up_and_are_tested(frame: pd.DataFrame) -> None:
    ladder = Report(frame, by="arm").ladder
    for _, part in ladder.groupby("arm"):
        steps = part[part["gain_low"].notna()]
        assert steps["level"].tolist() == ["repaired", "safe"]
        assert (steps["gain"] >= 0).all()
        assert (steps["gain_low"] <= steps["gain"]).all()
        assert (steps["gain"] <= steps["gain_high"]).all()
        assert steps["p_holm"].tolist() == stats.holm(steps["p"].tolist())


def test_answers_that_nobody_judged_have_no_test() -> None:
    nothing = trials_of({("m", "a"): np.ones((2, 1))}).assign(score_success=None)
    assert Report(nothing).ladder["p"].isna().all()


def test_cases_with_one_question_are_one_cluster(frame: pd.DataFrame) -> None:
    once, doubled = (Report(f).ladder for f in (frame, twice(frame, same_answers=True)))
    for column in ("gain_low", "p"):
        assert once[column].dropna().tolist() == pytest.approx(doubled[column].dropna().tolist())
