"""Plans: what is asked, in which order, and what cannot be planned."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.experiments.arms import FACTORS
from toolparse_lab.experiments.plan import make_plan


def timer_case(i: int) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"minutes": {"type": "integer"}}}
    return {
        "id": f"c{i}",
        "input": f"Set a timer for {i} minutes.",
        "tools": [{"name": "set_timer", "parameters": parameters}],
        "target": [{"name": "set_timer", "arguments": {"minutes": i}}],
    }


CASES = [timer_case(i) for i in range(1, 5)]
MODELS = {"a": tp.Model("openai/x", price=(1, 2)), "b": tp.Model("openai/y", price=(0, 0))}


def test_a_plan_is_the_product_of_everything_it_varies() -> None:
    plan = make_plan(
        CASES, MODELS, ["hermes", "morph_xml"], trials=3, few_shot=[0, 2], max_tokens=50
    )
    assert len(plan.items) == plan.calls == 4 * 2 * 2 * 2 * 3
    assert [a.name for a in plan.arms] == [
        "hermes few_shot=0",
        "hermes few_shot=2",
        "morph_xml few_shot=0",
        "morph_xml few_shot=2",
    ]
    assert plan.varied == ("few_shot",)
    assert {r.params["max_tokens"] for r in plan.requests.values()} == {50}
    assert {r.params["seed"] for r in plan.requests.values()} == {0, 1, 2}


def test_each_model_may_be_asked_in_its_own_format(tmp_path: Path) -> None:
    models = {
        "q": tp.Model("hosted_vllm/Qwen3-8B", price=(0, 0)),
        "c": tp.Model("hosted_vllm/Qwen3-Coder-30B", price=(0, 0)),
    }
    lab = tp.Lab(tmp_path / "runs.db")
    plan = lab.plan(CASES, models, "model")
    assert {(i.model, i.arm["prompt_protocol"]) for i in plan.items} == {
        ("q", "hermes"), ("c", "qwen3_coder_xml"),
    }  # fmt: skip
    assert plan.calls == len(plan.items) == 4 * 2
    shown = str(plan)
    assert "each model in its own format: 8 calls" in shown
    assert "format: c: qwen3_coder_xml, its name matches" in shown
    assert "<b>4 cases" in plan._repr_mimebundle_()["text/html"]

    # Beside a format that all are told, which is also the own one of a model.
    both = lab.plan(CASES, models, ["model", "hermes", "native"], few_shot=[0, 2])
    cells = Counter((i.model, i.arm["prompt_protocol"]) for i in both.items)
    assert cells == {
        ("q", "hermes"): 8, ("q", "native"): 4, ("c", "hermes"): 8, ("c", "native"): 4,
        ("c", "qwen3_coder_xml"): 8,
    }  # fmt: skip

    with pytest.raises(tp.errors.UnknownProtocol, match="mine: hosted_vllm/mine") as refusal:
        lab.plan(CASES, {"mine": tp.Model("hosted_vllm/mine")}, ["model"])
    assert "from_chat_template" in str(refusal.value)


def test_arms_stay_balanced_wherever_the_run_stops() -> None:
    plan = make_plan(CASES, MODELS, ["hermes", "morph_xml"], decoding=["free", "grammar"])
    for stop in range(8, len(plan.items) + 1, 8):
        counts = Counter((i.model, i.arm["arm"]) for i in plan.items[:stop])
        assert len(set(counts.values())) == 1
        assert len(counts) == 8


def test_the_same_plan_asks_the_same_questions() -> None:
    first, second = (make_plan(CASES, MODELS, "hermes", seed=3) for _ in range(2))
    assert list(first.requests) == list(second.requests)
    assert list(make_plan(CASES, MODELS, "hermes", seed=4).requests) != list(first.requests)


def test_the_prompt_never_shows_the_answer() -> None:
    plan = make_plan(
        CASES, MODELS, ["hermes", "morph_xml", "gemma"], wording=["brief", "plain", "strict"]
    )
    for item in plan.items:
        messages = json.dumps(list(plan.requests[item.key].messages[:-1]))
        minutes = item.case_id[1:]
        assert f'{{\\"minutes\\":{minutes}}}' not in messages
        assert f"<minutes>{minutes}</minutes>" not in messages


def test_a_grammar_goes_with_its_request() -> None:
    plan = make_plan(CASES[:1], {"a": MODELS["a"]}, ["hermes"], decoding=["free", "grammar"])
    grammars = [
        plan.requests[i.key].params.get("grammar")
        for i in plan.items
        if i.arm["decoding"] == "grammar"
    ]
    assert len(grammars) == 1
    assert "set_timer" in str(grammars[0])
    assert all(
        "grammar" not in plan.requests[i.key].params
        for i in plan.items
        if i.arm["decoding"] == "free"
    )


def test_a_plan_shows_calls_tokens_and_cost_before_anything_is_sent() -> None:
    plan = make_plan(CASES, MODELS, "hermes", max_tokens=100)
    text = str(plan)
    assert "4 cases × 2 models × 1 arm × 1 trial = 8 calls" in text
    assert plan.tokens[1] == 800
    assert plan.cost is not None
    assert plan.cost > 0
    html = plan._repr_mimebundle_()["text/html"]
    assert "hermes" in html
    assert "<script" not in html
    unpriced = make_plan(CASES, {"z": tp.Model("openai/some-unknown-model")}, "hermes")
    assert unpriced.cost is None
    assert "unknown" in str(unpriced)


def test_keys_of_a_plan_hold_no_secret() -> None:
    plan = make_plan(
        CASES, {"a": tp.Model("openai/x", api_key="sk-planted-secret-1", price=(0, 0))}, "hermes"
    )
    assert "sk-planted-secret-1" not in json.dumps(plan.to_dict())
    assert "sk-planted-secret-1" not in repr(plan)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        (([], MODELS, "hermes"), tp.errors.BadCase, "no cases"),
        ((tp.Cases([]), MODELS, "hermes"), tp.errors.BadPlan, "no cases"),
        ((CASES, {}, "hermes"), tp.errors.BadPlan, "no models"),
        ((CASES, MODELS, []), tp.errors.BadPlan, "no protocols"),
        ((CASES, MODELS, ["hermess"]), tp.errors.UnknownProtocol, "did you mean hermes"),
        ((CASES, {"a": 3}, "hermes"), tp.errors.UnknownName, "no model"),
        ((CASES, 3, "hermes"), tp.errors.UnknownName, "no models"),
        (([{"id": "x"}], MODELS, "hermes"), tp.errors.BadCase, "input"),
    ],
)
def test_what_cannot_be_planned_says_why(
    arguments: tuple[Any, ...], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make_plan(*arguments)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"trials": 0}, "how often"),
        ({"trials": True}, "how often"),
        ({"decoding": "greedy"}, "free or grammar"),
        ({"few_shots": 5}, "did you mean few_shot"),
        ({"few_shot": []}, "no levels"),
        ({"max_turns": 0}, "how often a model"),
        ({"max_turns": [1, True]}, "how often a model"),
        ({"max_turns": 2, "runnable": {"f": 3}}, "runs no tool"),
        ({"max_turns": 2, "runnable": [print]}, "functions by name"),
        ({"tool_choice": "maybe"}, "auto or required"),
        ({"tool_choice": {"tool": "set_timer"}}, "names its tool"),
        ({"tool_choice": {"name": "set_alarm"}}, "case 'c1' cannot be asked"),
        ({"result_format": "xml"}, "own or ai-sdk-2"),
        ({"tool_choice_by": "force"}, "response_format or prompt"),
    ],
)
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(tp.errors.BadPlan, match=says):
        make_plan(CASES, MODELS, "hermes", **settings)


def test_every_factor_is_explained() -> None:
    plan = make_plan(CASES[:1], MODELS, "hermes")
    assert set(plan.arms[0].levels) == set(FACTORS)
    assert all(FACTORS.values())


def test_a_plan_of_conversations_says_how_many_calls_there_may_be() -> None:
    plan = make_plan(CASES, {"a": MODELS["a"]}, "hermes", max_turns=[1, 5])
    assert (plan.calls, plan.most_calls, len(plan.items)) == (4, 20, 8)
    assert "up to 20 calls" in str(plan)
    assert "turns:" not in str(make_plan(CASES, MODELS, "hermes"))
    with pytest.raises(tp.errors.BadPlan, match="not async"):
        make_plan(CASES, MODELS, "hermes", runnable={"set_timer": _later})


async def _later() -> None:
    """A tool that no loop could run."""


def test_the_flow_of_an_item_begins_with_its_request() -> None:
    plan = make_plan(
        CASES,
        MODELS,
        ["hermes", "morph_xml"],
        max_turns=[1, 3],
        wording=["plain", "strict"],
        trials=2,
    )
    for item in plan.items:
        assert next(plan.flow(item)).key == item.key


def test_what_may_be_run_is_named_in_the_record_of_a_plan() -> None:
    plan = make_plan(CASES, MODELS, "hermes", max_turns=2, runnable={"set_timer": print})
    assert plan.to_dict()["runnable"] == ["set_timer"]
    assert plan.to_dict()["arms"][0]["max_turns"] == 2
