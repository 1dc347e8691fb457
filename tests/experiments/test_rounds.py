"""Conversations of a plan, round by round: one run, the same limits, nothing asked twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tools import tool_named
from tests.waiting import wait_until
from toolparse_lab.core.values import write_canonical
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.experiments.run import Run
from toolparse_lab.middleware.flow import Conversation
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.store.recording import export_recording
from toolparse_lab.runner.store.store import Store

TOOL = tool_named("double", required=["n"], n="integer")
MODELS = {"scripted": tp.Model("openai/scripted", price=(1, 1), max_retries=0)}


def cases(count: int) -> list[dict[str, Any]]:
    return [
        {
            "id": f"c{n}",
            "input": f"Double {n} for me.",
            "tools": [TOOL],
            "target": [{"name": "double", "arguments": {"n": n}}],
            "results": [{"name": "double", "arguments": {"n": n}, "output": f"result {2 * n}"}],
            "answer": f"is {2 * n}",
        }
        for n in range(1, count + 1)
    ]


class Scripted:
    """Calls the tool, then answers with its result."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.dead_after = 10**9

    async def __call__(self, request: Request) -> Completion:
        self.asked[request.key] += 1
        base = Completion(
            key=request.key, request=request.to_dict(), finish_reason="stop", prompt_tokens=100,
            completion_tokens=10, cost=0.01, created="2026-01-01",
        )  # fmt: skip
        if self.asked.total() > self.dead_after:
            return replace(
                base, status="error", error_kind="connection", error_message="nobody is there"
            )
        last = str(request.messages[-1]["content"])
        number = "".join(c for c in last if c.isdigit())
        if "result" in last:
            return replace(base, raw=f"It is {number}.")
        return replace(
            base, raw=f'<tool_call>{{"name": "double", "arguments": {{"n": {number}}}}}</tool_call>'
        )


@pytest.fixture
def scripted() -> Scripted:
    return Scripted()


@pytest.fixture
def lab(tmp_path: Path, scripted: Scripted) -> Iterator[tp.Lab]:
    with tp.Lab(tmp_path / "runs.db") as lab:
        lab._session.complete = scripted
        yield lab


def talk(trial: Trial) -> Conversation:
    assert trial.conversation is not None
    return trial.conversation


def plan_of(lab: tp.Lab, count: int = 4, **settings: Any) -> Any:
    return lab.plan(cases(count), MODELS, ["hermes"], **{"max_turns": 4, **settings})


def test_a_conversation_is_one_trial(lab: tp.Lab, scripted: Scripted) -> None:
    run = lab.run(plan_of(lab), progress=False)
    assert run.summary is not None
    assert (run.summary.planned, run.summary.done, run.summary.calls) == (8, 8, 8)
    assert run.summary.cost == pytest.approx(0.08)
    trials = run.trials()
    assert len(trials) == 4
    assert [t.outcome for t in trials] == ["correct"] * 4
    for trial in trials:
        assert trial.conversation is not None
        assert trial.conversation.stop == "answered"
        assert trial.score is not None
        assert trial.score.answer is True
    frame = run.frame()
    assert list(frame["n_turns"]) == [2] * 4
    assert list(frame["final_text"]) == [f"It is {2 * n}." for n in range(1, 5)]
    assert list(frame["conversation_tokens"]) == [220] * 4
    assert list(frame["conversation_cost"]) == pytest.approx([0.02] * 4)
    record = lab.store.run(run.run_id)
    assert (record.status, record.items, record.done) == ("complete", 8, 8)


def test_one_turn_is_what_it_was(lab: tp.Lab, scripted: Scripted) -> None:
    run = lab.run(plan_of(lab, max_turns=1), progress=False)
    assert scripted.asked.total() == 4
    assert run.trials()[0].conversation is None
    assert run.frame()[["n_turns", "score_answer", "stop"]].isna().all(axis=None)
    assert lab.store.run(run.run_id).items == 4


