"""Names that are no tool's: what a server left at them is taken off, and nothing else is."""

from __future__ import annotations

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.formats.tool_names import near_tool, offered_name

TOOLS = ["find_berth", "now", "delete", "Calendar.create"]
OTHER = [
    "find_berthfind_berth", "find_berth_v2", "find_berth now", "find_berth.now", "Find_Berth",
    "delete<|channel|>commentary to=functions.now", "delete<|message|>now", "find_berth(", "now now",
    "commentary", "functions", "", "x" * 500, "<" * 300,
]  # fmt: skip


@each_case
def test_a_mark_of_a_format_is_taken_off(name: str) -> None:
    offered = offered_name(name, TOOLS)
    assert offered is not None
    assert (offered.name, offered.rule) == ("find_berth", "read.leaked-mark")
    assert name[offered.start :].startswith("find_berth")


@pytest.mark.parametrize("name", OTHER)
def test_any_other_name_is_left_alone(name: str) -> None:
    assert offered_name(name, TOOLS) is None


@each_case
def test_the_one_tool_near_to_a_name_is_told_and_not_called(name: str, near: str | None) -> None:
    assert near_tool(name, TOOLS) == near
    text = f'<tool_call>{{"name": "{name}", "arguments": {{}}}}</tool_call>'
    (call,) = tp.parse(text, "hermes", [{"name": tool} for tool in TOOLS]).calls
    assert (call.status, call.name) == ("unknown_tool", name)
    assert call.problems[0].message.endswith(f"near to it is {near!r}" if near else "create")
