"""The open body: from an opener to the calls or the reasoning behind it."""

# How it works
# ------------
# A body begins behind an opener that the text scanner found. Its tail is shown to the protocol's
# scanner, which settles characters (they become deltas) or says where the body closes. Then the
# body goes to the codec, once, and what comes of it to the log.
#
# State: `open` is the body under way, None between bodies; its settled characters are in `pieces`.
# `_spent` counts the characters that were shown to scanners a second time.
#
# Invariant: body.start + the size of body.pieces = feed.base, as long as a body is open. When it
# has ended, the segments reach to feed.base again, however far the deltas had gone: `_settle`
# retracts those that went too far, and gives the rest of the text back to the feed.
#
# Going back: in four cases a body turns out to end before the place that was scanned to: a closer
# inside an open string (rescued), a closer accepted late (`finish`), an opener inside a body that
# cannot be read (a restart), reasoning with calls at its end. What lies behind is scanned again.
#
# Cost: `_affords` allows going back only while all such characters together are at most four times
# the text, and a body is decoded at most three times; so the whole is linear.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ..protocols.base import Decoded, Message, Opening
from ..protocols.scan import Close, LiteralBody, Scanner
from ..protocols.tags import THINK_ENDS, THINK_TAGS, reasoning_scanner
from ..rjson.damage import Refusal
from ..types import CallDelta, ParseResult, Problem, ReasoningDelta, Segment, Span, ToolCall
from ..types.spans import make_segment
from ..values import Value
from .feed import Feed
from .log import Log
from .open_heads import open_head
from .plain import PlainCalls
from .resolve import Body
from .setting import Setting
from .text import TextScanner
from .unclosed import (
    as_draft,
    calls_at_end,
    doubtful_end,
    partial_closer,
    restarts,
    wrong_closer,
)

_FREE = 4096  # characters that may be scanned again in any text, however short
_AGAIN = 4  # and this many times its length beyond that
_NO_BODY: Scanner = LiteralBody(())  # for an opener that is the whole call; never asked


class OpenBody:
    """A body under way. Offsets are in raw: of its opener, and of its first character."""

    __slots__ = ("delta", "opener", "opening", "pieces", "scanner", "start")

    def __init__(self, opening: Opening, opener: int, start: int, scanner: Scanner) -> None:
        """Begin a body of which nothing is final yet.

        opener, start: the offsets in raw where its opener and the body itself begin. scanner: finds
        its end.
        """
        self.opening = opening
        self.opener = opener
        self.start = start
        self.scanner = scanner
        self.delta: type[CallDelta | ReasoningDelta] = (
            CallDelta if opening.kind == "call" else ReasoningDelta
        )
        self.pieces: list[str] = []  # what its scanner has settled


