"""Chunks of a stream: chat and text completions, events of the Responses API, events of Anthropic's messages."""

from __future__ import annotations

from typing import Any

from .assembly import Assembly, get, items
from .responses import end_response, take_item, take_message, take_response


def take_chunk(chunk: Any, made: Assembly) -> bool:
    """Takes a chunk in; False for an object that is none."""
    choices, kind = get(chunk, "choices"), get(chunk, "type")
    if isinstance(choices, (list, tuple)):
        made.identify(chunk)
        if get(chunk, "error") is not None:
            made.fail(get(chunk, "error"))
        for number, choice in enumerate(choices):
            index = get(choice, "index")
            place = index if isinstance(index, int) else number
            made.choices = max(made.choices, place + 1)
            if place == made.choice:
                _take_choice(choice, made)
        return True
    if isinstance(kind, str) and kind.startswith("response."):
        _take_responses_event(kind.removeprefix("response."), chunk, made)
        return True
    if isinstance(kind, str) and (kind in _ANTHROPIC or kind in ("ping", "message_stop", "error")):
        made.choices = max(made.choices, 1)
        if kind in _ANTHROPIC:
            _ANTHROPIC[kind](chunk, made)
        elif kind == "error":
            made.fail(get(chunk, "error") or chunk)
        return True
    if get(chunk, "error") is not None:
        made.fail(get(chunk, "error"))
        return True
    if isinstance(get(chunk, "output"), (list, tuple)):  # a whole Responses API object in a list of its own
        return take_response(chunk, made)
    return False


def _take_choice(choice: Any, made: Assembly) -> None:
    made.finish(get(choice, "finish_reason"))
    delta = get(choice, "delta")
    if delta is None:
        delta = get(choice, "message")  # whole answers in event streams: some servers do so for one that is short
    if delta is not None:
        take_message(delta, made)
    elif get(choice, "text") is not None:
        made.completion = True
        made.say(get(choice, "text"))


def _take_responses_event(kind: str, event: Any, made: Assembly) -> None:
    made.choices = max(made.choices, 1)
    response = get(event, "response")
    index = get(event, "output_index")
    if kind in ("output_text.delta", "refusal.delta"):
        (made.say if kind == "output_text.delta" else made.refuse)(get(event, "delta"))
    elif kind in ("reasoning_text.delta", "reasoning_summary_text.delta"):
        made.think(get(event, "delta"))
    elif kind == "output_item.added":
        item = get(event, "item")
        if get(item, "type") in ("function_call", "custom_tool_call"):
            take_item(item, made, index)
    elif kind in ("function_call_arguments.delta", "custom_tool_call_input.delta"):
        made.call(index, arguments=get(event, "delta"))
    elif kind in ("created", "in_progress", "completed", "incomplete", "failed") and response is not None:
        made.identify(response)
        if kind == "completed" and not made.chunks:
            for number, item in enumerate(items(get(response, "output"))):
                take_item(item, made, number)
        end_response(response, made)
    elif kind == "error":
        made.fail(event)


def _message_start(event: Any, made: Assembly) -> None:
    made.identify(get(event, "message"))


def _block_start(event: Any, made: Assembly) -> None:
    block = get(event, "content_block")
    if get(block, "type") == "tool_use":
        # An empty object stands there for input that is still to come.
        given = get(block, "input") or None
        made.call(("block", get(event, "index")), id=get(block, "id"), name=get(block, "name"), arguments=given)
    else:
        made.say(get(block, "text"))
        made.think(get(block, "thinking"))


def _block_delta(event: Any, made: Assembly) -> None:
    delta = get(event, "delta")
    kind = get(delta, "type")
    if kind == "text_delta":
        made.say(get(delta, "text"))
    elif kind == "thinking_delta":
        made.think(get(delta, "thinking"))
    elif kind == "input_json_delta":
        made.call(("block", get(event, "index")), arguments=get(delta, "partial_json"))


def _message_delta(event: Any, made: Assembly) -> None:
    made.identify(event)
    made.finish(get(get(event, "delta"), "stop_reason"))


_ANTHROPIC = {
    "message_start": _message_start,
    "content_block_start": _block_start,
    "content_block_delta": _block_delta,
    "content_block_stop": lambda event, made: None,
    "message_delta": _message_delta,
}
