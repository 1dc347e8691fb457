"""Text held back because it may be a call, and the decision about it."""

# How it works
# ------------
# A candidate is a JSON value whose first key is one that calls have (`CALL_HEAD`), with nothing
# next to it on its lines: a line break, an opener, a stray closer or the end after a bare value,
# the closing fence after a fenced one. Or it begins with the head of a Python call of a known tool
# (`PythonCalls`), and ends after its bracket, or after that of the last call of a row. While it is
# held back, `judge` gets the tail from the candidate on again and again.
#
# State: `_at` is where the candidate begins in raw, and all other fields describe it. Text that
# begins elsewhere is a new candidate. `_scanned` is how far its brackets were counted.
#
# Invariant: an answer other than NEED_MORE is the same for every longer text, so that the result
# does not depend on the chunking. What is not a call is settled up to a place after which nothing
# was looked at, and never tried again.
#
# Cost: brackets are counted once, and white space after the value is passed once; what may still
# become a head is bounded. The body is decoded twice, to judge it and to number its calls.

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ...arguments.rjson.strict import Refusal
from ...core.types import Segment, Span, ToolCall
from ...formats.base import NEED_MORE, DecodeContext, Decoded, NeedMore, Opening
from ...formats.scan import Balanced, Close
from ...formats.turns import TURN_ENDS
from ..resolve import Body, Resolver

# Tokens that end a call: of a turn's end, and the head of a turn, which some models write where a
# closer should be.
CALL_ENDS = (*TURN_ENDS, "<|im_start|>")
# Each head whose value is never closed costs a look at all that follows, at the end of the text.
MOST_CUT = 16
FENCE_SO_FAR = re.compile(r"`{3,}+[ \t]{0,8}[a-zA-Z0-9_]{0,12}[ \t]{0,8}\r?(?:\n\s{0,40})?\Z")
_SPACE = re.compile(r"\s*")
_LINE_END = re.compile(r"[ \t\r]{0,40}\n")
_BARE = Opening(0)


@lru_cache(maxsize=64)
def _stripped(closers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, closers)))


def count_ticks(text: str) -> int:
    """Return the number of backticks that a text begins with."""
    return len(text) - len(text.lstrip("`"))


@dataclass(frozen=True, slots=True)
class Held:
    """The end of holding text back: at `end` characters, with a call's body, or (None) plain text.

    body: its span in raw. decoded, text: everything read in it, and from which characters. closed:
    its closing fence was there. alone: nothing but what may stand behind a call is there, so that a
    text is one by its contents. lead: the characters of plain text before its JSON.
    """

    end: int
    body: Span | None = None
    decoded: tuple[Decoded, ...] = ()
    text: str = ""
    closed: bool = True
    alone: bool = True
    lead: int = 0


class Candidate:
    """A recogniser of calls without delimiters, and the text that it holds back at the moment.

    quotes: the characters that begin and end strings.
    """

    def __init__(self, resolver: Resolver, heads: tuple[str, ...], quotes: str) -> None:
        self._resolver = resolver
        self._heads = heads  # the beginnings of the protocol's own openers
        self._closers = _stripped(resolver.protocol.envelope.closers)
        self._quotes = quotes
        self._cut = 0  # candidates that the end of the text cut off
        self._at = -1

    def judge(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Decide about held text: a Held, NEED_MORE (hold it back), or None (no candidate here).

        text: the tail from the candidate on. final: no more text will come. at: the candidate's
        offset in raw. first: the answer begins with it, so that its opener may be in the prompt.
        """
        raise NotImplementedError

    def _begin(self, at: int, lead: int) -> None:
        self._at = at  # where the candidate begins in raw, -1 before the first
        self._lead = lead  # what is before the value: a fence, a name, the calls of its row
        self._scanned = lead  # characters of the held text that the scanner has settled
        self._scan = Balanced(self._quotes)
        self._end: int | None = None  # after the value
        self._space = 0  # after the white space that was passed

    def _value_end(self, text: str, final: bool) -> int | None:
        # None while its brackets are open. Only text that came since the last look is scanned.
        if self._end is None:
            step = self._scan.scan(text[self._scanned :], final)
            if isinstance(step, Close):
                # A Close counts from where the scanner began.
                self._end = self._lead + step.end
            else:
                self._scanned += step
        return self._end

    def _calls_in(
        self,
        read: Callable[[str, DecodeContext], tuple[Decoded, ...]],
        inner: str,
        start: int,
        close: int,
        at: int,
        opening: Opening = _BARE,
    ) -> tuple[tuple[Decoded, ...], tuple[ToolCall, ...]]:
        # What a body is, if it begins at `start` of the held text, which ends at `close`.
        try:
            decoded = read(inner, self._resolver.reading(opening, True))
        except Refusal:
            return (), ()
        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        return decoded, self._resolver.calls(decoded, body, segment, 0, 0)

    def _pass_space(self, text: str, end: int) -> int:
        # Remembered, so that white space that comes bit by bit is passed once.
        match = _SPACE.match(text, max(end, self._space))
        self._space = match.end() if match else end
        return self._space

    def _line_end(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        # After the value or a stray closer; None if something else follows, so that the value is
        # not alone.
        after = self._pass_space(text, end)
        if after >= len(text):
            return end if final else NEED_MORE
        rest = text[after:]

        if rest.startswith(CALL_ENDS):
            return end
        if not final and any(token.startswith(rest) for token in CALL_ENDS):
            return NEED_MORE
        for closer in self._closers:
            if rest.startswith(closer):
                return after + len(closer) if first else None
            if not final and closer.startswith(rest):
                return NEED_MORE
        if rest.startswith(self._heads):
            return end
        if not final and any(head.startswith(rest) for head in self._heads):
            return NEED_MORE
        return end if _LINE_END.match(text, end) else None
