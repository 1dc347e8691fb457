"""`openai_json`: a provider's own calls as canonical JSON, and the same JSON as a model writes it,
under the laws."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import load
from tests.laws import check_all, run_chunks
from tests.tables import asked_of
from tests.tools import tool_named

TOOLS = [tool_named("f", a="integer", s="string")]
CASES = load("openai_json.jsonl")


@pytest.mark.parametrize("protocol", ["openai_json", "native", "auto"])
@asked_of("case", CASES, ids=lambda c: c["id"])
def test_messages(case: dict[str, Any], protocol: str) -> None:
    result = check_all(case["raw"], protocol, TOOLS)
    found = [
        [c.name, c.status, c.arguments_json, [p.code for p in c.problems]] for c in result.calls
    ]
    assert found == case["calls"]
    assert result.text == case["text"]
    assert result.reasoning == case.get("reasoning", "")
    assert [[e.rule for e in c.edits] for c in result.calls] == case.get(
        "edits", [[] for _ in found]
    )
    assert [[s.rule for s in c.steps] for c in result.calls] == case.get(
        "steps", [[] for _ in found]
    )


@pytest.mark.parametrize("case", [c for c in CASES if "origins" in c], ids=lambda c: c["id"])
def test_origins_are_the_raw_characters(case: dict[str, Any]) -> None:
    result = tp.parse(case["raw"], "openai_json", TOOLS)
    for call, wanted in zip(result.calls, case["origins"], strict=True):
        for path, text in wanted.items():
            origin = call.origin(path)
            assert (origin.span.of(case["raw"]), origin.exact) == (text, True)


def test_what_is_wrong_is_shown_where_it_stands() -> None:
    raw = (
        '{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\\"a\\": 1 oops}"}}]}'
    )
    call = tp.parse(raw, "openai_json", TOOLS).calls[0]
    span = call.problems[0].span
    assert span is not None
    assert raw[span.start :].startswith("oops")


def test_a_key_with_two_values_has_both_readings() -> None:
    arguments = json.dumps('{"a": 1, "a": 2}')
    raw = f'{{"content":null,"tool_calls":[{{"function":{{"name":"f","arguments":{arguments}}}}}]}}'
    readings = tp.parse(raw, "openai_json", TOOLS).calls[0].readings
    assert [(reading.name, reading.arguments) for reading in readings] == [
        ("f", {"a": 1}),
        ("f", {"a": 2}),
    ]
    # Each leaves out the other member, at its place in the response.
    left_out = [edit.span.of(raw) for reading in readings for edit in reading.edits]
    assert left_out == [', \\"a\\": 2', '\\"a\\": 1,']


def test_events_say_texts_and_calls_of_their_own() -> None:
    raw = '{"content":"a\\nb","tool_calls":[{"id":"x","function":{"name":"f","arguments":"{}"}}]}'
    _, log = run_chunks([raw[:30], raw[30:]], "openai_json", TOOLS)
    assert [kind for kind, *_ in log] == [
        "Markup", "TextDelta", "Markup", "CallStart", "CallDelta", "CallEnd", "Markup",
    ]  # fmt: skip


def test_repair_off_and_depth() -> None:
    raw = '{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\\"a\\": 1,}"}}]}'
    call = tp.parse(raw, "openai_json", TOOLS, {"repair": False}).calls[0]
    assert (call.status, call.problems[0].code) == ("undecodable", "decode.json")
    deep = json.dumps({"a": json.loads("[" * 60 + "]" * 60)})
    raw = json.dumps(
        {"content": None, "tool_calls": [{"function": {"name": "f", "arguments": deep}}]}
    )
    call = tp.parse(raw, "openai_json", TOOLS, {"max_depth": 30}).calls[0]
    assert call.status == "undecodable"
    assert call.problems[0].code == "decode.too-deep"
    check_all('{"content":' * 5000, "openai_json", TOOLS, every_split=False)


def test_calls_are_joined_in_one_message() -> None:
    protocol = tp.protocols()["openai_json"]
    one, two = protocol.write_call("f", '{"a":1}'), protocol.write_call("f", '{"s":"\\"]}"}')
    result = check_all(protocol.join_calls([one, two]), "openai_json", TOOLS)
    assert [(c.wire_id, c.arguments) for c in result.calls] == [
        ("call_0", {"a": 1}),
        ("call_1", {"s": '"]}'}),
    ]


def test_a_message_in_auto_is_no_obstacle_to_other_formats() -> None:
    raw = '{"content": 1}\n<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
    assert [c.protocol for c in tp.parse(raw, "auto", TOOLS).calls] == ["hermes"]
    bare = '{"name": "f", "arguments": {"a": 1}}'
    assert [c.arguments for c in tp.parse(bare, "auto", TOOLS).calls] == [{"a": 1}]


def test_origins_in_a_string_that_was_repaired_itself() -> None:
    """In other formats too: the text inside the string is found by way of the repaired string."""
    raw = '<tool_call>{"name":"f","arguments":"{\\"s\\":\\"x \\\\\\i\\"}"}</tool_call>'
    call = check_all(raw, "hermes", TOOLS).calls[0]
    assert call.arguments == {"s": "x \\i"}
    assert call.origin("/s").span.of(raw) == "x \\\\\\i"


# `openai_strict`: the calls of a strict mode, read and written, under the laws.


STRICT_TOOLS: list[dict[str, Any]] = [
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
STRICT_CASES = load("openai_strict.jsonl")


@pytest.mark.parametrize("case", STRICT_CASES, ids=lambda c: c["id"])
def test_cases(case: dict[str, Any]) -> None:
    calls = check_all(case["raw"], "openai_strict", STRICT_TOOLS).calls
    assert [[c.name, c.status, c.arguments] for c in calls] == case["calls"]
    rules = [[*(e.rule for e in c.edits), *(s.rule for s in c.steps)] for c in calls]
    assert rules == case["rules"]
    assert [c.valid for c in calls] == [case["valid"]]


def test_a_step_names_the_object_and_the_rest_keeps_its_origin() -> None:
    raw = STRICT_CASES[0]["raw"]
    call = tp.parse(raw, "openai_strict", STRICT_TOOLS).calls[0]
    (step,) = call.steps
    assert (step.path, step.before, step.after) == (
        "",
        {"port": "Bergen", "days": None},
        {"port": "Bergen"},
    )
    assert call.origin("/port").span.of(raw) == "Bergen"


def test_it_writes_null_for_what_is_left_out() -> None:
    protocol, tool = tp.protocols()["openai_strict"], tp.ToolSpec.of(STRICT_TOOLS[0])
    text = protocol.write_call("lookup_tide", '{"port":"Oslo"}', tool)
    message = json.loads(text)["tool_calls"][0]["function"]
    assert json.loads(message["arguments"]) == {"port": "Oslo", "days": None}
    assert tp.parse(text, protocol, STRICT_TOOLS).calls[0].arguments == {"port": "Oslo"}
    assert '"days' not in protocol.write_call("lookup_tide", '{"port":"Oslo"}')


def test_the_provider_s_own_json_without_a_strict_mode_keeps_its_nulls() -> None:
    call = tp.parse(STRICT_CASES[0]["raw"], "openai_json", STRICT_TOOLS).calls[0]
    assert call.arguments == {"port": "Bergen", "days": None}
    assert not call.valid
