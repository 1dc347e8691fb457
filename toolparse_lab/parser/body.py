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

import re
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache

from ..arguments.rjson.damage import Refusal
from ..core.types import ParseResult, Problem, Span
from ..formats.base import Decoded, NeedMore, Opening
from ..formats.scan import Close, LiteralBody, Scanner
from ..formats.tags import THINK_ENDS, THINK_TAGS, reasoning_scanner
from .body_calls import BodyCalls
from .feed import Feed
from .log import Log
from .open_body import OpenBody
from .open_heads import open_head
from .plain import PlainCalls
from .resolve import Body
from .setting import Setting
from .text import TextScanner
from .turn_end import find_token, is_end, is_foreign, thought_end
from .unclosed import calls_at_end, doubtful_end, partial_closer, restarts, wrong_closer

_FREE = 4096  # characters that may be scanned again in any text, however short
_AGAIN = 4  # and this many times its length beyond that
_NO_BODY: Scanner = LiteralBody(())  # for an opener that is the whole call; never asked


@lru_cache(maxsize=128)
def _row_of(literal: str) -> re.Pattern[str]:
    """Return the pattern of a literal that stands any number of times, with white space between."""
    return re.compile(rf"(?:{re.escape(literal)}\s*+)++")


class BodyReader:
    """Reads the bodies of one parser. read_alone: parses a text of its own, under a setting."""

    __slots__ = (
        "_calls",
        "_feed",
        "_log",
        "_plain",
        "_read_alone",
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
        self._calls = BodyCalls(setting, feed, log, text)
        self._read_alone = read_alone
        self._spent = 0
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
            if log.message_end is not None:
                self._end_turn(opening, log.message_end)
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
                if log.repeats is not None:
                    log.repeats.forget()
            elif is_end(literal):
                log.message_end = start, literal
            elif log.turn_end is None and is_foreign(literal):
                log.turn_end = start
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

    def _end_turn(self, opening: Opening, message_end: tuple[int, str]) -> None:
        """End the turn at a token that ends messages, unless the call is of a format with it."""
        at, token = message_end
        self._log.message_end = None
        envelope = (opening.owner or self._setting.protocol).envelope
        if self._log.turn_end is None and token not in envelope.heads(self._setting.tools):
            self._log.turn_end = at

    def _begin_call(self, opening: Opening, start: int, end: int) -> None:
        """Open the body behind a call's opener, raw[start:end].

        An opener may be the whole call.

        With the rest of a long chunk at hand, the body's end is brought into the tail as well.
        """
        setting = self._setting
        if opening.whole:
            whole = OpenBody(opening, start, end, _NO_BODY)
            unit, decoded = self._calls.decode(whole, "", True, "closer")
            self._finish(whole, unit, end, decoded)
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
                again = None
                if step.kind == "implicit" and body.opening.kind == "call":
                    again = self._begin_again(body, step.end, final)
                if again is not None:
                    return again
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

    # an opener that stands again

    def _begin_again(self, body: OpenBody, end: int, final: bool) -> bool | None:
        """Pass the openers of a body that stand in a row, up to the last one, which counts.

        Return True when there is more to do, None if the body holds anything before `end`, or its
        own opener does not stand there. Only white space may stand between the openers.
        """
        feed = self._feed
        if not self._is_blank(body, end):
            return None
        if body.literal is None:
            body.literal = feed.text_of(Span(body.head, body.start)).strip()
        literal = body.literal
        at = end - (feed.base - body.start)
        rest = feed.tail[at : at + len(literal)]
        if rest == literal:
            row = _row_of(literal).match(feed.tail, at)
            last = feed.tail.rfind(literal, at, row.end()) if row else at
            return self._open_again(body, last, final)
        if final or not literal.startswith(rest):
            return None
        # The opener may still come: until then the body is looked at from its beginning.
        if body.pieces:
            self._log.retract(body.start)
            feed.go_to(body.start, "".join(body.pieces) + feed.tail)
        self._move(body, 0)
        return False

    def _is_blank(self, body: OpenBody, end: int) -> bool:
        """Return True if a body with an opener holds nothing but white space up to `end`."""
        opening = body.opening
        if opening.speculative or opening.lone or body.start == body.head:
            return False
        settled = "".join(body.pieces)
        # Only what is asked about is copied: the tail may be long.
        rest = self._feed.tail[: max(0, end - len(settled))]
        return not settled[:end].strip() and not rest.strip()

    def _open_again(self, body: OpenBody, at: int, final: bool) -> bool:
        """Let a body begin with the opener at an offset of the tail, where its own stands again.

        Return True when there is more to do.
        """
        feed, setting = self._feed, self._setting
        again = setting.protocol.envelope.open(feed.tail, at, final, setting.tools)
        if isinstance(again, Opening) and again.kind == "call" and again.end:
            body.opening, body.head = again, feed.base + at
            at += again.end
        self._move(body, at)
        if isinstance(again, NeedMore):
            return False
        if body.opening is not again:
            self._close(body, Close(0, 0, "implicit"))
        return True

    def _move(self, body: OpenBody, n: int) -> None:
        """Let a body begin `n` characters of the tail later: they belong to its opener."""
        feed, setting = self._feed, self._setting
        self._log.delta(body.delta, feed.base, feed.base + n)
        feed.take(n)
        body.start, body.pieces = feed.base, []
        body.scanner = setting.protocol.envelope.scanner(body.opening, setting.tools)

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
        unit, decoded = self._calls.decode(body, inner, closed, close.kind, close.value)
        after = close.end
        clean = type(decoded) is tuple and len(decoded) == 1 and not decoded[0].edits
        other = None if clean or closed else self._without_closer(body, inner, decoded)
        if other is not None:
            unit, decoded = other
        elif not clean:
            cut = self._turn_end_in(body, inner, decoded)
            if cut is None and not body.opening.speculative:
                cut = self._restart(body, inner, decoded)
            if cut is not None:
                after = cut
                unit, decoded = self._calls.decode(body, text[:cut], False, "implicit")

        self._settle(body, text, len(unit.text), after)
        self._finish(body, unit, body.start + after, decoded)
        # A rescued body that ends at an opener in its last string was given up inside that string.
        if not unit.closed or (close.kind == "rescued" and close.start == close.end):
            self._give_up(body, text[:after], decoded)

    def _finish(
        self, body: OpenBody, unit: Body, after: int, decoded: tuple[Decoded, ...] | Refusal
    ) -> None:
        """End the open body with its calls. The arguments are those of `BodyCalls.finish`."""
        self.open = None
        self._calls.finish(body, unit, after, decoded)

    def _give_up(self, body: OpenBody, text: str, decoded: tuple[Decoded, ...] | Refusal) -> None:
        """Note a body that ends before an opener and cannot be read, where a value is open.

        What opens there, and behind it, is part of that value. text: the body, up to that opener.
        """
        if not isinstance(decoded, Refusal) and all(d.readable for d in decoded):
            return  # the body is whole, so nothing in it is open
        envelope = (body.opening.owner or self._setting.protocol).envelope
        tools = self._setting.tools
        in_element = self._is_element(body) and self._opens_other()
        if in_element or envelope.in_value(body.opening, text, tools) or open_head(text, tools):
            closer = envelope.closer_of(body.opening)
            closers = envelope.closers if closer is None else (closer,)
            self._text.remember().begin(body.start + len(text), closers)

    def _is_element(self, body: OpenBody) -> bool:
        """Return True if the body is that of an element named after its tool."""
        name = body.opening.name
        return bool(name) and self._feed.text_of(Span(body.head, body.start)) == f"<{name}>"

    def _opens_other(self) -> bool:
        """Return True if what opens at the tail, where a body was given up, is not an element."""
        return not self._feed.tail.startswith(tuple(f"<{name}" for name in self._setting.tools))

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

    def _turn_end_in(
        self, body: OpenBody, text: str, decoded: tuple[Decoded, ...] | Refusal
    ) -> int | None:
        """Return the offset of a token in a damaged body that ends the turn, if a call ends there.

        A token among what the codec dropped ends the turn as well; so may one in a body that it
        refused, and no call after it is executable.
        """
        if isinstance(decoded, Refusal) or any(call.problems for call in decoded):
            at = find_token(text)
        else:
            dropped = (edit.span for call in decoded for edit in call.edits if not edit.text)
            places = ((span.start, find_token(span.of(text))) for span in dropped)
            at = next((start + place for start, place in places if place >= 0), -1)
        if at < 0:
            return None
        if self._log.turn_end is None:
            self._log.turn_end = body.start + at
        if not isinstance(decoded, Refusal):
            return None
        if not self._affords(body.start + at, body.start + len(text)):
            return None
        _, before = self._calls.decode(body, text[:at], False, "implicit")
        whole = not isinstance(before, Refusal) and all(call.readable for call in before)
        return at if whole else None

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
        at = thought_end(text[: close.start]) if self._log.turn_end is None else -1
        if at >= 0:
            self._log.turn_end = body.start + at
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
        unit, decoded = self._calls.decode(
            body, text[: partial_closer(text, closers)], False, "end"
        )
        after = len(text)
        if isinstance(decoded, Refusal):
            unit, decoded, after = self._read_less(body, text, unit, decoded)
        else:
            unit, decoded = self._without_closer(body, text, decoded) or (unit, decoded)
        self._settle(body, text, len(unit.text), after)
        self._finish(body, unit, body.start + after, decoded)
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
        other = self._without_closer(body, text, refusal)
        if other is not None:
            return *other, len(text)
        cut = self._turn_end_in(body, text, refusal)
        if cut is not None:
            return *self._calls.decode(body, text[:cut], False, "implicit"), cut

        cut = None if body.opening.speculative else self._restart(body, text, refusal)
        if cut is not None:
            return *self._calls.decode(body, text[:cut], False, "implicit"), cut
        return replace(refused, text=text), refusal, len(text)

    def _without_closer(
        self, body: OpenBody, text: str, decoded: tuple[Decoded, ...] | Refusal
    ) -> tuple[Body, tuple[Decoded, ...]] | None:
        """Return a body without the closer at its end that is damaged or another format's.

        None if there is none, or if the body is read with it, or not without it either.

        decoded: how the codec read all of the text.
        """
        if not isinstance(decoded, Refusal) and all(call.readable for call in decoded):
            return None
        envelope = (body.opening.owner or self._setting.protocol).envelope
        cut = wrong_closer(text, envelope.closers)
        if cut is None:
            return None
        unit, without = self._calls.decode(body, text[:cut], False, "wrong")
        if isinstance(without, Refusal) or not all(call.readable for call in without):
            return None
        # With quotes that were guessed, the closer may be that of a call in a string.
        return (unit, without) if doubtful_end(text, without) < 0 else None

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
        if cut is not None and self._log.turn_end is None:
            at = find_token(text[:cut])
            self._log.turn_end = start + at if at >= 0 else None
        self._settle(body, text, end, end)
        self._log.reasoning(start, start + end, False)
        self.open = None
        self._text.resume()
        return cut is not None
