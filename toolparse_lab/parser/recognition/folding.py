"""Texts folded for comparison: two texts are alike if only quoting and one escaping differ."""

# How it works
# ------------
# A text is folded once: what quoting adds or takes away is dropped (white space, quotes, prefixes
# of lines, backslashes, characters without width), and one level of escaping is read (HTML, JSON,
# percent signs). Two texts are the same text, quoted differently, when they fold to the same.
#
# State: `text` is the folded text. `_folded` and `_starts` say where each kept run begins in it
# and in the text it was made from, so that a place found in one is a place in the other.
#
# Invariant: both sides are folded by the same rules, so that a character that is dropped though it
# meant something (the minus sign) makes two texts alike, but never two copies different.
#
# Cost: one regular expression over the text; a search is one `str.find`, and a few more where the
# place found is only a part of a longer word.

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache
from html import unescape

from ...core.types import Span

_WIDTHLESS = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_DROPPED = (
    r"\s\"'`\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb\u2039\u203a"
    rf">|*#+~\-\u2022{_WIDTHLESS}"
)
_FOLDED_TOKEN = re.compile(
    # Line breaks, with the sign of a comment behind them. All that is looked through is dropped in
    # one go, so that a long row of line breaks or backslashes is passed once.
    r"\\++[nrt](?:\s*+//)?|\n\s*+(?://)?"
    r"|\\++u(?P<unit>[0-9a-fA-F]{4})|\\++x(?P<byte>[0-9a-fA-F]{2})|\\++"
    r"|%(?P<percent>[2-7][0-9a-fA-F])"
    r"|(?P<entity>&(?:amp;)*(?:lt|gt|quot|apos|nbsp|amp|\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6});)"
    rf"|(?P<kept>[^\\&%{_DROPPED}]+|[&%])"
)
# The beginning of whatever is read and not only dropped, and what is dropped elsewhere.
_ESCAPE = re.compile(r"[\\&%]")
_LEFT_OUT = re.compile(rf"\n\s*+(?://)?|[{_DROPPED}]++")
_PERCENT = re.compile(r"(?:%[0-9a-fA-F]{2})+")
_DROPPED_CHARACTER = re.compile(rf"[\\{_DROPPED}]")
_TRIES = 64  # places looked at for one text that stands as a part of longer words
_MOST_TEXTS = 32


class Folded:
    """A text folded for comparison, with the way back to its own offsets."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._folded: list[int] = []
        self._starts: list[int] = []
        runs: list[str] = []
        size = 0
        for match in _FOLDED_TOKEN.finditer(source):
            run = _kept(match)
            if run:
                self._folded.append(size)
                self._starts.append(match.start())
                runs.append(run)
                size += len(run)
        self.text = "".join(runs)

    def find(self, needle: str) -> Span | None:
        # The first place, as a span of `source`. One inside a longer word or number does not
        # count.
        at = -1
        for _ in range(_TRIES):
            at = self.text.find(needle, at + 1)
            if at < 0:
                return None
            if self._apart(at) and self._apart(at + len(needle)):
                return Span(self._offset(at), self._offset(at + len(needle) - 1) + 1)
        return None

    def _apart(self, at: int) -> bool:
        text = self.text
        if not 0 < at < len(text) or not (text[at - 1].isalnum() and text[at].isalnum()):
            return True
        run = bisect_right(self._folded, at) - 1
        return self._folded[run] == at

    def _offset(self, at: int) -> int:
        run = bisect_right(self._folded, at) - 1
        return self._starts[run] + at - self._folded[run]


def fold(text: str) -> str:
    """The folded form of a text.

    >>> fold('&gt; {\\\\"a\\\\": 1}') == fold('{"a": 1}')
    True
    """
    return "".join(filter(None, map(_kept, _FOLDED_TOKEN.finditer(text))))


class Unquoted:
    """A text with its percent signs read, with the way back to its own offsets.

    outer: what the text was made from in the same way.
    """

    def __init__(self, source: str, outer: Unquoted | None = None) -> None:
        self._outer = outer
        self._starts: list[int] = []  # of each run, in the text, and in its source
        self._sources: list[int] = []
        parts: list[str] = []
        size = end = 0
        for match in _PERCENT.finditer(source):
            plain = source[end : match.start()]
            read = bytes.fromhex(match[0].replace("%", "")).decode("utf-8", "replace")
            self._starts += size, size + len(plain)
            self._sources += end, match.start()
            parts += plain, read
            size += len(plain) + len(read)
            end = match.end()
        self._starts.append(size)
        self._sources.append(end)
        self.text = "".join((*parts, source[end:]))
        self.folded = Folded(self.text)

    def find(self, needle: str) -> Span | None:
        place = self.folded.find(needle)
        return place and Span(self._offset(place.start), self._offset(place.end))

    def _offset(self, at: int) -> int:
        # Inside a run of escapes that of its beginning.
        run = bisect_right(self._starts, at) - 1
        offset = self._sources[run] + (0 if run % 2 else at - self._starts[run])
        return offset if self._outer is None else self._outer._offset(offset)


@lru_cache(maxsize=_MOST_TEXTS)
def forms_of(source: str) -> tuple[Folded | Unquoted, ...]:
    """Return a text folded, and folded with its percent signs read once and twice, if it has any.

    The last few are kept: conversations repeat the texts of their requests.
    """
    forms: list[Folded | Unquoted] = [Folded(source)]
    if _PERCENT.search(source):
        forms.append(once := Unquoted(source))
        if _PERCENT.search(once.text):
            forms.append(Unquoted(once.text, once))
    return tuple(forms)


def holds(source: str, name: str) -> bool:
    """Return True if a name that folds to itself is in a text, in any of its forms."""
    if not _ESCAPE.search(source):
        return name in _LEFT_OUT.sub("", source)  # without the way back, which costs most
    forms = forms_of(source)
    return any(name in (f.folded if isinstance(f, Unquoted) else f).text for f in forms)


def _kept(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return ""
    token = match[kind]
    if kind == "kept":
        return token
    if kind == "entity":
        character = unescape(token.replace("amp;", "") if token.count("amp;") > 1 else token)
        # `&amp;lt;` is a `<` that was escaped twice.
        while character.startswith("&") and character != (again := unescape(character)):
            character = again
    else:
        character = chr(int(token, 16))
    return _DROPPED_CHARACTER.sub("", character)
