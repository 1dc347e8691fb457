"""The recipe of smolagents: a ToolCallingAgent, whose every turn is a forced call."""

from __future__ import annotations

from typing import Any

import cells
from smolagents import LogLevel, ToolCallingAgent, tool

TOOLS = [tool(cells.get_weather), tool(cells.now)]
ONE_CALL = "every turn is a forced call, and that is one call"


def agent(cell: str, **more: Any) -> Any:
    """The agent of a cell; the model says the words for smolagents."""
    model = cells.block("smolagents", f"smolagents {cell}")["model"]
    return ToolCallingAgent(TOOLS, model, max_steps=5, verbosity_level=LogLevel.OFF, **more)


def whole(cell: str) -> Any:
    """The last words of a run."""
    return agent(cell).run("What is the weather?")


def stream(cell: str) -> Any:
    """The same, streamed."""
    *_, last = agent(cell, stream_outputs=True).run("What is the weather?", stream=True)
    return last.output


def text(cell: str) -> Any:
    """The model alone, without tools."""
    model = cells.block("smolagents", cell)["model"]
    asked = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    return model.generate(asked).content


def streamed_text(cell: str) -> Any:
    """The same, streamed."""
    model = cells.block("smolagents", cell)["model"]
    asked = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    return "".join(delta.content or "" for delta in model.generate_stream(asked))


def malformed(cell: str) -> Any:
    """A call that nobody can read is a step with an error, and the run goes on."""
    running = agent(cell)
    running.run("What is the weather?")
    errors = [step.error for step in running.memory.steps if getattr(step, "error", None)]
    return "I call" if errors else "no step has an error"


def schema(cell: str) -> Any:
    """The model alone, with a response_format."""
    model = cells.block("smolagents", cell)["model"]
    asked = [{"role": "user", "content": [{"type": "text", "text": "Weather?"}]}]
    form = {"type": "json_schema", "json_schema": {"name": "w", "schema": cells.WEATHER_SCHEMA}}
    return model.generate(asked, response_format=form).content


if __name__ == "__main__":
    cells.run(
        {
            **dict.fromkeys(("whole", "three turns", "tool error", "choice"), whole),
            "stream": stream,
            "no tools": text,
            "no tools, stream": streamed_text,
            "parallel": ONE_CALL,
            "malformed call": malformed,
            "response_format": schema,
        }
    )
