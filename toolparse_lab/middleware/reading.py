"""The reading of answers, whole texts, pieces and forced choices, and telling `on_error` what could
not be read: `on_error(message, metadata)`, once for each piece of the text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.types import ParseResult, Problem, ToolCall
from ..parser.content_parts import OnError, call_safely, failure_message
from ..parser.echoes import judged
from ..parser.foreign.protocol import AnyProtocol
from ..parser.parse import Reader
from .answer import was_cut
from .attempts import Attempts
from .forced import parse_forced, parse_formatted, parse_like_seed
from .options import Ways
from .turn import Turn

_CHOICE = "Failed to parse toolChoice JSON from {} model output"
_FURTHER = "A further call is left out, because the request says parallel_tool_calls=False."
_UNKNOWN_TOOL = "The call names a tool that was not offered, keeping original text."


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The part of a middleware that reads answers, with fields of the middleware."""

    protocol: AnyProtocol
    ways: Ways
    on_error: OnError | None
    attempts: Attempts

    def readers(self, turn: Turn) -> tuple[Reader, Reader]:
        """Return the readers of a turn's answer: whole, and in pieces."""
        prepared = turn._prepared
        # A turn may be made or changed by hand, or by another middleware.
        own = (
            prepared is not None
            and prepared.offer.tools is turn.tools
            and prepared.protocol is self.protocol
            and prepared.ways is self.ways
        )
        if prepared is not None and own and prepared.readers is not None:
            return prepared.readers
        whole = pieces = Reader(self.protocol, turn.tools, self.ways.batch)
        if self.ways.stream != self.ways.batch:
            pieces = Reader(self.protocol, turn.tools, self.ways.stream)
        if prepared is not None and own:
            prepared.readers = whole, pieces
        return whole, pieces

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
        """Call `on_error` for each segment with a call that failed, for each failure of the text as
        a whole, and for each call that drops out.

        metadata: toolCall (the text), toolName, code, message, span (start, end). Of a forced
        answer also text and error. Only decoding and reading count. A value that does not fit a
        schema is a problem of the result and no failure; nor is a call of a tool that was not
        offered where it is handed on.
        """
        if self.on_error is None:
            return
        by_segment: dict[int, list[tuple[ToolCall, Problem]]] = {}
        for call in result.calls:
            # The text of a segment is kept or lost as one, so its first failure is told.
            by_segment.setdefault(call.segment_index, []).extend(
                (call, problem)
                for problem in call.problems
                if _is_failure(problem)
                and not (problem.code == "call.unknown-tool" and self.attempts.hands_on_unknown)
            )
        for failures in by_segment.values():
            for call, problem in failures[:1]:
                self._tell(result, problem, call, streamed)
        for problem in filter(_is_failure, result.problems):
            self._tell(result, problem, None, streamed)
        for call in self.attempts.usable(result.calls)[1:] if turn.one_call else ():
            span = call.segment.span
            metadata = {
                "toolCall": span.of(result.raw),
                "toolName": call.name,
                "code": "choice.further-call",
                "message": _FURTHER,
                "span": (span.start, span.end),
            }
            call_safely(self.on_error, _FURTHER, metadata)

    def _tell(
        self, result: ParseResult, problem: Problem, call: ToolCall | None, streamed: bool
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
            message = failure_message(call.protocol, text, self.protocol)
        if self.on_error is not None:
            call_safely(self.on_error, message, metadata)


def _is_failure(problem: Problem) -> bool:
    return problem.severity == "error" and problem.stage in ("scan", "decode", "read")
