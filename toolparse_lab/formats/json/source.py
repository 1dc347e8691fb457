"""The places of values in a JSON body, found when someone asks for them.

A codec answers with values. Most callers never ask where they are. So a `BodySource` keeps the
body, its edits and the paths of its calls, and reads the places out of the edited text the first
time one is wanted, once for all calls of the body.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping

from ...arguments.rjson.positions import EditMap, apply_edits, find_places
from ...arguments.rjson.repair import read_damaged
from ...arguments.rjson.strict import Refusal
from ...core.types import Edit, Span
from ...core.values import Value, escape_token, write_canonical
from ..base import Places
from .scan import name_first

_VALUE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]]|[^\s{}\[\]:,"]++', re.DOTALL)
_CHARACTER = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)|.", re.DOTALL
)

# The key of an object that holds nothing but calls, as a message of OpenAI's has them.
_WRAPPER = "tool_calls"

ONE_CALL = [(0, "")]


def items_of(value: Value) -> tuple[list[Value] | None, str]:
    """Return the list of calls that a value is or wraps, and its path. None for any other value."""
    if isinstance(value, list):
        return value, ""
    if isinstance(value, dict) and len(value) == 1 and isinstance(value.get(_WRAPPER), list):
        return value[_WRAPPER], f"/{_WRAPPER}"
    return None, ""


def units_of(values: list[Value]) -> list[tuple[int, str]]:
    """Return where the calls of a body are: (number of their value, path in it)."""
    units: list[tuple[int, str]] = []
    for i, value in enumerate(values):
        items, base = items_of(value)
        if items is None:
            units.append((i, base))
        else:
            units.extend((i, f"{base}/{k}") for k in range(len(items)))

    return units


class BodySource:
    """A JSON body with its edits.

    Finds places in it when asked, once for all its calls.

    Everywhere `index` is the number of a top-level value of the body, and a path a JSON Pointer
    into that value. Spans count from the beginning of the body as it came, before its edits.
    """

    # How it works: the edits turn the body into strict JSON, whose places one pass finds; an
    # `EditMap` carries them back to the body as it came. That pass is linear, and made at most
    # once, so asking for every argument of a hundred calls costs no more than asking for one.

    def __init__(self, body: str, edits: tuple[Edit, ...], units: list[tuple[int, str]]) -> None:
        # units: the calls, as `units_of` returns them
        self.body = body
        self.edits = edits
        self.units = units
        self._raw_places: list[dict[str, tuple[int, int]]] | None = None
        self._edited = body
        # The beginning and the places of each value of the edited body.
        self._edited_places: list[tuple[int, dict[str, tuple[int, int]]]] = []
        self._shares: dict[tuple[int, str], tuple[Edit, ...]] | None = None
        # By index: paths in document order, and the rank of each.
        self._ranked: dict[int, tuple[list[str], dict[str, int]]] = {}

    def edits_of(self, index: int, path: str) -> tuple[Edit, ...]:
        # Each edit goes with the call it is in or after. Those before the first call go with the
        # first. So every edit belongs to one call, and their sum is the cost of the body.
        if len(self.units) <= 1 or not self.edits:
            return self.edits
        if self._shares is None:
            starts = [edit.span.start for edit in self.edits]
            places = self._all()
            # Both are sorted, so each unit's share is a slice.
            inner = (bisect_left(starts, places[i][at][0]) for i, at in self.units[1:])
            cuts = [0, *inner, len(starts)]
            shares = (self.edits[cuts[k] : cuts[k + 1]] for k in range(len(self.units)))
            self._shares = dict(zip(self.units, shares, strict=True))
        return self._shares[index, path]

    def _all(self) -> list[dict[str, tuple[int, int]]]:
        # Found in the edited body, and moved back by the edits. Once for all questions.
        if self._raw_places is not None:
            return self._raw_places

        self._edited = edited = apply_edits(self.body, self.edits)
        self._back = EditMap(self.edits)
        raw_places: list[dict[str, tuple[int, int]]] = []
        for start, end in _value_spans(edited):
            places = find_places(edited[start:end]).values
            self._edited_places.append((start, places))
            back = self._back.raw_span
            raw_places.append({p: back(start + a, start + b) for p, (a, b) in places.items()})

        self._raw_places = raw_places
        return raw_places

    def span_of(self, index: int, path: str) -> Span | None:
        """Return where the value at `path` is, strings without their quotes."""
        place = self._all()[index].get(path)
        return Span(*place) if place else None

    def key_span(self, index: int, path: str, key: str) -> Span | None:
        """Return where the key of a member is, given the path of its value."""
        # `find_places` knows values only; a key is right before its value.
        place = self._all()[index].get(path)
        start = self.body.rfind(key, 0, place[0]) if place else -1
        return Span(start, start + len(key)) if start >= 0 else None

    def name_span(self, index: int, at: str, key: str, name: str) -> Span | None:
        """Return where the name of the call at path `at` is, which is the value of `key`."""
        # The pattern looks at the beginning of the body, which edits after it leave as it is.
        if key == "name" and index == 0 and at in ("", "/0"):
            span = name_first(self.body, name)
            if span is not None and (not self.edits or self.edits[0].span.start > span.end):
                return span
        return self.span_of(index, f"{at}/{escape_token(key)}")

    def places_of(
        self,
        index: int,
        base: str,
        nested: str,
        members: Mapping[str, Value] | None = None,
        edits: list[Edit] | None = None,
    ) -> Callable[[], Places]:
        """Return a function that finds the places at and below `base`.

        nested: the text that is there and is read as JSON, or nothing. members: the arguments,
        where the object at `base` has more than them (the name next to them). Only their places
        are wanted then. edits: those of the nested text, where they are known.
        """

        def find() -> Places:
            if nested:
                return self._nested_places(index, base, nested, edits)

            places = self._below(index, base)
            if members is None:
                return places

            tokens = {escape_token(key) for key in members}
            return {
                path: place
                for path, place in places.items()
                if path == "" or path.split("/", 2)[1] in tokens
            }

        return find

    def _below(self, index: int, base: str) -> dict[str, tuple[int, int]]:
        # A value is found after those inside it, so in document order they are right before it: the
        # walk back from `base` touches nothing else, however many calls the body has.
        # Arguments that are not there (flat, or missing) have the place of the whole call.
        places = self._all()[index]
        if base not in places:
            return {"": places[""]}
        if index not in self._ranked:
            paths = list(places)
            self._ranked[index] = paths, {path: i for i, path in enumerate(paths)}

        paths, ranks = self._ranked[index]
        last = ranks[base]
        first = last
        while first > 0 and paths[first - 1].startswith(base + "/"):
            first -= 1
        return {path[len(base) :]: places[path] for path in paths[first : last + 1]}

    def nested_edits(
        self, index: int, base: str, text: str, edits: list[Edit]
    ) -> list[Edit] | None:
        # Edits of a text inside a JSON string as edits of that string. None if the string has edits
        # itself, or the places in it cannot be told.
        start, end = self._all()[index][base]
        offsets = unescape_offsets(self.body[start:end])
        if len(offsets) != len(text) + 1:
            return None
        if any(edit.span.start < end and start < edit.span.end for edit in self.edits):
            return None
        # What is put into the string is escaped as the string is.
        return [
            Edit(
                Span(start + offsets[edit.span.start], start + offsets[edit.span.end]),
                write_canonical(edit.text)[1:-1],
                edit.rule,
            )
            for edit in edits
        ]

    def _nested_places(self, index: int, base: str, text: str, edits: list[Edit] | None) -> Places:
        # By way of the edited body: its strings are strict, so that each escape has a known length.
        # If that fails the whole string stands for all of it.
        self._all()
        begin, places = self._edited_places[index]
        first, last = (begin + offset for offset in places[base])
        offsets = unescape_offsets(self._edited[first:last])
        outer = self._back.raw_span(first, last)
        if len(offsets) != len(text) + 1:
            return {"": outer}
        try:
            if edits is None:
                _, edits = read_damaged(
                    text, closed=True, numbers_end=False, prose=False, max_depth=1000
                )
        except Refusal:
            return {"": outer}

        # Three steps back: the repaired inner text, the inner text, the edited body, the body.
        inner_back = EditMap(edits)
        raw: dict[str, tuple[int, int]] = {}
        for path, (a, b) in find_places(apply_edits(text, edits)).values.items():
            start, end = inner_back.raw_span(a, b)
            raw[path] = self._back.raw_span(first + offsets[start], first + offsets[end])
        return raw


def _value_spans(text: str) -> list[tuple[int, int]]:
    # of top-level values of strict JSON, one after the other
    spans: list[tuple[int, int]] = []
    level, start = 0, 0
    for match in _VALUE.finditer(text):
        char = match[0][0]
        if char in "{[":
            if level == 0:
                start = match.start()
            level += 1
        elif char in "}]":
            level -= 1
            if level == 0:
                spans.append((start, match.end()))
        elif level == 0:
            spans.append((match.start(), match.end()))

    return spans


def unescape_offsets(raw: str) -> list[int]:
    """Return where each character that the inside of a JSON string means begins in `raw`.

    The last item is the end of `raw`. A surrogate pair written as two escapes is one character.
    """
    return [*(match.start() for match in _CHARACTER.finditer(raw)), len(raw)]