@pytest.mark.parametrize(
    "limit", [{"max_calls": 5}, {"max_cost": 0.0501}, {"max_calls": 4}, {"max_calls": 2}]
)
def test_limits_hold_for_all_rounds_together(
    lab: tp.Lab, scripted: Scripted, limit: dict[str, Any]
) -> None:
    run = lab.run(plan_of(lab, max_tokens=10), progress=False, **limit)
    assert run.summary is not None
    assert run.summary.stopped in limit
    assert scripted.asked.total() <= 5
    assert lab.store.run(run.run_id).status == "incomplete"
    stops = Counter(str(talk(t).stop) for t in run.trials())
    assert set(stops) <= {"answered", "not_asked"}
    asked = scripted.asked.total()
    rest = lab.run(plan_of(lab, max_tokens=10), progress=False)
    assert rest.summary is not None
    assert rest.summary.calls == 8 - asked
    assert {talk(t).stop for t in rest.trials()} == {"answered"}


def test_a_deadline_counts_the_time_of_tools(lab: tp.Lab, scripted: Scripted) -> None:
    plan = plan_of(lab, runnable={"double": lambda n: time.sleep(0.3)})
    run = lab.run(plan, progress=False, deadline=1.0)
    assert run.summary is not None
    assert run.summary.stopped == "deadline"
    assert scripted.asked.total() == 4


def test_a_provider_that_fails_half_way_ends_only_its_conversations(
    lab: tp.Lab, scripted: Scripted
) -> None:
    scripted.dead_after = 6
    run = lab.run(plan_of(lab), progress=False)
    stops = [talk(t).stop for t in run.trials()]
    assert Counter(stops) == {"answered": 2, "provider_error": 2}
    assert list(run.frame()["score_answer"].isna()) == [stop == "provider_error" for stop in stops]
    assert {t.outcome for t in run.trials()} == {"correct"}
    scripted.dead_after = 10**9
    healed = lab.run(plan_of(lab), progress=False)
    assert healed.summary is not None
    assert (healed.summary.calls, healed.summary.cached) == (2, 6)


def test_a_run_keeps_its_own_answers(lab: tp.Lab, tmp_path: Path) -> None:
    said = ["first", "second"]

    async def model(request: Request) -> Completion:
        last = str(request.messages[-1]["content"])
        raw = (
            said[0]
            if "result" in last
            else '<tool_call>{"name": "double", "arguments": {"n": 1}}</tool_call>'
        )
        return Completion(key=request.key, raw=raw, request=request.to_dict(), finish_reason="stop")

    lab._session.complete = model
    plan = plan_of(lab, 1)
    first = lab.run(plan, progress=False)
    said.pop(0)
    fresh = lab.run(plan, progress=False, fresh=True)
    assert talk(fresh.trials()[0]).answer == "second"
    assert talk(Run(lab.store, first.run_id, plan).trials()[0]).answer == "first"


def test_a_run_that_is_interrupted_in_its_second_round(lab: tp.Lab, scripted: Scripted) -> None:
    async def slow(request: Request) -> Completion:
        if "result" in str(request.messages[-1]["content"]):
            reached.set()
            await asyncio.sleep(60)
        return await scripted(request)

    async def interrupted() -> None:
        task = asyncio.create_task(lab.arun(plan_of(lab), progress=False))
        await asyncio.wait_for(reached.wait(), 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    reached = asyncio.Event()
    lab._session.complete = slow
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, interrupted()).result()
    (record,) = lab.store.runs()
    assert (record.status, record.items, record.done) == ("interrupted", 8, 4)
    lab._session.complete = scripted
    again = lab.run(plan_of(lab), progress=False)
    assert again.summary is not None
    assert (again.summary.cached, again.summary.calls) == (4, 4)


def test_functions_go_before_the_results_of_a_case(lab: tp.Lab) -> None:
    run = lab.run(plan_of(lab, runnable={"double": lambda n: f"result {n * 100}"}), progress=False)
    assert list(run.frame()["final_text"]) == [f"It is {n * 100}." for n in range(1, 5)]
    assert list(run.frame()["score_answer"]) == [False] * 4


