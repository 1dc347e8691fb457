"""Model text made visible: control, bidirectional and other invisible characters become signs one
can see.

A view shows `visible(raw)`, never `raw`: a stray escape sequence, a right-to-left override or a
lone surrogate would otherwise act on the page or terminal instead of being seen.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# Tab and line feed are the layout of the text. A zero-width joiner stays because emoji are
# made of it.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)

# fmt: off
_C0 = (
    "NUL", "SOH", "STX", "ETX", "EOT", "ENQ", "ACK", "BEL", "BS", "TAB", "LF", "VT", "FF", "CR",
    "SO", "SI", "DLE", "DC1", "DC2", "DC3", "DC4", "NAK", "SYN", "ETB", "CAN", "EM", "SUB", "ESC",
    "FS", "GS", "RS", "US",
)
# fmt: on


def sign(char: str) -> str:
    """Return the sign shown for one hidden character.

    >>> sign("\\x1b"), sign("\\u202e")
    ('⟨ESC⟩', '⟨202E⟩')
    """
    code = ord(char)
    if code < 0x20:
        return f"⟨{_C0[code]}⟩"
    return "⟨DEL⟩" if code == 0x7F else f"⟨{code:04X}⟩"


def name_of(char: str) -> str:
    """`U+202E RIGHT-TO-LEFT OVERRIDE`, or the code point alone where Unicode has no name for it."""
    code = ord(char)
    # A surrogate has no name, and printing one would raise.
    if 0xD800 <= code <= 0xDFFF:
        return f"U+{code:04X} lone surrogate"
    return (
        f"U+{code:04X} {unicodedata.name(char, _C0[code] if code < 0x20 else 'control character')}"
    )


def visible(text: str) -> str:
    """`text` with every hidden character replaced by its sign."""
    # No hidden character is printable, and Python knows of most texts at once that all theirs are.
    if text.isprintable():
        return text
    return HIDDEN.sub(lambda match: sign(match[0]), text)


def shorten(text: str, limit: int = 80) -> str:
    """Return at most `limit` characters of `text`, head and tail, with a count of the others.

    >>> shorten("abcdefghij", 6)
    'abcd… 4 more …ij'
    """
    if len(text) <= limit:
        return text
    # The head says more than the tail, of which a hint is enough.
    head = limit * 2 // 3
    tail = limit - head
    return f"{text[:head]}… {len(text) - limit:,} more …{text[-tail:]}"


def one_line(text: str, limit: int = 80) -> str:
    """Visible text for a tooltip or a table cell: no line breaks, shortened."""
    return visible(shorten(text, limit)).replace("\n", "⏎").replace("\t", "⇥")


def aligned(rows: Sequence[Sequence[str]], to_the_right: Collection[int]) -> list[str]:
    """Return a line for each row of cells, in columns; the numbers of those to the right are given.

    Columns are as wide as a terminal draws their texts.

    >>> aligned([["a", "10"], ["bc", "9"]], {1})
    ['a   10', 'bc   9']
    """
    sizes = [max(map(text_width, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = []
        for i, cell in enumerate(row):
            padding = " " * (sizes[i] - text_width(cell))
            cells.append(padding + cell if i in to_the_right else cell + padding)
        lines.append("  ".join(cells).rstrip())
    return lines


def text_width(text: str) -> int:
    """Return how many columns of a terminal a line takes.

    >>> text_width("a"), text_width("天"), text_width("e\u0301")
    (1, 2, 1)
    """
    if text.isascii():
        return len(text)
    # A combining character is drawn on the letter before it.
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


@dataclass(frozen=True, slots=True)
class Shown:
    """Visible text with the way from code points of the original to UTF-16 units of the part shown.

    `hidden` has, flat, the UTF-16 start and end of every stretch of signs.
    """

    text: str
    hidden: tuple[int, ...]
    _breaks: tuple[int, ...]
    _shifts: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Shown:
        """Return the visible form of a text, with the tables to find places in it."""
        # Two things move a place: a sign is longer than its character, and a character beyond
        # U+FFFF takes two units. `breaks` are the offsets of both kinds of character, and `shifts`
        # say by how much all that is after each of them moves.
        out: list[str] = []
        hidden: list[int] = []
        breaks: list[int] = []
        shifts: list[int] = []
        last = shift = 0
        for match in _WIDE_OR_HIDDEN.finditer(text):
            at = match.start()
            out.append(text[last:at])
            last = at + 1
            char = match[0]
            if HIDDEN.match(char):
                stand_in = sign(char)
                start = at + shift
                if hidden and hidden[-1] == start:
                    hidden[-1] = start + len(stand_in)
                else:
                    hidden += (start, start + len(stand_in))
                shift += len(stand_in) - 1
                out.append(stand_in)
            else:
                shift += 1
                out.append(char)
            breaks.append(at)
            shifts.append(shift)
        out.append(text[last:])
        return cls("".join(out), tuple(hidden), tuple(breaks), tuple(shifts))

    def at(self, offset: int) -> int:
        """Return the UTF-16 offset in `text` of a code point offset of the original.

        >>> Shown.of("a😀b").at(2)
        3
        """
        i = bisect_right(self._breaks, offset - 1)
        return offset + (self._shifts[i - 1] if i else 0)


_WIDE_OR_HIDDEN = re.compile(f"[{HIDDEN.pattern[1:-1]}\U00010000-\U0010ffff]")
