"""Plans: read from any shape, checked, run with dependencies, templates and corrections."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.middleware.tool_server import TOOL as HTTP_TOOL
from tests.middleware.tool_server import ToolServer
from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions, BadTaskPlan
from toolparse_lab.middleware.correction import CorrectionContext, Feedback, HttpTool
from toolparse_lab.middleware.flow import advance
from toolparse_lab.middleware.plans import (
    arun_plan,
    plan_from_request,
    read_plan,
    read_plan_answer,
    resolve,
    run_plan,
)
from toolparse_lab.runner.exchange.types import Completion, Model, Request

TOOLS = [
    tool_named("geocode", required=["city"], city="string"),
    tool_named("weather", required=["lat"], lat="number", days="integer"),
]
PLAN = {
    "steps": [
        {"step_id": "where", "tool": "geocode", "parameters": {"city": "Oslo"}},
        {
            "step_id": "what",
            "tool": "weather",
            "depends_on": ["where"],
            "parameters": {"lat": "{{where.at[0].lat}}", "days": "3"},
        },
    ]
}
RUNNABLE: dict[str, Any] = {
    "geocode": lambda city: {"at": [{"lat": 59.9}], "city": city},
    "weather": lambda lat, days=1: {"lat": lat, "days": days},
}


def test_a_plan_runs_in_order_with_values_of_their_types() -> None:
    run = run_plan(read_plan(PLAN, TOOLS), TOOLS, RUNNABLE)
    assert run.ok
    assert run.results["what"] == {"lat": 59.9, "days": 3}
    assert run["what"].parameters == {"lat": 59.9, "days": "3"}
    assert str(run) == "where geocode: done\nwhat weather: done"


def test_the_orchestrator_s_shape_is_read_and_written() -> None:
    plan = read_plan(PLAN)
    shape = {"steps": [step.to_orchestrator() for step in plan.steps]}
    assert shape["steps"][1] == {
        "step_id": "what",
        "agent_name": "weather",
        "depends_on": ["where"],
        "metadata": {
            "capability": "weather",
            "parameters": {"lat": "{{where.at[0].lat}}", "days": "3"},
        },
    }
    again = read_plan(shape, TOOLS)
    assert [(s.step_id, s.tool, s.parameters) for s in again.steps] == [
        (s.step_id, s.tool, s.parameters) for s in plan.steps
    ]
    assert again.steps[0].agent == "geocode"
    assert read_plan(plan.to_dict()) == plan


@each_case
def test_what_is_wrong_with_a_plan_is_told(plan: Any, kind: str, words: str) -> None:
    with pytest.raises(BadTaskPlan, match=words) as e:
        read_plan(plan, TOOLS)
    assert e.value.kind == kind


def test_a_step_that_fails_skips_those_that_depend_on_it_and_no_others() -> None:
    steps = [
        {"step_id": "bad", "tool": "geocode", "parameters": {"city": "x"}},
        {"step_id": "next", "tool": "weather", "depends_on": ["bad"], "parameters": {"lat": 1}},
        {"step_id": "last", "tool": "weather", "depends_on": ["next"], "parameters": {"lat": 1}},
        {"step_id": "other", "tool": "weather", "parameters": {"lat": 1}},
        {"step_id": "lost", "tool": "weather", "depends_on": ["other"], "parameters": {"lat": "{{other.x}}"}},
    ]  # fmt: skip

    def geocode(city: str) -> Any:
        raise ConnectionError("no map")

    run = run_plan(
        read_plan(steps, TOOLS),
        TOOLS,
        {**RUNNABLE, "geocode": geocode},
        feedback=Feedback(max_attempts=1),
    )
    assert not run.ok
    assert [(s.step.step_id, s.status) for s in run.steps] == [
        ("bad", "failed"),
        ("next", "skipped"),
        ("last", "skipped"),
        ("other", "done"),
        ("lost", "failed"),
    ]
    assert (run["bad"].reason, run["next"].reason, run["last"].reason) == (
        "no map",
        "bad failed",
        "next skipped",
    )
    assert "{{other.x}}" in run["lost"].reason


def test_steps_run_at_once_but_never_more_than_allowed() -> None:
    running = most = 0

    async def weather(lat: Any, days: Any = 1) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.01)
        running -= 1
        return "ok"

    steps = [{"tool": "weather", "parameters": {"lat": n}} for n in range(12)]
    plan = read_plan(steps, TOOLS)
    for concurrency in (1, 5):
        most = 0
        run = asyncio.run(arun_plan(plan, TOOLS, {"weather": weather}, concurrency=concurrency))
        assert run.ok
        assert most == concurrency
    with pytest.raises(BadOptions, match="concurrency"):
        run_plan(plan, TOOLS, {"weather": weather}, concurrency=0)
    with pytest.raises(BadOptions, match="not there"):
        run_plan(plan, TOOLS, {})


def test_a_refused_step_is_corrected_over_http() -> None:
    steps = [{"step_id": "s", "tool": "weather", "agent": "w", "parameters": {"lat": "north"}}]
    seen: list[CorrectionContext] = []

    def correct(context: CorrectionContext) -> dict[str, Any]:
        seen.append(context)
        return {"lat": 59.9}

    with ToolServer() as server:
        run = run_plan(
            read_plan(steps, [HTTP_TOOL]),
            [HTTP_TOOL],
            {"weather": HttpTool(f"{server.url}/fastapi").later},
            correct=correct,
            feedback=Feedback(policy="none"),
        )
    assert run.results == {"s": {"got": {"lat": 59.9}}}
    assert (seen[0].step_id, seen[0].agent) == ("s", "w")
    call = run["s"].call
    assert call is not None
    assert call.rescued


def test_a_workflow_has_typed_inputs() -> None:
    plan = read_plan(
        [{"tool": "weather", "parameters": {"lat": "{{inputs.lat}}", "days": "{{inputs.days}}"}}],
        TOOLS,
        inputs={
            "lat": {"type": "float64", "required": True},
            "days": {"type": "int", "default": 2},
        },
    )
    assert run_plan(plan, TOOLS, RUNNABLE, inputs={"lat": 1.5}).results["step_1"] == {
        "lat": 1.5,
        "days": 2,
    }
    for values, words in (
        ({}, "missing"),
        ({"lat": "1.5"}, "another type"),
        ({"lat": 1.5, "dais": 3}, "did you mean days"),
    ):
        with pytest.raises(BadTaskPlan, match=words):
            run_plan(plan, TOOLS, RUNNABLE, inputs=values)
    with pytest.raises(BadTaskPlan, match="unknown type"):
        read_plan(PLAN, inputs={"lat": {"type": "decimal"}})


@each_case
def test_templates_become_values(value: Any, resolved: Any) -> None:
    results = {"s": {"n": 7, "l": [{"k": None}], "t": "x", "a b": 1}}
    assert resolve(value, results) == resolved


@pytest.mark.parametrize("text", ["{{s.x}}", "{{s.n.x}}", "{{s.l[9]}}", "{{other.n}}", "a {{s.x}}"])
def test_a_template_that_leads_nowhere_is_named(text: str) -> None:
    with pytest.raises(BadTaskPlan) as e:
        resolve(text, {"s": {"n": 7, "l": [1]}})
    assert text.removeprefix("a ") in str(e.value)


@given(st.text(alphabet="{}s. [0]x", max_size=60))
def test_no_text_breaks_templates(text: str) -> None:
    with contextlib.suppress(BadTaskPlan):
        resolve({"a": text}, {"s": {"x": ["y"]}})


def test_templates_are_read_in_linear_time() -> None:
    assert resolve("{{" * 100_000, {}) == "{{" * 100_000
    assert resolve("{{" + " " * 200_000, {}).startswith("{{")


@pytest.mark.parametrize(
    ("raw", "fault", "words"),
    [
        (json.dumps(PLAN), None, ""),
        (f"Here is it:\n```json\n{json.dumps(PLAN, indent=1)}\n```\nGood luck!", None, ""),
        (f"<think>{{\"steps\": []}}</think>{json.dumps(PLAN)[:-2]},]}}", None, ""),
        (json.dumps(PLAN["steps"]), None, ""),
        ("I cannot do that.", "no_plan", "no plan"),
        ("", "no_plan", "no plan"),
        ('{"steps": []}', "no_plan", "steps"),
        ('{"steps": [{"step_id": "a"}]}', "bad_step", "names no tool"),
        ('{"steps": [{"tool": "nothing"}]}', "unknown_tool", "nothing"),
        ('{"steps": [{"tool": "weather", "parameters": {"lat": "north"}}]}', "wrong_type", "number"),
        ("[" * 50_000, "no_plan", "no plan"),
    ],
    ids=["plain", "fenced", "damaged", "list", "prose", "empty", "none", "step", "tool", "type", "deep"],
)  # fmt: skip
def test_a_plan_is_read_from_any_text_and_faults_are_classified(
    raw: str, fault: str | None, words: str
) -> None:
    answer = read_plan_answer(raw, TOOLS)
    assert (answer.fault, answer.plan is None) == (fault, fault not in (None, "wrong_type"))
    assert words in answer.message


def test_types_that_got_lost_are_seen_without_coercion() -> None:
    answer = read_plan_answer(json.dumps(PLAN), TOOLS, policy="none")
    assert answer.fault == "wrong_type"
    assert answer.problems is not None
    assert [p.path for p in answer.problems["what"]] == ["/days"]


def test_a_flow_asks_for_the_plan_once() -> None:
    model = Model("openai/m", api_base="http://127.0.0.1:9/v1")
    question = Request(model, "m", ({"role": "user", "content": "unused"},), {"temperature": 0})
    flow = plan_from_request("How warm is it in Oslo?", TOOLS, question)
    request, _ = advance(flow)
    assert request is not None
    system, user = request.messages
    assert user["content"] == "How warm is it in Oslo?"
    assert '"weather"' in system["content"]
    assert "Rules about types" in system["content"]
    _, answer = advance(flow, Completion(request.key, json.dumps(PLAN)))
    assert answer is not None
    assert answer.plan is not None

    for completion, words in (
        (None, "not recorded"),
        (Completion("k", status="error", error_kind="timeout"), "timeout"),
    ):
        flow = plan_from_request("x", TOOLS, question, type_rules=False)
        request, _ = advance(flow)
        assert request is not None
        assert "Rules about types" not in request.messages[0]["content"]
        _, answer = advance(flow, completion)
        assert answer is not None
        assert (answer.fault, answer.message) == ("no_answer", words)
