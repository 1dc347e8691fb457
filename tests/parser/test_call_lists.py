"""Lists and rows of calls with a bracket too many: every call of them is read, or none in
silence."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.laws import check_all

TOOLS = [
    {"name": name, "parameters": {"type": "object", "properties": {key: {"type": "integer"}}}}
    for name, key in (("f", "a"), ("g", "b"))
]
AROUND = {
    "hermes": ("<tool_call>", "</tool_call>"),
    "mistral_v3": ("[TOOL_CALLS] ", ""),
    "granite3": ("<|tool_call|>", ""),
    "granite31_text": ("<tool_call>", ""),
    "phi4_tool_tag": ("<|tool_call|>", "<|/tool_call|>"),
    "phi4_mini": ("functools", ""),
    "llama3_python_tag": ("<|python_tag|>", "<|eom_id|>"),
    "jamba": ("<tool_calls>", "</tool_calls>"),
    "nemotron_nano_v2": ("<TOOLCALL>", "</TOOLCALL>"),
    "xlam_array": ("", ""),
    "llama3_json": ("", ""),
    "auto": ("", ""),
}
LISTS_ALONE = ("granite31_text", "jamba")  # another format has the opener before objects


@pytest.mark.parametrize("protocol", AROUND)
@pytest.mark.parametrize("case", rows("call_lists.jsonl"))
def test_every_call_is_read(case: dict[str, Any], protocol: str) -> None:
    if protocol in LISTS_ALONE and case["body"][0] != "[":
        pytest.skip("this format has lists alone")
    opener, closer = AROUND[protocol]
    result = check_all(opener + case["body"] + closer, protocol, TOOLS)
    assert [[c.name, c.arguments] for c in result.calls if c.valid] == case["calls"]
    assert not result.text


def test_what_follows_a_call_and_is_none_stays_text() -> None:
    raw = '[TOOL_CALLS][{"name": "f", "arguments": {"a": 1}}], {"temperature": 3}'
    result = check_all(raw, "mistral_v3", TOOLS)
    assert [c.arguments for c in result.calls if c.valid] == [{"a": 1}]
    assert result.text == ', {"temperature": 3}'


def test_a_list_that_is_cut_off_behind_its_damage_is_refused() -> None:
    raw = '[TOOL_CALLS][{"name":"f","arguments":{"a":1}}}, {"name":"g","arguments":{"b"'
    result = check_all(raw, "mistral_v3", TOOLS)
    assert result.verdict == "truncated"
    assert not [c for c in result.calls if c.valid]


@pytest.mark.parametrize("piece", ['{"name":"f","arguments":{}}}, ', '{"name":"f"}]', "]", "}, "])
def test_many_of_them_take_linear_time(piece: str) -> None:
    assert grows_linearly(lambda n: tp.parse("[TOOL_CALLS][" + piece * n, "mistral_v3", TOOLS), 500)
