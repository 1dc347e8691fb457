"""The push parser. `feed` returns events, `close` returns the result; `parse` is one feed and one close.

The engine knows no format: it asks the protocol's envelope what opens where, hands the body's unsettled tail to a
scanner, and the finished body to the resolver. Text is final; only calls and reasoning may be retracted. Each
character is shown to a scanner once, and going back after a wrong closer has a budget, so the cost is linear.
"""

from __future__ import annotations

import dataclasses
import re
from functools import lru_cache

from .errors import ParserClosed
from .protocols.base import NEED_MORE, Decoded, Envelope, Message, NeedMore, Opening, Protocol, Reading
from .protocols.tags import THINK_TAGS, open_reasoning, reasoning_scanner
from .quoting import LONG_RUN, Quoting, run_length
from .recovery import Held, Recovery
from .resolve import Body, Resolver
from .rjson.damage import Refusal
from .scan import Close, Scanner, partial_start
from .toolspec import ToolSpec
from .types import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Markup,
    ParseOptions,
    ParseResult,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Segment,
    Span,
    TextDelta,
    ToolCall,
)

_BLOCK = 4096  # a longer chunk is read in blocks, so that taking the settled part off the tail stays cheap
_HIGH = re.compile("[\ud800-\udbff]\\Z")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


class Setting:
    """A protocol, tools and options, and what follows from them: looked at once for any number of texts."""

    __slots__ = (
        "heads", "literals", "longest", "options", "protocol", "reads_reasoning", "recovers", "resolver", "specs",
        "tokens", "tools",
    )  # fmt: skip

    def __init__(self, protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions) -> None:
        self.protocol = protocol
        self.specs = tools
        self.options = options
        self.tools = {t.name: t for t in tools}
        self.resolver = Resolver(protocol, self.tools, options)
        self.heads = protocol.envelope.heads(self.tools)
        self.longest = max(map(len, self.heads), default=0)
        self.reads_reasoning = options.reasoning != "none"
        self.recovers = options.recover and bool(tools)
        self.literals = self.heads + (tuple(THINK_TAGS) if self.reads_reasoning else ())
        self.tokens = _text_tokens(self.literals)


