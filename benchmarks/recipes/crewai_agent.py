"""The recipe of CrewAI: an Agent and its LLM."""

from __future__ import annotations

from typing import Any

import cells
from crewai import Agent
from crewai.tools import tool
from pydantic import BaseModel


class Weather(BaseModel):
    """A structured answer."""

    city: str
    days: int


TOOLS = [tool("get_weather")(cells.get_weather), tool("now")(cells.now)]


def whole(cell: str, *, stream: bool = False, tools: bool = True, **more: Any) -> Any:
    """The last words of an agent."""
    llm = cells.block("CrewAI", cell)["llm"]
    llm.stream = stream
    agent = Agent(
        role="forecaster",
        goal="say the weather",
        backstory="You know it.",
        llm=llm,
        tools=TOOLS if tools else [],
        verbose=False,
        max_iter=6,
    )
    return agent.kickoff("What is the weather?", **more)


def alone(cell: str, **more: Any) -> Any:
    """The last words of the LLM alone."""
    llm = cells.block("CrewAI", cell)["llm"]
    llm.stream = more.pop("stream", False)
    return llm.call("Hello", **more)


def schema(cell: str) -> Any:
    """A structured answer."""
    llm = cells.block("CrewAI", cell)["llm"]
    answer = llm.call("Weather?", response_model=Weather)
    return answer if isinstance(answer, str) else answer.model_dump_json()


if __name__ == "__main__":
    in_process = "--litellm" in cells.sys.argv
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"),
                lambda cell: whole(cell).raw,
            ),
            "stream": "with litellm it keeps no id of a streamed call"
            if in_process
            else (lambda cell: whole(cell, stream=True).raw),
            "no tools": alone,
            "no tools, stream": lambda cell: alone(cell, stream=True),
            "choice": "CrewAI sends no tool_choice",
            "response_format": "with litellm it asks without the LLM's address and key"
            if in_process
            else schema,
        }
    )
