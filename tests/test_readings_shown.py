"""Readings of a refused call: up to five, of JSON and of tags, and they stand in every view."""

from __future__ import annotations

import re

import pytest

import toolparse_lab as tp
from toolparse_lab.views import render_ansi, render_result

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
    assert "It may be note {" in html
    assert not re.search("<i>|<b>", html)
    assert tp.ParseResult.from_dict(result.to_dict()) == result
