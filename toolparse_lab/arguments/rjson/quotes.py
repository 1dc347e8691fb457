"""Strings in every kind of quotes, as the edits that make them JSON's.

Double quotes, which JSON has, with damage inside. Single, typographic and triple ones, which it has
not.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...core.types import Edit, Span
from .lookahead import apostrophe_ends, double_quote_ends
from .refusal import Refusal

# How it works. One walk serves all quotes; a `Quotes` row says how they differ. The walk jumps from
# one character that needs a look to the next (a mark that may close, a double quote, a backslash, a
# control character) and stops at the first mark that closes. Everything else on the way becomes an
# edit, or stays.
#
# Backslashes are the one thing that is refused. `C:\new` and `C:\temp` can be meant as paths or as
# escapes, and nobody knows which. If no backslash of a string begins an escape with a letter, all
# are text; if all do, all are escapes; if some do and some stand before other letters, the string
# has two readings. So the walk only collects them, and the decision falls at the end.

_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_HEX_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}")  # Python's and JavaScript's
_CONTROL_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LETTER_ESCAPES = "bfnrtu"
_APOSTROPHES = "'’"


@dataclass(frozen=True, slots=True)
class Quotes:
    """One kind of quotes.

    name: of a string in them, for messages. closers: the characters that may close it. stop: the
    offsets to look at inside. rule: of the double quotes that are escaped inside. apostrophe_rule:
    of `\\'`, None if that is not an escape. hex_escapes: `\\x41` is one.
    """

    name: str
    closers: str
    stop: re.Pattern[str]
    rule: str
    apostrophe_rule: str | None = None
    hex_escapes: bool = False


_IN_DOUBLE = re.compile(r'["\\\x00-\x1f]')
_IN_SINGLE = re.compile(r"['\"\\\x00-\x1f]")
_IN_SMART = re.compile(r'["\\\x00-\x1f“”‘’]')

_DOUBLE = Quotes("a string", '"', _IN_DOUBLE, "rjson.unescaped-quote", "rjson.escaped-apostrophe")
_TRIPLE = Quotes("a string in triple quotes", "", _IN_DOUBLE, "rjson.triple-quotes")
# Programs write single quotes, so that \' and \x41 are escapes in them.
_SINGLE = Quotes(
    "a string in single quotes",
    "'",
    _IN_SINGLE,
    "rjson.single-quotes",
    "rjson.single-quotes",
    hex_escapes=True,
)
# Languages differ in their typographic quotes: a German „ is closed by what opens an English “.
_SMART_CLOSERS = {
    "“": "”",
    "”": "”",
    "„": "“”",
    "‟": "”",
    "‘": "’",
    "’": "’",
    "‚": "‘’",
}
FOREIGN = {
    "'": _SINGLE,
    **{
        opener: Quotes("a string in typographic quotes", closers, _IN_SMART, "rjson.smart-quotes")
        for opener, closers in _SMART_CLOSERS.items()
    },
}
"""Opening character that JSON does not have -> its quotes."""


def read_double(text: str, pos: int, *, key: bool, top: str = "") -> tuple[int, list[Edit]]:
    """Return the offset behind the string in double quotes at `pos`, and the edits inside it.

    key: the string is a member's name, and ends at the first quote. top: the bracket around it.
    Raises Refusal.
    """
    # Most strings of a damaged text are whole: the first stop is the closing quote.
    stop = _IN_DOUBLE.search(text, pos + 1)
    if stop and stop[0] == '"' and (key or double_quote_ends(text, stop.start(), top)):
        return stop.end(), []

    def closes(at: int) -> bool:
        return key or double_quote_ends(text, at, top)

    inside = _Inside(text, _DOUBLE)
    return inside.read_to_closer(pos, closes) + 1, inside.edits


def read_foreign(text: str, pos: int, *, key: bool) -> tuple[int, list[Edit]]:
    """Return the offset behind the string that a mark of `FOREIGN` opens at `pos`, and its edits.

    key: the string is a member's name, so that its closing quote stands before a colon. Raises
    Refusal.
    """
    quotes = FOREIGN[text[pos]]
    # Only what programs write is sure to have its colon right behind the key.
    before_colon = key and quotes is _SINGLE

    def closes(at: int) -> bool:
        return text[at] not in _APOSTROPHES or apostrophe_ends(text, at, key=before_colon)

    inside = _Inside(text, quotes)
    end = inside.read_to_closer(pos, closes)
    opener = Edit(Span(pos, pos + 1), '"', quotes.rule)
    closer = Edit(Span(end, end + 1), '"', quotes.rule)
    return end + 1, [opener, *inside.edits, closer]


def read_triple(text: str, pos: int) -> tuple[int, list[Edit]]:
    """Return the offset behind the string between three quotes on each side at `pos`, and its
    edits.

    Python writes texts of several lines so. Raises Refusal if it stays open.
    """
    start = pos + 3
    end = text.find('"""', start)
    if end < 0:
        raise Refusal("decode.truncated-value", f"{_TRIPLE.name} is not closed", pos)

    inside = _Inside(text, _TRIPLE)
    inside.read_until(start, end)
    opener = Edit(Span(pos, start), '"', _TRIPLE.rule)
    closer = Edit(Span(end, end + 3), '"', _TRIPLE.rule)
    return end + 3, [opener, *inside.edits, closer]


