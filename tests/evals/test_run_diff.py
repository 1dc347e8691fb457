from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import toolparse_lab as tp
from benchmarks.intervals import equal_arms
from tests.evals.test_report import make, scored
from tests.tables import every_case
from toolparse_lab.core.errors import BadOptions, GateFailed
from toolparse_lab.evals.cases.matchers import STRICTNESS
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.comparison import compare_arms, compare_runs
from toolparse_lab.evals.reports.figures.differences import mcnemar_exact
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.pages.html import read_row

RIGHT, WRONG = scored("correct"), scored("wrong_call", "name")


def frame(
    run_id: str, right: dict[int, bool | None], arm: str = "hermes", model: str = "m"
) -> pd.DataFrame:
    """A run of one arm: case number -> success, None for what was asked and is not recorded."""
    trials = [
        make(model, arm, c, score=None if ok is None else RIGHT if ok else WRONG)
        for c, ok in right.items()
    ]
    made = trials_frame(trials)
    made["run_id"] = pd.Categorical([run_id] * len(made))
    return made


OLD = frame("old", dict.fromkeys(range(12), True))
WORSE = frame("new", {c: c < 2 for c in range(12)})


def test_flips_and_figures() -> None:
    found = compare_runs(OLD, WORSE)
    row = found.frame.iloc[0]
    assert (found.a, found.b, found.on) == ("old", "new", "run")
    assert (row["model"], row["arm"], row["n_cases"]) == ("m", "hermes", 12)
    assert row["difference"] == pytest.approx(2 / 12 - 1)
    assert (row["only_a"], row["only_b"]) == (10, 0)
    assert row["p"] == pytest.approx(mcnemar_exact(10, 0))
    assert found.flips["case_id"].tolist() == [f"case-{c}" for c in range(2, 12)]
    assert set(found.flips["direction"]) == {"lost"}
    with pytest.raises(BadOptions, match="knows rows, not trials"):
        found.flip(0)


def test_cases_of_one_run_alone_are_listed_and_in_no_figure() -> None:
    found = compare_runs(OLD, frame("new", {0: True, 1: None, 99: False}))
    assert found.frame.iloc[0]["n_cases"] == 1
    assert found.frame.iloc[0]["success_b"] == 1
    told = {(r["case_id"], r["judged_in"], r["reason"]) for r in found.unpaired.to_dict("records")}
    assert ("case-1", "old", "not judged in new") in told
    assert ("case-2", "old", "not asked in new") in told
    assert ("case-99", "new", "not asked in old") in told
    assert len(told) == 12
    assert any("11 cases judged under old alone are in no figure" in n for n in found.notes)


def test_what_the_runs_differ_in_is_not_held_fixed() -> None:
    found = compare_runs(OLD, frame("new", dict.fromkeys(range(12), True), arm="morph_xml"))
    assert found.frame.iloc[0]["n_cases"] == 12
    assert "arm" not in found.frame
    assert any(
        "differ in arm: hermes in the first, morph_xml in the second" in n for n in found.notes
    )
    both = pd.concat([OLD, frame("old", {0: True}, arm="gemma")], ignore_index=True)
    with pytest.raises(BadOptions, match="no model and arm in common"):
        compare_runs(both, frame("new", {0: True}, arm="morph_xml"))
    assert (
        compare_runs(both, frame("new", {0: True}, arm="morph_xml"), within="model").frame.iloc[0][
            "n_cases"
        ]
        == 1
    )


def test_one_run_read_twice_has_two_names() -> None:
    found = compare_runs(OLD, OLD)
    assert (found.a, found.b) == ("old first", "old second")
    assert found.frame.iloc[0]["difference"] == 0
    assert found.flips.empty


MANY = range(40)


@every_case
def test_regression(old: list[list[Any]], new: list[list[Any]], ok: bool, verdict: str) -> None:
    """Of each run the cases from the first to the last number, and whether they succeeded."""
    both = (
        frame(name, {c: right for first, last, right in run for c in range(first, last)})
        for name, run in (("old", old), ("new", new))
    )
    found = compare_runs(*both).regression()
    assert bool(found) is ok
    assert found.frame["verdict"].tolist() == [verdict]
    if ok:
        found.raise_()
        assert str(found).startswith(("not worse than 5 points", "nothing changed"))
    else:
        with pytest.raises(GateFailed, match="m · hermes"):
            found.raise_()


def test_confident_takes_no_unchanged_run_for_a_proof() -> None:
    found = compare_runs(
        frame("old", dict.fromkeys(MANY, True)), frame("new", dict.fromkeys(MANY, True))
    )
    assert found.regression()
    told = found.regression(confident=True)
    assert not told
    assert "they could have shown a drop of 15 points or more" in str(told)
    assert found.regression(confident=True, margin=0.1)


