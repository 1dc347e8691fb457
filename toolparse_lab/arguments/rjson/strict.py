"""Strict JSON by the C-backed reader, without doubled keys: the fast way beside the repair."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import TypeAlias

from ...core.types import Edit, Span
from ...core.types.call import Reading
from ...core.values import Decoders, Value, decoder_for, decoders, space_end
from ...core.values.canonical import read_deep

# How it works. CPython's scanner reads a value and says where it ended, tens of times as fast as
# any loop of ours; `object_pairs_hook` lets it notice doubled keys. It has two limits of its own,
# the recursion depth and the length of integers, beyond which a slow reader takes over. A text
# that is strict is read by one call, and most texts are.
#
# In a damaged text the same scanner reads the containers that are whole (`CleanParts`). It cannot
# know beforehand which are, so failing tries cost; they are paid from a budget that successful ones
# fill, which keeps the sum linear in the text.

WINDOW = 1024  # characters a container may have to be read whole inside damaged text
_SLACK = 8 * WINDOW
_RUN_ON = re.compile(r"[\w.+\-]{2}")  # 007 is no 0, 0 and 7
_SPACES = frozenset(" \t\n\r")
_NEXT_ITEM = re.compile(r"[ \t\n\r]*+,[ \t\n\r]*+(?=[{\[])")

# Edits at one place stay in the order in which they were made.
by_span = attrgetter("span.start", "span.end")
Scan: TypeAlias = Callable[[str, int], tuple[Value, int]]
# A container that was read whole: its start, its end, its value.
CleanPart: TypeAlias = tuple[int, int, Value]


class Duplicate(ValueError):
    """A key is there twice in one object."""


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Duplicate

    return out


_UNIQUE = decoders(object_pairs_hook=_unique)


# They raise ValueError or StopIteration if there is no value, RecursionError for deep ones. Not in
# the type stubs, but in all of CPython 3.
_SCANS: tuple[Scan, Scan] = (_UNIQUE[0].scan_once, _UNIQUE[1].scan_once)  # type: ignore[attr-defined]


def read_unique(text: str) -> Value:
    """Return the one strict JSON value of a text in which no key appears twice."""
    values = read_sequence(text)
    if len(values) != 1:
        raise ValueError(f"{len(values)} values where one should be")

    return values[0]


def read_sequence(text: str, pair: Decoders = _UNIQUE, start: int = 0) -> list[Value]:
    """Return the strict JSON values that follow one another in `text` from `start` on.

    Nested as deep as may be. Raises ValueError otherwise.
    """
    decoder = decoder_for(text, pair)
    values: list[Value] = []
    end = start

    while (pos := space_end(text, end)) < len(text):
        if pos == end > 0 and _RUN_ON.match(text, pos - 1):
            raise ValueError(f"a value runs into another at character {pos}")

        try:
            value, end = decoder.raw_decode(text, pos)
        except RecursionError:
            value, end = read_deep(text, pos, pairs=_unique)

        values.append(value)

    return values


def read_one(text: str) -> tuple[Value, int]:
    """Return the value at the beginning of a text, and the offset after it and its white space.

    No key may be there twice. Raises ValueError, StopIteration or RecursionError if there is none.
    """
    start = 0 if text[:1] in "{[" else space_end(text)
    value, end = decoder_for(text, _SCANS)(text, start)
    if text[end : end + 1] in _SPACES:
        end = space_end(text, end)

    return value, end


def read_next(text: str, start: int) -> tuple[Value, int] | None:
    """Return the strict JSON value at an offset of a text, and the offset behind it."""
    try:
        return decoder_for(text, _SCANS)(text, start)
    except (ValueError, StopIteration, RecursionError):
        return None


def read_if_strict(text: str, max_depth: int) -> list[Value] | None:
    """Return the values of strict JSON text without doubled keys, or None."""
    body = text.strip(" \t\n\r")
    try:
        try:
            value, end = decoder_for(body, _SCANS)(body, 0)
        except RecursionError:  # slow, and rare: people do not nest a thousand levels
            value, end = read_deep(body, pairs=_unique, max_depth=max_depth)
        values = [value]
        if end < len(body):
            values += read_sequence(body, start=end)
    except (ValueError, StopIteration):
        return None

    return None if too_deep(body, values, max_depth) else values


def too_deep(text: str, values: list[Value], max_depth: int) -> bool:
    """Return True if the values read from a text nest deeper than is allowed."""
    # Counting characters first is cheap, and nearly always enough to say no.
    return (
        len(text) > max_depth
        and text.count("[") + text.count("{") > max_depth
        and depth(values) > max_depth
    )


def depth(value: Value) -> int:
    """Return the depth to which arrays and objects nest below a list of values."""
    deepest = 0
    stack = [(value, 0)]
    while stack:
        node, level = stack.pop()
        children: Iterable[Value]
        if isinstance(node, dict):
            children = node.values()
        elif isinstance(node, list):
            children = node
        else:
            continue

        deepest = max(deepest, level + 1)
        stack.extend((child, level + 1) for child in children)

    # The list of values is no level of its own.
    return deepest - 1 if isinstance(value, list) and deepest else deepest


def read_around(text: str, edits: Iterable[Edit], parts: list[CleanPart]) -> list[Value]:
    """Return the values of `text` with its edits applied, those of `parts` taken as they are."""
    # Each part is in the text as NaN, which is not JSON and which the reader asks a function about,
    # in order. So their text is not read again.
    pieces = list(edits)
    if parts:
        pieces += [Edit(Span(start, end), "NaN", "") for start, end, _ in parts]
        pieces.sort(key=by_span)

    out: list[str] = []
    last = 0
    for piece in pieces:
        out += text[last : piece.span.start], piece.text
        last = piece.span.end
    out.append(text[last:])

    edited = "".join(out)
    if not parts:
        return read_sequence(edited)
    values: Iterator[Value] = (value for _, _, value in parts)
    like = decoder_for(edited, _UNIQUE)
    around = json.JSONDecoder(
        object_pairs_hook=_unique,
        parse_int=like.parse_int,
        parse_float=like.parse_float,
        parse_constant=lambda _: next(values),
    )
    return read_sequence(edited, (around, around))


class CleanParts:
    """Reads the containers of a damaged text that hold no damage, each as a whole."""

    def __init__(self, text: str, max_depth: int) -> None:
        self.parts: list[CleanPart] = []
        self._text = text
        self._max_depth = max_depth
        self._scan = decoder_for(text, _SCANS)
        self._gained = 0  # characters that the walk need not look at
        self._wasted = 0  # characters of failing tries
        self._failed = -1  # where the last try failed, so that it is not repeated

    def end(self, pos: int, level: int, *, items: bool) -> int:
        """Return the offset after the container at `pos`, or -1 if it is not clean.

        items: and after those that follow it. level: how many containers are open around it.
        """
        if pos == self._failed or self._wasted > self._gained + pos // 4 + _SLACK:
            return -1

        end = -1
        text, scan, parts = self._text, self._scan, self.parts
        while True:
            try:
                value, length = scan(text[pos : pos + WINDOW], 0)
            except (ValueError, StopIteration, RecursionError) as error:
                # The whole window where it does not say, so that the budget errs on the side of too
                # much.
                if isinstance(error, StopIteration):
                    self._wasted += error.value
                else:
                    self._wasted += getattr(error, "pos", WINDOW)
                self._failed = pos
                return end

            after = pos + length
            if level + length // 2 > self._max_depth:
                # Perhaps too deep: brackets count, in strings too.
                brackets = text.count("[", pos, after) + text.count("{", pos, after)
                if level + brackets > self._max_depth:
                    self._failed = pos
                    return end

            parts.append((pos, after, value))
            end = after
            self._gained += length
            following = _NEXT_ITEM.match(text, end) if items else None
            if following is None:
                return end

            pos = following.end()

    def forget(self, pos: int) -> None:
        """Drop the parts from `pos` on: the text that the walk took for JSON there was none."""
        while self.parts and self.parts[-1][0] >= pos:
            self.parts.pop()


# The one way in which reading says that it will not guess.


class Refusal(Exception):
    """The text cannot be read without inventing something."""

    name: str = ""
    readings: tuple[Reading, ...] = ()
    edits: tuple[Edit, ...] = ()
    alternatives: tuple[tuple[Edit, ...], ...] = ()
    """Of a key with two values: the edits that leave the one, and those that leave the other."""
    name_at: tuple[int, int] | None = None

    def __init__(self, code: str, message: str, position: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.position = position
