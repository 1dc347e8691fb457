"""Plans: what is asked, in which order, and what cannot be planned."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, every_case
from toolparse_lab.core.errors import BadPlan, BadSettings
from toolparse_lab.experiments.arms import FACTORS, arm_of, arms_of, check_names
from toolparse_lab.experiments.plan import make_plan
from toolparse_lab.experiments.plan_file import KEYS, PlanFile, models_of, read_plan_file
from toolparse_lab.runner.ledger import check_limits
from toolparse_lab.runner.settings import Settings, load_settings


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


@asked_of(
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


@every_case
def test_bad_settings_are_named(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(tp.errors.BadPlan, match=says):
        make_plan(CASES, MODELS, "hermes", **settings)


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


# Plans as TOML: what they say, and what is wrong with them by line.


FULL = """
cases = "data/cases.jsonl"
where = { category = ["a", "b"] }
sample = 20
models = ["small", "openai/x"]
protocols = "hermes"
trials = 3
seed = 7
stream = true
baseline = "hermes"
[settings]
few_shot = [0, 2]
tool_choice = { name = "f" }
[limits]
max_cost = 5
[gate]
success = 0.9
[columns]
question = "input"
notes = ""
"""


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "toolparse.toml").write_text(
        '[models]\nsmall = "toolparse-local/smollm2-135m"\n', "utf-8"
    )
    return load_settings(start=tmp_path, environ={"OPENAI_KEY": "value"})


def read(folder: Path, settings: Settings, text: str) -> PlanFile:
    (folder / "plan.toml").write_text(text, "utf-8")
    return read_plan_file(folder / "plan.toml", settings)


def test_a_plan_says_all_that_a_lab_takes(tmp_path: Path, settings: Settings) -> None:
    plan = read(tmp_path, settings, FULL)
    assert plan == PlanFile(
        plan.source,
        str(tmp_path / "data" / "cases.jsonl"),
        {"category": ["a", "b"]},
        20,
        {"small": tp.Model("toolparse-local/smollm2-135m"), "openai/x": tp.Model("openai/x")},
        ["hermes"],
        3,
        7,
        True,
        {"few_shot": [0, 2], "tool_choice": {"name": "f"}},
        {"max_cost": 5},
        {"success": 0.9},
        "hermes",
        {"question": "input", "notes": None},
    )
    assert {f for f in KEYS if getattr(plan, f) != getattr(PlanFile(), f)} == KEYS.keys()


def test_what_a_plan_leaves_out_is_given_by_hand(tmp_path: Path, settings: Settings) -> None:
    plan = read(tmp_path, settings, "")
    assert plan == PlanFile(plan.source)
    assert read(tmp_path, settings, 'cases = "bfcl.jsonl"').cases == str(tmp_path / "bfcl.jsonl")


def test_a_plan_may_bring_its_own_models(tmp_path: Path, settings: Settings) -> None:
    plan = read(
        tmp_path,
        settings,
        '[models.a]\nname = "openai/a"\napi_key_env = "OPENAI_KEY"\n[models]\nb = "openai/b"',
    )
    assert plan.models == {"a": tp.Model("openai/a", api_key="value"), "b": tp.Model("openai/b")}


@every_case
def test_what_is_wrong_is_named_with_its_line(
    tmp_path: Path, settings: Settings, text: str, says: str
) -> None:
    with pytest.raises(BadSettings) as e:
        read(tmp_path, settings, text)
    assert says in str(e.value)
    assert "planted" not in str(e.value)


def test_what_is_configured_goes_before_a_model_string(tmp_path: Path) -> None:
    text = '[models."openai/x"]\nname = "openai/x"\napi_base = "http://here/v1"\n'
    (tmp_path / "toolparse.toml").write_text(text, "utf-8")
    found: dict[str, Any] = dict(
        models_of(["openai/x", "openai/y"], load_settings(start=tmp_path, environ={}))
    )
    assert [m.api_base for m in found.values()] == ["http://here/v1", None]


# Arms: every combination of levels, named by what differs.


def test_an_arm_is_named_by_what_differs() -> None:
    arms = arms_of(
        ["hermes", "gemma"], {"tool_choice": ["auto", {"name": "f"}], "type_rules": [False, True]}
    )
    assert [a.name for a in arms[:4]] == [
        "hermes tool_choice=auto no-rules", "hermes tool_choice=auto type-rules",
        "hermes tool_choice=f no-rules", "hermes tool_choice=f type-rules",
    ]  # fmt: skip
    assert len({a.name for a in arms}) == len(arms) == 8
    assert arm_of("hermes", {"max_tokens": 5}).name == "hermes"


def test_an_arm_has_a_level_of_every_factor() -> None:
    arm = arm_of("hermes", {"max_turns": 2})
    assert set(arm.levels) == set(FACTORS)
    assert all(FACTORS.values()), "each is explained"
    assert arm.conversing
    assert not arm_of("hermes", {}).conversing


def test_a_protocol_named_twice_is_one() -> None:
    assert len(arms_of(["hermes", "hermes"], {})) == 1
    with pytest.raises(BadPlan, match="no protocols"):
        arms_of([], {})


@every_case
def test_a_name_that_nobody_would_heed_is_refused(
    name: str, own: list[str], says: str | None
) -> None:
    if says is None:
        check_names([name], own)
        return
    with pytest.raises(BadPlan, match="no factor and no sampling parameter") as caught:
        check_names([name], own)
    assert says in str(caught.value)


# Limits of a run are checked before a run is written.


ONE_CASE = [{"id": "a", "input": "hi", "tools": [{"name": "f"}], "target": []}]


@every_case
def test_a_wrong_limit_is_refused_before_a_run_is_written(
    limits: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(ONE_CASE, tp.Model("openai/m", price=(0, 0)), ["hermes"], max_tokens=5)
        with pytest.raises(tp.errors.BadOptions, match=complaint):
            lab.run(plan, **limits)
        assert lab.runs() == []


def test_none_is_no_limit() -> None:
    check_limits(dict.fromkeys(("max_cost", "max_calls", "deadline", "max_age", "progress")))
