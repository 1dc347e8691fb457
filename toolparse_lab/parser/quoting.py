"""Quoted code in an answer's text: an opener inside it is an example, not a call.

Follows Markdown as far as models write it: code fences at the beginning of a line, inline code
within one. State of one text under way. The text scanner reports words, line breaks and runs of
backticks as it reads them.
"""

# How it works
# ------------
# State: a position is in a fence (`fence`), in inline code (`ticks`), both lengths of the run of
# backticks that opened it, or in plain text. Inline code ends with its line, a fence does not.
# A fence with nothing visible before it may be all of the answer, and hold a call; `_lone` follows
# it: from the fence's own line (_FENCE_LINE) to the lines inside (_INSIDE), until a word is there.
#
# Invariant: only what is settled is reported here, so that the state never has to go back, except
# for a call that was none (`no_call`).
#
# Cost: a report is a few assignments. Looking for the end of inline code is done once for all
# openers in it, since `_quote` remembers the answer.

from __future__ import annotations

import re

LONG_RUN = 256  # a longer run of backticks counts as several, so that it need not be held back
_BLANK_LINE_OR_TICKS = re.compile(rf"\n[ \t\r]*(?=\n)|`{{1,{LONG_RUN}}}")
_RUN_OF_TICKS = re.compile(rf"`{{1,{LONG_RUN}}}")
_MAY_BE_BLANK_LINE = re.compile(r"\n[ \t\r]*\Z")
_NOT, _FENCE_LINE, _INSIDE = range(3)


class Quoting:
    """The position in a text: in a fence, in inline code, at the beginning of a line."""

    __slots__ = (
        "_fence_line",
        "_lone",
        "_quote",
        "_searched",
        "blank",
        "block_end",
        "fence",
        "line_at",
        "spoken",
        "ticks",
    )

    def __init__(self) -> None:
        """Begin at the first line of a text, outside any code."""
        self.spoken = False  # something visible came, be it text or a call
        self.blank = True  # only white space on this line
        self.fence = 0  # length of the run of backticks that opened a code fence
        self.ticks = 0  # length of the run that may have opened inline code in this paragraph
        self.line_at = 0  # the offset in raw where this line begins
        self.block_end = 0  # in raw, behind the last inline code in as many ticks as a fence's
        self._fence_line = False  # still on the line that opened the fence
        self._lone = _NOT  # progress in a code fence with nothing visible before it
        # Between the two offsets nothing ends the inline code; the third says whether it is closed
        # behind them.
        self._quote = (0, 0, False)
        # An offset in raw whose inline code is being looked for, and how far that was done.
        self._searched = (-1, 0)

    @property
    def lone_fence(self) -> bool:
        """In a fence with nothing visible before it, nor in it so far."""
        return self._lone == _INSIDE

    def word(self) -> None:
        """Note that something that is not a white space was read as text.

        A lone fence with a word in it is an example, not the answer.
        """
        self.blank = False
        self.spoken = True
        if self._lone == _INSIDE:
            self._lone = _NOT

    def line(self, end: int) -> None:
        """Note that a line break was read, which ends at an offset in raw.

        Inline code goes on over a line break, but as in Markdown never over a blank line: an
        unmatched backtick must not hide the calls of all later lines.
        """
        if self.blank and not self.in_code(end):
            self.ticks = 0
        self.blank = True
        self.line_at = end
        self._fence_line = False
        if self._lone == _FENCE_LINE:
            self._lone = _INSIDE

    def call(self) -> None:
        """Note that a call was read."""
        self.blank = False
        self.spoken = True

    def no_call(self) -> None:
        """Note that text like a call was text.

        So its fence, if it was in one, is an example.
        """
        self.spoken = True
        self._lone = _NOT

    def in_code(self, at: int) -> bool:
        """Return True if an offset in raw is known to stand in inline code."""
        begin, end, closed = self._quote
        return closed and begin <= at < end

    def backticks(self, run: int, at: int) -> None:
        """Note that a run of `run` backticks was read at an offset in raw.

        A run of at least three at the beginning of a line opens a fence, and one at least as long
        closes it. Within a line, runs of the same length open and close inline code. One inside
        inline code that was looked through does neither.
        """
        begin, end, closed = self._quote
        if closed and begin <= at <= end:
            if at == end:
                self._end_code(run, at)
        elif self.fence:
            # Backticks on the fence's own line: it was inline code. Else a run that is long enough
            # closes the fence, at the beginning of a line.
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
        elif self.ticks == run:
            self._end_code(run, at)

        self.word()

    def _end_code(self, run: int, at: int) -> None:
        """Note the run of backticks that ends inline code."""
        self.ticks = 0
        if run >= 3:
            self.block_end = at + run

    def closes(self, tail: str, at: int, base: int, final: bool, *, adjacent: bool) -> bool | None:
        """Return True if the inline code around `tail[at]` is closed.

        None = not known yet.

        `base` is the offset in raw of `tail[0]`. adjacent: a backtick stands right before. Then the
        code is about the opener, and blank lines do not end the search.

        Asked at an opener. If the code stays open, the backtick before was a lone one, and the
        opener counts.
        """
        here = base + at
        begin, end, closed = self._quote
        if begin <= here < end:
            return closed
        quote_end = self._quote_end(tail, at, base, final, adjacent)
        if quote_end is None:
            return None
        end, closed = quote_end
        self._quote = (here, base + end, closed)
        return closed

    def _quote_end(
        self, tail: str, at: int, base: int, final: bool, adjacent: bool
    ) -> tuple[int, bool] | None:
        """Return the end in `tail` of the paragraph or its inline code, and True if it is the
        code's.

        None if the tail ends before it, or in something that may go on. Everything looked at in
        vain is not looked at again when the tail has grown.
        """
        here, searched = self._searched
        start = max(at, searched - base) if here == base + at else at
        line = None if final else _MAY_BE_BLANK_LINE.search(tail, start)
        stop = line.start() if line else len(tail)
        for match in _BLANK_LINE_OR_TICKS.finditer(tail, start):
            run = 0 if match[0][0] == "\n" else len(match[0])
            if not final and match.end() == len(tail) and run < LONG_RUN:
                stop = min(stop, match.start())
                break
            # Behind a body that ends with a fence of its own, the two runs are one.
            if run == self.ticks or (adjacent and run == self.ticks + 3):
                return match.start(), True
            if not run and not adjacent:
                return match.start(), False

        self._searched = base + at, base + stop
        return (len(tail), False) if final else None


def run_length(text: str, at: int) -> int:
    """Return the number of backticks at `at`, or `LONG_RUN` if there are more."""
    run = _RUN_OF_TICKS.match(text, at)
    return len(run[0]) if run else 0
