"""Where an element that holds lines of YAML ends."""

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import Close, _Follow

_DEEPER = 64  # a line that is indented more is deeper than any first line


class YamlBody:
    """Finds the closing tag of an element that holds lines of YAML.

    It counts on a line of its own that is indented no deeper than the first; behind a line that is not deeper, if
    nothing but white space and an opener, or the end, follows; and on the opener's own line, outside double quotes.
    Anywhere else it is part of a text. An opener on a line of its own that is not deeper is a call begun anew.
    """

    __slots__ = ("_at", "_first", "_follow", "_hidden", "_indent", "_inline", "_line", "_quotes", "_tags")

    def __init__(self, name: str, tools: tuple[str, ...]) -> None:
        self._tags = _pattern(name, tools or (name,))
        self._follow = _Follow(tuple("<" + n for n in tools))
        self._at = 0
        self._first = -1  # indentation of the first line with a word on it; -1 = none was seen yet
        self._inline = False  # still on the opener's line, with a word on it
        self._indent = 0  # indentation of this line
        self._line = 0  # where the words of this line begin
        self._quotes = 0  # double quotes on the opener's line
        self._hidden: tuple[int, int] | None = None

    def finish(self) -> Close | None:
        return Close(*self._hidden, "rescued") if self._hidden else None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos, at = 0, self._at
        while True:
            phase = 0 if self._first < 0 else 1 if self._inline else 2
            m = self._tags[phase].search(tail, pos)
            if phase == 2:
                held = self._lines(tail, pos, m.start() if m else len(tail), final)
                if held is not None:
                    return self._settle(held)
            if m is None:
                return self._settle(len(tail))
            kind = m.lastgroup
            start, pos = m.start(), m.end()
            if kind in ("cut", "start"):
                return self._settle(len(tail) if final else start)
            if kind == "line":
                self._inline = False
                self._indent = len(m[0]) - 1
                self._line = at + pos
            elif kind == "word":
                if self._first < 0:
                    self._first = self._indent
                    self._inline = self._line == 0
                if m["word"] == '"':
                    self._quotes += 1
            elif kind == "open":
                if self._hidden:
                    return Close(*self._hidden, "rescued")
                if at + start == self._line and self._indent <= max(self._first, 0) and self._line:
                    return Close(at + start, at + start, "implicit")
            else:
                found = self._closer(tail, start, pos, final)
                if isinstance(found, Close):
                    return found
                if found is None:
                    return self._settle(start)

    def _lines(self, tail: str, pos: int, end: int, final: bool) -> int | None:
        """Takes note of the last line that begins in [pos, end); where it begins if its indentation may still grow."""
        line = tail.rfind("\n", pos, end)
        if line < 0:
            return None
        stop = line + 1
        deepest = min(stop + _DEEPER + 1, len(tail))
        while stop < deepest and tail[stop] in " \t":
            stop += 1
        self._indent, self._line = stop - line - 1, self._at + stop
        return line if stop == len(tail) and self._indent <= _DEEPER and not final else None

    def _closer(self, tail: str, start: int, end: int, final: bool) -> Close | bool | None:
        close = Close(self._at + start, self._at + end, "closer")
        shallow = self._first < 0 or self._indent <= self._first
        if self._first < 0 or (self._at + start == self._line and shallow):
            return close
        if self._at + start == self._line or not shallow:
            return False
        if self._inline and self._quotes % 2 == 0:
            return close
        follows = self._follow.check(tail, end, self._at, final)
        if follows is None:
            return None
        if follows:
            return close
        if self._hidden is None:
            self._hidden = (close.start, close.end)
        return False

    def _settle(self, settled: int) -> int:
        self._at += settled
        return settled


@lru_cache(maxsize=512)
def _pattern(name: str, tools: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    """What means anything: before the first word, on the opener's line behind a word, and on all other lines."""
    openers = "|".join(re.escape(n) for n in sorted(tools, key=len, reverse=True))
    longest = max(map(len, (name, *tools))) + 40
    tags = (
        rf"<(?:(?P<close>/[ \t]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>)|(?P<open>(?:{openers})(?=[\s/>]))"
        rf"|(?P<cut>[^<>]{{0,{longest}}}\Z))"
    )
    line = rf"(?P<line>\n[ \t]{{0,{_DEEPER}}}(?=[^ \t])|\n[ \t]{{{_DEEPER + 1}}})|(?P<start>\n[ \t]{{0,{_DEEPER}}}\Z)"
    return tuple(re.compile(p) for p in (rf"{tags}|{line}|(?P<word>\S)", rf"{tags}|{line}|(?P<word>\")", tags))
