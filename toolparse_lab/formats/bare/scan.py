"""If a body of bare objects ends: at a closer outside of texts, or behind its bracket."""

# How it works
#
# State: inside a text or not, and the level of brackets of a call that has no opener before it:
# only such a call may end behind its bracket, where no closer follows.
#
# Invariant: what may become a quote or a delimiter is held back, so the chunking decides nothing.
#
# Cost: one search for each quote, bracket and delimiter.

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import Close, any_of, partial_start
from .form import BareForm

_SPACE = re.compile(r"[ \t\r\n]{0,16}+")


@lru_cache(maxsize=16)
def _outside(form: BareForm) -> re.Pattern[str]:
    quote, closer = re.escape(form.quote), re.escape(form.closer)
    stops = any_of((form.opener, *form.ends))
    return re.compile(
        rf"(?P<quote>{quote})|(?P<close>{closer})|(?P<open>{stops})|(?P<bracket>[{{}}()\[\]])"
    )


class BareBody:
    """Ends at the closer, or in front of the next opener or the end of the answer.

    lone: the body has no opener before it, and ends behind the bracket of its call where no closer
    follows it.
    """

    __slots__ = ("_at", "_form", "_hidden", "_level", "_literals", "_lone", "in_text")

    def __init__(self, form: BareForm, *, lone: bool = False) -> None:
        self._form = form
        self._literals = (form.quote, form.closer, form.opener, *form.ends)
        self._lone = lone
        self._at = 0
        self._level = 0
        self.in_text = False
        self._hidden: tuple[int, int] | None = None  # the first closer inside the open text

    def finish(self) -> Close | None:
        if self.in_text and self._hidden is not None:
            return Close(*self._hidden, "rescued")
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        stop_at = len(tail) if final else partial_start(tail, self._literals)
        while True:
            if self.in_text:
                pos, is_over = self._end_text(tail, pos, stop_at)
                if is_over:
                    return self._settle(pos)

            match = _outside(self._form).search(tail, pos)
            if match is None or match.start() >= stop_at:
                return self._settle(max(pos, stop_at))
            start, pos = match.span()
            if match["quote"]:
                self.in_text = True
                self._hidden = None
            elif match["bracket"]:
                close = self._bracket(tail, match, final)
                if close is not None:
                    return close
            else:
                if match["close"]:
                    return Close(self._at + start, self._at + pos, "closer")
                return Close(self._at + start, self._at + start, "implicit")

    def _end_text(self, tail: str, pos: int, stop_at: int) -> tuple[int, bool]:
        # (offset after the text's end, False), or (the final part, True) if it goes on
        end = tail.find(self._form.quote, pos)
        stop = end if end >= 0 else stop_at
        at = tail.find(self._form.closer, pos, max(pos, stop))
        if at >= 0 and self._hidden is None:
            self._hidden = (self._at + at, self._at + at + len(self._form.closer))
        if end < 0:
            return max(pos, stop_at), True
        self.in_text = False
        return end + len(self._form.quote), False

    def _bracket(self, tail: str, match: re.Match[str], final: bool) -> Close | int | None:
        # After the last bracket of a lone call the closer may follow. None to go on.
        if not self._lone:
            return None
        self._level += 1 if match[0] in "{([" else -1
        if self._level > 0:
            return None

        end = match.end()
        space = _SPACE.match(tail, end)
        after = space.end() if space else end
        closer = self._form.closer
        if tail.startswith(closer, after):
            return Close(self._at + end, self._at + after + len(closer), "closer")
        if not final and len(tail) - after < len(closer) and closer.startswith(tail[after:]):
            # The bracket is looked at again with what follows it.
            self._level += 1
            return self._settle(match.start())
        return Close(self._at + end, self._at + end, "end")

    def _settle(self, settled: int) -> int:
        self._at += settled
        return settled
