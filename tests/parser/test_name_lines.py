"""A tool's name alone on a line with its arguments on the next: a call in every format."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.laws import check_all
from tests.tables import each_case

PROTOCOLS = ["auto", "hermes", "glm4_9b", "functionary_v32", "qwen3_coder_xml", "pythonic"]


def tool(name: str, required: list[str], **types: str) -> dict[str, Any]:
    """A tool with parameters of these types."""
    properties = {key: {"type": type_} for key, type_ in types.items()}
    schema = {"type": "object", "properties": properties, "required": required}
    return {"name": name, "parameters": schema}


TOOLS = [tool("f", ["a"], a="integer"), tool("g", []), tool("find", [], text="string")]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("case", rows("name_lines.jsonl"))
def test_a_text_holds_these_calls(case: dict[str, Any], protocol: str) -> None:
    result = check_all(case["raw"], protocol, TOOLS)
    assert [[c.name, c.arguments] for c in result.calls if c.valid] == case["calls"]


@pytest.mark.parametrize("case", [c for c in rows("name_lines.jsonl") if c.values[0]["calls"]])
def test_a_text_that_ends_early_holds_the_same_calls_or_fewer(case: dict[str, Any]) -> None:
    for end in range(len(case["raw"])):
        result = tp.parse(case["raw"][:end], "hermes", TOOLS)
        calls = [[c.name, c.arguments] for c in result.calls if c.valid]
        assert calls == case["calls"][: len(calls)]


def test_in_its_own_format_every_call_is_one() -> None:
    result = tp.parse('f\n{"a": 1}\nf\n{"a": 2}', "glm4_9b", TOOLS)
    assert [call.confidence for call in result.calls] == [1, 1]
    assert result.verdict == "clean"


def test_it_can_be_switched_off_and_needs_tools() -> None:
    raw = 'Sure.\nf\n{"a": 1}'
    assert not tp.parse(raw, "hermes", TOOLS, {"recover": False}).calls
    assert not tp.parse(raw, "hermes").calls


def test_a_call_in_a_value_that_is_cut_off_is_a_draft() -> None:
    raw = 'Sure.\nfind\n{"text": "<tool_call>{"name": "g", "arguments": {}}</tool_call>'
    assert not [call for call in tp.parse(raw, "hermes", TOOLS).calls if call.ok]


@pytest.mark.parametrize("piece", ["f\n", "\nf\n{", '\nf\n{"a": 1}', "\nf\n{}{", "\nfin"])
def test_many_of_them_take_linear_time(piece: str) -> None:
    assert grows_linearly(lambda n: tp.parse(piece * n, "hermes", TOOLS), 500)


@each_case
def test_behind_a_call_the_name_begins_the_next_one(protocol: str, raw: str) -> None:
    for reader in (protocol, "auto"):
        result = check_all(raw, reader, TOOLS)
        calls = [(call.name, call.arguments) for call in result.calls if call.valid]
        assert calls == [("f", {"a": 1}), ("find", {"text": "x"})]
    for more in (" and f is a tool", ', "g": 1}', ', h{"a": 1}', ", f of it"):
        assert len(check_all(raw + more, protocol, TOOLS).calls) == 2
