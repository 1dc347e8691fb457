"""The place of every value of a strict JSON text, and offsets of an edited text as those before.

Damaged text is edited first, and the offsets are mapped back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...core.types import Edit
from ...core.values import escape_token, unescape

# How it works. `find_places` goes over the tokens of the text once, with a stack of the containers
# that are open; the text is known to be strict, so that nothing needs checking. A string with its
# colon is one token, which tells keys from values without any state. A path is built when its value
# begins; behind a container the path of the container itself is the current one again.
#
# `EditMap` holds, for each edit, where its replacement begins in the edited text, and by how much
# offsets behind it differ from the raw ones. One binary search maps an offset back; inside a
# replacement there is no exact answer, and the span widens to all that was replaced.

_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_TOKEN = re.compile(rf'{_STRING}(\s*+:)?+|[{{}}\[\],]|[^\s{{}}\[\]:,"]++', re.DOTALL)

# A path is as long as its value is deep, so all paths together grow with the square of the depth.
MAX_LEVELS = 1000


@dataclass(slots=True)
class Places:
    """JSON Pointer -> (start, end) of each value, strings without their quotes."""

    values: dict[str, tuple[int, int]] = field(default_factory=dict)
    doubled: list[Doubled] = field(default_factory=list)

    def put(self, path: str, start: int, end: int, comma: int, quote: int = 0) -> None:
        """Note where a value stands."""
        # comma: the last one between members so far. quote: characters of the value after `end`.
        first = self.values.get(path)
        if first is None:
            self.values[path] = (start, end)
        else:
            self.doubled.append(Doubled(path, comma, end + quote, first, (start, end)))


@dataclass(frozen=True, slots=True)
class Doubled:
    """A key that stood before: its member runs from `start` (the comma before it) to `end`."""

    path: str
    start: int
    end: int
    first: tuple[int, int]
    again: tuple[int, int]


def find_places(text: str) -> Places:
    """Return the places of one strict JSON text, without recursion."""
    places = Places()
    stack: list[tuple[str, int, bool]] = []  # path, start, is object
    path, index = "", 0
    comma = -1  # the last one between two members
    tokens = _TOKEN.finditer(text)

    for token in tokens:
        start, end = token.span()
        ch = text[start]
        if ch == '"':
            if token[1] is None:
                places.put(path, start + 1, end - 1, comma, 1)
            else:
                key = text[start + 1 : token.start(1) - 1]
                path = f"{stack[-1][0]}/{escape_token(unescape(key))}"
        elif ch == ",":
            if stack[-1][2]:
                comma = start
            else:
                index += 1
                path = f"{stack[-1][0]}/{index}"
        elif ch in "{[":
            if len(stack) == MAX_LEVELS:
                places.put(path, start, _end_of_container(tokens), comma)
                continue
            stack.append((path, start, ch == "{"))
            if ch == "[":
                index = 0
                path = f"{path}/0"
        elif ch in "}]":
            path, opener, _ = stack.pop()
            places.put(path, opener, end, comma)
            if stack and not stack[-1][2]:
                index = int(path.rpartition("/")[2])
        else:
            places.put(path, start, end, comma)

    return places


def _end_of_container(tokens: Iterator[re.Match[str]]) -> int:
    levels = 1
    end = -1
    for token in tokens:
        ch = token[0][0]
        if ch in "{[":
            levels += 1
        elif ch in "}]":
            levels -= 1

        end = token.end()
        if levels == 0:
            break

    return end


class EditMap:
    """Offsets of an edited text as offsets of the text before its edits."""

    def __init__(self, edits: Sequence[Edit]) -> None:
        self._starts: list[int] = []  # in the edited text, where each replacement begins
        self._edits = list(edits)
        self._shift: list[int] = []  # raw minus edited, behind each replacement
        shift = 0

        for edit in edits:
            self._starts.append(edit.span.start - shift)
            shift += len(edit.span) - len(edit.text)
            self._shift.append(shift)

    def raw_span(self, start: int, end: int) -> tuple[int, int]:
        """Return the raw span of an edited span."""
        raw_start, raw_end = self._raw_start(start), self._raw_end(end)
        # A span of nothing between a deletion and an insertion may come out turned around.
        return (raw_start, raw_end) if raw_start <= raw_end else (raw_end, raw_end)

    def _raw_start(self, offset: int) -> int:
        i = self._last_edit(offset)
        if i < 0:
            return offset
        if offset - self._starts[i] >= len(self._edits[i].text):
            return self._behind(i, offset)

        return self._edits[i].span.start

    def _raw_end(self, offset: int) -> int:
        i = self._last_edit(offset)
        if i < 0:
            return offset

        edit, inside = self._edits[i], offset - self._starts[i]
        if inside == len(edit.text) == 0:
            return self._first_deletion(i, offset).span.start
        if inside >= len(edit.text):
            return self._behind(i, offset)

        return edit.span.end if inside else edit.span.start

    def _last_edit(self, offset: int) -> int:
        # Several may begin at one offset (a deletion before an insertion): the last one counts.
        return bisect_right(self._starts, offset) - 1

    def _first_deletion(self, i: int, offset: int) -> Edit:
        while i > 0 and self._starts[i - 1] == offset and not self._edits[i - 1].text:
            i -= 1

        return self._edits[i]

    def _behind(self, i: int, offset: int) -> int:
        return offset + self._shift[i]


def apply_edits(text: str, edits: Sequence[Edit]) -> str:
    """`text` with its edits applied."""
    out: list[str] = []
    end = 0
    for edit in edits:
        out.append(text[end : edit.span.start])
        out.append(edit.text)
        end = edit.span.end

    out.append(text[end:])
    return "".join(out)
