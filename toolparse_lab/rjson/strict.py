"""Strict JSON by the C-backed reader, in which no key stands twice: the fast road beside the repair walk."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

from ..types import Edit
from ..values import Decoders, Value, decoder_for, decoders

WINDOW = 1024  # characters a container may have to be read whole inside damaged text
_SLACK = 8 * WINDOW
_JSON_SPACE = re.compile(r"[ \t\n\r]*+")
_NEXT_ITEM = re.compile(r"[ \t\n\r]*+,[ \t\n\r]*+(?=[{\[])")

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
    """Strict JSON in which no key stands twice, by the C-backed reader; ValueError or RecursionError otherwise."""
    return decoder_for(text, _UNIQUE).decode(text)


def read_sequence(text: str, pair: Decoders = _UNIQUE) -> list[Value]:
    """The strict JSON values that stand one behind the other in `text`; ValueError or RecursionError otherwise."""
    decoder = decoder_for(text, pair)
    values: list[Value] = []
    pos = _JSON_SPACE.match(text).end()  # type: ignore[union-attr]  # the pattern matches everywhere
    while pos < len(text):
        value, pos = decoder.raw_decode(text, pos)
        values.append(value)
        pos = _JSON_SPACE.match(text, pos).end()  # type: ignore[union-attr]  # as above
    return values


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
        return int(no.value)
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
        self._scan = decoder_for(text, _UNIQUE).scan_once
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
