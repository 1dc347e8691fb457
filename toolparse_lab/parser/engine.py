"""The push parser: `feed` returns events, `close` the result.

The engine knows no format. It asks the protocol's envelope what opens where, hands the body's
unsettled tail to a scanner, and the finished body to the resolver. Text is final: only calls and
reasoning may be retracted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from ..core.errors import ParserClosed
from ..core.types import Event, ParseResult, Span
from ..formats.base import Opening, Protocol
from .body import BodyReader
from .ending import finish
from .recognition.echoes import echoes_of
from .recognition.lost_calls import make_drafts
from .recognition.repeats import REPEATED, REPEATED_MESSAGE, second_half
from .state import Feed, Log, Setting, not_a_chunk, setting_of
from .text import TextScanner


# How it works
# ------------
# A parser has four parts, each with one reason to change, and only runs the loop between them:
#
#     Feed           takes chunks in, and has the tail that is not settled yet
#     TextScanner    settles text up to the next opener
#     BodyReader     reads what an opener began: a call, reasoning, markup
#     Log            keeps segments, calls, problems and events
#
# The scanners know the feed and the log, and the body reader knows the text scanner; nothing knows
# the parser.
#
# State: either a body is open or text is. The loop gives the tail to the one that is:
#
#     open   step                      then
#     body   False                     wait for more text
#     body   True                      whichever is open now
#     text   an Opening                the body of it, if it has one
#     text   True                      text again
#     text   False, or no tail left    wait for more text
#
# Invariant: what is settled is a function of the text alone. Every decision that could depend on
# characters that have not come yet waits for them, or for the end; so a text gives the same result
# in any chunking.
#
# Cost: linear in the text, whatever the chunking. Each character is shown to a scanner once, apart
# from a bounded end of the tail; a long tail is looked at only when it has grown (see `state`), and
# going back has a budget (see `body`).
class StreamParser:
    """One text under one protocol: feed it chunks of any size, then close it.

    setting: may be that of many parsers. silent: it makes no events. inner: the text is a part of
    another one that is being read.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        silent: bool = False,
        request: Any = None,
        inner: bool = False,
    ) -> None:
        self.setting = setting
        self._inner = inner
        self.protocol = setting.protocol
        self.tools = setting.tools
        self.options = setting.options
        self._feed = feed = Feed()
        self._log = log = Log(silent, feed)
        if request is not None:
            log.echoes = echoes_of(request, setting.options, feed.text_of)
        self._text = text = TextScanner(setting, feed, log)
        self._bodies = BodyReader(setting, feed, log, text, read_alone)
        self._closed = False
        self._result: ParseResult | None = None

    @property
    def is_plain(self) -> bool:
        """True if the calls so far were written as others that are known."""
        return self._bodies.is_plain is True

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
        if more and feed.chunk == "":
            # A long literal comes in many chunks, and until it is whole nothing is decided.
            bodies = self._bodies
            body = bodies.open
            if body is None:
                if feed.tail in self.setting.waits:
                    return ()
            elif feed.tail in body.scanner.waits:
                return ()
            else:
                more = bodies.scan(body, False)  # as below, where most chunks end

        while more:
            self._run(False)
            # Most chunks go into the tail whole: no call to learn that nothing is left.
            more = feed.chunk != "" and feed.next_block()

        events = self._log.events
        if not events:
            return ()
        # As `last_events`, which would be a call more for every chunk.
        settled = tuple(events)
        events.clear()
        return settled

    def close(self) -> ParseResult:
        """Return the result, the same each time. What was held back becomes text, an open call is
        truncated.
        """
        if self._result is not None:
            return self._result
        self._closed = True
        feed, log, setting = self._feed, self._log, self.setting
        feed.end()
        self._run(True)
        if feed.base > log.text_start:
            log.end_text(feed.base)
        raw = "".join(feed.pieces)
        if len(log.calls) > 3 and not self._inner:
            words = any(not text.said(raw).isspace() for text in log.texts)
            again = second_half(log.calls, words)
            make_drafts(log, again, len(raw), REPEATED, REPEATED_MESSAGE)
        is_read = log.calls and log.calls[0].arguments_json
        if log.texts or log.thought_end is not None or not is_read or "\ufffd" in raw:
            finish(log, raw, setting, None if self._inner else self._read_inner)
        self._result = ParseResult(
            raw, self.protocol.id, self.options, tuple(log.segments), tuple(log.calls),
            tuple(log.problems), setting.specs,
        )  # fmt: skip
        return self._result

    def last_events(self) -> tuple[Event, ...]:
        """Return the events that closing settled: none before it, and none a second time."""
        events = tuple(self._log.events)
        self._log.events.clear()
        return events

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far, such as an event's."""
        return self._feed.text_of(span)

    def _read_inner(self, text: str, protocol: str) -> ParseResult:
        # A part of this text, read by the protocol of an id.
        setting, own = self.setting, self.protocol
        options = replace(self.options, reasoning="none")
        return read_alone(
            setting_of(auto_protocol() if protocol == "auto" else own, setting.specs, options), text
        )

    def _run(self, final: bool) -> None:
        # Settles as much of the tail as can be. final: no more text will come.
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


def read_alone(setting: Setting, text: str, inner: bool = True) -> ParseResult:
    """Return the result of a text, read the long way."""
    parser = StreamParser(setting, silent=True, inner=inner)
    parser.feed(text)
    return parser.close()


@cache  # finding an import again takes as long as everything else that is looked at
def auto_protocol() -> Protocol:
    """Return the protocol `auto`."""
    from ..formats.auto import AUTO  # start-up time: not every program reads every format

    return AUTO
