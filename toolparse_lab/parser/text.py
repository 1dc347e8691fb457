"""Text between calls: the openers in it, and the text held back as a possible call."""

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

import re
import sys
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from ..core.types import Problem, Segment, Span, TextDelta, ToolCall
from ..formats.base import NEED_MORE, Decoded, NeedMore, Opening
from ..formats.json.scan import ends_in_value
from ..formats.scan import longest_of
from ..formats.tags import THINK_ENDS, THINK_TAGS, open_reasoning
from ..formats.turns import TURN_ENDS
from .call_lines import CallLines
from .feed import Feed
from .log import Log
from .open_heads import open_head
from .quotation import (
    LINE_HEAD,
    MARKS,
    WINDOW,
    goes_on_lazily,
    introduces_block,
    is_example,
    is_indented,
    sign_of,
)
from .quoting import LONG_RUN, Quoting, run_length
from .recovery import Held, Recovery
from .setting import Setting
from .shown import Shown
from .turn_end import find_turn_end
from .unclosed import GivenUp, as_draft

_BRACKETS = ("{", "[")
_MARKS_AROUND = "`\"'"  # of a span of code or a string that may be the whole answer
# Some models begin their answer with the head of a chat turn.
_CHAT_START = "<|im_start|>"
_ROLE = "assistant"
_CHAT_HEAD = re.compile(r"<\|im_start\|>\s{0,8}")
_SENTENCE = re.compile(r"[.:!?\u2026\u3002\uff1a\uff01\uff1f][\"')\]*_]{0,3}[ \t]{1,8}\Z")
# What may stand before a call that lost its delimiter; a word of a sentence does not.
_MAY_BEGIN = re.compile(
    r"(?:^|\n|[>|\])}`\"'*]|[.:!?\u2026\u3002\uff1a\uff01\uff1f][\"')\]*_]{0,3}[ \t])[ \t]{0,8}\Z"
)
_SEPARATOR = re.compile(r"[;,]\s{0,40}+")
# The end of a text that goes on as JSON: a member or an item follows.
_INSIDE_JSON = re.compile(r"""(?:["'\]}\de]\s*,|["']\s*:|[\[{(])\s*\Z""")
# The tokens behind one that ends a turn, and the white space behind them.
_MORE_ENDS = re.compile(rf"(?:\s*+{longest_of(TURN_ENDS)})*+(?P<space>\s*+)")
# A fence in quotation marks, which is no fence by its place, and nothing that closes the marks.
_QUOTED_FENCE = re.compile(r"[\"'“„«]```(?!.*```[ \t]*[\"'”»])", re.DOTALL)
_MARKER_END = re.compile(r"\[[A-Z_]{2,20}\]\s*\Z")
_THINK_TAGS = tuple(THINK_TAGS)
_ALL_THINK_TAGS = (*THINK_TAGS, *THINK_ENDS)
_TOKEN = re.compile(r"<[|\uff5c]|\[[A-Z_]{4,24}\]|\]<\]")
# Signs of an example, as the sentence about it names them.
_IN_CODE = "inside quoted code"
_QUOTED = "inside a quotation"
_SHOWN = "introduced as one"
_SAID = "in a message that is text"
_LONGEST_THINK_TAG = max(map(len, THINK_TAGS))


