"""The arm `plan`: one case answered by a plan or by calls, judged by the same target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.replay_server import Answer, Asked
from tests.tables import table
from tests.tools import tool_named
from toolparse_lab.core.errors import BadPlan
from toolparse_lab.experiments.arms import arms_of
from toolparse_lab.middleware.plans import PLAN, read_plan_answer
from toolparse_lab.runner.store.recording import export_recording

TOOL = tool_named("get_weather", required=["city"], city="string", days="integer")


ROWS = table(__file__)
OUTCOMES = {row["id"]: row["outcome"] for row in ROWS}
ANSWERS = {f"Do the task {row['id']}.": row["answer"] for row in ROWS}
"""Question -> answer. An answer that stood in its question would be an echo."""


class Planner(MockOpenAI):
    """An endpoint that has an answer to each of these questions."""

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        answer = ANSWERS[body["messages"][-1]["content"]]
        said = [{"role": "user", "content": f"say={answer}"}]
        return super().chat(request, {**body, "messages": said})


CASES = [
    {"id": row["id"], "input": question, "tools": [TOOL], "target": row["target"]}
    for row, question in zip(ROWS, ANSWERS, strict=True)
]


def models(mock: MockOpenAI) -> dict[str, tp.Model]:
    return {"m": tp.Model("openai/mock", api_base=mock.url, api_key="sk-no-key", price=(0, 0))}


def outcomes_of(run: Any, arm: str = "plan", **reading: Any) -> dict[str, str]:
    return {t.case_id: t.outcome for t in run.trials(**reading) if t.arm == arm}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.exhaustive(2, 1)
def test_the_same_cases_by_plan_and_by_calls(tmp_path: Path, stream: bool) -> None:
    with Planner() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(CASES, models(mock), ["hermes", "plan"], stream=stream, few_shot=0)
        run = lab.run(plan, progress=False)
        assert outcomes_of(run) == OUTCOMES
        assert outcomes_of(run, "hermes")["a call"] == "correct"
        # Without coercion, the type that the plan lost is a wrong call.
        assert outcomes_of(run, policies=["none"])["lost type"] == "wrong_call"
        comparison = run.compare("hermes", "plan").frame
        assert len(comparison) == 1

        systems = {body["messages"][0]["content"] for body in mock.bodies}
        assert len(systems) == 2
        prompt = next(text for text in systems if text.startswith("You plan calls of tools."))
        assert '"get_weather"' in prompt
        assert '"{{step_1.location.lat}}"' in prompt

        frame = lab.reparse(run, engine="serial")
        again = frame[frame["arm"] == "plan"].set_index("case_id")["outcome"]
        assert again.to_dict() == OUTCOMES
        run_id, calls = run.run_id, mock.calls
        export_recording(lab.store, tmp_path / "cassette.jsonl", run_id=run_id)
        assert "plan" in str(run.report())
    with tp.Lab(tmp_path / "a.db") as lab:
        assert outcomes_of(lab.open(run_id)) == OUTCOMES
    with tp.Lab(tmp_path / "b.db") as lab:
        replayed = lab.replaying(tmp_path / "cassette.jsonl").run(plan, progress=False)
        assert outcomes_of(replayed) == OUTCOMES
    assert mock.calls == calls


def test_type_rules_and_examples_are_factors_of_it(tmp_path: Path) -> None:
    with Planner() as mock, tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(CASES[:1], models(mock), "plan", type_rules=[False, True], few_shot=1)
        lab.run(plan, progress=False)
        prompts = [body["messages"][0]["content"] for body in mock.bodies]
        assert sorted("Rules about types:" in text for text in prompts) == [False, True]
        example = mock.bodies[0]["messages"][2]
        assert example["role"] == "assistant"
        assert read_plan_answer(example["content"], [TOOL]).fault is None


def test_a_plan_is_written_once() -> None:
    with pytest.raises(BadPlan, match="written once"):
        arms_of(["hermes", "plan"], {"max_turns": [1, 4]})
    assert [arm.name for arm in arms_of(["native", "plan"], {})] == ["native", "plan"]
    assert arms_of(PLAN, {})[0].protocol is PLAN


def test_a_question_answered_by_a_plan(tmp_path: Path) -> None:
    with Planner() as mock, tp.Lab(tmp_path / "a.db") as lab:
        result = lab.ask("Do the task two.", [TOOL], model=models(mock)["m"], protocol="plan")
        assert [call.arguments for call in result.calls] == [
            {"city": "Rome"},
            {"city": "Paris", "days": 2},
        ]
        assert result.ok


def test_what_it_writes_it_reads() -> None:
    texts = [
        PLAN.write_call("get_weather", json.dumps(arguments))
        for arguments in ({"city": "Paris", "days": 2}, {"city": "}\n```"})
    ]
    text = PLAN.join_calls(texts)
    calls = tp.parse(text, PLAN, [TOOL]).calls
    assert [call.arguments for call in calls] == [{"city": "Paris", "days": 2}, {"city": "}\n```"}]
