"""Strict JSON by the C-backed reader, in which no key stands twice: the fast road beside the repair walk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from ..deep import read_deep
from ..types import Edit
from ..values import Decoders, Value, decoder_for, decoders, space_end

WINDOW = 1024  # characters a container may have to be read whole inside damaged text
_SLACK = 8 * WINDOW
_RUN_ON = re.compile(r"[\w.+\-]{2}")  # 007 is no 0, 0 and 7
_SPACES = frozenset(" \t\n\r")
_NEXT_ITEM = re.compile(r"[ \t\n\r]*+,[ \t\n\r]*+(?=[{\[])")

Scan: TypeAlias = Callable[[str, int], tuple[Value, int]]
Kept: TypeAlias = tuple[int, int, Value]
"""A container that was read whole: its start, its end, its value."""


class Duplicate(ValueError):
    """A key stands twice in one object."""


def _unique(pairs: list[tuple[str, Value]]) -> dict[str, Value]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise Duplicate
    return out


_UNIQUE = decoders(object_pairs_hook=_unique)


def read_unique(text: str) -> Value:
    """Strict JSON in which no key stands twice; ValueError otherwise."""
    values = read_sequence(text)
    if len(values) != 1:
        raise ValueError(f"{len(values)} values where one should be")
    return values[0]


def read_sequence(text: str, pair: Decoders = _UNIQUE, start: int = 0) -> list[Value]:
    """The strict JSON values that stand one behind the other in `text` from `start` on, nested as deep as may be;
    ValueError otherwise."""
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
    """The strict JSON value at the beginning of a text, no key of which stands twice, and the offset behind it and the
    white space around it. Raises ValueError, StopIteration or RecursionError where there is none."""
    scan: Scan = decoder_for(text, _UNIQUE).scan_once  # type: ignore[attr-defined]  # there in all of CPython 3
    value, end = scan(text, 0 if text[:1] in "{[" else space_end(text))
    return value, space_end(text, end) if text[end : end + 1] in _SPACES else end


def read_if_strict(text: str, max_depth: int) -> list[Value] | None:
    """The values of strict JSON text without doubled keys, or None. Tries the C-backed reader once."""
    body = text.strip(" \t\n\r")
    scan: Scan = decoder_for(body, _UNIQUE).scan_once  # type: ignore[attr-defined]  # there in all of CPython 3
    try:
        value, end = scan(body, 0)
    except (ValueError, StopIteration):
        return None
    except RecursionError:
        try:
            value, end = read_deep(body, pairs=_unique, max_depth=max_depth)
        except ValueError:
            return None
    if end < len(body):
        try:
            values = [value, *read_sequence(body, start=end)]
        except ValueError:
            return None
    else:
        values = [value]
    return None if too_deep(body, values, max_depth) else values


def too_deep(text: str, values: list[Value], max_depth: int) -> bool:
    """Whether the values that were read from a text nest deeper than is allowed."""
    return len(text) > max_depth and text.count("[") + text.count("{") > max_depth and depth(values) > max_depth


def depth(value: Value) -> int:
    """How deep arrays and objects nest below a list of values; a scalar is 0. Without recursion."""
    deepest = 0
    stack = [(value, 0)]
    while stack:
        node, level = stack.pop()
        children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else None
        if children is not None:
            deepest = max(deepest, level + 1)
            stack.extend((c, level + 1) for c in children)
    return deepest - 1 if isinstance(value, list) and deepest else deepest


def read_around(text: str, edits: Iterable[Edit], kept: list[Kept]) -> list[Value]:
    """The values of `text` with its edits applied, those of `kept` taken as they are instead of read again.

    Each stands in the text as NaN, which is no JSON and which the reader asks a function about, in order.
    """
    pieces = [(e.span.start, e.span.end, e.text) for e in edits]
    pieces.extend((start, end, "NaN") for start, end, _ in kept)
    pieces.sort()
    out: list[str] = []
    at = 0
    for start, end, replacement in pieces:
        out.append(text[at:start])
        out.append(replacement)
        at = end
    out.append(text[at:])
    values: Iterator[Value] = (value for _, _, value in kept)
    around = decoders(object_pairs_hook=_unique, parse_constant=lambda _: next(values))
    return read_sequence("".join(out), around)


def _scanned(no: Exception) -> int:
    """How far the C-backed reader came; the whole window where it does not say."""
    if isinstance(no, StopIteration):
        at: int = no.value
        return at
    return no.pos if isinstance(no, json.JSONDecodeError) else WINDOW


class CleanParts:
    """Reads the containers of a damaged text that hold no damage, each as a whole.

    A container longer than `WINDOW` is left to the walk. Failing tries may cost a quarter of the text and as much as
    was gained by others: linear in the text, and cheap where everything is damaged.
    """

    def __init__(self, text: str, max_depth: int) -> None:
        self.kept: list[Kept] = []
        self._text = text
        self._max_depth = max_depth
        self._scan: Scan = decoder_for(text, _UNIQUE).scan_once  # type: ignore[attr-defined]  # as above
        self._gained = 0
        self._wasted = 0
        self._failed = -1

    def end(self, pos: int, level: int, *, items: bool) -> int:
        """The offset behind the container at `pos`, and with `items` behind those after it; -1 where it is not clean.

        level: how many containers are open around it.
        """
        if pos == self._failed or self._wasted > self._gained + pos // 4 + _SLACK:
            return -1
        end = -1
        text, scan, kept = self._text, self._scan, self.kept
        while True:
            try:
                value, length = scan(text[pos : pos + WINDOW], 0)
            except (ValueError, StopIteration, RecursionError) as no:
                self._wasted += _scanned(no)
                self._failed = pos
                return end
            if level + length // 2 > self._max_depth and self._too_deep(pos, pos + length, level):
                self._failed = pos
                return end
            kept.append((pos, pos + length, value))
            end = pos + length
            self._gained += length
            following = _NEXT_ITEM.match(text, end) if items else None
            if following is None:
                return end
            pos = following.end()

    def _too_deep(self, start: int, end: int, level: int) -> bool:
        """Perhaps too deep: brackets are counted, in strings too."""
        text = self._text
        return level + text.count("[", start, end) + text.count("{", start, end) > self._max_depth

    def forget(self, pos: int) -> None:
        """What was kept from `pos` on was no JSON after all."""
        while self.kept and self.kept[-1][0] >= pos:
            self.kept.pop()
