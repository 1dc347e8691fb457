"""The recipe of the openai client: a loop of one's own around `chat.completions`."""

from __future__ import annotations

import json
from typing import Any

import cells


def loop(cell: str, *, stream: bool = False, tools: bool = True, **more: Any) -> str:
    """Ask until no tool is called; the last words."""
    client = cells.block("openai client", cell)["client"]
    messages: list[Any] = [{"role": "user", "content": "What is the weather?"}]
    while True:
        asked = {"model": cell.replace(" ", "+"), "messages": messages, **more}
        if tools:
            asked["tools"] = cells.OPENAI_TOOLS
        content, calls = told(client, asked, stream)
        if not calls:
            return content or ""
        messages.append({"role": "assistant", "content": content, "tool_calls": calls})
        messages += [result_of(call) for call in calls]
        more.pop("tool_choice", None)


def told(client: Any, asked: dict[str, Any], stream: bool) -> tuple[str | None, list[Any]]:
    """Content and calls of one answer."""
    if not stream:
        message = client.chat.completions.create(**asked).choices[0].message
        return message.content, [call.model_dump() for call in message.tool_calls or ()]
    with client.chat.completions.stream(**asked) as events:
        for _ in events:
            pass
        message = events.get_final_completion().choices[0].message
    calls = [
        {
            "id": c.id,
            "type": "function",
            "function": {"name": c.function.name, "arguments": c.function.arguments},
        }
        for c in message.tool_calls or ()
    ]
    return message.content, calls


def result_of(call: Any) -> dict[str, Any]:
    """The result of a call as a message."""
    function = getattr(cells, call["function"]["name"])
    try:
        content = function(**json.loads(call["function"]["arguments"]))
    except ValueError as e:
        content = f"error: {e}"
    return {"role": "tool", "tool_call_id": call["id"], "content": content}


SCHEMA = {"type": "json_schema", "json_schema": {"name": "w", "schema": cells.WEATHER_SCHEMA}}
if __name__ == "__main__":
    cells.run(
        {
            **dict.fromkeys(
                ("whole", "parallel", "three turns", "tool error", "malformed call"), loop
            ),
            "stream": lambda cell: loop(cell, stream=True),
            "no tools": lambda cell: loop(cell, tools=False),
            "no tools, stream": lambda cell: loop(cell, tools=False, stream=True),
            "choice": lambda cell: loop(cell, tool_choice="required"),
            "response_format": lambda cell: loop(cell, tools=False, response_format=SCHEMA),
        }
    )
