"""Resumable scanners: where a body ends, found in text that arrives in pieces.

A scanner is fed the unsettled tail of a body. It answers with a `Close`, or with the number of
characters that are final: they are part of the body whatever comes next, and it will not be shown
them again. A scanner keeps its own small state and never the text.

Offsets in a `Close` count from the beginning of the body.
"""

# How a scanner works
#
# State: `_at`, the number of characters settled so far, which is the offset of `tail[0]` in the
# body, and a few facts about the settled text (inside a string, the element that is open, …).
#
# Invariant: the answer never depends on the chunking. Where the end of the tail could still change
# what is there (half a closer, half a tag, white space before an opener that may follow), the
# scanner settles only what is before it and looks again when there is more. With `final` nothing
# can change any more, so nothing is held back.
#
# Cost: a character is looked at once when it is settled, and what is held back is bounded (by the
# longest delimiter, by limits inside the patterns) or remembered as looked at. So the work is
# linear in the text for any chunking, one character at a time included.
#
# The scanners of the families are in `json/scan.py`, `json/openers.py`, `xml/scan.py`,
# `parameters/scan.py`, `yaml/scan.py` and `python/rows.py`; here is what they share.

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, Protocol, TypeAlias

from ..core.values import Value

CloseKind = Literal["closer", "implicit", "rescued", "end"]

SPACE = re.compile(r"\s*")


@dataclass(slots=True)  # made for every body, and a frozen one takes twice the time
class Close:
    """The body is [0, start), its closer [start, end).

    kind: 'closer' = the closer itself. 'implicit' = the next opener is where the closer should be.
    'rescued' = a closer inside an unterminated string. 'end' = the body closed itself. `hidden` is
    a closer seen inside a string before: the place to close instead, if the body to `start` cannot
    be read strictly. `value` is the body's content, where finding its end took reading it as
    strict JSON.
    """

    start: int
    end: int
    kind: CloseKind
    hidden: tuple[int, int] | None = None
    reached: int = 0  # how far the scanner had looked when it went back to a rescued closer
    value: tuple[Value] | None = None
    name: tuple[str, int] | None = None  # of the tool and its offset, where only the closer has it


class Scanner(Protocol):
    """Finds the end of one body. See the head of this module."""

    def scan(self, tail: str, final: bool) -> Close | int: ...

    def finish(self) -> Close | None: ...

    @property
    def waits(self) -> frozenset[str]: ...


def skip_space(text: str, pos: int, most: int | None = None) -> int:
    """Return the offset after white space at `pos`, or after `most` characters of it."""
    match = SPACE.match(text, pos, len(text) if most is None else pos + most)
    return match.end() if match else pos


def with_or_without_space(literal: str) -> tuple[str, ...]:
    """Return a delimiter as it is, and without white space around it, which models drop."""
    return tuple(dict.fromkeys(text for text in (literal, literal.strip()) if text.strip()))


def line_end(text: str, pos: int, most: int) -> int:
    """Return the offset after the blanks at `pos` before a line's end, or after `most` of them."""
    stop = min(len(text), pos + most)
    while pos < stop and text[pos] in " \t\r":
        pos += 1
    return pos


def ends_inside(text: str, pos: int, literals: tuple[str, ...]) -> bool:
    """Return True if the text ends inside one of the literals, which begins at `pos`.

    >>> ends_inside("a<ca", 1, ("<call>",)), ends_inside("a<call>", 1, ("<call>",))
    (True, False)
    """
    # Asked at every mark of a stream: a slice and a look at a set take less than any loop.
    beginnings, longest = cut_literals(literals)
    return len(text) - pos < longest and text[pos:] in beginnings


@lru_cache(maxsize=4096)
def cut_literals(literals: tuple[str, ...]) -> tuple[frozenset[str], int]:
    """Return the beginnings of some literals, none of them whole, and the length of the longest."""
    parts = (literal[:n] for literal in literals for n in range(len(literal)))
    return frozenset(parts), max(map(len, literals), default=0)


