"""Where a JSON body without a closer of its own ends: after its values."""

# How it works
#
# Brackets outside of strings are counted. After the bracket that closes the first one is the
# end of the body, unless a separator and another value follow. A closer that may follow belongs to
# the body's end. Kinds of brackets are not told apart: one too many ends a list early, and what
# follows it says so, another call or the bracket that the list began with. A literal outside of
# strings that begins the next call ends a body whose brackets are not closed; one inside a string
# is remembered, and ends a body whose quotes turn out to be out of step (`finish`).
#
# Invariant: no answer depends on text that is still to come: a literal that may be under way and
# white space after a value are held back. Cost: one pass; what is held back is bounded.

from __future__ import annotations

import re
from functools import lru_cache

from ..scan import BodyScanner, Close, any_of, partial_start, skip_space
from .call import behind_stray_brackets, next_call

_MOST_SPACE = 64
# A key right after a value, and what may become one. Both are shorter than `_MOST_SPACE`.
_KEY = re.compile(r"""(?:,\s{0,8}+)?"[^"\\\n]{1,40}+"\s{0,8}+:""")
_KEY_SO_FAR = re.compile(r"""(?:,\s{0,8}+)?(?:"[^"\\\n]{0,40}+(?:"\s{0,8}+)?)?\Z""")


@lru_cache(maxsize=512)
def _patterns(
    quotes: str, literals: tuple[str, ...]
) -> tuple[re.Pattern[str], dict[str, re.Pattern[str]]]:
    # (the characters that count outside strings, those inside a string of each quote)
    stop = f"(?P<stop>{any_of(literals)})"
    outside = re.compile(rf"{stop}|[{re.escape(quotes)}{{}}\[\]]")
    inside = {quote: re.compile(rf"{stop}|[{re.escape(quote)}\\]") for quote in quotes}
    return outside, inside


class ValueRun(BodyScanner):
    """Ends after the values of a body, and after a closer that may follow them."""

    __slots__ = (
        "_begin", "_calls", "_closers", "_level", "_literals", "_patterns", "_quote", "_separators",
        "_stray", "_whole",
    )  # fmt: skip

    def __init__(
        self,
        closers: tuple[str, ...] = (),
        stops: tuple[str, ...] = (),
        *,
        quotes: str = '"',
        separators: str = "",
        calls: bool = False,
    ) -> None:
        # closers: literals that may follow the values and belong to them. stops: those that begin
        # the next call. separators: characters of which one, or none, may be between two values, ""
        # if there is one value. calls: the values say which tool they call, so that another one may
        # follow although a bracket seemed to be the last.
        self._at, self._hidden = 0, None
        self._closers = closers
        self._literals = (*closers, *stops)
        self._patterns = _patterns(quotes, self._literals)
        self._separators = separators
        self._calls = calls
        self._begin = ""  # the body's first bracket
        self._stray = False  # a list was closed too early, so that its own bracket is to come
        self._quote = ""  # the quote of the string that is open, or nothing
        self._level = 0
        self._whole = False  # a value ends where the settled text does

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            if self._whole:
                step = self._behind_value(tail, pos, final)
                if isinstance(step, Close):
                    return step
                if step < 0:
                    return self._settle(pos)
                self._whole, pos = False, step

            match = self._next(tail, pos, final)
            if isinstance(match, int):
                return self._settle(match)
            pos = match.end()
            if match.lastgroup is not None:
                if not self._quote:
                    return self._at_literal(match)
                if self._hidden is None:  # in a string that is still open
                    self._hidden = (self._at + match.start(),) * 2
            elif match[0] == "\\":
                if pos >= len(tail):
                    return self._settle(len(tail) if final else match.start())
                pos += 1
            else:
                self._count(match[0])

    def _next(self, tail: str, pos: int, final: bool) -> re.Match[str] | int:
        # the next thing that counts, or how much of the tail is final without one
        outside, inside = self._patterns
        pattern = inside[self._quote] if self._quote else outside
        match = pattern.search(tail, pos)
        cut = len(tail) if final else partial_start(tail, self._literals)
        if match is None:
            return max(cut, pos)
        # A bracket that may be the first character of a literal is not known for one yet.
        if match.lastgroup is None and cut <= match.start():
            return match.start()
        return match

    def _at_literal(self, match: re.Match[str]) -> Close:
        start = self._at + match.start()
        if match[0] in self._closers:
            return Close(start, self._at + match.end(), "closer")
        return Close(start, start, "implicit")

    def _count(self, char: str) -> None:
        if self._quote:
            self._quote = ""
            self._hidden = None
        elif char in "{[":
            self._begin = self._begin or char
            self._level += 1
        elif char in "}]":
            self._level -= 1
            self._whole = self._level <= 0
            if self._whole and self._begin == "[" and char == "}":
                self._stray = True
        else:
            self._quote = char

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        # the close after a value that ends at tail[pos], where the next one begins, or -1 to wait
        begin = self._behind_call(tail, pos, final) if self._calls else None
        if begin is not None:
            return begin
        pos = behind_stray_brackets(tail, pos, final) if self._stray else pos
        return -1 if pos < 0 else self._end_at(tail, pos, final)

    def _end_at(self, tail: str, pos: int, final: bool) -> Close | int:
        # as `_behind_value`, for a value that is no call or the last one
        end = self._at + pos
        after = skip_space(tail, pos, _MOST_SPACE)
        rest = tail[after : after + _MOST_SPACE]
        if not rest and not final and after - pos < _MOST_SPACE:
            return -1
        for closer in self._closers:
            if rest.startswith(closer):
                return Close(end, self._at + after + len(closer), "closer")
            if not final and rest and closer.startswith(rest):
                return -1

        if not self._separators and rest and rest[0] in ',"':
            if not final and _KEY_SO_FAR.match(rest):
                return -1
            # A key: the bracket was closed too early, and the text up to its own is one body.
            if _KEY.match(rest):
                return after
        begin = self._next_value(tail, after, final) if self._separators and rest else None
        return Close(end, end, "end") if begin is None else begin

    def _behind_call(self, tail: str, pos: int, final: bool) -> int | None:
        # None if no call follows, -1 to wait
        begin = next_call(tail, pos, final)
        # Behind nothing but white space it is for recovery to say whether that is a call.
        if begin is None or (begin >= 0 and skip_space(tail, pos, _MOST_SPACE) == begin):
            return None
        if begin >= 0:
            self._stray = self._begin == "["
        return begin

    def _next_value(self, tail: str, after: int, final: bool) -> int | None:
        # None if no value follows, -1 to wait
        begin = after
        if tail[after] in self._separators:
            begin = skip_space(tail, after + 1, _MOST_SPACE)
        if begin >= len(tail) and not final and begin - after <= _MOST_SPACE:
            return -1
        return begin if tail[begin : begin + 1] == "{" else None
