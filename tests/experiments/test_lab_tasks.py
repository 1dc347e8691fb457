"""Layers 1 and 3 in the lab: plans and corrections that models write, recorded, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.integrations.test_bridge_feedback import FIXED, SOON, TOOL, TOOLS, Correcting
from tests.mock_openai import MockOpenAI, unseen
from toolparse_lab.core.errors import BadOptions, ProviderError, ToolparseError
from toolparse_lab.middleware.correction import Feedback, run_call
from toolparse_lab.middleware.plans import run_plan
from toolparse_lab.runner.store.store import Store

PLAN = {
    "steps": [
        {"step_id": "w", "tool": "get_weather", "parameters": {"city": "Oslo", "days": "soon"}}
    ]
}


@pytest.fixture
def mock() -> Iterator[Correcting]:
    with Correcting() as running:
        yield running


def model_at(mock: MockOpenAI) -> tp.Model:
    return tp.Model("openai/m", api_base=mock.url, api_key="k", price=(0, 0), max_retries=0)


def test_a_model_plans_a_task_and_mends_it(mock: Correcting, tmp_path: Path) -> None:
    model = model_at(mock)
    with tp.Lab(tmp_path / "runs.db") as lab:
        text = unseen("say=Sure:\n```json\n" + json.dumps(PLAN) + "\n```")
        answer = lab.plan_task(text, TOOLS, model=model, max_tokens=500, policy="none")
        assert answer.fault == "wrong_type"
        assert answer.plan is not None
        first = mock.bodies[0]
        assert first["messages"][0]["content"].count("CORRECT:") == 6
        assert first["max_tokens"] == 500
        assert "tools" not in first
        # Recorded: the same task is asked once.
        assert lab.plan_task(text, TOOLS, model=model, max_tokens=500, policy="none") == answer
        assert len(mock.bodies) == 1
        bare = lab.plan_task(text, TOOLS, model=model, type_rules=False)
        assert bare.plan == answer.plan
        assert "CORRECT" not in mock.bodies[1]["messages"][0]["content"]

        mock.corrections = ["say=" + FIXED]
        run = run_plan(
            answer.plan,
            TOOLS,
            {"get_weather": lambda **arguments: _checked(arguments)},
            correct=lab.correction(model),
            messages=({"role": "user", "content": "Oslo?"},),
        )
        assert run.ok
        assert run.results == {"w": {"city": "Oslo", "days": 3}}
        assert len(lab.runs()) == 3
    mock.bodies.clear()

    recording = Store(str(tmp_path / "runs.db"))
    with recording, tp.Lab(tmp_path / "again.db").replaying(recording) as lab:
        assert lab.plan_task(text, TOOLS, model=model, max_tokens=500, policy="none") == answer
        call = run_call(
            TOOL, {"city": "Oslo", "days": "never"}, lambda **a: _checked(a),
            correct=lab.correction(model), sleep=lambda seconds: None,
        )  # fmt: skip
        assert call.stop == "not_recorded"
    assert mock.bodies == []


def _checked(arguments: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(arguments.get("days"), int):
        raise TypeError("expected number")
    return arguments


def test_what_a_task_cannot_have_is_refused(mock: Correcting, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        model = model_at(mock)
        with pytest.raises(BadOptions, match="factor"):
            lab.plan_task("x", TOOLS, model=model, few_shot=3)  # type: ignore[call-arg]
        with pytest.raises(ToolparseError, match="max_token"):
            lab.plan_task("x", TOOLS, model=model, max_token=3)  # type: ignore[call-arg]
        with pytest.raises(ProviderError):
            lab.plan_task("status=400", TOOLS, model=model)


def test_an_answer_with_its_corrections(mock: Correcting, tmp_path: Path) -> None:
    mock.corrections = ["say=" + FIXED]
    model = model_at(mock)
    with tp.Lab(tmp_path / "runs.db") as lab:
        text = unseen("say=" + SOON)
        corrected = lab.answer(text, TOOLS, model=model, max_tokens=99)
        (call,) = corrected.answer.tool_calls
        assert json.loads(call["function"]["arguments"])["days"] == 3
        assert (corrected.asked, corrected.tokens) == (1, 15)
        assert corrected.answer.result is not None
        assert not corrected.answer.result.calls[0].valid
        roles = [message["role"] for message in mock.bodies[1]["messages"]]
        assert roles[0] == "system"
        assert roles[-2:] == ["assistant", "user"]
        assert mock.bodies[1]["max_tokens"] == 99
        # Everything is recorded, and asked once.
        again = lab.answer(text, TOOLS, model=model, max_tokens=99)
        assert again.answer.message["tool_calls"][0]["function"] == call["function"]
        assert len(mock.bodies) == 2
        plain = lab.answer(text, TOOLS, model=model, max_tokens=99, feedback=None)
        assert (plain.asked, plain.calls) == (0, ())
        native = lab.answer("tool say={}", TOOLS, model=model, protocol="native", feedback=None)
        assert native.answer.tool_calls
        one = Feedback(max_validation_retries=1)
        mock.corrections = ["say=none"]
        failed = lab.answer(unseen("say= " + SOON), TOOLS, model=model, feedback=one)
        assert failed.calls[0].call.stop == "attempts_used_up"
