"""What models write beside their format, as servers' own parsers read it: cases with all laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.tables import each_case
from tests.tools import tool_named

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases_core/dialects.jsonl")
    .read_text("utf-8")
    .splitlines()
]
TOOLS: list[dict[str, Any]] = [
    {"name": "mark", "parameters": {"type": "object", "properties": {"tags": {}}}},
    tool_named("say", text="string"),
    {"name": "ping", "parameters": {"type": "object", "properties": {}}},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['protocol']}: {case['title']}")
def test_dialects(case: dict[str, Any]) -> None:
    tools = case.get("tools", TOOLS)
    result = check_all(case["raw"], case["protocol"], tools, every_split=len(case["raw"]) < 400)
    assert [[c.name, c.arguments] for c in result.calls if c.ok] == case["calls"]
    edits = {edit.rule for call in result.calls for edit in call.edits}
    steps = {step.rule for call in result.calls for step in call.steps}
    assert edits | steps == set(case.get("rules", ()))
    if "problems" in case:
        assert [p.code for p in result.problems] == case["problems"]
    if case.get("auto", True):
        by_auto = tp.parse(case["raw"], "auto", tools=tools)
        assert [[c.name, c.arguments] for c in by_auto.calls if c.ok] == case["calls"]


@each_case
def test_a_text_without_its_quote_is_refused_where_it_may_end_elsewhere(body: str) -> None:
    tools = [{"name": "say"}, {"name": "mark"}]
    result = check_all(f"<|tool_call>call:{body}", "gemma4", tools)
    assert not any(call.ok for call in result.calls)
