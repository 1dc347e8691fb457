"""Open bodies: from an opener to calls, reasoning or markup."""

# How it works
# ------------
# A body begins after an opener that the text scanner found. The protocol's scanner reads the tail,
# settles characters (they become deltas) and finds where the body closes. The codec decodes the
# closed body (`_decode`), and the log gets the outcome (`_finish`): calls, a message with texts
# next to its calls, or nothing if the body only looked like a call and is text again.
#
# Most calls are written exactly as the format has them. In a text that came in one piece they are
# read by what was learned of that (`_read_look`, see `written`).
#
#     an opener that is  leads to
#     markup             text again
#     reasoning          an open body; its closer, or calls at its end, end it
#     a whole call       `_finish`
#     a plain call       the log
#     any other call     an open body: `scan` until Close, then `_close`; at the end of the text
#                        `_truncate`
#
# State: `open` is the body being read, None between bodies, with its settled characters in
# `pieces`. `_spent` counts the characters that were scanned a second time.
#
# Invariant: body.start + the size of body.pieces = feed.base while a body is open. When it has
# ended, the segments reach to feed.base again: `_settle` retracts deltas that went too far, and
# gives the rest of the text back to the feed. Plain calls give the same segments, calls and events
# as the long way. Anything that may make an opener text (code, quotation, a value given up), or two
# calls one, takes the long way.
#
# Going back: a body may end before the place that was scanned to in four cases: a closer inside an
# open string (rescued), a closer accepted late (`finish`), an opener inside an unreadable body (a
# restart), reasoning with calls at its end. The text after it is scanned again.
#
# Cost: `_affords` limits all characters scanned again to four times the text, and a body is decoded
# at most three times, so the work is linear.

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from ..arguments.rjson.strict import Refusal
from ..core.types import (
    CallDelta,
    CallStart,
    ParseResult,
    Problem,
    ReasoningDelta,
    Segment,
    Span,
    ToolCall,
)
from ..core.types.spans import make_segment, rule_of
from ..core.values import Value
from ..formats.base import Envelope, Message, NeedMore, Opening
from ..formats.reasoning import Thought, ThoughtBody, body_in_prompt
from ..formats.reasoning import is_end as is_thought_end
from ..formats.scan import Close, LiteralBody, Scanner
from .recognition.pages import ELEMENTS, says_page
from .recognition.quotation import reasons
from .recognition.quotes import WINDOW
from .recognition.truncation import open_head, partial_closer, wrong_closer
from .recognition.turns import find_token, is_end, is_foreign, thought_end
from .resolve import Body, Outcome, as_draft
from .state import Feed, Log, Setting
from .text import MOST_REFUSED, TextScanner

_FREE = 4096  # characters that may be scanned again in any text, however short
_AGAIN = 4  # and this many times its length beyond that
_NO_BODY: Scanner = LiteralBody(())  # for an opener that is the whole call; never asked
_LAST_CALLS = 8  # calls looked at after open reasoning, so that the cost stays bounded
# Rules that put a sign right, and neither drop words nor guess where a string ends.
_ONE_SIGN = frozenset(
    (
        "rjson.trailing-comma", "rjson.single-quotes", "rjson.unquoted-key", "rjson.missing-comma",
        "rjson.python-literal", "rjson.loose-number", "rjson.raw-control", "rjson.bad-escape",
        "rjson.escaped-apostrophe", "rjson.missing-colon", "pythonic.json-literal",
        "pythonic.raw-break", "pythonic.inner-quote",
    )
)  # fmt: skip
# Rules that a lost quote sets off: what they touched may be text that was read as a string.
_GUESSED_QUOTES = frozenset(("rjson.unescaped-quote", "rjson.missing-bracket"))


class OpenBody:
    """A body under way. Offsets are in raw: of its opener, and of its first character."""

    def __init__(self, opening: Opening, opener: int, start: int, scanner: Scanner) -> None:
        self.opening = opening
        self.opener = opener  # of several openers in a row the first
        self.head = opener  # the last of them, which `opening` describes
        self.literal: str | None = None  # its text, if somebody asked for it
        self.start = start
        self.scanner = scanner
        self.delta: type[CallDelta | ReasoningDelta] = (
            CallDelta if opening.kind == "call" else ReasoningDelta
        )
        self.pieces: list[str] = []  # what its scanner has settled


