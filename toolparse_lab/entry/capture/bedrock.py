"""Answers of Bedrock: Converse and ConverseStream, and the bodies that it passes on."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from ...core.types.call_pieces import label
from ...core.types.call_pieces import member as get
from ...core.values import read_strict
from .assembly import Assembly, keys_of, plain
from .frames import frames_in
from .parts import take_part
from .shapes import counts_of_usage, items, take_own_message

_REASONS = {
    "end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length",
    "model_context_window_exceeded": "length", "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}  # fmt: skip
_FAILURES = (
    "internalServerException", "modelStreamErrorException", "validationException",
    "throttlingException", "serviceUnavailableException", "modelTimeoutException",
)  # fmt: skip
EVENTS = (
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop",
    "metadata", *_FAILURES,
)  # fmt: skip
_OF_DELTA = frozenset(("delta", "contentBlockIndex", "p"))
_QUIET_DELTAS = frozenset(("citation", "signature", "redactedContent"))


def is_converse(obj: Any) -> bool:
    """Return True for a whole answer of Converse."""
    message = get(get(obj, "output"), "message")
    return message is not None and isinstance(get(message, "content"), (list, tuple))


def take_converse(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole answer of Converse."""
    assembly.choices = 1
    take_own_message(get(get(obj, "output"), "message"), assembly)
    _end(obj, assembly)
    return True


def is_converse_event(obj: Any) -> bool:
    """Return True for an event of ConverseStream, with its name or without."""
    keys = keys_of(obj) if isinstance(obj, Mapping) else ()
    if any(name in EVENTS for name in keys) and len(keys) <= 2:
        return "metadata" not in keys or isinstance(get(get(obj, "metadata"), "usage"), Mapping)
    if "contentBlockIndex" in keys:
        return True
    return "output" not in keys and ("stopReason" in keys or {"usage", "metrics"} <= set(keys))


def take_converse_event(obj: Any, assembly: Assembly) -> bool:
    """Take in an event of ConverseStream."""
    assembly.choices = max(assembly.choices, 1)
    for name in _FAILURES:
        if (failure := get(obj, name)) is not None:
            assembly.fail(failure)
    start, delta = get(obj, "contentBlockStart"), get(obj, "contentBlockDelta")
    if get(obj, "contentBlockIndex") is not None:  # the payload alone
        start = obj if get(obj, "start") is not None else start
        delta = obj if get(obj, "delta") is not None else delta
    if start is not None:
        block, index = get(start, "start"), ("block", label(get(start, "contentBlockIndex")))
        call = get(block, "toolUse")
        if call is not None and get(call, "type") != "server_tool_use":
            assembly.call(index, id=get(call, "toolUseId"), name=get(call, "name"))
        elif block is not None and keys_of(block):
            assembly.pass_over(index)
            take_part(block, assembly, index)
    if delta is not None:
        index = ("block", label(get(delta, "contentBlockIndex")))
        _take_delta(get(delta, "delta"), index, assembly)
        assembly.doubt(delta, _OF_DELTA)
    for end in (get(obj, "messageStop"), get(obj, "metadata"), obj):
        if end is not None:
            _end(end, assembly)
    return True


def _take_delta(delta: Any, index: Any, assembly: Assembly) -> None:
    call, thought = get(delta, "toolUse"), get(delta, "reasoningContent")
    if isinstance(get(delta, "text"), str):
        assembly.say(get(delta, "text"))
    elif call is not None:
        assembly.call(index, arguments=get(call, "input"))
    elif thought is not None:
        assembly.think(get(thought, "text"))
    elif keys_of(delta) and not _QUIET_DELTAS & set(keys_of(delta)):
        take_part(delta, assembly, index)


def _end(obj: Any, assembly: Assembly) -> None:
    assembly.finish(get(obj, "stopReason"), _REASONS)
    usage = plain(get(obj, "usage"))
    if isinstance(usage, Mapping) and "inputTokens" in usage:
        assembly.usage = counts_of_usage(
            usage["inputTokens"],
            usage.get("outputTokens"),
            usage.get("totalTokens"),
            cached=usage.get("cacheReadInputTokens"),
        )


# invoke_model: an answer in the model's own shape under `body`, its stream in pieces of bytes.


def is_of_client(obj: Any) -> bool:
    """Return True for a response of boto3, around a body or a stream that was kept."""
    is_own = get(obj, "ResponseMetadata") is not None or get(obj, "contentType") is not None
    return is_own and (get(obj, "body") is not None or get(obj, "stream") is not None)


# Of DashScope, Cloudflare, Perplexity's jobs, Oracle's and LangChain's serialized messages.
_AROUND = ("output", "result", "response", "chatResponse", "kwargs")


def passed_on(obj: Any) -> Any:
    """Return the answer inside of another object, None for an object that holds none."""
    body = get(obj, "body")
    if isinstance(body, (str, bytes)):
        return _object(body) if frames_in(body) is None else body
    if isinstance(body, Mapping):
        return body
    for name in _AROUND:
        if isinstance(get(obj, name), Mapping):
            return get(obj, name)
    piece = get(get(obj, "chunk"), "bytes")
    if isinstance(piece, str) and not piece.lstrip().startswith("{"):
        try:
            piece = base64.b64decode(piece, validate=True)
        except (ValueError, binascii.Error):
            return None
    return _object(piece) if isinstance(piece, (str, bytes)) else None


def events_in(obj: Any) -> list[Any]:
    """Return the events of a stream that was kept in the response of boto3, none for another."""
    return items(get(obj, "stream")) or items(get(obj, "body"))


def _object(text: str | bytes) -> Mapping[str, Any] | None:
    try:
        value = read_strict(text if isinstance(text, str) else text.decode())
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Mapping) else None
