"""Texts that hold a call which the model did not make, and their neighbours that hold one it did.

`cases_core/unwanted_calls.jsonl`: `calls` are those that may run, `auto` those that may run in
auto, where they differ. `tests/unwanted.py` generates such texts for every format.
"""

from __future__ import annotations

from typing import Any

import toolparse_lab as tp
from tests.core_cases import load
from tests.laws import check_all
from tests.tables import asked_of

CASES = load("unwanted_calls.jsonl")


def tool(name: str, /, **properties: str) -> dict[str, Any]:
    members = {key: {"type": kind} for key, kind in properties.items()}
    parameters = {"type": "object", "properties": members, "required": [*members]}
    return {"name": name, "parameters": parameters}


TOOLS = [
    tool("skill_view", name="string"),
    tool("delete"),
    tool("now"),
    tool("note", text="string"),
    tool("add", x="number", y="number"),
    tool("tagger", delete="string", note="string"),
    {"name": "pair", "parameters": {"properties": {"left": {}, "right": {}}}},
]


def executable(result: tp.ParseResult) -> list[list[Any]]:
    return [[call.name, call.arguments] for call in result.calls if call.ok and call.valid]


@asked_of("case", CASES, ids=lambda case: case["title"])
def test_only_what_the_model_called_may_run(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case["protocol"], TOOLS)
    assert executable(result) == case["calls"]
    assert sorted({problem.code for problem in result.all_problems()}) == case["codes"]
    assert sorted({e.rule for call in result.calls for e in call.edits}) == case["rules"]
    by_auto = executable(tp.parse(case["raw"], "auto", TOOLS))
    assert by_auto in ([], case.get("auto", case["calls"]))
