"""Telling a program the unreadable part: `on_error(message, metadata)`, once for each piece of the
text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..core.types import ParseResult, Problem, ToolCall
from ..parser.any_protocol import AnyProtocol
from ..parser.content_parts import OnError, call_safely, failure_message
from .attempts import Attempts

_CHOICE = "Failed to parse toolChoice JSON from {} model output"
_FURTHER = "A further call is left out, because the request says parallel_tool_calls=False."
_UNKNOWN_TOOL = "The call names a tool that was not offered, keeping original text."


def tell_failures(
    result: ParseResult,
    on_error: OnError,
    attempts: Attempts,
    protocol: AnyProtocol,
    *,
    streamed: bool = False,
) -> None:
    """Call `on_error` for each segment with a call that failed, and for each failure of the text as
    a whole.

    metadata: toolCall (the text), toolName, code, message, span (start, end). Of a forced answer
    also text and error. Only decoding and reading count. A value that does not fit a schema is a
    problem of the result and no failure.

    result: the parse, finished.
    on_error: the user's function. The error that it raises is ignored.
    attempts: the handling of calls that failed. A call of a tool that was not offered is no failure
    where it is handed on.
    protocol: the middleware's own, which words the messages.
    streamed: the answer came in pieces.
    """
    by_segment: dict[int, list[ToolCall]] = {}
    for call in result.calls:
        by_segment.setdefault(call.segment_index, []).append(call)

    for calls in by_segment.values():
        failure = _first_failure(calls, attempts)
        if failure is not None:
            call, problem = failure
            _tell(result, on_error, problem, call, protocol, streamed)

    for problem in result.problems:
        if _is_failure(problem):
            _tell(result, on_error, problem, None, protocol, streamed)


def _first_failure(calls: list[ToolCall], attempts: Attempts) -> tuple[ToolCall, Problem] | None:
    """Return the first failure of a segment, whose text is kept or lost as one.

    None without any.

    calls: those of one segment, in order.
    attempts: as for `tell_failures`.
    """
    for call in calls:
        for problem in call.problems:
            if not _is_failure(problem):
                continue
            if problem.code == "call.unknown-tool" and attempts.hands_on_unknown:
                continue  # it becomes a call like others
            return call, problem
    return None


def tell_left_out(calls: Iterable[ToolCall], raw: str, on_error: OnError) -> None:
    """Call `on_error` for each call that was read and is not made, with the code
    `choice.further-call`.

    calls: those that are not made.
    raw: the whole text, which the spans of the calls point into.
    on_error: the user's function. The error that it raises is ignored.
    """
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
    """Return True for an error of decoding or reading.

    A value that does not fit a schema is none.

    problem: of a call, or of the text as a whole.
    """
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")


def _tell(
    result: ParseResult,
    on_error: OnError,
    problem: Problem,
    call: ToolCall | None,
    protocol: AnyProtocol,
    streamed: bool,
) -> None:
    """Call `on_error` for one problem. call: None for one of the text as a whole.

    result: the parse, finished.
    problem: the failure to tell of.
    protocol: the middleware's own, which words the message of a call.
    streamed: the answer came in pieces, which the message of a forced call names.
    """
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
    else:
        message = _message_of(problem, call, text, protocol)

    call_safely(on_error, message, metadata)


def _message_of(problem: Problem, call: ToolCall | None, text: str, protocol: AnyProtocol) -> str:
    """Return the sentence for a problem of an answer that was not forced.

    call: the one that failed, None for a problem of the text as a whole.
    text: that of the call, which the protocol may quote.
    protocol: the middleware's own, which words the failures of its calls.
    """
    if problem.code == "call.unknown-tool":
        return _UNKNOWN_TOOL
    if call is None:
        return problem.message

    return failure_message(call.protocol, text, protocol)
