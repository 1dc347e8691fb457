"""The push parser.

`feed` returns events, `close` returns the result. `parse` is one feed and one close.

The engine knows no format: it asks the protocol's envelope what opens where, hands the body's
unsettled tail to a scanner, and the finished body to the resolver. Text is final. Only calls and
reasoning may be retracted.
"""

# How it works
# ------------
# A parser has four parts, each with one reason to change, and only runs the loop between them:
#
#     Feed           takes chunks in, and holds the tail that is not settled yet
#     TextScanner    settles text up to the next opener
#     BodyReader     reads what an opener began: a call, reasoning, markup
#     Log            keeps segments, calls, problems and events
#
# The scanners know the feed and the log, and the body reader knows the text scanner; nothing knows
# the parser.
#
# State: either a body is open or text is. The loop gives the tail to the one that is, until it
# waits for more text.
#
# Invariant: what is settled is a function of the text alone. Every decision that could depend on
# characters that have not come yet waits for them, or for the end; so a text gives the same result
# in any chunking.
#
# Cost: linear in the text, whatever the chunking. Each character is shown to a scanner once, apart
# from a bounded end of the tail; a long tail is looked at only when it has grown (see `feed`), and
# going back has a budget (see `body`).

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..core.errors import ParserClosed
from ..core.types import Event, ParseResult, Span
from ..formats.base import Opening
from .body import BodyReader
from .echoes import echoes_of
from .ending import finish
from .feed import Feed, not_a_chunk
from .log import Log
from .look_alikes import find_look_alikes
from .lost_calls import find_lost_calls
from .setting import Setting, setting_of
from .text import TextScanner

__all__ = ["Setting", "StreamParser"]


class StreamParser:
    """One text under one protocol.

    Feed it chunks of any size, then close it.

    silent: it makes no events. inner: the text is a part of another one that is being read.
    """

    __slots__ = (
        "_bodies",
        "_closed",
        "_feed",
        "_inner",
        "_log",
        "_result",
        "_setting",
        "_text",
        "options",
        "protocol",
        "tools",
    )

    def __init__(
        self,
        setting: Setting,
        *,
        silent: bool = False,
        request: Any = None,
        inner: bool = False,
    ) -> None:
        """Begin a text under `setting`, which many parsers may share. request: the request."""
        self._setting = setting
        self._inner = inner
        self.protocol = setting.protocol
        self.tools = setting.tools
        self.options = setting.options
        self._feed = feed = Feed()
        self._log = log = Log(silent, feed.text_of)
        if request is not None:
            log.echoes = echoes_of(request, setting.options, feed.text_of)
        self._text = text = TextScanner(setting, feed, log)
        self._bodies = BodyReader(setting, feed, log, text, _read_alone)
        self._closed = False
        self._result: ParseResult | None = None

    def feed(self, chunk: str | None) -> tuple[Event, ...]:
        """Return the events that `chunk` settles.

        None for None, which is the content of a stream's first and last delta. Raises ParserClosed
        after close and UnreadableInput for anything that is neither text nor None. Never on account
        of the text.
        """
        if self._closed:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        if not isinstance(chunk, str):
            if chunk is None:
                return ()
            raise not_a_chunk(chunk)
        feed = self._feed
        more = feed.add(chunk)

        while more:
            self._run(False)
            # Most chunks go into the tail whole: no call to learn that nothing is left.
            more = feed.chunk != "" and feed.next_block()

        events = self._log.events
        if not events:
            return ()
        # As `flush`, which would be a call more for every chunk.
        settled = tuple(events)
        events.clear()
        return settled

    def close(self) -> ParseResult:
        """Return the result.

        The text held back becomes text, an open call is truncated.

        A second call returns the same result.
        """
        if self._result is not None:
            return self._result
        self._closed = True
        feed, log = self._feed, self._log
        feed.end()
        self._run(True)
        log.end_text(feed.base)
        raw = feed.raw()
        finish(self._setting, log, raw)
        if not self._inner:
            find_lost_calls(log, raw, self._setting, self._read_inner)
            if log.texts and self._setting.recovers:
                log.problems += find_look_alikes(log, raw, self._setting, self._read_inner)
        self._result = ParseResult(
            raw=raw,
            protocol=self.protocol.id,
            options=self.options,
            segments=tuple(log.segments),
            calls=tuple(log.calls),
            problems=tuple(log.problems),
            tools=self._setting.specs,
        )
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """Return the events that closing settled.

        Empty before `close` and when read a second time.

        A stream is the result of `feed`, and then this.
        """
        return self._log.flush()

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far, whatever the number of chunks
        before it.

        The spans of events and of the result's segments are such spans. Raw itself is joined only
        at the end.
        """
        return self._feed.text_of(span)

    def _read_inner(self, text: str, protocol: str) -> ParseResult:
        """Return the result of a part of this text, read by the protocol of an id."""
        from ..formats.auto import AUTO  # start-up time: few texts hold such a part

        setting, own = self._setting, self.protocol
        options = replace(self.options, reasoning="none")
        return _read_alone(
            setting_of(AUTO if protocol == "auto" else own, setting.specs, options), text
        )

    def _run(self, final: bool) -> None:
        """Settle as much of the tail as can be. final: no more text will come.

        Returns when the open body, or the text, waits for more.
        """
        feed, bodies = self._feed, self._bodies
        while True:
            body = bodies.open
            if body is not None:
                if not bodies.scan(body, final):
                    return
                continue
            if not feed.tail:
                return
            step = self._text.scan(final)
            if isinstance(step, Opening):
                bodies.begin(step)
            elif not step:
                return


def _read_alone(setting: Setting, text: str) -> ParseResult:
    """Return the result of a text of its own, for a body that wants to know what its end
    would say.
    """
    parser = StreamParser(setting, silent=True, inner=True)
    parser.feed(text)
    return parser.close()
