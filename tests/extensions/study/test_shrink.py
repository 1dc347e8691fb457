"""The smallest text that has the same complaints as a long one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.laws import EXHAUSTIVE
from tests.tools import tool_named
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import ParseResult
from toolparse_lab.extensions.study import shrink

PROSE = "I will look that up for you. Please wait a moment, since the line is slow today.\n\n"
GOOD = '<tool_call>{"name": "f", "arguments": {"a": 3, "b": "fine"}}</tool_call>\n'
TOOLS: list[dict[str, Any]] = [
    tool_named("f", "Does what one sentence can say.", a="integer", b="string"),
    {"name": "g", "parameters": {"type": "object", "properties": {}}},
]
LONG = {
    "a wrong type": '<tool_call>{"name": "f", "arguments": {"b": "x", "a": "many"}}</tool_call>',
    "an unknown tool": '<tool_call>{"name": "h", "arguments": {"b": "x"}}</tool_call>',
    "a cut answer": '<tool_call>{"name": "f", "arguments": {"a": 1, "b": "unti',
    "a key twice": '<tool_call>{"name": "f", "arguments": {"b": "x", "a": 1, "a": 2}}</tool_call>',
    "a missing bracket": '<tool_call>{"name": "f", "arguments": {"a": [1, 2}}</tool_call>',
}


def complaints(result: ParseResult) -> set[str]:
    return {p.code for p in result.all_problems() if p.severity == "error"}


@pytest.mark.parametrize("what", LONG)
def test_what_stays_has_the_same_errors_and_none_of_the_rest(what: str) -> None:
    raw = PROSE + GOOD * 3 + LONG[what]
    small = shrink(raw, "hermes", TOOLS, seconds=60)
    assert small.whole
    assert complaints(small.result) == complaints(tp.parse(raw, "hermes", TOOLS)) != set()
    assert len(small.result.calls) == 1
    assert len(small.raw) <= len(LONG[what])
    assert len(small.tools) <= 1
    assert shrink(small.raw, "hermes", small.tools, seconds=60).raw == small.raw


def test_the_test_that_comes_of_it_passes() -> None:
    small = shrink(PROSE + LONG["a wrong type"], "hermes", TOOLS, seconds=60)
    source = small.as_test("test_it")
    names: dict[str, Any] = {}
    exec(
        f"from toolparse_lab.integrations.testing import assert_parses\n{source}\ntest_it()", names
    )
    assert "shrunk from" in source
    assert "still validate.type (argument)" in repr(small)


@given(st.lists(st.sampled_from([PROSE, GOOD, *LONG.values()]), max_size=6 if EXHAUSTIVE else 2))
@settings(max_examples=60 if EXHAUSTIVE else 4, deadline=None)
def test_any_answer_keeps_its_errors(parts: list[str]) -> None:
    raw = "\n".join(parts)
    before = complaints(tp.parse(raw, "hermes", TOOLS))
    assume(before)
    small = shrink(raw, "hermes", TOOLS, seconds=60)
    assert complaints(small.result) == before
    assert len(small.raw) <= len(raw)
    assert PROSE not in small.raw


def test_one_code_of_several() -> None:
    raw = PROSE + LONG["a wrong type"] + LONG["an unknown tool"]
    small = shrink(raw, "hermes", TOOLS, code="call.unknown-tool", seconds=60)
    assert complaints(small.result) == {"call.unknown-tool"}


def test_what_the_caller_looks_for() -> None:
    raw = (
        PROSE + GOOD + '<tool_call>{"name": "g", "arguments": {"deep": [1, {"x": 7}]}}</tool_call>'
    )
    small = shrink(raw, "hermes", keeps=lambda r: "7" in r.raw and bool(r.calls), seconds=60)
    assert small.result.calls
    assert "7" in small.raw
    assert len(small.raw) < 60


def test_a_text_that_is_repaired_without_a_complaint_keeps_its_repair() -> None:
    raw = PROSE + '<tool_call>{"name": "f", "arguments": {"b": "x", "a": oops}}</tool_call>'
    small = shrink(raw, "hermes", seconds=60)
    rules = {step.rule for step in small.result.calls[0].repair_steps}
    assert rules == {"rjson.unquoted-value"}
    assert PROSE not in small.raw


def test_the_time_is_kept() -> None:
    raw = PROSE * 40 + GOOD * 40 + LONG["a cut answer"]
    small = shrink(raw, "hermes", TOOLS, seconds=0.0)
    assert not small.whole
    assert "the time was up" in repr(small)
    assert complaints(small.result) == complaints(tp.parse(raw, "hermes", TOOLS))


def test_nothing_to_keep() -> None:
    with pytest.raises(BadOptions, match="nothing to keep"):
        shrink("Only words.", "hermes")
    with pytest.raises(BadOptions, match="no such complaint"):
        shrink(LONG["a cut answer"], "hermes", code="call.truncate")
    with pytest.raises(BadOptions, match="looked for"):
        shrink("Only words.", "hermes", keeps=lambda result: bool(result.calls))


def test_a_trial_is_shrunk_as_it_was_read() -> None:
    row = {"raw": PROSE + LONG["a wrong type"], "tools": TOOLS, "finish_reason": "stop"}
    trial = tp.Lab(":memory:").ingest([row], protocol="hermes").trials()[0]
    assert complaints(shrink(trial, seconds=60).result) == {"validate.type"}
