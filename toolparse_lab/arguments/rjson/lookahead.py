"""The text behind a place in damaged JSON: the evidence for a missing comma or a closing quote."""

from __future__ import annotations

import re

from ...core.values import space_end

# How it works. A quote inside a string that nobody escaped looks like the end of the string. What
# tells the two apart is what stands behind it: after a closing quote comes a bracket, a comma with
# another member behind it, or the end. A comma alone proves little (prose has commas too), so what
# follows the comma must look like a key in an object, and like a value in a list. Each question
# looks ahead by one token, so asking it at every quote stays linear in the text.

# A key with its colon, in whatever quotes or none; a key does not run over a line end.
_NEXT_KEY = re.compile(
    r"""\s*(?:"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|“[^”\n]*+”|[^\W\d][\w.\-]*+)\s*:"""
)
_NEXT_VALUE = re.compile(r"""\s*(?:["'“{\[\-\d]|(?:true|false|null|True|False|None)\b)""")
PLUS_STRING = re.compile(r'"\s*\+\s*"')
_AFTER_APOSTROPHE_COMMA = re.compile(r"""\s*[,'"\w{\[\]}\-“+]""")
_BEHIND_APOSTROPHE = ("", "}", "]", ":", "/", "#")


def item_begins(text: str, pos: int, top: str) -> bool:
    """Tell if a member begins at `pos`, or an item where `top`, the bracket around, is "["."""
    pattern = _NEXT_KEY if top == "{" else _NEXT_VALUE
    return pattern.match(text, pos) is not None


def double_quote_ends(text: str, at: int, top: str) -> bool:
    """Tell if the double quote at `at` closes the string of a value, by the text behind it.

    top: the bracket around the value, "" at the top level, where nothing can follow.

    The answer depends on the text alone, so it is the same in a stream.
    """
    if not top:
        return True

    after = space_end(text, at + 1)
    ch = text[after : after + 1]
    if ch == "" or ch == "}" or ch == "]":
        return True
    if ch == ",":
        return _comma_goes_on(text, after + 1, top)
    if ch == "/" and text[after + 1 : after + 2] in ("/", "*"):
        return True
    if ch == "+":
        return PLUS_STRING.match(text, at) is not None

    # A missing comma: the next member begins right here.
    return item_begins(text, after, top)


def _comma_goes_on(text: str, pos: int, top: str) -> bool:
    """Tell if the text behind a comma is another item, the end of the container, or nothing."""
    after = space_end(text, pos)
    if text[after : after + 2] in ("//", "/*"):
        return True

    ch = text[after : after + 1]
    return ch == "" or ch in "}]" or item_begins(text, pos, top)


def apostrophe_ends(text: str, at: int, *, key: bool) -> bool:
    """Tell if the apostrophe at `at` closes its string.

    One inside a word does not.

    key: the string is a member's name, behind which only a colon can stand.
    """
    after = space_end(text, at + 1)
    ch = text[after : after + 1]
    if key:
        return ch == ":"
    if ch == ",":
        return _AFTER_APOSTROPHE_COMMA.match(text, after + 1) is not None

    return ch in _BEHIND_APOSTROPHE
