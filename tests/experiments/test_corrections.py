"""Corrections of a plan: refused calls are asked about again, recorded as any other turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tools import tool_named
from toolparse_lab.core.errors import BadPlan
from toolparse_lab.core.values import write_canonical
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.experiments.arms import arms_of
from toolparse_lab.experiments.run import Run
from toolparse_lab.middleware.flow import Conversation
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.store.recording import export_recording

TOOL = tool_named("double", required=["n"], n="integer")
MODELS = {"m": tp.Model("openai/m", price=(1, 1), max_retries=0)}
# What the model writes for n at first, and what it corrects each refused value to.
FIRST = {1: 1, 2: "two", 3: "three", 4: "four", 5: "five", 6: "6"}
CORRECTED = {"two": '{"n": 2}', "three": '{"n": "trois"}', "trois": '{"n": 3}',
             "four": '{"n": 5}', "five": "I cannot.", "7": '{"n": 8}'}  # fmt: skip


def cases(*numbers: int) -> list[dict[str, Any]]:
    return [
        {"id": f"c{n}", "input": f"Double {n}.", "tools": [TOOL],
         "target": [{"name": "double", "arguments": {"n": n}}]}
        for n in numbers or FIRST
    ]  # fmt: skip


class Model:
    """Calls the tool as in FIRST, and corrects itself as in CORRECTED.

    With type rules in its prompt it knows 2.
    """

    def __init__(self) -> None:
        self.first: dict[int, Any] = dict(FIRST)
        self.asked: Counter[str] = Counter()
        self.requests: list[Request] = []
        self.dead = False

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.key] += 1
        self.requests.append(request)
        base = Completion(
            key=request.key, request=request.to_dict(), finish_reason="stop", prompt_tokens=100,
            completion_tokens=10, cost=0.01, created="2026-01-01",
        )  # fmt: skip
        last = str(request.messages[-1]["content"])
        if "was refused" in last:
            if self.dead:
                return replace(base, status="error", error_kind="connection", error_message="gone")
            sent = last.split("Arguments that were sent:")[1].split("Schema")[0]
            return replace(base, raw=next(new for old, new in CORRECTED.items() if old in sent))
        if "Double" not in last:
            return replace(base, raw="Done.")
        n = int("".join(c for c in last if c.isdigit()))
        with_rules = "An integer has no quotes" in str(request.messages[0]["content"])
        body = {"name": "double", "arguments": {"n": 2 if with_rules and n == 2 else self.first[n]}}
        if request.tools:
            call = {"id": "x", "type": "function", "function": {
                **body, "arguments": write_canonical(body["arguments"])}}  # fmt: skip
            raw = write_canonical({"content": None, "tool_calls": [call]})
            return replace(base, raw=raw, endpoint_kind="native_tools")
        return replace(base, raw=f"<tool_call>{write_canonical(body)}</tool_call>")


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def lab(tmp_path: Path, model: Model) -> Iterator[tp.Lab]:
    with tp.Lab(tmp_path / "runs.db") as lab:
        lab._session.complete = model
        yield lab


def talk(trial: Trial) -> Conversation:
    assert trial.conversation is not None
    return trial.conversation


def of_arm(run: Run, arm: str, column: str) -> list[Any]:
    frame = run.frame()
    return list(frame[frame["arm"] == arm][column])


def test_refused_calls_are_asked_about_again(lab: tp.Lab, model: Model) -> None:
    run = lab.run(lab.plan(cases(), MODELS, "hermes", corrections=[0, 1, 2]), progress=False)
    # 6 first questions, 4 corrections that both arms share, and the second one of c3.
    assert run.summary is not None
    assert run.summary.calls == 11
    assert set(model.asked.values()) == {1}
    ends = {
        arm: of_arm(run, arm, "score_corrected")
        for arm in ("hermes corrections=1", "hermes corrections=2")
    }
    assert ends["hermes corrections=1"] == [True, True, False, False, False, True]
    assert ends["hermes corrections=2"] == [True, True, True, False, False, True]
    assert of_arm(run, "hermes corrections=2", "n_corrections") == [0, 1, 2, 1, 1, 0]
    assert of_arm(run, "hermes corrections=2", "conversation_tokens") == [
        110, 220, 330, 220, 220, 110,
    ]  # fmt: skip
    stops = ["accepted", "accepted", "refused", "accepted", "refused", "accepted"]
    assert of_arm(run, "hermes corrections=1", "stop") == stops
    # The first answer decides the outcome, under every level.
    for arm in ("hermes corrections=0", "hermes corrections=2"):
        assert of_arm(run, arm, "score_success") == [True, False, False, False, False, True]
    plain = run.frame()
    assert plain[plain["arm"] == "hermes corrections=0"]["score_corrected"].isna().all()
    assert run.missing == 0


def test_a_correction_shows_the_call_and_the_error(lab: tp.Lab, model: Model) -> None:
    run = lab.run(lab.plan(cases(2), MODELS, "hermes", corrections=1), progress=False)
    first, second = model.requests
    assert second.messages[: len(first.messages)] == first.messages
    answer, question = second.messages[len(first.messages) :]
    assert answer["role"] == "assistant"
    assert '"two"' in str(answer["content"])
    assert "The call of double was refused." in str(question["content"])
    assert "/n" in str(question["content"])
    assert (second.tools, second.trial) == ((), first.trial)
    trial = run.trials()[0]
    assert talk(trial).turns[1].corrects == "call_1_1"
    assert "correction of call_1_1" in str(talk(trial))
    # As any other turn, it is part of the recorded run.
    record = lab.store.run(run.run_id)
    assert (record.status, record.items, record.done) == ("complete", 2, 2)


def test_one_ladder_has_three_layers(lab: tp.Lab) -> None:
    plan = lab.plan(cases(), MODELS, "hermes", type_rules=[False, True], corrections=[0, 2])
    report = lab.run(plan, progress=False).report()
    ladder = report.ladder[report.ladder["arm"] == "hermes corrections=2 type-rules"]
    rungs = ladder[ladder["level"] != "naive"].set_index("level")
    # As written c1; with rules c2 as well; coercion reads c6; corrections bring c3.
    want = {
        "plain": ("", 1), "strict": ("prompt", 2), "repaired": ("reading", 2),
        "safe": ("reading", 3), "middleware": ("reading", 3), "corrected": ("feedback", 4),
    }  # fmt: skip
    assert list(rungs["layer"].items()) == [(level, layer) for level, (layer, _) in want.items()]
    assert rungs["success"].tolist() == pytest.approx([n / 6 for _, n in want.values()])
    steps = rungs[rungs["layer"] != ""]
    assert steps["gain"].tolist() == pytest.approx([1 / 6, 0, 1 / 6, 0, 1 / 6])
    assert steps["n_cases"].tolist() == [6] * 5
    assert steps["p"].tolist() == [1.0] * 5  # one case that changes can be chance
    assert (steps["gain_low"] <= steps["gain"]).all()
    assert (steps["gain"] <= steps["gain_high"]).all()
    # Without rules two cases are corrected, and one that changes is c2.
    plain = report.ladder[report.ladder["arm"] == "hermes corrections=2 no-rules"]
    row = plain.set_index("level").loc["corrected"]
    assert (row["success"], row["gain"], row["p"]) == pytest.approx((4 / 6, 2 / 6, 0.5))
    for text in (str(report), report.markdown(), report.html()):
        assert "layer by layer" in text.lower()
        assert "feedback" in text


def test_a_layer_without_its_arms_is_left_out_and_said(lab: tp.Lab) -> None:
    corrected = lab.run(lab.plan(cases(), MODELS, "hermes", corrections=2), progress=False).report()
    assert set(corrected.ladder["layer"]) == {"", "reading", "feedback"}
    for text in (str(corrected), corrected.markdown(), corrected.html()):
        assert "the layer of the prompt is left out" in text
    neither = lab.run(lab.plan(cases(), MODELS, "hermes"), progress=False).report()
    assert set(neither.ladder["layer"]) == {"", "reading"}
    assert "the layer of feedback is left out" in neither.html()
    assert "Layer by layer" not in neither.html()


def test_a_tool_that_refuses_is_asked_about_and_runs_once(
    lab: tp.Lab, model: Model, tmp_path: Path
) -> None:
    ran: list[int] = []

    def double(n: int) -> int:
        ran.append(n)
        if n == 7:
            raise ValueError("7 is too odd")
        return 2 * n

    model.first[8] = 7
    plan = lab.plan(cases(1, 8), MODELS, "hermes", corrections=[1, 2], runnable={"double": double})
    run = lab.run(plan, progress=False)
    assert sorted(ran) == [1, 7, 8]  # once for both arms
    trial = next(t for t in run.trials() if t.case_id == "c8")
    assert talk(trial).stop == "accepted"
    assert [(r.status, r.result.content) for r in talk(trial).runs] == [("ran", 16)]
    assert trial.score is not None
    assert (trial.score.success, trial.score.corrected) == (False, True)
    assert "ValueError: 7 is too odd" in str(model.requests[-1].messages[-1]["content"])

    export_recording(lab.store, tmp_path / "r.jsonl", run_id=run.run_id)
    with tp.Lab(tmp_path / "other.db").replaying(tmp_path / "r.jsonl") as other:
        again = other.run(
            other.plan(cases(1, 8), MODELS, "hermes", corrections=[1, 2]), progress=False
        )
        columns = ["score_corrected", "stop", "n_corrections", "n_ran"]
        assert again.frame()[columns].equals(run.frame()[columns])
    assert len(ran) == 3


def test_a_conversation_goes_on_with_the_corrected_call(lab: tp.Lab, model: Model) -> None:
    settings: dict[str, Any] = {"max_turns": 3, "runnable": {"double": lambda n: {"sum": 2 * n}}}
    run = lab.run(
        lab.plan(cases(2, 5), MODELS, "hermes", corrections=1, **settings), progress=False
    )
    mended, refused = run.trials()
    assert (talk(mended).stop, talk(mended).answer) == ("answered", "Done.")
    assert [r.status for r in talk(mended).runs] == ["ran"]
    call = next(m for m in talk(mended).messages if m.get("tool_calls"))["tool_calls"][0]
    assert call["function"]["arguments"] == '{"n":2}'
    # What stays refused is told as the model wrote it.
    assert [r.status for r in talk(refused).runs] == ["rejected"]
    assert run.frame()["n_turns"].tolist() == [3, 3]


def test_native_calls_are_corrected_too(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(cases(2, 3), MODELS, "native", corrections=1), progress=False)
    assert run.frame()["score_corrected"].tolist() == [True, False]


@pytest.mark.parametrize("calls", [1, 6, 7, 9, 10])
def test_a_run_that_was_cut_off_goes_on_and_asks_nothing_twice(
    lab: tp.Lab, model: Model, calls: int
) -> None:
    plan = lab.plan(cases(), MODELS, "hermes", corrections=2)
    cut = lab.run(plan, progress=False, max_calls=calls)
    assert cut.missing > 0
    open_ones = [t for t in cut.trials() if t.conversation and talk(t).stop == "not_asked"]
    assert all(t.score is None or t.score.corrected is None for t in open_ones)
    whole = lab.run(plan, progress=False)
    assert (sum(model.asked.values()), whole.missing) == (11, 0)
    assert whole.frame()["score_corrected"].tolist() == [True, True, True, False, False, True]


def test_a_correction_that_the_provider_failed_is_asked_again(lab: tp.Lab, model: Model) -> None:
    plan = lab.plan(cases(2, 3), MODELS, "hermes", corrections=2)
    model.dead = True
    failed = lab.run(plan, progress=False)
    assert failed.frame()["stop"].tolist() == ["provider_error"] * 2
    assert failed.frame()["score_corrected"].isna().all()
    assert failed.missing == 2
    model.dead = False
    again = lab.run(plan, progress=False)
    assert again.frame()["score_corrected"].tolist() == [True, True]
    firsts = [request.key for request in model.requests if "refused" not in str(request.messages)]
    assert len(firsts) == len(set(firsts))


def test_levels_behave_as_those_of_other_factors(lab: tp.Lab, tmp_path: Path) -> None:
    plan = lab.plan(cases(2), MODELS, "hermes", corrections=[0, 2])
    assert (plan.calls, plan.most_calls) == (1, 3)
    assert "corrections" in plan.varied
    assert [arm["corrections"] for arm in plan.to_dict()["arms"]] == [0, 2]
    run = lab.run(plan, progress=False)
    opened = lab.open(run.run_id)
    assert [arm.levels["corrections"] for arm in opened.plan.arms] == [0, 2]
    assert opened.frame()["score_corrected"].dropna().tolist() == [True]
    for level in (-1, True, "2", 1.5):
        with pytest.raises(BadPlan, match="refused call"):
            arms_of("hermes", {"corrections": level})
    with pytest.raises(BadPlan, match="written once"):
        arms_of("plan", {"corrections": 1})


def test_another_reader_and_policy_keep_their_own_reading(lab: tp.Lab) -> None:
    """A corrected call counts beside calls as this policy reads them."""
    run = lab.run(lab.plan(cases(), MODELS, "hermes", corrections=2), progress=False)
    none = run.frame(policies=("none",))
    assert none["score_corrected"].tolist() == [True, True, True, False, False, False]
    other = [t.reparse("gemma") for t in run.trials()]
    assert [t.score.corrected for t in other if t.score] == [
        t.score.success for t in other if t.score
    ]
