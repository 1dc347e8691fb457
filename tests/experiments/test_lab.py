"""The lab: plan, run, frames, failures, questions; on a scripted model, and on the shipped
recording."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.parsed_texts import with_each_text
from tests.tools import tool_named
from toolparse_lab.cli import main
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.store import schema

TOOL = tool_named("set_timer", minutes="integer")
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
            key=request.key,
            raw="",
            request=request.to_dict(),
            finish_reason="stop",
            created="2026-01-01",
        )
        if self.dead:
            return replace(
                base, status="error", error_kind="connection", error_message="nobody is there"
            )
        if xml:
            return replace(base, raw=f"<set_timer><minutes>{n}</minutes></set_timer>")
        bodies = {
            1: f'<tool_call>{{"name": "set_timer", "arguments": {{"minutes": {n}}}}}</tool_call>',
            2: f'<tool_call>{{"name": "set_timer", "arguments": {{"minutes": '
            f'"{n}",}}}}</tool_call>',
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
    lab._session.complete = scripted
    yield lab
    lab.close()


def test_one_trip_from_plan_to_report(lab: tp.Lab, scripted: Scripted, tmp_path: Path) -> None:
    plan = lab.plan(CASES, MODELS, ["hermes", "morph_xml"], max_tokens=64)
    run = lab.run(plan, progress=False)
    assert scripted.asked == 12
    frame = run.frame()
    assert isinstance(frame, pd.DataFrame)
    assert len(frame) == 12
    assert dict(
        frame[frame["prompt_protocol"] == "hermes"].set_index("case_id")["outcome"].astype(str)
    ) == {
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
    assert {t.outcome for t in failures} == {
        "attempted_unparseable",
        "abstained_wrongly",
        "wrong_call",
    }
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
    with pytest.raises(tp.errors.BadOptions, match="has this case_id"):
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


def test_ask_answers_one_question_and_records_it(lab: tp.Lab, scripted: Scripted) -> None:
    lab.plan(CASES, MODELS, ["hermes"])
    result = lab.ask(
        "Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes"
    )
    assert result.calls[0].arguments == {"minutes": 2}
    lab.ask("Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes")
    assert scripted.asked == 1
    lab.ask(
        "Set a timer for 2 minutes.", tools=[TOOL], model="scripted", protocol="hermes", fresh=True
    )
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
    ("model", "says"),
    [("scriptd", "did you mean scripted"), ("zzz", "no model of this name"), (3, "no model")],
)
def test_an_unknown_model_is_named(lab: tp.Lab, model: Any, says: str) -> None:
    lab.plan(CASES, MODELS, ["hermes"])
    with pytest.raises(tp.errors.UnknownName, match=says):
        lab.ask("hi", tools=[TOOL], model=model)


def test_a_run_inside_a_running_loop(lab: tp.Lab) -> None:
    """As in a notebook, where a loop is running already."""

    async def cell() -> int:
        run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
        other = await lab.arun(lab.plan(CASES, MODELS, ["morph_xml"]), progress=False)
        return len(run.frame()) + len(other.frame())

    # In a thread of its own: a browser test in this process may hold a loop of the main thread
    # open.
    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(asyncio.run, cell()).result() == 12


def test_a_run_is_opened_from_the_store_alone(
    lab: tp.Lab, scripted: Scripted, tmp_path: Path
) -> None:
    plan = lab.plan(
        CASES,
        MODELS,
        ["hermes", "morph_xml"],
        few_shot=[0, 1],
        seed=7,
        max_tokens=64,
        tool_choice=["auto", {"name": "set_timer"}],
    )
    run = lab.run(plan, progress=False)
    with tp.Lab(tmp_path / "runs.db") as other:
        other._session.complete = scripted
        opened = other.open(run.run_id)
        assert str(opened.plan) == str(plan)
        assert opened.plan.items == plan.items
        assert dict(opened.plan.requests) == dict(plan.requests)
        # The store's clock and the run's differ by milliseconds, which may be a tenth when rounded.
        seconds = re.compile(r"in [\d.]+ s")
        assert seconds.sub("", str(opened.summary)) == seconds.sub("", str(run.summary))
        pd.testing.assert_frame_equal(opened.frame(), run.frame())
        asked = scripted.asked
        again = other.run(opened.plan, progress=False)
        assert scripted.asked == asked
        pd.testing.assert_frame_equal(
            again.frame().drop(columns=["run_id", "trial_id"]),
            run.frame().drop(columns=["run_id", "trial_id"]),
        )
        (broken, *_) = opened.failures(
            code="attempted_unparseable", arm="hermes few_shot=1 tool_choice=auto"
        )
        assert broken.retry(protocol="morph_xml").outcome == "correct"
        assert (
            scripted.asked == asked
        )  # the plan of the run asked just this: its seed and its settings hold


def test_what_a_plan_of_another_version_says_is_ignored_and_named(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"], few_shot=[0, 1]), progress=False)
    plan = dict(lab.store.run(run.run_id).plan)
    arms = [{**arm, "verifier": "strict"} for arm in plan["arms"]]
    rule = "compare hermes and gemma, at alpha 0.05"
    lab.store.replace_plan(run.run_id, {**plan, "arms": arms, "until": rule, "version": "0.1"})
    opened = lab.open(run.run_id)
    pd.testing.assert_frame_equal(opened.frame(), run.frame())
    report = opened.report()
    pd.testing.assert_frame_equal(report.frame, run.report().frame)
    said = [note for note in report.notes if "does not know" in note]
    assert len(said) == 1
    assert said[0].endswith("ignores: until, verifier.")
    assert not any("does not know" in note for note in run.report().notes)


def test_a_run_is_found_by_its_beginning(lab: tp.Lab) -> None:
    ids = [lab.run(lab.plan(CASES[:n], MODELS, ["hermes"]), progress=False).run_id for n in (1, 2)]
    assert [r.run_id for r in lab.runs()] == ids[::-1] or ids[0][:15] == ids[1][:15]
    assert lab.open().run_id == lab.runs()[0].run_id
    assert lab.open(ids[0][:-1]).run_id == ids[0]
    assert {lab.open("latest").run_id, lab.open("latest~1").run_id} == set(ids)
    with pytest.raises(tp.errors.BadOptions, match="no run of this id"):
        lab.open("latest~2")
    with pytest.raises(tp.errors.BadOptions, match="several runs") as several:
        lab.open("2")
    assert ids[0] in str(several.value)
    with pytest.raises(tp.errors.BadOptions, match="no run of this id"):
        lab.open("x")
    with (
        tp.Lab(":memory:") as empty,
        pytest.raises(tp.errors.BadOptions, match="there are no runs"),
    ):
        empty.open()


def test_an_opened_run_takes_only_its_own_models(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES[:1], MODELS, ["hermes"]), progress=False)
    with_key = tp.Model("openai/scripted", price=(1, 2), api_key="sk-not-recorded", timeout=3)
    assert (
        lab.open(run.run_id, models={"scripted": with_key}).plan.models["scripted"].api_key
        == "sk-not-recorded"
    )
    with pytest.raises(tp.errors.BadPlan, match="is not the one that the run asked"):
        lab.open(run.run_id, models={"scripted": tp.Model("openai/other")})
    lab.models["scripted"] = tp.Model("openai/other")
    assert lab.open(run.run_id).plan.models["scripted"].name == "openai/scripted"


def test_what_failed_is_asked_again(lab: tp.Lab, scripted: Scripted) -> None:
    scripted.dead = True
    failed = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    scripted.dead = False
    healed = lab.retry(failed.run_id, progress=False)
    assert healed.summary is not None
    assert (healed.summary.done, healed.summary.missing) == (6, 0)
    asked = scripted.asked
    lab.retry(healed, progress=False)
    assert scripted.asked == asked


def test_a_question_is_a_run_like_any_other(lab: tp.Lab) -> None:
    lab.ask(
        "Set a timer for 2 minutes.",
        tools=[TOOL],
        model=MODELS["scripted"],
        protocol="hermes",
        seed=5,
    )
    run = lab.open()
    assert [t.outcome for t in run.trials()] == ["ungraded"]
    assert run.trials()[0].request["params"]["seed"] == 5


def test_runs_are_a_frame(lab: tp.Lab, scripted: Scripted) -> None:
    assert lab.runs_df().empty
    lab.run(
        lab.plan(CASES, MODELS, ["hermes", "morph_xml"]), progress=False, max_calls=4, max_cost=1
    )
    lab.ask("Set a timer for 1 minute.", tools=[TOOL], model=MODELS["scripted"])
    frame = lab.runs_df()
    assert list(frame["run_id"]) == [r.run_id for r in lab.runs()]
    row = frame[frame["n_cases"] == 6].iloc[0].to_dict()
    assert (row["status"], row["stop_reason"], row["planned"], row["recorded"]) == (
        "incomplete",
        "max_calls",
        12,
        4,
    )
    assert (row["n_models"], row["n_arms"], row["n_trials"], row["max_cost"]) == (1, 2, 1, 1.0)
    assert row["version"] == tp.__version__
    assert "set_timer" in row["plan_json"]


def test_a_run_that_died_is_interrupted_wherever_it_is_shown_until_the_rest_is_answered(
    lab: tp.Lab, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = lab.plan(CASES, MODELS, ["hermes"])
    died = lab.store.begin_run(plan.to_dict(), plan.items, requests=plan.requests)

    def shown() -> list[Any]:
        assert main(["list", "--json", "--store", str(lab.store.url.database)]) == 0
        listed = {r["run_id"]: r for r in json.loads(capsys.readouterr().out)}
        row = lab.runs_df().set_index("run_id").loc[died]
        record = next(r for r in lab.runs() if r.run_id == died)
        opened = lab.open(died)
        assert opened.summary is not None
        page = opened.report().html()
        stops = "stopped early (interrupted)" in page
        return [record.status, listed[died]["status"], row["status"], opened.summary.stopped, stops]

    assert shown() == ["running", "running", "running", None, False]
    with lab.store._writing() as connection:  # as if its process had ended
        connection.execute(schema.workers.delete())
    assert shown() == ["interrupted", "interrupted", "interrupted", "interrupted", True]
    lab.run(plan, progress=False)
    assert shown() == ["complete", "complete", "complete", None, False]


def test_recorded_answers_are_read_again(lab: tp.Lab, tmp_path: Path) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes", "morph_xml"]), progress=False)
    expected = run.frame(policies=("none",))
    path = tmp_path / "trials.parquet"
    run.frame().to_parquet(path)
    for source in (
        run,
        run.run_id,
        run.run_id[:-1],
        run.frame(policies=("safe", "middleware")),
        path,
        str(path),
    ):
        pd.testing.assert_frame_equal(lab.reparse(source, policies="none"), expected)
    again = lab.reparse(run, ["hermes", "auto"], ["safe", "none"], to=tmp_path / "again.parquet")
    assert again == tmp_path / "again.parquet"
    assert len(lab.reparse(again, "hermes")) == len(expected)
    with pytest.raises(tp.errors.BadOptions, match="no run of this id"):
        lab.reparse("no-such-run")
    with pytest.raises(tp.errors.UnreadableInput, match="no such file"):
        lab.reparse("no-such.parquet")


def test_a_run_is_gone_through_in_batches(lab: tp.Lab) -> None:
    run = lab.run(lab.plan(CASES, MODELS, ["hermes", "morph_xml"], trials=2), progress=False)
    whole = run.frame(policies=("safe", "none"))
    parts = list(run.batches(7, policies=("safe", "none")))
    assert [len(p) for p in parts] == [7] * 6 + [6]
    assert len({tuple(p.columns) for p in parts}) == 1
    pd.testing.assert_frame_equal(
        pd.concat(parts, ignore_index=True).astype(whole.dtypes.to_dict()), whole
    )
    some = run.frame(
        case_id=["timer-1", "timer-3"], model="scripted", prompt_protocol="hermes", trial=1
    )
    assert some["case_id"].tolist() == ["timer-1", "timer-3"]
    assert set(run.trials_df(where=lambda t: t.outcome == "correct")["outcome"]) == {"correct"}
    assert set(run.calls_df(case_id="timer-2")["case_id"]) == {"timer-2"}
    for wrong in ({"case_id": "timer-99"}, {"colour": "red"}, {"size": 0}):
        with pytest.raises(tp.errors.BadOptions):
            list(run.batches(**wrong))


def test_a_run_keeps_only_the_last_trials(lab: tp.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    from toolparse_lab.experiments import trial_reader

    read: list[str] = []

    with_each_text(monkeypatch, read.append)
    monkeypatch.setattr(trial_reader, "KEPT", 6)
    run = lab.run(lab.plan(CASES, MODELS, ["hermes"]), progress=False)
    first = run.trials()
    assert list(run.trials()) == list(first)
    assert len(read) == 6, "read once and kept"
    monkeypatch.setattr(trial_reader, "KEPT", 5)
    run.trials(policies=("none",))
    assert list(run.trials()) == list(first)
    assert len(read) == 18, "what does not fit is read again"
