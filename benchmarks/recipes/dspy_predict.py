"""The recipe of dspy: a signature with tools, by native function calling."""

from __future__ import annotations

from typing import Any

import cells
import dspy

TOOLS = {tool.__name__: dspy.Tool(tool) for tool in (cells.get_weather, cells.now)}


class Ask(dspy.Signature):
    """Answer, or call tools."""

    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    tool_calls: dspy.ToolCalls = dspy.OutputField()


def calls(cell: str, last: str) -> str:
    """Make the calls of one answer; `last` are the words of ours that follow."""
    names = cells.block("dspy", cell)
    with dspy.context(lm=names["lm"], adapter=names["adapter"]):
        answer = dspy.Predict(Ask)(question="Weather?", tools=list(TOOLS.values()))
    for call in answer.tool_calls.tool_calls:
        TOOLS[call.name](**call.args)
    return last


def text(cell: str, **more: Any) -> Any:
    """The model alone."""
    answer = cells.block("dspy", cell)["lm"]("Hello", **more)[0]
    return answer["text"] if isinstance(answer, dict) else answer


def malformed(cell: str) -> str:
    """A call that nobody can read is no call."""
    names = cells.block("dspy", cell)
    with dspy.context(lm=names["lm"], adapter=names["adapter"]):
        answer = dspy.Predict(Ask)(question="Weather?", tools=list(TOOLS.values()))
    if answer.tool_calls is None:
        raise cells.Limit("dspy gives None for the calls, and leaves the text out")
    return "a call came"


if __name__ == "__main__":
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": cells.WEATHER_SCHEMA}}
    one = "a Predict is one turn; dspy's own loop, ReAct, asks for calls in its own text"
    cells.run(
        {
            "whole": lambda cell: calls(cell, "It is sunny."),
            "stream": "dspy streams fields of text, no calls",
            "no tools": text,
            "no tools, stream": "dspy streams fields of a signature",
            "parallel": lambda cell: calls(cell, "Both are sunny."),
            "three turns": one,
            "tool error": one,
            "choice": "dspy sends no tool_choice",
            "malformed call": malformed,
            "response_format": lambda cell: text(cell, response_format=form),
        }
    )
