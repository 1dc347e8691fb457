"""Plans as TOML: what they say, and what is wrong with them by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.core.errors import BadSettings
from toolparse_lab.experiments.plan_file import KEYS, PlanFile, models_of, read_plan_file
from toolparse_lab.runner.settings import Settings, load_settings

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


@each_case
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