def any_of(literals: tuple[str, ...]) -> str:
    """Return the source of a pattern that matches one of the literals.

    It fails if there is none.

    >>> any_of(("a.", "b")), any_of(())
    ('a\\\\.|b', '(?!)')
    """
    return "|".join(re.escape(literal) for literal in literals) or "(?!)"


def begun(literal: str) -> str:
    """Return the source of a pattern for every beginning of a literal, the empty one included.

    >>> re.fullmatch(begun("<|a|>"), "<|a") is not None
    True
    """
    source = ""
    for char in reversed(literal):
        source = f"(?:{re.escape(char)}{source})?"
    return source


_Tree: TypeAlias = "dict[str, _Tree]"
"""Character -> what may follow it; the key "" where a literal ends."""


def _tree_of(literals: Iterable[str]) -> _Tree:
    # their common beginnings are looked at once
    root: _Tree = {}
    for literal in literals:
        node = root
        for char in literal:
            node = node.setdefault(char, {})
        node[""] = {}
    return root


def longest_of(literals: Iterable[str]) -> str:
    """Return the source of a pattern that matches the longest of the literals at a place.

    It costs as much as one literal, however many there are. An alternation tries one after the
    other.

    >>> re.match(longest_of(["<a", "<a>", "b"]), "<a>")[0], longest_of(())
    ('<a>', '(?!)')
    """
    return _longest(_tree_of(literals)) or "(?!)"


def _longest(node: _Tree) -> str:
    # the source of what may follow a node
    ways = [re.escape(char) + _longest(below) for char, below in node.items() if char]
    if not ways:
        return ""
    if len(ways) == 1 and "" not in node:
        return ways[0]
    return f"(?:{'|'.join(ways)}){'?' if '' in node else ''}"


def _beginnings(node: _Tree) -> str:
    # every beginning of what may follow a node but the empty one and the whole
    # Behind the last character of a literal nothing but its end follows: there it is whole.
    ways: list[str] = []
    for char, below in node.items():
        if char and below.keys() != {""}:
            rest = _beginnings(below)
            ways.append(re.escape(char) + (f"(?:{rest})?" if rest else ""))
    return "|".join(ways)


@lru_cache(maxsize=512)
def partial_pattern(literals: tuple[str, ...]) -> re.Pattern[str]:
    """Return a pattern for the longest end of a text that may be the beginning of a literal.

    >>> partial_pattern(("<tool_call>",)).search("ab<to").start()
    2
    """
    # A search finds the leftmost match, which is the longest end.
    return re.compile(f"(?:{_beginnings(_tree_of(literals)) or '(?!)'})\\Z")


def partial_start(text: str, literals: tuple[str, ...]) -> int:
    """Return the offset of the longest end of `text` that may begin one of the literals.

    It is len(text) when there is none. The text before it can be final: no literal that begins
    there is still to come.
    """
    return partial_finder(literals)(text)


@lru_cache(maxsize=512)
def partial_finder(
    literals: tuple[str, ...], other: str = "", longest: int = 0
) -> Callable[[str], int]:
    """Return `partial_start` for some literals, of which there may be many.

    other: the source of a pattern for what else may be held back, of at most `longest` characters.
    """
    beginnings = [_beginnings(_tree_of(literals)), other]
    search = re.compile(f"(?:{'|'.join(filter(None, beginnings)) or '(?!)'})\\Z").search
    longest = max(longest, max(map(len, literals), default=1) - 1)

    def find(text: str) -> int:
        match = search(text, max(0, len(text) - longest))
        return match.start() if match else len(text)

    return find


@lru_cache(maxsize=512)
def _opener_or_other(openers: tuple[str, ...]) -> re.Pattern[str]:
    # what follows white space: an opener, or anything else
    return re.compile(rf"\s*(?:(?P<open>{any_of(openers)})|(?P<other>\S))")


