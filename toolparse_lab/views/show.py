"""Model text made visible: control, bidirectional and other invisible characters become signs one
can see.

A view shows `visible(raw)`, never `raw`: a stray escape sequence, a right-to-left override or a
lone surrogate would otherwise act on the page or terminal instead of being seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence

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
