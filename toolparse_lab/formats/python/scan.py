"""If a body of Python calls ends: behind its list, or at a closer outside of strings."""

# How it works: the list ends behind the bracket that closes it, which `Balanced` finds. The rest of
# that line decides if it was a list of calls at all: `[a(b)](c)` is a link in Markdown. So the scan
# goes on for at most 64 blanks and a token behind the bracket, and if text stands there the body is
# made to reach over it, so that the codec refuses it and the text stays text.
#
# Between delimiters strings decide: a closer inside one is content, and the place to go back to if
# the string never ends. One search a quote, a comment or a delimiter; what may become one is held
# back.

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from functools import lru_cache

from ..scan import Balanced, Close, any_of, partial_start
from ..turns import TURN_ENDS

# How special tokens begin that may end an answer, where they were not stripped from it.
_TOKENS = ("<|", "<｜", *TURN_ENDS)
# An argument after the bracket of its call, and what may become one.
_ARGUMENT = re.compile(r"[ \t]{0,64}+,?[ \t]{0,64}+[A-Za-z_]\w{0,127}+[ \t]{0,64}+=(?!=)")
_ARGUMENT_SO_FAR = re.compile(
    r"[ \t]{0,64}+(?:,[ \t]{0,64}+)?(?:[A-Za-z_]\w{0,127}+[ \t]{0,64}+=?)?\Z"
)
# What stands behind the list on its line, not far away: such a token, or any character.
_BEHIND = re.compile(rf"[ \t]{{0,64}}+(?P<char>{any_of(_TOKENS)}|\S|\s)")


class _Bracketed(ABC):
    # Ends after the closing bracket, or past it where what follows says that it is not the end:
    # then the body cannot be read.
    __slots__ = ("_at", "_balanced", "_end")

    def __init__(self) -> None:
        self._balanced = Balanced("\"'")
        self._end: int | None = None  # after the bracket, from the body's beginning
        self._at = 0

    def finish(self) -> Close | None:
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        # The bracket is final while what follows it is awaited.
        if self._end is None:
            answer = self._balanced.scan(tail, final)
            if not isinstance(answer, Close):
                self._at += answer
                return answer
            self._end = answer.end

        # The bracket may have come with an earlier chunk.
        pos = self._end - self._at
        end = self._end_after(tail, pos, final)
        if end is None:
            self._at = self._end
            return pos
        return Close(self._at + end, self._at + end, "end")

    @abstractmethod
    def _end_after(self, tail: str, pos: int, final: bool) -> int | None:
        # None if more text decides
        ...


class LoneCall(_Bracketed):
    """A call: if an argument follows its bracket, the bracket was closed too early."""

    __slots__ = ()

    def _end_after(self, tail: str, pos: int, final: bool) -> int | None:
        argument = _ARGUMENT.match(tail, pos)
        if not final and (
            _ARGUMENT_SO_FAR.match(tail, pos) or (argument and argument.end() == len(tail))
        ):
            return None
        return argument.end() if argument else pos


class LoneList(_Bracketed):
    """A list: if something else is on the line of its bracket, it is no list of calls.

    A special token that was not stripped may be there.
    """

    __slots__ = ()

    def _end_after(self, tail: str, pos: int, final: bool) -> int | None:
        behind = _BEHIND.match(tail, pos)
        if not final and self._is_open(behind, tail):
            return None
        if behind is None or behind["char"] in _TOKENS or behind["char"].isspace():
            return pos
        return behind.end()

    def _is_open(self, behind: re.Match[str] | None, tail: str) -> bool:
        # the end of the tail may become a special token
        if behind is None:
            return True
        rest = tail[behind.start("char") :]
        return any(len(rest) < len(token) and token.startswith(rest) for token in _TOKENS)


@lru_cache(maxsize=64)
def _outside(closers: tuple[str, ...], openers: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<close>{any_of(closers)})|(?P<open>{any_of(openers)})"
        r"|(?P<quote>'''|\"\"\"|['\"])|(?P<comment>\#)"
    )


_INSIDE = {
    quote: re.compile(rf"\\|{quote}") for quote in ("'", '"', "'''", '"""')
}  # fmt: skip


class PythonBody:
    """Ends at a closer outside of strings, or in front of the next opener.

    State: the quote of the string that is open, "#" in a comment, "" outside of both.
    """

    __slots__ = ("_at", "_closers", "_hidden", "_literals", "_pattern", "quote")

    def __init__(self, closers: tuple[str, ...], openers: tuple[str, ...] = ()) -> None:
        self._closers = closers
        self._literals = closers + openers
        self._pattern = _outside(closers, openers)
        self._at = 0
        self.quote = ""
        self._hidden: tuple[int, int] | None = None  # the first closer inside a string

    def finish(self) -> Close | None:
        if self.quote and self._hidden is not None:
            return Close(*self._hidden, "rescued")
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            step: Close | int
            if self.quote:
                step = self._in_string(tail, pos, final)
            else:
                step = self._between(tail, pos, final)
            if isinstance(step, Close):
                return step
            if step < 0:
                return self._settle(~step)
            pos = step

    def _between(self, tail: str, pos: int, final: bool) -> Close | int:
        # the close, the offset to go on at, or ~offset where more text is necessary
        match = self._pattern.search(tail, pos)
        stop = len(tail) if final else partial_start(tail, self._literals)
        if match is None or match.start() >= stop:
            return ~max(stop, pos)
        start, end = match.span()
        if match["close"]:
            return Close(self._at + start, self._at + end, "closer")
        if match["open"]:
            return Close(self._at + start, self._at + start, "implicit")
        if match["comment"]:
            self.quote = "#"
            return end
        # Two quotes at the end of the text may be the beginning of three.
        quote = match["quote"]
        if (
            not final
            and len(quote) == 1
            and len(tail) - start < 3
            and tail[start:].strip(quote) == ""
        ):
            return ~start
        if len(quote) == 1 and tail.startswith(quote, end):
            return end + 1  # an empty string
        self.quote = quote
        self._hidden = None
        return end

    def _in_string(self, tail: str, pos: int, final: bool) -> int:
        # see `_between`
        if self.quote == "#":
            end = tail.find("\n", pos)
            stop = self._closer_in(tail, pos, end if end >= 0 else len(tail))
            if stop >= 0:  # models write no comment behind which the closer is part of it
                self.quote = ""
                return stop
            if end < 0:
                return ~(len(tail) if final else partial_start(tail, self._literals))
            self.quote = ""
            return end
        return self._to_quote(tail, pos, final)

    def _to_quote(self, tail: str, pos: int, final: bool) -> int:
        quote = self.quote
        while True:
            match = _INSIDE[quote].search(tail, pos)
            stop = len(tail)
            if match is None and not final:
                stop = partial_start(tail, (*self._literals, quote))
            self._remember(tail, pos, match.start() if match else stop)
            if match is None:
                return ~stop
            pos = match.end()
            if match[0] == quote:
                self.quote = ""
                return pos
            if pos >= len(tail):
                return ~(pos if final else match.start())
            pos += 1

    def _remember(self, tail: str, start: int, end: int) -> None:
        if self._hidden is not None:
            return
        at = self._closer_in(tail, start, end)
        if at >= 0:
            closer = next(c for c in self._closers if tail.startswith(c, at))
            self._hidden = (self._at + at, self._at + at + len(closer))

    def _closer_in(self, tail: str, start: int, end: int) -> int:
        places = [at for c in self._closers if (at := tail.find(c, start, end)) >= 0]
        return min(places, default=-1)

    def _settle(self, settled: int) -> int:
        self._at += settled
        return settled
