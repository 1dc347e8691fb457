"""Calls outside their format: a JSON object that stands alone in its text or code fence and is
plainly a call.

Nothing is guessed: the name must be a known tool's and the arguments must fit its schema. Text is
held back only while it may still turn out to be such a call.
"""

# How it works
# ------------
# A candidate is a JSON value whose first key is one that calls have (`_HEAD`), with nothing beside
# it: an opener, a stray closer or the end behind a bare value, the closing fence behind a fenced
# one. The tail is shown here again and again from the candidate on, while it is held back.
#
# State: `_at` is where the candidate begins in raw, and all other fields are about it; a text
# that begins elsewhere is a new candidate. `_scanned` is how far its brackets were counted.
#
# Invariant: an answer other than NEED_MORE is the same for every longer text, so that the result
# does not depend on the chunking. What is not a call is settled up to a place behind which nothing
# was looked at, and never tried again.
#
# Cost: brackets are counted once, and white space behind the value is passed once. The body is
# decoded twice, to judge it and to number its calls.

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..protocols.base import NEED_MORE, Decoded, NeedMore, Opening, Protocol
from ..protocols.json.call import ARGUMENT_KEYS, NAME_KEYS, JsonCall
from ..protocols.scan import Balanced, Close
from ..rjson.damage import Refusal
from ..types import Problem, Segment, Span, ToolCall
from .resolve import Body, Resolver

# The first key of an object says that it is meant as a call; the value behind it may be damaged.
_KEYS = "|".join(sorted({*NAME_KEYS, *ARGUMENT_KEYS, "type", "id"}))
# Blanks are bounded here as in what may become a head, so that both agree on every text.
_HEAD = re.compile(rf"(?:\[\s{{0,40}})?\{{\s{{0,40}}[\"'](?:{_KEYS})[\"']\s{{0,10}}:")
# A text that may still become a head. Its repetitions are bounded, so that no text is held back
# for ever.
_HEAD_SO_FAR = re.compile(
    r"(?:\[\s{0,40})?(?:\{\s{0,40}(?:[\"'][a-z_]{0,20}(?:[\"']\s{0,10})?)?)?\Z"
)
_FENCE = re.compile(
    r"`{3,}+[ \t]{0,8}(?:json|json5|jsonc|tool_call|tool_calls|tool|)[ \t]{0,8}\r?\n\s{0,40}",
    re.IGNORECASE,
)
_FENCE_SO_FAR = re.compile(r"`{3,}+[ \t]{0,8}[a-zA-Z0-9_]{0,12}[ \t]{0,8}\r?(?:\n\s{0,40})?\Z")
_SPACE = re.compile(r"\s*")
_CODEC = JsonCall("", "")  # calls as objects, without delimiters
CONFIDENCE = 0.8  # of a recovered call; one in its own format has 1.0


@dataclass(frozen=True, slots=True)
class Held:
    """The end of holding text back: at `end` characters, with a call's body, or (None) plain text.

    body: its span in raw. decoded, text: what was read in it, and from which characters. closed:
    its closing fence was there.
    """

    end: int
    body: Span | None = None
    decoded: tuple[Decoded, ...] = ()
    text: str = ""
    closed: bool = True


