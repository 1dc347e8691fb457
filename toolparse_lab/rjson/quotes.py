"""Strings in quotes that JSON does not have: single and typographic ones, as the edits that make them JSON's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..types import Edit, Span
from ..values import space_end
from .refusal import Refusal

ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})')
_AFTER_COMMA = re.compile(r"""\s*[,'"\w{\[\]}\-“+]""")
_HEX_ESCAPE = re.compile(r"\\x[0-9a-fA-F]{2}")  # Python's and JavaScript's
_CONTROL_NAMES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}


@dataclass(frozen=True, slots=True)
class Quotes:
    """A kind of quotes: what may close it, what must be looked at inside, and how it is named."""

    closers: str
    stop: re.Pattern[str]
    rule: str
    name: str
    program: bool  # programs write them, so that \' and \x41 are escapes


_SINGLE = Quotes("'", re.compile(r"['\"\\\x00-\x1f]"), "rjson.single-quotes", "single quotes", True)
_SMART_STOP = re.compile(r'["\\\x00-\x1f“”‘’]')
QUOTES = {
    "'": _SINGLE,
    **{
        opener: Quotes(closers, _SMART_STOP, "rjson.smart-quotes", "typographic quotes", False)
        for opener, closers in {"“": "”", "”": "”", "„": "“”", "‟": "”", "‘": "’", "’": "’", "‚": "‘’"}.items()
    },
}
"""Opening character -> its quotes."""


def read_quoted(text: str, pos: int, *, key: bool) -> tuple[int, list[Edit]]:
    """The offset behind the string that one of `QUOTES` opens at `pos`, and its edits; raises Refusal.

    key: the string is a member's name, so that its closing quote stands before a colon.
    """
    quotes = QUOTES[text[pos]]
    edits = [Edit(Span(pos, pos + 1), '"', quotes.rule)]
    bad: list[int] = []  # backslashes that begin no escape
    good_letters = False
    i = pos + 1
    while True:
        m = quotes.stop.search(text, i)
        if not m:
            raise Refusal("decode.truncated-value", f"a string in {quotes.name} is not closed", pos)
        at, ch = m.start(), m[0]
        i = at + 1
        if ch in quotes.closers:
            if ch not in "'’" or apostrophe_ends(text, at, key=key and quotes.program):
                break
        elif ch == '"':
            edits.append(Edit(Span(at, at + 1), '\\"', quotes.rule))
        elif ch == "\\":
            escape = ESCAPE.match(text, at)
            if escape:
                good_letters = good_letters or text[at + 1] in "bfnrtu"
                i = escape.end()
            elif quotes.program and text[at + 1 : at + 2] == "'":
                edits.append(Edit(Span(at, at + 1), "", quotes.rule))
                i = at + 2
            elif quotes.program and _HEX_ESCAPE.match(text, at):
                good_letters = True
                edits.append(Edit(Span(at, at + 2), "\\u00", quotes.rule))
                i = at + 4
            else:
                bad.append(at)
                edits.append(Edit(Span(at, at), "\\", "rjson.bad-escape"))
        elif ch < " ":
            edits.append(Edit(Span(at, at + 1), escape_control(ch), "rjson.raw-control"))
    refuse_two_readings(text, bad, good_letters)
    edits.append(Edit(Span(at, at + 1), '"', quotes.rule))
    return at + 1, edits


def apostrophe_ends(text: str, at: int, *, key: bool) -> bool:
    """Whether the apostrophe at `at` closes its string; one inside a word does not."""
    after = space_end(text, at + 1)
    ch = text[after : after + 1]
    if key:
        return ch == ":"
    if ch == ",":
        return bool(_AFTER_COMMA.match(text, after + 1))
    return ch in ("", "}", "]", ":", "/", "#")


def refuse_two_readings(text: str, bad: list[int], good_letters: bool) -> None:
    """Refuses a string in which some backslashes begin escapes with a letter and some letters' do not."""
    if good_letters and any(text[b + 1 : b + 2].isalpha() for b in bad):
        raise Refusal("decode.ambiguous", "some backslashes of this string begin escapes and some do not", bad[0])


def escape_control(ch: str) -> str:
    """A control character as JSON writes it inside a string."""
    return _CONTROL_NAMES.get(ch) or f"\\u{ord(ch):04x}"
