"""The rest of a quotation: what follows an opener that was quoted, as far as it is quoted with it.

A quotation may hold a whole section of calls. Only its first opener stands behind the sign.
"""

# How it works
# ------------
# State: `end` is behind the last opener that was only shown (0 = there was none), `_opening` that
# opener, `alone` True if its sign counts for its own line alone, as `>` does. A body may hold calls
# that are candidates by themselves, such as bare JSON: `_inner` is where one may begin, and
# `_reach` the offset behind the last (0 = there was none).
#
# A place belongs to the same quotation if the body of that opener ends before it, and nothing but
# white space, separators and closers stands between. Behind a mark of quotation there may be words
# as well, if no mark closes it and the paragraph does not end.
#
# Invariant: every answer is a function of the text up to the place that is asked about.
#
# Cost: nothing before the first opener that is shown. Then the text between two openers is scanned
# once: `_answer` keeps the answer about the last place, and each opener shown is a new beginning.

from __future__ import annotations

import re
from collections.abc import Callable

from ..core.types import Span
from ..formats.base import Opening
from ..formats.scan import Close
from .quotation import LINE_HEAD, closes_marks
from .setting import Setting

# A body may begin with a code fence of its own.
_NOTHING = re.compile(r"\s*(?:`{3,}\w{1,16}[ \t\r]*\n\s*)?\Z")
_SEPARATORS = re.compile(r"[\s,;]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


class Shown:
    """Remembers the last opener of one text that was only shown."""

    __slots__ = (
        "_answer",
        "_inner",
        "_opening",
        "_reach",
        "_setting",
        "_start",
        "_text_of",
        "alone",
        "end",
    )

    def __init__(self, setting: Setting, text_of: Callable[[Span], str]) -> None:
        """Begin with no opener. text_of: the characters of a span of raw."""
        self._setting = setting
        self._text_of = text_of
        self.end = 0
        self._start = 0
        self.alone = False
        self._opening: Opening | None = None
        self._answer = (-1, False)
        self._inner = -1
        self._reach = 0

    def begin(self, at: int, opening: Opening, alone: bool) -> None:
        """Note an opener at an offset in raw.

        alone: its sign counts for its own lines alone.

        One inside the beginning of another call, or right behind it, is a part of that.
        """
        if at == self._inner and (opening.whole or self._reach <= self.end):
            self._reach = at + opening.end if opening.whole else 0
            return
        if self._start < at < self.end and at + opening.end <= self.end:
            self.alone = self.alone and alone
            return
        self._start, self.end = at, at + opening.end
        self._opening, self.alone = opening, alone

    def goes_on(self, at: int, start: int, markup: int = 0) -> bool:
        """Return True if what begins at an offset in raw belongs to the last opener's quotation.

        start: where the text began, behind the last segment that is no text. markup: the length of
        what stands there, if it is markup: that may be the closer of what is shown.
        """
        if not start <= self._start < at:
            return False
        if at < self.end:
            return True
        if self._answer[0] != at:
            self._answer = at, self._goes_on(at, markup)
        return self._answer[1]

    def _goes_on(self, at: int, markup: int) -> bool:
        """Return True if an offset in raw, behind the last opener, is quoted with it."""
        opening, size = self._opening, at - self.end
        if self._reach > self.end and self._text_of(Span(self._reach, at)).isspace():
            self._inner = at
            return True
        text = self._text_of(Span(self.end, at + markup))
        # The mark right behind an opener ends the quotation of a name.
        if opening is None or closes_marks(text[: min(1, size)]):
            return False
        # Right behind the opener, as a block's first function behind the block's opener.
        if not opening.whole and self._is_inner(text[:size]):
            if opening.kind == "call":
                self._inner = at
            return True
        end = self._body_end(opening, text)
        if end is None or end > size:
            return end is not None
        return self._spans(text[end:size])

    def body_end(self, until: int) -> int:
        """Return the offset behind the body of the last opener, 0 if it is open at `until`."""
        opening = self._opening
        if opening is None or not self._start < until:
            return 0
        end = self._body_end(opening, self._text_of(Span(self.end, until)))
        return 0 if end is None else self.end + end

    def _is_inner(self, gap: str) -> bool:
        """Return True if nothing but the openers of inner blocks is behind an opener."""
        heads = self._setting.heads
        while gap and len(gap) <= 4 * LINE_HEAD:
            if _NOTHING.match(gap):
                return len(gap) <= 2 * LINE_HEAD
            gap = gap.lstrip()
            head = max((h for h in heads if gap.startswith(h)), key=len, default="")
            if not head:
                return False
            gap = gap[len(head) :]
        return not gap

    def _spans(self, gap: str) -> bool:
        """Return True if the quotation goes on over the text between two of its calls."""
        closers = self._setting.closers
        rest = closers.sub("", gap) if closers is not None else gap
        if _SEPARATORS.match(rest):
            return not self.alone or not _BLANK_LINE.search(gap)
        return not self.alone and not _BLANK_LINE.search(gap) and not closes_marks(gap)

    def _body_end(self, opening: Opening, text: str) -> int | None:
        """Return the offset behind an opener's body in the text behind it. None if it is open."""
        if opening.whole or opening.kind != "call":
            return 0
        envelope = (opening.owner or self._setting.protocol).envelope
        scanner = envelope.scanner(opening, self._setting.tools)
        step = scanner.scan(text, True)
        close = step if isinstance(step, Close) else scanner.finish()
        return None if close is None else close.end
