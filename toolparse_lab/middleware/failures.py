"""Who is told of what could not be read: `on_error(message, metadata)`, once for each piece of the text."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

from ..parts import OnError, call_safely, failure_message
from ..types import ParseResult, Problem, ToolCall
from .answer import UnknownTools

_CHOICE = "Failed to parse toolChoice JSON from {} model output"
_FURTHER = "A further call is left out, because the request says parallel_tool_calls=False."
_UNKNOWN_TOOL = "The call names a tool that was not offered, keeping original text."


def tell_failures(
    result: ParseResult, on_error: OnError, unknown_tools: UnknownTools, *, streamed: bool = False
) -> None:
    """Calls `on_error` for each segment with a call that failed, and for each failure of the text as a whole.

    metadata: toolCall (the text), toolName, code, message, span (start, end); of a forced answer also text and error.
    Only decoding and reading count; what does not fit a schema is a problem of the result and no failure.
    """
    by_segment: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)
    for calls in by_segment.values():
        failed = (
            (c, p)
            for c in calls
            for p in c.problems
            if _is_failure(p) and (p.code != "call.unknown-tool" or unknown_tools == "text")
        )
        for call, problem in islice(failed, 1):
            _tell(result, on_error, problem, call, streamed)
    for problem in result.problems:
        if _is_failure(problem):
            _tell(result, on_error, problem, None, streamed)


def tell_left_out(calls: Iterable[ToolCall], raw: str, on_error: OnError) -> None:
    """Calls `on_error` for each call that was read and is not made, with the code `choice.further-call`."""
    for call in calls:
        span = call.segment.span
        metadata = {
            "toolCall": span.of(raw),
            "toolName": call.name,
            "code": "choice.further-call",
            "message": _FURTHER,
            "span": (span.start, span.end),
        }
        call_safely(on_error, _FURTHER, metadata)


def _is_failure(problem: Problem) -> bool:
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")


def _tell(result: ParseResult, on_error: OnError, problem: Problem, call: ToolCall | None, streamed: bool) -> None:
    span = call.segment.span if call is not None else problem.span
    text = span.of(result.raw) if span is not None else result.raw
    metadata: dict[str, Any] = {
        "toolCall": text,
        "toolName": (call.name or None) if call is not None else None,
        "code": problem.code,
        "message": problem.message,
        "span": (span.start, span.end) if span is not None else None,
    }
    if problem.code == "choice.no-call":
        message = _CHOICE.format("streamed" if streamed else "generated")
        metadata = {**metadata, "text": text, "error": problem.message}
    elif problem.code == "call.unknown-tool":
        message = _UNKNOWN_TOOL
    else:
        message = failure_message(call.protocol, text) if call is not None else problem.message
    call_safely(on_error, message, metadata)
