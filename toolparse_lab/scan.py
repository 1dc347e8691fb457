"""Resumable scanners: where a body ends, found in text that arrives in pieces.

A scanner is fed the unsettled tail of a body. It answers with a `Close`, or with the number of characters that are
settled: they are part of the body whatever comes next, and it will not be shown them again. So the cost is linear
in the text for any chunking. A scanner keeps its own small state and never the text.

Offsets in a `Close` count from the beginning of the body.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol

from .rjson.strict import read_one
from .values import Value

CloseKind = Literal["closer", "implicit", "rescued", "end"]


@dataclass(slots=True)  # made for every body, and a frozen one takes twice the time
class Close:
    """The body is [0, start), its closer [start, end).

    kind: 'closer' = the closer itself; 'implicit' = the next opener stands where the closer should; 'rescued' = a
    closer inside an unterminated string; 'end' = the body closed itself. `hidden` is a closer seen inside a string
    before: the place to close instead, if the body to `start` cannot be read strictly. `value` holds what the body
    says, where finding its end took reading it as strict JSON.
    """

    start: int
    end: int
    kind: CloseKind
    hidden: tuple[int, int] | None = None
    seen: int = 0  # how far the scanner had looked when it went back to a rescued closer
    value: tuple[Value] | None = None


class Scanner(Protocol):
    def scan(self, tail: str, final: bool) -> Close | int:
        """Looks at the unsettled tail; `final` means that no more text will come."""
        ...

    def finish(self) -> Close | None:
        """Called when the text is over and `scan` found no close: the best close after all, or None."""
        ...


@lru_cache(maxsize=512)
def partial_pattern(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Matches the longest end of a text that may be the beginning of one of the literals.

    >>> partial_pattern(("<tool_call>",)).search("ab<to").start()
    2
    """
    prefixes = {lit[:n] for lit in literals for n in range(1, len(lit))}
    alternatives = "|".join(re.escape(p) for p in sorted(prefixes, key=len, reverse=True))
    return re.compile(f"(?:{alternatives})\\Z" if alternatives else r"(?!)")


def partial_start(text: str, literals: tuple[str, ...]) -> int:
    """Offset of the longest end of `text` that may begin one of the literals; len(text) when there is none."""
    longest = max(map(len, literals), default=1) - 1
    m = partial_pattern(literals).search(text, max(0, len(text) - longest))
    return m.start() if m else len(text)


class _Delimiters:
    """What a JSON body is looked through for, compiled once for its delimiters."""

    __slots__ = (
        "block", "clean", "closers", "double", "firsts", "line", "literals", "longest", "loose", "openers", "outside",
        "single",
    )  # fmt: skip

    def __init__(self, closers: tuple[str, ...], openers: tuple[str, ...]) -> None:
        self.closers = closers
        self.openers = openers
        self.literals = closers + openers
        self.firsts = {lit[0] for lit in self.literals}
        self.longest = max(map(len, self.literals))
        ends = "|".join(re.escape(c) for c in closers) or "(?!)"
        begins = "|".join(re.escape(o) for o in openers) or "(?!)"
        self.outside = re.compile(rf"""(?P<close>{ends})|(?P<open>{begins})|["']|//|/\*""")
        # What is plainly neither string damage nor delimiter is skipped in one match, whole clean strings included.
        firsts = re.escape("".join(self.firsts))
        self.clean = re.compile(rf"""(?:[^"'/{firsts}]++|"[^"\\\x00-\x1f{firsts}]*+")*+""")
        # Control characters matter only while the body may still be strict JSON.
        self.double = re.compile(rf"(?P<close>{ends})|[\"\\\x00-\x1f]")
        self.loose = re.compile(rf'(?P<close>{ends})|["\\]')
        self.single = re.compile(rf"(?P<close>{ends})|['\\]")
        self.line = re.compile(rf"(?P<close>{ends})|\n")
        self.block = re.compile(rf"(?P<close>{ends})|\*/")


@lru_cache(maxsize=512)
def _delimiters(closers: tuple[str, ...], openers: tuple[str, ...]) -> _Delimiters:
    return _Delimiters(closers, openers)


_OUTSIDE, _DOUBLE, _SINGLE, _LINE, _BLOCK = range(5)
_SPACE = re.compile(r"\s*")