class FollowCheck:
    """Tells for a place in a body if only white space and an opener, or the end, follow it.

    That is the evidence on which a doubtful closer counts: a model that closed a call goes on with
    the next one, or stops.
    """

    __slots__ = ("_looked", "_openers", "_pattern")

    def __init__(self, openers: tuple[str, ...]) -> None:
        # openers: the literals that begin the next call
        self._openers = openers
        self._pattern = _opener_or_other(openers)
        # White space up to this offset of the body was looked at already, so that a long run of it
        # that arrives in small chunks stays linear.
        self._looked = 0

    def check(self, tail: str, pos: int, at: int, final: bool) -> bool | None:
        """Return True or False, or None if only more text can tell."""
        match = self._pattern.match(tail, max(pos, self._looked - at))
        if match is None:
            if final:
                return True
            self._looked = at + len(tail)
            return None

        self._looked = 0
        if match["open"] is not None:
            return True

        rest = tail[match.start("other") :]
        if not final and any(opener.startswith(rest) for opener in self._openers):
            return None
        return False


NO_WAITS: frozenset[str] = frozenset()


class BodyScanner:
    """What scanners of bodies share: how much is settled, and a closer to go back to.

    waits: the tails that decide nothing in the state that the last scan left. They need no scan.
    """

    __slots__ = ("_at", "_hidden")

    waits: frozenset[str] = NO_WAITS

    # Set by each scanner: a call of this class for every body would cost more than they are worth.
    _at: int
    _hidden: tuple[int, int] | None

    def finish(self) -> Close | None:
        return Close(*self._hidden, "rescued") if self._hidden else None

    def _settle(self, settled: int) -> int:
        self._at += settled
        return settled


