"""Calls outside their format: a JSON object that stands alone in its text or code fence and is plainly a call.

Nothing is guessed: the name must be a known tool's and the arguments must fit its schema. Text is held back only
while it may still turn out to be such a call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from .protocols.base import NEED_MORE, Decoded, NeedMore, Opening, Protocol, Reading
from .protocols.json_call import ARGUMENT_KEYS, NAME_KEYS, JsonCall
from .resolve import Body, Resolver
from .rjson.damage import Refusal
from .scan import Balanced, Close
from .types import Problem, Segment, Span, ToolCall

_KEYS = "|".join(sorted({*NAME_KEYS, *ARGUMENT_KEYS, "type", "id"}))
_HEAD = re.compile(rf"(?:\[\s*)?\{{\s*[\"'](?:{_KEYS})[\"']\s*:")
_HEAD_SO_FAR = re.compile(r"(?:\[\s{0,40})?(?:\{\s{0,40}(?:[\"'][a-z_]{0,20}(?:[\"']\s{0,10})?)?)?\Z")
_FENCE = re.compile(r"`{3,}+[ \t]*(?:json|json5|jsonc|tool_call|tool_calls|tool|)[ \t]*\r?\n\s*", re.IGNORECASE)
_FENCE_SO_FAR = re.compile(r"`{3,}+[ \t]{0,8}[a-zA-Z0-9_]{0,12}[ \t]{0,8}\r?(?:\n\s{0,40})?\Z")
_SPACE = re.compile(r"\s*")
_CODEC = JsonCall("", "")
CONFIDENCE = 0.8


@dataclass(frozen=True, slots=True)
class Held:
    """How holding text back ended: at `end` characters, with a call's body, or (None) with plain text."""

    end: int
    body: Span | None = None
    decoded: tuple[Decoded, ...] = ()
    text: str = ""
    closed: bool = True


class Recovery:
    """Holds text back for one parser and says what it was."""

    def __init__(self, protocol: Protocol, resolver: Resolver, heads: tuple[str, ...]) -> None:
        self._resolver = resolver
        self._heads = heads
        self._closers: tuple[str, ...] = getattr(protocol.envelope, "closers", ())
        self._at = -1  # where the held text begins in raw
        self._scan = Balanced()
        self._lead = 0  # what stands before the JSON value: the fence
        self._seen = 0  # characters of the held text that the scanner has settled
        self._end: int | None = None  # behind the JSON value
        self._space = 0  # white space behind it that was looked at

    def bare(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        """A value that stands alone between the beginning of a text and its end, an opener or a stray closer."""
        if self._at != at:
            if not _HEAD.match(text):
                return NEED_MORE if not final and _HEAD_SO_FAR.match(text) else None
            self._begin(at, 0)
        end = self._value_end(text, final)
        if end is None:
            return NEED_MORE if not final else Held(1)
        after = self._after(text, end)
        if after >= len(text):
            if not final:
                return NEED_MORE
            return self._judge(text, 0, end, end, at)
        for closer in filter(None, map(str.strip, self._closers)):
            if text.startswith(closer, after):
                return self._judge(text, 0, end, after + len(closer), at)
            if not final and closer.startswith(text[after:]):
                return NEED_MORE
        if any(text.startswith(h, after) for h in self._heads):
            return self._judge(text, 0, end, end, at)
        if not final and any(h.startswith(text[after:]) for h in self._heads):
            return NEED_MORE
        return Held(end)

    def fenced(self, text: str, run: int, final: bool, at: int) -> Held | NeedMore | None:
        """A value that stands alone in a code fence."""
        head = _FENCE.match(text)
        if not head:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text) else None
        lead = head.end()
        if self._at != at:
            rest = text[lead:]
            if rest[:1] not in ("{", "[", ""):
                return None
            if not _HEAD.match(rest):
                return NEED_MORE if not final and _HEAD_SO_FAR.match(rest) else None
            self._begin(at, lead)
        end = self._value_end(text, final)
        if end is None:
            return NEED_MORE if not final else Held(lead)
        after = self._after(text, end)
        rest = text[after : after + run]
        if len(rest) < run and rest == "`" * len(rest):
            if not final:
                return NEED_MORE
            held = self._judge(text, lead, end, after + len(rest), at)
            return replace(held, closed=False)
        if rest != "`" * run:
            return Held(end)
        return self._judge(text, lead, end, after + run, at)

    def calls(self, held: Held, segment: Segment, segment_index: int, index: int) -> tuple[ToolCall, ...]:
        """The calls that were judged good, numbered from `index`."""
        if held.body is None:
            return ()
        body = Body(held.text, held.body.start, segment.span.start, held.closed, "end")
        calls = self._resolver.calls(held.decoded, body, segment, segment_index, index)
        note = Problem("scan", "call.recovered", "warning", "the call stood outside its format", "", segment.span)
        return tuple(replace(c, confidence=CONFIDENCE, problems=(note, *c.problems)) for c in calls)

    def _begin(self, at: int, lead: int) -> None:
        self._at, self._seen, self._end, self._space = at, lead, None, 0
        self._lead = lead
        self._scan = Balanced()

    def _value_end(self, text: str, final: bool) -> int | None:
        if self._end is None:
            base = self._seen
            found = self._scan.scan(text[self._seen :], final)
            if isinstance(found, Close):
                # A Close counts from where the scanner began.
                self._end = self._lead + found.start
            else:
                self._seen = base + found
        return self._end

    def _after(self, text: str, end: int) -> int:
        m = _SPACE.match(text, max(end, self._space))
        self._space = m.end() if m else end
        return self._space

    def _judge(self, text: str, start: int, end: int, close: int, at: int) -> Held:
        inner = text[start:end]
        reading = Reading(
            Opening(0), True, self._resolver.options.repair, self._resolver.options.max_depth, self._resolver.tools
        )
        try:
            decoded = _CODEC.read(inner, reading)
        except Refusal:
            return Held(close)
        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        calls = self._resolver.calls(decoded, body, segment, 0, 0)
        if not calls or not all(c.valid for c in calls):
            return Held(close)
        return Held(close, Span(at + start, at + end), decoded, inner)
