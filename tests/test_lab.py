"""The lab: plan, run, frames, failures, questions; on a scripted model, and on the shipped recording."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from toolparse_lab.runner.types import Completion, Request

TOOL = {"name": "set_timer", "parameters": {"type": "object", "properties": {"minutes": {"type": "integer"}}}}
CASES = [
    {
        "id": f"timer-{i}",
        "input": f"Set a timer for {i} minutes.",
        "tools": [TOOL],
        "target": [{"name": "set_timer", "arguments": {"minutes": i}}],
    }
    for i in range(1, 7)
]
MODELS = {"scripted": tp.Model("openai/scripted", price=(0, 0), max_retries=0)}


class Scripted:
    """A mock provider: answers by the number in the question, and counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.dead = False

    async def __call__(self, request: Request) -> Completion:
        self.asked += 1
        n = int("".join(c for c in str(request.messages[-1]["content"]) if c.isdigit()) or 0)
        xml = any("<set_timer>" in str(m["content"]) for m in request.messages[:-1])
        base = Completion(
            key=request.key, raw="", request=request.to_dict(), finish_reason="stop", created="2026-01-01"
        )
        if self.dead:
            return replace(base, status="error", error_kind="connection", error_message="nobody is there")
        if xml:
            return replace(base, raw=f"<set_timer><minutes>{n}</minutes></set_timer>")
        bodies = {
            1: f'<tool_call>{{"name": "set_timer", "arguments": {{"minutes": {n}}}}}</tool_call>',
            2: f'<tool_call>{{"name": "set_timer", "arguments": {{"minutes": "{n}",}}}}</tool_call>',
            3: '<tool_call>{"name": "set_timer", "arguments": {"minutes": </tool_call>',
            4: "I cannot do that.",
            5: '<tool_call>{"name": "set_alarm", "arguments": {"minutes": 5}}</tool_call>',
        }
        return replace(base, raw=bodies.get(n, bodies[1]))


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def lab(tmp_path: Path, scripted: Scripted) -> Iterator[tp.Lab]:
    lab = tp.Lab(tmp_path / "runs.db")
    lab._complete = scripted
    yield lab
    lab.close()


def test_one_trip_from_plan_to_report(lab: tp.Lab, scripted: Scripted, tmp_path: Path) -> None:
    plan = lab.plan(CASES, MODELS, ["hermes", "morph_xml"], max_tokens=64)
    run = lab.run(plan, progress=False)
    assert scripted.asked == 12
    frame = run.frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 12
    assert dict(frame[frame["prompt_protocol"] == "hermes"].set_index("case_id")["outcome"].astype(str)) == {
        "timer-1": "correct",
        "timer-2": "correct",
        "timer-3": "attempted_unparseable",
        "timer-4": "abstained_wrongly",
        "timer-5": "wrong_call",
        "timer-6": "correct",
    }
    assert set(frame[frame["prompt_protocol"] == "morph_xml"]["outcome"].astype(str)) == {"correct"}
    report = run.report()
    assert "hermes" in report.text()
    page = report.save(tmp_path / "report.html")
    assert "<script" not in page.read_text("utf-8")
    assert len(run.matrix().table) == 2


def test_a_second_run_makes_no_call(lab: tp.Lab, scripted: Scripted) -> None:
    plan = lab.plan(CASES, MODELS, ["hermes"])
    first = lab.run(plan, progress=False)
    asked = scripted.asked
    second = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    assert scripted.asked == asked
    assert second.summary is not None
    assert (second.summary.calls, second.summary.cached) == (0, 6)
    same = ["case_id", "outcome", "raw"]
    pd.testing.assert_frame_equal(first.frame()[same], second.frame()[same])
    fresh = lab.run(plan, progress=False, fresh=True)
    assert scripted.asked == 2 * asked
    assert fresh.summary is not None
    assert fresh.summary.done == 6


