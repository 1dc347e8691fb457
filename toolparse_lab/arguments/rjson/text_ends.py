"""If a string of damaged JSON may end, and the cost of each end."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...core.types import Edit, Span
from .quotes import escape_control
from .signs import QUOTES

# How it works. The end that strict JSON knows, the next quote, costs nothing. Others are a quote
# that is missing (before what only stands behind a string), one of another kind, one that changed
# places with its neighbour, and a later quote where those before it are part of the text. Only
# places that something plainly follows are taken, since every comma of a prose text might be one.

_PUT_IN, _DROPPED, _REPLACED, _SWAPPED, _ESCAPED, _RAW_CONTROL = 2, 2, 2, 2, 3, 1
_STOP = re.compile(r'["\\\x00-\x1f,:}\]' + QUOTES + "]")
_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_OTHER_QUOTES = frozenset(QUOTES) - {'"'}
_MAX_ENDS = 64
# What stands behind a string, by where it is. A colon behind a key; behind a value a comma and
# another member or item, or brackets and whatever follows them.
_BRACKETS = r"\s*+[}\]][\s}\]]*+"
_NEXT = {"{": r'\s*+,\s*+"', "[": r'\s*+,\s*+(?:["{\[\d\-]|true|false|null)'}
_BEHIND_OTHER = {top: re.compile(rf"{item}|{_BRACKETS}(?:,|\Z)") for top, item in _NEXT.items()}
# Where no quote stands at all, brackets up to the end prove nothing: the text may have been cut off
# inside the string, and they be a part of it.
_BEHIND_NONE = {top: re.compile(f"{item}|{_BRACKETS},") for top, item in _NEXT.items()}
_BEHIND_KEY = re.compile(r"\s*+:")
_NEVER = re.compile(r"(?!)")

End = tuple[int, int, tuple[Edit, ...], str]
"""(offset behind, cost, edits, the sign that follows where it was swapped with the quote)"""


class TextEnds:
    """The ends of the strings of one text, each looked for once."""

    def __init__(self, text: str, max_cost: int) -> None:
        self._text = text
        self._max_cost = max_cost
        self._known: dict[tuple[int, bool, str], list[End]] = {}

    def of(self, pos: int, is_key: bool, top: str) -> list[End]:
        """The ends of a string whose inside begins at `pos`. top: the bracket around it."""
        key = (pos, is_key, top)
        if key not in self._known:
            ends: list[End] = []
            other = _BEHIND_KEY if is_key else _BEHIND_OTHER.get(top, _NEVER)
            none = _BEHIND_KEY if is_key else _BEHIND_NONE.get(top, _NEVER)
            for end in self._find(pos, other, none):
                ends.append(end)
                if len(ends) >= _MAX_ENDS:
                    break
            self._known[key] = ends
        return self._known[key]

    def _find(
        self, pos: int, behind_other: re.Pattern[str], behind: re.Pattern[str]
    ) -> Iterator[End]:
        """Yield the ends, in order of their places.

        behind_other, behind: the text behind an end with a quote of another kind, and with none.
        """
        text = self._text
        start, cost = pos, 0
        inside: tuple[Edit, ...] = ()
        has_control = False
        escaped = unescaped = 0  # quotes inside, with a backslash and without
        while stop := _STOP.search(text, pos):
            at, ch = stop.start(), stop[0]
            pos = at + 1
            if ch == '"':
                yield at + 1, cost, inside, ""
                yield from self._swapped(start, at, cost, inside)
                inside += (Edit(Span(at, at + 1), '\\"', "rjson.unescaped-quote"),)
                cost += _ESCAPED
                unescaped += 1
            elif ch == "\\":
                escape = _ESCAPE.match(text, at)
                if escape is None:
                    return  # which escape was meant is not for a search to say
                pos = escape.end()
                is_quote = escape[0] == '\\"'
                escaped += is_quote
                # Of quotes in pairs none has a backslash too many.
                if is_quote and escaped % 2 and behind_other.match(text, pos):
                    edit = Edit(Span(at, at + 1), "", "rjson.extra-sign")
                    yield pos, cost + _DROPPED, (*inside, edit), ""
            elif ch < " ":
                # A quote that is missing is missing in front of the line break, not behind it.
                if behind.match(text, at):
                    edit = Edit(Span(at, at), '"', "rjson.missing-quote")
                    yield at, cost + _PUT_IN, (*inside, edit), ""
                inside += (Edit(Span(at, at + 1), escape_control(ch), "rjson.raw-control"),)
                cost += 0 if has_control else _RAW_CONTROL
                has_control = True
            elif ch in _OTHER_QUOTES:
                if behind_other.match(text, at + 1):
                    edit = Edit(Span(at, at + 1), '"', "rjson.wrong-sign")
                    yield at + 1, cost + _REPLACED, (*inside, edit), ""
            # The odd one of the quotes inside may be the end, so that none is missing.
            elif unescaped % 2 == 0 and behind.match(text, at):
                edit = Edit(Span(at, at), '"', "rjson.missing-quote")
                price = _PUT_IN + (at > start and text[at - 1] in _OTHER_QUOTES)
                price += has_control and text[at - 1].isspace()
                yield at, cost + price, (*inside, edit), ""
            if cost > self._max_cost:
                return

    def _swapped(self, start: int, at: int, cost: int, inside: tuple[Edit, ...]) -> Iterator[End]:
        """Yield the ends of a string whose closing quote, now at `at`, changed places."""
        text = self._text
        before, after = text[at - 1], text[at + 1 : at + 2]
        if at > start and before in ",:}]" and not _ends_at(inside, at):
            edit = Edit(Span(at - 1, at + 1), f'"{before}', "rjson.swapped-signs")
            yield at + 1, cost + _SWAPPED, (*inside, edit), before
        if after.isalnum() and not cost:
            # A letter after the quote left the string, or it is one too many.
            for span, signs, rule in (
                (Span(at, at + 2), f'{after}"', "rjson.swapped-signs"),
                (Span(at + 1, at + 2), "", "rjson.extra-sign"),
            ):
                yield at + 2, cost + _SWAPPED, (*inside, Edit(span, signs, rule)), ""


def _ends_at(inside: tuple[Edit, ...], at: int) -> bool:
    """Tell if the last edit reaches up to an offset."""
    return bool(inside) and inside[-1].span.end >= at
