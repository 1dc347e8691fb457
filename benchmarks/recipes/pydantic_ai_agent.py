"""The recipe of pydantic-ai: an Agent."""

from __future__ import annotations

import asyncio
from typing import Any

import cells
from pydantic import BaseModel
from pydantic_ai import Agent, AgentRunResultEvent, ModelRetry, NativeOutput, ToolOutput


class Weather(BaseModel):
    """A structured answer."""

    city: str
    days: int


def get_weather(city: str, days: int = 1) -> str:
    """The weather of a city."""
    try:
        return cells.get_weather(city, days)
    except ValueError as e:
        raise ModelRetry(str(e)) from e


def agent(cell: str, **more: Any) -> Any:
    """The agent of a cell."""
    model = cells.block("pydantic-ai", cell)["model"]
    return Agent(model, **{"tools": [get_weather, cells.now], **more})


def whole(cell: str, **more: Any) -> Any:
    """The last words of a run."""
    return agent(cell, **more).run_sync("What is the weather?").output


def choice(cell: str) -> str:
    """A structured answer by a tool, which pydantic-ai forces."""
    answer = whole(cell, tools=[], output_type=ToolOutput(Weather, name="get_weather"))
    cells.get_weather(answer.city, answer.days)
    return "It is sunny."


def stream(cell: str, **more: Any) -> Any:
    """The same, streamed. (`run_stream` takes the words before a call for the last ones.)"""

    async def work() -> Any:
        output = None
        async with agent(cell, **more).run_stream_events("What is the weather?") as events:
            async for event in events:
                if isinstance(event, AgentRunResultEvent):
                    output = event.result.output
        return output

    return asyncio.run(work())


if __name__ == "__main__":
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"), whole
            ),
            "stream": stream,
            "no tools": lambda cell: whole(cell, tools=[]),
            "no tools, stream": lambda cell: stream(cell, tools=[]),
            "choice": choice,
            "response_format": lambda cell: whole(
                cell, tools=[], output_type=NativeOutput(Weather)
            ).model_dump_json(),
        }
    )