class JsonBody:
    """Finds the closer of a JSON body, knowing strings and comments.

    A closer inside a string is content. But a string that strict JSON could not hold (a raw line break in it) may
    be one whose quote is missing: then a closer followed by nothing but white space and an opener, or the end,
    closes the body.
    """

    __slots__ = ("_at", "_by", "_follow", "_hidden", "_previous", "_state", "_strict")

    def __init__(self, closers: tuple[str, ...], openers: tuple[str, ...] = ()) -> None:
        self._by = _delimiters(closers, openers)
        self._follow: _Follow | None = None
        self._at = 0  # characters settled so far
        self._state = _OUTSIDE
        self._strict = True  # nothing yet that strict JSON forbids
        self._hidden: tuple[int, int] | None = None
        self._previous = ""  # the last character of the settled text that is no white space

    def finish(self) -> Close | None:
        return Close(*self._hidden, "rescued") if self._hidden else None

    def scan(self, tail: str, final: bool) -> Close | int:
        """One pass over the tail. See the class."""
        if self._at == 0:
            whole = self._whole_body(tail)
            if whole is not None:
                return whole
        by = self._by
        pos = 0
        size = len(tail)
        at = self._at
        while True:
            state = self._state
            if state == _OUTSIDE:
                if self._hidden is None:
                    skipped = by.clean.match(tail, pos)
                    if skipped:
                        pos = skipped.end()
                m = by.outside.search(tail, pos)
                if not m:
                    break
                if m["close"] is not None:
                    hidden = self._hidden
                    return Close(at + m.start(), at + m.end(), "closer", hidden)
                if m["open"] is not None:
                    return Close(at + m.start(), at + m.start(), "implicit", self._hidden)
                if not final and self._may_begin(tail, m.start()):
                    return self._settle(tail, m.start(), size)
                tok = m[0]
                if tok == '"':
                    self._state = _DOUBLE
                elif tok == "'":
                    if self._before(tail, m.start()) in "{[,:(":
                        self._state = _SINGLE
                        self._strict = False
                else:
                    self._state = _LINE if tok == "//" else _BLOCK
                    self._strict = False
                pos = m.end()
                continue
            pattern = (
                (by.double if self._strict else by.loose) if state == _DOUBLE
                else by.single if state == _SINGLE
                else by.line if state == _LINE
                else by.block
            )  # fmt: skip
            m = pattern.search(tail, pos)
            if not m:
                break
            if m["close"] is not None:
                if self._follow is None:
                    self._follow = _Follow(by.openers)
                follows = self._follow.check(tail, m.end(), at, final)
                if follows is None:
                    return self._settle(tail, m.start(), m.start())
                if follows and not self._strict:
                    return Close(at + m.start(), at + m.end(), "rescued")
                if follows and self._hidden is None:
                    self._hidden = (at + m.start(), at + m.end())
                pos = m.end()
                continue
            if not final and self._may_begin(tail, m.start()):
                return self._settle(tail, m.start(), size)
            tok = m[0]
            if tok == "\\":
                if m.end() >= size:
                    if not final:
                        return self._settle(tail, m.start(), size)
                    break
                pos = m.end() + 1
            elif tok in "\"'\n*/":
                if state == _DOUBLE and tok == "\n" and self._strict:
                    self._strict = False
                    if self._hidden:
                        return Close(*self._hidden, "rescued", seen=at + m.end())
                    pos = m.end()
                    continue
                if self._hidden and state == _DOUBLE:
                    # A strict string is followed by a comma, colon or bracket; else its quotes are out of step.
                    nxt = _SPACE.match(tail, m.end())
                    end = nxt.end() if nxt else m.end()
                    if end >= size and not final:
                        return self._settle(tail, m.start(), size)
                    if end < size and tail[end] not in ",:}]":
                        return Close(*self._hidden, "rescued", seen=at + m.end())
                self._state = _OUTSIDE
                pos = m.end()
            else:  # a raw control character: no strict JSON
                self._strict = False
                if self._hidden:
                    return Close(*self._hidden, "rescued", seen=at + m.end())
                pos = m.end()
        hold = size if final else max(pos, partial_start(tail, by.literals))
        if not final and self._state in (_OUTSIDE, _BLOCK) and tail.endswith(("/", "*")):
            hold = min(hold, max(pos, size - 1))
        return self._settle(tail, hold, size)

    def _whole_body(self, tail: str) -> Close | None:
        """The closer behind one strict value that stands in the tail from its beginning, and holds no delimiter."""
        try:
            value, end = read_one(tail)
        except (StopIteration, ValueError, RecursionError):
            return None
        for closer in self._by.closers:
            if tail.startswith(closer, end):
                for literal in self._by.literals:
                    if tail.find(literal, 0, end + len(literal) - 1) >= 0:
                        return None
                return Close(end, end + len(closer), "closer", value=(value,))
        return None

    def _settle(self, tail: str, settled: int, size: int) -> int:
        """Remembers how far the tail is settled, and its last character that is no white space."""
        if settled:
            stripped = tail[:settled].rstrip()
            if stripped:
                self._previous = stripped[-1]
            self._at += settled
        return settled

    def _may_begin(self, tail: str, pos: int) -> bool:
        """Whether a delimiter may begin at `pos` and go on behind the tail."""
        by = self._by
        if tail[pos] not in by.firsts or len(tail) - pos >= by.longest:
            return False
        rest = tail[pos:]
        return any(lit.startswith(rest) for lit in by.literals)

    def _before(self, tail: str, pos: int) -> str:
        """The last character before `pos` that is no white space."""
        while pos > 0:
            pos -= 1
            if not tail[pos].isspace():
                return tail[pos]
        return self._previous or "{"