class Recovery:
    """Holds text back for one parser and decides what it was.

    Answers are a Held, NEED_MORE (hold it back), or None (there is no candidate here).
    """

    __slots__ = (
        "_at",
        "_closers",
        "_end",
        "_heads",
        "_lead",
        "_resolver",
        "_scan",
        "_scanned",
        "_space",
    )

    def __init__(self, protocol: Protocol, resolver: Resolver, heads: tuple[str, ...]) -> None:
        """Begin with nothing held; `heads` are the beginnings of the protocol's own openers."""
        self._resolver = resolver
        self._heads = heads
        self._closers = tuple(filter(None, map(str.strip, protocol.envelope.closers)))
        self._at = -1  # where the candidate begins in raw
        self._scan = Balanced()
        self._lead = 0  # what stands before the JSON value: the fence
        self._scanned = 0  # characters of the held text that the scanner has settled
        self._end: int | None = None  # behind the JSON value
        self._space = 0  # behind the white space that was passed

    def bare(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a value that stands alone between the beginning of a text and its end, an opener or
        a stray closer.

        text: the tail from the value on. at: its offset in raw. final: no more text will come.
        first: the answer begins with it, so that its opener may have stood in the prompt; elsewhere
        a stray closer says that something is wrong, and there is no call.

        What is no call is text up to `Held.end`.
        """
        if self._at != at:
            if not _HEAD.match(text):
                return NEED_MORE if not final and _HEAD_SO_FAR.match(text) else None
            self._begin(at, 0)

        end = self._value_end(text, final)
        if end is None:
            # Cut off: one character is text, and what is behind it may be something else.
            return Held(1) if final else NEED_MORE
        close = self._bare_close(text, end, final, first)
        if isinstance(close, NeedMore):
            return NEED_MORE
        return Held(end) if close is None else self._judge(text, 0, end, close, at)

    def fenced(self, text: str, run: int, final: bool, at: int) -> Held | NeedMore | None:
        """Judge a value that stands alone in a code fence.

        text: the tail from the fence on, which is a run of `run` backticks. at: its offset in raw.

        final: no more text will come; then a fence that is not closed, or not entirely, still holds
        a call.
        """
        fence = _FENCE.match(text)
        if not fence:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if self._at != at:
            if not _HEAD.match(text, lead):
                return NEED_MORE if not final and _HEAD_SO_FAR.match(text, lead) else None
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            return Held(lead) if final else NEED_MORE
        after = self._pass_space(text, end)
        ticks = text[after : after + run]
        if ticks.strip("`"):
            return Held(end)
        if len(ticks) == run:
            return self._judge(text, lead, end, after + run, at)
        if not final:
            return NEED_MORE
        return replace(self._judge(text, lead, end, after + len(ticks), at), closed=False)

    def calls(
        self, outcome: Held, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """The calls that were judged good, numbered from `index`."""
        if outcome.body is None:
            return ()
        body = Body(outcome.text, outcome.body.start, segment.span.start, outcome.closed, "end")
        calls = self._resolver.calls(outcome.decoded, body, segment, segment_index, index)
        message = "the call stood outside its format"
        note = Problem("scan", "call.recovered", "warning", message, "", segment.span)
        return tuple(replace(c, confidence=CONFIDENCE, problems=(note, *c.problems)) for c in calls)

    # the candidate

    def _begin(self, at: int, lead: int) -> None:
        """Begin a candidate whose JSON value stands behind `lead` characters."""
        self._at = at
        self._lead = self._scanned = lead
        self._end = None
        self._space = 0
        self._scan = Balanced()

    def _value_end(self, text: str, final: bool) -> int | None:
        """The offset behind the JSON value; None while its brackets are open.

        text: the held text. Only what came since the last look is scanned.
        """
        if self._end is None:
            step = self._scan.scan(text[self._scanned :], final)
            if isinstance(step, Close):
                # A Close counts from where the scanner began.
                self._end = self._lead + step.start
            else:
                self._scanned += step
        return self._end

    def _pass_space(self, text: str, end: int) -> int:
        """The offset behind the white space at `end`, where the value ends.

        Remembered, so that white space that comes bit by bit is passed once.
        """
        match = _SPACE.match(text, max(end, self._space))
        self._space = match.end() if match else end
        return self._space

    def _bare_close(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        """The offset where a bare call ends: behind the value or behind a stray closer.

        None where something else stands behind the value, so that it is not alone.
        """
        after = self._pass_space(text, end)
        if after >= len(text):
            return end if final else NEED_MORE
        rest = text[after:]

        for closer in self._closers:
            if rest.startswith(closer):
                return after + len(closer) if first else None
            if not final and closer.startswith(rest):
                return NEED_MORE

        if rest.startswith(self._heads):
            return end
        if not final and any(head.startswith(rest) for head in self._heads):
            return NEED_MORE
        return None

    def _judge(self, text: str, start: int, end: int, close: int, at: int) -> Held:
        """Decide whether text[start:end] is a call; `close` is where the held text ends.

        It is one if a codec of plain JSON calls reads it, and every call in it is valid: known
        name, arguments that fit the schema.
        """
        inner = text[start:end]
        try:
            decoded = _CODEC.read(inner, self._resolver.reading(Opening(0), True))
        except Refusal:
            return Held(close)

        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        calls = self._resolver.calls(decoded, body, segment, 0, 0)
        if not calls or not all(c.valid for c in calls):
            return Held(close)
        return Held(close, Span(at + start, at + end), decoded, inner)
