"""Readings of a refused call: up to five, of JSON and of tags, and they stand in every view."""

from __future__ import annotations

import re

import pytest

import toolparse_lab as tp
from toolparse_lab.views import render_ansi, render_result
from toolparse_lab.views.marks import marks_of
from toolparse_lab.views.stages import parts_of

TOOLS = [
    {
        "name": "note",
        "parameters": {
            "type": "object",
            "properties": {n: {"type": "string"} for n in ("text", "path", "taxt")},
        },
    }
]
TEXTS = {
    "hermes": '<tool_call>{"name": "note", "arguments": {"text": "a\\n\\}n<b>"}}</tool_call>',
    "yaml_xml": '<note>\ntxt: "<i>"\n</note>',
    "qwen3_coder_xml": "<tool_call>\n<function=note>\n<parameter=txt>\n<i>\n</parameter>\n"
    "</function>\n</tool_call>",
}


@pytest.mark.parametrize("protocol", sorted(TEXTS))
def test_a_refused_call_shows_what_it_may_be(protocol: str) -> None:
    result = tp.parse(TEXTS[protocol], protocol, TOOLS)
    (call,) = result.calls

    assert not call.valid
    assert 1 <= len(call.readings) <= 5
    assert all(reading.name == "note" and reading.edits for reading in call.readings)
    assert "It may be note {" in result.why()
    assert "it may be note {" in render_ansi(result)
    html = render_result(result)
    assert 'class="badge bad">✗ refused</span>' in html
    assert not re.search("<i>|n<b>", html)
    assert tp.ParseResult.from_dict(result.to_dict()) == result


DOUBLE_KEYS = {
    '{"text": "a", "path": "x", "text": "b"}': ('"text": "a"', '"text": "b"'),
    "{'text': 'a', 'path': {'q': [1, 2]}, 'path': 'b, \"c',}": (
        "'path': {'q': [1, 2]}",
        "'path': 'b, \"c'",
    ),
    '{"text": {"q": "}", "q": 2}, "path": "x"}': ('"q": "}"', '"q": 2'),
}


@pytest.mark.parametrize("arguments", DOUBLE_KEYS)
def test_a_key_with_two_values_shows_both_and_marks_both(arguments: str) -> None:
    text = f'<tool_call>{{"name": "note", "arguments": {arguments}}}</tool_call>'
    result = tp.parse(text, "hermes", TOOLS)
    (call,) = result.calls
    assert not call.valid
    assert call.problems[0].code == "decode.duplicate-key"
    # The first value, then the second: what each leaves out is marked.
    first, again = call.readings
    assert first.arguments != again.arguments
    assert {e.rule for e in first.edits} >= {"rjson.double-key"}
    marked = [mark.span.of(text) for mark in marks_of(result) if mark.label.startswith("one of")]
    assert tuple(marked) == DOUBLE_KEYS[arguments]
    doubtful = [node for node in parts_of(result).nodes if node.get("doubt")]
    assert len(doubtful) == 1
    assert " or " in doubtful[0]["text"]


def test_of_several_such_keys_nothing_is_made_up() -> None:
    text = '<tool_call>{"name": "note", "arguments": {"text": 1, "text": 2, "text": 3}}</tool_call>'
    assert tp.parse(text, "hermes", TOOLS).calls[0].readings == ()
