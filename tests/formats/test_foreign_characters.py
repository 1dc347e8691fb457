"""One character too many, at every boundary of a call in parameter tags: no value takes in a tag."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import part
from tests.tools import tool_named

ARGUMENTS = {"q": "sea", "limit": 5, "note": "x y"}
TEXT = {"type": "string"}
TOOL = tool_named("find", required=["q"], q=TEXT, limit="integer", note=TEXT)
FORMATS = [
    name
    for name, protocol in tp.protocols().items()
    if ".parameters." in type(protocol.codec).__module__
]


def damaged(name: str, sign: str) -> list[str]:
    text = tp.protocols()[name].write_call("find", json.dumps(ARGUMENTS), tp.ToolSpec.of(TOOL))
    places = {m.start() for m in re.finditer("<", text)} | {m.end() for m in re.finditer(">", text)}
    return [text[:at] + sign + text[at:] for at in sorted(places)]


@pytest.mark.parametrize("tools", [[TOOL], None], ids=["tools", "no tools"])
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.exhaustive(5)
def test_no_value_takes_in_a_tag(name: str, tools: list[Any] | None) -> None:
    every = [(raw, p) for sign in ",x<>\n" for raw in damaged(name, sign) for p in (name, "auto")]
    for raw, protocol in part(every, 3):
        for call in tp.parse(raw, protocol, tools).calls:
            if not (call.ok and call.valid):
                continue
            for key, value in call.arguments.items():
                own = str(ARGUMENTS.get(key, "any"))
                longest = len(own) + 1 + 2  # with a line break of its own
                assert len(str(value)) <= longest, (protocol, raw, call.arguments)
