"""Layer 1 in the lab: prompts of one's own as wordings of an experiment, and type rules by level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.mock_openai import MockOpenAI
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions, BadPlan
from toolparse_lab.formats.prompt.wording import OwnPrompt
from toolparse_lab.middleware.flow.factors import Wording

TOOL = tool_named("weather", city="string")
CASES = [{"id": "a", "input": "Oslo?", "tools": [TOOL], "target": []}]
TEMPLATE = "Mine: {{tools_signatures}}\n{{#type_rules}}{{type_rules}}{{/type_rules}}"
CALL = 'say=<tool_call>{"name": "weather", "arguments": {"city": "Oslo"}}</tool_call>'


def terse(*, protocol_id: str, tools: Any, shots: Any, type_rules: Any) -> str:
    return f"{protocol_id} {[tool.name for tool in tools]} {len(shots)} {type_rules}"


def broken(**parts: Any) -> str:
    raise LookupError("no such prompt")


def model_at(mock: MockOpenAI) -> dict[str, tp.Model]:
    return {
        "m": tp.Model(
            "openai/m", api_base=mock.url, api_key="planted-key-0123", price=(0, 0), max_retries=0
        )
    }


def systems(mock: MockOpenAI) -> list[str]:
    return [body["messages"][0]["content"] for body in mock.bodies]


def test_prompts_of_ones_own_are_arms(mock: MockOpenAI, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        wordings: list[Wording] = ["plain", TEMPLATE, {"short": terse}, broken, "upstream"]
        plan = lab.plan(
            CASES, model_at(mock), ["hermes"], wording=wordings, type_rules=True, few_shot=1
        )
        name = OwnPrompt.of(TEMPLATE).name
        levels = [arm.levels["wording"] for arm in plan.arms]
        assert levels == ["plain", name, "short", "broken", "upstream"]
        assert plan.varied == ("wording",)
        # A builder that raises gives way to the built-in prompt, and that is noted.
        (issue,) = plan.prompt_issues
        assert (issue.case, issue.arm) == ("a", "hermes broken")
        assert "LookupError: no such prompt" in str(plan)
        assert plan.calls == 4  # the broken one asks what `plain` asks

        run = lab.run(plan, progress=False)
        sent = systems(mock)
        assert any(text == "hermes ['weather'] 1 True" for text in sent)
        assert any(text.startswith("Mine: weather(") and "CORRECT" in text for text in sent)
        assert any("<tools>[{" in text for text in sent)
        assert set(run.frame()["arm"]) == {f"hermes {level}" for level in levels}

        record = lab.store.run(run.run_id).plan
        assert record["wordings"] == {
            name: {"template": TEMPLATE}, "short": {"builder": "short"}, "broken": {"builder": "broken"},
        }  # fmt: skip
        assert record["prompt_issues"][0]["error"] == "LookupError: no such prompt"

        trial = next(t for t in run.trials() if t.arm == "hermes short")
        retried = trial.retry(temperature=0.5)
        assert mock.bodies[-1]["messages"][0]["content"] == "hermes ['weather'] 1 True"
        assert retried.trial_id != trial.trial_id

    # Opened elsewhere, a template is there; a builder is not, unless the lab has used it.
    with tp.Lab(tmp_path / "runs.db") as lab:
        opened = lab.open(run.run_id, models=model_at(mock))
        assert opened.plan.prompt_issues == plan.prompt_issues
        by_arm = {trial.arm: trial for trial in opened.trials()}
        by_arm[f"hermes {name}"].retry(temperature=0.7)
        assert mock.bodies[-1]["messages"][0]["content"].startswith("Mine: weather(")
        with pytest.raises(BadPlan, match="prompt builder"):
            by_arm["hermes short"].retry(temperature=0.7)
        lab.plan(CASES, model_at(mock), ["hermes"], wording={"short": terse})
        by_arm = {trial.arm: trial for trial in lab.open(run.run_id).trials()}
        by_arm["hermes short"].retry(temperature=0.7)
        assert mock.bodies[-1]["messages"][0]["content"] == "hermes ['weather'] 1 True"


def test_ask_takes_them_too(mock: MockOpenAI, tmp_path: Path) -> None:
    with tp.Lab(tmp_path / "runs.db") as lab:
        model = model_at(mock)["m"]
        for wording, head in ((TEMPLATE, "Mine:"), (terse, "hermes ["), ("strict", "# Tools")):
            result = lab.ask(CALL, [TOOL], model=model, wording=wording, few_shot=0)
            assert result.protocol == "hermes"
            assert systems(mock)[-1].startswith(head)


@pytest.mark.parametrize(
    ("wording", "words"),
    [
        ([{"a": TEMPLATE}, {"a": terse}], "two prompts"),
        (["plain", {"plain": terse}], "two prompts"),
        ({"a b": terse}, "short word"),
        ({"a": "no place"}, "place"),
        (3, "wording"),
        ("Tools: {{tool}}", "placeholder"),
        ("nonsense", "wording"),
        ([], "levels"),
    ],
)
def test_what_is_no_prompt_is_refused(wording: Any, words: str) -> None:
    lab = tp.Lab(":memory:")
    with pytest.raises((BadPlan, BadOptions), match=words):
        lab.plan(CASES, {"m": tp.Model("openai/m", price=(0, 0))}, ["hermes"], wording=wording)


def test_type_rules_have_levels_in_each_formats_own_language() -> None:
    lab = tp.Lab(":memory:")
    models = {"m": tp.Model("openai/m", price=(0, 0))}
    right = {
        "hermes": ('"lat": 35.6897', '"count": 10', '"enabled": true', '"city": "Tokyo"'),
        "pythonic": ("lat=35.6897", "count=10", "enabled=True", 'city="Tokyo"'),
        "morph_xml": ("<lat>35.6897</lat>", "<count>10</count>", "<city>Tokyo</city>"),
        "yaml_xml": ("lat: 35.6897", "count: 10", "enabled: true"),
        "qwen3_coder_xml": ("<parameter=lat>35.6897</parameter>", "<parameter=enabled>true"),
    }
    for protocol, pairs in right.items():
        plan = lab.plan(CASES, models, [protocol], type_rules=[False, True, "pairs"])
        assert [arm.name.split()[-1] for arm in plan.arms] == [
            "no-rules", "type-rules", "type-pairs",
        ]  # fmt: skip
        by_level = {}
        for item in plan.items:
            by_level[item.arm["type_rules"]] = plan.requests[item.key].messages[0]["content"]
        assert not any(pair in by_level[False] for pair in pairs)
        assert "CORRECT:\n" not in by_level[True]
        block = by_level["pairs"].partition("CORRECT:\n")[2].partition("WRONG:\n")
        assert all(f"  {pair}" in block[0] for pair in pairs)
        assert not any(f"  {pair}\n" in block[2] for pair in pairs)
    with pytest.raises(BadPlan, match="pairs"):
        lab.plan(CASES, models, ["hermes"], type_rules="some")  # type: ignore[arg-type]
