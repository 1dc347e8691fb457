"""Calls outside their format, beside those of the table of texts: when none is read, and what they
cost."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.laws import check_all
from tests.parser.test_texts import TOOLS
from tests.tables import each_case

LINES, NAMES, LISTS = (TOOLS[name] for name in ("call_lines", "name_lines", "lists"))


@pytest.mark.parametrize("protocol", ["hermes", "qwen3_coder_xml"])
def test_formats_that_are_not_python_leave_it_as_text(protocol: str) -> None:
    assert not tp.parse("f(a=1)", protocol, LINES).calls


@pytest.mark.parametrize(
    ("protocol", "closer"),
    [("lfm2", "<|tool_call_end|>"), ("llama4_python_start", "<|python_end|>")],
)
def test_the_closer_may_stand_behind_a_list_whose_opener_is_lost(
    protocol: str, closer: str
) -> None:
    result = check_all(f"[f(a=1)]{closer}", protocol, LINES)
    assert [(c.name, c.arguments) for c in result.calls if c.valid] == [("f", {"a": 1})]
    assert not result.text
    # Further on in a text it says that something is wrong.
    assert not [c for c in tp.parse(f"Hm.\n[f(a=1)]{closer}", protocol, LINES).calls if c.valid]


@pytest.mark.parametrize(
    ("raw", "protocol", "tools"),
    [("f(a=1)", "auto", LINES), ('Sure.\nf\n{"a": 1}', "hermes", NAMES)],
)
def test_it_can_be_switched_off_and_needs_tools(raw: str, protocol: str, tools: Any) -> None:
    assert not tp.parse(raw, protocol, tools, {"recover": False}).calls
    assert not tp.parse(raw, protocol).calls


@each_case
def test_behind_a_call_the_name_begins_the_next_one(protocol: str, raw: str) -> None:
    for reader in (protocol, "auto"):
        result = check_all(raw, reader, NAMES)
        calls = [(call.name, call.arguments) for call in result.calls if call.valid]
        assert calls == [("f", {"a": 1}), ("find", {"text": "x"})]
    for more in (" and f is a tool", ', "g": 1}', ', h{"a": 1}', ", f of it"):
        assert len(check_all(raw + more, protocol, NAMES).calls) == 2


COSTS = {
    "auto": ("", LINES, ["f(a=1), ", "f(a=1)\n", "f(", "[f(a=", 'Hm. ["f(', "f(a=1)\n["]),
    "hermes": ("", NAMES, ["f\n", "\nf\n{", '\nf\n{"a": 1}', "\nf\n{}{", "\nfin"]),
    "mistral_v3": (
        "[TOOL_CALLS][", LISTS, ['{"name":"f","arguments":{}}}, ', '{"name":"f"}]', "]", "}, "]
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("protocol", "piece"), [(name, piece) for name in COSTS for piece in COSTS[name][2]]
)
@pytest.mark.exhaustive(3)
def test_many_of_them_take_linear_time(protocol: str, piece: str) -> None:
    lead, tools, _ = COSTS[protocol]
    assert grows_linearly(lambda n: tp.parse(lead + piece * n, protocol, tools), 500)
