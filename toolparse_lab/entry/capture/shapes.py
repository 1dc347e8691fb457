"""Answers of OpenAI's interfaces, Anthropic's and Ollama's, whole and in chunks, taken into one
Assembly.
"""

# Readers take an object of any client or a dict and raise nothing. How a shape is known stands in
# `known`, in one table.

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from ...core.types.call_pieces import json_value, label, name_and_arguments
from ...core.types.call_pieces import member as get
from ...core.values import write_canonical
from .assembly import Assembly, keys_of
from .parts import is_of_server, take_part


def items(x: Any) -> list[Any]:
    """Return the items of a list, none for anything else, strings included."""
    return list(x) if isinstance(x, (list, tuple)) else []


def parts_in(x: Any) -> list[Any]:
    """Return the items of a list, and anything else that stands in the place of one as its only."""
    return [] if x is None else items(x) or ([] if x in ("", [], (), {}) else [x])


_MARKS = re.compile(r"(?:\s*(?:<[|｜][^<>|｜]{1,40}[|｜]>|</s>|<eos>|<end_of_turn>))*")


def eats(raw: str, content: str) -> bool:
    """Return True if the content is less than was written: something was taken out of it.

    White space around either, and marks after the end of the turn, count for nothing.
    """
    raw, content = raw.strip(), content.strip()
    if len(raw) <= len(content):
        return False
    only_marks = content and raw.startswith(content) and _MARKS.fullmatch(raw, len(content))
    return not only_marks


def counts_of_usage(
    sent: Any, received: Any, total: Any = None, *, cached: Any = None, reasoning: Any = None
) -> dict[str, Any]:
    """Return token counts in OpenAI's words, without those that nobody says."""
    if total is None and isinstance(sent, int) and isinstance(received, int):
        total = sent + received
    counts: dict[str, Any] = {
        "prompt_tokens": sent, "completion_tokens": received, "total_tokens": total,
        "prompt_tokens_details": None if cached is None else {"cached_tokens": cached},
        "completion_tokens_details": None if reasoning is None else {"reasoning_tokens": reasoning},
    }  # fmt: skip
    return {name: count for name, count in counts.items() if count is not None}


# Whole answers: chat and text completions, their choices and messages, Responses API objects,
# Anthropic messages.

MESSAGE_MEMBERS = (
    "content", "tool_calls", "function_call", "refusal", "reasoning_content", "reasoning",
    "thinking", "parts", "tool_plan",
)  # fmt: skip
# Members of messages that say nothing a client has to read or to execute.
_KNOWN_MEMBERS = frozenset((
    *MESSAGE_MEMBERS, "role", "id", "type", "object", "name", "model", "index", "created",
    "annotations", "audio", "images", "thinking_blocks", "reasoning_details", "reasoning_items",
    "reasoning_signature", "reasoning_opaque", "reasoning_text", "encrypted_content",
    "provider_specific_fields", "executed_tools", "citations", "context", "end_turn", "parsed",
    "tool_call_id", "token_ids", "logprobs", "prefix", "metadata", "extra_content", "finish_reason",
    "stop_reason", "stop_sequence", "stop_details", "matched_stop", "usage", "container",
    "context_management", "channel", "recipient", "kind", "model_name", "timestamp",
    "provider_name", "provider_details", "provider_response_id", "run_id", "finish_message",
    "tool_call_chunks", "invalid_tool_calls", "additional_kwargs", "response_metadata",
    "usage_metadata", "padding", "obfuscation", "weight", "created_at", "ResponseMetadata",
    "toolInvocations",
))  # fmt: skip