class TextScanner:
    """Settles the text of one parser up to the next opener.

    Steps of a scan are an Opening (the tail begins with it now), True (something was final, and
    there is more to do), False (wait for more text), or None (nothing of this kind stands here).
    """

    __slots__ = (
        "_again",
        "_block",
        "_feed",
        "_fresh",
        "_line",
        "_log",
        "_mention",
        "_message_ends",
        "_plain_to",
        "_python",
        "_quoting",
        "_recovery",
        "_setting",
        "_shown",
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
        self._again = -1  # where text begins that was no call without delimiters
        self.given_up: GivenUp | None = None  # made for the first call that is given up
        self._block = (-1, False)  # an indented line, and True in a block of code
        self._shown = Shown(setting, feed.text_of)
        self._message_ends: tuple[str, ...] = ()  # what ends a message that is all text
        self._mention = -1  # where the last think tag stands that is prose
        self._line = (-1, "")  # where a line begins, and its first characters
        # made where something may be recovered, which is rare
        self._recovery: Recovery | None = None
        self._python: CallLines | None = None

    @property
    def _recovers(self) -> bool:
        """True if calls outside their format are looked for in this text."""
        return self._setting.recovers and not self._message_ends

    @property
    def is_plain(self) -> bool:
        """True if nothing before this place can make an example of the opener of a call here."""
        quoting = self._quoting
        return not (
            quoting.fence
            or quoting.ticks
            or self._shown.end
            or self._message_ends
            or self.given_up is not None
        )

    # what bodies tell

    def resume(self) -> None:
        """Text begins again behind markup or reasoning."""
        self._fresh = True

    def resume_as_text(self, ends: tuple[str, ...]) -> None:
        """Text begins behind the header of a message that is text, calls in it included.

        ends: the literals of which one ends the message.
        """
        self._fresh = False
        self._message_ends = ends
        self._quoting.word()

    def resume_behind_call(self) -> None:
        """Text begins again behind a call."""
        self._fresh = True
        self._quoting.call()

    def resume_behind_calls(self, line_at: int) -> None:
        """Text begins again behind calls that were read in a row.

        line_at: the offset in raw of the last line that began between them, -1 for none.
        """
        if line_at >= 0:
            self._quoting.line(line_at)
        self.resume_behind_call()

    def resume_at_no_call(self) -> None:
        """Text begins with text that looked like a call. So does the tail again."""
        self._quoting.no_call()
        # Held back once more it would be tried once more, for ever. As Python it was not tried.
        self._plain_to = self._feed.base + 1
        self._again = -1 if self._quoting.fence else self._feed.base

    def remember(self) -> GivenUp:
        """Return the memory of the openers given up in this text."""
        if self.given_up is None:
            self.given_up = GivenUp(self._feed.text_of)
        return self.given_up

    def end(self, at: int) -> None:
        """End the text at an offset in raw, where something else begins.

        If the beginning of a call stands in it that nothing ended, the text behind it is inside a
        value.
        """
        if self._message_ends and self._feed.tail.startswith(self._message_ends):
            self._message_ends = ()
        log, tools = self._log, self._setting.tools
        start = log.text_start
        # One character, as the line break between two calls, begins and ends nothing.
        if at > start + 1:
            text = self._feed.text_of(Span(start, at))
            if log.turn_end is None:
                # What is only shown has ends of its own.
                shown = self._shown.body_end(at) - start if self._shown.end > start else 0
                end = find_turn_end(text, self._feed.tail, start == 0, bool(log.calls), shown)
                log.turn_end = start + end if end is not None else None
            head = open_head(text, tools) if tools else None
            if head is not None:
                self.remember().begin(start + head.end, head.closers)
        log.end_text(at)

    # the loop over tokens

    def scan(self, final: bool) -> Opening | bool:
        """Settle text, of which there is some, up to the next opener.

        See the class for steps.

        final: no more text will come, so that nothing waits.
        """
        feed = self._feed
        tail = feed.tail
        quoting = self._quoting
        step = self._hold_start(tail, final)
        if step is not None:
            return step
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
                step = self._hold_line(tail, pos, final)
                if step is not None:
                    return step
            elif kind == "ticks":
                step = self._read_backticks(tail, at, token.end(), final)
                if step is not None:
                    return step
                pos = token.end()
            elif kind == "head":
                step = self._read_head(tail, at, final)
                if step is not None:
                    return step
                pos = self._read_plain_head(tail, at)
            else:
                step, pos = self._read_sign(tail, token, final)
                if step is not None:
                    return step

        end = len(tail) if final else max(pos, self._setting.partial_start(tail))
        if end > pos and not tail[pos:end].isspace():
            self._fresh = False
            quoting.word()
        self._settle(end)
        return False

    def _hold_start(self, tail: str, final: bool) -> Opening | bool | None:
        """Hold text back that may be a call, where the tail begins a text or a line."""
        base = self._feed.base
        if self._fresh and base >= self._plain_to:
            # Nothing is held back on a line behind a call, where most calls stand. A chat turn's
            # head would go on with a bar.
            is_next = tail[:2] == "\n<" and tail[2:3] not in ("", "|") and self._quoting.spoken
            step = None if is_next else self._hold(tail, final)
            if step is not None:
                return step
        elif base == self._again and self._fresh:
            step = self._hold_again(tail, final)
            if step is not None:
                return step
        return self._hold_line(tail, 0, final) if self._quoting.line_at == base else None

    def _read_sign(
        self, tail: str, token: re.Match[str], final: bool
    ) -> tuple[Opening | bool | None, int]:
        """Read the bracket of a list, or the end of a turn.

        Return the step, and the offset to read on from where it is None.
        """
        at, end = token.span()
        if token.lastgroup == "list":
            return self._read_list(tail, at, final), at + 1
        return self._read_turn_end(tail, at, end, final)

    def _read_list(self, tail: str, at: int, final: bool) -> Opening | bool | None:
        """Read the list of Python calls that may begin at tail[at].

        Return None when it is text.
        """
        if not final and len(tail) - at < self._setting.longest_head:
            begin = self._setting.partial_start(tail)
            if begin <= at:
                self._settle(begin)
                return False
        step = self._hold_list(tail, at, final)
        if step is None:
            self._fresh = False
            self._quoting.word()
        return step

    def _read_head(self, tail: str, at: int, final: bool) -> Opening | bool | None:
        """Read the head at tail[at]. Return None when it opens nothing."""
        if not final and len(tail) - at < self._setting.longest_head:
            # A longer head that this one is a part of may go on behind the tail.
            longer = self._setting.partial_start(tail)
            if longer < at:
                self._settle(longer)
                return False
        opening = self._opening(tail, at, final)
        if opening is None:
            # As a run of backticks, which it is then, the head may go on.
            run = run_length(tail, at)
            if final or not run or at + run < len(tail) or run >= LONG_RUN:
                return None
        self._settle(at)
        return opening if isinstance(opening, Opening) else False

    def _read_turn_end(
        self, tail: str, at: int, end: int, final: bool
    ) -> tuple[Opening | bool | None, int]:
        """Read the token tail[at:end], which ends a turn, and those that follow.

        They are markup where nothing else follows, and text elsewhere. Return the step, and the
        offset to read on from where it is None.
        """
        run = _MORE_ENDS.match(tail, end)
        behind, end = (run.end(), run.start("space")) if run else (end, end)
        rest = tail[behind:]
        # What an element of HTML ends with is not the end of the answer.
        if tail.startswith("</s>", at) and "<s>" in self._before(at):
            rest = rest or "</s>"
        elif not final and any(token.startswith(rest) for token in TURN_ENDS):
            self._settle(at)
            return False, at
        if not rest:
            self._settle(at)
            return Opening(end - at, "markup"), at
        self._fresh = False
        self._quoting.word()
        return None, end

    def _settle(self, n: int) -> None:
        """Settle the first `n` characters of the tail as text.

        Final: the final part here is never looked at again, so nothing that may still become a call
        may be in it.
        """
        if n:
            feed = self._feed
            if not self._log.silent:
                self._log.delta(TextDelta, feed.base, feed.base + n)
            feed.tail = feed.tail[n:]  # as `take`, which would be a call more
            feed.base += n

    def _read_plain_head(self, tail: str, at: int) -> int:
        """Pass a head that opens nothing.

        Return the offset to read on from.

        tail[at] is where the head begins. Only its first character is passed: another head may
        begin inside this one.
        """
        self._fresh = False
        self._quoting.word()
        if tail[at] != "`":
            return at + 1
        # A head of backticks that opened nothing is still a run of backticks.
        run = min(run_length(tail, at), LONG_RUN)
        self._quoting.backticks(run, self._feed.base + at)
        return at + run

    def _read_backticks(self, tail: str, at: int, end: int, final: bool) -> Opening | bool | None:
        """Read a run of backticks, tail[at:end].

        Return None when it is nothing but that.

        The run may go on behind the tail, or begin a head of backticks such as a fence's: then the
        text up to it is final, and more is waited for.
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

        self._quoting.backticks(run, self._feed.base + at)
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
        """Return the opener at `tail[at]`, where a head stands, or None if it is text.

        Returns NEED_MORE where that depends on text still to come. Think tags count at the
        beginning of a line, outside code fences. Elsewhere they are prose.
        """
        setting = self._setting
        quoting = self._quoting
        if setting.reads_reasoning and not quoting.fence:
            # Most openers are no such tag, and one look says so.
            near_end = not final and len(tail) - at < _LONGEST_THINK_TAG
            if near_end or tail.startswith(_ALL_THINK_TAGS, at):
                reasoning = self._think_tag(tail, at, final)
                if reasoning is not None:
                    return reasoning

        opening = setting.protocol.envelope.open(tail, at, final, setting.tools)
        if not isinstance(opening, Opening):
            return opening
        if opening.kind != "call" and not opening.end:
            return None  # it would be found again for ever
        if self._is_said(opening, tail, at):
            return self._noted(at, opening, _SAID)
        if opening.name and self._is_word(tail, at, opening):
            opening = replace(opening, speculative=True)
        if self._is_no_call(at, opening):
            return None
        if opening.kind == "reasoning" or self._begins_line(tail, at):
            return opening
        return self._unless_quoted(tail, at, opening, final)

    def _is_word(self, tail: str, at: int, opening: Opening) -> bool:
        """Return True if an opener is a tag named after a tool, and goes on with a sentence.

        Such a tag is a word of the sentence, unless a call comes of it.
        """
        if self._feed.base + at + 1 == self._plain_to:
            # It was given back, and the text before it is a segment by now.
            return tail[at : at + opening.end].strip() == f"<{opening.name}>"
        if at == 0 and self._feed.base == self._log.text_start:
            return False
        if (at and tail[at - 1] != " ") or tail[at : at + opening.end] != f"<{opening.name}>":
            return False
        before = self._before(at)[-2:]
        return before[-1:] == " " and before[:1].isalnum()

    def _is_said(self, opening: Opening, tail: str, at: int) -> bool:
        """Return True for a call in a message that is all text."""
        # The header of the next message is itself an end of this one.
        ends = self._message_ends
        return bool(ends) and opening.kind == "call" and not tail.startswith(ends, at)

    def _think_tag(self, tail: str, at: int, final: bool) -> Opening | NeedMore | None:
        """Return the think tag at `tail[at]`, or the closing one of reasoning begun in the prompt.

        A tag that is prose is None. Tags are a literal each; a family of formats may have others,
        which its envelope knows.
        """
        tag = _tag_at(tail, at, final, _THINK_TAGS)
        if tag is not None:
            if self._quoting.blank:
                return open_reasoning(tail, at) if isinstance(tag, str) else tag
            if isinstance(tag, str):
                self._mention = self._feed.base + at
            return None

        end = _tag_at(tail, at, final, THINK_ENDS)
        # Behind an opening tag that is prose, so is the closing one.
        if not isinstance(end, str) or self._mention >= self._log.text_start:
            return None if isinstance(end, str) else end
        closed = self._closes(tail, at, final)
        if closed is not False:
            return NEED_MORE if closed is None else None
        return None if self._sign(tail, at) else Opening(len(end), "markup")

    def _is_no_call(self, at: int, opening: Opening) -> bool:
        """The speculative opener at tail[at] was tried before, or stands in other JSON.

        Or a call without its delimiter stands inside a sentence.
        """
        if opening.lone:
            return _MAY_BEGIN.search(self._before(at)) is None
        if not opening.speculative:
            return False
        if self._feed.base + at < self._plain_to:
            return True
        if opening.end:
            return False
        before = self._before(at)
        line = before.rpartition("\n")[2]
        if line.strip(" \t;,") and (
            _MAY_BEGIN.search(line) is None
            or _is_in_bracket(line)
            or self._last_word(before) in self._setting.tools
        ):
            return True
        return _INSIDE_JSON.search(before) is not None

    def _begins_line(self, tail: str, at: int) -> bool:
        """The opener at tail[at] begins its line, and nothing before the line may quote it.

        Most openers do, and need no further look.
        """
        quoting = self._quoting
        if quoting.fence or quoting.ticks or self._shown.end or tail[at] == "`":
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
        closed = self._closes(tail, at, final)
        if closed is None:
            return NEED_MORE
        if closed:
            return self._noted(at, opening, _IN_CODE)

        sign = self._sign(tail, at)
        markup = opening.end if opening.kind == "markup" else 0
        start = self._log.text_start
        if sign or self._shown.goes_on(self._feed.base + at, start, markup):
            alone = sign == "line" if sign else self._shown.alone
            return self._noted(at, opening, _QUOTED, alone=alone)
        if tail[at] == "`" and is_example(self._before(at)):
            # The fence is the opener itself.
            return self._noted(at, opening, _SHOWN, alone=True)
        return opening

    def _closes(self, tail: str, at: int, final: bool) -> bool | None:
        """Return True if tail[at] stands in inline code. None where more text decides."""
        quoting = self._quoting
        if not quoting.ticks and not quoting.in_code(self._feed.base + at):
            return False
        adjacent = self._before(at).endswith("`")
        return quoting.closes(tail, at, self._feed.base, final, adjacent=adjacent)

    def _noted(
        self, at: int, opening: Opening, sign: str, *, alone: bool = False
    ) -> Opening | None:
        """None, for an opener that is an example, once that is noted."""
        self._note_example(at, opening, sign, alone)
        return None

    def _note_example(self, at: int, opening: Opening, sign: str, alone: bool) -> None:
        """Note an opener as an example, so that `why` can tell where a call went.

        sign: where it stands, in words. alone: it says nothing of the lines behind it.
        """
        here = self._feed.base + at
        if sign != _SAID:  # all of such a message is text, up to its own end
            self._shown.begin(here, opening, alone)
        if opening.kind == "call":
            message = f"a call {sign} is an example"
            span = Span(here, here + opening.end)
            problem = Problem("scan", "call.quoted-example", "info", message, "", span)
            self._log.problems.append(problem)

    def _sign(self, tail: str, at: int) -> Literal["", "line", "marks"]:
        """Return the sign before tail[at] that the text beginning there is a quotation."""
        here, start = self._feed.base + at, self._log.text_start
        if here == start:
            return ""
        if at > 1:
            last = tail[at - 2 : at]
        else:
            last = self._feed.text_of(Span(max(start, here - 2), here))
        if last[-1] == "\n" and last[0] not in MARKS:
            return ""
        head = self._line_head(tail, at)
        sign = sign_of(self._before(at), head)
        if sign or not is_indented(head):
            return sign
        # Nobody writes a model's special tokens by hand: indented, they are code only where the
        # words before them say so.
        if _TOKEN.match(tail, at):
            return "line" if is_example(self._before(at)) else ""
        return "line" if self._in_block() else ""

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
        """Return the text before tail[at] as far as it tells of quotation.

        Nothing of an earlier call.
        """
        here = self._feed.base + at
        return self._feed.text_of(Span(max(self._log.text_start, here - WINDOW), here))

    def _line_head(self, tail: str, at: int) -> str:
        """Return the beginning of the line of tail[at]. '' where it begins with something that is
        not text.

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
        """Hold text back that may be a call without its delimiters.

        None when there is none.

        tail: all that is not final, of which only white space stands before the candidate. Returns
        the opener of a format without delimiters, or the decision of recovery.
        """
        stripped = tail.lstrip()
        if not stripped:
            return None
        head = _CHAT_HEAD.match(stripped) if stripped[0] == "<" else None
        if head is not None:
            stripped = stripped[head.end() :]
            # What follows may be a role, and the head a part of a format's opener.
            if _ROLE.startswith(stripped[: len(_ROLE)]):
                return None if final or stripped.startswith(_ROLE) else False
        elif not final and _CHAT_START.startswith(stripped):
            return False
        lead = len(tail) - len(stripped)
        opening, begin = self._undelimited(stripped)
        if isinstance(opening, NeedMore):
            return None if final else False
        if opening is not None:
            self._settle(lead + begin)
            return opening

        # No JSON and no name of a tool begins like this, and nearly every opener does.
        if stripped[0] == "<" or not self._recovers:
            return None
        first = not self._quoting.spoken
        start = self._feed.base + lead
        outcome = self._alone(stripped, final, start, first)
        # A head may begin with the white space before the candidate.
        if isinstance(outcome, NeedMore) and self._setting.partial_start(tail) < lead:
            return False
        return self._settle_outcome(outcome, lead)

    def _hold_again(self, tail: str, final: bool) -> bool | None:
        """Hold an answer back that may be Python's calls with something beside them.

        It was no call without delimiters as a whole.
        """
        if not self._recovers or tail[0] not in self._setting.python_starts:
            return None
        outcome = self._call_lines().line(tail, final, self._feed.base, False, True)
        if not isinstance(outcome, NeedMore):
            self._again = -1
        return self._settle_outcome(outcome, 0)

    def _undelimited(self, text: str) -> tuple[Opening | NeedMore | None, int]:
        """Return the opening of a call without its delimiters, and the offset where it begins.

        An undelimited format competes only where the whole answer begins like it. Behind a call
        another one may begin with its name, and a separator may stand between them.
        """
        envelope, tools = self._setting.protocol.envelope, self._setting.tools
        if not self._quoting.spoken:
            opening = envelope.speculates(text)
            return (envelope.resumes(text, tools) if opening is None else opening), 0
        if text[0] == "<" or not envelope.repeats:
            return None, 0
        separator = _SEPARATOR.match(text)
        begin = separator.end() if separator else 0
        if begin >= len(text):
            return NEED_MORE, 0
        return envelope.resumes_again(text[begin:], tools), begin

    def _alone(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Return the decision of recovery on a line that begins here: a value of JSON, a tool's
        name alone, or Python's calls.

        text: the tail from the line on. at: its offset in raw. first: the answer begins with it.
        """
        if first and text[0] in _MARKS_AROUND:
            return self._in_marks(text, final, at)
        if text[0] in _BRACKETS:
            outcome = self._recover().bare(text, final, at, first)
            # Where the format is bare JSON, words behind a value leave it to the format itself.
            is_own = text[0] in self._setting.heads
            if is_own and isinstance(outcome, Held) and not outcome.alone:
                return None
            if outcome is not None:
                return outcome
        # No name of a tool begins like most texts, and one look says so.
        if text[0] in self._setting.name_heads.starts:
            outcome = self._recover().named(text, final, at, first)
            if outcome is not None:
                return outcome
        if text[0] not in self._setting.python_starts:
            return None
        return self._call_lines().line(text, final, at, False, first)

    def _in_marks(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        """Return the decision on an answer that is one span of code, or one string, as a whole."""
        if text[0] != "`":
            return self._call_lines().quoted(text, final, at)
        run = run_length(text, 0)
        if run > 2 or run == len(text):
            return NEED_MORE if run <= 2 and not final else None
        return self._in_ticks(text, run, final, at)

    def _in_ticks(self, text: str, run: int, final: bool, at: int) -> Held | NeedMore | None:
        """Return the decision on an answer that begins with a span of code in `run` backticks."""
        end = text.find("`", run)
        inner = text[run:] if end < 0 else text[run:end]
        if not inner or inner[0] in _MARKS_AROUND:
            return None
        if end < 0:
            return None if final or self._alone(inner, False, at + run, True) is None else NEED_MORE
        ends = self._ends_answer(text[end:].rstrip(), run)
        if ends is None or not final:
            return None if ends is None else NEED_MORE
        outcome = self._alone(inner, True, at + run, True) if ends else None
        if not isinstance(outcome, Held) or outcome.body is None or outcome.end < len(inner):
            return None
        return replace(outcome, end=end + run)

    @staticmethod
    def _ends_answer(text: str, run: int) -> bool | None:
        """Return True if nothing is behind a run of backticks but a token that ends the turn.

        False where such a token is not whole yet, None for any other text.
        """
        if len(text) < run and not text.strip("`"):
            return False
        rest = text.removeprefix("`" * run).lstrip()
        if rest in ("", *TURN_ENDS):
            return not text.startswith("`" * (run + 1))
        return False if any(token.startswith(rest) for token in TURN_ENDS) else None

    def _hold_line(self, tail: str, pos: int, final: bool) -> bool | None:
        """Hold a line back that may be nothing but a known tool's calls, as JSON or as Python."""
        setting = self._setting
        if not self._recovers or pos >= len(tail):
            return None
        char = tail[pos]
        is_head = char in _BRACKETS or (
            char in setting.python_starts and (char.isalpha() or char == "_")
        )
        # Most lines do not begin with a tool's name, and need no look at what stands before them.
        names = setting.name_heads
        name = None if is_head or char not in names.starts else names.match(tail, pos, final)
        if not is_head and name is None:
            return None
        start = self._feed.base + pos
        if self._quoting.fence or start < self._plain_to or start == self._log.text_start:
            return None
        if isinstance(name, NeedMore):
            self._settle(pos)
            return False
        if _INSIDE_JSON.search(self._before(pos)):
            return None
        outcome = self._alone(tail[pos:], final, start, False)
        return self._settle_outcome(self._unless_shown(outcome, tail, pos, final), pos)

    def _hold_list(self, tail: str, at: int, final: bool) -> bool | None:
        """Hold a list of Python's calls back that stands behind a sentence on its line."""
        quoting = self._quoting
        start = self._feed.base + at
        if quoting.fence or quoting.ticks or start < self._plain_to or not self._recovers:
            return None
        if not _SENTENCE.search(self._before(at)):
            return None
        outcome = self._call_lines().line(tail[at:], final, start, True)
        return self._settle_outcome(self._unless_shown(outcome, tail, at, final), at)

    def _hold_fence(self, tail: str, at: int, run: int, final: bool) -> bool | None:
        """Hold a code fence back that may hold nothing but a known tool's call.

        tail[at] is the first of the `run` backticks that open the fence.
        """
        if self._feed.base + at < self._plain_to or not self._recovers:
            return None
        outcome = self._recover().fenced(tail[at:], run, final, self._feed.base + at)
        if outcome is None and self._setting.reads_python:
            first, here = not self._quoting.spoken, self._feed.base + at
            outcome = self._call_lines().fenced(tail[at:], run, final, here, first)
        return self._settle_outcome(self._unless_shown(outcome, tail, at, final), at)

    def _unless_shown(
        self, outcome: Held | NeedMore | None, tail: str, at: int, final: bool
    ) -> Held | NeedMore | None:
        """Return the outcome for the line or fence at tail[at].

        Text where a call is only shown there.
        """
        if not isinstance(outcome, Held) or outcome.body is None:
            return outcome
        closed = self._closes(tail, at, final)
        if closed is None:
            return NEED_MORE
        if self.is_of_other_tool(outcome.decoded, self._before(at)):
            return Held(outcome.end)
        if self._shown.goes_on(self._feed.base + at, self._log.text_start):
            alone = self._shown.alone
        else:
            sign = "marks" if closed else self._sign(tail, at)
            if not sign and not self._is_introduced(at):
                return outcome
            alone = sign != "marks"
        self._note_example(at, Opening(outcome.end, whole=True), _SHOWN, alone)
        return Held(outcome.end)

    def is_of_other_tool(self, calls: Iterable[Decoded | ToolCall], before: str) -> bool:
        """Return True if the last line before some calls ends with the name of another tool.

        The JSON after it is what that tool was given, and no call of the tool that it names.
        """
        name = self._last_word(before)
        if name not in self._setting.tools:
            return False
        return any(call.name != name for call in calls)

    def _last_word(self, before: str) -> str:
        """Return the last word of a text, without signs after it."""
        line = _MARKER_END.sub("", before.rstrip().rpartition("\n")[2])
        words = line.rstrip(" \t`*\"':(=>-").split()
        word = re.split(r"[<>|\]\[{`*\"'.#(=]", words[-1])[-1] if words else ""
        # An opener without a bracket is glued to the name: `functoolsget_tide`.
        heads = (head for head in self._setting.heads if word.startswith(head))
        return word.removeprefix(max(heads, key=len, default=""))

    def _is_introduced(self, at: int) -> bool:
        """Return True if the text before a line or a fence at tail[at] makes it an example.

        So does code in as many ticks as a fence's of which only a line break parts it.
        """
        before = self._before(at)
        if is_example(before) or goes_on_lazily(before) or _QUOTED_FENCE.search(before):
            return True
        end = self._quoting.block_end
        here = self._feed.base + at
        if not self._log.text_start < end <= here <= end + LINE_HEAD:
            return False
        gap = self._feed.text_of(Span(end, here))
        return gap.isspace() and gap.count("\n") == 1

    def _recover(self) -> Recovery:
        """Return the recovery of this text."""
        if self._recovery is None:
            setting = self._setting
            self._recovery = Recovery(setting.protocol, setting.resolver, setting.heads)
        return self._recovery

    def _call_lines(self) -> CallLines:
        """Return the judge of Python's calls outside their format."""
        if self._python is None:
            setting = self._setting
            self._python = CallLines(setting.protocol, setting.resolver, setting.heads)
        return self._python

    def _settle_outcome(self, outcome: Held | NeedMore | None, lead: int) -> bool | None:
        """Settle the decision of recovery of the text behind the first `lead` characters.

        Calls become a segment of the kind 'recovered'. Plain text is left to the next scan, which
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
            self.remember().suspect(start + outcome.lead, stop, ends_in_value)
            return True
        self.end(start)
        if log.message_end is not None and log.turn_end is None:
            log.turn_end = log.message_end[0]
        segment = Segment("recovered", Span(start, end), outcome.body)
        calls = self._recover().calls(outcome, segment, len(log.segments), len(log.calls))
        if self.given_up is not None and self.given_up.quotes(start, end):
            calls = tuple(map(as_draft, calls))
        log.recovered(segment, calls)
        feed.take(outcome.end)
        self._fresh = True
        self._quoting.spoken = True
        return True


def _is_in_bracket(line: str) -> bool:
    return any(line.count(opener) > line.count(closer) for opener, closer in ("()", "[]", "{}"))


def _tag_at(tail: str, at: int, final: bool, tags: tuple[str, ...]) -> str | NeedMore | None:
    """Return the tag at `tail[at]`; NEED_MORE where one may be coming, None where none is."""
    for tag in tags:
        if tail.startswith(tag, at):
            return tag
    rest = tail[at:] if not final and len(tail) - at < _LONGEST_THINK_TAG else ""
    return NEED_MORE if rest and any(tag.startswith(rest) for tag in tags) else None
