"""Chunks of a stream: chat and text completions, events of the Responses API, events of Anthropic's
messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from ...core.types.call_pieces import member as get
from .assembly import Assembly, items
from .responses import end_response, take_item, take_message, take_response

# How chunks are told apart. A chunk of OpenAI's has `choices`; events of the Responses API and of
# Anthropic's messages have a `type`, of which only the former begin with `response.`. Each chunk is
# read on its own: all that must be remembered between two of them is in the Assembly.


def take_chunk(chunk: Any, assembly: Assembly) -> bool:
    """Take a chunk in.

    Return False for an object that is none.

    `chunk` is an object of any client, or a dict. Its contents are added to `assembly`. Nothing is
    raised.
    """
    choices, kind = get(chunk, "choices"), get(chunk, "type")
    if isinstance(choices, (list, tuple)):
        _take_choices(chunk, choices, assembly)
        return True
    if isinstance(kind, str):
        if kind.startswith("response."):
            _take_responses_event(kind.removeprefix("response."), chunk, assembly)
            return True
        if kind in _ANTHROPIC:
            assembly.choices = max(assembly.choices, 1)
            _ANTHROPIC[kind](chunk, assembly)
            return True

    if get(chunk, "error") is not None:
        assembly.fail(get(chunk, "error"))
        return True
    # A whole Responses API object in a list of its own.
    if isinstance(get(chunk, "output"), (list, tuple)):
        return take_response(chunk, assembly)
    return False


def _take_choices(chunk: Any, choices: Sequence[Any], assembly: Assembly) -> None:
    """Take in a chunk of a chat or text completion: its ids, and the delta of the chosen answer.

    Choices of other answers only count how many there are.
    """
    assembly.identify(chunk)
    assembly.tokens.take_response(chunk)
    assembly.finish(get(chunk, "finish_reason"))
    error = get(chunk, "error")
    if error is not None:
        assembly.fail(error)
    for number, choice in enumerate(choices):
        index = get(choice, "index")
        place = index if isinstance(index, int) else number
        assembly.choices = max(assembly.choices, place + 1)
        if place == assembly.choice:
            _take_choice(choice, assembly)


def _take_choice(choice: Any, assembly: Assembly) -> None:
    """Take in the delta of the chosen answer.

    A text without a delta comes from the raw-completion endpoint.
    """
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    delta = get(choice, "delta")
    assembly.finish(get(delta, "finish_reason"))  # where some servers have it
    # Whole answers in event streams: some servers do so for one that is short.
    message = delta if delta is not None else get(choice, "message")
    if message is not None:
        take_message(message, assembly, whole=delta is None)
    elif get(choice, "text") is not None:
        assembly.completion = True
        assembly.say(get(choice, "text"))


def _take_responses_event(kind: str, event: Any, assembly: Assembly) -> None:
    """Take in an event of the Responses API.

    `kind` is its type without `response.`.

    Events that only repeat what came in deltas (`….done`), or that announce a part, do not count.
    """
    assembly.choices = max(assembly.choices, 1)
    if kind in _DELTAS:
        _DELTAS[kind](assembly, get(event, "delta"))
        assembly.tokens.take_logprobs(get(event, "logprobs"))
    elif kind in ("function_call_arguments.delta", "custom_tool_call_input.delta"):
        assembly.call(get(event, "output_index"), arguments=get(event, "delta"))
    elif kind == "output_item.added":
        # Other items begin empty, and come whole in their deltas.
        item = get(event, "item")
        if get(item, "type") in ("function_call", "custom_tool_call"):
            take_item(item, assembly, get(event, "output_index"))
    elif kind in _STATES:
        _take_state(kind, get(event, "response"), assembly)
    elif kind == "error":
        assembly.fail(event)


def _take_state(kind: str, response: Any, assembly: Assembly) -> None:
    """Take in an event that carries the response as it is now: its ids, its status, and where
    nothing else was streamed its output.

    The status of a response that is still under way ends nothing.
    """
    if response is None:
        return
    assembly.identify(response)
    assembly.tokens.take_response(response)
    if kind == "completed" and not assembly.chunks:
        for number, item in enumerate(items(get(response, "output"))):
            take_item(item, assembly, number)
    end_response(response, assembly)


# Deltas of the Responses API that are a piece of text.
_DELTAS: Mapping[str, Callable[[Assembly, Any], None]] = MappingProxyType(
    {
        "output_text.delta": Assembly.say,
        "refusal.delta": Assembly.refuse,
        "reasoning_text.delta": Assembly.think,
        "reasoning_summary_text.delta": Assembly.think,
    }
)
_STATES = frozenset(("created", "in_progress", "completed", "incomplete", "failed"))


def _message_start(event: Any, assembly: Assembly) -> None:
    """Anthropic: ids and the prompt's tokens."""
    assembly.identify(get(event, "message"))


def _block_start(event: Any, assembly: Assembly) -> None:
    """Anthropic: a content block begins, with a call's id and name, or with a first text.

    The input of a call comes in pieces afterwards, as JSON text.
    """
    block = get(event, "content_block")
    if get(block, "type") == "tool_use":
        # An empty object stands there for input that is still to come.
        arguments = get(block, "input") or None
        index = ("block", get(event, "index"))
        assembly.call(index, id=get(block, "id"), name=get(block, "name"), arguments=arguments)
    else:
        assembly.say(get(block, "text"))
        assembly.think(get(block, "thinking"))


def _block_delta(event: Any, assembly: Assembly) -> None:
    """Anthropic: a piece of a content block.

    Pieces of other kinds (signatures, citations) are no words of the model.
    """
    delta = get(event, "delta")
    kind = get(delta, "type")
    if kind == "text_delta":
        assembly.say(get(delta, "text"))
    elif kind == "thinking_delta":
        assembly.think(get(delta, "thinking"))
    elif kind == "input_json_delta":
        assembly.call(("block", get(event, "index")), arguments=get(delta, "partial_json"))


def _message_delta(event: Any, assembly: Assembly) -> None:
    """Anthropic: the finish reason and the answer's tokens.

    It comes once, behind all content.
    """
    assembly.identify(event)
    assembly.finish(get(get(event, "delta"), "stop_reason"))


def _error(event: Any, assembly: Assembly) -> None:
    """Anthropic: the stream breaks off.

    The messages before it stays: the error says only why nothing follows.
    """
    assembly.fail(get(event, "error") or event)


def _no_news(event: Any, assembly: Assembly) -> None:
    """Anthropic: an event that adds nothing to the answer."""


_ANTHROPIC: Mapping[str, Callable[[Any, Assembly], None]] = MappingProxyType(
    {
        "message_start": _message_start,
        "content_block_start": _block_start,
        "content_block_delta": _block_delta,
        "content_block_stop": _no_news,
        "message_delta": _message_delta,
        "message_stop": _no_news,
        "ping": _no_news,
        "error": _error,
    }
)
