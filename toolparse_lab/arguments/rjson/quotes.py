"""Strings in every kind of quotes, as the edits that make them JSON's: where they end, and what is
damaged inside.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ...core.types import Edit, Span
from ...core.values import space_end
from .strict import Refusal

# How it works. One walk serves all quotes; a `Quotes` row says how they differ. The walk jumps from
# one character that needs a look to the next (a mark that may close, a double quote, a backslash, a
# control character) and stops at the first mark that closes. Everything else on the way becomes an
# edit, or stays.
#
# A quote inside a string that nobody escaped looks like the end of the string. What tells the two
# apart is what comes after: after a closing quote comes a bracket, a comma with another member
# after it, or the end. A comma alone proves little (prose has commas too), so what follows the
# comma must look like a key in an object, and like a value in a list. Each question looks ahead by
# one token, so asking it at every quote stays linear in the text. The answer depends on the text
# alone, so it is the same in a stream.
#
# Backslashes are the one thing that is refused. `C:\new` and `C:\temp` can be meant as paths or as
# escapes, and nobody knows which. If no backslash of a string begins an escape with a letter, all
# are text; if all do, all are escapes; if some do and some are before other letters, the string
# has two readings. So the walk only collects them, and the decision falls at the end.

_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_HEX_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}")  # Python's and JavaScript's
_CONTROL_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}
_LETTER_ESCAPES = "bfnrtu"
# A key with its colon, in whatever quotes or none; a key does not run over a line end.
_NEXT_KEY = re.compile(
    r"""\s*(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|“[^”\n]*+”|[^\W\d][\w.\-]*+)\s*:"""
)
_NEXT_VALUE = re.compile(r"""\s*(?:["'“{\[\-\d]|(?:true|false|null|True|False|None)\b)""")
PLUS_STRING = re.compile(r'"\s*\+\s*"')
_AFTER_APOSTROPHE_COMMA = re.compile(r"""\s*[,'"\w{\[\]}\-“+]""")
_AFTER_APOSTROPHE = ("", "}", "]", ":", "/", "#")
_APOSTROPHES = "'’"


@dataclass(frozen=True, slots=True)
class Quotes:
    """One kind of quotes."""

    name: str  # of a string in them, for messages
    closers: str  # the characters that may close it
    stop: re.Pattern[str]  # what to look at inside
    rule: str  # of the double quotes that are escaped inside
    apostrophe_rule: str | None = None  # of `\'`, None if that is not an escape
    hex_escapes: bool = False  # `\x41` is one


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
_SMART_CLOSERS = {"“": "”", "”": "”", "„": "“”", "‟": "”", "‘": "’", "’": "’", "‚": "‘’"}
FOREIGN = {
    "'": _SINGLE,
    **{
        opener: Quotes("a string in typographic quotes", closers, _IN_SMART, "rjson.smart-quotes")
        for opener, closers in _SMART_CLOSERS.items()
    },
}
"""Opening character that JSON does not have -> its quotes."""


def read_double(text: str, pos: int, edits: list[Edit], *, key: bool, top: str = "") -> int:
    """Return the offset after the string in double quotes at `pos`; add its edits.

    key: it is a member's name, and ends at the first quote. top: the bracket around it, "" at the
    top level. Raises Refusal.
    """
    # Most strings of a damaged text are whole: the first stop is the closing quote.
    stop = _IN_DOUBLE.search(text, pos + 1)
    if stop and stop[0] == '"' and (key or _double_quote_ends(text, stop.start(), top)):
        return stop.end()

    inside = _Inside(text, _DOUBLE, key)
    end = inside.read_to_closer(pos, lambda at: key or _double_quote_ends(text, at, top))
    edits += inside.edits
    return end + 1


def read_foreign(text: str, pos: int, edits: list[Edit], *, key: bool) -> int:
    """Return the offset after the string that a mark of `FOREIGN` opens at `pos`; add its edits."""
    quotes = FOREIGN[text[pos]]
    # Only what programs write is sure to have its colon right after the key.
    before_colon = key and quotes is _SINGLE
    found: list[Edit] = []
    stop = quotes.stop.search(text, pos + 1)  # as above
    if stop and stop[0] in quotes.closers and _foreign_quote_ends(text, stop.start(), before_colon):
        end = stop.start()
    else:
        inside = _Inside(text, quotes, key)
        end = inside.read_to_closer(pos, lambda at: _foreign_quote_ends(text, at, before_colon))
        found = inside.edits
    opener, closer = Span(pos, pos + 1), Span(end, end + 1)
    edits += (Edit(opener, '"', quotes.rule), *found, Edit(closer, '"', quotes.rule))
    return end + 1


def read_triple(text: str, pos: int, edits: list[Edit]) -> int:
    """Return the offset after the string in triple double quotes at `pos`; add its edits."""
    start = pos + 3
    end = text.find('"""', start)
    if end < 0:
        raise Refusal("decode.truncated-value", f"{_TRIPLE.name} is not closed", pos)

    inside = _Inside(text, _TRIPLE)
    offset = start
    while stop := _IN_DOUBLE.search(text, offset, end):  # its backslashes stay wherever they can be
        offset = inside.pass_over(stop.start(), stop[0])
    opener, closer = Span(pos, start), Span(end, end + 3)
    edits += (Edit(opener, '"', _TRIPLE.rule), *inside.edits, Edit(closer, '"', _TRIPLE.rule))
    return end + 3


class _Inside:
    # The inside of one string: its edits, and everything known of its backslashes so far.
    __slots__ = ("_key", "_letter_escapes", "_lone_backslashes", "_quotes", "_text", "edits")

    def __init__(self, text: str, quotes: Quotes, key: bool = False) -> None:
        self._text = text
        self._key = key
        self._quotes = quotes
        self._lone_backslashes: list[int] = []  # those that begin no escape
        self._letter_escapes = False  # an escape with a letter, such as \n, was among the others
        self.edits: list[Edit] = []

    def read_to_closer(self, pos: int, closes: Callable[[int], bool]) -> int:
        # The offset of the closing quote. closes: asked at each mark that may close.
        text = self._text
        closers, search = self._quotes.closers, self._quotes.stop.search
        offset = pos + 1
        while stop := search(text, offset):
            at, ch = stop.start(), stop[0]
            if ch in closers and closes(at):
                break
            offset = self.pass_over(at, ch)
        else:
            raise Refusal("decode.truncated-value", f"{self._quotes.name} is not closed", pos)

        lone = self._lone_backslashes
        if self._letter_escapes and any(text[at + 1 : at + 2].isalpha() for at in lone):
            message = "some backslashes of this string begin escapes and some do not"
            raise Refusal("decode.ambiguous", message, lone[0])
        inside = [edit.span.start for edit in self.edits if edit.rule == self._quotes.rule]
        if len(inside) == 1 and text[pos + 1 : inside[0]].isspace():
            message = "either of two quotes may open the string"
            raise Refusal("decode.ambiguous", message, inside[0])
        return stop.start()

    def pass_over(self, at: int, ch: str) -> int:
        # Repairs the character at `at`, which does not close. Returns the offset to go on at.
        if ch == '"':
            self._edit(at, at + 1, '\\"', self._quotes.rule)
        elif ch == "\\":
            return self._backslash(at)
        elif ch < " ":
            self._edit(at, at + 1, escape_control(ch), "rjson.raw-control")
        return at + 1

    def _backslash(self, at: int) -> int:
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

        if self._key and text.startswith("_", at + 1):
            self._edit(at, at + 1, "", "rjson.escaped-name")
            return at + 2
        self._lone_backslashes.append(at)
        self._edit(at, at, "\\", "rjson.bad-escape")
        return at + 1

    def _edit(self, start: int, end: int, text: str, rule: str) -> None:
        self.edits.append(Edit(Span(start, end), text, rule))


def escape_control(ch: str) -> str:
    """Return a control character as JSON writes it inside a string."""
    return _CONTROL_NAMES.get(ch) or f"\\u{ord(ch):04x}"


def item_begins(text: str, pos: int, top: str) -> bool:
    """Return True if a member begins at `pos`, or an item where the bracket around it is "["."""
    pattern = _NEXT_KEY if top == "{" else _NEXT_VALUE
    return pattern.match(text, pos) is not None


def _double_quote_ends(text: str, at: int, top: str) -> bool:
    if not top:  # nothing can follow
        return True

    after = space_end(text, at + 1)
    ch = text[after : after + 1]
    if ch == "" or ch == "}" or ch == "]":
        return True
    if ch == ",":
        # Another item, the end of the container, or nothing.
        pos = after + 1
        after = space_end(text, pos)
        if text[after : after + 2] in ("//", "/*"):
            return True
        ch = text[after : after + 1]
        return ch == "" or ch in "}]" or item_begins(text, pos, top)
    if ch == "/" and text[after + 1 : after + 2] in ("/", "*"):
        return True
    if ch == "+":
        return PLUS_STRING.match(text, at) is not None

    # A missing comma: the next member begins right here.
    return item_begins(text, after, top)


def _foreign_quote_ends(text: str, at: int, before_colon: bool) -> bool:
    if text[at] not in _APOSTROPHES:
        return True
    after = space_end(text, at + 1)
    ch = text[after : after + 1]
    if before_colon:
        return ch == ":"
    if ch == ",":
        return _AFTER_APOSTROPHE_COMMA.match(text, after + 1) is not None

    return ch in _AFTER_APOSTROPHE
