"""The recipe of LangChain: a chat model, alone and in an agent."""

from __future__ import annotations

from typing import Any

import cells
from langchain.agents import create_agent
from langchain.agents.middleware import wrap_tool_call
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from pydantic import BaseModel

TOOLS = [tool(cells.get_weather), tool(cells.now)]


class Weather(BaseModel):
    """A structured answer."""

    city: str
    days: int


@wrap_tool_call
def told(request: Any, handler: Any) -> Any:
    """Errors of tools are told to the model."""
    try:
        return handler(request)
    except ValueError as e:
        return ToolMessage(f"error: {e}", tool_call_id=request.tool_call["id"])


def model_of(cell: str) -> Any:
    """The chat model of a cell."""
    return cells.block("LangChain", cell)["model"]


def whole(cell: str) -> Any:
    """The last words of an agent."""
    agent = create_agent(model_of(cell), TOOLS, middleware=[told])
    result = agent.invoke({"messages": [{"role": "user", "content": "What is the weather?"}]})
    return result["messages"][-1].text


def stream(cell: str) -> Any:
    """The same, its tokens streamed."""
    agent = create_agent(model_of(cell), TOOLS, middleware=[told])
    asked = {"messages": [{"role": "user", "content": "What is the weather?"}]}
    words = ""
    for message, _ in agent.stream(asked, stream_mode="messages"):
        words = "" if message.type == "tool" else words + message.text
    return words


def choice(cell: str) -> Any:
    """A forced call, then an answer."""
    bound = model_of(cell).bind_tools(TOOLS, tool_choice="any")
    answer = bound.invoke("What is the weather?")
    (call,) = answer.tool_calls
    cells.get_weather(**call["args"])
    return "It is sunny."


if __name__ == "__main__":
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"), whole
            ),
            "stream": stream,
            "no tools": lambda cell: model_of(cell).invoke("Hello").text,
            "no tools, stream": lambda cell: "".join(
                chunk.text for chunk in model_of(cell).stream("Hello")
            ),
            "choice": choice,
            "response_format": lambda cell: (
                model_of(cell)
                .with_structured_output(Weather, method="json_schema")
                .invoke("Weather?")
                .model_dump_json()
            ),
        }
    )
