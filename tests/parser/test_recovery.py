"""Calls outside their format: recovered only where nothing is guessed, and the same in every
chunking."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.laws import check_all
from tests.tools import tool_named

TOOLS = [
    tool_named("f", required=["a"], a="integer"),
    {"name": "g", "parameters": {"type": "object", "properties": {}}},
]


@pytest.mark.parametrize("protocol", ["hermes", "auto"])
@pytest.mark.parametrize("case", rows("recovery.jsonl"))
def test_recovery(case: dict[str, Any], protocol: str) -> None:
    result = check_all(case["raw"], protocol, TOOLS)
    recovered = [s for s in result.segments if s.kind == "recovered"]
    assert [s.span.of(result.raw) for s in recovered] == case["recovered"]
    assert [[c.name, c.arguments] for c in result.calls if c.ok and c.confidence < 1] == case[
        "calls"
    ]
    for call in result.calls:
        if call.ok and call.confidence < 1:
            assert call.problems[0].code == "call.recovered"


@pytest.mark.parametrize("case", rows("recovery.jsonl"))
def test_recovery_can_be_switched_off_and_needs_tools(case: dict[str, Any]) -> None:
    for tools, options in ((TOOLS, {"recover": False}), (None, None)):
        result = tp.parse(case["raw"], "hermes", tools, options)
        assert not any(s.kind == "recovered" for s in result.segments)
