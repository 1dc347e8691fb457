"""A refused call: how often the tool and the model are asked, what is paused, and why it ends."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables import each_case
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.middleware.correction import (
    STOPS,
    Corrected,
    CorrectedCall,
    CorrectionContext,
    Feedback,
    Issue,
    ToolFailure,
    ToolRefused,
    arun_call,
    run_call,
)
from toolparse_lab.middleware.plans import arun_plan, read_plan, run_plan

TOOL = tool_named(
    "weather", required=["lat"], lat="number", city="string", unit={"enum": ["C", "F"]}
)
GO = "json: cannot unmarshal string into Go struct field WeatherRequest.lat of type float64"
WRONG = {"lat": "north", "city": "Oslo"}
RIGHT = {"lat": 59.9, "city": "Oslo"}


class Tool:
    """Takes a call once its arguments are `wanted`, or on its `takes`-th call; counts the calls."""

    def __init__(self, *errors: str, takes: Callable[[Mapping[str, Any]], bool]) -> None:
        self.errors = errors or (GO,)
        self.takes = takes
        self.seen: list[Mapping[str, Any]] = []

    def __call__(self, **arguments: Any) -> str:
        self.seen.append(arguments)
        if self.takes(arguments):
            return "sunny"
        raise ValueError(self.errors[min(len(self.seen), len(self.errors)) - 1])


def is_number(arguments: Mapping[str, Any]) -> bool:
    return isinstance(arguments["lat"], float)


def never(arguments: Mapping[str, Any]) -> bool:
    return False


class Model:
    """Gives these answers in turn, the last for ever; an exception is raised. Counts."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.contexts: list[CorrectionContext] = []

    def __call__(self, context: CorrectionContext) -> Any:
        self.contexts.append(context)
        answer = self.answers[min(len(self.contexts), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return answer


ERROR = RuntimeError("the model is down")
OTHER = "connection reset"
# name -> (tool's errors and what it takes, model's answers, feedback,
#          ok, stop, attempts, tool calls, model calls, pauses)
SCENARIOS: dict[str, Any] = {
    "right at once": ((), is_number, RIGHT, (RIGHT,), {}, "accepted", 1, 1, 0, []),
    "fixed at the first": ((), is_number, WRONG, (RIGHT,), {}, "accepted", 1, 2, 1, []),
    "fixed at the second": (
        (), is_number, WRONG, ({"lat": "still"}, RIGHT), {}, "accepted", 1, 3, 2, [],
    ),
    "never": (
        (), never, WRONG, ({"lat": 1.5}, {"lat": 2.5}), {}, "attempts_used_up", 3, 5, 2, [1, 2],
    ),
    "the callback fails": ((), never, WRONG, (ERROR,), {}, "attempts_used_up", 3, 3, 2, [1, 2]),
    "the callback fails once": (
        (), is_number, WRONG, (ERROR, RIGHT), {}, "accepted", 2, 3, 2, [1],
    ),
    "nothing that is arguments": (
        (), never, WRONG, ("text",), {}, "attempts_used_up", 3, 3, 2, [1, 2],
    ),
    "no callback": ((), never, WRONG, None, {}, "attempts_used_up", 3, 3, 0, [1, 2]),
    "another error": (
        (OTHER,), never, {"lat": 1.0}, (RIGHT,), {}, "attempts_used_up", 3, 3, 0, [1, 2],
    ),
    "another error, then none": (
        (OTHER,), lambda a: a["lat"] == 1.0 and OTHER == "x", {"lat": 1.0}, (RIGHT,),
        {"max_attempts": 1}, "attempts_used_up", 1, 1, 0, [],
    ),
    "the same arguments again": ((), never, WRONG, (WRONG,), {}, "same_arguments", 1, 1, 1, []),
    "the same arguments again, not stopped": (
        (), never, WRONG, (WRONG,), {"stop_on_repeat": False}, "attempts_used_up", 3, 5, 2, [1, 2],
    ),
    "tokens used up": (
        (), never, WRONG, (Corrected({"lat": 1.5}, tokens=100),), {"max_tokens": 100},
        "budget_used_up", 1, 2, 1, [],
    ),
    "cost used up": (
        (), never, WRONG, (Corrected({"lat": 1.5}, cost=0.2),), {"max_cost": 0.1},
        "budget_used_up", 1, 2, 1, [],
    ),
    "disabled": ((), never, WRONG, (RIGHT,), {"enabled": False}, "attempts_used_up", 3, 3, 0, [1, 2]),
    "three corrections": (
        (), never, WRONG, ({"lat": 1.5}, {"lat": 2.5}, {"lat": 3.5}),
        {"max_validation_retries": 3}, "attempts_used_up", 3, 6, 3, [1, 2],
    ),
}  # fmt: skip


def run_scenario(
    name: str, *, later: bool
) -> tuple[CorrectedCall, Tool, Model | None, list[float]]:
    errors, takes, arguments, answers, changes, *_ = SCENARIOS[name]
    tool = Tool(*errors, takes=takes)
    model = None if answers is None else Model(*answers)
    pauses: list[float] = []
    feedback = Feedback(**changes)
    if not later:
        call = run_call(
            TOOL, arguments, tool, correct=model, feedback=feedback, sleep=pauses.append
        )
        return call, tool, model, pauses

    async def run(**arguments: Any) -> str:
        await asyncio.sleep(0)
        return tool(**arguments)

    async def correct(context: CorrectionContext) -> Any:
        await asyncio.sleep(0)
        assert model is not None
        return model(context)

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    call = asyncio.run(
        arun_call(
            TOOL, arguments, run, correct=correct if model else None, feedback=feedback, sleep=sleep
        )
    )
    return call, tool, model, pauses


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", SCENARIOS)
def test_attempts_calls_and_pauses_are_counted_exactly(name: str, later: bool) -> None:
    *_, stop, attempts, tool_calls, model_calls, waits = SCENARIOS[name]
    call, tool, model, pauses = run_scenario(name, later=later)
    assert (call.stop, call.attempts) == (stop, attempts)
    assert (call.tool_calls, len(tool.seen)) == (tool_calls, tool_calls)
    assert (call.model_calls, len(model.contexts) if model else 0) == (model_calls, model_calls)
    assert pauses == list(call.pauses) == waits
    assert call.ok == (stop == "accepted") == (call.value == "sunny")
    assert call.stop in STOPS


def test_a_sleep_may_be_plain_or_awaitable_everywhere() -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        await asyncio.sleep(0)
        pauses.append(seconds)

    def runnable(**arguments: Any) -> str:
        raise ValueError("down")

    twice = Feedback(max_attempts=2)
    plan = read_plan([{"step_id": "a", "tool": "f", "parameters": {}}])
    tool = {"name": "f"}
    step: dict[str, Any] = {"tools": [tool], "runnable": {"f": runnable}, "feedback": twice}
    asyncio.run(arun_call(tool, {}, runnable, feedback=twice, sleep=pauses.append))
    asyncio.run(arun_plan(plan, **step, sleep=sleep))
    run_plan(plan, **step, sleep=pauses.append)
    assert len(pauses) == 3


@given(
    attempts=st.integers(1, 4),
    retries=st.integers(1, 4),
    answers=st.lists(
        st.sampled_from([ERROR, RIGHT, {"lat": 1.5}, {"lat": "x"}, "text"]), min_size=1
    ),
    takes=st.sampled_from([never, is_number, lambda a: a["lat"] == 1.5]),
)
def test_no_call_asks_more_often_than_it_may(
    attempts: int, retries: int, answers: list[Any], takes: Callable[[Mapping[str, Any]], bool]
) -> None:
    tool, model = Tool(takes=takes), Model(*answers)
    events: list[str] = []
    call = run_call(
        TOOL,
        WRONG,
        tool,
        correct=model,
        feedback=Feedback(max_attempts=attempts, max_validation_retries=retries),
        sleep=lambda seconds: None,
        on_event=lambda name, attributes: events.append(name),
    )
    assert call.tool_calls == len(tool.seen) <= attempts + retries
    assert call.model_calls == len(model.contexts) == len(call.corrections) <= retries
    assert len(call.pauses) == call.attempts - 1 < attempts
    # That the model answered is no success.
    assert ("validation_feedback_success" in events) == call.rescued
    assert call.rescued == (call.ok and any(c.status == "applied" for c in call.corrections))


def test_only_named_fields_are_merged_and_other_edits_are_told() -> None:
    model = Model({"lat": 59.9, "city": "Bergen", "unit": "K"})
    call = run_call(TOOL, WRONG, Tool(takes=is_number), correct=model)
    assert call.arguments == RIGHT
    (correction,) = call.corrections
    assert [edit.path for edit in correction.edits] == ["/lat"]
    assert [(edit.path, edit.new) for edit in correction.collateral] == [
        ("/city", "Bergen"),
        ("/unit", "K"),
    ]
    everything = run_call(
        TOOL, WRONG, Tool(takes=is_number), correct=model, feedback=Feedback(merge="all")
    )
    assert everything.arguments == {"lat": 59.9, "city": "Bergen", "unit": "K"}


def test_layer_2_comes_before_the_tool_and_again_behind_a_correction() -> None:
    plain = run_call(TOOL, {"lat": "59.9"}, Tool(takes=is_number))
    assert (plain.value, [step.rule for step in plain.steps]) == (
        "sunny",
        ["coerce.number-from-string"],
    )
    call = run_call(TOOL, WRONG, Tool(takes=is_number), correct=Model({"lat": "59.9"}))
    assert call.arguments["lat"] == 59.9
    assert [step.rule for step in call.corrections[0].steps] == ["coerce.number-from-string"]


@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_a_tool_never_sees_a_number_that_is_not_finite(number: float) -> None:
    tool = Tool(takes=is_number)
    call = run_call(TOOL, {"lat": number}, tool, correct=Model({"lat": 1.5}))
    assert tool.seen == [{"lat": 1.5}]
    assert (call.ok, call.tool_calls, call.model_calls) == (True, 1, 1)
    assert [failure.called for failure in call.failures] == [False]
    again = run_call(TOOL, {"lat": number}, tool, correct=Model({"lat": number}))
    assert (again.stop, len(tool.seen)) == ("same_arguments", 1)


def test_a_value_of_the_right_type_that_is_wrong_is_corrected_too() -> None:
    tool = Tool("unit not found", takes=lambda arguments: arguments["unit"] == "C")
    call = run_call(TOOL, {"lat": 1.5, "unit": "Celsius"}, tool, correct=Model({"unit": "C"}))
    assert call.value == "sunny"
    assert call.corrections[0].issues[0].path == "/unit"


def test_the_context_holds_the_request_and_its_history_unless_they_are_switched_off() -> None:
    messages = (
        {"role": "system", "content": "s"},
        {"role": "user", "content": "old"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": "new"},
    )
    seen: dict[tuple[bool, bool], list[str]] = {}
    for request in (True, False):
        for history in (True, False):
            model = Model(RIGHT)
            run_call(
                TOOL,
                WRONG,
                Tool(takes=is_number),
                correct=model,
                messages=messages,
                feedback=Feedback(request=request, history=history),
            )
            context = model.contexts[0]
            seen[request, history] = [m["content"] for m in context.messages]
            assert (context.error, context.arguments, context.number) == (GO, WRONG, 1)
    assert seen == {
        (True, True): ["s", "old", "a", "new"],
        (True, False): ["new"],
        (False, True): ["s", "old", "a"],
        (False, False): [],
    }


def test_a_tool_without_a_schema_uses_a_correction_up_and_is_tried_again() -> None:
    model = Model(RIGHT)
    call = run_call({"name": "f"}, WRONG, Tool(takes=never), correct=model, sleep=len_none)
    assert (call.attempts, call.model_calls, len(call.corrections)) == (3, 0, 2)
    assert {c.reason for c in call.corrections} == {"the tool has no schema"}


def len_none(seconds: float) -> None:
    """No pause."""


def test_a_tool_may_say_what_is_wrong_itself() -> None:
    failure = ToolFailure("no", issues=(Issue("/city", "place", "not on Earth"),))

    def run(lat: float, city: str) -> str:
        if city == "Atlantis":
            raise ToolRefused(failure)
        return city

    call = run_call(
        TOOL, {"lat": 1.5, "city": "Atlantis"}, run, correct=Model({"lat": 9.9, "city": "Oslo"})
    )
    assert (call.value, call.arguments) == ("Oslo", {"lat": 1.5, "city": "Oslo"})


def test_events_tell_of_a_rescue_only_where_the_tool_took_the_call() -> None:
    def events(model: Model) -> list[str]:
        told: list[str] = []
        run_call(
            TOOL,
            WRONG,
            Tool(takes=is_number),
            correct=model,
            sleep=len_none,
            on_event=lambda name, attributes: told.append(name),
        )
        return told

    assert events(Model(RIGHT)) == [
        "validation_feedback_started",
        "parameters_corrected",
        "validation_feedback_success",
        "layer3_rescued",
    ]
    assert events(Model({"lat": "x"}, {"lat": "y"})) == [
        *["validation_feedback_started", "parameters_corrected"] * 2,
        "validation_feedback_failed",
    ]
    assert events(Model(ERROR)) == ["validation_feedback_started", "validation_feedback_failed"] * 2


@each_case
def test_bad_feedback_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(BadOptions, match=words):
        Feedback(**changes)


def test_presets_are_the_orchestrator_s_configurations() -> None:
    production, cost, most = map(
        Feedback.preset, ("production", "cost-sensitive", "maximum-reliability")
    )
    assert (production.enabled, production.max_validation_retries) == (True, 2)
    assert (cost.enabled, most.max_validation_retries) == (False, 3)
    assert Feedback(max_validation_retries=0).max_validation_retries == 0
    # The orchestrator's setter ignores zero.
    unset = Feedback.from_execution_options({"max_validation_retries": 0})
    assert unset.max_validation_retries == 2
    options = {"validation_feedback_enabled": False, "max_validation_retries": 5}
    preset = Feedback.from_execution_options(options)
    assert (preset.enabled, preset.max_validation_retries, preset.policy) == (
        False,
        5,
        "go-strconv",
    )
    with pytest.raises(BadOptions, match="production"):
        Feedback.preset("prodution")
    with pytest.raises(BadOptions, match="validation_feedback_enabled"):
        Feedback.from_execution_options({"enabled": True})