@lru_cache(maxsize=512)
def _closer_or_stop(closers: tuple[str, ...], stops: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(f"(?P<close>{any_of(closers)})|(?P<stop>{any_of(stops)})")


class LiteralBody(BodyScanner):
    """Ends at the first of some literal closers, or just before one of some stop literals."""

    __slots__ = ("_literals", "_pattern")

    def __init__(self, closers: tuple[str, ...], stops: tuple[str, ...] = ()) -> None:
        self._at, self._hidden = 0, None
        closers = tuple(sorted(closers, key=len, reverse=True))
        self._pattern = _closer_or_stop(closers, stops)
        self._literals = closers + stops

    def scan(self, tail: str, final: bool) -> Close | int:
        match = self._pattern.search(tail)
        if match is None:
            return self._settle(len(tail) if final else partial_start(tail, self._literals))

        # One literal may begin with another, and the rest of the longer one may be yet to come.
        if not final and ends_inside(tail, match.start(), self._literals):
            return self._settle(match.start())
        start = self._at + match.start()
        if match["close"] is not None:
            return Close(start, self._at + match.end(), "closer")
        return Close(start, start, "implicit")


@lru_cache(maxsize=512)
def _balance_patterns(
    quotes: str, brackets: str, literals: tuple[str, ...]
) -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    # (the characters that count outside strings, those inside a string of each quote)
    stop = f"(?P<stop>{any_of(literals)})|" if literals else ""
    outside = re.compile(rf"{stop}[{re.escape(quotes + brackets)}]")
    inside = {quote: re.compile(rf"{stop}[{re.escape(quote)}\\]") for quote in quotes}
    return outside, inside


class Balanced(BodyScanner):
    """Ends after the bracket that closes the first one, strings in `quotes` skipped.

    For bodies with no closer. Kinds of brackets are not told apart: a model that closes `[` with
    `}` meant to close it, and the codec says so with more context. closers, stops: literals that
    end a body whose brackets are not closed. One inside a string is remembered, and ends a body
    whose quotes turn out to be out of step (`finish`).
    """

    __slots__ = (
        "_begin", "_closers", "_last", "_level", "_literals", "_patterns", "_quote", "_whole",
    )  # fmt: skip

    def __init__(
        self,
        quotes: str = '"',
        brackets: str = "{}[]()",
        closers: tuple[str, ...] = (),
        stops: tuple[str, ...] = (),
    ) -> None:
        self._at, self._hidden = 0, None
        self._closers = closers
        self._literals = (*closers, *stops)
        self._patterns = _balance_patterns(quotes, brackets, self._literals)
        self._begin = self._last = ""  # the body's first bracket, and the last one that closed
        self._quote = ""  # the quote of the string that is open, or nothing
        self._level = 0
        self._whole = False  # a value ends where the settled text does

    def scan(self, tail: str, final: bool) -> Close | int:
        outside, inside = self._patterns
        pos, stop = 0, len(tail)
        if self._literals and not final:
            stop = partial_start(tail, self._literals)
        while True:
            if self._whole:
                step = self._behind_value(tail, pos, final)
                if isinstance(step, Close):
                    return step
                if step < 0:
                    return self._settle(pos)
                self._whole, pos = False, step

            match = (inside[self._quote] if self._quote else outside).search(tail, pos)
            if match is None:
                return self._settle(max(stop, pos))
            # A bracket that may be the first character of a literal is not known for one yet.
            if match.lastgroup is None and stop <= match.start():
                return self._settle(match.start())

            pos = match.end()
            char = match[0]
            if match.lastgroup is not None:
                start = self._at + match.start()
                if not self._quote and char in self._closers:
                    return Close(start, start + len(char), "closer")
                if not self._quote:
                    return Close(start, start, "implicit")
                if self._hidden is None:  # in a string that is still open
                    self._hidden = (start, start)
            elif char == "\\":
                if pos >= len(tail):
                    return self._settle(len(tail) if final else match.start())
                pos += 1
            elif self._quote:
                self._quote = ""
                self._hidden = None
            elif char in "{[(":
                self._begin = self._begin or char
                self._level += 1
            elif char in "}])":
                self._level -= 1
                self._last = char
                self._whole = self._level <= 0
            else:
                self._quote = char

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        # The close after a value that ends at tail[pos], where the next one begins, or -1 to wait.
        return Close(self._at + pos, self._at + pos, "end")


_COMMENT = "#"
_LONE_SPACE = re.compile(r"[ \t\r\n]{0,16}+")


@lru_cache(maxsize=64)
def _outside(
    closers: tuple[str, ...], stops: tuple[str, ...], quotes: tuple[str, ...], others: str
) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<close>{any_of(closers)})|(?P<stop>{any_of(stops)})|(?P<quote>{any_of(quotes)})"
        rf"|(?P<other>[{re.escape(others)}])"
    )


@lru_cache(maxsize=64)
def _inside(quote: str, escapes: bool) -> re.Pattern[str]:
    return re.compile(re.escape(quote) + (r"|\\" if escapes else ""))