class _Inside:
    """The inside of one string: its edits, and everything known of its backslashes so far."""

    __slots__ = ("_letter_escapes", "_lone_backslashes", "_quotes", "_text", "edits")

    def __init__(self, text: str, quotes: Quotes) -> None:
        self._text = text
        self._quotes = quotes
        self._lone_backslashes: list[int] = []  # those that begin no escape
        self._letter_escapes = False  # an escape with a letter, such as \n, was among the others
        self.edits: list[Edit] = []

    def read_to_closer(self, pos: int, closes: Callable[[int], bool]) -> int:
        """Return the offset of the closing quote of the string that opens at `pos`.

        closes: asked at each mark that may close it. Raises Refusal if none does, and where the
        backslashes have two readings.
        """
        closers, search = self._quotes.closers, self._quotes.stop.search
        offset = pos + 1
        while stop := search(self._text, offset):
            at, ch = stop.start(), stop[0]
            if ch in closers and closes(at):
                self._refuse_two_readings()
                self._refuse_two_openers(pos)
                return at

            offset = self._pass_over(at, ch)

        raise Refusal("decode.truncated-value", f"{self._quotes.name} is not closed", pos)

    def read_until(self, start: int, end: int) -> None:
        """Read an inside whose end is known. Its backslashes stay wherever they can be."""
        search = self._quotes.stop.search
        offset = start
        while stop := search(self._text, offset, end):
            offset = self._pass_over(stop.start(), stop[0])

    def _pass_over(self, at: int, ch: str) -> int:
        """Repair the character at `at`, which does not close.

        Returns the offset to go on at.
        """
        if ch == '"':
            self._edit(at, at + 1, '\\"', self._quotes.rule)
        elif ch == "\\":
            return self._backslash(at)
        elif ch < " ":
            self._edit(at, at + 1, escape_control(ch), "rjson.raw-control")
        return at + 1

    def _backslash(self, at: int) -> int:
        """Repair the backslash at `at`. Returns the offset behind its escape."""
        text, quotes = self._text, self._quotes
        escape = _ESCAPE.match(text, at)
        if escape:
            self._letter_escapes = self._letter_escapes or text[at + 1] in _LETTER_ESCAPES
            return escape.end()
        if quotes.apostrophe_rule and text[at + 1 : at + 2] == "'":
            self._edit(at, at + 1, "", quotes.apostrophe_rule)
            return at + 2
        if quotes.hex_escapes and _HEX_ESCAPE.match(text, at):
            self._letter_escapes = True
            self._edit(at, at + 2, "\\u00", quotes.rule)
            return at + 4

        self._lone_backslashes.append(at)
        self._edit(at, at, "\\", "rjson.bad-escape")
        return at + 1

    def _edit(self, start: int, end: int, text: str, rule: str) -> None:
        self.edits.append(Edit(Span(start, end), text, rule))

    def _refuse_two_openers(self, pos: int) -> None:
        """Refuse a string at `pos` that has one quote inside, with nothing but white space before
        it: it may be the one that opens the string.
        """
        inside = [edit.span.start for edit in self.edits if edit.rule == self._quotes.rule]
        if len(inside) == 1 and self._text[pos + 1 : inside[0]].isspace():
            message = "either of two quotes may open the string"
            raise Refusal("decode.ambiguous", message, inside[0])

    def _refuse_two_readings(self) -> None:
        """Refuse a string in which some backslashes begin escapes with a letter and some letters'
        do not.
        """
        lone = self._lone_backslashes
        if self._letter_escapes and any(self._text[at + 1 : at + 2].isalpha() for at in lone):
            message = "some backslashes of this string begin escapes and some do not"
            raise Refusal("decode.ambiguous", message, lone[0])


def escape_control(ch: str) -> str:
    """Return a control character as JSON writes it inside a string."""
    return _CONTROL_NAMES.get(ch) or f"\\u{ord(ch):04x}"
