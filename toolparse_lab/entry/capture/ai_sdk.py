"""Results of the AI SDK: of generateText and doGenerate, and the parts of its streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.types.call_pieces import label
from ...core.types.call_pieces import member as get
from .assembly import Assembly, plain
from .parts import first_of, take_part
from .shapes import counts_of_usage, items, parts_in

_REASONS = {"tool-calls": "tool_calls", "content-filter": "content_filter"}
_TEXTS = ("text", "textDelta", "delta")
_QUIET = frozenset((
    "start", "start-step", "finish-step", "step-start", "step-finish", "stream-start", "raw",
    "response-metadata", "text-start", "text-end", "reasoning-start", "reasoning-end",
    "tool-input-end", "tool-result", "tool-error", "tool-output-available", "abort",
    "tool-call-streaming-start", "reasoning-signature", "redacted-reasoning", "tool-output-denied",
    "tool-approval-request", "source", "file", "source-url", "source-document",
))  # fmt: skip
_SPOKEN = frozenset((
    "text-delta", "reasoning-delta", "reasoning", "tool-input-start", "tool-input-delta",
    "tool-call-delta", "tool-call", "tool-input-available", "finish",
))  # fmt: skip
EVENTS = _QUIET | _SPOKEN


def is_result(obj: Any) -> bool:
    """Return True for a result of generateText or doGenerate."""
    if get(obj, "role") is not None or get(obj, "choices") is not None:
        return False
    if isinstance(get(obj, "toolCalls"), (list, tuple)):
        return True
    said = get(obj, "content") if get(obj, "text") is None else get(obj, "text")
    return get(obj, "finishReason") is not None and isinstance(said, (str, list, tuple))


def take_result(obj: Any, assembly: Assembly) -> bool:
    """Take in a whole result."""
    assembly.choices = 1
    content = items(get(obj, "content"))
    for part in content:
        take_part(part, assembly, assembly.next_index())
    if not content:
        assembly.think(get(obj, "reasoningText") or get(obj, "reasoning"))
        assembly.say(get(obj, "text"))
    if not assembly.calls:
        for call in parts_in(get(obj, "toolCalls")):
            # Some logs leave the type out.
            part = call if get(call, "type") else {**_members(call), "type": "tool-call"}
            take_part(part, assembly, assembly.next_index())
    # A result is its last step's; the calls of the steps before were answered in between.
    for step in items(get(obj, "steps"))[:-1]:
        if items(get(step, "toolCalls")):
            assembly.miss("steps", step)
    _end(obj, assembly)
    return True


def take_result_part(part: Any, assembly: Assembly) -> bool:
    """Take in a part of a stream."""
    assembly.choices = max(assembly.choices, 1)
    kind = get(part, "type")
    index = ("call", label(first_of(part, ("toolCallId", "id"))))
    if kind == "text-delta":
        assembly.say(first_of(part, _TEXTS))
    elif kind in ("reasoning-delta", "reasoning"):
        assembly.think(first_of(part, _TEXTS))
    elif kind == "tool-input-start":
        if get(part, "providerExecuted") is True:
            assembly.pass_over(index)
        assembly.call(index, id=index[1], name=get(part, "toolName"))
    elif kind in ("tool-input-delta", "tool-call-delta"):
        piece = first_of(part, ("inputTextDelta", "argsTextDelta", "delta"))
        assembly.call(index, id=index[1], name=get(part, "toolName"), arguments=piece)
    elif kind in ("tool-call", "tool-input-available"):
        if assembly.calls.lacks_arguments(index) or not assembly.calls.has(index):
            take_part({**_members(part), "type": "tool-call"}, assembly, index)
    elif kind == "finish":
        _end(part, assembly)
    return True


def _members(obj: Any) -> dict[str, Any]:
    members = plain(obj)
    return dict(members) if isinstance(members, Mapping) else {}


def _end(obj: Any, assembly: Assembly) -> None:
    reason = get(obj, "finishReason")
    if not isinstance(reason, str):
        reason = first_of(reason, ("unified", "raw"))
    assembly.finish(reason, _REASONS)
    model = get(get(obj, "response"), "modelId")
    if isinstance(model, str):
        assembly.ids.setdefault("model", model)
    usage = first_of(obj, ("usage", "totalUsage"))
    sent = first_of(usage, ("inputTokens", "promptTokens"))
    received = first_of(usage, ("outputTokens", "completionTokens"))
    sent, received = (
        get(count, "total") if isinstance(count, Mapping) else count for count in (sent, received)
    )
    if sent is not None or received is not None:
        assembly.usage = counts_of_usage(sent, received)
