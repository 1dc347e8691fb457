"""The reading of answers, whole texts, pieces and forced choices, and telling `on_error` what could
not be read: `on_error(message, metadata)`, once for each piece of the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..core.types import ParseResult, Problem, ToolCall
from ..formats.base import Protocol
from ..parser.any_protocol import AnyProtocol
from ..parser.content_parts import OnError, call_safely, failure_message
from ..parser.echoes import judged
from ..parser.foreign.protocol import ForeignProtocol
from .answer import was_cut
from .attempts import Attempts
from .forced import parse_forced, parse_formatted, parse_like_seed
from .options import Ways
from .turn import Readers, Turn

_CHOICE = "Failed to parse toolChoice JSON from {} model output"
_FURTHER = "A further call is left out, because the request says parallel_tool_calls=False."
_UNKNOWN_TOOL = "The call names a tool that was not offered, keeping original text."


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The part of a middleware that reads answers, with fields of the middleware."""

    protocol: Protocol | ForeignProtocol
    ways: Ways
    on_error: OnError | None
    attempts: Attempts

    def readers(self, turn: Turn) -> Readers:
        """Return the readers of a turn's answer."""
        prepared = turn._prepared
        if (
            prepared is None
            or prepared.offer.tools is not turn.tools
            or prepared.protocol is not self.protocol
            or prepared.ways is not self.ways
        ):
            # A turn made or changed by hand, or by another middleware.
            return Readers.of(self.protocol, turn.tools, self.ways)
        if prepared.readers is None:
            prepared.readers = Readers.of(self.protocol, turn.tools, self.ways)
        return prepared.readers

    def parse_whole(self, turn: Turn, text: str, finish_reason: str | None) -> ParseResult:
        """Return the parse of an answer that must be a call, or JSON of the caller's own form."""
        cut, ways = was_cut(finish_reason), self.ways
        if turn.formatted:
            result = parse_formatted(text, self.protocol, turn.tools, ways.choice, cut=cut)
        elif ways.seed_choice:
            result = parse_like_seed(text, self.protocol.id, turn.tools, ways.choice, cut=cut)
        else:
            result = parse_forced(
                text, self.protocol, turn.tools, turn.allowed, ways.choice, cut=cut, many=turn.many
            )
        return judged(result, turn.asked)

    def tell_failures(self, result: ParseResult, turn: Turn, *, streamed: bool = False) -> None:
        """Tell `on_error` the unreadable part, and which further calls drop out.

        result: the parse, finished. streamed: the answer came in pieces.
        """
        if self.on_error is None:
            return
        tell_failures(result, self.on_error, self.attempts, self.protocol, streamed=streamed)
        if turn.one_call:
            further = self.attempts.usable(result.calls)[1:]
            tell_left_out(further, result.raw, self.on_error)


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
    problem of the result and no failure; nor is a call of a tool that was not offered where it is
    handed on.
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
    # The text of a segment is kept or lost as one.
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
    # A value that does not fit a schema is not one.
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")


def _tell(
    result: ParseResult,
    on_error: OnError,
    problem: Problem,
    call: ToolCall | None,
    protocol: AnyProtocol,
    streamed: bool,
) -> None:
    span = call.segment.span if call is not None else problem.span
    text = span.of(result.raw) if span is not None else result.raw
    metadata: dict[str, Any] = {
        "toolCall": text,
        "toolName": (call.name or None) if call is not None else None,
        "code": problem.code,
        "message": problem.message,
        "span": (span.start, span.end) if span is not None else None,
    }
    if problem.code == "call.unknown-tool":
        message = _UNKNOWN_TOOL
    elif problem.code == "choice.no-call":
        message = _CHOICE.format("streamed" if streamed else "generated")
        metadata = {**metadata, "text": text, "error": problem.message}
    elif call is None:
        message = problem.message
    else:
        message = failure_message(call.protocol, text, protocol)
    call_safely(on_error, message, metadata)
