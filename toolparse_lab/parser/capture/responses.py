"""Whole answers: chat and text completions, their choices and messages, Responses API objects,
Anthropic messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.types.call_pieces import member as get
from .assembly import Assembly, items

# How shapes are told apart. There is no version or schema to go by, and clients of one shape differ
# in what they leave out. So a shape is known by the one member that only it has, asked for in an
# order in which no earlier shape can claim a later one; anything else is refused, and nothing is
# guessed from the words of a model.

_TEXTS = ("text", "output_text", "input_text")
_THOUGHTS = ("thinking", "reasoning", "reasoning_text", "summary_text")


def take_response(obj: Any, assembly: Assembly) -> bool:
    """Take an answer in.

    Return False for an object that holds none.

    `obj` is an object of any client, or a dict. Its contents are added to `assembly`, also where a
    part of it is broken. Nothing is raised.
    """
    choices, output = get(obj, "choices"), get(obj, "output")
    assembly.tokens.take_response(obj)
    if isinstance(choices, (list, tuple)):
        return _take_choices(obj, choices, assembly)
    if isinstance(output, (list, tuple)) and _is_responses_object(obj):
        take_output(obj, assembly)
        return True

    error = get(obj, "error")
    if error is not None and get(obj, "role") is None:
        assembly.fail(error)
        return True
    if get(obj, "message") is not None or isinstance(get(obj, "text"), str):
        return take_choice(obj, assembly)
    if is_message(obj):
        assembly.identify(obj)
        take_message(obj, assembly)
        assembly.finish(get(obj, "stop_reason"))
        return True
    return False


def _is_responses_object(obj: Any) -> bool:
    """Return True for a Responses API object, as far as an object with an `output` may be something
    else.

    Other frameworks call their results `output` too, without a status.
    """
    return get(obj, "object") == "response" or get(obj, "status") is not None


def _take_choices(response: Any, choices: Sequence[Any], assembly: Assembly) -> bool:
    """Take the chosen one of several answers in.

    Return False if it is none, or there are none.

    An error beside the choices does not hide them: servers that break off a long answer send both.
    """
    assembly.identify(response)
    error = get(response, "error")
    if error is not None:
        assembly.fail(error)
    assembly.choices = len(choices)
    chosen = choices[assembly.choice : assembly.choice + 1]
    complete = all(take_choice(choice, assembly) for choice in chosen)
    return assembly.error is not None or (bool(choices) and complete)


def take_choice(choice: Any, assembly: Assembly) -> bool:
    """Take in a choice of a chat completion, or of a text completion.

    Return False for anything else.

    The finish reason is taken over in any case. A choice with neither message nor text is not an
    answer.
    """
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    message = get(choice, "message")
    if message is not None:
        if not is_message(message):
            return False
        take_message(message, assembly)
        return True
    assembly.completion = True
    assembly.say(get(choice, "text"))
    return isinstance(get(choice, "text"), str)


_MESSAGE_MEMBERS = (
    "content",
    "tool_calls",
    "function_call",
    "refusal",
    "reasoning_content",
    "reasoning",
    "thinking",
)


def is_message(obj: Any) -> bool:
    """Return True for an answer's message: one of a model, with a content that can be read.

    A message without a role must have a member that only answers have. With the role of a user or a
    tool it is none, whatever it holds.
    """
    role = get(obj, "role")
    if role not in (None, "assistant", "model"):
        return False
    if not isinstance(get(obj, "content"), (str, list, tuple, type(None))):
        return False
    return role is not None or any(get(obj, name) is not None for name in _MESSAGE_MEMBERS)


def take_message(message: Any, assembly: Assembly, *, whole: bool = True) -> None:
    """Take in a message, or if it is not `whole` the delta of one: text, reasoning, refusal, calls.

    Members of another type than expected do not count. Content is a text, or a list of parts.
    """
    content = get(message, "content")
    thought = get(message, "reasoning_content")
    # A list of parts has its reasoning in the parts, and `reasoning` may repeat it.
    if not thought and not isinstance(content, (list, tuple)):
        thought = get(message, "reasoning") or get(message, "thinking")
    assembly.think(thought)

    assembly.say(content)
    for number, part in enumerate(items(content)):
        take_part(part, assembly, ("part", number))
    assembly.refuse(get(message, "refusal"))
    _take_calls(message, assembly, whole)


def _take_calls(message: Any, assembly: Assembly, whole: bool) -> None:
    """Take in the calls of a message: a list, or the single one of the older form."""
    calls = items(get(message, "tool_calls"))
    assembly.call_list(calls, whole=whole)
    legacy = get(message, "function_call")
    if legacy is not None and not calls:
        assembly.call("function_call", name=get(legacy, "name"), arguments=get(legacy, "arguments"))


def take_part(part: Any, assembly: Assembly, index: Any) -> None:
    """Take in a content part: text, reasoning, a refusal, or a call of Anthropic's messages.

    `index` names the part, so that pieces of one call find each other. Parts of an unknown type
    (images, citations) do not count.
    """
    kind = get(part, "type")
    if isinstance(part, str):
        assembly.say(part)
    elif kind in _TEXTS:
        assembly.say(get(part, "text"))
        assembly.tokens.take_logprobs(get(part, "logprobs"))
    elif kind in _THOUGHTS:
        assembly.think(get(part, "thinking") or get(part, "text") or get(part, "reasoning"))
    elif kind == "refusal":
        assembly.refuse(get(part, "refusal"))
    elif kind == "tool_use":
        assembly.call(
            index, id=get(part, "id"), name=get(part, "name"), arguments=get(part, "input")
        )


def take_output(response: Any, assembly: Assembly) -> None:
    """Take in a whole Responses API object.

    The output is one answer, whatever number of items it has.
    """
    assembly.identify(response)
    assembly.choices = 1
    for number, item in enumerate(items(get(response, "output"))):
        take_item(item, assembly, number)
    end_response(response, assembly)


def take_item(item: Any, assembly: Assembly, index: Any) -> None:
    """Take in an item of the output of a Responses API object.

    `index` names the item within its response. Items that are not words of the model, such as the
    results of built-in tools, do not count.
    """
    kind = get(item, "type")
    if kind == "message" or (kind is None and get(item, "content") is not None):
        for number, part in enumerate(items(get(item, "content"))):
            take_part(part, assembly, (index, number))
    elif kind in ("function_call", "custom_tool_call"):
        arguments = get(item, "arguments") if kind == "function_call" else get(item, "input")
        assembly.call(
            index,
            id=get(item, "call_id") or get(item, "id"),
            name=get(item, "name"),
            arguments=arguments,
        )
    # Its text, where the provider shows it, and the summary that it always gives.
    elif kind == "reasoning":
        for part in (*items(get(item, "content")), *items(get(item, "summary"))):
            assembly.think(get(part, "text"))


def end_response(response: Any, assembly: Assembly) -> None:
    """Take over the status of a Responses API object as a finish reason, or its error.

    The Responses API has no finish reason. Its status says less, so that "completed" is read
    together with the completed part.
    """
    # A completed response with calls ended with them, as `finish_reason` would say.
    status = get(response, "status")
    if status == "completed":
        assembly.finish("tool_calls" if assembly.called else "stop")
    elif status == "incomplete":
        assembly.finish(get(get(response, "incomplete_details"), "reason") or "incomplete")
    elif get(response, "error") is not None:
        assembly.fail(get(response, "error"))