def take_responses(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole object of the Responses API."""
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    assembly.choices = 1
    for number, item in enumerate(items(get(obj, "output")) or items(get(obj, "outputs"))):
        _take_item(item, assembly, number)
    _end_response(obj, assembly)
    return True


def take_chat(obj: Any, assembly: Assembly) -> bool:
    """Take in a chat or text completion. False where it has no choices, or one without a message.

    An error beside the choices does not hide them: servers that break off a long answer send both.
    """
    choices, error = get(obj, "choices"), get(obj, "error")
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    if error is not None:
        assembly.fail(error)
    assembly.choices = len(choices)
    chosen = choices[assembly.choice : assembly.choice + 1]
    complete = all(take_choice(choice, assembly) for choice in chosen)
    return assembly.error is not None or (bool(choices) and complete)


def take_own_message(obj: Any, assembly: Assembly) -> bool:
    """Take in a message: one of Anthropic's, of a chat completion, or of a convention."""
    assembly.tokens.take_response(obj)
    assembly.identify(obj)
    _take_message(obj, assembly)
    assembly.finish(get(obj, "stop_reason") or get(obj, "finish_reason"))
    return True


def take_choice(choice: Any, assembly: Assembly) -> bool:
    """Take in a choice: its message or its text. False for neither, unless a filter took it."""
    assembly.finish(get(choice, "finish_reason"))
    if (error := get(choice, "error")) is not None:
        assembly.fail(error)
    assembly.tokens.take_choice(choice)
    message = get(choice, "message")
    if message is not None:
        if not is_message(message):
            return False
        _take_message(message, assembly)
        return True
    assembly.completion = True
    assembly.say(get(choice, "text"))
    return isinstance(get(choice, "text"), str) or assembly.finish_reason == "content_filter"


def is_message(obj: Any) -> bool:
    """Return True for a message of a model."""
    # A message without a role must have a member that only answers have. With the role of a user
    # or a tool it is not an answer, whatever it holds.
    role = get(obj, "role")
    if role not in (None, "assistant", "model"):
        return False
    if not isinstance(get(obj, "content"), (str, list, tuple, type(None))):
        return False
    return role is not None or any(get(obj, name) is not None for name in MESSAGE_MEMBERS)


def _take_message(message: Any, assembly: Assembly, *, whole: bool = True) -> None:
    content = get(message, "content")
    thought = get(message, "reasoning_content")
    # A list of parts has its reasoning in the parts, and `reasoning` may repeat it.
    if not thought and not isinstance(content, (list, tuple)):
        thought = get(message, "reasoning") or get(message, "thinking")
    assembly.think(thought)

    # Cohere's plan comes before the calls.
    assembly.think(get(message, "tool_plan"))

    before = len(assembly.calls)
    parts = get(message, "parts")  # of OpenTelemetry's convention, and of pydantic-ai
    for said in (content, parts):
        if isinstance(said, (str, type(None))):
            assembly.say(said)
            continue
        for part in said if isinstance(said, (list, tuple)) else [said]:
            take_part(part, assembly, assembly.next_index())
    assembly.refuse(get(message, "refusal"))

    calls = get(message, "tool_calls")
    if calls and not isinstance(calls, (list, tuple)):
        assembly.miss("tool_calls", calls)
    calls = items(calls)
    # Some clients have the calls in the parts, and list them once more.
    if not (whole and len(assembly.calls) > before):
        assembly.call_list(calls, whole=whole)
    # Of messages of the AI SDK's user interface, which has them among the parts as well.
    if not len(assembly.calls) > before:
        for call in parts_in(get(message, "toolInvocations")):
            take_part({"type": "tool_invocation", "toolInvocation": call}, assembly,
                      assembly.next_index())  # fmt: skip
    legacy = get(message, "function_call")
    if legacy is not None and not calls:
        assembly.call("function_call", name=get(legacy, "name"), arguments=get(legacy, "arguments"))
    assembly.doubt(message, _KNOWN_MEMBERS)


def _take_item(item: Any, assembly: Assembly, index: Any) -> None:
    # Of the Responses API. An item without a type is a message.
    if get(item, "type") is None and get(item, "content") is not None:
        item = {"type": "message", "content": get(item, "content")}
    take_part(item, assembly, index)


def _look(part: Any, assembly: Assembly, index: Any = None) -> None:
    # For what is missed alone: all else comes, or came, in pieces. Those under the index of what is
    # no call are no pieces of one.
    aside = Assembly()
    aside.offered = assembly.offered
    take_part(part, aside, 0)
    assembly.missed |= aside.missed
    if index is not None and not aside.calls:
        assembly.pass_over(index)


def _end_response(response: Any, assembly: Assembly) -> None:
    # The Responses API has no finish reason. A completed response with calls ended with them, as
    # `finish_reason` would say.
    status = get(response, "status")
    if status == "completed":
        assembly.finish("tool_calls" if assembly.calls else "stop")
    elif status == "incomplete":
        assembly.finish(get(get(response, "incomplete_details"), "reason") or "incomplete")
    elif get(response, "error") is not None:
        assembly.fail(get(response, "error"))


# Ollama's own API and llama.cpp's, whose pieces have the shape of whole answers: `message` of
# /api/chat, `response` of /api/generate, `content` of /completion. Calls come whole, one a piece.

_OLLAMA_COUNTS = {"prompt_eval_count": "prompt_tokens", "eval_count": "completion_tokens"}


def is_ollama(obj: Any) -> bool:
    """Return True for an answer of Ollama's own API or llama.cpp's, or a piece of one."""
    if isinstance(get(obj, "stop"), bool) and isinstance(get(obj, "content"), str):
        return get(obj, "role") is None
    has_text = get(obj, "message") is not None or isinstance(get(obj, "response"), str)
    return has_text and isinstance(get(obj, "done"), bool)


def take_ollama(obj: Any, assembly: Assembly) -> bool:
    """Take in an answer of Ollama's own API or llama.cpp's, or a piece of one."""
    assembly.choices = max(assembly.choices, 1)
    assembly.identify(obj)
    message = get(obj, "message")
    if message is not None:
        assembly.think(get(message, "thinking"))
        content = get(message, "content")
        for part in content if isinstance(content, (list, tuple)) else [content]:
            take_part(part, assembly, assembly.next_index())
        for call in parts_in(get(message, "tool_calls")):
            name, arguments = name_and_arguments(call)
            if name is None and arguments is None:
                assembly.miss(get(call, "type") or "tool_calls", call)
                continue
            if isinstance(arguments, Mapping):  # what the interface has, as others have a text
                arguments = write_canonical(json_value(arguments))
                assembly.has_objects = True
            place = "ollama", len(assembly.calls)
            assembly.call(place, id=get(call, "id"), name=name, arguments=arguments)
        assembly.doubt(message, _KNOWN_MEMBERS)
    else:
        assembly.completion = True
        assembly.think(get(obj, "thinking"))
        assembly.say(get(obj, "content") if get(obj, "response") is None else get(obj, "response"))
    assembly.tokens.take_logprobs(get(obj, "logprobs"))
    if get(obj, "done") or get(obj, "stop") is True:
        is_cut = get(obj, "stop_type") == "limit"
        assembly.finish("length" if is_cut else get(obj, "done_reason") or "stop")
        counts = {ours: get(obj, theirs) for theirs, ours in _OLLAMA_COUNTS.items()}
        assembly.usage = {k: v for k, v in counts.items() if isinstance(v, int)} or None
    return True


# Texts of models that are invoked in a shape of their own: Llama, Titan, Mistral and old Claude on
# Bedrock, text generation servers, watsonx.

TEXTS = ("generation", "generated_text", "outputText", "completion")
LISTS = ("results", "outputs")


def invoked_text(obj: Any) -> str | None:
    """Return the text of such an answer, None for anything else."""
    text = next((text for name in TEXTS if isinstance(text := get(obj, name), str)), None)
    listed = next((inner for name in LISTS if (inner := items(get(obj, name)))), None)
    if text is None and listed:
        text = invoked_text(listed[0])
        if text is None and get(listed[0], "stop_reason") is not None:
            text = get(listed[0], "text")
    return text if isinstance(text, str) else None


def is_invoked(obj: Any) -> bool:
    """Return True for such an answer."""
    return invoked_text(obj) is not None


def take_invoked(obj: Any, assembly: Assembly) -> bool:
    """Take in such an answer."""
    assembly.completion = True
    assembly.say(invoked_text(obj))
    assembly.finish(get(obj, "stop_reason"))
    return True


# Chunks of a stream. Each is read on its own: all that must be remembered between two of them is
# in the Assembly.


def take_chat_chunk(chunk: Any, assembly: Assembly) -> bool:
    """Take in a chunk of a chat or text completion."""
    assembly.identify(chunk)
    assembly.tokens.take_response(chunk)
    assembly.finish(get(chunk, "finish_reason"))
    if (error := get(chunk, "error")) is not None:
        assembly.fail(error)
    for number, choice in enumerate(get(chunk, "choices")):
        place = place_of(choice, number)
        assembly.choices = max(assembly.choices, place + 1)
        if place == assembly.choice:
            _take_delta(choice, assembly)
    return True


def place_of(choice: Any, number: int) -> int:
    """Return which answer a choice is of: its index, or its number in its chunk."""
    index = get(choice, "index")
    return index if isinstance(index, int) and 0 <= index < _MOST_CHOICES else number


_MOST_CHOICES = 1024  # more than any provider gives: each answer that there may be is looked at


def _take_delta(choice: Any, assembly: Assembly) -> None:
    assembly.finish(get(choice, "finish_reason"))
    assembly.tokens.take_choice(choice)
    delta = get(choice, "delta")
    assembly.finish(get(delta, "finish_reason"))  # where some servers have it
    if (error := get(choice, "error")) is not None:
        assembly.fail(error)
    # Whole answers in event streams: some servers do so for one that is short.
    message = delta if delta is not None else get(choice, "message")
    if message is not None:
        _take_message(message, assembly, whole=delta is None)
    elif get(choice, "text") is not None:
        assembly.completion = True
        assembly.say(get(choice, "text"))
    else:
        assembly.doubt(choice, _OF_CHOICE)


_OF_CHOICE = frozenset((
    "index", "finish_reason", "logprobs", "delta", "message", "text", "stop_reason",
    "native_finish_reason", "content_filter_results", "token_ids", "matched_stop", "seed",
    "prompt_token_ids", "error",
))  # fmt: skip


def _is_call(item: Any, assembly: Assembly) -> bool:
    # A custom tool may be one that the server runs.
    kind = get(item, "type")
    own = kind == "custom_tool_call" and not is_of_server(item, assembly)
    return kind == "function_call" or own


def _state_item(item: Any, assembly: Assembly, key: int) -> None:
    name, arguments = get(item, "name"), get(item, "arguments")
    if isinstance(name, str) and name:
        assembly.items.names[key] = name
    assembly.state(
        ("item", key),
        id=get(item, "call_id") or get(item, "id"),
        name=name,
        arguments=get(item, "input") if arguments is None else arguments,
    )


def _state_items(output: Any, assembly: Assembly) -> None:
    # The calls of a finished response. Some servers give them other ids than in the stream: then
    # the first one of that name that no id claims is meant.
    found = [item for item in items(output) if _is_call(item, assembly)]
    known = assembly.items
    keys = [known.known(get(item, "id"), get(item, "call_id")) for item in found]
    left: dict[Any, deque[int]] = {}  # by name
    for unclaimed in sorted(known.names.keys() - set(keys)):
        left.setdefault(known.names[unclaimed], deque()).append(unclaimed)
    for item, key in zip(found, keys, strict=True):
        if key is None:
            waiting = [left.get(name) for name in ("", label(get(item, "name")))]
            firsts = [of_name for of_name in waiting if of_name]
            if firsts:
                key = min(firsts, key=itemgetter(0)).popleft()
            else:
                key = known.of_item(item, ("new", len(known.names)), over=True)
        _state_item(item, assembly, key)


_DELTAS = {
    "output_text.delta": Assembly.say,
    "refusal.delta": Assembly.refuse,
    "reasoning_text.delta": Assembly.think,
    "reasoning_summary_text.delta": Assembly.think,
}
_CALL_DELTAS = ("function_call_arguments.delta", "custom_tool_call_input.delta")
_CALL_WHOLES = ("function_call_arguments.done", "custom_tool_call_input.done")
_STATES = frozenset(("created", "in_progress", "completed", "incomplete", "failed", "done"))


# Events that announce or repeat what comes in others, and those of tools that the server runs.
_QUIET = re.compile(
    r"(?:output_text|refusal|reasoning|reasoning_text|reasoning_summary|reasoning_summary_text"
    r"|reasoning_summary_part|content_part|output_item|function_call_arguments|audio"
    r"|audio\.transcript|custom_tool_call_input|code_interpreter_call_code"
    r"|mcp_call_arguments|output_text\.annotation)\.(?:added|done|delta)"
    r"|(?:web_search|x_search|file_search|code_interpreter|code_execution|image_generation|mcp"
    r"|collections_search|tool_search)_(?:call|list_tools)\.\w+"
    r"|mcp_list_tools\.\w+|queued|keepalive|heartbeat|rate_limits\.updated"
)


def take_responses_event(event: Any, assembly: Assembly) -> bool:
    """Take in an event of the Responses API."""
    _take_responses_event(get(event, "type").removeprefix("response."), event, assembly)
    return True


def _take_responses_event(kind: str, event: Any, assembly: Assembly) -> None:
    # Of a call everything counts that says a part of it or the whole: servers leave out any of
    # these events. Other `….done` events only repeat what came in deltas.
    assembly.choices = max(assembly.choices, 1)
    place, item = label(get(event, "output_index")), get(event, "item")
    if kind in _DELTAS:
        _DELTAS[kind](assembly, get(event, "delta"))
        assembly.tokens.take_logprobs(get(event, "logprobs"))
    elif kind in _CALL_DELTAS or kind in _CALL_WHOLES:
        if assembly.passes(place) and assembly.items.known(get(event, "item_id"), None) is None:
            return
        key = assembly.items.of_part(event)
        if kind in _CALL_DELTAS:
            assembly.call(("item", key), arguments=get(event, "delta"))
        else:
            _state_item(event, assembly, key)
    elif kind in ("output_item.added", "output_item.done"):
        over = kind == "output_item.done"
        if _is_call(item, assembly):
            _state_item(item, assembly, assembly.items.of_item(item, place, over=over))
        elif over and get(item, "type") == "message" and assembly.says_nothing:
            _take_item(item, assembly, place)
        else:
            # Others begin empty, and come whole in their deltas.
            _look(item, assembly, None if over else place)
    elif kind in ("content_part.added", "content_part.done"):
        _look(get(event, "part"), assembly)
    elif kind in _STATES:
        response = get(event, "response")
        if response is None:
            return
        assembly.identify(response)
        assembly.tokens.take_response(response)
        if kind in ("completed", "done"):  # the last is of the Realtime API
            says, thinks = not assembly.says_nothing, bool(assembly.reasoning)
            for number, item in enumerate(parts_in(get(response, "output"))):
                known = {"message": says, "reasoning": thinks}.get(str(get(item, "type")), False)
                if known:
                    _look(item, assembly)
                elif not _is_call(item, assembly):
                    _take_item(item, assembly, ("item of", number))
            _state_items(get(response, "output"), assembly)
        _end_response(response, assembly)
    elif kind == "error":
        assembly.fail(event)
    elif not _QUIET.fullmatch(kind):
        assembly.miss(f"response.{kind}", event)


ANTHROPIC_EVENTS = frozenset(
    ("message_start", "content_block_start", "content_block_delta", "content_block_stop",
     "message_delta", "message_stop", "ping", "error")
)  # fmt: skip


_QUIET_DELTAS = frozenset(("signature_delta", "citations_delta", "compaction_delta"))


def take_anthropic_event(event: Any, assembly: Assembly) -> bool:
    """Take in an event of Anthropic's messages."""
    kind = get(event, "type")
    assembly.choices = max(assembly.choices, 1)
    block, delta = get(event, "content_block"), get(event, "delta")
    index = label(get(event, "index"))
    if kind == "message_start":
        message = get(event, "message")
        assembly.identify(message)
        for part in items(get(message, "content")):
            take_part(part, assembly, assembly.next_index())
    elif kind == "content_block_start" and get(block, "type") == "tool_use":
        # An empty object is there for input that comes in pieces afterwards, as JSON text.
        arguments = get(block, "input") or None
        assembly.call(
            ("block", index), id=get(block, "id"), name=get(block, "name"), arguments=arguments
        )
    elif kind == "content_block_start":
        _look(block, assembly, ("block", index))
        assembly.say(get(block, "text"))
        assembly.think(get(block, "thinking"))
    elif kind == "content_block_delta":
        # Pieces of some kinds (signatures, citations) are no words of the model.
        part = label(get(delta, "type"))
        if part == "text_delta":
            assembly.say(get(delta, "text"))
        elif part == "thinking_delta":
            assembly.think(get(delta, "thinking"))
        elif part == "input_json_delta":
            piece = get(delta, "partial_json")
            assembly.inputs[index] = bool(piece) or assembly.inputs.get(index, False)
            assembly.call(("block", index), arguments=piece)
        elif part not in _QUIET_DELTAS and keys_of(delta):
            assembly.miss(part, delta)
    elif kind == "content_block_stop":
        # A call without arguments has one piece of input, which is empty; none at all was lost.
        if assembly.inputs.get(index) is False:
            assembly.state(("block", index), arguments={})
    elif kind == "message_delta":
        assembly.identify(event)
        assembly.finish(get(delta, "stop_reason"))
    elif kind == "error":
        assembly.fail(get(event, "error") or event)
    return True
