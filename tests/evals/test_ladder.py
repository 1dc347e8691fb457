"""The ladder: each step against the comparison it stands for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.recorded import recorded_run
from tests.trial_frames import trials_of, twice
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.evals.reports.figures import stats
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.ladder import ladder_table, only_difference
from toolparse_lab.evals.reports.figures.report import Report

ARMS = {
    "a": {"prompt_protocol": "hermes", "few_shot": 0, "decoding": "free", "max_turns": 1},
    "b": {"prompt_protocol": "hermes", "few_shot": 2, "decoding": "free", "max_turns": 1},
    "c": {"prompt_protocol": "hermes", "few_shot": 2, "decoding": "grammar", "max_turns": 1},
    "d": {"prompt_protocol": "gemma", "few_shot": 0, "decoding": "grammar", "max_turns": 1},
}


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


def test_steps_of_asking_are_paired_comparisons(frame: pd.DataFrame) -> None:
    ladder = ladder_table(frame, ARMS)
    asking = ladder.frame[ladder.frame["arm"] == ""]
    assert asking["layer"].tolist() == ["prompt (few_shot)", "decoding (decoding)"]
    for row in asking.to_dict("records"):
        lower, higher = row["lower"], row["higher"]
        want = compare_arms(frame, lower, higher, on="arm").frame.iloc[0]
        assert row["gain"] == pytest.approx(want["difference"])
        assert row["p"] == pytest.approx(want["p"])
        assert row["gain_low"] <= row["gain"] <= row["gain_high"]
        assert row["gain"] == pytest.approx(row["after"] - row["before"])
    assert asking["p_holm"].tolist() == stats.holm(asking["p"].tolist())
    assert "prompt (few_shot), a → b" in str(ladder)
    assert "interval" in ladder.markdown()
    assert "<li>" in ladder._repr_mimebundle_()["text/html"]


def test_steps_of_reading_add_up_and_are_tested(frame: pd.DataFrame) -> None:
    reading = ladder_table(frame).frame
    assert set(reading["layer"]) == {"repair", "lossless coercion"}
    assert (reading["gain"] >= 0).all()
    report = Report(frame, by="arm")
    for arm, part in report.ladder.groupby("arm"):
        steps = part[part["gain_low"].notna()]
        assert steps["level"].tolist() == ["repaired", "safe"]
        mine = reading[reading["arm"] == arm]
        assert steps["gain"].tolist() == pytest.approx(mine["gain"].tolist())
        assert steps["p"].tolist() == pytest.approx(mine["p"].tolist())


def test_feedback_is_judged_by_the_end(frame: pd.DataFrame) -> None:
    arms = {"a": {"max_turns": 2}, "b": {"max_turns": 4}}
    ends = frame.assign(score_answer=frame["arm"] == "b")
    row = ladder_table(ends, arms).frame.query("arm == ''").iloc[0]
    assert row["layer"] == "feedback (max_turns)"
    assert row["gain"] == 1
    nobody = ladder_table(frame.assign(score_answer=None), arms)
    assert "no case was judged in both" in str(nobody)


def test_frames_without_answers_and_wrong_ones() -> None:
    nothing = trials_of({("m", "a"): np.ones((2, 1))}).assign(score_success=None)
    assert ladder_table(nothing.head(0)).frame.empty
    assert Report(nothing).ladder["p"].isna().all()
    with pytest.raises(BadOptions, match="trials frame"):
        ladder_table(pd.DataFrame({"a": [1]}))
    assert only_difference({"x": 1, "y": 1}, {"x": 2, "y": 2}) is None


def test_runs_have_it(tmp_path: Any) -> None:
    run = recorded_run(tmp_path)
    assert {"repair", "lossless coercion"} <= set(run.ladder().frame["layer"])


def test_cases_with_one_question_are_one_cluster(frame: pd.DataFrame) -> None:
    once, doubled = (ladder_table(f, ARMS) for f in (frame, twice(frame, same_answers=True)))
    assert doubled.frame["n_cases"].eq(2 * once.frame["n_cases"]).all()
    for column in ("gain", "p", "p_holm"):
        assert doubled.frame[column].tolist() == pytest.approx(once.frame[column].tolist())
    assert doubled.frame["gain_low"].tolist() == pytest.approx(once.frame["gain_low"].tolist())
    assert "80 cases in all. Intervals and p take them as one." in str(doubled)
    assert doubled.note in doubled.markdown()
    of_reports = [Report(f).ladder for f in (frame, twice(frame, same_answers=True))]
    low = [cells["gain_low"].dropna().tolist() for cells in of_reports]
    assert low[0] == pytest.approx(low[1])