def test_edited_cases_are_named() -> None:
    edited = OLD.copy()
    edited["target"] = edited["target"].astype(object)
    edited.loc[edited["case_id"] == "case-3", "target"] = "[another]"
    found = compare_runs(OLD, edited.assign(run_id="new"))
    assert found.edited.to_dict("records") == [{"case_id": "case-3", "column": "target"}]
    assert "Not the same question: new has another target in 1 case: case-3." in found.notes
    assert "1 case edited" in str(found.regression())


def test_missing_trials_are_told_with_their_reasons() -> None:
    lacking = frame("new", {c: None if c < 4 else True for c in range(12)})
    found = compare_runs(OLD, lacking)
    row = found.frame.iloc[0]
    assert (row["missing_a"], row["missing_b"], row["n_a"], row["n_b"]) == (0, 4, 8, 8)
    assert any(note.startswith("4 trials are missing under new (") for note in found.notes)


def test_a_cluster_column() -> None:
    old, new = (f.assign(session=[f"s{c // 2}" for c in range(12)]) for f in (OLD, WORSE))
    alone, held = compare_runs(old, new), compare_runs(old, new, cluster="session")
    assert held.frame["difference"].equals(alone.frame["difference"])
    assert held.frame["p"].iloc[0] == pytest.approx(mcnemar_exact(5, 0))
    assert "Intervals and p go by session instead of by case." in held.notes
    with pytest.raises(BadOptions, match="no such column to cluster by"):
        compare_runs(old, new, cluster="conversation")
    with pytest.raises(BadOptions, match="in one cluster only"):
        compare_runs(old, new.assign(session="s0"), cluster="session")
    with pytest.raises(BadOptions, match="with another one"):
        compare_arms(old, "hermes", "hermes")


def test_regression_with_a_margin_and_with_bad_values() -> None:
    found = compare_runs(
        frame("old", dict.fromkeys(MANY, True)), frame("new", {c: c >= 10 for c in MANY})
    )
    assert not found.regression(margin=0.3), "the drop may be larger than that"
    assert found.regression(margin=0.5)
    for bad in ({"alpha": 1}, {"alpha": -0.1}, {"margin": True}, {"margin": math.inf}):
        with pytest.raises(BadOptions):
            found.regression(**bad)


def test_an_arm_that_is_gone_is_a_regression_and_a_new_one_is_none() -> None:
    more = pd.concat([OLD, frame("old", {0: True}, arm="gemma")], ignore_index=True)
    gone = compare_runs(more, OLD.assign(run_id="new")).regression()
    assert not gone
    assert "gemma: not judged, 1 case of old has no counterpart" in str(gone)
    new = compare_runs(OLD.assign(run_id="before"), more).regression()
    assert new
    assert any("before has no case of it" in sentence for sentence in new.sentences)


# through the lab, on the shipped recording


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("diff") / "runs.db"
    with tp.Lab(path).replaying(tp.example_recording()) as made:
        yield made


def recorded(lab: Any, protocols: list[str], cases: int) -> Any:
    models = {"small": tp.Model("toolparse-local/smollm2-135m")}
    plan = lab.plan(
        tp.example_cases()[:cases],
        models,
        protocols,
        decoding=["free", "grammar"],
        wording="brief",
        max_tokens=128,
    )
    return lab.run(plan, progress=False)


@pytest.fixture(scope="module")
def run(lab: Any) -> Any:
    return recorded(lab, ["hermes", "morph_xml"], 84)


@pytest.mark.slow
def test_two_runs_of_a_lab(lab: Any) -> None:
    old, new = recorded(lab, ["hermes", "morph_xml"], 20), recorded(lab, ["hermes"], 24)
    found = lab.diff(old, new)
    assert (found.a, found.b) == (old.run_id, new.run_id)
    assert found.frame.groupby("arm")["n_cases"].sum().to_dict() == {
        "hermes free": 20, "hermes grammar": 20, "morph_xml free": 0, "morph_xml grammar": 0,
    }  # fmt: skip
    assert found.flips.empty
    assert len(found.unpaired[found.unpaired["judged_in"] == new.run_id]) == 8
    assert lab.diff(old.run_id, new.run_id).frame.equals(found.frame)
    assert not found.regression(), "two arms are gone"


@pytest.mark.slow
def test_flips_open_their_trials(run: Any) -> None:
    found = run.compare("hermes free", "hermes grammar")
    assert len(found.flips) > 5
    flip = found.flip(0)
    assert flip.case_id == found.flips["case_id"].iloc[0]
    assert (flip.a.arm, flip.b.arm) == ("hermes free", "hermes grammar")
    assert flip.a.outcome == found.flips["outcome_a"].iloc[0]
    assert found.flip(flip.case_id).b.trial_id == flip.b.trial_id
    assert flip.b.result.raw[:20] in flip.b.completion.raw
    assert flip.case_id in flip._repr_html_()
    assert "a: " in str(flip)
    assert run.trial(flip.a.trial_id).trial_id == flip.a.trial_id
    for wrong in (len(found.flips), "no such case", True):
        with pytest.raises(BadOptions, match="no such flip"):
            found.flip(wrong)
    with pytest.raises(BadOptions, match="no such trial"):
        run.trial("nope")