def test_a_view_of_a_run_that_is_not_over(lab: tp.Lab) -> None:
    plan = plan_of(lab)
    run = lab.run(plan, progress=False, max_calls=4)
    before = run.trials()[0]
    assert talk(before).stop == "not_asked"
    assert talk(before).pending is not None
    lab.run(plan, progress=False)
    assert talk(run.trials()[0]).stop in ("answered", "not_asked")


def test_forced_choices_and_their_trials(lab: tp.Lab, tmp_path: Path) -> None:
    async def model(request: Request) -> Completion:
        raw = (
            '{"name": "double", "arguments": {"n": 1}}'
            if "response_format" in request.params
            else "It is 2."
        )
        return Completion(key=request.key, raw=raw, request=request.to_dict(), finish_reason="stop")

    lab._session.complete = model
    plan = plan_of(
        lab, 1, tool_choice=["auto", "required", {"name": "double"}, "none"], max_turns=3
    )
    assert [a.name for a in plan.arms] == [
        "hermes tool_choice=auto", "hermes tool_choice=required", "hermes tool_choice=double",
        "hermes tool_choice=none",
    ]  # fmt: skip
    run = lab.run(plan, progress=False)
    assert [t.outcome for t in run.trials()] == [
        "abstained_wrongly",
        "correct",
        "correct",
        "abstained_correctly",
    ]
    assert [talk(t).stop for t in run.trials()] == ["answered"] * 4
    forced = run.trials()[1]
    assert forced.reparse(policy="none").outcome == "correct"
    assert forced.retry().outcome == "correct"
    assert forced.retry(tool_choice="auto").outcome == "abstained_wrongly"
    namespace: dict[str, Any] = {}
    exec(forced.as_pytest(tmp_path / "test_pinned.py").read_text(), namespace)
    next(test for name, test in namespace.items() if name.startswith("test_"))()
    assert lab.ask("Double 1.", [TOOL], model="scripted", tool_choice="required").calls[
        0
    ].arguments == {"n": 1}
    with pytest.raises(tp.errors.BadOptions, match="one question"):
        lab.ask("Double 1.", [TOOL], model="scripted", max_turns=2)


