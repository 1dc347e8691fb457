"""Text between calls: what opens something in it, and what is held back as a possible call."""

# How it works
# ------------
# Text is looked through for a few tokens only: heads of openers, line breaks, runs of backticks.
# A head is shown to the protocol's envelope, unless it is quoted code; line breaks and backticks
# say what is quoted. All else is plain text.
#
# State: `quoting` knows fences and inline code up to the beginning of the tail and, during a scan,
# up to the token that was read last. `_fresh` is true while only white space came since the last
# segment that is no text: there a call without delimiters may begin. `_plain_to` is an offset in
# raw up to which that was tried, and it was no call.
#
# Invariant: what a scan settles as text is final. So everything that may still turn out to be
# something else stays in the tail: the beginning of a head, a run of backticks that may go on, an
# opener the envelope is not sure of, a value that may be a call (see `recovery`). A scan that
# settles less than the tail is repeated with more text behind it, and `quoting` knows only of what
# was settled.
#
# Cost: one regular expression over the tail, which settles all but a bounded end of it, so that a
# character is looked at once; only what recovery holds back stays longer (see `feed`).

from __future__ import annotations

import sys
from dataclasses import replace

from ..protocols.base import NEED_MORE, NeedMore, Opening
from ..protocols.json.scan import ends_in_value
from ..protocols.scan import partial_start
from ..protocols.tags import THINK_TAGS, open_reasoning
from ..types import Problem, Segment, Span, TextDelta
from .feed import Feed
from .log import Log
from .open_heads import open_head
from .quotation import (
    LINE_HEAD,
    MARKS,
    WINDOW,
    introduces_block,
    is_example,
    is_indented,
    is_quoted,
)
from .quoting import LONG_RUN, Quoting, run_length
from .recovery import Held, Recovery
from .setting import Setting
from .unclosed import GivenUp, as_draft

_THINK_TAGS = tuple(THINK_TAGS)
# Signs of an example, as the sentence about it names them.
_IN_CODE = "inside quoted code"
_QUOTED = "inside a quotation"
_SHOWN = "introduced as one"
_LONGEST_THINK_TAG = max(map(len, THINK_TAGS))


