"""The place of every value of a strict JSON text, and offsets of an edited text as those before.

Damaged text is edited first, and the offsets are mapped back.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
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


def key_start(text: str, value_start: int) -> int:
    """Return where the key of a value begins, in strict JSON."""
    keys = (token.start() for token in _TOKEN.finditer(text, 0, value_start) if token[1])
    return max(keys, default=value_start)


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
                # What is deeper is passed.
                levels = 1
                while levels and (inner := next(tokens, None)) is not None:
                    levels += (inner[0][0] in "{[") - (inner[0][0] in "}]")
                    end = inner.end()
                places.put(path, start, end, comma)
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
        # Several may begin at one offset (a deletion before an insertion): the last one counts.
        i = bisect_right(self._starts, start) - 1
        raw_start = start
        if i >= 0:
            is_inside = start - self._starts[i] < len(self._edits[i].text)
            raw_start = self._edits[i].span.start if is_inside else start + self._shift[i]
        i = bisect_right(self._starts, end) - 1
        raw_end = end
        if i >= 0:
            edit, inside = self._edits[i], end - self._starts[i]
            if inside == len(edit.text) == 0:
                # The first of the deletions here.
                while i > 0 and self._starts[i - 1] == end and not self._edits[i - 1].text:
                    i -= 1
                raw_end = self._edits[i].span.start
            elif inside >= len(edit.text):
                raw_end = end + self._shift[i]
            else:
                raw_end = edit.span.end if inside else edit.span.start
        # A span of nothing between a deletion and an insertion may come out turned around.
        return (raw_start, raw_end) if raw_start <= raw_end else (raw_end, raw_end)


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