class StreamParser:
    """One text under one protocol. Feed it chunks of any size, then close it. silent: nobody wants its events."""

    __slots__ = (
        "_base", "_calls", "_chunk", "_closed", "_closers", "_deaf", "_debt", "_events", "_fed", "_fresh", "_heads",
        "_high", "_late", "_late_size", "_literals", "_open", "_pieces", "_problems", "_quoting", "_read_to",
        "_recovery", "_resolver", "_result", "_segments", "_setting", "_silent", "_started", "_tail", "_text_start",
        "_tokens", "options", "protocol", "tools",
    )  # fmt: skip

    def __init__(self, setting: Setting, *, silent: bool = False) -> None:
        self._silent = silent
        self._setting = setting
        self.protocol = setting.protocol
        self.tools = setting.tools
        self.options = setting.options
        self._resolver = setting.resolver
        self._heads = setting.heads
        self._literals = setting.literals
        self._tokens = setting.tokens
        self._recovery: Recovery | None = None  # made where something may be recovered, which is rare
        self._pieces: list[str] = []
        self._fed = 0  # characters in the pieces
        self._chunk = ""  # the chunk that is being read
        self._read_to = 0  # how much of it was read
        self._closers: dict[str, int] = {}  # literal closer -> where in the chunk it stands next
        self._tail = ""
        self._late: list[str] = []  # chunks that wait because the tail that is held back is long
        self._late_size = 0
        self._base = 0  # offset in raw of the tail's first character
        self._high = ""  # a surrogate whose other half may come
        self._segments: list[Segment] = []
        self._calls: list[ToolCall] = []
        self._problems: list[Problem] = []
        self._events: list[Event] = []
        self._open: _Open | None = None
        self._text_start = 0
        self._fresh = True  # only white space since the last segment that is no text
        self._quoting = Quoting()
        self._debt = 0  # characters that were shown to scanners a second time
        self._deaf = 0  # up to this offset nothing is held back for recovery
        self._started = False
        self._closed = False
        self._result: ParseResult | None = None

    def feed(self, chunk: str) -> tuple[Event, ...]:
        """The events that `chunk` settles. Raises ParserClosed after close; never on account of the text."""
        if self._closed:
            raise ParserClosed("this parser is closed", hint="make a new one with tp.stream()")
        if self._high:
            chunk, self._high = self._high + chunk, ""
        if not chunk.isascii():
            if _PAIR.search(chunk):
                chunk = chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
            if _HIGH.search(chunk):
                chunk, self._high = chunk[:-1], chunk[-1]
        if chunk:
            self._pieces.append(chunk)
            self._fed += len(chunk)
            self._chunk, self._read_to = chunk, 0
            while self._read_to < len(chunk):
                start = self._read_to
                self._read_to = start + _BLOCK
                self._read(chunk[start : self._read_to])
            self._chunk = ""
            self._closers.clear()
        return () if self._silent else self._flush()

    def _read(self, block: str) -> None:
        """Adds a block to the tail. A long tail is looked at anew only when it has grown by a part of itself."""
        if len(self._tail) > 2 * _BLOCK:
            self._late.append(block)
            self._late_size += len(block)
            if self._late_size * 16 < len(self._tail):
                return
            self._join_late()
        else:
            self._tail += block
        self._run(False)

    def _join_late(self) -> None:
        self._tail += "".join(self._late)
        self._late.clear()
        self._late_size = 0

    def close(self) -> ParseResult:
        """The result. What was held back becomes text, an open call is truncated."""
        if self._result is not None:
            return self._result
        self._closed = True
        if self._high:
            self._pieces.append(self._high)
            self._fed += 1
            self._late.append(self._high)
            self._high = ""
        if self._late:
            self._join_late()
        self._run(True)
        if self._base > self._text_start:
            self._end_text(self._base)
        raw = "".join(self._pieces)
        self._result = ParseResult(
            raw=raw,
            protocol=self.protocol.id,
            options=self.options,
            segments=tuple(self._segments),
            calls=tuple(self._calls),
            problems=tuple(self._problems),
            tools=self._setting.specs,
        )
        return self._result

    def text_of(self, span: Span) -> str:
        """The characters of a span of what was fed, whatever the number of chunks before it."""
        size = self._fed
        pieces: list[str] = []
        for piece in reversed(self._pieces):
            size_before = size - len(piece)
            if size_before < span.end:
                pieces.append(piece[max(0, span.start - size_before) : span.end - size_before])
            if size_before <= span.start:
                break
            size = size_before
        return "".join(reversed(pieces))

    def last_events(self) -> tuple[Event, ...]:
        """The events that closing settled; empty before `close` and when read a second time."""
        return self._flush()

    def _flush(self) -> tuple[Event, ...]:
        events = tuple(self._events)
        self._events.clear()
        return events

    # the loop

    def _run(self, final: bool) -> None:
        if not self._started:
            self._started = True
            if self.options.reasoning == "prefilled":
                self._open = _Open(Opening(0, "reasoning"), 0, 0, reasoning_scanner("<think>"))
        while True:
            if self._open:
                more = self._scan_body(self._open, final)
            elif self._tail:
                more = self._scan_text(final)
            else:
                return
            if not more:
                return

    def _take(self, n: int) -> None:
        """Moves the settled beginning off the tail."""
        if n:
            self._tail = self._tail[n:]
            self._base += n

    # text

    def _scan_text(self, final: bool) -> bool:
        """One pass over text, of which there is some; True when a segment opened or closed and there may be more to
        do."""
        tail = self._tail
        if self._fresh and self._base >= self._deaf:
            held = self._hold(tail, final)
            if held is not None:
                return held
        pos = 0
        while True:
            m = self._tokens.search(tail, pos)
            if not m:
                break
            at = m.start()
            if at > pos and not tail[pos:at].isspace():
                self._word()
            if m["line"] is not None:
                self._quoting.line()
                pos = m.end()
                continue
            if m["ticks"] is not None:
                run = len(m["ticks"])
                if not final and ((m.end() == len(tail) and run < LONG_RUN) or self._head_begins(tail, at)):
                    return self._text(at)
                held = self._fence_recovery(tail, at, run, final)
                if held is not None:
                    return held
                self._quoting.backticks(run)
                self._fresh = False
                pos = m.end()
                continue
            opening = self._opening(tail, at, final)
            if isinstance(opening, NeedMore):
                return self._text(at)
            if opening is None:
                self._word()
                pos = at + 1
                if tail[at] == "`":  # a head of backticks that opened nothing is still a run of backticks
                    run = min(run_length(tail, at), LONG_RUN)
                    self._quoting.backticks(run)
                    pos = at + run
                continue
            if at:
                self._text(at)
            self._begin(opening)
            return True
        end = len(tail) if final else partial_start(tail, self._literals)
        if end > pos and not tail[pos:end].isspace():
            self._word()
        self._text(max(end, pos) if final else max(pos, end))
        return False

    def _head_begins(self, tail: str, at: int) -> bool:
        """Whether the rest of the tail may be the beginning of an opener."""
        return len(tail) - at < self._setting.longest and any(h.startswith(tail[at:]) for h in self._heads)

    def _word(self) -> None:
        """Something that is no white space was read as text."""
        self._fresh = False
        self._quoting.word()

    def _text(self, n: int) -> bool:
        """Settles `n` characters of text; always False, so that the loop waits for more."""
        if n > 0:
            if not self._silent:
                self._events.append(TextDelta(Span(self._base, self._base + n)))
            self._take(n)
        return False

    def _opening(self, tail: str, at: int, final: bool) -> Opening | NeedMore | None:
        quoting = self._quoting
        if quoting.blank and not quoting.fence and self._setting.reads_reasoning:
            if tail.startswith(_THINK_TAGS, at):
                return open_reasoning(tail, at)
            if not final and len(tail) - at < _LONGEST_THINK and any(t.startswith(tail[at:]) for t in THINK_TAGS):
                return NEED_MORE
        opening = self.protocol.envelope.open(tail, at, final, self.tools)
        if opening is None or isinstance(opening, NeedMore):
            return opening
        if opening.kind != "call":
            return opening if opening.end else None  # an opener of no length would be found again for ever
        if quoting.fence:
            # An example in a code fence is no call; but a fence may be all that the model says.
            return dataclasses.replace(opening, speculative=True) if quoting.lone_fence else None
        if quoting.ticks:
            return self._quoted(tail, at, opening, final)
        return opening

    def _quoted(self, tail: str, at: int, opening: Opening, final: bool) -> Opening | NeedMore | None:
        """Inside inline code that is closed again on the same line, an opener is an example."""
        closed = self._quoting.closes(tail, at, self._base, final)
        if closed is None:
            return NEED_MORE
        if not closed:
            return opening
        here = self._base + at
        self._problems.append(
            Problem(
                "scan", "call.quoted-example", "info", "a call inside quoted code is an example", "",
                Span(here, here + opening.end),
            )
        )  # fmt: skip
        return None

    # calls outside their format

    def _hold(self, tail: str, final: bool) -> bool | None:
        """Holds text back that may be a call without its delimiters; None when there is nothing to hold."""
        stripped = tail.lstrip()
        if not stripped:
            return None
        lead = len(tail) - len(stripped)
        if not self._quoting.spoken:
            speculative = self.protocol.envelope.speculates(stripped)
            if isinstance(speculative, NeedMore):
                return None if final else False
            if speculative is not None:
                self._text(lead)
                self._begin(speculative)
                return True
        if stripped[0] not in "{[" or not self._setting.recovers:
            return None
        held = self._recovering().bare(stripped, final, self._base + lead)
        return self._settle_held(held, lead)

    def _fence_recovery(self, tail: str, at: int, run: int, final: bool) -> bool | None:
        """A code fence that holds nothing but a known tool's call."""
        quoting = self._quoting
        if run < 3 or not quoting.blank or quoting.fence or self._base + at < self._deaf or not self._setting.recovers:
            return None
        held = self._recovering().fenced(tail[at:], run, final, self._base + at)
        if held is None:
            return None
        return self._settle_held(held, at)

    def _recovering(self) -> Recovery:
        if self._recovery is None:
            setting = self._setting
            self._recovery = Recovery(setting.protocol, setting.resolver, setting.heads)
        return self._recovery

    def _settle_held(self, held: Held | NeedMore | None, lead: int) -> bool | None:
        if held is None:
            return None
        if isinstance(held, NeedMore):
            return self._text(lead)
        self._text(lead)
        if held.body is None:
            self._deaf = self._base + held.end
            return True
        start, end = self._base, self._base + held.end
        if start > self._text_start:
            self._end_text(start)
        segment = Segment("recovered", Span(start, end), held.body)
        calls = self._recovering().calls(held, segment, len(self._segments), len(self._calls))
        self._segments.append(segment)
        self._calls.extend(calls)
        self._events.append(Recovered(Span(start, end), calls))
        self._take(held.end)
        self._restart_text()
        self._quoting.spoken = True
        return True

    def _restart_text(self) -> None:
        self._text_start = self._base
        self._fresh = True

    def _end_text(self, at: int) -> None:
        self._segments.append(Segment("text", Span(self._text_start, at)))
        self._text_start = at

    # bodies

    def _begin(self, opening: Opening) -> None:
        start = self._base
        if start > self._text_start:
            self._end_text(start)
        end = start + opening.end
        span = Span(start, end)
        if opening.kind == "call":
            if not self._silent:
                self._events.append(CallStart(span))
        elif opening.end:
            self._events.append(Markup(span))
            self._segments.append(Segment("markup", span))
        literal = self._tail[: opening.end]
        self._take(opening.end)
        if opening.kind == "markup":
            self._restart_text()
            return
        if opening.kind == "reasoning":
            self._open = _Open(opening, start, end, self._reasoning(opening, literal))
            return
        if opening.whole:
            whole = _Open(opening, start, end, None)
            self._finish_call(whole, self._unit(whole, "", True, "closer"), end, end)
            return
        self._open = _Open(opening, start, end, self.protocol.envelope.scanner(opening, self.tools))
        if self._read_to < len(self._chunk):
            self._reach_closer((opening.owner or self.protocol).envelope, opening)

    def _reach_closer(self, envelope: Envelope, opening: Opening) -> None:
        """Brings a whole body into the tail where its closer was fed already, so that it is scanned in one go."""
        closer_of = getattr(envelope, "closer_of", None)
        if closer_of is None:
            return
        chunk, closer = self._chunk, closer_of(opening)
        begin = max(0, self._read_to - len(self._tail))
        at = self._closers.get(closer, -1)
        if at < begin:
            at = chunk.find(closer, begin)
            self._closers[closer] = at = at if at >= 0 else len(chunk)
        end = at + len(closer)
        if self._read_to < end <= len(chunk):
            self._tail += chunk[self._read_to : end]
            self._read_to = end

    def _reasoning(self, opening: Opening, literal: str) -> Scanner:
        if literal in THINK_TAGS:
            return reasoning_scanner(literal)
        return self.protocol.envelope.scanner(opening, self.tools)

    def _scan_body(self, body: _Open, final: bool) -> bool:
        tail = self._tail
        scanner = body.scanner
        if scanner is None:
            return False
        if tail or final:
            found = scanner.scan(tail, final)
            if isinstance(found, Close):
                return self._close_body(body, found)
            if found:
                body.pieces.append(tail[:found])
                self._delta(body, self._base, self._base + found)
                self._take(found)
        if not final:
            return False
        late = scanner.finish()
        if late is not None and self._affordable(body.start + late.end, self._base):
            return self._close_body(body, late)
        return self._truncate(body)

    def _delta(self, body: _Open, start: int, end: int) -> None:
        if self._silent:
            return
        kind = ReasoningDelta if body.opening.kind == "reasoning" else CallDelta
        self._events.append(kind(Span(start, end)))

    def _affordable(self, back_to: int, seen: int) -> bool:
        """Whether going back from `seen` to an earlier offset keeps the whole work linear in the text.

        Both are offsets in raw, so that the answer does not depend on the chunking.
        """
        cost = seen - back_to
        if cost <= 0:
            return True
        if self._debt + cost > 4 * seen + 4096:
            return False
        self._debt += cost
        return True

    def _close_body(self, body: _Open, close: Close) -> bool:
        text = "".join(body.pieces) + self._tail if body.pieces else self._tail
        if close.hidden and close.kind in ("closer", "implicit"):
            strict = self.protocol.codec.strict(text[: close.start], self._reading(body.opening, True))
            if not strict and self._affordable(body.start + close.hidden[1], body.start + close.end):
                close = Close(*close.hidden, "rescued")
        elif close.seen > close.end and not self._affordable(body.start + close.end, body.start + close.seen):
            close = Close(close.seen, close.seen, "implicit")
        if body.opening.kind == "reasoning":
            self._settle_body(body, text, close)
            self._end_reasoning(body, close)
            return True
        closed = close.kind != "implicit"
        inner = text[: close.start]
        unit = self._unit(body, inner, closed, close.kind)
        reading = self._reading(body.opening, closed)
        if close.value is not None:
            reading.known = inner, close.value[0]
        decoded = self._resolver.decode(unit, reading)
        clean = type(decoded) is tuple and len(decoded) == 1 and not decoded[0].edits
        if not clean and not body.opening.speculative:
            cut = self._abandoned(body, inner, decoded)
            if cut is not None:
                close = Close(cut, cut, "implicit")
                unit = self._unit(body, text[:cut], False, "implicit")
                decoded = self._resolver.decode(unit, self._reading(body.opening, False))
        self._settle_body(body, text, close)
        self._finish_call(body, unit, body.start + close.start, body.start + close.end, decoded)
        return True

    def _abandoned(self, body: _Open, inner: str, decoded: tuple[Decoded, ...] | Refusal) -> int | None:
        """Where the model began anew: the next opener inside a body that cannot be read, or only by taking the opener
        for text between quotes that do not match."""
        if isinstance(decoded, Refusal):
            after = len(inner)
        else:
            after = -1
            for d in decoded:
                for e in d.edits:
                    if e.rule in _GUESSED_QUOTES and e.span.end > after:
                        after = e.span.end
        if after < 0:
            return None
        envelope = (body.opening.owner or self.protocol).envelope
        for head in getattr(envelope, "restarts", self._heads):
            at = inner.find(head)
            if 0 <= at < after and self._affordable(body.start + at, body.start + len(inner)):
                return at
        return None

    def _settle_body(self, body: _Open, text: str, close: Close) -> None:
        """Brings deltas, tail and base in line with where the body really ends."""
        end = body.start + close.start
        if end < self._base:  # deltas went further than the body: take them back
            self._events.append(Retract(end))
        elif end > self._base and not self._silent:
            self._delta(body, self._base, end)
        rest = text[close.end :]
        self._tail = rest
        self._base = body.start + close.end

    def _end_reasoning(self, body: _Open, close: Close) -> None:
        start, end, after = body.start, body.start + close.start, body.start + close.end
        if end > start:
            self._segments.append(Segment("reasoning", Span(start, end), Span(start, end)))
        if after > end:
            self._events.append(Markup(Span(end, after)))
            self._segments.append(Segment("markup", Span(end, after)))
        self._open = None
        self._restart_text()

    def _finish_call(
        self, body: _Open, unit: Body, end: int, after: int, decoded: tuple[Decoded, ...] | Refusal | None = None
    ) -> None:
        if decoded is None:
            decoded = self._resolver.decode(unit, self._reading(body.opening, True))
        if isinstance(decoded, Message):
            self._finish_message(body, unit, after, decoded)
            return
        segment = Segment("call", Span(body.opener, after), Span(body.start, end), unit.closed)
        calls = self._resolver.calls(decoded, unit, segment, len(self._segments), len(self._calls))
        self._open = None
        if body.opening.speculative and not any(c.ok for c in calls):
            self._unspeculate(body, after)
            return
        self._segments.append(segment)
        self._calls.extend(calls)
        if not self._silent:
            self._events.append(CallEnd(Span(end, after), calls))
        self._restart_text()
        self._quoting.call()

    def _finish_message(self, body: _Open, unit: Body, end: int, message: Message) -> None:
        """A body that is a whole message: its calls and texts are segments of their own, and markup is between them."""
        self._open = None
        self._events.append(Retract(body.opener))
        at, calls = body.opener, iter(message)
        for piece in message.pieces:
            span = piece.span.shift(body.start)
            self._markup(at, span.start)
            at = span.end
            if piece.kind == "call":
                call = next(calls)
                segment = Segment("call", span, span, unit.closed or not call.truncated)
                own = dataclasses.replace(unit, closed=True, kind="end")
                found = self._resolver.calls((call,), own, segment, len(self._segments), len(self._calls))
                self._calls.extend(found)
                start, close = Span(span.start, span.start), Span(span.end, span.end)
                self._events += (CallStart(start), CallDelta(span), CallEnd(close, found))
            elif len(span) == 0:
                continue
            elif piece.kind == "text":
                segment = Segment("text", span, escaped=True)
                self._events.append(TextDelta(span, escaped=True))
            else:
                segment = Segment("reasoning", span, span, escaped=True)
                self._events.append(ReasoningDelta(span, escaped=True))
            self._segments.append(segment)
        self._markup(at, end)
        self._restart_text()
        self._quoting.call()

    def _markup(self, start: int, end: int) -> None:
        if end > start:
            self._events.append(Markup(Span(start, end)))
            self._segments.append(Segment("markup", Span(start, end)))

    def _unspeculate(self, body: _Open, end: int) -> None:
        """What only looked like a call is text after all, up to `end`."""
        self._tail = self.text_of(Span(body.opener, end)) + self._tail
        self._base = body.opener
        self._events.append(Retract(body.opener))
        self._text_start = body.opener
        self._quoting.no_call()
        self._deaf = self._base + 1
        self._open = None

    def _truncate(self, body: _Open) -> bool:
        """The text ended inside a body."""
        if self._tail:
            body.pieces.append(self._tail)
            self._delta(body, self._base, self._base + len(self._tail))
            self._take(len(self._tail))
        text = "".join(body.pieces)
        start, end = body.start, self._base
        self._open = None
        if body.opening.kind == "reasoning":
            spoken = self._call_at_end(text) if self.options.recover and self.tools else None
            if spoken is not None:
                self._events.append(Retract(start + spoken))
                self._tail, self._base, end = text[spoken:], start + spoken, start + spoken
                where, message = Span(end, end + len(self._tail)), "a call ends reasoning that was never closed"
                self._problems.append(Problem("scan", "call.after-open-reasoning", "warning", message, "", where))
            if end > start:
                self._segments.append(Segment("reasoning", Span(start, end), Span(start, end), False))
            self._restart_text()
            return spoken is not None
        cut = _partial_closer(text, getattr(self.protocol.envelope, "closers", ()))
        unit = self._unit(body, text[:cut], False, "end")
        decoded = self._resolver.decode(unit, self._reading(body.opening, False))
        wrong = _WRONG_CLOSER.search(text) if isinstance(decoded, Refusal) and text.lstrip()[:1] in ("{", "[") else None
        if wrong:
            shorter = self._unit(body, text[: wrong.start()], False, "wrong")
            found = self._resolver.decode(shorter, self._reading(body.opening, False))
            if not isinstance(found, Refusal):
                cut, unit, decoded = wrong.start(), shorter, found
        if isinstance(decoded, Refusal):
            again = None if body.opening.speculative else self._abandoned(body, text, decoded)
            if again is not None:
                unit = self._unit(body, text[:again], False, "implicit")
                self._events.append(Retract(start + again))
                self._tail = text[again:]
                self._base = start + again
                decoded = self._resolver.decode(unit, self._reading(body.opening, False))
                self._finish_call(body, unit, start + again, start + again, decoded)
                return True
            if body.opening.speculative:
                self._unspeculate(body, end)
                return True
            self._finish_call(body, self._unit(body, text, False, "end"), end, end, decoded)
            return False
        if cut < len(text):
            self._events.append(Retract(start + cut))
        self._finish_call(body, unit, start + cut, end, decoded)
        return bool(self._tail)

    def _call_at_end(self, text: str) -> int | None:
        """Where the calls begin that stand at the very end of open reasoning: good ones, and nothing behind them."""
        starts = [m.start() for m in self._tokens.finditer(text) if m["head"] in self._heads]
        found: int | None = None
        options = dataclasses.replace(self.options, recover=False, reasoning="none")
        setting = Setting(self.protocol, self._setting.specs, options)
        for start in reversed(starts[-_LAST_CALLS:]):
            trial = StreamParser(setting)
            trial.feed(text[start:])
            result = trial.close()
            if not result.calls or not all(c.valid for c in result.calls) or result.text.strip():
                break
            found = start
        return found

    def _unit(self, body: _Open, text: str, closed: bool, kind: str) -> Body:
        opening = body.opening
        span = opening.name_span.shift(body.opener) if opening.name_span else None
        owner = opening.owner.id if opening.owner else ""
        return Body(text, body.start, body.opener, closed, kind, owner, opening.name, span)

    def _reading(self, opening: Opening, closed: bool) -> Reading:
        return Reading(opening, closed, self.options.repair, self.options.max_depth, self.tools)


