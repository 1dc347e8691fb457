"""What each format makes of whole, broken and hostile answers, under its own protocol and under
`auto`."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import CORE, rows
from tests.laws import check_all, in_pieces
from tests.tables import asked_of, each_case
from toolparse_lab.formats.json.mix import json_mix_protocol

TOOLS = json.loads((CORE / "parse_tools.json").read_text("utf-8"))


@asked_of("case", rows("parse.jsonl"))
def test_parse(case: dict[str, Any]) -> None:
    result = check_all(case["raw"], case["protocol"], TOOLS, case.get("options"), every_split=False)
    assert [[s.kind, s.span.of(result.raw)] for s in result.segments] == case["segments"]
    found = [
        [c.name, c.status, c.arguments if c.readable else None, [p.code for p in c.problems]]
        for c in result.calls
    ]
    assert found == case["calls"]
    assert [c.wire_id for c in result.calls] == case.get("ids", [None] * len(result.calls))
    assert [p.code for p in result.problems] == case.get("problems", [])


@asked_of("case", rows("parse.jsonl"))
@pytest.mark.parametrize("size", [1, 3])
def test_chunks_change_nothing(case: dict[str, Any], size: int) -> None:
    raw = case["raw"]
    assert in_pieces(raw, size, case["protocol"], TOOLS, case.get("options")) == tp.parse(
        raw, case["protocol"], TOOLS, case.get("options")
    )


@asked_of("protocol", list(tp.protocols()))
def test_written_calls_read_back(protocol: str) -> None:
    tool = tp.ToolSpec.of(TOOLS[2])
    arguments = {"path": "a/b é😀 <x> & \"q\" 'r' \\ \n", "tags": ["x", "y"]}
    if protocol == "beam":  # white space at the end of a value is the format's there
        arguments["path"] = "a/b é😀 <x> & \"q\" 'r' \\"
    text = tp.protocols()[protocol].write_call("put", json.dumps(arguments), tool)
    (call,) = tp.parse(text, protocol, TOOLS).calls
    assert (call.name, call.status, call.arguments) == ("put", "ok", arguments)
    assert call.edits == ()


@each_case
def test_what_cannot_be_written_is_refused(
    protocol: str, name: str, arguments: dict[str, Any]
) -> None:
    with pytest.raises(tp.errors.UnwritableCall):
        tp.protocols()[protocol].write_call(name, json.dumps(arguments), tp.ToolSpec.of(TOOLS[2]))


def test_delimiters_of_your_own() -> None:
    protocol = json_mix_protocol("[[CALL]]", "[[/CALL]]")
    result = tp.parse('x [[CALL]]{"name": "f", "arguments": {"a": 1}}[[/CALL]] y', protocol, TOOLS)
    assert [(c.name, c.arguments) for c in result.calls] == [("f", {"a": 1})]
    assert result.text == "x  y"
    for pair in (("", "x"), ("x", " ")):
        with pytest.raises(tp.errors.BadOptions):
            json_mix_protocol(*pair)
