"""Where an element with lines of YAML in it ends."""

# How it works
#
# YAML escapes no `<`, so a closing tag may be part of a text, and only its place tells. What counts
# is the indentation: a tag on a line of its own, no deeper than the first line, is the element's.
#
# State: `_first`, the indentation of the first line with a word on it; `_indent` and `_line`, those
# of the line that is being read; and on the opener's own line (`_inline`), where nothing is
# indented, the number of double quotes so far. So there are three phases, each with a pattern for
# what can matter in it: before the first word, on the opener's line after a word, on later lines.
# `_hidden` is the first closing tag that text follows on its line.
#
# Invariant: a line's indentation is settled once its first character is there; until then its line
# break stays in the tail. A tag is decided on once it is whole and, where that matters, followed.
#
# Cost: one forward pass. On later lines the pattern looks for tags only, and the line a tag is on
# is found by one search backwards from it, bounded by what was read since the last tag.

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import BodyScanner, Close, FollowCheck

_DEEPER = 64  # a line that is indented more is deeper than any first line
_BEFORE, _INLINE, _LATER = range(3)


class YamlBody(BodyScanner):
    """Finds the closing tag of an element that holds lines of YAML.

    It counts on a line of its own that is indented no deeper than the first. Behind a line that is
    not deeper, if nothing but white space and an opener, or the end, follows. And on the opener's
    own line, outside double quotes. Anywhere else it is part of a text. An opener on a line of its
    own that is not deeper is a call begun again.
    """

    __slots__ = ("_first", "_follow", "_indent", "_inline", "_line", "_patterns", "_quotes")

    def __init__(self, name: str, tools: tuple[str, ...]) -> None:
        # name: of the element, which is the tool's. tools: the names of all tools, which open
        # calls.
        self._at, self._hidden = 0, None
        self._patterns = _patterns(name, tools or (name,))
        self._follow = FollowCheck(tuple("<" + tool for tool in tools))
        self._first = -1  # indentation of the first line with a word on it; -1 = there was none yet
        self._inline = False  # still on the opener's line, with a word on it
        self._indent = 0  # indentation of this line
        self._line = 0  # where the words of this line begin
        self._quotes = 0  # double quotes on the opener's line

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            phase = _BEFORE if self._first < 0 else _INLINE if self._inline else _LATER
            match = self._patterns[phase].search(tail, pos)
            if phase == _LATER:
                stop = match.start() if match else len(tail)
                unsettled = self._take_lines(tail, pos, stop, final)
                if unsettled is not None:
                    return self._settle(unsettled)

            if match is None:
                return self._settle(len(tail))

            kind = match.lastgroup
            if kind in ("cut", "start"):  # a tag or an indentation that is not complete yet
                return self._settle(len(tail) if final else match.start())

            pos = match.end()
            answer: Close | int | None = None
            if kind == "line":
                self._inline = False
                self._indent = len(match[0]) - 1
                self._line = self._at + pos
            elif kind == "word":
                if self._first < 0:
                    self._first = self._indent
                    self._inline = self._line == 0
                # Only counted: an odd number of quotes means that one is open.
                self._quotes += match["word"] == '"'
            elif kind == "open":
                # It ends the body where no text can be: at the beginning of a line that is not
                # deeper than the first. On the opener's own line, whose words begin at 0, it would
                # be a call inside a text. After a hidden closing tag any opener shows that the call
                # had ended there.
                start = self._at + match.start()
                shallow = self._indent <= max(self._first, 0)
                if self._hidden:
                    answer = Close(*self._hidden, "rescued")
                elif self._line and start == self._line and shallow:
                    answer = Close(start, start, "implicit")
            else:
                answer = self._closer(tail, match, final)

            if answer is not None:
                return answer

    def _take_lines(self, tail: str, pos: int, end: int, final: bool) -> int | None:
        # Takes note of the last line that begins in [pos, end). Where it begins, if its indentation
        # may still grow: so far the tail is final.
        line = tail.rfind("\n", pos, end)
        if line < 0:
            return None

        stop = line + 1
        deepest = min(stop + _DEEPER + 1, len(tail))
        while stop < deepest and tail[stop] in " \t":
            stop += 1

        self._indent = stop - line - 1
        self._line = self._at + stop
        if stop == len(tail) and self._indent <= _DEEPER and not final:
            return line
        return None

    def _closer(self, tail: str, match: re.Match[str], final: bool) -> Close | int | None:
        # None: it is part of a text. On a line of its own its indentation decides. After words of a
        # shallow line, the next call or the end has to follow. On a deeper line it is part of a
        # block of text.
        start, end = self._at + match.start(), self._at + match.end()
        close = Close(start, end, "closer")
        # The three easy answers first; only the last needs what follows the tag.
        if self._first < 0:  # there is nothing it could be a part of
            return close

        shallow = self._indent <= self._first
        if start == self._line or not shallow:
            return close if shallow else None
        if self._inline and self._quotes % 2 == 0:
            return close
        follows = self._follow.check(tail, match.end(), self._at, final)
        if follows is None:
            return self._settle(match.start())
        # The first such tag is remembered, in case no other comes.
        if not follows and self._hidden is None:
            self._hidden = (start, end)
        return close if follows else None


@lru_cache(maxsize=512)
def _patterns(name: str, tools: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    # For each phase. Groups: close, open, cut (a tag that is not complete), line (the beginning of
    # one), start (one whose indentation may still grow), word.
    openers = "|".join(re.escape(tool) for tool in sorted(tools, key=len, reverse=True))
    longest = max(map(len, (name, *tools))) + 40
    tags = (
        rf"<(?:(?P<close>/[ \t]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>)"
        rf"|(?P<open>(?:{openers})(?=[\s/>]))"
        rf"|(?P<cut>[^<>]{{0,{longest}}}\Z))"
    )
    line = (
        rf"(?P<line>\n[ \t]{{0,{_DEEPER}}}(?=[^ \t])|\n[ \t]{{{_DEEPER + 1}}})"
        rf"|(?P<start>\n[ \t]{{0,{_DEEPER}}}\Z)"
    )
    before = rf"{tags}|{line}|(?P<word>\S)"
    inline = rf"{tags}|{line}|(?P<word>\")"
    return tuple(re.compile(source) for source in (before, inline, tags))
