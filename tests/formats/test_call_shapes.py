"""Names and arguments under other keys, under two keys, or of a tool that is only described: the
same in every format of JSON objects."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.laws import check_all
from tests.tables import each_case

NUMBERS = {"a": {"type": "integer"}, "b": {"type": "integer"}}
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": NUMBERS}}]
AROUND = {
    "hermes": ("<tool_call>\n", "\n</tool_call>"),
    "granite3": ("<|tool_call|>[", "]"),
    "command_r7b_a": ("<|START_ACTION|>[", "]<|END_ACTION|>"),
    "llama3_python_tag": ("<|python_tag|>", ""),
    "longcat": ("<longcat_tool_call>", "</longcat_tool_call>"),
}
ALONE = {"auto": ("", ""), "xlam_array": ("[", "]"), "markdown_json": ("```json\n", "\n```")}


def read(case: dict[str, Any], protocol: str) -> tp.ParseResult:
    """The object of a case between the delimiters of a format."""
    opener, closer = (AROUND | ALONE)[protocol]
    return check_all(opener + case["object"] + closer, protocol, TOOLS)


@pytest.mark.parametrize("protocol", AROUND | ALONE)
@pytest.mark.parametrize("case", rows("call_shapes.jsonl"))
def test_an_object_is_these_calls(case: dict[str, Any], protocol: str) -> None:
    result = read(case, protocol)
    assert [[c.name, c.arguments] for c in result.calls if c.valid] == case["calls"]


@pytest.mark.parametrize("protocol", AROUND)
@pytest.mark.parametrize("case", [c for c in rows("call_shapes.jsonl") if c.values[0]["problem"]])
def test_between_delimiters_a_refusal_says_why(case: dict[str, Any], protocol: str) -> None:
    assert [problem.code for problem in read(case, protocol).calls[0].problems] == [case["problem"]]


@each_case
def test_calls_of_a_message_keep_their_arguments(call: str, arguments: list[Any]) -> None:
    for protocol in ("openai_json", "auto"):
        result = check_all(f'{{"content": "", "tool_calls": [{call}]}}', protocol, TOOLS)
        assert [call.arguments for call in result.calls if call.valid] == arguments
        assert result.calls
