"""Where every value of a strict JSON text stands, and what an offset was before the edits.

Strict JSON is the only thing read here: damaged text is edited first, and the offsets are mapped back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..types import Edit
from ..values import escape_token, read_strict

_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|[^\s{}\[\]:,"]++', re.DOTALL)


@dataclass(slots=True)
class Places:
    """JSON Pointer -> (start, end) of each value, strings without their quotes; and the doubled keys."""

    values: dict[str, tuple[int, int]] = field(default_factory=dict)
    doubled: list[Doubled] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Doubled:
    """A key that stood before: its member runs from `start` (the comma before it) to `end`."""

    path: str
    start: int
    end: int
    first: tuple[int, int]
    again: tuple[int, int]


MAX_LEVELS = 1000  # a path is as long as its value is deep, so all paths together grow with the square of the depth


def find_places(text: str) -> Places:
    """The places of one strict JSON text, without recursion; of values nested deeper than `MAX_LEVELS`, none."""
    places = Places()
    below = 0  # how many containers are open beyond that depth
    deep_start = 0
    stack: list[tuple[str, int, bool]] = []  # path, start, is object
    path, index = "", 0
    key_expected = False
    comma = -1
    for m in _TOKEN.finditer(text):
        tok = m[0]
        ch = tok[0]
        if below:
            below += 1 if ch in "{[" else -1 if ch in "}]" else 0
            if not below:
                _put(places, path, deep_start, m.end(), comma)
            continue
        if ch == ",":
            if stack[-1][2]:
                key_expected = True
                comma = m.start()
            else:
                index += 1
                path = f"{stack[-1][0]}/{index}"
            continue
        if ch == ":":
            continue
        if ch in "}]":
            at, start, _ = stack.pop()
            key_expected = False  # an empty object leaves it set
            _put(places, at, start, m.end(), comma)
            path = at
            if stack and not stack[-1][2]:
                index = int(at.rpartition("/")[2])
            continue
        if key_expected:
            path = f"{stack[-1][0]}/{escape_token(read_strict(tok))}"
            key_expected = False
            continue
        if ch in "{[" and len(stack) == MAX_LEVELS:
            below, deep_start = 1, m.start()
            continue
        if ch in "{[":
            stack.append((path, m.start(), ch == "{"))
            if ch == "{":
                key_expected = True
            else:
                index = 0
                path = f"{path}/0"
            continue
        if ch == '"':
            _put(places, path, m.start() + 1, m.end() - 1, comma, 1)
        else:
            _put(places, path, m.start(), m.end(), comma)
    return places


def _put(places: Places, path: str, start: int, end: int, comma: int, quote: int = 0) -> None:
    old = places.values.get(path)
    if old is not None:
        places.doubled.append(Doubled(path, comma, end + quote, old, (start, end)))
    else:
        places.values[path] = (start, end)


class EditMap:
    """Offsets of an edited text as offsets of the text before its edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._starts: list[int] = []  # in the edited text, where each replacement begins
        self._edits = list(edits)
        self._shift: list[int] = []  # raw minus edited, behind each replacement
        shift = 0
        for e in edits:
            self._starts.append(e.span.start - shift)
            shift += len(e.span) - len(e.text)
            self._shift.append(shift)

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """The raw span of an edited span; inside a replacement it widens to what was replaced."""
        a, b = self._raw(start, low=True), self._raw(end, low=False)
        return (a, b) if a <= b else (b, b)

    def _raw(self, offset: int, *, low: bool) -> int:
        i = bisect_right(self._starts, offset) - 1
        # Several edits may begin at one edited offset (a deletion before an insertion); the last one counts.
        if i < 0:
            return offset
        edit, at = self._edits[i], self._starts[i]
        inside = offset - at
        if inside >= len(edit.text):
            if not low and inside == len(edit.text) == 0:
                while i > 0 and self._starts[i - 1] == offset and not self._edits[i - 1].text:
                    i -= 1
                return self._edits[i].span.start
            return offset + self._shift[i]
        if inside == 0 and not low:
            return edit.span.start
        return edit.span.start if low else edit.span.end


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """`text` with its edits applied; edits are sorted and do not overlap.

    >>> from toolparse_lab.types import Edit, Span
    >>> apply_edits('{"a":1,}', [Edit(Span(6, 7), "", "rjson.trailing-comma")])
    '{"a":1}'
    """
    out: list[str] = []
    at = 0
    for e in edits:
        out.append(text[at : e.span.start])
        out.append(e.text)
        at = e.span.end
    out.append(text[at:])
    return "".join(out)
