"""A finished answer of litellm with the calls that its text holds as tool calls."""

from __future__ import annotations

from typing import Any

from ..middleware import ToolCallMiddleware, Turn


def with_tool_calls(litellm: Any, response: Any, middleware: ToolCallMiddleware, turn: Turn) -> Any:
    """A ModelResponse like `response` (id, model, usage, headers, hidden parameters are the same objects), each of its
    choices read on its own; `response` itself where no choice changes. litellm's object is left as it came, because
    its logging and its cache still hold it."""
    choices = [_choice(litellm.types.utils, choice, middleware, turn) for choice in response.choices]
    if all(new is old for new, old in zip(choices, response.choices, strict=True)):
        return response
    return response.model_copy(update={"choices": choices})


def _choice(shapes: Any, choice: Any, middleware: ToolCallMiddleware, turn: Turn) -> Any:
    message = choice.message
    thought = message.__dict__.get("reasoning_content")  # litellm deletes the attribute where there is none
    own = message.tool_calls or ()
    answer = middleware.wrap_generate(
        turn,
        message.content,
        reasoning=thought,
        finish_reason=choice.finish_reason,
        tool_calls=[call.model_dump() for call in own],
    )
    said = answer.message
    changes: dict[str, Any] = {}
    if said["content"] != message.content:
        changes["content"] = said["content"]
    if said.get("reasoning_content", thought) != thought:
        changes["reasoning_content"] = said["reasoning_content"]
    if len(answer.tool_calls) > len(own):
        made = answer.tool_calls[: len(answer.tool_calls) - len(own)]
        changes["tool_calls"] = [*(shapes.ChatCompletionMessageToolCall(**call) for call in made), *own]
    if not changes and answer.finish_reason == choice.finish_reason:
        return choice
    return choice.model_copy(
        update={"message": message.model_copy(update=changes), "finish_reason": answer.finish_reason}
    )