def test_the_recording_is_read_by_any_protocol_and_policy(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    by_policy = {
        policy: dict(run.frame(policies=(policy,)).set_index("case_id")["score_success"])
        for policy in ("none", "safe", "middleware")
    }
    assert by_policy["safe"]["timer-2"]
    assert not by_policy["none"]["timer-2"]
    auto = run.frame(protocol="auto")
    assert set(auto["parse_protocol"]) == {"auto"}
    assert list(auto["outcome"].astype(str)) == list(run.frame()["outcome"].astype(str))
    both = run.trials_df(policies=("safe", "none"))
    assert len(both) == 12
    assert both["trial_id"].is_unique


def test_failures_are_one_index_away_from_their_text(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes", "morph_xml"]), progress=False)
    failures = run.failures()
    assert [t.case_id for t in failures] != []
    assert {t.outcome for t in failures} == {"attempted_unparseable", "abstained_wrongly", "wrong_call"}
    (broken,) = run.failures(code="attempted_unparseable")
    assert broken.result is not None
    assert broken.result.calls[0].status == "undecodable"
    assert [t.case_id for t in run.failures(code="call.unknown-tool")] == ["timer-5"]
    assert len(run.failures(protocol="morph_xml")) == 0
    assert len(run.failures(model="scripted", arm="hermes")) == 3
    assert "timer-3" in repr(failures)
    assert "timer-3" in failures._repr_mimebundle_()["text/html"]
    assert failures[broken.trial_id] is not None
    assert len(failures[:2]) == 2


def test_frames_say_what_was_changed(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    events = run.events_df()
    assert {"rjson.trailing-comma", "coerce.integer-from-string", "decode.truncated-value"} <= set(
        events["code"].astype(str)
    )
    calls = run.calls_df()
    assert set(calls["status"].astype(str)) == {"ok", "undecodable", "unknown_tool"}
    with pytest.raises(tp.errors.BadOptions, match="nothing is recorded"):
        run.chunks_df("no-such-case")


def test_a_trial_can_be_asked_again_another_way(lab: tp.Lab, scripted: Scripted) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    (broken,) = run.failures(code="attempted_unparseable")
    again = broken.retry(protocol="morph_xml")
    assert again.outcome == "correct"
    assert again.prompt_protocol == "morph_xml"
    asked = scripted.asked
    broken.retry(protocol="morph_xml")
    assert scripted.asked == asked


def test_arms_are_compared_on_the_same_cases(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes", "morph_xml"]), progress=False)
    comparison = run.compare("hermes", "morph_xml", within="model")
    assert set(comparison.flips["case_id"]) == {"timer-3", "timer-4", "timer-5"}


def test_ask_answers_one_question_and_records_it(lab: tp.Lab, scripted: Scripted) -> None:
    lab.plan(CASES, MODELS, ["hermes"])
    result = lab.ask("Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes")
    assert result.calls[0].arguments == {"minutes": 2}
    lab.ask("Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes")
    assert scripted.asked == 1
    lab.ask("Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes", fresh=True)
    assert scripted.asked == 2


def test_a_dead_provider_leaves_what_was_recorded(lab: tp.Lab, scripted: Scripted) -> None:
    lab.run(lab.plan(CASES[:2], MODELS, ["hermes"]), progress=False)
    scripted.dead = True
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    outcomes = dict(run.frame().set_index("case_id")["outcome"].astype(str))
    assert outcomes["timer-1"] == "correct"
    assert outcomes["timer-6"] == "provider_error"
    assert run.summary is not None
    assert run.summary.failed == 4
    with pytest.raises(tp.errors.ProviderError, match="nobody is there"):
        lab.ask("Set a timer for 9 minutes.", tools=[TOOL], model=MODELS["scripted"])
    scripted.dead = False
    healed = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    assert healed.summary is not None
    assert (healed.summary.cached, healed.summary.done) == (2, 4)


@pytest.mark.parametrize(
    ("model", "says"), [("scriptd", "did you mean scripted"), ("zzz", "no model of this name"), (3, "no model")]
)
def test_an_unknown_model_is_named(lab: tp.Lab, model: Any, says: str) -> None:
    lab.plan(CASES, MODELS, ["hermes"])
    with pytest.raises(tp.errors.UnknownModel, match=says):
        lab.ask("hi", tools=[TOOL], model=model)


def test_a_run_inside_a_running_loop(lab: tp.Lab) -> None:
    """As in a notebook, where a loop is running already."""

    async def cell() -> int:
        run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
        other = await lab.arun(lab.plan(CASES, MODELS, ["morph_xml"]), progress=False)
        return len(run.frame()) + len(other.frame())

    # In a thread of its own: a browser test in this process may hold a loop of the main thread open.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, cell()).result() == 12
