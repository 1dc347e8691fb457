"""Places of a finished text that only show something.

They are lines that begin with `>`, code spans with text around them, and blocks of code, fenced or
indented, whose introduction calls them an example. The signs are those of `quotes` and `quotation`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import TypeAlias

from .quotation import evidence_of_lead
from .quotation import is_shown as is_shown_by
from .quotes import LINE_HEAD, WINDOW, is_indented, sign_of

Ranges: TypeAlias = list[tuple[int, int]]
"""(start, end) of places in a text, in order."""

_QUOTED_LINES = re.compile(r"^[ \t]{0,3}>(?!>>\w)[^\n]*(?:\n[ \t]{0,3}>[^\n]*)*", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_FENCE = re.compile(r"^[ \t]{0,3}(?P<ticks>`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
_DEFINES_TARGET = re.compile(
    r"^\s*(?:async\s+)?(?:def|function|fn|func|class|interface)\s+\w", re.MULTILINE
)
_WORD = re.compile(r"[\w.-]+")
_INTRODUCTION = 400  # characters before a block in which its introduction is looked for


def shown_ranges(text: str) -> Ranges:
    """Return the places of a text that only show something, sorted and apart.

    >>> shown_ranges("a `f(x)` c")
    [(2, 8)]
    >>> shown_ranges("For example:\\n```\\nf(x=1)\\n```\\nI do not call it.")
    [(13, 27)]
    """
    fences = list(_fences(text))
    ranges: Ranges = []
    for start, end in fences:
        # One introduction may be of several blocks.
        follows = bool(ranges) and not text[ranges[-1][1] : start].strip()
        if follows or _is_introduced(text, start) or _DEFINES_TARGET.search(text, start, end):
            ranges.append((start, end))
    ranges += [match.span() for match in _QUOTED_LINES.finditer(text)]
    ranges += _code_spans(text, fences)
    ranges += _indented_blocks(text)
    return merged(ranges)


def merged(ranges: Ranges) -> Ranges:
    """Return ranges sorted, those that overlap as one.

    >>> merged([(4, 6), (0, 2), (1, 3)])
    [(0, 3), (4, 6)]
    """
    together: Ranges = []
    for start, end in sorted(ranges):
        if together and start <= together[-1][1]:
            together[-1] = (together[-1][0], max(end, together[-1][1]))
        else:
            together.append((start, end))
    return together


def masked(text: str, ranges: Sequence[tuple[int, int]]) -> str:
    """Return a text with these ranges blanked out, at the same length."""
    parts: list[str] = []
    end = 0
    for start, stop in merged([*ranges]):
        parts += (text[end:start], "·" * (stop - start))
        end = stop
    return "".join([*parts, text[end:]])


def is_shown(text: str, offset: int) -> bool:
    """Return True if the text that begins at an offset stands in quotation marks.

    >>> is_shown('He wrote “f(x=1)”.', 10), is_shown("Now f(x=1).", 4)
    (True, False)
    """
    before = text[max(0, offset - WINDOW) : offset]
    line = text.rfind("\n", 0, offset) + 1
    return bool(sign_of(before, text[line : min(offset, line + LINE_HEAD)]))


class ExampleEnds:
    """Where the examples of one text end, asked in the order in which they begin.

    An example ends with the place that shows it, if there is one, else with the nearest of the
    format's own closers, or with the paragraph.

    >>> ExampleEnds("See <c>{}</c>, but f(x=1)", ["</c>"]).after(4)
    13
    """

    def __init__(self, text: str, closers: Iterable[str] = ()) -> None:
        self._text = text
        self._shown = shown_ranges(text)
        self._next = dict.fromkeys((*closers, "\n\n"), -1)  # where each literal is next

    def after(self, start: int) -> int:
        """Return where the example ends whose opener is at an offset."""
        i = bisect_right(self._shown, start, key=itemgetter(0)) - 1
        if i >= 0 and start < self._shown[i][1]:
            return self._shown[i][1]
        size = len(self._text)
        for literal, at in self._next.items():
            if at < start:
                found = self._text.find(literal, start)
                self._next[literal] = found if found >= 0 else size
        *ends, (_, paragraph) = self._next.items()
        end = min((at + len(closer) for closer, at in ends if at < size), default=paragraph)
        return min(end, size)


def _fences(text: str) -> Iterator[tuple[int, int]]:
    # One without an end goes to the text's.
    opener: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        ticks = match["ticks"]
        if opener is None:
            opener = match
        elif ticks.startswith(opener["ticks"]) and match[0].strip() == ticks:
            # With a word behind it, it would be a line of the block.
            yield opener.start(), match.end()
            opener = None
    if opener is not None:
        yield opener.start(), len(text)


def _is_introduced(text: str, start: int) -> bool:
    before = text[max(0, start - _INTRODUCTION) : start].rstrip()
    return is_shown_by(evidence_of_lead(before.rpartition("\n")[2], False))


def _code_spans(text: str, fences: Ranges) -> Ranges:
    # Ticks, code and as many ticks, within one paragraph. A text that is nothing but one span is
    # not an example: there is nothing around it.
    starts = [start for start, _ in fences]
    runs = []
    for match in _TICKS.finditer(text):
        index = bisect_right(starts, match.start()) - 1
        if index < 0 or match.start() >= fences[index][1]:
            runs.append(match.span())
    blanks = [match.start() for match in _BLANK_LINE.finditer(text)]

    # From the right, so that each run knows the next one of its length.
    following: dict[int, int] = {}
    partners: dict[int, int] = {}
    for i in range(len(runs) - 1, -1, -1):
        size = runs[i][1] - runs[i][0]
        if size in following:
            partners[i] = following[size]
        following[size] = i

    spans: Ranges = []
    end = 0
    for i, j in sorted(partners.items()):
        (start, inner), (inner_end, after) = runs[i], runs[j]
        if i < end or bisect_right(blanks, start) != bisect_right(blanks, inner_end):
            continue
        end = j + 1
        # A word alone names something; what it names may be called right behind it.
        if not _WORD.fullmatch(text, inner, inner_end):
            spans.append((start, after))
    if len(spans) == 1 and text.strip() == text[spans[0][0] : spans[0][1]]:
        return []
    return spans


def _indented_blocks(text: str) -> Ranges:
    ranges: Ranges = []
    is_open = False
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            was_open, is_open = is_open, is_indented(line)
            if is_open:
                start = ranges.pop()[0] if was_open else offset
                ranges.append((start, offset + len(line.rstrip())))
        offset += len(line)
    return [(start, end) for start, end in ranges if _is_introduced(text, start)]


_QUOTE_MARK = re.compile(r"(?:^|\n)(?P<fence>[ \t]{0,3}```)?|`")


class Examples:
    """The inline code and the fences of one text, asked for places in their order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._fence = self._ticks = False

    def holds(self, place: int) -> bool:
        for mark in _QUOTE_MARK.finditer(self._text, self._at, place):
            self._ticks = mark[0] == "`" and not self._ticks
            if mark["fence"]:
                self._fence = not self._fence
        self._at = place
        return self._fence or self._ticks
