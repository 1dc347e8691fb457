"""The signs of JSON, and the characters that people and models write in their place."""

from __future__ import annotations

QUOTES = "\"'`´“”„‟‘’‚＂＇«»"
ALIKE = {
    "{": "({[｛（<【",
    "[": "[({［（<【",
    "}": ")}]｝）>】",
    "]": ")]}］）>】",
    ":": ":=：;；",
    ",": ",;；，、.",
    '"': QUOTES,
}
"""Sign -> characters that are easily written for it."""
DROPPABLE = frozenset("".join(ALIKE.values()))
"""Characters that may be one too many: no letter, digit or word's sign is."""


def is_doubled(text: str, pos: int) -> bool:
    """Tell if the character at `pos` stands there twice."""
    ch = text[pos]
    return text[pos - 1 : pos] == ch or text[pos + 1 : pos + 2] == ch