RUNNER = """
import sys
import toolparse_lab as tp
from tests.mock_openai import unseen

url, path = sys.argv[1:]
tool = {"name": "f", "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}}}
rows = [
    {
        "id": f"c{n}",
        "input": unseen(
            f'slow=0.1 say=<tool_call>{{"name": "f", "arguments": {{"n": {n}}}}}</tool_call>'
        ),
        "tools": [tool],
        "results": [{"name": "f", "output": f"slow=0.1 say=number {n}"}],
    }
    for n in range(20)
]
model = tp.Model("openai/m", api_base=url, api_key="k", max_connections=4, timeout=20, max_retries=0)
with tp.Lab(path) as lab:
    plan = lab.plan(rows, {"m": model}, "hermes", max_turns=3)
    run = lab.run(plan, progress=False)
    print(run.summary.calls, [t.conversation.answer for t in run.trials()])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.exhaustive
def test_kill_9_in_the_second_round_loses_only_the_calls_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def start() -> subprocess.Popen[str]:
        command = [sys.executable, "-W", "error", "-c", RUNNER, mock.url, str(path)]
        root = Path(__file__).parents[2]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=root
        )

    with MockOpenAI() as mock:
        process = start()
        wait_until(lambda: len(mock.bodies) >= 28, process)
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        sent = len(mock.bodies)
        with Store(path) as store:
            (record,) = store.runs()
            assert record.status == "interrupted"
            assert record.items == 40
            assert 20 < record.done < 40
            before = record.done
        out, _ = start().communicate(timeout=120)
        assert f"{40 - before} [" in out, out
        assert sent + 40 - before == len(mock.bodies)
        assert all(f"number {n}" in out for n in range(20))


class Counting:
    """A function that does something each time: what it gives back is never the same."""

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, n: int) -> str:
        self.calls.append(n)
        return f"result {1000 * len(self.calls) + 2 * n}"


def texts(run: Run) -> list[Any]:
    return [talk(t).answer for t in run.trials()]


def test_a_function_runs_once_however_often_a_conversation_is_looked_at(
    lab: tp.Lab, scripted: Scripted
) -> None:
    double = Counting()
    plan = plan_of(lab, runnable={"double": double})
    run = lab.run(plan, progress=False)
    assert len(double.calls) == 4
    said = texts(run)
    assert len(set(said)) == 4
    run.frame()
    assert texts(Run(lab.store, run.run_id, plan)) == said
    again = lab.run(plan, progress=False)
    assert texts(again) == said
    assert again.summary is not None
    assert again.summary.calls == 0
    assert len(double.calls) == 4
    fresh = lab.run(plan, progress=False, fresh=True)
    assert len(double.calls) == 8
    assert set(texts(fresh)).isdisjoint(said)
    assert texts(Run(lab.store, run.run_id, plan)) == said


@pytest.mark.slow
def test_arms_that_share_an_answer_share_its_results(lab: tp.Lab, scripted: Scripted) -> None:
    double = Counting()
    plan = plan_of(
        lab, runnable={"double": double}, max_turns=[1, 2, 4], result_format=["own", "ai-sdk-2"]
    )
    run = lab.run(plan, progress=False)
    assert len(double.calls) == 4
    assert run.summary is not None
    assert (run.summary.calls, len(run.frame())) == (4 + 2 * 4, 4 * 6)
    assert set(scripted.asked.values()) == {1}
    assert {talk(t).stop for t in run.trials() if t.conversation} == {"answered"}
    later = lab.run(plan_of(lab, runnable={"double": double}, max_turns=3), progress=False)
    assert len(double.calls) == 4
    assert {talk(t).stop for t in later.trials()} == {"answered"}


def test_a_run_that_goes_on_runs_no_function_again(lab: tp.Lab) -> None:
    double = Counting()
    plan = plan_of(lab, runnable={"double": double})
    first = lab.run(plan, progress=False, max_calls=5)
    assert {talk(t).stop for t in first.trials()} == {"answered", "not_asked"}
    assert len(double.calls) == 4
    lab.run(plan, progress=False)
    assert len(double.calls) == 4


def test_a_replay_needs_no_functions(lab: tp.Lab, tmp_path: Path) -> None:
    rows = [{k: v for k, v in case.items() if k != "results"} for case in cases(3)]
    double = Counting()
    how: dict[str, Any] = {"max_turns": 4}
    run = lab.run(
        lab.plan(rows, MODELS, ["hermes"], runnable={"double": double}, **how), progress=False
    )
    assert export_recording(lab.store, tmp_path / "r.jsonl", run_id=run.run_id) == 6
    with tp.Lab(tmp_path / "other.db").replaying(tmp_path / "r.jsonl") as other:
        another = {**how, "result_format": "ai-sdk-2"}
        with pytest.raises(tp.errors.MissingRecording):
            other.run(other.plan(rows, MODELS, ["hermes"], **another), progress=False)
        replayed = other.run(other.plan(rows, MODELS, ["hermes"], **how), progress=False)
        assert texts(replayed) == texts(run)
        with_function = other.plan(rows, MODELS, ["hermes"], runnable={"double": double}, **how)
        assert texts(other.run(with_function, progress=False)) == texts(run)
    assert len(double.calls) == 3


def test_what_is_not_recorded_is_not_run_by_looking(lab: tp.Lab) -> None:
    """Here as after a crash between the answer and its function."""
    double = Counting()
    run = lab.run(plan_of(lab, max_turns=1), progress=False)
    view = Run(lab.store, run.run_id, plan_of(lab, runnable={"double": double}))
    assert {talk(t).stop for t in view.trials()} == {"not_run"}
    assert double.calls == []
    assert list(view.frame()["score_answer"].isna()) == [True] * 4


def test_rows_of_a_case_go_before_results_of_another_plan(lab: tp.Lab) -> None:
    lab.run(plan_of(lab, runnable={"double": Counting()}), progress=False)
    plain = lab.run(plan_of(lab), progress=False)
    assert texts(plain) == [f"It is {2 * n}." for n in range(1, 5)]


@pytest.mark.parametrize(
    "output",
    [10**5000, {"type": "error-text", "value": "\ud800 no"}, [1.0, -0.0, 1e22], "\x00"],
    ids=["long", "error", "floats", "nul"],
)
def test_results_of_any_kind_are_recorded_as_they_are(lab: tp.Lab, output: Any) -> None:
    plan = plan_of(lab, 1, runnable={"double": lambda n: output}, max_turns=2)
    run = lab.run(plan, progress=False)
    (ran,) = talk(run.trials()[0]).runs
    assert write_canonical(ran.result.output) == write_canonical(output)
    assert ran.status == ("failed" if isinstance(output, dict) else "ran")
    assert len(talk(run.trials()[0]).turns) == 2


def test_a_credential_in_a_result_is_not_recorded(tmp_path: Path, scripted: Scripted) -> None:
    secret = "planted-secret-0123456789"
    model = {"scripted": tp.Model("openai/scripted", price=(1, 1), api_key=secret)}
    with tp.Lab(tmp_path / "runs.db") as lab:
        lab._session.complete = scripted
        plan = lab.plan(
            cases(1),
            model,
            ["hermes"],
            max_turns=3,
            runnable={"double": lambda n: f"result {secret}"},
        )
        run = lab.run(plan, progress=False)
        export_recording(lab.store, tmp_path / "r.jsonl", run_id=run.run_id)
        assert "[redacted]" in str(talk(run.trials()[0]).runs[0].result.output)
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()


def test_a_conversation_is_asked_again_with_all_its_turns(lab: tp.Lab, scripted: Scripted) -> None:
    double = Counting()
    run = lab.run(plan_of(lab, runnable={"double": double}, max_tokens=33), progress=False)
    trial = run.trials()[0]
    asked, ran = scripted.asked.total(), len(double.calls)
    again = trial.retry()
    assert talk(again) == talk(trial)
    assert (scripted.asked.total(), len(double.calls)) == (asked, ran)
    fresh = trial.retry(fresh=True)
    assert (scripted.asked.total(), len(double.calls)) == (asked + 2, ran + 1)
    assert len(talk(fresh).turns) == 2
    assert talk(fresh).answer != talk(trial).answer
    short = trial.retry(max_turns=1)
    assert short.conversation is None
    longer = run.trials()[1].retry(protocol="morph_xml")
    assert (longer.arm, talk(longer).stop) == ("morph_xml retry", "answered")
    assert {turn.request.params["max_tokens"] for turn in talk(fresh).turns} == {33}


def test_an_opened_conversation_is_what_it_was(lab: tp.Lab, tmp_path: Path) -> None:
    run = lab.run(plan_of(lab, runnable={"double": Counting()}), progress=False)
    with tp.Lab(tmp_path / "runs.db") as other:
        opened = other.open(run.run_id)
        assert len(opened.plan.items) == 4
        assert texts(opened) == texts(run)
        with_function = tp.Lab(tmp_path / "runs.db").open(
            run.run_id, runnable={"double": Counting()}
        )
        assert texts(with_function) == texts(run)


def test_a_function_that_is_not_at_hand_is_not_replaced_by_rows(
    lab: tp.Lab, scripted: Scripted
) -> None:
    plan = plan_of(lab, runnable={"double": Counting()})
    stopped = lab.run(plan, progress=False, max_calls=2)
    opened = lab.open(stopped.run_id)
    rest = lab.run(opened.plan, progress=False)
    assert Counter(talk(t).stop for t in rest.trials()) == {"no_runnable_tool": 4}
    whole = lab.retry(lab.open(rest.run_id, runnable={"double": Counting()}), progress=False)
    assert {talk(t).stop for t in whole.trials()} == {"answered"}