@lru_cache(maxsize=512)
def _follow_pattern(openers: tuple[str, ...]) -> re.Pattern[str]:
    begins = "|".join(re.escape(o) for o in openers) or "(?!)"
    return re.compile(rf"\s*(?:(?P<open>{begins})|(?P<other>\S))")


class _Follow:
    """Whether only white space and an opener, or the end, stand behind a place."""

    __slots__ = ("_look", "_openers", "_pattern")

    def __init__(self, openers: tuple[str, ...]) -> None:
        self._openers = openers
        self._pattern = _follow_pattern(openers)
        self._look = 0  # white space that was looked at already, so that a long run of it stays linear

    def check(self, tail: str, pos: int, at: int, final: bool) -> bool | None:
        """`tail[0]` is character `at` of the body; None = not known before more text comes."""
        m = self._pattern.match(tail, max(pos, self._look - at))
        if m is None:
            if final:
                return True
            self._look = at + len(tail)
            return None
        self._look = 0
        if m["open"] is not None:
            return True
        rest = tail[m.start("other") :]
        if not final and any(o.startswith(rest) for o in self._openers):
            return None
        return False


class LiteralBody:
    """Ends at the first of some literal closers, or just before one of some stop literals."""

    __slots__ = ("_at", "_literals", "_pattern")

    def __init__(self, closers: tuple[str, ...], stops: tuple[str, ...] = ()) -> None:
        self._pattern = _literal_pattern(closers, stops)
        self._literals = closers + stops
        self._at = 0

    def finish(self) -> Close | None:
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        m = self._pattern.search(tail)
        if m:
            if m["close"] is not None:
                return Close(self._at + m.start(), self._at + m.end(), "closer")
            return Close(self._at + m.start(), self._at + m.start(), "implicit")
        settled = len(tail) if final else partial_start(tail, self._literals)
        self._at += settled
        return settled


@lru_cache(maxsize=512)
def _literal_pattern(closers: tuple[str, ...], stops: tuple[str, ...]) -> re.Pattern[str]:
    ends = "|".join(re.escape(c) for c in closers) or "(?!)"
    begins = "|".join(re.escape(s) for s in stops) or "(?!)"
    return re.compile(f"(?P<close>{ends})|(?P<stop>{begins})")


@lru_cache(maxsize=16)
def _balance_patterns(quotes: str) -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    outside = re.compile(rf"[{re.escape(quotes)}{{}}\[\]()]")
    inside = {q: re.compile(rf"[{re.escape(q)}\\]") for q in quotes}
    return outside, inside


class Balanced:
    """Ends behind the bracket that closes the first one; strings in `quotes` are skipped. For bodies with no closer."""

    __slots__ = ("_at", "_inside", "_level", "_outside", "_quote")

    def __init__(self, quotes: str = '"') -> None:
        self._outside, self._inside = _balance_patterns(quotes)
        self._quote = ""
        self._level = 0
        self._at = 0

    def finish(self) -> Close | None:
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            m = (self._inside[self._quote] if self._quote else self._outside).search(tail, pos)
            if not m:
                self._at += len(tail)
                return len(tail)
            pos = m.end()
            ch = m[0]
            if ch == "\\":
                if pos >= len(tail):
                    settled = len(tail) if final else m.start()
                    self._at += settled
                    return settled
                pos += 1
            elif self._quote:
                self._quote = ""
            elif ch in "{[(":
                self._level += 1
            elif ch in "}])":
                self._level -= 1
                if self._level <= 0:
                    return Close(self._at + pos, self._at + pos, "end")
            else:
                self._quote = ch
