"""Arguments that a tool does not have: refused where its schema says so, told where it is silent."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.laws import in_pieces
from toolparse_lab.evals.frames.recorded import calls_frame

pydantic = pytest.importorskip("pydantic")


def berth(harbor: str, nights: int = 1) -> None:
    """Book a berth."""


def anything(harbor: str, **rest: int) -> None:
    """Take whatever comes."""


class Closed(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    """A model that forbids extras."""

    model_config = pydantic.ConfigDict(extra="forbid")
    harbor: str


SILENT = {"name": "berth", "parameters": {"type": "object", "properties": {"harbor": {}}}}
CLOSED = {"name": "berth", "parameters": {**SILENT["parameters"], "additionalProperties": False}}  # type: ignore[dict-item]
OPEN = {"name": "berth", "parameters": {**SILENT["parameters"], "additionalProperties": True}}  # type: ignore[dict-item]


def call_of(tool: Any, arguments: Any, options: Any = None) -> tp.ToolCall:
    spec = tp.ToolSpec.of(tool)
    raw = json.dumps({"name": spec.name, "arguments": arguments})
    return tp.parse(f"<tool_call>{raw}</tool_call>", "hermes", [spec], options).calls[0]


@pytest.mark.parametrize("tool", [berth, Closed, CLOSED])
def test_a_tool_that_takes_no_others_refuses(tool: Any) -> None:
    assert call_of(tool, {"harbor": "Oslo"}).valid
    for arguments in ({"harbor": "Oslo", "url": "x"}, {"harbor": "Oslo", "": {}}):
        call = call_of(tool, arguments)
        assert (call.valid, call.verdict) == (False, "invalid")


def test_others_of_a_function_have_its_annotation() -> None:
    assert call_of(anything, {"harbor": "Oslo", "more": 1}).verdict == "clean"
    assert not call_of(anything, {"harbor": "Oslo", "more": "x"}).valid


@pytest.mark.parametrize("arguments", [{"harbor": "Oslo", "harbour": "x"}, {"harbor": "x", "": {}}])
def test_a_silent_schema_gives_a_note(arguments: Any) -> None:
    call = call_of(SILENT, arguments)
    (note,) = call.problems
    (name,) = arguments.keys() - {"harbor"}
    assert (note.code, note.severity, note.path) == ("call.unknown-argument", "info", f"/{name}")
    assert ("the nearest is 'harbor'" in note.message) == bool(name)
    assert note.span is not None
    assert call.unchecked == (f"/{name}",)
    assert (call.valid, call.verdict, call.arguments) == (True, "unchecked", arguments)
    (row,) = calls_frame(tp.parse(call_text(arguments), "hermes", [SILENT])).to_dict("records")
    assert row["n_unknown_arguments"] == 1


def call_text(arguments: Any) -> str:
    return f"<tool_call>{json.dumps({'name': 'berth', 'arguments': arguments})}</tool_call>"


def test_the_choices() -> None:
    arguments = {"url": {"a": 1}, "harbor": "Oslo"}
    refused = call_of(SILENT, arguments, {"unknown_arguments": "refuse"})
    assert (refused.ok, refused.valid, refused.verdict) == (True, False, "invalid")
    for tool in (SILENT, CLOSED):
        dropped = call_of(tool, arguments, {"unknown_arguments": "drop"})
        assert (dropped.valid, dropped.arguments) == (True, {"harbor": "Oslo"})
        assert [s.rule for s in dropped.steps] == ["coerce.unknown-argument"]
        assert dropped.verdict == "repaired (lossy)"
        assert json.loads(dropped.source_json) == arguments
        origin = dropped.origin("/harbor").span
        assert call_text(arguments)[origin.start : origin.end] == "Oslo"
    for option in ("keep", "drop", "refuse"):
        call = call_of(OPEN, arguments, {"unknown_arguments": option})
        assert (call.verdict, call.arguments) == ("clean", arguments)
    with pytest.raises(tp.errors.BadOptions):
        tp.ParseOptions.of({"unknown_arguments": "perhaps"})


@pytest.mark.parametrize("fmt", ["hermes", "morph_xml", "qwen3_coder_xml", "pythonic", "glm_xml"])
def test_in_every_format_whole_and_by_characters(fmt: str) -> None:
    if fmt not in tp.protocols():
        pytest.skip("no format of this name")
    protocol = tp.protocols()[fmt]
    text = protocol.write_call("berth", '{"harbor":"Oslo","url":"x"}', tp.ToolSpec.of(OPEN))
    for option in ("keep", "drop", "refuse"):
        whole = tp.parse(text, fmt, [SILENT], {"unknown_arguments": option})
        assert in_pieces(text, 1, fmt, [SILENT], {"unknown_arguments": option}).calls == whole.calls
        (call,) = whole.calls
        assert call.valid == (option != "refuse")
        assert ("url" in call.arguments) == (option != "drop")