class BodyReader:
    """Reads the bodies of one parser. read_alone: parses a text of its own, under a setting."""

    def __init__(
        self,
        setting: Setting,
        feed: Feed,
        log: Log,
        text: TextScanner,
        read_alone: Callable[[Setting, str], ParseResult],
    ) -> None:
        self._setting = setting
        self._feed = feed
        self._log = log
        self._text = text
        self._read_alone = read_alone
        self._repeat_end = -1  # after a call that repeats the one before, and has no closer either
        self._spent = 0
        self.is_plain: bool | None = None  # whether the calls so far are, None for no look
        self.open: OpenBody | None = None
        if setting.options.reasoning == "prefilled":
            # The think tag was in the prompt, so the answer begins inside its body.
            opening = Opening(0, "reasoning")
            self.open = OpenBody(opening, 0, 0, body_in_prompt())

    # opening

    def begin(self, opening: Opening) -> None:
        """Begin the part that opens at the beginning of the tail. The text before is a segment from
        here on.
        """
        feed, log = self._feed, self._log
        start = feed.base
        end = start + opening.end
        if start > log.text_start or self._text.message_ends:
            self._text.end(start)
        setting = self._setting
        if opening.kind == "call":
            if log.message_end is not None:
                # A token that ends messages ends the turn, unless the call is of a format with it.
                (at, token), log.message_end = log.message_end, None
                heads = self._envelope(opening).heads(setting.tools)
                if log.turn_end is None and token not in heads:
                    log.turn_end = at
            if not log.silent:
                log.events.append(CallStart(Span(start, end)))
            # At the beginning of a text its plain calls were looked for as a whole.
            may_look = start > 0 and self.is_plain is not False
            if may_look and log.silent and not opening.whole and self._read_look(opening, start):
                return
            feed.tail = feed.tail[opening.end :]
            feed.base = end
            if opening.whole:
                whole = OpenBody(opening, start, end, _NO_BODY)
                self._finish(whole, *self._decode(whole, "", True, "closer"), end)
                return
            # The closer of the format that opened the body, where several are read at once. With
            # the rest of a long chunk at hand, the body's end is brought into the tail as well.
            closer = self._envelope(opening).closer_of(opening) if feed.chunk else None
            if closer is not None:
                feed.fetch_closer(closer)
            scanner = setting.protocol.envelope.scanner(opening, setting.tools)
            self.open = OpenBody(opening, start, end, scanner)
            return

        log.markup(start, end)
        literal = feed.tail[: opening.end]
        feed.take(opening.end)
        if opening.kind == "markup":
            if log.thought_end is None and is_thought_end(literal):
                log.thought_end = start
                if log.repeats is not None:
                    log.repeats.forget()
            elif is_end(literal):
                log.message_end = start, literal
            elif log.turn_end is None and is_foreign(literal):
                log.turn_end = start
            self._text.resume(opening.text)
        elif isinstance(opening, Thought):
            self.open = OpenBody(opening, start, end, ThoughtBody(opening.ends))
        else:
            scanner = setting.protocol.envelope.scanner(opening, setting.tools)
            self.open = OpenBody(opening, start, end, scanner)

    def _read_look(self, opening: Opening, start: int) -> bool:
        # Reads the call that opens at `start`, and those right after it, if they are plain. False,
        # with nothing done, if the first is not.
        setting, feed, log, text = self._setting, self._feed, self._log, self._text
        if setting.looks is None or len(feed.pieces) > 1 or opening.speculative or opening.lone:
            return False
        # The same call twice may be one, and a value that was given up may contain this one.
        if not text.is_plain or (log.calls and log.calls[-1].problems):
            return False
        raw = feed.pieces[0]
        calls = setting.looks.calls_at(setting, raw, start, len(log.segments), len(log.calls))
        owner = (opening.owner or setting.protocol).id
        self.is_plain = bool(calls) and calls[0].protocol == owner
        if not self.is_plain:
            return False
        end = start
        for call in calls:
            span = call.segment.span
            if span.start > end:
                log.end_text(span.start)
                text.quoting.line(span.start)
            end = span.end
            log.call(call.segment, end, (call,), setting.list_head(call))
        feed.skip_to(end)
        text.resume_after_call()
        return True

    # scanning

    def scan(self, body: OpenBody, final: bool) -> bool:
        """Scan the tail for the end of the open body. Return True when there is more to do.

        final: no more text will come, so the body ends here in any case.
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
                # Not by `delta` and `take`, which would be two calls more for every chunk.
                if not log.silent:
                    log.events.append(body.delta(Span(base, base + step)))
                feed.tail = tail[step:]
                feed.base = base + step

        if not final:
            return False
        # No closer came. The scanner may know of one that it had passed over, such as one inside
        # a string that never ended.
        late = body.scanner.finish()
        if late is not None and self._affords(body.start + late.end, feed.base):
            self._close(body, late)
            return True
        return self._truncate(body)

    def _envelope(self, opening: Opening) -> Envelope:
        # Of the format that opened the body, where several are read at once.
        return (opening.owner or self._setting.protocol).envelope

    def _affords(self, back_to: int, scanned: int) -> bool:
        # Spends the cost of going back, if that keeps the whole work linear in the text. Both are
        # offsets in raw, so that the answer does not depend on the chunking.
        cost = scanned - back_to
        if cost <= 0:
            return True
        if self._spent + cost > _AGAIN * scanned + _FREE:
            return False
        self._spent += cost
        return True

    # an opener that stands again

    def _begin_again(self, body: OpenBody, end: int, final: bool) -> bool | None:
        # The openers of a body that are there in a row, with only white space between, are passed
        # up to the last one, which counts. None if the body has no opener or anything before `end`,
        # or its own opener is not there.
        feed, setting, opening = self._feed, self._setting, body.opening
        if opening.speculative or opening.lone or body.start == body.head:
            return None
        settled = "".join(body.pieces)
        # Only what is asked about is copied: the tail may be long.
        rest = feed.tail[: max(0, end - len(settled))]
        if settled[:end].strip() or rest.strip():
            return None
        if body.literal is None:
            body.literal = feed.text_of(Span(body.head, body.start)).strip()
        literal = body.literal
        at = end - (feed.base - body.start)
        rest = feed.tail[at : at + len(literal)]
        if rest != literal:
            if final or not literal.startswith(rest):
                return None
            # The opener may still come: until then the body is looked at from its beginning.
            if body.pieces:
                self._log.retract(body.start)
                feed.base, feed.tail = body.start, "".join(body.pieces) + feed.tail
            self._move(body, 0)
            return False
        row = re.compile(rf"(?:{re.escape(literal)}\s*+)++").match(feed.tail, at)
        at = feed.tail.rfind(literal, at, row.end()) if row else at
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
        # The body begins `n` characters of the tail later: they belong to its opener.
        feed, setting = self._feed, self._setting
        self._log.delta(body.delta, feed.base, feed.base + n)
        feed.take(n)
        body.start, body.pieces = feed.base, []
        body.scanner = setting.protocol.envelope.scanner(body.opening, setting.tools)

    # closing

    def _close(self, body: OpenBody, close: Close) -> None:
        # The scanner found the end: the body's and its closer's, in characters of the body. The
        # body is decoded once, and once more where it turns out to contain the beginning of
        # another.
        pieces, tail = body.pieces, self._feed.tail
        text = "".join(pieces) + tail if pieces else tail
        if close.hidden or close.reached > close.end:
            close = self._choose_closer(body, text, close)
        if body.opening.kind == "reasoning":
            at = thought_end(text[: close.start]) if self._log.turn_end is None else -1
            if at >= 0:
                self._log.turn_end = body.start + at
            self._settle(body, text, close.start, close.end)
            self._end_reasoning(body.start, body.start + close.start, True)
            # A closer of no length, as an implicit one has, is no markup.
            self._log.markup(body.start + close.start, body.start + close.end)
            return
        if close.name is not None:
            name, at = close.name
            span = Span(at, at + len(name)).shift(body.opening.end)
            body.opening = replace(body.opening, name=name, name_span=span)
        inner = text[: close.start]
        closed = close.kind != "implicit"
        unit, decoded = self._decode(body, inner, closed, close.kind, close.value)
        after = close.end
        clean = False
        if type(decoded) is tuple and len(decoded) == 1:
            call = decoded[0]
            sound = call.readable and not call.problems
            clean = not call.edits or (sound and _ONE_SIGN.issuperset(map(rule_of, call.edits)))
        other = None if clean or closed else self._without_closer(body, inner, decoded)
        if other is not None:
            unit, decoded = other
        elif not clean:
            cut = self._early_end(body, inner, decoded)
            if cut is not None:
                after = cut
                unit, decoded = self._decode(body, text[:cut], False, "implicit")

        self._settle(body, text, len(unit.text), after)
        self._finish(body, unit, decoded, body.start + after)
        # A rescued body that ends at an opener in its last string was given up inside that string.
        if not unit.closed or (close.kind == "rescued" and close.start == close.end):
            self._give_up(body, text[:after], decoded)

    def _give_up(self, body: OpenBody, text: str, decoded: Outcome) -> None:
        # A body that ends before an opener cannot be read, and a value is open: what opens there,
        # and after it, is part of that value. text: the body, up to that opener.
        if _is_whole(decoded):
            return  # the body is whole, so nothing in it is open
        envelope = self._envelope(body.opening)
        tools = self._setting.tools
        # In an element named after its tool, what opens is not another element.
        name = body.opening.name
        in_element = (
            bool(name)
            and self._feed.text_of(Span(body.head, body.start)) == f"<{name}>"
            and not self._feed.tail.startswith(tuple(f"<{name}" for name in tools))
        )
        if in_element or envelope.in_value(body.opening, text, tools) or open_head(text, tools):
            closer = envelope.closer_of(body.opening)
            closers = envelope.closers if closer is None else (closer,)
            self._text.remember().begin(body.start + len(text), closers)

    def _choose_closer(self, body: OpenBody, text: str, close: Close) -> Close:
        # Where the scanner saw a closer inside a string too (`hidden`), or went back to one (it
        # had looked as far as `reached`).
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

    def _early_end(self, body: OpenBody, text: str, decoded: Outcome) -> int | None:
        # The offset at which a body ends that is not sound: with the turn, if it is whole then, or
        # where the model began again. None for neither, or if the budget is spent.
        #
        # A token among what the codec dropped ends the turn; so may one in a body that it refused,
        # and no call after it is executable.
        at = find_token(text) if isinstance(decoded, Refusal) else -1
        for call in () if isinstance(decoded, Refusal) else decoded:
            for edit in call.edits:
                # A token is three characters at least.
                if at < 0 and not edit.text and edit.span.end - edit.span.start > 2:
                    place = find_token(edit.span.of(text))
                    at = edit.span.start + place if place >= 0 else -1
            if call.problems:
                at = find_token(text)
                break
        end = body.start + len(text)
        if at >= 0:
            if self._log.turn_end is None:
                self._log.turn_end = body.start + at
            if isinstance(decoded, Refusal) and self._affords(body.start + at, end):
                _, so_far = self._decode(body, text[:at], False, "implicit")
                if _is_whole(so_far):
                    return at
        # The next opener inside an unreadable body, or inside a part of it that is read only by
        # taking the opener for text between quotes that do not match.
        setting, opening = self._setting, body.opening
        before = _doubtful_end(text, decoded)
        if opening.speculative or before <= 0:
            return None
        envelope = self._envelope(opening)
        heads = envelope.restarts
        # Quotes are guessed in JSON only, which every format reads in the same way.
        if heads is None or not isinstance(decoded, Refusal):
            heads = setting.heads
        for head in heads:
            # Only the first place of each head that opens a call, and not a parameter of this one.
            at = text.find(head, 0 if opening.end else 1)  # the body may begin with its own opener
            while 0 <= at < before:
                inner = setting.protocol.envelope.open(text, at, True, setting.tools)
                if (
                    isinstance(inner, Opening)
                    and inner.kind == "call"
                    and not envelope.opens_parameter(opening, inner, setting.tools)
                ):
                    if self._affords(body.start + at, end):
                        return at
                    break
                at = text.find(head, at + 1)
        return None

    def _settle(self, body: OpenBody, text: str, end: int, after: int) -> None:
        # Deltas and tail come in line with where the body really ends. text: the body, and the
        # text fed so far after it. end: the offset in it after the body, after: after its closer.
        # From there on the text is read again.
        feed = self._feed
        end += body.start
        if end < feed.base:
            self._log.retract(end)
        elif end > feed.base and not self._log.silent:
            self._log.delta(body.delta, feed.base, end)
        feed.tail = text[after:]
        feed.base = body.start + after

    def _end_reasoning(self, start: int, end: int, closed: bool) -> None:
        self._log.reasoning(start, end, closed)
        self.open = None
        self._text.resume()

    # the end of the text inside a body

    def _truncate(self, body: OpenBody) -> bool:
        # The text ends in the body, and what was held back is part of it. The call is truncated,
        # and must not be executed, unless its body closed itself.
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
        closers = self._envelope(body.opening).closers
        unit, decoded = self._decode(body, text[: partial_closer(text, closers)], False, "end")
        after = len(text)
        other = self._without_closer(body, text, decoded)
        if other is not None:
            unit, decoded = other
        elif isinstance(decoded, Refusal):
            # The body up to the end of the turn, or up to the next opener. If neither helps, the
            # whole text is one call that cannot be read.
            cut = self._early_end(body, text, decoded)
            if cut is not None:
                (unit, decoded), after = self._decode(body, text[:cut], False, "implicit"), cut
            else:
                unit = replace(unit, text=text)
        self._settle(body, text, len(unit.text), after)
        self._finish(body, unit, decoded, body.start + after)
        if feed.tail:
            self._give_up(body, text[:after], decoded)
        return bool(feed.tail)

    def _without_closer(
        self, body: OpenBody, text: str, decoded: Outcome
    ) -> tuple[Body, Outcome] | None:
        # Without the closer at its end that is damaged or another format's. None if there is
        # none, or if the body is read with it, or not without it either.
        if _is_whole(decoded):
            return None
        envelope = self._envelope(body.opening)
        cut = wrong_closer(text, envelope.closers)
        if cut is None:
            return None
        unit, without = self._decode(body, text[:cut], False, "wrong")
        # With quotes that were guessed, the closer may be that of a call in a string.
        is_sound = _is_whole(without) and _doubtful_end(text, without) < 0
        return (unit, without) if is_sound else None

    def _truncate_reasoning(self, body: OpenBody, text: str) -> bool:
        # Models that forget the closing tag go on to call, and models think of calls that they do
        # not make. Calls at the very end of open reasoning may be either, and are drafts,
        # unless servers know that their opener ends the reasoning of this model. An
        # opener that begins no such text may be inside a call, or close a section.
        setting = self._setting
        start, size = body.start, len(text)
        cut: int | None = None
        if setting.recovers:
            heads = [m.start() for m in setting.tokens.finditer(text) if m["head"] in setting.heads]
            options = replace(setting.options, recover=False, reasoning="none")
            alone = Setting(setting.protocol, setting.specs, options)
            for at in reversed(heads[-_LAST_CALLS:]):
                result = self._read_alone(alone, text[at:])
                if result.calls and not result.text.strip() and all(c.valid for c in result.calls):
                    cut = at
        if cut is not None:
            late = body.opening.late if isinstance(body.opening, Thought) else ()
            if text.startswith(late or "\0", cut):
                message = "a call ends reasoning that was never closed"
                self._log.warn(
                    "call.after-open-reasoning", message, Span(start + cut, start + size)
                )
            else:
                self._log.open_thought = start + cut
            token = find_token(text[:cut])
            if self._log.turn_end is None and token >= 0:
                self._log.turn_end = start + token
        end = size if cut is None else cut
        self._settle(body, text, end, end)
        self._end_reasoning(start, start + end, False)
        return cut is not None

    # from a finished body to its calls in the log

    def _decode(
        self, body: OpenBody, text: str, closed: bool, kind: str, value: tuple[Value] | None = None
    ) -> tuple[Body, Outcome]:
        # kind: how the body was closed (see `scan.Close`). value: its content, where the scanner
        # read it. Returns the body for the resolver, and the calls or the refusal.
        opening = body.opening
        span = opening.name_span.shift(body.head) if opening.name_span else None
        owner = opening.owner.id if opening.owner else ""
        unit = Body(text, body.start, body.opener, closed, kind, owner, opening.name, span)
        resolver = self._setting.resolver
        reading = resolver.reading(opening, closed)
        if value is not None:
            reading.strict_value = text, value[0]
        return unit, resolver.decode(unit, reading)

    def _finish(self, body: OpenBody, unit: Body, decoded: Outcome, after: int) -> None:
        # after: the offset in raw after the closer. A speculative body without a good call was
        # none, and is given back as text.
        self.open = None
        log, opening = self._log, body.opening
        if isinstance(decoded, Message):
            self._finish_message(body, unit, after, decoded)
            return
        end = body.start + len(unit.text)
        segment = make_segment("call", Span(body.opener, after), Span(body.start, end), unit.closed)
        resolver = self._setting.resolver
        calls: tuple[ToolCall, ...] = ()
        if isinstance(decoded, Refusal) and not opening.speculative:
            log.refused += 1
            if log.refused == MOST_REFUSED:
                message = f"{MOST_REFUSED} calls cannot be read: what follows is text"
                log.warn("call.too-many", message, Span(after, after))
            calls = resolver.leading(unit, opening, segment, len(log.segments), len(log.calls))
        at = len(log.calls) + len(calls)
        calls += resolver.calls(decoded, unit, segment, len(log.segments), at)
        if opening.speculative:
            # An element inside a sentence contains words, and no parameter of its tool.
            words = opening.name and "read.text-body"
            is_call = any(c.ok and not any(s.rule == words for s in c.steps) for c in calls)
            last = log.segments[-1] if log.segments else None
            if is_call and not opening.name and last is not None and last.kind == "text":
                # Where the line before names another tool, the body is its arguments.
                line = Span(max(last.span.start, body.opener - WINDOW), body.opener)
                is_call = not self._text.is_of_other_tool(calls, self._feed.text_of(line))
            if not is_call:
                self._take_back(body, after)
                return
        elif (
            opening.name
            and calls[0].name in ELEMENTS
            and any(says_page(call, self._setting.tools.get(call.name)) for call in calls)
        ):
            span = Span(body.opener, body.start)
            message = f"this call is only shown: {reasons(['page'])}"
            log.problems.append(Problem("scan", "call.quoted-example", "info", message, "", span))
            self._take_back(body, after)
            return
        if log.calls and len(calls) == 1 and self._repeats(body, calls[0]):
            log.retract(body.opener)
            log.markup(body.opener, after)
            message = "the call before has no closer and stands here again: it is one call"
            log.warn("call.repeated", message, Span(body.opener, after))
            if unit.kind == "implicit":
                self._repeat_end = after
            self._text.resume_after_call()
            return
        given_up = self._text.given_up
        quoted = given_up is not None and given_up.quotes(body.opener, after)
        for call in () if quoted else calls:
            for edit in call.edits:
                # The words that were dropped around the call may begin another one.
                if edit.rule == "rjson.prose" and not quoted:
                    words = self._feed.text_of(edit.span)
                    quoted = open_head(words, self._setting.tools) is not None
        if quoted:
            calls = tuple(map(as_draft, calls))
        if body.head > body.opener:
            message = "the opener stands several times in a row: one call begins"
            span = Span(body.opener, body.head)
            problem = Problem("scan", "call.repeated-opener", "warning", message, "", span)
            calls = (replace(calls[0], problems=(problem, *calls[0].problems)), *calls[1:])
        head = self._setting.list_head(calls[0]) if calls and log.calls else ""
        log.call(segment, end, calls, head)
        self._text.resume_after_call()

    def _repeats(self, body: OpenBody, call: ToolCall) -> bool:
        # The body is the call before it once more, which ended at its opener. A call without its
        # closer, and the same call right after it, were begun twice and meant once. With other
        # arguments they are two: whole JSON counts without its closer.
        log = self._log
        last, before = log.calls[-1], log.segments[-1]
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

    def _finish_message(self, body: OpenBody, unit: Body, end: int, message: Message) -> None:
        # The calls and texts of a whole message are segments of their own, and markup is between
        # them.
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
            else:
                log.message_words(span, piece.kind == "text")

        log.markup(at, end)
        self._text.resume_after_call()

    def _take_back(self, body: OpenBody, end: int) -> None:
        # What only looked like a call is text: the tail begins with it again.
        feed, tools = self._feed, self._setting.tools
        envelope = self._envelope(body.opening)

        def in_value(text: str) -> bool:
            return envelope.in_value(body.opening, text, tools)

        self._text.remember().suspect = body.opener, end, in_value
        feed.tail = feed.text_of(Span(body.opener, end)) + feed.tail
        feed.base = body.opener
        self._log.retract(body.opener)
        self._text.resume_at_no_call()


def _is_whole(decoded: Outcome) -> bool:
    return not isinstance(decoded, Refusal) and all(call.readable for call in decoded)


def _doubtful_end(text: str, decoded: Outcome) -> int:
    # After the last character of a body that may not belong to it, -1 for a sound one. A refused
    # body is doubtful to its end, one that was read only where repairs guessed at quotes.
    if isinstance(decoded, Refusal):
        return len(text)
    return max([e.span.end for d in decoded for e in d.edits if e.rule in _GUESSED_QUOTES] or [-1])
