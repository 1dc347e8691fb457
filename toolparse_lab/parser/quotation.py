"""Quotation that can be seen: the signs before an opener that the call behind it is only shown.

Marks of quotation, lines that begin with `>`, blocks that are indented or introduced as examples.
Backticks are followed in `quoting`, since they need a look at the text behind it.
"""

# How it works
# ------------
# Nothing is kept: each sign is looked for in the text before the opener, of which WINDOW characters
# are enough, and in the first characters of the opener's line. So the answer depends on what came
# before alone, and costs the same in any text.

from __future__ import annotations

import re
from typing import Literal

WINDOW = 512  # characters before an opener that are looked at
LINE_HEAD = 16  # characters at the beginning of its line

# A quoted line, also in a list, or a row of a table.
_LINE_SIGN = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(?:>|\|[ \t])")
_INDENTED_LINE = re.compile(r" {4}| {0,3}\t")
# A straight mark opens behind white space or a bracket, and closes anywhere else.
_STRAIGHT = re.compile(r"(?P<open>(?:^|(?<=[\s(\[{:=,;>\u2014\u2013]))\\?[\"'](?=\S|\Z))|[\"']")
_OPENING = "\u201c\u201e\u00ab\u300c\u300e"
_CLOSING = "\u201d\u201c\u00bb\u300d\u300f"  # German closes with the mark that opens in English
_ADJACENT = re.compile(
    r"(?:[\u2018\u201a\u2039]|(?:^|[\s(:])[\u00bb\u203a]|(?:^|[\s(\[{:=,;>\u2014\u2013])\\?\")\Z"
)
MARKS = frozenset("\"'\u2018\u201a\u2039\u203a\u00bb\u201c\u201e\u00ab\u300c\u300e ")
"""characters after which a line break, and then an opener, may be a quotation all the same"""

_CLOSES = re.compile("[\"`\u201d\u201c\u00bb\u300d\u300f]|(?<!\\w)['\u2019]|['\u2019](?!\\w)")
_SIGN = re.compile("[\"'\u2018\u201a\u2039\u203a\u00bb\u201c\u201e\u00ab\u300c\u300e]")
# An apostrophe is no mark; one that stands right before markup is.
_SINGLE = re.compile(r"(?:^|[\s(\[{:=,;>\u2014\u2013])\\?'(?:[<\[{`|][^'\n]*)?\Z")
# A block is an example where the words before it say so, or say that it is somebody else's.
_EXAMPLE = re.compile(
    r"\b(?:examples?|e\.\s?g|for instance|such as|samples?|illustrat\w+|hypothetical\w*"
    # A draft may be what the tool writes: only that of a call, or one that is not sent, is shown.
    r"|drafts?(?:\s+of\s+(?:the|a|my)\s+calls?|\W{1,3}(?:only|not)\b)|pseudo-?code"
    r"|like th(?:is|at)|looks? like|instead of|avoid|never(?!\s+mind)|refuse"
    r"|(?:will|do|does|did|would|should|must|could|can|may|shall|wo|ca)(?:\s+not|n['\u2019]t)\s+"
    r"(?:do|call|run|execute|send|use|make|follow|perform|be|write)"
    r"|beispiel\w*|ejemplo|exemple|esempio|exemplo|(?:bij)?voorbeeld|e[kx]sempel|esimerki\w*"
    r"|przyk\u0142ad\w*|\u00f6rne(?:\u011fin|k)|v\u00ed d\u1ee5|contoh"
    r"|(?:\u043d\u0430)?\u043f\u0440\u0438(?:\u043c\u0435\u0440|\u043a\u043b\u0430\u0434))\b"
    r"|\b(?:says?|said|wrote|writes|written|reads?|contain(?:s|ed|ing)?|quot(?:es?|ed|ing)"
    r"|states?|told|tells)\b[^.!?\n]*:\s*\Z"
    # Chinese and Japanese, Korean, Arabic, Hindi, Hebrew, Thai: words without borders.
    r"|\u4f8b|\uc608\ub97c \ub4e4|\uc608\uc2dc|\u0645\u062b\u0627\u0644|\u0645\u062b\u0644\u0627"
    r"|\u0909\u0926\u093e\u0939\u0930\u0923|\u05d3\u05d5\u05d2\u05de\u05d4"
    r"|\u0e15\u0e31\u0e27\u0e2d\u0e22\u0e48\u0e32\u0e07",
    re.IGNORECASE,
)