class _Open:
    """A body under way."""

    __slots__ = ("opener", "opening", "pieces", "scanner", "start")

    def __init__(self, opening: Opening, opener: int, start: int, scanner: Scanner | None) -> None:
        self.opening = opening
        self.opener = opener
        self.start = start
        self.scanner = scanner
        self.pieces: list[str] = []


_GUESSED_QUOTES = frozenset(("rjson.unescaped-quote", "rjson.missing-bracket"))  # rules that a lost quote sets off
_LAST_CALLS = 8  # calls looked at behind open reasoning
_WRONG_CLOSER = re.compile(r"</?[A-Za-z_][\w:|.\-]{0,40}>?\s*\Z")
_THINK_TAGS = tuple(THINK_TAGS)
_LONGEST_THINK = max(map(len, THINK_TAGS))


@lru_cache(maxsize=512)
def _text_tokens(literals: tuple[str, ...]) -> re.Pattern[str]:
    """What means anything in text: heads of openers, line breaks, backticks."""
    heads = "|".join(re.escape(h) for h in sorted(literals, key=len, reverse=True)) or "(?!)"
    return re.compile(f"(?P<head>{heads})|(?P<line>\n)|(?P<ticks>`{{1,{LONG_RUN}}})")


def _partial_closer(text: str, closers: tuple[str, ...]) -> int:
    """Where the beginning of a closer stands at the end of a text that was cut off; len(text) when none does."""
    stripped = text.rstrip()
    at = partial_start(stripped, closers) if closers else len(stripped)
    return at if at < len(stripped) else len(text)
