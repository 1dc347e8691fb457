"""The further tables of a report: the ladder of help, repeats, what leads without what,
conversations, strictness."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evals.test_report import EVIL, FRAME, make, scored
from tests.laws import examples
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab import parse
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.cases.matchers import STRICTNESS
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.breakdowns import (
    conversations_frame,
    flip_grid_frame,
    leader_sentence,
    sensitivity_frame,
)
from toolparse_lab.evals.reports.figures.cells import groups
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.runner.exchange.types import Completion

RIGHT, WRONG = scored("correct"), scored("wrong_call", "name")


def test_ladder_gains_add_up_to_success() -> None:
    report = Report(FRAME)
    ladder = report.ladder
    for row in report.frame.to_dict("records"):
        mine = ladder[
            (ladder["model"] == row["model"])
            & (ladder["prompt_protocol"] == row["prompt_protocol"])
        ]
        assert mine["level"].tolist() == ["naive", "strict", "repaired", "safe", "middleware"]
        steps = mine[mine["level"] != "naive"]
        if row["n"]:
            assert steps["gain"].sum() == pytest.approx(row["coerced"])
            assert dict(zip(mine["level"], mine["success"], strict=True))["naive"] == row["naive"]
        else:
            assert steps["gain"].isna().all()


def test_the_headline_policy_is_no_step_of_its_own_ladder() -> None:
    only = FRAME[FRAME["policy"] == "safe"]
    assert Report(only).ladder["level"].unique().tolist() == ["naive", "strict", "repaired", "safe"]


def repeated(rights: list[list[bool]], texts: Any = None) -> pd.DataFrame:
    """One arm, a list of successes for each case; `texts` says what was answered."""
    trials = []
    for case, flags in enumerate(rights):
        for n, ok in enumerate(flags):
            trial = make("m", "p", case, n, RIGHT if ok else WRONG)
            raw = f"{case} {n}" if texts is None else texts
            completion = replace(trial.completion, raw=raw)  # type: ignore[type-var]
            trials.append(replace(trial, completion=completion))
    return trials_frame(trials)


def test_columns_of_many_values_are_no_other_s_groups() -> None:
    # The product of the numbers of values of six columns is 2 ** 66.
    n = 2**11
    frame = pd.DataFrame({name: [f"{i}" for i in range(n)] for name in "abcdef"})
    assert len(list(groups(pd.concat([frame, frame]), "abcdef"))) == n


def test_copies_of_one_answer_give_no_pass_at_k() -> None:
    row = Report(repeated([[True, True], [False, False]], texts="the same")).frame.iloc[0]
    assert row["k"] == 2
    assert math.isnan(row["pass_at_k"])
    assert row["distinct"] == 0.5


def test_a_cell_that_pools_arms_has_no_repeats() -> None:
    pooled = Report(FRAME, by="category").frame.iloc[0]
    assert pooled["k"] == 1
    assert math.isnan(pooled["pass_at_k"])


# leaving one out


def two_models() -> pd.DataFrame:
    """Arm x is right for m1 alone, arm y for half of everything."""
    trials = []
    for case in range(8):
        trials += [
            make("m1", "x", case, 0, RIGHT),
            make("m2", "x", case, 0, RIGHT if case < 2 else WRONG),
        ]
        trials += [make(m, "y", case, 0, RIGHT if case % 2 else WRONG) for m in ("m1", "m2")]
    return trials_frame(trials)


def test_leave_one_out() -> None:
    report = Report(two_models())
    assert report.left_out_columns == ("prompt_protocol", "model")
    found = {(r["prompt_protocol"], r["left_out"]): r for r in report.left_out.to_dict("records")}
    assert [found["x", "nothing"][c] for c in ("n", "success", "change", "rank")] == [
        16,
        0.625,
        0.0,
        1,
    ]
    assert [found["x", "m1"][c] for c in ("n", "success", "change", "rank")] == [8, 0.25, -0.375, 2]
    assert found["y", "m1"]["rank"] == 1
    said = leader_sentence(report.left_out, "prompt_protocol", "model")
    assert said == "x leads over all, but not without m1."
    assert leader_sentence(
        Report(two_models()).leave_one_out("model", "prompt_protocol"), "model", "prompt_protocol"
    )
    with pytest.raises(BadOptions, match="what is ranked"):
        report.leave_one_out("model", "model")
    with pytest.raises(BadOptions, match="no such column"):
        report.leave_one_out("model", "speed")


def test_a_rate_that_is_not_known_has_no_rank() -> None:
    report = Report(FRAME)
    assert report.left_out["rank"].isna().any()
    for shown in (report.markdown(), report.text(200), report.html()):
        assert "NA>" not in shown
        assert "NA&gt;" not in shown


def test_nothing_to_leave_out() -> None:
    report = Report(trials_frame([make("m", "p", 0, 0, RIGHT)]))
    assert report.left_out_columns is None
    with pytest.raises(BadOptions, match="nothing can be left out"):
        _ = report.left_out


# the best of many


def arms(*rights: int, cases: int = 40) -> pd.DataFrame:
    """Arms a, b, c, … which are right on the first so many cases."""
    return trials_frame(
        [
            make("m", "abcdef"[i], c, 0, RIGHT if c < n else WRONG)
            for i, n in enumerate(rights)
            for c in range(cases)
        ]
    )


@every_case
def test_best_of_many(rights: list[int], said: str) -> None:
    told = [w for w in Report(arms(*rights)).warnings if "best of" in w]
    assert told == [] if not said else told[0].startswith(said)


# conversations


def test_conversations() -> None:
    frame = FRAME.copy()
    frame.loc[
        frame["prompt_protocol"] == "hermes", ["n_turns", "n_ran", "n_failed", "n_rejected"]
    ] = [2, 1, 1, 0]
    some = (
        (frame["prompt_protocol"] == "hermes")
        & (frame["model"] == "m1")
        & (frame["case_id"] == "case-0")
    )
    frame["stop"] = frame["stop"].astype(object)
    frame.loc[frame["n_turns"].notna(), "stop"] = "answered"
    frame.loc[some, "stop"] = "max_turns"
    frame.loc[frame["n_turns"].notna(), "conversation_tokens"] = 100
    frame.loc[frame["n_turns"].notna(), "conversation_cost"] = 2.0
    frame.loc[some, "score_answer"] = [True, False, True, False]
    found = conversations_frame(frame, ["model", "prompt_protocol"], "safe").set_index("model")
    assert found.index.tolist() == ["m1", EVIL]
    row = found.loc["m1"]
    assert (row["n"], row["turns_mean"], row["n_answer"], row["answer"]) == (10, 2, 2, 0.5)
    assert row["stops"] == "answered 8, max_turns 2"
    assert (row["ran"], row["failed"], row["rejected"]) == (10, 10, 0)
    assert (row["tokens_mean"], row["cost"], row["cost_per_answer"]) == (100, 20, 20)
    cell = Report(frame).frame.iloc[0]
    assert (cell["n_answer"], cell["answer"]) == (2, 0.5)
    assert cell["cost"] == 20, "a conversation costs what all its turns cost"
    assert "max_turns 2" in Report(frame).html()
    assert conversations_frame(FRAME, ["model"], "safe").empty


# strictness of comparison

TOOL = tool_specs([tool_named("buy", what="string", price="number")])


def bought(case: str, what: str, price: float, arm: str = "hermes", target: Any = "one") -> Trial:
    raw = f'<tool_call>{{"name": "buy", "arguments": {{"what": "{what}", "price": {price!r}}}}}</tool_call>'
    wanted = (
        [{"name": "buy", "arguments": {"what": "Green Tea", "price": 1.5}}]
        if target == "one"
        else target
    )
    completion = Completion(key=case, raw=raw, finish_reason="stop")
    return Trial.of(
        Case(case, "?", TOOL, wanted), completion, parse(raw, "hermes", TOOL), model="m", arm=arm
    )


TRIALS = [
    bought("a", "Green Tea", 1.5),
    bought("b", "green tea", 1.5),
    bought("c", "green-tea", 1.5),
    bought("d", "Green Tea", 1.50000001),
    bought("e", "Black Tea", 2.0),
    bought("f", "Green Tea", 1.5, target=[]),
    bought("g", "Green Tea", 1.5, target=None),
]


def test_each_level_lets_more_pass() -> None:
    frame = sensitivity_frame(trials_frame(TRIALS), ["model"], "safe")
    assert frame["matching"].tolist() == list(STRICTNESS)
    assert frame["success"].tolist() == pytest.approx([1 / 6, 2 / 6, 3 / 6, 4 / 6, 5 / 6])
    assert frame["n"].tolist() == [6] * 5
    assert frame["gain"].tolist() == pytest.approx([0, 1 / 6, 2 / 6, 3 / 6, 4 / 6])
    assert (frame["ci_low"] <= frame["success"]).all()


def test_a_report_shows_it_where_the_frame_has_it() -> None:
    frame = trials_frame(TRIALS)
    report = Report(frame)
    assert len(report.sensitivity) == 5
    assert "How strict the comparison is" in report.html()
    assert "83 %" in report.markdown()
    older = Report(frame.drop(columns="matching"))
    assert older.sensitivity.empty
    assert "How strict the comparison is" not in older.html()


# The cases that flip between the cells of a report.


def name_of(keys: Any) -> str:
    return " · ".join(map(str, keys.values()))


def frame_of(rows: list[tuple[str, str, bool | None]]) -> pd.DataFrame:
    return pd.DataFrame(
        [{"case_id": case, "arm": arm, "score_success": success} for case, arm, success in rows],
        columns=["case_id", "arm", "score_success"],
    )


def test_a_case_flips_where_most_trials_differ() -> None:
    rows = [
        *(("both", arm, True) for arm in "ab"),
        *(("none", arm, False) for arm in "ab"),
        ("flip", "a", True),
        ("flip", "b", False),
        *(("mostly", "a", success) for success in (True, True, False)),
        ("mostly", "b", False),
        *(("even", "a", success) for success in (True, False)),
        ("even", "b", False),
        ("unjudged", "a", True),
        ("unjudged", "b", None),
    ]
    grid = flip_grid_frame(frame_of(rows), ["arm"], name_of)
    assert grid["case_id"].tolist() == ["flip", "mostly"]
    assert grid.to_dict("records")[1] == {"case_id": "mostly", "a": pytest.approx(2 / 3), "b": 0}


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.tuples(st.sampled_from("cde"), st.sampled_from("ab"), st.booleans())))
def test_only_cases_with_both_ends_flip(rows: list[tuple[str, str, bool]]) -> None:
    grid = flip_grid_frame(frame_of([*rows]), ["arm"], name_of)
    for row in grid.drop(columns="case_id").to_dict("records"):
        shares = [share for share in row.values() if share == share]
        assert max(shares) > 0.5 > min(shares)
