"""Code fences and inline code: where the scanner is in one, and which openers are only shown."""

# How it works
# ------------
# Marks of quotation are found in the text before an opener (`quotes`). Backticks depend on the text
# after them as well, so `Quoting` tracks them: the text scanner reports words, line breaks and runs
# of backticks as it reads them. Markdown counts as far as models write it: fences at the beginning
# of a line, inline code within one.
#
# State: `fence` and `ticks` are the lengths of the backtick runs that opened a fence or inline
# code, 0 outside. Inline code ends with its paragraph, a fence does not. A fence with nothing
# visible before it may be the whole answer and contain a call; `_lone` tracks it:
#
#     state         word     line break   end of the fence
#     _NOT          _NOT     _NOT         _NOT        (a fence opens it where nothing was said)
#     _FENCE_LINE   stays    _INSIDE      _NOT
#     _INSIDE       _NOT     _INSIDE      _NOT
#
# Invariant: only settled text is reported, so the state never goes back, except after a failed
# speculation (`no_call`). Every answer is a function of the text up to its place.
#
# Cost: a report is a few assignments. The end of inline code is searched once for all openers in it
# (`_quote`).

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from ...core.types import Problem, Span
from ...formats.base import NEED_MORE, NeedMore, Opening
from ..state import Feed, Log, Setting
from .quoted_sections import Shown
from .quotes import (
    LINE_HEAD,
    LONG_RUN,
    MARKS,
    WINDOW,
    goes_on_lazily,
    introduces_block,
    is_example,
    is_indented,
    sign_of,
)

_BLANK_LINE_OR_TICKS = re.compile(rf"\n[ \t\r]*(?=\n)|`{{1,{LONG_RUN}}}")
_MAY_BE_BLANK_LINE = re.compile(r"\n[ \t\r]*\Z")
_TOKEN = re.compile(r"<[|\uff5c]|\[[A-Z_]{4,24}\]|\]<\]")
# A fence in quotation marks, which is no fence by its place, and nothing that closes the marks.
_QUOTED_FENCE = re.compile(r"[\"'“„«]```(?!.*```[ \t]*[\"'”»])", re.DOTALL)
_NOT, _FENCE_LINE, _INSIDE = range(3)
# Signs of an example, as the sentence about it names them.
_IN_CODE = "inside quoted code"
_QUOTED = "inside a quotation"
SHOWN = "introduced as one"
SAID = "in a message that is text"


