"""Marks of quotation before an opener: quotation marks, quoted lines, indented blocks."""

from __future__ import annotations

import re
from typing import Literal

WINDOW = 512  # characters before an opener that are looked at
LINE_HEAD = 16  # characters at the beginning of its line
LONG_RUN = 256  # a longer run of backticks counts as several, so that it need not be held back
_RUN_OF_TICKS = re.compile(rf"`{{1,{LONG_RUN}}}")

# A quoted line, also in a list, or a row of a table.
_LINE_SIGN = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?:>|\|[ \t])")
_ITEM = re.compile(r" {0,3}(?:[-*+]|(?:\*\*)?(?:[Ss]tep )?\d{1,3}[.):])[ \t]+")
_INDENTED_LINE = re.compile(r" {4}| {0,3}\t")
# A straight mark opens behind white space or a bracket, and closes anywhere else.
_STRAIGHT = re.compile(r"(?P<open>(?:^|(?<=[\s(\[{:=,;>\u2014\u2013]))\\?[\"'](?=\S|\Z))|[\"']")
_OPENING = "\u201c\u201e\u00ab\u300c\u300e"
_CLOSING = "\u201d\u201c\u00bb\u300d\u300f"  # German closes with the mark that opens in English
_PAIRED = re.compile(f"[{_OPENING}{_CLOSING}]")
_ADJACENT = re.compile(
    r"(?:[\u2018\u201a\u2039]|(?:^|[\s(:])[\u00bb\u203a]|(?:^|[\s(\[{:=,;>\u2014\u2013])\\?\")\Z"
)
MARKS = frozenset("\"'\u2018\u201a\u2039\u203a\u00bb\u201c\u201e\u00ab\u300c\u300e ")
"""characters after which a line break, and then an opener, may be a quotation all the same"""


LEADS = MARKS | frozenset(":\uff1a\u2014\u2013-*_)]\n\r")
"""characters after which a line break, and then an opener, may be introduced as well"""
_SIGN = re.compile("[\"'\u2018\u201a\u2039\u203a\u00bb\u201c\u201e\u00ab\u300c\u300e]")
# An apostrophe is no mark; one that stands right before markup is.
_SINGLE = re.compile(r"(?:^|[\s(\[{:=,;>\u2014\u2013])\\?'(?:[<\[{`|][^'\n]*)?\Z")


def sign_of(before: str, line_head: str) -> Literal["", "line", "marks"]:
    """Return the sign by which the call that opens after `before` is quoted, "" for none.

    "line" counts for the opener's line alone, "marks" for all up to the mark that closes them.

    before: the text up to the opener, WINDOW characters at most, nothing of an earlier call.
    line_head: the beginning of the opener's line, '' where an earlier call is in it.
    """
    if _LINE_SIGN.match(line_head):
        return "line"
    return "marks" if before and _is_in_marks(before) else ""


def _is_in_marks(before: str) -> bool:
    line = before[before.rfind("\n") + 1 :]
    is_whole = not line
    if is_whole:
        # A mark alone at the end of a line may be about the next one.
        line = before.rstrip().rpartition("\n")[2]
    elif not _SIGN.search(line):
        return False
    # Asked for each opener of a long line, so that each question is as short as can be.
    if _ADJACENT.search(line, max(0, len(line) - 3)) or ("'" in line and _SINGLE.search(line)):
        return True
    is_open = False
    for mark in _STRAIGHT.finditer(line) if not is_whole else ():
        if mark[0].endswith('"'):
            is_open = not is_open and mark["open"] is not None
    if is_open:
        return True
    depth = 0
    for character in _PAIRED.findall(line):
        if character in _OPENING and (character != "\u201c" or not depth):
            depth += 1
        elif character in _CLOSING and depth:
            depth -= 1
    return depth > 0


def goes_on_lazily(before: str) -> bool:
    # Whether a line before is quoted, and it and those after it look like calls, as in "> f(1)".
    # As in Markdown, the next line may then be a part of the quotation without its sign.
    lines = before.removesuffix("\n").split("\n")
    for line in map(str.strip, reversed(lines)):
        ends_call = line.endswith((")", "]", "}"))
        if line.startswith(">"):
            return ends_call or len(line[1:].split()) == 1
        # A tool's name stands alone on its line.
        if not ends_call and len(line.split()) != 1:
            return False
    return False


def is_indented(line: str) -> bool:
    return _INDENTED_LINE.match(line) is not None


def introduces_block(before: str, whole: bool, indent: int) -> bool | None:
    # The line before an indented block makes it one of code: by a colon or a blank line. What is
    # indented as the text of a list's item is no such block. whole: the first line of `before` is
    # not part of a longer one. indent: of the block. None if all its lines belong to the block.
    lines = before.split("\n")[:-1]
    blank = False
    for line in reversed(lines if whole else lines[1:]):
        if not line.strip():
            blank = True
        elif not is_indented(line):
            item = _ITEM.match(line)
            if item is not None and indent < item.end() + 4:
                return False
            return blank or line.rstrip().endswith((":", "\uff1a"))
    return None


def run_length(text: str, at: int) -> int:
    """Return the number of backticks at `at`, or `LONG_RUN` if there are more."""
    run = _RUN_OF_TICKS.match(text, at)
    return len(run[0]) if run else 0