class QuotedBody(BodyScanner):
    """Ends at a closer outside of strings, or in front of a literal that stops it.

    A closer inside a string is content, and the place to go back to if the string never ends.
    in_string: the quote of the string that is open, "#" in a comment, "" outside of both.
    """

    __slots__ = (
        "_closers", "_escapes", "_held", "_level", "_literals", "_lone", "_outside", "in_string",
    )  # fmt: skip

    def __init__(
        self,
        closers: tuple[str, ...],
        stops: tuple[str, ...] = (),
        quotes: tuple[str, ...] = ("'''", '"""', "'", '"'),
        *,
        escapes: bool = True,
        lone: bool = False,
    ) -> None:
        # escapes: strings have backslashes, and there are comments, as in Python. lone: the body
        # has no opener before it, and ends after the bracket of its call where no closer follows.
        self._at, self._hidden = 0, None
        self._closers = closers
        self._literals = closers + stops
        if not escapes:  # three quotes of Python are awaited where they may begin
            self._literals += quotes
        self._held = partial_finder(self._literals)
        others = (_COMMENT if escapes else "") + ("{}()[]" if lone else "")
        self._outside = _outside(closers, stops, quotes, others or "\0")
        self._escapes = escapes
        self._lone = lone
        self._level = 0
        self.in_string = ""

    def finish(self) -> Close | None:
        return super().finish() if self.in_string else None

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            if self.in_string:
                pos, is_over = self._end_string(tail, pos, final)
                if is_over:
                    return self._settle(pos)
            match = self._outside.search(tail, pos)
            stop = len(tail) if final else self._held(tail)
            if match is None or match.start() >= stop:
                return self._settle(max(stop, pos))

            start, pos = match.span()
            sign = match[0]
            if match["close"]:
                return Close(self._at + start, self._at + pos, "closer")
            if match["stop"]:
                return Close(self._at + start, self._at + start, "implicit")
            if sign == _COMMENT:
                self.in_string = sign
            elif match["other"]:
                close = self._bracket(tail, match, final) if self._lone else None
                if close is not None:
                    return close
            elif (
                not final and len(sign) == 1 and len(tail) - start < 3 and tail[start:] in sign * 2
            ):
                return self._settle(start)  # two quotes may be the beginning of three
            elif len(sign) == 1 and tail.startswith(sign, pos):
                pos += 1  # an empty string
            else:
                self.in_string = sign
                self._hidden = None

    def _end_string(self, tail: str, pos: int, final: bool) -> tuple[int, bool]:
        # (offset after the end of the string or comment, False), or (the final part, True)
        quote = self.in_string
        if quote == _COMMENT:
            end = tail.find("\n", pos)
            # Models write no comment of which a closer is a part.
            stop, _ = self._closer_in(tail, pos, end if end >= 0 else len(tail)) or (end, 0)
            if stop < 0:
                return (len(tail) if final else self._held(tail)), True
            self.in_string = ""
            return stop, False

        pattern = _inside(quote, self._escapes)
        while True:
            match = pattern.search(tail, pos)
            stop = match.start() if match else len(tail)
            if match is None and not final:
                held = self._held
                if self._escapes:  # else the quote is among the literals
                    held = partial_finder((*self._literals, quote))
                stop = max(pos, held(tail))
            # One that begins before the part held back is whole, even where it ends in that part.
            far = stop if match is not None or final else len(tail)
            closer = self._closer_in(tail, pos, far) if self._hidden is None else None
            if closer and closer[0] < stop:
                self._hidden = (self._at + closer[0], self._at + closer[1])
            if match is None:
                return stop, True
            pos = match.end()
            if match[0] == quote:
                self.in_string = ""
                return pos, False
            if pos >= len(tail):
                return (pos if final else stop), True
            pos += 1

    def _closer_in(self, tail: str, start: int, end: int) -> tuple[int, int] | None:
        found = [(at, c) for c in self._closers if (at := tail.find(c, start, end)) >= 0]
        if not found:
            return None
        at, _ = min(found)
        return at, at + len(next(c for c in self._closers if tail.startswith(c, at)))

    def _bracket(self, tail: str, match: re.Match[str], final: bool) -> Close | int | None:
        # After the last bracket of a lone call the closer may follow. None to go on.
        self._level += 1 if match[0] in "{([" else -1
        if self._level > 0:
            return None
        end = match.end()
        space = _LONE_SPACE.match(tail, end)
        after = space.end() if space else end
        closer = self._closers[0]
        if tail.startswith(closer, after):
            return Close(self._at + end, self._at + after + len(closer), "closer")
        if not final and ends_inside(tail, after, (closer,)):
            self._level += 1  # the bracket is looked at again with what follows it
            return self._settle(match.start())
        return Close(self._at + end, self._at + end, "end")
