"""Quoted code in an answer's text: an opener inside it is an example, not a call.

Follows Markdown as far as models write it: code fences at the beginning of a line, inline code within one. State of
one text under way; the engine tells it of words, line breaks and runs of backticks as it reads them.
"""

from __future__ import annotations

import re

LONG_RUN = 256  # a longer run of backticks counts as several, so that it need not be held back
_LINE_OR_TICKS = re.compile(rf"\n|`{{1,{LONG_RUN}}}")
_NOT, _FENCE_LINE, _INSIDE = range(3)


class Quoting:
    """Where the text stands: in a fence, in inline code, at the beginning of a line."""

    __slots__ = ("_fence_line", "_lone", "_quote", "blank", "fence", "spoken", "ticks")

    def __init__(self) -> None:
        self.spoken = False  # something visible was said, be it text or a call
        self.blank = True  # only white space on this line
        self.fence = 0  # length of the run of backticks that opened a code fence
        self.ticks = 0  # length of the run that may have opened inline code on this line
        self._fence_line = False  # still on the line that opened the fence
        self._lone = _NOT  # where we are in a code fence before which nothing was said
        self._quote = (0, 0, False)  # between these offsets nothing ends the inline code that ends, or not, behind them

    @property
    def lone_fence(self) -> bool:
        """In a fence that is all that was said so far, and says nothing itself yet."""
        return self._lone == _INSIDE

    def word(self) -> None:
        """Something that is no white space was read as text."""
        self.blank = False
        self.spoken = True
        if self._lone == _INSIDE:
            self._lone = _NOT

    def line(self) -> None:
        """A line break was read."""
        self.blank = True
        self.ticks = 0
        self._fence_line = False
        if self._lone == _FENCE_LINE:
            self._lone = _INSIDE

    def call(self) -> None:
        """A call was read."""
        self.blank = False
        self.spoken = True

    def no_call(self) -> None:
        """What looked like a call was text."""
        self.spoken = True
        self._lone = _NOT

    def backticks(self, run: int) -> None:
        """A run of backticks was read."""
        if self.fence and self._fence_line:
            self.fence, self._lone = 0, _NOT  # backticks on the fence's own line: it was inline code
        elif run >= 3 and self.blank:
            if not self.fence:
                self.fence, self._lone = run, _NOT if self.spoken else _FENCE_LINE
                self._fence_line = True
            elif run >= self.fence:
                self.fence, self._lone = 0, _NOT
        elif not self.fence:
            self.ticks = 0 if self.ticks == run else self.ticks or run
        self.word()

    def closes(self, tail: str, at: int, base: int, final: bool) -> bool | None:
        """Whether the inline code around `tail[at]` is closed on its line; None = not known yet.

        `base` is the offset in raw of `tail[0]`.
        """
        here = base + at
        begin, end, closed = self._quote
        if not begin <= here < end:
            found = self._quote_end(tail, at, base, final)
            if found is None:
                return None
            end, closed = found
            self._quote = (here, end, closed)
        return closed

    def _quote_end(self, tail: str, at: int, base: int, final: bool) -> tuple[int, bool] | None:
        """Where the line or its inline code ends, and whether the code is closed there; None = not known yet."""
        for m in _LINE_OR_TICKS.finditer(tail, at):
            if m[0] == "\n":
                return base + m.start(), False
            if m.end() == len(tail) and not final and len(m[0]) < LONG_RUN:
                return None
            if len(m[0]) == self.ticks:
                return base + m.start(), True
        return (base + len(tail), False) if final else None


def run_length(text: str, at: int) -> int:
    """How many backticks stand at `at`."""
    end = at
    while end < len(text) and text[end] == "`":
        end += 1
    return end - at
