"""Whole answers: chat and text completions, their choices and messages, Responses API objects, Anthropic messages."""

from __future__ import annotations

from typing import Any

from .assembly import Assembly, get, items

_TEXTS = ("text", "output_text", "input_text")
_THOUGHTS = ("thinking", "reasoning", "reasoning_text", "summary_text")


def take_response(obj: Any, made: Assembly) -> bool:
    """Takes an answer in; False for an object that holds none."""
    choices, output = get(obj, "choices"), get(obj, "output")
    if isinstance(choices, (list, tuple)):
        made.identify(obj)
        if get(obj, "error") is not None:
            made.fail(get(obj, "error"))
        made.choices = len(choices)
        taken = [take_choice(choice, made) for choice in choices[made.choice : made.choice + 1]]
        return made.error is not None or (bool(choices) and all(taken))
    if isinstance(output, (list, tuple)) and (get(obj, "object") == "response" or get(obj, "status") is not None):
        take_output(obj, made)
        return True
    if get(obj, "error") is not None and get(obj, "role") is None:
        made.fail(get(obj, "error"))
        return True
    if get(obj, "message") is not None or isinstance(get(obj, "text"), str):
        return take_choice(obj, made)
    if is_message(obj):
        made.identify(obj)
        take_message(obj, made)
        made.finish(get(obj, "stop_reason"))
        return True
    return False


def take_choice(choice: Any, made: Assembly) -> bool:
    """A choice of a chat completion, or of a text completion; False for what is none."""
    made.finish(get(choice, "finish_reason"))
    message = get(choice, "message")
    if message is not None:
        if not is_message(message):
            return False
        take_message(message, made)
        return True
    made.completion = True
    made.say(get(choice, "text"))
    return isinstance(get(choice, "text"), str)


_SAID = ("content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning")


def is_message(obj: Any) -> bool:
    """Whether this is an answer's message: one of a model, with a content that can be read."""
    if get(obj, "role") not in (None, "assistant", "model"):
        return False
    if not isinstance(get(obj, "content"), (str, list, tuple, type(None))):
        return False
    return get(obj, "role") is not None or any(get(obj, key) is not None for key in _SAID)


def take_message(message: Any, made: Assembly) -> None:
    """A message, or the delta of one: text, reasoning, refusal and calls."""
    if not isinstance(get(message, "content"), (list, tuple)) or get(message, "reasoning_content"):
        made.think(get(message, "reasoning_content") or get(message, "reasoning"))
    content = get(message, "content")
    made.say(content)
    for number, part in enumerate(items(content)):
        take_part(part, made, ("part", number))
    made.refuse(get(message, "refusal"))
    for number, call in enumerate(items(get(message, "tool_calls"))):
        index = get(call, "index")
        take_call(call, made, index if isinstance(index, int) else number)
    legacy = get(message, "function_call")
    if legacy is not None and not items(get(message, "tool_calls")):
        made.call("function_call", name=get(legacy, "name"), arguments=get(legacy, "arguments"))


def take_call(call: Any, made: Assembly, index: Any) -> None:
    """A tool call of a message, or a piece of one; custom tools have their text in place of arguments."""
    function = get(call, "function")
    if function is None:
        function = get(call, "custom") if get(call, "custom") is not None else call
    arguments = get(function, "arguments")
    if arguments is None:
        arguments = get(function, "input")
    made.call(index, id=get(call, "id"), name=get(function, "name"), arguments=arguments)


def take_part(part: Any, made: Assembly, index: Any) -> None:
    """A content part: text, reasoning, a refusal, or a call as Anthropic's messages have it."""
    kind = get(part, "type")
    if isinstance(part, str):
        made.say(part)
    elif kind in _TEXTS:
        made.say(get(part, "text"))
    elif kind in _THOUGHTS:
        made.think(get(part, "thinking") or get(part, "text") or get(part, "reasoning"))
    elif kind == "refusal":
        made.refuse(get(part, "refusal"))
    elif kind == "tool_use":
        made.call(index, id=get(part, "id"), name=get(part, "name"), arguments=get(part, "input"))


def take_output(response: Any, made: Assembly) -> None:
    """A Responses API object."""
    made.identify(response)
    made.choices = 1
    for number, item in enumerate(items(get(response, "output"))):
        take_item(item, made, number)
    end_response(response, made)


def take_item(item: Any, made: Assembly, index: Any) -> None:
    """An item of the output of a Responses API object."""
    kind = get(item, "type")
    if kind == "message" or (kind is None and get(item, "content") is not None):
        for number, part in enumerate(items(get(item, "content"))):
            take_part(part, made, (index, number))
    elif kind in ("function_call", "custom_tool_call"):
        arguments = get(item, "arguments") if kind == "function_call" else get(item, "input")
        made.call(index, id=get(item, "call_id") or get(item, "id"), name=get(item, "name"), arguments=arguments)
    elif kind == "reasoning":
        for part in (*items(get(item, "content")), *items(get(item, "summary"))):
            made.think(get(part, "text"))


def end_response(response: Any, made: Assembly) -> None:
    """The status of a Responses API object as a finish reason."""
    status = get(response, "status")
    if status == "completed":
        made.finish("tool_calls" if made.called else "stop")
    elif status == "incomplete":
        made.finish(get(get(response, "incomplete_details"), "reason") or "incomplete")
    elif get(response, "error") is not None:
        made.fail(get(response, "error"))