def test_arms_that_are_pooled_are_no_repetitions(run: Any) -> None:
    found = run.compare("hermes", "morph_xml")
    row = found.frame.iloc[0]
    assert row["n_cases"] == 84
    assert any(
        "Several arms are counted together under hermes and morph_xml" in n for n in found.notes
    )
    assert "\N{REPLACEMENT CHARACTER}" not in str(found)
    assert "trial of hermes" in str(found)
    assert "outcome a" not in str(found)


def test_a_report_by_other_matchers(run: Any) -> None:
    strict, loose = run.report(), run.report(matchers=STRICTNESS["any value"])
    wanted = strict.sensitivity[strict.sensitivity["matching"] == "any value"]
    assert loose.frame["success"].tolist() == wanted["success"].tolist()
    assert (loose.frame["success"] > strict.frame["success"]).all()
    flips = loose.compare("hermes free", "hermes grammar")
    assert {flips.flip(0).a.outcome, flips.flip(0).b.outcome} == set(
        flips.flips.iloc[0][["outcome_a", "outcome_b"]]
    )
    assert run.report().frame["success"].tolist() == strict.frame["success"].tolist(), (
        "nothing is left behind"
    )


def test_answers_of_a_report_are_the_ones_that_were_scored(run: Any) -> None:
    """The parse view of a page is made from the frame's row; it must be what the run itself
    read."""
    read = {t.trial_id: t for t in run.trials()}
    rows = run.frame().to_dict("records")
    assert len(rows) == 336
    for row in rows:
        assert read_row(row) == read[row["trial_id"]].result
    page = run.report().html(page=True)
    assert page.count('class="stack trial"') > 20
    assert "<script" not in page


def arms_of(seed: int, arms: int = 18, cases: int = 60) -> pd.DataFrame:
    """Arms that are alike."""
    return equal_arms(np.random.default_rng(seed), arms, cases)


def test_a_pair_among_many_is_held_to_all_pairs() -> None:
    frame = arms_of(3)
    rates = frame.groupby("arm")["score_success"].mean()
    a, b = str(rates.idxmax()), str(rates.idxmin())
    alone, picked = (compare_arms(frame, a, b, within=None, pairs=n) for n in (1, None))
    assert alone.frame["p_holm"][0] == alone.frame["p"][0] <= 0.05
    row = picked.frame.iloc[0]
    assert picked.pairs == 153
    assert row["p_holm"] == 1
    assert row["ci_low"] < 0 < row["ci_high"]
    assert row["smallest"] > alone.frame["smallest"][0]
    assert "one of 153 pairs" in str(picked)
    assert "pairs=1" in picked.notes[0]
    (chance,) = alone.notes
    assert chance.startswith("Equal arms differ by up to ")
    # With one trial a case: as many coins as cases changed.
    changed, n_cases = alone.frame["changed"][0], alone.frame["n_cases"][0]
    assert alone.frame["by_chance"][0] == pytest.approx(1.96 * changed**0.5 / n_cases, rel=1e-3)
    assert compare_arms(arms_of(3, arms=2), "arm0", "arm1", within=None).pairs == 1
    with pytest.raises(BadOptions, match="pairs is how many"):
        compare_arms(frame, a, b, pairs=0)


def test_one_question_under_several_ids_is_one_cluster() -> None:
    frame = arms_of(1, arms=2, cases=40).assign(model="m", prompt_protocol="hermes")
    frame["input"] = frame["case_id"].map(lambda case: f"question {case}")
    once = compare_arms(frame, "arm0", "arm1")
    copies = [frame.assign(case_id=[f"{c}-{n}" for c in frame["case_id"]]) for n in range(3)]
    thrice = pd.concat(copies, ignore_index=True).assign(trial_id=range(3 * len(frame)))
    found = compare_arms(thrice, "arm0", "arm1")
    assert found.frame["n_cases"][0] == 120
    for figure in ("p", "ci_low", "ci_high"):
        assert found.frame[figure][0] == pytest.approx(once.frame[figure][0])
    said = "40 questions are asked by several cases (the same input, tools and target"
    assert any(note.startswith(said) for note in found.notes)
    report, single = (Report(rows, by="arm") for rows in (thrice, frame))
    assert any(note.startswith(said) for note in report.notes)
    assert not any("asked by several" in note for note in single.notes)
    for end in ("ci_low", "ci_high"):
        assert report.frame[end].tolist() == pytest.approx(single.frame[end].tolist())
    # Cases of which the question is not known are like no others.
    unknown = compare_arms(thrice.assign(input=None), "arm0", "arm1")
    assert not any("asked by several" in note for note in unknown.notes)
