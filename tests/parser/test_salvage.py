"""What is salvaged out of damage, by which rule, and what is refused: `calls` are those that are
ok."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import check_all
from tests.tools import tool_named

CASES = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases_core" / "salvage.jsonl")
    .read_text("utf-8")
    .splitlines()
]
TOOLS = [
    tool_named("get_weather", required=["city"], city="string", days="integer"),
    tool_named("write_file", path="string", content="string"),
    {"name": "now", "parameters": {"type": "object", "properties": {}}},
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_salvage(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case["protocol"], TOOLS)
    good = [c for c in result.calls if c.ok]
    assert [{"name": c.name, "arguments": c.arguments} for c in good] == case["calls"]
    rules = {e.rule for c in good for e in c.edits} | {
        s.rule for c in good for s in c.steps if s.stage == "read"
    }
    assert sorted(rules) == case["rules"]
    codes = {p.code for p in result.all_problems() if p.stage != "validate"}
    assert sorted(codes) == case["codes"]


@pytest.mark.parametrize("case", [c for c in CASES if c["calls"]], ids=lambda c: c["id"])
def test_without_repair_and_recovery_only_strict_calls_are_read(case: dict[str, Any]) -> None:
    strict = tp.parse(case["raw"], case["protocol"], TOOLS, {"repair": False, "recover": False})
    assert not any(c.edits for c in strict.calls)
    assert all(s.kind != "recovered" for s in strict.segments)