class Quoting:
    """Tracks what quotes the scanner's position in a text."""

    def __init__(self, setting: Setting, feed: Feed, log: Log) -> None:
        self._setting = setting
        self._feed = feed
        self._log = log
        self.spoken = False  # something visible came, be it text or a call
        self.blank = True  # only white space on this line
        self.fence = 0  # length of the run of backticks that opened a code fence
        self.ticks = 0  # length of the run that may have opened inline code in this paragraph
        self.line_at = 0  # the offset in raw where this line begins
        self.block_end = 0  # in raw, after the last inline code in as many ticks as a fence's
        self.shown: Shown | None = None
        self._fence_line = False  # still on the line that opened the fence
        self._lone = _NOT  # progress in a code fence with nothing visible before it
        # Between the two offsets nothing ends the inline code; the third says whether it is closed
        # after them.
        self._quote = (0, 0, False)
        # An offset in raw whose inline code is being looked for, and how far that was done.
        self._searched = (-1, 0)
        self._block = (-1, False)  # an indented line, and True in a block of code
        self._line = (-1, "")  # where a line begins, and its first characters

    @property
    def is_open(self) -> bool:
        """True if something before this place may make an example of an opener here."""
        return bool(self.fence or self.ticks or (self.shown is not None and self.shown.end))

    # what the text scanner reports

    def word(self) -> None:
        """Something that is not white space was read as text."""
        self.blank = False
        self.spoken = True
        if self._lone == _INSIDE:
            self._lone = _NOT

    def line(self, end: int) -> None:
        """A line break was read, which ends at an offset in raw."""
        # Inline code goes on over a line break, but as in Markdown never over a blank line: an
        # unmatched backtick must not hide the calls of all later lines.
        if self.blank and self.ticks and not self._in_code(end):
            self.ticks = 0
        self.blank = True
        self.line_at = end
        self._fence_line = False
        if self._lone == _FENCE_LINE:
            self._lone = _INSIDE

    def no_call(self) -> None:
        """Text like a call was text. So its fence, if it was in one, is an example."""
        self.spoken = True
        self._lone = _NOT

    def backticks(self, run: int, at: int) -> None:
        """A run of `run` backticks was read at an offset in raw."""
        begin, end, closed = self._quote
        ends_code = False
        if closed and begin <= at <= end:
            # Inside inline code that was looked through it is nothing.
            ends_code = at == end
        elif self.fence:
            # Backticks on the fence's own line: it was inline code. Else a run that is at least as
            # long closes the fence, at the beginning of a line.
            if self._fence_line or (self.blank and run >= max(3, self.fence)):
                self.fence = 0
                self._lone = _NOT
        elif run >= 3 and self.blank and self.ticks != run:
            self.fence = run
            self.ticks = 0
            self._fence_line = True
            self._lone = _NOT if self.spoken else _FENCE_LINE
        elif not self.ticks:
            self.ticks = run
        else:
            ends_code = self.ticks == run
        if ends_code:
            self.ticks = 0
            if run >= 3:
                self.block_end = at + run
        self.word()

    # an opener, or a call outside its format, at tail[at]

    def unless_quoted(
        self, tail: str, at: int, opening: Opening, final: bool
    ) -> Opening | NeedMore | None:
        """Return the opener unless it is an example, which is noted. NEED_MORE where the inline
        code around it may still be closed.
        """
        if self.fence:
            if opening.kind != "call":
                return opening
            # An example in a code fence is no call; but a fence may be all that the model says.
            if self._lone == _INSIDE:
                return replace(opening, speculative=True)
            self.note_example(at, opening, _IN_CODE)
            return None
        closed = self.closes(tail, at, final)
        if closed is None:
            return NEED_MORE
        if closed:
            self.note_example(at, opening, _IN_CODE)
            return None

        sign = self.sign(tail, at)
        if sign or self._shown_goes_on(at, opening.end if opening.kind == "markup" else 0):
            alone = sign == "line" if sign else self.shown is not None and self.shown.alone
            self.note_example(at, opening, _QUOTED, alone=alone)
            return None
        if tail[at] == "`" and is_example(self.before(at)):
            # The fence is the opener itself.
            self.note_example(at, opening, SHOWN, alone=True)
            return None
        return opening

    def shows(self, tail: str, at: int, end: int, closed: bool) -> bool:
        """Return True for calls outside their format, tail[at:end], that are an example, which is
        noted. closed: in inline code.
        """
        if self._shown_goes_on(at):
            alone = self.shown is not None and self.shown.alone
        else:
            sign = "marks" if closed else self.sign(tail, at)
            if not sign and not self._is_introduced(at):
                return False
            alone = sign != "marks"
        self.note_example(at, Opening(end, whole=True), SHOWN, alone=alone)
        return True

    def note_example(self, at: int, opening: Opening, sign: str, *, alone: bool = False) -> None:
        """Note an opener as an example, so that `why` can tell where a call went.

        sign: where it is, in words. alone: it says nothing of the lines after it.
        """
        here = self._feed.base + at
        if sign != SAID:  # all of such a message is text, up to its own end
            if self.shown is None:
                self.shown = Shown(self._setting, self._feed)
            self.shown.begin(here, opening, alone)
        if opening.kind == "call":
            message = f"a call {sign} is an example"
            span = Span(here, here + opening.end)
            problem = Problem("scan", "call.quoted-example", "info", message, "", span)
            self._log.problems.append(problem)

    def _shown_goes_on(self, at: int, markup: int = 0) -> bool:
        here, start = self._feed.base + at, self._log.text_start
        return self.shown is not None and self.shown.goes_on(here, start, markup)

    def _in_code(self, at: int) -> bool:
        # An offset in raw is known to be in inline code.
        begin, end, closed = self._quote
        return closed and begin <= at < end

    def closes(self, tail: str, at: int, final: bool) -> bool | None:
        """Return True if tail[at] is in inline code that is closed, None where more text decides.

        If the code stays open, the backtick before was a lone one, and the opener counts.
        """
        base = self._feed.base
        here = base + at
        if not self.ticks and not self._in_code(here):
            return False
        begin, end, closed = self._quote
        if begin <= here < end:
            return closed
        # With a backtick right before, the code is about the opener, and blank lines do not end
        # the search.
        quote_end = self._quote_end(tail, at, base, final, self.before(at).endswith("`"))
        if quote_end is None:
            return None
        end, closed = quote_end
        self._quote = (here, base + end, closed)
        return closed

    def _quote_end(
        self, tail: str, at: int, base: int, final: bool, adjacent: bool
    ) -> tuple[int, bool] | None:
        # The end in `tail` of the paragraph or its inline code, and True if it is the code's. None
        # if the tail ends before it, or in something that may go on. What was looked at in vain is
        # not looked at again when the tail has grown.
        here, searched = self._searched
        start = max(at, searched - base) if here == base + at else at
        line = None if final else _MAY_BE_BLANK_LINE.search(tail, start)
        stop = line.start() if line else len(tail)
        for match in _BLANK_LINE_OR_TICKS.finditer(tail, start):
            run = 0 if match[0][0] == "\n" else len(match[0])
            if not final and match.end() == len(tail) and run < LONG_RUN:
                stop = min(stop, match.start())
                break
            # After a body that ends with a fence of its own, the two runs are one.
            if run == self.ticks or (adjacent and run == self.ticks + 3):
                return match.start(), True
            if not run and not adjacent:
                return match.start(), False

        self._searched = base + at, base + stop
        return (len(tail), False) if final else None

    def sign(self, tail: str, at: int) -> Literal["", "line", "marks"]:
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
        head = self._line_head(at)
        sign = sign_of(self.before(at), head)
        if sign or not is_indented(head):
            return sign
        # Nobody writes a model's special tokens by hand: indented, they are code only where the
        # words before them say so.
        if _TOKEN.match(tail, at):
            return "line" if is_example(self.before(at)) else ""
        return "line" if self._in_block() else ""

    def _in_block(self) -> bool:
        # This line, which is indented, is one of a block of code that words introduce. The text is
        # looked at backwards, to the line before the block or to the last line that was asked
        # about, so that no line is looked at for every opener after it.
        line_at = self.line_at
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

    def before(self, at: int) -> str:
        # The text before tail[at] as far as it tells of quotation, nothing of an earlier call.
        here = self._feed.base + at
        return self._feed.text_of(Span(max(self._log.text_start, here - WINDOW), here))

    def _line_head(self, at: int) -> str:
        # '' where the line of tail[at] begins with something that is not text. Looked up once a
        # line: the line may be long.
        start = self.line_at
        if start < self._log.text_start:
            return ""
        line, head = self._line
        if line != start:
            head = self._feed.text_of(Span(start, min(start + LINE_HEAD, self._feed.base + at)))
            if self._feed.base + at - start >= LINE_HEAD:
                self._line = start, head
        return head

    def _is_introduced(self, at: int) -> bool:
        # The text before a line or a fence makes it an example. So does code in as many ticks as a
        # fence's of which only a line break parts it.
        before = self.before(at)
        if is_example(before) or goes_on_lazily(before) or _QUOTED_FENCE.search(before):
            return True
        end = self.block_end
        here = self._feed.base + at
        if not self._log.text_start < end <= here <= end + LINE_HEAD:
            return False
        gap = self._feed.text_of(Span(end, here))
        return gap.isspace() and gap.count("\n") == 1
