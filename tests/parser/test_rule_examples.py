"""The smallest text for each rule and code that no case file speaks of."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.arguments.rjson.strict import Refusal
from toolparse_lab.formats.base import DecodeContext, Opening
from toolparse_lab.formats.python.call import PythonCalls


@each_case
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
