"""The recipe of openai-agents: an Agent and its Runner."""

from __future__ import annotations

import asyncio
from typing import Any

import cells
from agents import Agent, ModelSettings, Runner, function_tool, set_tracing_disabled
from pydantic import BaseModel

set_tracing_disabled(True)
TOOLS = [function_tool(cells.get_weather), function_tool(cells.now)]


class Weather(BaseModel):
    """A structured answer."""

    city: str
    days: int


def agent(cell: str, **more: Any) -> Any:
    """The agent of a cell."""
    model = cells.block("openai-agents", cell)["model"]
    return Agent(name="a", model=model, **{"tools": TOOLS, **more})


def whole(cell: str, **more: Any) -> Any:
    """The last words of a run."""
    return asyncio.run(Runner.run(agent(cell, **more), "What is the weather?")).final_output


def stream(cell: str, **more: Any) -> Any:
    """The same, streamed."""

    async def work() -> Any:
        result = Runner.run_streamed(agent(cell, **more), "What is the weather?")
        async for _ in result.stream_events():
            pass
        return result.final_output

    return asyncio.run(work())


if __name__ == "__main__":
    forced = ModelSettings(tool_choice="required")
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"), whole
            ),
            "stream": stream,
            "no tools": lambda cell: whole(cell, tools=[]),
            "no tools, stream": lambda cell: stream(cell, tools=[]),
            "choice": lambda cell: whole(cell, model_settings=forced),
            "response_format": lambda cell: whole(
                cell, tools=[], output_type=Weather
            ).model_dump_json(),
        }
    )
