"""`tp.detect`: the format a text is in comes first, and the reason says why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.core.errors import BadToolSpec, UnreadableInput

FORMATS = [
    json.loads(line)
    for line in (Path(__file__).parents[1] / "cases" / "formats.jsonl").read_text().splitlines()
]
KNOWN = [c for c in FORMATS if c["format"] in tp.protocols()]
TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
GOOD = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'


@pytest.mark.parametrize("case", KNOWN, ids=lambda c: str(c["id"]))
def test_the_right_format_is_first(case: dict[str, Any]) -> None:
    first = tp.detect(case["raw"], case["tools"])[0]
    wanted = tp.parse(case["raw"], case["format"], case["tools"])
    # Another format may read the very same text as the same calls; then nothing tells them apart.
    same = tp.parse(case["raw"], first.protocol, case["tools"])
    assert first.protocol == case["format"] or [
        (c.name, c.arguments, c.edits) for c in same.calls
    ] == [(c.name, c.arguments, c.edits) for c in wanted.calls]
    assert {*first.spans} == {c.segment.span for c in wanted.calls}


@each_case
def test_the_reason_says_what_was_read(text: str, said: str) -> None:
    assert str(tp.detect(text, TOOLS)[0]) == said


def test_of_two_formats_that_read_equally_well_the_one_with_more_text_is_first() -> None:
    fence = '```tool_call\n{"name": "f", "arguments": {"a": 1}}\n```\n'
    for text, order in (
        (GOOD + fence * 2, ["gemma", "hermes"]),
        (GOOD * 2 + fence, ["hermes", "gemma"]),
    ):
        found = [c.protocol for c in tp.detect(text, TOOLS) if c.score == 1 and c.protocol in order]
        assert found == order


def test_a_text_without_calls_has_no_format() -> None:
    assert tp.detect("I would rather talk.", TOOLS) == ()
    assert tp.detect("") == ()


def test_what_is_no_text_raises_like_parse() -> None:
    number: Any = 3
    with pytest.raises(UnreadableInput):
        tp.detect(number)
    with pytest.raises(BadToolSpec):
        tp.detect(GOOD, [{}])


def test_a_call_outside_every_format_is_still_found() -> None:
    (candidate,) = tp.detect("f(a=1)", TOOLS)
    assert str(candidate) == "auto 0.40: 1 call was read; outside every format's delimiters."


@pytest.mark.parametrize(
    "text",
    [f"<think>Perhaps {GOOD}</think>", f"<think>Perhaps {GOOD}", f"Perhaps {GOOD}</think> No."],
)
def test_of_a_call_in_the_reasoning_the_option_that_reads_it_is_named(text: str) -> None:
    first = tp.detect(text, TOOLS)[0]
    assert first.protocol == "hermes"
    assert first.score == 0.4
    assert "reasoning='none'" in first.why
    options = tp.ParseOptions(reasoning="none")
    assert tp.parse(text, first.protocol, TOOLS, options).calls[0].ok
    # A call behind the thoughts is the answer, and nothing is said about them.
    assert tp.detect(f"<think>Hm.</think>{GOOD}", TOOLS)[0].why == "1 call was read."
