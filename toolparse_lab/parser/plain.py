"""Calls that their format's codec shows in one look: read without scanner and body, in a row."""

# How it works
# ------------
# Most answers are whole when they are read, and their calls are written exactly as the format has
# them. A codec may know such a call by one pattern (`Codec.plain_call`). The call behind it, with
# at most a line break between, is then tried at once, and so on.
#
# State: none between rows; a row works on the tail that it was given.
#
# Invariant: the same segments, calls and events as on the long way, which the first text that is
# not plain takes. So everything that may make text of an opener (code, quotation, a value given
# up), or one call of two, is left to it.
#
# Cost: one match of a pattern for the body, one for its parameters. The rest of the tail is copied
# once a row. A body that is not plain was looked at once too often.

from __future__ import annotations

from ..core.types import CallDelta, Span, TextDelta, ToolCall
from ..core.types.spans import make_segment
from ..formats.base import Opening
from ..formats.tags import THINK_ENDS, THINK_TAGS
from .feed import Feed
from .log import Log
from .setting import Setting
from .text import TextScanner

_LONGEST_TAG = max(map(len, (*THINK_TAGS, *THINK_ENDS)))


class PlainCalls:
    """Reads plain calls of one parser."""

    __slots__ = ("_feed", "_log", "_setting", "_text")

    def __init__(self, setting: Setting, feed: Feed, log: Log, text: TextScanner) -> None:
        """Share the parts of one parser."""
        self._setting = setting
        self._feed = feed
        self._log = log
        self._text = text

    def read(self, opening: Opening, opener: int) -> bool:
        """Read the call whose body begins where the tail does, and plain calls right behind it.

        Return False, with nothing done, if it is not plain. opening: its opener, at offset `opener`
        in raw, whose start is logged.
        """
        log, text, feed = self._log, self._text, self._feed
        if not self._setting.resolver.plain_tools or opening.speculative:
            return False
        # The same call twice may be one, and a value that was given up may hold this one.
        if text.given_up is not None or (log.calls and log.calls[-1].problems):
            return False
        call = self._call(opening, 0, opener, len(log.segments))
        if call is None:
            return False
        self._log_call(call)
        end = call.segment.span.end - feed.base
        end, line_at = self._read_row(opening, end) if text.is_plain else (end, -1)
        feed.take(end)
        text.resume_behind_calls(line_at)
        return True

    def _read_row(self, previous: Opening, pos: int) -> tuple[int, int]:
        """Read the plain calls of the tail from `pos` on, each right behind the one before.

        Return the offset in the tail behind the last one, and the offset in raw of the last line
        that began on the way, -1 for none. previous: the opening of the call before.
        """
        setting, log = self._setting, self._log
        tail, base = self._feed.tail, self._feed.base
        envelope, tools = setting.protocol.envelope, setting.tools
        # A literal that begins before it is whole.
        last = len(tail) - max(setting.longest_head, _LONGEST_TAG)
        line_at = -1
        while pos < last:
            at = pos + 1 if tail[pos] == "\n" else pos
            # Others may be the head of a chat turn, or candidates for recovery.
            if tail[at] != "<" or tail[at + 1] == "|":
                break
            opening = envelope.open(tail, at, False, tools)
            if opening is not previous:  # most formats have one for all blocks
                if not isinstance(opening, Opening) or opening.kind != "call":
                    break
                if opening.whole or opening.speculative or not opening.end:
                    break
                previous = opening
            start = at + previous.end
            call = self._call(previous, start, base + at, len(log.segments) + at - pos)
            if call is None:
                break
            if at > pos:
                line_at = base + at
                if not log.silent:
                    log.delta(TextDelta, base + pos, line_at)
                log.end_text(line_at)
            if not log.silent:
                log.call_start(base + at, base + start)
            self._log_call(call)
            pos = call.segment.span.end - base
        return pos, line_at

    def _call(
        self, opening: Opening, start: int, opener: int, segment_index: int
    ) -> ToolCall | None:
        """Return the call whose body begins at `start` of the tail, None if it is not plain.

        opener: its offset in raw.
        """
        setting, feed = self._setting, self._feed
        codec = (opening.owner or setting.protocol).codec
        resolver, tail, base = setting.resolver, feed.tail, feed.base
        tools = resolver.plain_tools
        plain = codec.plain_call(opening, tail, start, tools)
        if plain is None:
            return None
        name, name_start, texts, closer, end = plain
        body = Span(base + start, base + closer)
        return resolver.plain_call(
            texts,
            tools[name],
            opening,
            tail[start:closer],
            base + name_start,
            make_segment("call", Span(opener, base + end), body),
            segment_index,
            len(self._log.calls),
        )

    def _log_call(self, call: ToolCall) -> None:
        """Log a call behind its opener."""
        log, segment = self._log, call.segment
        body = segment.body or segment.span
        if not log.silent:
            log.delta(CallDelta, body.start, body.end)
        log.call(segment, body.end, (call,))
