"""The record of one text so far: segments, calls, problems, and events not yet handed out."""

# How it works
# ------------
# State: `segments` partition raw from 0 to `text_start`; from there on text is open, or a body.
# `calls` are in the order of their segments. `events` are those since the last flush.
#
# Invariant: text_start is the end of the last segment. Text becomes a segment only when something
# else begins, so that two texts never stand side by side. The spans of all events, with each
# Retract honoured, cover raw exactly once up to what was settled; a TextDelta is never retracted.
#
# Cost: an event and its span are two objects, and more of the time than their use suggests: a
# silent log (`parse` reads no events) makes none.

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..core.types import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Markup,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Segment,
    Span,
    TextDelta,
    ToolCall,
)
from ..core.types.spans import make_segment
from .echoes import Echoes
from .repeats import Repeats
from .unclosed import as_draft

_AFTER_TURN = "the call is after the end of the model's own turn"
SHORTEST = 3  # characters of a text that may hold words; white space between calls is less


class Log:
    """The segments, calls, problems and events of one text. silent: it makes no events.

    echoes: judges every call that is logged, or None if no request is known.
    """

    __slots__ = (
        "_text_of",
        "calls",
        "echoes",
        "events",
        "message_end",
        "problems",
        "repeats",
        "said",
        "segments",
        "silent",
        "text_start",
        "texts",
        "thought_end",
        "turn_end",
    )

    def __init__(self, silent: bool, text_of: Callable[[Span], str]) -> None:
        """Begin empty. silent: no one asks for the events. text_of: the characters of a span."""
        self.silent = silent
        self._text_of = text_of
        self.echoes: Echoes | None = None
        self.repeats: Repeats | None = None
        self.said: list[Segment] = []  # text and reasoning since the last call
        self.segments: list[Segment] = []
        self.texts: list[Segment] = []  # those of them that may hold words
        self.calls: list[ToolCall] = []
        self.problems: list[Problem] = []
        self.events: list[Event] = []
        self.text_start = 0  # where the segments end, and open text begins
        # Where the first closing think tag stands that no tag opened.
        self.thought_end: int | None = None
        # Where the turn of the assistant ended: no call after it is the model's own.
        self.turn_end: int | None = None
        # The last token that ends a message of some format: what follows may go on with the turn.
        self.message_end: tuple[int, str] | None = None

    def flush(self) -> tuple[Event, ...]:
        """Return the events since the last flush."""
        events = tuple(self.events)
        self.events.clear()
        return events

    # events alone

    def delta(
        self, kind: type[TextDelta | ReasoningDelta | CallDelta], start: int, end: int
    ) -> None:
        """Report characters of text, reasoning or a call's body.

        Their segment comes later.
        """
        if not self.silent:
            self.events.append(kind(Span(start, end)))

    def call_start(self, start: int, end: int) -> None:
        """Report a call's opener."""
        if not self.silent:
            self.events.append(CallStart(Span(start, end)))

    def retract(self, start: int) -> None:
        """Take back the events from `start` on: they were for a body that ends earlier.

        The deltas of a body only: text is final.
        """
        if not self.silent:
            self.events.append(Retract(start))

    # segments

    def add(self, segment: Segment) -> None:
        """Add the next segment: it begins where the last one ends.

        The caller ends the text before it first, so that no character drops out.
        """
        self.segments.append(segment)
        self.text_start = segment.span.end

    def end_text(self, at: int) -> None:
        """Make the open text up to `at` a segment, if there is any.

        To be called where something else begins, and at the end of the text.
        """
        start = self.text_start
        if at > start:
            segment = make_segment("text", Span(start, at))
            self.segments.append(segment)
            self.text_start = at
            if at - start >= SHORTEST:
                self.texts.append(segment)
            if at - start > 1:
                self.said.append(segment)

    def markup(self, start: int, end: int) -> None:
        """Add characters that are neither text nor call.

        Return nothing for an empty range.
        """
        if end > start:
            span = Span(start, end)
            if not self.silent:
                self.events.append(Markup(span))
            self.add(Segment("markup", span))

    def reasoning(self, start: int, end: int, closed: bool) -> None:
        """Add reasoning whose deltas were reported before.

        Return nothing for an empty range.
        """
        if end > start:
            span = Span(start, end)
            segment = Segment("reasoning", span, span, closed)
            self.said.append(segment)
            self.add(segment)

    def call(self, segment: Segment, closer: int, calls: tuple[ToolCall, ...]) -> None:
        """Add a call's segment and the calls of its body. closer: where its closer begins."""
        self.segments.append(segment)
        self.text_start = segment.span.end
        calls = self._doubted(calls)
        self.calls.extend(calls)
        if not self.silent:
            self.events.append(CallEnd(Span(closer, segment.span.end), calls))

    def recovered(self, segment: Segment, calls: tuple[ToolCall, ...]) -> None:
        """Add text that was held back and turned out to be calls.

        No delta came before it: text that waits makes no events.
        """
        self.add(segment)
        calls = self._doubted(calls)
        self.calls.extend(calls)
        if not self.silent:
            self.events.append(Recovered(segment.span, calls))

    def _doubted(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """Return calls with what speaks against running them.

        An echo, the end of the turn, or that the answer says them again.
        """
        if self.echoes is not None:
            calls = self.echoes.judge(calls)
        end = self.turn_end
        if end is not None:
            calls = tuple(
                as_draft(call, "call.after-turn", _AFTER_TURN) if _start(call) >= end else call
                for call in calls
            )
        if self.calls and (self.said or self.repeats is not None):
            if self.repeats is None:
                self.repeats = Repeats(self._text_of)
            calls = self.repeats.judge(self._meant(), len(self.calls), self.said, calls)
        self.said.clear()
        return calls

    def _meant(self) -> Iterator[ToolCall]:
        """Yield the calls so far that no lone closing think tag takes back."""
        start = self.thought_end or 0
        for call in self.calls:
            if call.segment is None or call.segment.span.start >= start:
                yield call

    # the parts of a body that is a whole message

    def message_call(self, segment: Segment, calls: tuple[ToolCall, ...]) -> None:
        """Add a call inside a message: the message has the delimiters, the call none."""
        span = segment.span
        if not self.silent:
            self.events.append(CallStart(Span(span.start, span.start)))
            self.events.append(CallDelta(span))
        self.call(segment, span.end, calls)

    def message_text(self, span: Span) -> None:
        """Add a text inside a JSON string of a message."""
        segment = Segment("text", span, escaped=True)
        self.add(segment)
        if len(span) >= SHORTEST:
            self.texts.append(segment)
            self.said.append(segment)
        if not self.silent:
            self.events.append(TextDelta(span, escaped=True))

    def message_reasoning(self, span: Span) -> None:
        """Add reasoning inside a JSON string of a message."""
        self.add(Segment("reasoning", span, span, escaped=True))
        if not self.silent:
            self.events.append(ReasoningDelta(span, escaped=True))


def _start(call: ToolCall) -> int:
    # A body may hold several calls, and the end of the turn between two of them.
    return (call.name_span or call.segment.span).start
