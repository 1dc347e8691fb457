"""A damaged text under repair: its characters, the edits so far, and the space between values."""

from __future__ import annotations

import re

from ...core.types import Edit, Span
from ...core.values import space_end
from .refusal import Refusal

# White space that people and other languages know, and JSON does not.
_ODD_SPACE = re.compile(
    "[\x0b\x0c\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]+"
)
# Signs, quotes, letters: what is neither white space nor the beginning of a comment.
_PLAIN = frozenset(map(chr, range(ord("!"), ord("~") + 1))) - {"/", "#"}
# In a comment: what closes a bracket, or a key.
HOLDS_JSON = re.compile(r"[}\]]|[\"']\s*:")
_BEFORE_HASH = " \t\n"  # a # inside a word begins no comment


class Source:
    """One text and the edits that make it strict JSON.

    size: its length. closed: the text is known to be whole, so missing brackets may be added at its
    end. numbers_end: a number at the very end is known to be whole too. edits: in the order in
    which they were found, in offsets of the text as it came.
    """

    def __init__(self, text: str, *, closed: bool, numbers_end: bool) -> None:
        """Begin with a text and no edits.

        closed: its end is known to be the end. numbers_end: a number at the end of it is complete.
        """
        self.text = text
        self.size = len(text)
        self.closed = closed
        self.numbers_end = numbers_end
        self.edits: list[Edit] = []

    def edit(self, start: int, end: int, text: str, rule: str) -> None:
        """Replace [start, end) by a text, under a rule id."""
        self.edits.append(Edit(Span(start, end), text, rule))

    def skip(self, pos: int) -> int:
        """Return the next offset that is neither white space nor comment.

        Space and comments that JSON does not know become edits. Raises Refusal for a comment that
        stays open.
        """
        text = self.text
        # Nothing to skip, or one space: as nearly always.
        ch = text[pos : pos + 1]
        if ch in _PLAIN:
            return pos
        if ch == " " and text[pos + 1 : pos + 2] in _PLAIN:
            return pos + 1

        while True:
            pos = space_end(text, pos)
            if pos >= self.size or text[pos] in _PLAIN:
                return pos

            end = self._end_of_comment_or_odd_space(pos)
            if end == pos:
                return pos

            pos = end

    def _end_of_comment_or_odd_space(self, pos: int) -> int:
        """Return the offset behind the comment or odd space at `pos`, now an edit, or `pos` without
        one.
        """
        ch = self.text[pos]
        if ch == "/" or ch == "#":
            return self._comment(pos) if self._begins_comment(pos) else pos

        odd_space = _ODD_SPACE.match(self.text, pos)
        if odd_space is None:
            return pos

        self.edit(pos, odd_space.end(), " ", "rjson.odd-space")
        return odd_space.end()

    def _begins_comment(self, pos: int) -> bool:
        """Tell if the slash or hash at `pos` begins a comment."""
        if self.text[pos] == "/":
            return self.text[pos + 1 : pos + 2] in ("/", "*")
        return pos == 0 or self.text[pos - 1] in _BEFORE_HASH

    def _comment(self, pos: int) -> int:
        """Drop the comment at `pos`.

        Returns the offset behind it.

        Raises Refusal for a comment that is never closed.
        """
        if self.text.startswith("/*", pos):
            end = self.text.find("*/", pos + 2)
            if end < 0:
                raise Refusal("decode.truncated-value", "a comment is not closed", pos)
            end += 2
        else:
            # The line feed stays: it is white space, and may be what separates two items.
            end = self.text.find("\n", pos)
            if end < 0:
                end = self.size
                # A sign that begins no comment would take the rest of the value with it.
                if HOLDS_JSON.search(self.text, pos):
                    message = "a comment to the end of the text would hold a part of the value"
                    raise Refusal("decode.ambiguous", message, pos)

        self.edit(pos, end, "", "rjson.comment")
        return end
