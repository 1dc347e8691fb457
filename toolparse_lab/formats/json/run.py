"""Where a JSON body without a closer of its own ends: after its values."""

# How it works
#
# Brackets outside of strings are counted, see `Balanced`. After the bracket that closes the first
# one is the end of the body, unless a separator and another value follow. A closer that may follow
# belongs to the body's end. Kinds of brackets are not told apart: one too many ends a list early,
# and what follows it says so, another call or the bracket that the list began with.
#
# Invariant: no answer depends on text that is still to come: a literal that may be under way and
# white space after a value are held back. Cost: one pass; what is held back is bounded.

from __future__ import annotations

import re

from ..scan import Balanced, Close, skip_space
from .call import behind_stray_brackets, next_call

_MOST_SPACE = 64
# A key right after a value, and what may become one. Both are shorter than `_MOST_SPACE`.
_KEY = re.compile(r"""(?:,\s{0,8}+)?"[^"\\\n]{1,40}+"\s{0,8}+:""")
_KEY_SO_FAR = re.compile(r"""(?:,\s{0,8}+)?(?:"[^"\\\n]{0,40}+(?:"\s{0,8}+)?)?\Z""")


class ValueRun(Balanced):
    """Ends after the values of a body, and after a closer that may follow them."""

    __slots__ = ("_calls", "_separators", "_stray")

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
        super().__init__(quotes, "{}[]", closers, stops)
        self._separators = separators
        self._calls = calls
        self._stray = False  # a list was closed too early, so that its own bracket is to come

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        self._stray = self._stray or (self._begin == "[" and self._last == "}")
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