class TextScanner:
    """Settles the text of one parser up to the next opener.

    Steps of a scan are an Opening (the tail begins with it now), True (something was settled, and
    there is more to do), False (wait for more text), or None (nothing of this kind stands here).
    """

    __slots__ = (
        "_block",
        "_example_end",
        "_feed",
        "_fresh",
        "_line",
        "_log",
        "_plain_to",
        "_quoting",
        "_recovery",
        "_setting",
        "given_up",
    )

    def __init__(self, setting: Setting, feed: Feed, log: Log) -> None:
        """Share the parts of one parser: text is read from `feed`, segments go to `log`."""
        self._setting = setting
        self._feed = feed
        self._log = log
        self._quoting = Quoting()
        self._fresh = True
        self._plain_to = 0
        self.given_up: GivenUp | None = None  # made for the first call that is given up
        self._block = (-1, False)  # an indented line, and True in a block of code
        self._example_end = 0  # behind the last opener that was an example
        self._line = (-1, "")  # where a line begins, and its first characters
        # made where something may be recovered, which is rare
        self._recovery: Recovery | None = None

    # what bodies tell

    def resume(self) -> None:
        """Text begins anew behind markup or reasoning."""
        self._fresh = True

    def resume_behind_call(self) -> None:
        """Text begins anew behind a call."""
        self._fresh = True
        self._quoting.call()

    def resume_at_no_call(self) -> None:
        """Text begins with what looked like a call; so does the tail again."""
        self._quoting.no_call()
        # Held back once more it would be tried once more, for ever.
        self._plain_to = self._feed.base + 1

    def remember(self) -> GivenUp:
        """Return the memory of what was given up in this text."""
        if self.given_up is None:
            self.given_up = GivenUp(self._feed.text_of)
        return self.given_up

    def end(self, at: int) -> None:
        """End the text at an offset in raw, where something else begins.

        If the beginning of a call stands in it that nothing ended, what follows is inside a value.
        """
        log, tools = self._log, self._setting.tools
        start = log.text_start
        # One character, as the line break between two calls, begins nothing.
        if at > start + 1 and tools:
            head = open_head(self._feed.text_of(Span(start, at)), tools)
            if head is not None:
                self.remember().begin(start + head.end, head.closers)
        log.end_text(at)

    # the loop over tokens

    def scan(self, final: bool) -> Opening | bool:
        """Settle text, of which there is some, up to the next opener; see the class for steps.

        final: no more text will come, so that nothing is held back.
        """
        feed = self._feed
        tail = feed.tail
        if self._fresh and feed.base >= self._plain_to:
            step = self._hold(tail, final)
            if step is not None:
                return step

        quoting = self._quoting
        search = self._setting.tokens.search
        pos = 0

        while token := search(tail, pos):
            at = token.start()
            if at > pos and not tail[pos:at].isspace():
                self._fresh = False
                quoting.word()
            kind = token.lastgroup
            if kind == "line":
                pos = token.end()
                quoting.line(feed.base + pos)
            elif kind == "ticks":
                step = self._read_backticks(tail, at, token.end(), final)
                if step is not None:
                    return step
                pos = token.end()
            else:
                opening = self._opening(tail, at, final)
                if opening is not None:
                    self._settle(at)
                    return opening if isinstance(opening, Opening) else False
                pos = self._read_plain_head(tail, at)

        end = len(tail) if final else max(pos, partial_start(tail, self._setting.literals))
        if end > pos and not tail[pos:end].isspace():
            self._fresh = False
            quoting.word()
        self._settle(end)
        return False

    def _settle(self, n: int) -> None:
        """Settle the first `n` characters of the tail as text.

        Final: what is settled here is never looked at again, so nothing that may still become a
        call may be in it.
        """
        if n:
            feed = self._feed
            if not self._log.silent:
                self._log.delta(TextDelta, feed.base, feed.base + n)
            feed.take(n)

    def _read_plain_head(self, tail: str, at: int) -> int:
        """Pass a head that opens nothing; return the offset to read on from.

        tail[at] is where the head begins. Only its first character is passed: another head may
        begin inside this one.
        """
        self._fresh = False
        self._quoting.word()
        if tail[at] != "`":
            return at + 1
        # A head of backticks that opened nothing is still a run of backticks.
        run = min(run_length(tail, at), LONG_RUN)
        self._quoting.backticks(run)
        return at + run

    def _read_backticks(self, tail: str, at: int, end: int, final: bool) -> Opening | bool | None:
        """Read a run of backticks, tail[at:end]; None when it is nothing but that.

        The run may go on behind the tail, or begin a head of backticks such as a fence's: then the
        text up to it is settled, and more is waited for.
        """
        run = end - at
        if not final:
            may_go_on = end == len(tail) and run < LONG_RUN
            if may_go_on or self._may_be_head(tail, at):
                self._settle(at)
                return False

        # Three backticks at the beginning of a line open a fence, which may hold a call.
        if run >= 3 and self._quoting.blank and not self._quoting.fence:
            step = self._hold_fence(tail, at, run, final)
            if step is not None:
                return step

        self._quoting.backticks(run)
        self._fresh = False
        return None

    def _may_be_head(self, tail: str, at: int) -> bool:
        """The rest of the tail may be the beginning of a head.

        Asked of a run of backticks at `at`, which some formats' openers begin with.
        """
        rest = len(tail) - at
        if rest >= self._setting.longest_head:
            return False
        return any(head.startswith(tail[at:]) for head in self._setting.heads)

    # openers

    def _opening(self, tail: str, at: int, final: bool) -> Opening | NeedMore | None:
        """The opener at `tail[at]`, where a head stands; None where it is text.

        Returns NEED_MORE where that depends on text still to come. Think tags count at the
        beginning of a line, outside code fences; elsewhere they are prose.
        """
        setting = self._setting
        quoting = self._quoting
        if setting.reads_reasoning and quoting.blank and not quoting.fence:
            reasoning = _think_tag(tail, at, final)
            if reasoning is not None:
                return reasoning

        opening = setting.protocol.envelope.open(tail, at, final, setting.tools)
        if not isinstance(opening, Opening):
            return opening
        if opening.kind != "call" and not opening.end:
            return None  # it would be found again for ever
        if opening.kind == "reasoning" or self._begins_line(tail, at):
            return opening
        return self._unless_quoted(tail, at, opening, final)

    def _begins_line(self, tail: str, at: int) -> bool:
        """The opener at tail[at] begins its line, and nothing before the line may quote it.

        Most openers do, and need no further look.
        """
        quoting = self._quoting
        if quoting.fence or quoting.ticks or self._example_end or tail[at] == "`":
            return False
        here, start = self._feed.base + at, self._log.text_start
        if here - start < 2:  # at most a line break since the last call
            return here == start or quoting.line_at == here
        return at > 1 and tail[at - 1] == "\n" and tail[at - 2] not in MARKS

    def _unless_quoted(
        self, tail: str, at: int, opening: Opening, final: bool
    ) -> Opening | NeedMore | None:
        """The opener unless it is an example: in a fence, in inline code, or quoted by other signs.

        Returns NEED_MORE where the inline code around it may still be closed.
        """
        quoting = self._quoting
        if quoting.fence:
            if opening.kind != "call":
                return opening
            # An example in a code fence is no call; but a fence may be all that the model says.
            if quoting.lone_fence:
                return replace(opening, speculative=True)
            return self._noted(at, opening, _IN_CODE)
        if quoting.ticks:
            adjacent = self._before(at).endswith("`")
            closed = quoting.closes(tail, at, self._feed.base, final, adjacent=adjacent)
            if closed is None:
                return NEED_MORE
            if closed:
                return self._noted(at, opening, _IN_CODE)

        if self._is_quoted(tail, at) or (self._example_end and self._is_inside_example(at)):
            return self._noted(at, opening, _QUOTED)
        if tail[at] == "`" and is_example(self._before(at)):
            # The fence is the opener itself.
            return self._noted(at, opening, _SHOWN)
        return opening

    def _noted(self, at: int, opening: Opening, sign: str) -> Opening | None:
        """None, for an opener that is an example, once that is noted."""
        self._note_example(at, opening, sign)
        return None

    def _note_example(self, at: int, opening: Opening, sign: str) -> None:
        """Note an opener as an example, so that `why` can tell where a call went.

        sign: where it stands, in words.
        """
        self._example_end = self._feed.base + at + opening.end
        if opening.kind == "call":
            here = self._feed.base + at
            message = f"a call {sign} is an example"
            span = Span(here, here + opening.end)
            problem = Problem("scan", "call.quoted-example", "info", message, "", span)
            self._log.problems.append(problem)

    def _is_quoted(self, tail: str, at: int) -> bool:
        """A sign before tail[at] says that what begins there is quoted."""
        here, start = self._feed.base + at, self._log.text_start
        if here == start:
            return False
        if at > 1:
            last = tail[at - 2 : at]
        else:
            last = self._feed.text_of(Span(max(start, here - 2), here))
        if last[-1] == "\n" and last[0] not in MARKS:
            return False
        head = self._line_head(tail, at)
        if is_quoted(self._before(at), head):
            return True
        return is_indented(head) and self._in_block()

    def _is_inside_example(self, at: int) -> bool:
        """The opener at the tail's offset `at` stands right behind a quoted one, as a part of it.

        So a block's first function is quoted with its block.
        """
        here, end = self._feed.base + at, self._example_end
        if not self._log.text_start < end <= here <= end + LINE_HEAD:
            return False
        return not self._feed.text_of(Span(end, here)).strip()

    def _in_block(self) -> bool:
        """This line, which is indented, is one of a block of code that words introduce.

        The text is looked at backwards, to the line before the block or to the last line that was
        asked about, so that no line is looked at for every opener behind it.
        """
        line_at = self._quoting.line_at
        last_at, verdict = self._block
        stop = max(self._log.text_start, last_at)
        if line_at == last_at:
            return verdict
        window, answer = WINDOW, None
        while answer is None:
            start = max(stop, line_at - window)
            before = self._feed.text_of(Span(start, line_at))
            answer = introduces_block(before, start == stop)
            if answer is None and start == stop:
                answer = verdict and stop == last_at
            window *= 4
        self._block = line_at, answer
        return answer

    def _before(self, at: int) -> str:
        """The text before tail[at] as far as it tells of quotation; nothing of an earlier call."""
        here = self._feed.base + at
        return self._feed.text_of(Span(max(self._log.text_start, here - WINDOW), here))

    def _line_head(self, tail: str, at: int) -> str:
        """The beginning of the line of tail[at]; '' where it begins with something that is no text.

        Looked up once a line: the line may be long.
        """
        start = self._quoting.line_at
        if start < self._log.text_start:
            return ""
        line, head = self._line
        if line != start:
            head = self._feed.text_of(Span(start, min(start + LINE_HEAD, self._feed.base + at)))
            if self._feed.base + at - start >= LINE_HEAD:
                self._line = start, head
        return head

    # calls without an opener, and calls outside their format

    def _hold(self, tail: str, final: bool) -> Opening | bool | None:
        """Hold text back that may be a call without its delimiters; None when there is none.

        tail: all that is not settled, of which only white space stands before the candidate.
        Returns the opener of a format without delimiters, or what recovery decided.
        """
        stripped = tail.lstrip()
        if not stripped:
            return None
        lead = len(tail) - len(stripped)
        if not self._quoting.spoken:
            # An undelimited format competes only where the whole answer begins like it.
            envelope = self._setting.protocol.envelope
            opening = envelope.speculates(stripped)
            if opening is None:
                opening = envelope.resumes(stripped, self._setting.tools)
            if isinstance(opening, NeedMore):
                return None if final else False
            if opening is not None:
                self._settle(lead)
                return opening

        if stripped[0] not in "{[" or not self._setting.recovers:
            return None
        first = not self._quoting.spoken
        outcome = self._recover().bare(stripped, final, self._feed.base + lead, first)
        return self._settle_outcome(outcome, lead)

    def _hold_fence(self, tail: str, at: int, run: int, final: bool) -> bool | None:
        """Hold a code fence back that may hold nothing but a known tool's call.

        tail[at] is the first of the `run` backticks that open the fence.
        """
        if self._feed.base + at < self._plain_to or not self._setting.recovers:
            return None
        outcome = self._recover().fenced(tail[at:], run, final, self._feed.base + at)
        return self._settle_outcome(self._unless_shown(outcome, tail, at), at)

    def _unless_shown(
        self, outcome: Held | NeedMore | None, tail: str, at: int
    ) -> Held | NeedMore | None:
        """Return the outcome for the fence at tail[at]; text where a call is only shown there."""
        if not isinstance(outcome, Held) or outcome.body is None:
            return outcome
        if not self._is_quoted(tail, at) and not is_example(self._before(at)):
            return outcome
        self._note_example(at, Opening(outcome.end), _SHOWN)
        return Held(outcome.end)

    def _recover(self) -> Recovery:
        """The recovery of this text."""
        if self._recovery is None:
            setting = self._setting
            self._recovery = Recovery(setting.protocol, setting.resolver, setting.heads)
        return self._recovery

    def _settle_outcome(self, outcome: Held | NeedMore | None, lead: int) -> bool | None:
        """Settle what recovery decided of the text behind the first `lead` characters.

        Calls become a segment of the kind 'recovered'; plain text is left to the next scan, which
        does not ask recovery again.
        """
        if outcome is None:
            return None
        self._settle(lead)
        if isinstance(outcome, NeedMore):
            return False
        feed, log = self._feed, self._log
        start, end = feed.base, feed.base + outcome.end
        if outcome.body is None:
            # One that breaks off goes on to the end of the text.
            self._plain_to = end
            stop = end if outcome.end > 1 else sys.maxsize
            self.remember().suspect(start, stop, ends_in_value)
            return True
        self.end(start)
        segment = Segment("recovered", Span(start, end), outcome.body)
        calls = self._recover().calls(outcome, segment, len(log.segments), len(log.calls))
        if self.given_up is not None and self.given_up.quotes(start, end):
            calls = tuple(map(as_draft, calls))
        log.recovered(segment, calls)
        feed.take(outcome.end)
        self._fresh = True
        self._quoting.spoken = True
        return True


def _think_tag(tail: str, at: int, final: bool) -> Opening | NeedMore | None:
    """The think tag at `tail[at]`; NEED_MORE where one may be coming, None where none is.

    Tags are a literal each; a family of formats may have others, which its envelope knows.
    """
    if tail.startswith(_THINK_TAGS, at):
        return open_reasoning(tail, at)
    if final or len(tail) - at >= _LONGEST_THINK_TAG:
        return None
    rest = tail[at:]
    return NEED_MORE if any(tag.startswith(rest) for tag in _THINK_TAGS) else None
