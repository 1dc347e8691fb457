"""Damaged bodies: one reading or none, in every family that holds JSON, and in tags."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.formats.test_parse import TOOLS as TAG_TOOLS
from tests.laws import check_all
from tests.tables import asked_of, each_case
from tests.tools import tool_named
from toolparse_lab.core.types import Reading
from toolparse_lab.formats.json.judge import loose_signs

BOOK = tool_named(
    "book",
    required=["city", "nights"],
    city="string",
    nights="integer",
    late="boolean",
    tags={"type": "array", "items": {"type": "string"}},
    note="string",
)
PLOT = tool_named(
    "plot", series={"type": "array", "items": {"type": "array", "items": {"type": "number"}}}
)
FRAMES = {
    "hermes": '<tool_call>{"name": "book", "arguments": %s}</tool_call>',
    "gemma": '```tool_call\n{"name": "book", "arguments": %s}\n```',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.book:0"
    "<|tool_call_argument_begin|>%s<|tool_call_end|><|tool_calls_section_end|>",
    "harmony_channel": "<|channel|>commentary to=functions.book<|message|>%s<|call|>",
    "openai_json": "",
}


def written(protocol: str, arguments: str) -> str:
    """A call of `book` with these arguments, as they stand."""
    if protocol != "openai_json":
        return FRAMES[protocol].replace("%s", arguments)
    call = {"id": "c", "type": "function", "function": {"name": "book", "arguments": arguments}}
    # A second call follows, so that the first one cannot have been cut off.
    other = {**call, "function": {"name": "book", "arguments": '{"city":"Oslo","nights":1}'}}
    return json.dumps({"content": None, "tool_calls": [call, other]}, ensure_ascii=False)


@pytest.mark.parametrize("protocol", FRAMES)
@asked_of("case", rows("damaged_bodies.jsonl"))
def test_each_body_is_read_as_the_table_says(case: dict[str, Any], protocol: str) -> None:
    tools = [BOOK] if case["tools"] else None
    result = check_all(written(protocol, case["arguments"]), protocol, tools)
    call = result.calls[0]
    assert (call.arguments if call.valid else None) == case["want"], result.why()
    if case["want"] is not None:
        assert {edit.rule for edit in call.edits} == set(case["rules"])
    else:
        assert set(case["codes"]) <= {problem.code for problem in call.problems}


def test_readings_that_are_equally_near_are_shown_and_not_chosen() -> None:
    raw = '<tool_call>{"name": "plot", "arguments": {"series": [[1, 2.5], 3, -4]]}}</tool_call>'
    result = check_all(raw, "hermes", [PLOT])
    (call,) = result.calls
    assert not call.ok
    assert [problem.code for problem in call.problems] == ["decode.ambiguous"]
    assert 2 <= len(call.readings) <= 5
    assert {"series": [[1, 2.5], [3, -4]]} in [reading.arguments for reading in call.readings]
    assert all(reading.name == "plot" and reading.why for reading in call.readings)

    for reading in call.readings:
        edited = raw
        for edit in sorted(reading.edits, key=lambda edit: edit.span.start, reverse=True):
            edited = edited[: edit.span.start] + edit.text + edited[edit.span.end :]
        (strict,) = tp.parse(edited, "hermes", [PLOT], tp.ParseOptions(repair=False)).calls
        assert strict.source_json == reading.arguments_json

    again = tp.ParseResult.from_dict(json.loads(result.to_json()))
    assert again.calls[0].readings == call.readings
    assert isinstance(again.calls[0].readings[0], Reading)


@pytest.mark.parametrize(
    "unit", ["{", "[]", '"', '{"a":"', '{"a"{[,:]}', 'x, "y": {a}, ', '\\"', '", ']
)
def test_hostile_bodies_end_in_a_refusal(unit: str) -> None:
    # Steps are counted, so that no text takes more than the budget of one search each.
    result = tp.parse(f'<tool_call>{{"a": {unit * 5000}</tool_call>', "hermes", [BOOK])
    assert not any(call.valid for call in result.calls)


def test_signs_that_a_string_should_not_end_in() -> None:
    assert loose_signs({"a": "x,", "b": ["[y"], "c:": "fine (really)"}) == 3


NAMED = tool_named("f", required=["a", "bb", "cc"], a="integer", bb="integer", cc="string")


@each_case
def test_two_signs_are_put_right_wherever_the_name_stands(protocol: str, raw: str) -> None:
    (call,) = tp.parse(raw, protocol, [NAMED]).calls
    assert (call.ok, call.arguments) == (True, {"a": 1, "bb": 2, "cc": "x y"})
    # Of a tool that no one knows there is nothing to look for that far.
    (call,) = tp.parse(raw, protocol, [{**NAMED, "name": "other"}]).calls
    assert not call.ok


@asked_of("case", rows("damaged_tags.jsonl"))
def test_each_body_of_tags_is_read_as_the_table_says(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case["protocol"], TAG_TOOLS)
    calls = [
        {"status": c.status, **({"arguments": c.arguments} if c.readable else {})}
        for c in result.calls
    ]
    assert calls == case["calls"]

    rules = {e.rule for c in result.calls for e in c.edits}
    rules |= {s.rule for c in result.calls for s in c.steps}
    assert rules == set(case["rules"])
    codes = {p.code for c in result.calls for p in c.problems} - {"call.rescued-closer"}
    assert codes == set(case["codes"])
