"""The recipe of inspect-ai: a model, and its loop over tools."""

from __future__ import annotations

import asyncio
from typing import Any

import cells
from inspect_ai.model import (
    ChatMessageUser,
    GenerateConfig,
    ResponseSchema,
    execute_tools,
)  # fmt: skip
from inspect_ai.tool import Tool, ToolError, tool
from inspect_ai.util import json_schema
from pydantic import BaseModel


class Weather(BaseModel):
    """A structured answer."""

    city: str
    days: int


@tool(name="get_weather")
def weather() -> Tool:
    """The weather as a tool of inspect."""

    async def execute(city: str, days: int = 1) -> str:
        """The weather of a city.

        Args:
            city: its name
            days: how many days
        """
        try:
            return cells.get_weather(city, days)
        except ValueError as e:
            raise ToolError(str(e)) from e

    return execute


@tool(name="now")
def time() -> Tool:
    """The time as a tool of inspect."""

    async def execute() -> str:
        """The time."""
        return cells.now()

    return execute


def loop(cell: str, *, tools: bool = True, config: Any = None, choice: Any = None) -> str:
    """The last words of the model's own loop."""

    async def work() -> str:
        model = cells.block("inspect-ai", cell)["model"]
        messages: list[Any] = [ChatMessageUser(content="What is the weather?")]
        offered = [weather(), time()] if tools else []
        given = config or GenerateConfig()
        pending = choice
        while True:
            output = await model.generate(
                messages, tools=offered, tool_choice=pending, config=given
            )
            pending = None
            messages.append(output.message)
            if not output.message.tool_calls:
                return str(output.completion)
            messages += (await execute_tools(messages, offered))[0]

    return asyncio.run(work())


if __name__ == "__main__":
    schema = ResponseSchema(name="w", json_schema=json_schema(Weather))
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"), loop
            ),
            "stream": "openai-api models of inspect ask for whole answers",
            "no tools": lambda cell: loop(cell, tools=False),
            "no tools, stream": "openai-api models of inspect ask for whole answers",
            "choice": lambda cell: loop(cell, choice="any"),
            "response_format": lambda cell: loop(
                cell, tools=False, config=GenerateConfig(response_schema=schema)
            ),
        }
    )
