"""Calls written as Python outside their format: what counts as one, the same in every chunking."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import rows
from tests.growth import grows_linearly
from tests.laws import check_all


def tool(name: str, **types: str) -> dict[str, Any]:
    """A tool with parameters of these types."""
    properties = {key: {"type": type_} for key, type_ in types.items()}
    return {"name": name, "parameters": {"type": "object", "properties": properties}}


TOOLS = [
    tool("f", a="integer"),
    tool("g", b="integer"),
    tool("math.gcd", a="integer", b="integer"),
    tool("find_it", text="string"),
    tool("save", text="string"),
    tool("ping"),
    tool("f_h", a_b="integer"),
    tool("x.y_z", a="integer"),
    tool("x_y.z", a="integer"),
]


@pytest.mark.parametrize("protocol", ["auto", "pythonic"])
@pytest.mark.parametrize("case", rows("call_lines.jsonl"))
def test_a_text_holds_these_calls(case: dict[str, Any], protocol: str) -> None:
    result = check_all(case["raw"], protocol, TOOLS)
    assert [[c.name, c.arguments] for c in result.calls if c.ok] == case["calls"]


@pytest.mark.parametrize("case", [c for c in rows("call_lines.jsonl") if c.values[0]["calls"]])
def test_a_text_that_ends_early_holds_the_same_calls_or_fewer(case: dict[str, Any]) -> None:
    for end in range(len(case["raw"])):
        result = tp.parse(case["raw"][:end], "auto", TOOLS)
        calls = [[c.name, c.arguments] for c in result.calls if c.ok]
        assert calls == case["calls"][: len(calls)]


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder_xml"])
def test_formats_that_are_not_python_leave_it_as_text(protocol: str) -> None:
    assert not tp.parse("f(a=1)", protocol, TOOLS).calls


@pytest.mark.parametrize(
    ("protocol", "closer"),
    [("lfm2", "<|tool_call_end|>"), ("llama4_python_start", "<|python_end|>")],
)
def test_the_closer_may_stand_behind_a_list_whose_opener_is_lost(
    protocol: str, closer: str
) -> None:
    result = check_all(f"[f(a=1)]{closer}", protocol, TOOLS)
    assert [(c.name, c.arguments) for c in result.calls if c.valid] == [("f", {"a": 1})]
    assert not result.text
    # Further on in a text it says that something is wrong.
    assert not [c for c in tp.parse(f"Hm.\n[f(a=1)]{closer}", protocol, TOOLS).calls if c.valid]


def test_it_can_be_switched_off_and_needs_tools() -> None:
    assert not tp.parse("f(a=1)", "auto", TOOLS, {"recover": False}).calls
    assert not tp.parse("f(a=1)", "auto").calls


@pytest.mark.parametrize("piece", ["f(a=1), ", "f(a=1)\n", "f(", "[f(a=", 'Hm. ["f(', "f(a=1)\n["])
def test_many_of_them_take_linear_time(piece: str) -> None:
    assert grows_linearly(lambda n: tp.parse(piece * n, "auto", TOOLS), 500)
