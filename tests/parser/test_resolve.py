"""From a body to its calls: statuses, problems, names, and that a fault of ours becomes a
problem."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.formats.base import Codec, DecodeContext, Decoded
from toolparse_lab.formats.json.mix import HERMES

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]


class Faulty(Codec):
    """A codec with a fault."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        raise ZeroDivisionError("oh")

    def strict(self, body: str, context: DecodeContext) -> bool:
        return True

    def write(self, name: str, arguments_json: str, tool: Any) -> str:
        return ""


def test_a_fault_of_a_codec_becomes_a_problem() -> None:
    (call,) = tp.parse(
        "<tool_call>x</tool_call>", replace(HERMES, id="faulty", codec=Faulty()), TOOLS
    ).calls
    assert (call.status, [p.code for p in call.problems]) == ("undecodable", ["parser.failed"])
    assert "ZeroDivisionError" in call.problems[0].message


@pytest.mark.parametrize("policy", ["none", "safe", "middleware"])
def test_policies(policy: str) -> None:
    (call,) = tp.parse(
        '<tool_call>{"name": "f", "arguments": {"a": "1", "z": "2"}}</tool_call>',
        "hermes",
        TOOLS,
        {"coerce": policy},
    ).calls
    want = {
        "none": {"a": "1", "z": "2"},
        "safe": {"a": 1, "z": "2"},
        "middleware": {"a": 1, "z": 2},
    }
    assert call.arguments == want[policy]
    assert call.source_json == '{"a":"1","z":"2"}'
    assert call.valid is (policy != "none")


def test_validation_off() -> None:
    raw = '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>'
    assert not tp.parse(raw, "hermes", TOOLS).calls[0].valid
    assert tp.parse(raw, "hermes", TOOLS, {"validate": False}).calls[0].problems == ()


def test_without_tools_every_name_is_good() -> None:
    (call,) = tp.parse(
        '<tool_call>{"name": "zz", "arguments": {"a": "1"}}</tool_call>', "hermes"
    ).calls
    assert (call.status, call.arguments) == ("ok", {"a": "1"})


def test_an_unknown_tool_is_named_with_the_known_ones() -> None:
    (call,) = tp.parse(
        '<tool_call>{"name": "zz", "arguments": {"a": "1"}}</tool_call>', "hermes", TOOLS
    ).calls
    assert (call.status, call.valid) == ("unknown_tool", False)
    assert "'zz'" in call.problems[0].message
    assert "f" in call.problems[0].message
    assert call.arguments == {"a": "1"}


@each_case
def test_a_call_that_is_cut_keeps_the_name_of_its_opener(protocol: str, raw: str) -> None:
    (call,) = tp.parse(raw, protocol, TOOLS).calls
    assert (call.name, call.status) == ("f", "truncated")
    assert call.name_span is not None
    assert call.name_span.of(raw) == "f"


def test_names_that_are_escaped_have_a_span() -> None:
    raw = '<tool_call>{"arguments": {}, "name": "\\u0066"}</tool_call>'
    (call,) = tp.parse(raw, "hermes", TOOLS).calls
    assert call.name == "f"
    assert call.name_span is not None
    assert call.name_span.of(raw) == "\\u0066"


@pytest.mark.parametrize(
    "schema", [{"type": "nonsense"}, {"properties": {"a": {"$ref": "#/nope"}}}, True]
)
def test_a_strange_schema_never_breaks_a_parse(schema: Any) -> None:
    tools = [{"name": "f", "parameters": schema}]
    for policy in ("safe", "middleware"):
        (call,) = tp.parse(
            '<tool_call>{"name": "f", "arguments": {"a": "1"}}</tool_call>',
            "hermes",
            tools,
            {"coerce": policy},
        ).calls
        assert call.ok


ANSWERS = {
    "hermes": '<tool_call>{"name":"f","arguments":{"a":["1",{"a":null}]}}</tool_call>',
    "morph_xml": "<f><a>1</a><a>2</a></f>",
    "qwen3_coder_xml": "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n</function>\n</tool_call>",
    "yaml_xml": "<f>\na: 1\n</f>",
}


@each_case
@pytest.mark.parametrize("protocol", ANSWERS)
@pytest.mark.parametrize("policy", ["none", "safe", "middleware", "go-strconv", "lossy"])
@pytest.mark.exhaustive(7)
def test_a_broken_schema_breaks_no_parse(
    schema: dict[str, Any], protocol: str, policy: str
) -> None:
    result = tp.parse(
        ANSWERS[protocol], protocol, [{"name": "f", "parameters": schema}], {"coerce": policy}
    )
    assert not any(p.code == "parser.failed" for p in result.all_problems())
    assert all(c.readable for c in result.calls)
