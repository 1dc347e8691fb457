"""`openai_strict`: the calls of a strict mode, read and written, under the laws."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import load
from tests.laws import check_all
from tests.tools import tool_named

TOOLS: list[dict[str, Any]] = [
    tool_named("lookup_tide", required=["port"], port="string", days="integer"),
    tool_named(
        "harbour.book",
        berth={"type": ["integer", "null"], "default": None},
        stay={
            "type": "object",
            "properties": {"from": {"type": "string"}, "to": {"type": "string"}},
        },
    ),
]
CASES = load("openai_strict.jsonl")


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_cases(case: dict[str, Any]) -> None:
    calls = check_all(case["raw"], "openai_strict", TOOLS).calls
    assert [[c.name, c.status, c.arguments] for c in calls] == case["calls"]
    rules = [[*(e.rule for e in c.edits), *(s.rule for s in c.steps)] for c in calls]
    assert rules == case["rules"]
    assert [c.valid for c in calls] == [case["valid"]]


def test_a_step_names_the_object_and_the_rest_keeps_its_origin() -> None:
    raw = CASES[0]["raw"]
    call = tp.parse(raw, "openai_strict", TOOLS).calls[0]
    (step,) = call.steps
    assert (step.path, step.before, step.after) == (
        "",
        {"port": "Bergen", "days": None},
        {"port": "Bergen"},
    )
    assert call.origin("/port").span.of(raw) == "Bergen"


def test_it_writes_null_for_what_is_left_out() -> None:
    protocol, tool = tp.protocols()["openai_strict"], tp.ToolSpec.of(TOOLS[0])
    text = protocol.write_call("lookup_tide", '{"port":"Oslo"}', tool)
    message = json.loads(text)["tool_calls"][0]["function"]
    assert json.loads(message["arguments"]) == {"port": "Oslo", "days": None}
    assert tp.parse(text, protocol, TOOLS).calls[0].arguments == {"port": "Oslo"}
    assert '"days' not in protocol.write_call("lookup_tide", '{"port":"Oslo"}')


def test_the_provider_s_own_json_without_a_strict_mode_keeps_its_nulls() -> None:
    call = tp.parse(CASES[0]["raw"], "openai_json", TOOLS).calls[0]
    assert call.arguments == {"port": "Bergen", "days": None}
    assert not call.valid