def is_quoted(before: str, line_head: str) -> bool:
    """Return True if the call that opens behind `before` is quoted. See `sign_of`."""
    return bool(sign_of(before, line_head))


def sign_of(before: str, line_head: str) -> Literal["", "line", "marks"]:
    """Return the sign by which the call that opens behind `before` is quoted, "" for none.

    "line" counts for the opener's line alone, "marks" for all up to the mark that closes them.

    before: the text up to the opener, WINDOW characters at most, nothing of an earlier call.
    line_head: the beginning of the opener's line, '' where an earlier call stands in it.
    """
    if _LINE_SIGN.match(line_head):
        return "line"
    return "marks" if before and _is_in_marks(before) else ""


def _is_in_marks(before: str) -> bool:
    """Return True if a mark of quotation is open behind `before`."""
    line = before[before.rfind("\n") + 1 :]
    if not line:
        # A mark alone at the end of a line may be about the next one.
        line = before.rstrip().rpartition("\n")[2]
        return bool(_ADJACENT.search(line) or _SINGLE.search(line)) or _in_marks(line)
    if not _SIGN.search(line):
        return False
    if _ADJACENT.search(line) or _SINGLE.search(line):
        return True
    return _in_straight_marks(line) or _in_marks(line)


def closes_marks(text: str) -> bool:
    """Return True if a mark in the text, or a backtick, may end a quotation.

    An apostrophe inside a word does not.
    """
    return _CLOSES.search(text) is not None


def goes_on_lazily(before: str) -> bool:
    r"""Return True if a line before is quoted, and it and those behind it look like calls.

    As in Markdown, the next line may then be a part of the quotation without its sign.

    >>> goes_on_lazily("> f(1)\n"), goes_on_lazily("> f\n{}\ng\n"), goes_on_lazily("> Do it.\n")
    (True, True, False)
    """
    lines = before.removesuffix("\n").split("\n")
    for line in map(str.strip, reversed(lines)):
        ends_call = line.endswith((")", "]", "}"))
        if line.startswith(">"):
            return ends_call or len(line[1:].split()) == 1
        # A tool's name stands alone on its line.
        if not ends_call and len(line.split()) != 1:
            return False
    return False


def is_example(before: str) -> bool:
    """Return the block that begins behind `before` is introduced as an example, or as someone's
    words.
    """
    return bool(_EXAMPLE.search(before.rstrip().rpartition("\n")[2]))


def is_indented(line: str) -> bool:
    """A line is indented as far as a block of code."""
    return bool(_INDENTED_LINE.match(line))


def introduces_block(before: str, whole: bool) -> bool | None:
    """The line before an indented block makes it one of code: by a colon or a blank line.

    before: the text up to an indented line. whole: its first line is no part of a longer one. None
    if all its lines belong to the block.
    """
    lines = before.split("\n")[:-1]
    blank = False
    for line in reversed(lines if whole else lines[1:]):
        if not line.strip():
            blank = True
        elif not is_indented(line):
            return blank or line.rstrip().endswith((":", "\uff1a"))
    return None


def _in_straight_marks(line: str) -> bool:
    """Return a double mark that opened on this line is still open at its end."""
    is_open = False
    for mark in _STRAIGHT.finditer(line):
        if mark[0].endswith('"'):
            is_open = not is_open and mark["open"] is not None
    return is_open


def _in_marks(line: str) -> bool:
    """Typographic marks that opened on this line are still open at its end."""
    depth = 0
    for character in line:
        if character in _OPENING and (character != "\u201c" or not depth):
            depth += 1
        elif character in _CLOSING and depth:
            depth -= 1
    return depth > 0
