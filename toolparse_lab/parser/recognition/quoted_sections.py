"""The last opener that was only shown, and the calls that belong to the same quotation."""

# How it works
# ------------
# State: `end` is after the last shown opener, `_opening` is that opener, and `alone` is True if its
# sign counts for its own line alone, as `>` does. A body may contain calls that are candidates by
# themselves, such as bare JSON: `_inner` is where one may begin, `_reach` the offset after the last
# (0: none yet). A place belongs to the quotation if the opener's body ends before it and only white
# space, separators and closers are between. After a mark of quotation words may be between as well,
# until a mark closes it or the paragraph ends.
#
# Cost: the text between two shown openers is scanned once (`_answer`).

from __future__ import annotations

import re

from ...core.types import Span
from ...formats.base import Opening
from ...formats.scan import Close
from ..state import Feed, Setting
from .quotes import LINE_HEAD

# A mark or a backtick may end a quotation; an apostrophe inside a word does not.
_CLOSES = re.compile("[\"`\u201d\u201c\u00bb\u300d\u300f]|(?<!\\w)['\u2019]|['\u2019](?!\\w)")
# A body may begin with a code fence of its own.
_NOTHING = re.compile(r"\s*(?:`{3,}\w{1,16}[ \t\r]*\n\s*)?\Z")
_SEPARATORS = re.compile(r"[\s,;]*\Z")
_BLANK_LINE = re.compile(r"\n[ \t\r]*\n")


class Shown:
    """The last shown opener of one text."""

    def __init__(self, setting: Setting, feed: Feed) -> None:
        self._setting = setting
        self._feed = feed
        self.end = 0
        self._start = 0
        self.alone = False
        self._opening: Opening | None = None
        self._answer = (-1, False)
        self._inner = -1
        self._reach = 0

    def begin(self, at: int, opening: Opening, alone: bool) -> None:
        """Note an opener at an offset in raw. alone: its sign counts for its own lines alone."""
        # One inside the beginning of another call, or right after it, is a part of that.
        if at == self._inner and (opening.whole or self._reach <= self.end):
            self._reach = at + opening.end if opening.whole else 0
            return
        if self._start < at < self.end and at + opening.end <= self.end:
            self.alone = self.alone and alone
            return
        self._start, self.end = at, at + opening.end
        self._opening, self.alone = opening, alone

    def goes_on(self, at: int, start: int, markup: int) -> bool:
        """Return True if what begins at an offset in raw belongs to the last opener's quotation.

        start: where the text began, after the last segment that is no text. markup: the length of
        what is there, if it is markup: that may be the closer of what is shown.
        """
        if not start <= self._start < at:
            return False
        if at < self.end:
            return True
        if self._answer[0] != at:
            self._answer = at, self._goes_on(at, markup)
        return self._answer[1]

    def _goes_on(self, at: int, markup: int) -> bool:
        opening, size = self._opening, at - self.end
        text_of = self._feed.text_of
        if self._reach > self.end and text_of(Span(self._reach, at)).isspace():
            self._inner = at
            return True
        text = text_of(Span(self.end, at + markup))
        # The mark right after an opener ends the quotation of a name.
        if opening is None or _CLOSES.search(text[: min(1, size)]):
            return False
        # Right after the opener, as a block's first function after the block's opener.
        if not opening.whole and self._is_inner(text[:size]):
            if opening.kind == "call":
                self._inner = at
            return True
        end = self._body_end(opening, text)
        if end is None or end > size:
            return end is not None
        gap = text[end:size]
        closers = self._setting.closers
        rest = closers.sub("", gap) if closers is not None else gap
        if _SEPARATORS.match(rest):
            return not (self.alone and _BLANK_LINE.search(gap))
        return not (self.alone or _BLANK_LINE.search(gap) or _CLOSES.search(gap))

    def body_end(self, until: int) -> int:
        """Return the offset after the body of the last opener, 0 if it is open at `until`."""
        opening = self._opening
        if opening is None or not self._start < until:
            return 0
        end = self._body_end(opening, self._feed.text_of(Span(self.end, until)))
        return 0 if end is None else self.end + end

    def _is_inner(self, gap: str) -> bool:
        # Nothing but the openers of inner blocks is after an opener.
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

    def _body_end(self, opening: Opening, text: str) -> int | None:
        # In the text after the opener, None if the body is open.
        if opening.whole or opening.kind != "call":
            return 0
        envelope = (opening.owner or self._setting.protocol).envelope
        scanner = envelope.scanner(opening, self._setting.tools)
        step = scanner.scan(text, True)
        close = step if isinstance(step, Close) else scanner.finish()
        return None if close is None else close.end
