"""The smallest text for each rule and code that no case file speaks of."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.formats.base import DecodeContext, Opening
from toolparse_lab.formats.python.call import PythonCalls

TOOLS = [
    {
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "boolean"},
                "x": {"type": "number"},
            },
        },
    }
]
TEXT_TOOL = [
    {
        "name": "f",
        "parameters": {
            "type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"],
        },
    }
]  # fmt: skip
DOTTED = [{**TOOLS[0], "name": "a.f"}]
HERMES = '<tool_call>{"name":"f","arguments":%s}</tool_call>'


@pytest.mark.parametrize(
    ("rule", "raw", "protocol", "policy", "tools", "arguments"),
    [
        ("coerce.go-parse-bool", HERMES % '{"b":"T"}', "hermes", "go-strconv", TOOLS, {"b": True}),
        ("coerce.go-parse-float", HERMES % '{"x":"1.5"}', "hermes", "go-strconv", TOOLS, {"x": 1.5}),
        ("coerce.go-parse-int", HERMES % '{"a":"3"}', "hermes", "go-strconv", TOOLS, {"a": 3}),
        ("coerce.lossy", HERMES % '{"a":"3.7"}', "hermes", "lossy", TOOLS, {"a": 3}),
        ("pythonic.json-literal", "[f(b=true)]", "pythonic", "safe", TOOLS, {"b": True}),
        ("read.positional", "[f(1)]", "pythonic", "safe", TOOLS, {"a": 1}),
        ("read.dotted-name", "[a_f(a=1)]", "pythonic", "safe", DOTTED, {"a": 1}),
        ("read.doubled-name", HERMES.replace('"f"', '"f.f"') % '{"a":1}', "hermes", "safe", TOOLS, {"a": 1}),
        ("read.module-name", HERMES.replace('"f"', '"functions.f"') % '{"a":1}', "hermes", "safe", TOOLS, {"a": 1}),
        ("read.leaked-mark", HERMES.replace('"f"', '"f<|channel|>json"') % '{"a":1}', "hermes", "safe", TOOLS, {"a": 1}),
        ("read.trimmed-name", HERMES.replace('"f"', '" f"') % '{"a":1}', "hermes", "safe", TOOLS, {"a": 1}),
        ("read.text-body", "<f>hello</f>", "morph_xml", "safe", TEXT_TOOL, {"s": "hello"}),
        (
            "read.function-wrapper",
            '<tool_call>{"function":{"name":"f","arguments":{"a":1}}}</tool_call>',
            "hermes", "safe", TOOLS, {"a": 1},
        ),
        (
            "read.list-wrapper",
            '{"tool_calls":[{"name":"f","arguments":{"a":1}}]}',
            "xlam_array", "safe", TOOLS, {"a": 1},
        ),
    ],
)  # fmt: skip
def test_the_rule_is_applied_and_recorded(
    rule: str, raw: str, protocol: str, policy: str, tools: Any, arguments: dict[str, Any]
) -> None:
    (call,) = tp.parse(raw, protocol, tools, {"coerce": policy}).calls
    assert call.arguments == arguments
    assert rule in {s.rule for s in call.steps} | {e.rule for e in call.edits}


def test_a_list_that_is_no_python_is_refused_with_its_place() -> None:
    context = DecodeContext(Opening(0), True, True, 1000, {})
    with pytest.raises(Refusal) as caught:
        PythonCalls().read("[f(a=1 b=2)]", context)
    assert (caught.value.code, caught.value.position) == ("decode.pythonic", 7)


class Twice:
    """Somebody else's parser: a call, and behind it a text that the call's own text holds, too."""

    def format_tools(self, tools: Any, tool_system_prompt_template: Any) -> str:
        return ""

    def format_tool_call(self, tool_call: Any) -> str:
        return ""

    def format_tool_response(self, tool_result: Any) -> str:
        return ""

    def parse_generated_text(self, text: str, tools: Any, options: Any) -> list[dict[str, Any]]:
        call = {"type": "tool-call", "toolName": "f", "input": "{}"}
        return [call, {"type": "text", "text": "b"}, {"type": "text", "text": "c"}]

    def create_stream_parser(self, tools: Any, options: Any) -> Any:
        return lambda chunks: self.parse_generated_text("".join(chunks), tools, options)


def test_a_text_with_two_places_is_noted() -> None:
    result = tp.parse("f(b) b c", Twice())
    assert "foreign.ambiguous-place" in [p.code for p in result.all_problems()]
