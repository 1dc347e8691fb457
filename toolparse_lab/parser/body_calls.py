"""From a finished body to its calls in the log."""

# How it works
# ------------
# A body goes to the codec, once it is whole or the text is over (`decode`), and what comes of it to
# the log (`finish`): calls, or a message with texts beside its calls, or nothing, where the body
# only looked like a call and is text again.
#
# State: `_repeat_end`, which belongs to a call that stands twice.
#
# Cost: a body is decoded by whoever asks, and that is at most three times (see `body`).

from __future__ import annotations

from dataclasses import replace

from ..arguments.rjson.damage import Refusal
from ..core.types import Problem, Segment, Span, ToolCall
from ..core.types.spans import make_segment
from ..core.values import Value
from ..formats.base import Decoded, Message
from .feed import Feed
from .log import Log
from .open_body import OpenBody
from .open_heads import open_head
from .quotation import WINDOW
from .resolve import Body
from .setting import Setting
from .text import TextScanner
from .unclosed import as_draft


class BodyCalls:
    """Reads finished bodies of one parser, and logs their calls."""

    __slots__ = ("_feed", "_log", "_repeat_end", "_setting", "_text")

    def __init__(self, setting: Setting, feed: Feed, log: Log, text: TextScanner) -> None:
        """Share the parts of one parser."""
        self._setting = setting
        self._feed = feed
        self._log = log
        self._text = text
        self._repeat_end = -1  # behind a call that repeats the one before, and has no closer either

    def decode(
        self,
        body: OpenBody,
        text: str,
        closed: bool,
        kind: str,
        value: tuple[Value] | None = None,
    ) -> tuple[Body, tuple[Decoded, ...] | Refusal]:
        """Hand a finished body to the codec. value: its content, where the scanner read it.

        text: the characters of the body. closed: its closer is there. kind: how it was closed (see
        `scan.Close`). Returns the body for the resolver, and the calls or the refusal.
        """
        opening = body.opening
        span = opening.name_span.shift(body.head) if opening.name_span else None
        owner = opening.owner.id if opening.owner else ""
        unit = Body(text, body.start, body.opener, closed, kind, owner, opening.name, span)
        resolver = self._setting.resolver
        reading = resolver.reading(opening, closed)
        if value is not None:
            reading.strict_value = text, value[0]
        return unit, resolver.decode(unit, reading)

    def finish(
        self, body: OpenBody, unit: Body, after: int, decoded: tuple[Decoded, ...] | Refusal
    ) -> None:
        """Log the calls of a body. after: the offset in raw behind its closer.

        unit: the body. A speculative body that holds no good call was none, and is given back as
        text.
        """
        log = self._log
        if isinstance(decoded, Message):
            self._finish_message(body, unit, after, decoded)
            return
        end = body.start + len(unit.text)
        segment = make_segment("call", Span(body.opener, after), Span(body.start, end), unit.closed)
        resolver = self._setting.resolver
        calls: tuple[ToolCall, ...] = ()
        if isinstance(decoded, Refusal) and not body.opening.speculative:
            calls = resolver.leading(unit, body.opening, segment, len(log.segments), len(log.calls))
        at = len(log.calls) + len(calls)
        calls += resolver.calls(decoded, unit, segment, len(log.segments), at)
        if body.opening.speculative and (
            not any(c.ok and not _is_word(body, c) for c in calls)
            or self._is_given_to_other_tool(body, calls)
        ):
            self._take_back(body, after)
            return
        if self._repeats(body, calls):
            self._drop_repeat(body, unit, after)
            return
        given_up = self._text.given_up
        quoted = given_up is not None and given_up.quotes(body.opener, after)
        if quoted or self._is_inside_words(calls):
            calls = tuple(map(as_draft, calls))
        if body.head > body.opener:
            calls = (_with_problem(calls[0], _repeated_opener(body)), *calls[1:])
        log.call(segment, end, calls)
        self._text.resume_behind_call()

    def _repeats(self, body: OpenBody, calls: tuple[ToolCall, ...]) -> bool:
        """Return True if a body is the call before it once more, which ended at its opener.

        A call without its closer, and the same call right behind it, were begun twice and meant
        once. With other arguments they are two: whole JSON counts without its closer.
        """
        log = self._log
        if len(calls) != 1 or not log.calls or not log.segments:
            return False
        call, last, before = calls[0], log.calls[-1], log.segments[-1]
        if before.kind == "call":
            is_open = before.span.end == body.opener and last.segment is before
        else:
            is_open = self._repeat_end == body.opener
        return (
            is_open
            and call.ok
            and call.name == last.name
            and call.arguments_json == last.arguments_json
            and call.wire_id == last.wire_id
            and any(problem.code == "call.missing-closer" for problem in last.problems)
        )

    def _drop_repeat(self, body: OpenBody, unit: Body, end: int) -> None:
        """Log a call that repeats the one before it, up to `end`, as no call of its own."""
        log = self._log
        log.retract(body.opener)
        log.markup(body.opener, end)
        message = "the call before has no closer and stands here again: it is one call"
        problem = Problem("scan", "call.repeated", "warning", message, "", Span(body.opener, end))
        log.problems.append(problem)
        if unit.kind == "implicit":
            self._repeat_end = end
        self._text.resume_behind_call()

    def _is_given_to_other_tool(self, body: OpenBody, calls: tuple[ToolCall, ...]) -> bool:
        """Return True if the line before a body names another tool: the body is its arguments."""
        log = self._log
        last = log.segments[-1] if log.segments else None
        if body.opening.name or last is None or last.kind != "text":
            return False
        before = Span(max(last.span.start, body.opener - WINDOW), body.opener)
        return self._text.is_of_other_tool(calls, self._feed.text_of(before))

    def _is_inside_words(self, calls: tuple[ToolCall, ...]) -> bool:
        """Return True if the words that were dropped around a call begin another one."""
        for call in calls:
            for edit in call.edits:
                if edit.rule == "rjson.prose":
                    words = self._feed.text_of(edit.span)
                    if open_head(words, self._setting.tools) is not None:
                        return True
        return False

    def _finish_message(self, body: OpenBody, unit: Body, end: int, message: Message) -> None:
        """Log a body that is a whole message.

        Its calls and texts are segments of their own, and markup is between them, up to `end`.
        """
        log = self._log
        log.retract(body.opener)
        at, calls = body.opener, iter(message)

        for piece in message.pieces:
            span = piece.span.shift(body.start)
            log.markup(at, span.start)
            at = span.end
            if piece.kind == "call":
                call = next(calls)
                segment = Segment("call", span, span, unit.closed or not call.truncated)
                # The message's own closer says nothing of the calls in it.
                own = replace(unit, closed=True, kind="end")
                resolver = self._setting.resolver
                log.message_call(
                    segment,
                    resolver.calls((call,), own, segment, len(log.segments), len(log.calls)),
                )
            elif len(span) == 0:
                continue
            elif piece.kind == "text":
                log.message_text(span)
            else:
                log.message_reasoning(span)

        log.markup(at, end)
        self._text.resume_behind_call()

    def _take_back(self, body: OpenBody, end: int) -> None:
        """Give back as text, up to `end`, a body that only looked like a call.

        The tail begins with it again. The rest of the tail follows as before.
        """
        feed, tools = self._feed, self._setting.tools
        envelope = (body.opening.owner or self._setting.protocol).envelope
        self._text.remember().suspect(
            body.opener, end, lambda text: envelope.in_value(body.opening, text, tools)
        )
        feed.go_to(body.opener, feed.text_of(Span(body.opener, end)) + feed.tail)
        self._log.retract(body.opener)
        self._text.resume_at_no_call()


def _is_word(body: OpenBody, call: ToolCall) -> bool:
    """Return True if an element inside a sentence holds words, and no parameter of its tool."""
    return bool(body.opening.name) and any(s.rule == "read.text-body" for s in call.steps)


def _repeated_opener(body: OpenBody) -> Problem:
    """Return the problem of a body whose opener stands several times in a row."""
    span = Span(body.opener, body.head)
    message = "the opener stands several times in a row: one call begins"
    return Problem("scan", "call.repeated-opener", "warning", message, "", span)


def _with_problem(call: ToolCall, problem: Problem) -> ToolCall:
    """Return a call with a problem more, in front of its own."""
    return replace(call, problems=(problem, *call.problems))