class BodyReader:
    """Reads the bodies of one parser. read_alone: parses a text of its own, under a setting."""

    __slots__ = (
        "_feed",
        "_log",
        "_plain",
        "_read_alone",
        "_repeat_end",
        "_setting",
        "_spent",
        "_text",
        "open",
    )

    def __init__(
        self,
        setting: Setting,
        feed: Feed,
        log: Log,
        text: TextScanner,
        read_alone: Callable[[Setting, str], ParseResult],
    ) -> None:
        """Share the parts of one parser.

        No body is open yet, unless the think tag was in the prompt: then that of the reasoning is.
        """
        self._setting = setting
        self._feed = feed
        self._log = log
        self._text = text
        self._plain = PlainCalls(setting, feed, log, text)
        self._read_alone = read_alone
        self._spent = 0
        self._repeat_end = -1  # behind a call that repeats the one before, and has no closer either
        self.open: OpenBody | None = None
        if setting.options.reasoning == "prefilled":
            # The think tag was in the prompt, so the answer begins inside its body.
            opening = Opening(0, "reasoning")
            self.open = OpenBody(opening, 0, 0, reasoning_scanner("<think>"))

    # opening

    def begin(self, opening: Opening) -> None:
        """Begin the part that opens at the beginning of the tail.

        A call or reasoning opens a body. Markup is complete with its opener, and so is a call whose
        opener says it is the whole call. The text before is a segment from here on.
        """
        feed, log = self._feed, self._log
        start = feed.base
        end = start + opening.end
        self._text.end(start)
        if opening.kind == "call":
            if not log.silent:  # spares a call
                log.call_start(start, end)
            feed.take(opening.end)
            self._begin_call(opening, start, end)
            return

        log.markup(start, end)
        literal = feed.tail[: opening.end]
        feed.take(opening.end)
        if opening.kind == "markup":
            if literal in THINK_ENDS and log.thought_end is None:
                log.thought_end = start
            if opening.text:
                self._text.resume_as_text(opening.text)
            else:
                self._text.resume()
        elif literal in THINK_TAGS:
            self.open = OpenBody(opening, start, end, reasoning_scanner(literal))
        else:
            setting = self._setting
            scanner = setting.protocol.envelope.scanner(opening, setting.tools)
            self.open = OpenBody(opening, start, end, scanner)

    def _begin_call(self, opening: Opening, start: int, end: int) -> None:
        """Open the body behind a call's opener, raw[start:end].

        An opener may be the whole call.

        With the rest of a long chunk at hand, the body's end is brought into the tail as well.
        """
        setting = self._setting
        if opening.whole:
            whole = OpenBody(opening, start, end, _NO_BODY)
            unit, decoded = self._decode(whole, "", True, "closer")
            self._finish_call(whole, unit, end, decoded)
            return

        if self._feed.chunk:
            # The closer of the format that opened the body, where several are read at once.
            envelope = (opening.owner or setting.protocol).envelope
            closer = envelope.closer_of(opening)
            if closer is not None:
                self._feed.fetch_closer(closer)
        if self._plain.read(opening, start):
            return
        scanner = setting.protocol.envelope.scanner(opening, setting.tools)
        self.open = OpenBody(opening, start, end, scanner)

    # scanning

    def scan(self, body: OpenBody, final: bool) -> bool:
        """Show the tail to the scanner of the open body.

        Return True when there is more to do.

        final: no more text will come, so that the body ends here in any case.
        """
        feed = self._feed
        tail = feed.tail
        if tail or final:
            step = body.scanner.scan(tail, final)
            if isinstance(step, Close):
                self._close(body, step)
                return True
            if step:
                body.pieces.append(tail[:step])
                base, log = feed.base, self._log
                # As `delta` and `take`, which would be two calls more for every chunk.
                if not log.silent:
                    log.events.append(body.delta(Span(base, base + step)))
                feed.tail = tail[step:]
                feed.base = base + step

        return final and self._end(body)

    def _end(self, body: OpenBody) -> bool:
        """End a body for which no closer came.

        Return True when there is more to do.

        The scanner may know of a closer that it had passed over, such as one inside a string that
        never ended.
        """
        late = body.scanner.finish()
        if late is not None and self._affords(body.start + late.end, self._feed.base):
            self._close(body, late)
            return True
        return self._truncate(body)

    def _affords(self, back_to: int, scanned: int) -> bool:
        """Spend the cost of going back, if that keeps the whole work linear in the text.

        Both are offsets in raw, so that the answer does not depend on the chunking.
        """
        cost = scanned - back_to
        if cost <= 0:
            return True
        if self._spent + cost > _AGAIN * scanned + _FREE:
            return False
        self._spent += cost
        return True

    # closing

    def _close(self, body: OpenBody, close: Close) -> None:
        """Read a body whose end the scanner found, and settle its content.

        close: the body's end and its closer's, in characters of the body. The body is decoded once,
        and once more where it turns out to hold the beginning of another.
        """
        pieces, tail = body.pieces, self._feed.tail
        text = "".join(pieces) + tail if pieces else tail
        if close.hidden or close.reached > close.end:
            close = self._choose_closer(body, text, close)
        if body.opening.kind == "reasoning":
            self._close_reasoning(body, text, close)
            return
        if close.name is not None:
            name, at = close.name
            span = Span(at, at + len(name)).shift(body.opening.end)
            body.opening = replace(body.opening, name=name, name_span=span)
        inner = text[: close.start]
        closed = close.kind != "implicit"
        unit, decoded = self._decode(body, inner, closed, close.kind, close.value)
        after = close.end
        clean = type(decoded) is tuple and len(decoded) == 1 and not decoded[0].edits
        if not clean and not body.opening.speculative:
            cut = self._restart(body, inner, decoded)
            if cut is not None:
                after = cut
                unit, decoded = self._decode(body, text[:cut], False, "implicit")

        self._settle(body, text, len(unit.text), after)
        self._finish_call(body, unit, body.start + after, decoded)
        if not unit.closed:
            self._give_up(body, text[:after], decoded)

    def _give_up(self, body: OpenBody, text: str, decoded: tuple[Decoded, ...] | Refusal) -> None:
        """Note a body that ends before an opener and cannot be read, where a value is open.

        What opens there, and behind it, is part of that value. text: the body, up to that opener.
        """
        if not isinstance(decoded, Refusal) and all(d.readable for d in decoded):
            return  # the body is whole, so nothing in it is open
        envelope = (body.opening.owner or self._setting.protocol).envelope
        tools = self._setting.tools
        if envelope.in_value(body.opening, text, tools) or open_head(text, tools):
            closer = envelope.closer_of(body.opening)
            closers = envelope.closers if closer is None else (closer,)
            self._text.remember().begin(body.start + len(text), closers)

    def _choose_closer(self, body: OpenBody, text: str, close: Close) -> Close:
        """The closer to take where the scanner saw one inside a string too, or went back to it.

        close: the decision of the scanner, with the other closer in `hidden`, or how far it had
        looked in `reached`. Returns a Close to use instead, or the same.
        """
        if close.hidden and close.kind in ("closer", "implicit"):
            reading = self._setting.resolver.reading(body.opening, True)
            if self._setting.protocol.codec.strict(text[: close.start], reading):
                return close
            back_to = body.start + close.hidden[1]
            if self._affords(back_to, body.start + close.end):
                return Close(*close.hidden, "rescued")
        elif not self._affords(body.start + close.end, body.start + close.reached):
            # No budget to go back: the body ends where the scanner had got to.
            return Close(close.reached, close.reached, "implicit")

        return close

    def _restart(
        self, body: OpenBody, text: str, decoded: tuple[Decoded, ...] | Refusal
    ) -> int | None:
        """Return the offset in a body where the model began again: the next opener inside an
        unreadable body, or only by taking the opener for text between quotes that do not match.

        text: the body. decoded: the codec's reading of it. None if the body is sound, nothing opens
        in its doubtful part, or the budget is spent.
        """
        before = doubtful_end(text, decoded)
        if before <= 0:
            return None
        setting, opening = self._setting, body.opening
        envelope = (opening.owner or setting.protocol).envelope
        heads = envelope.restarts
        # Quotes are guessed in JSON only, which every format reads in the same way.
        if heads is None or not isinstance(decoded, Refusal):
            heads = setting.heads
        end = body.start + len(text)
        start = 0 if opening.end else 1  # a body that begins with its own opener

        def opens(at: int) -> bool:
            """A call opens at an offset of the body, and it is not a parameter of this one."""
            inner = setting.protocol.envelope.open(text, at, True, setting.tools)
            if not isinstance(inner, Opening) or inner.kind != "call":
                return False
            return not envelope.opens_parameter(opening, inner, setting.tools)

        for at in restarts(text, start, before, heads, opens):
            if self._affords(body.start + at, end):
                return at
        return None

    def _settle(self, body: OpenBody, text: str, end: int, after: int) -> None:
        """Bring deltas and tail in line with where the body really ends.

        text: the body, and the text fed so far behind it. end: the offset in it behind the body.
        after: behind its closer. From there on the text is read again.
        """
        feed = self._feed
        end += body.start
        if end < feed.base:
            self._log.retract(end)
        elif end > feed.base and not self._log.silent:
            self._log.delta(body.delta, feed.base, end)
        feed.tail = text[after:]  # as `go_to`, which would be a call more for every body
        feed.base = body.start + after

    def _close_reasoning(self, body: OpenBody, text: str, close: Close) -> None:
        """Settle reasoning and its closer.

        A closer of no length, as an implicit one has, is no markup.
        """
        end = body.start + close.start
        self._settle(body, text, close.start, close.end)
        self._log.reasoning(body.start, end, True)
        self._log.markup(end, body.start + close.end)
        self.open = None
        self._text.resume()

    # the end of the text inside a body

    def _truncate(self, body: OpenBody) -> bool:
        """End a body that the text ends in.

        Return True when there is more to do.

        The text held back is part of the body. The call is truncated, and must not be executed,
        unless its body closed itself.
        """
        feed = self._feed
        if feed.tail:
            size = len(feed.tail)
            body.pieces.append(feed.tail)
            self._log.delta(body.delta, feed.base, feed.base + size)
            feed.take(size)

        text = "".join(body.pieces)
        if body.opening.kind == "reasoning":
            return self._truncate_reasoning(body, text)
        # The beginning of a closer belongs to the closer, even if the rest never came. Another
        # format's may begin with a bracket.
        closers = (body.opening.owner or self._setting.protocol).envelope.closers
        unit, decoded = self._decode(body, text[: partial_closer(text, closers)], False, "end")
        after = len(text)
        if isinstance(decoded, Refusal):
            unit, decoded, after = self._read_less(body, text, unit, decoded)
        self._settle(body, text, len(unit.text), after)
        self._finish_call(body, unit, body.start + after, decoded)
        if feed.tail:
            self._give_up(body, text[:after], decoded)
        return bool(feed.tail)

    def _read_less(
        self, body: OpenBody, text: str, refused: Body, refusal: Refusal
    ) -> tuple[Body, tuple[Decoded, ...] | Refusal, int]:
        """Read less of a body that was refused.

        And the offset in it to read on from.

        refused: the body that was tried first. Then come the body without another format's closer,
        and the body up to the next opener. If neither helps, the whole text is one call that cannot
        be read.
        """
        cut = wrong_closer(text)
        if cut is not None:
            unit, decoded = self._decode(body, text[:cut], False, "wrong")
            # With quotes that were guessed, the closer may be that of a call in a string.
            if not isinstance(decoded, Refusal) and doubtful_end(text, decoded) < 0:
                return unit, decoded, len(text)

        cut = None if body.opening.speculative else self._restart(body, text, refusal)
        if cut is not None:
            return *self._decode(body, text[:cut], False, "implicit"), cut
        return replace(refused, text=text), refusal, len(text)

    def _truncate_reasoning(self, body: OpenBody, text: str) -> bool:
        """End reasoning that was never closed.

        Return True when calls at its end are to be read.

        Models that forget the closing tag go on to call: calls at the very end of open reasoning
        are meant.
        """
        setting = self._setting
        start, size = body.start, len(text)
        cut = calls_at_end(text, setting, self._read_alone) if setting.recovers else None
        if cut is not None:
            message = "a call ends reasoning that was never closed"
            span = Span(start + cut, start + size)
            problem = Problem("scan", "call.after-open-reasoning", "warning", message, "", span)
            self._log.problems.append(problem)

        end = size if cut is None else cut
        self._settle(body, text, end, end)
        self._log.reasoning(start, start + end, False)
        self.open = None
        self._text.resume()
        return cut is not None

    # from a body to its calls

    def _decode(
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
        span = opening.name_span.shift(body.opener) if opening.name_span else None
        owner = opening.owner.id if opening.owner else ""
        unit = Body(text, body.start, body.opener, closed, kind, owner, opening.name, span)
        resolver = self._setting.resolver
        reading = resolver.reading(opening, closed)
        if value is not None:
            reading.strict_value = text, value[0]
        return unit, resolver.decode(unit, reading)

    def _finish_call(
        self, body: OpenBody, unit: Body, after: int, decoded: tuple[Decoded, ...] | Refusal
    ) -> None:
        """Log the calls of a body. after: the offset in raw behind its closer.

        unit: the body. A speculative body that holds no good call was none, and is given back as
        text.
        """
        log = self._log
        self.open = None
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
        if body.opening.speculative and not any(c.ok for c in calls):
            self._take_back(body, after)
            return
        if self._repeats(body, calls):
            self._drop_repeat(body, unit, after)
            return
        given_up = self._text.given_up
        quoted = given_up is not None and given_up.quotes(body.opener, after)
        if quoted or self._is_inside_words(calls):
            calls = tuple(map(as_draft, calls))
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
