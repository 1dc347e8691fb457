"""Where each argument came from: the places a codec found, carried through the coercion steps."""

# How it works
# ------------
# Most rules leave a value where it was. Each rule that moves values has one small function here
# (`_MOVES`), which gives the origins at and below the step's path after the step, from those
# before it.
#
# State: a tree of places (`_Place`), one node for each value, that is rewritten step by step.
#
# Invariant: after a step the tree has the paths of the arguments as that step left them. An origin
# covers the value's characters without its quotes; where a step leaves a value no place of its
# own, it has its source's, marked as inexact.
#
# Cost: a step costs no more than the subtree it moves. Where no step moves a value, which is the
# rule, no tree is made at all, and the codec's places are the answer.

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TypeAlias

from ..arguments.rjson.positions import EditMap, apply_edits, find_places
from ..arguments.rjson.repair import read_damaged
from ..arguments.rjson.strict import Refusal
from ..arguments.schema.scalars import SPACE
from ..core.types import Origin, Span, Step
from ..core.values import Value, escape_token
from ..formats.base import Decoded

Table: TypeAlias = dict[str, Origin]
"""JSON Pointer -> origin"""


def trace_origins(
    d: Decoded, steps: tuple[Step, ...], start: int, body: str
) -> tuple[Table, tuple[Span | None, ...]]:
    """Return a table, JSON Pointer into the final arguments -> origin in raw, for every value,
    containers included; and for each step the span of the value it changed, as it was when the step
    was made. d: the call as the codec read it, from `body`, which begins at offset `start` in raw.
    """
    root = _Place()
    for path, (a, b) in d.places().items():
        root.put(path, Origin(Span(start + a, start + b)))
    spans: list[Span | None] = []

    for step in steps:
        place = root.find(step.path)
        source = place.origin if place else None
        spans.append(source.span if source else None)
        # A value without a place of its own has nothing to move.
        if place is not None and source is not None and step.rule in _MOVES:
            raw = body[source.start - start : source.end - start]
            # The tree below is made again: paths and number of values may both change.
            below = place.table()
            below.pop("", None)
            place.below.clear()
            text = _Text(step.before, source, raw, d)
            for path, origin in _MOVES[step.rule](step, source, below, text).items():
                place.put(path, origin)

    return root.table(), tuple(spans)


def trace_table(d: Decoded, steps: tuple[Step, ...], start: int, body: str) -> Table:
    return trace_origins(d, steps, start, body)[0]


def find_spans(
    d: Decoded,
    steps: tuple[Step, ...],
    start: int,
    body: str,
    paths: Iterable[str] | None = None,
) -> tuple[Span | None, ...]:
    # Those of `trace_origins` for its steps, or for paths into the final arguments, much cheaper
    # where no step moves a value. None without a place, such as of a member the model left out.
    if any(step.rule in _MOVES for step in steps):
        table, spans = trace_origins(d, steps, start, body)
        if paths is None:
            return spans
        return tuple(table[path].span if path in table else None for path in paths)
    places = d.places()
    found = map(places.get, [step.path for step in steps] if paths is None else paths)
    return tuple(place and Span(start + place[0], start + place[1]) for place in found)


class _Place:
    # One value's origin, and the places of the values in it by their reference tokens.
    def __init__(self) -> None:
        self.origin: Origin | None = None
        self.below: dict[str, _Place] = {}

    def find(self, path: str) -> _Place | None:
        node: _Place | None = self
        for token in path.split("/")[1:]:
            node = node.below.get(token) if node else None
        return node

    def put(self, path: str, origin: Origin) -> None:
        node = self
        for token in path.split("/")[1:]:
            if token not in node.below:
                node.below[token] = _Place()
            node = node.below[token]
        node.origin = origin

    def table(self) -> Table:
        # A stack of our own: arguments may nest deeper than Python recurses.
        out: Table = {}
        stack: list[tuple[str, _Place]] = [("", self)]
        while stack:
            path, node = stack.pop()
            if node.origin is not None:
                out[path] = node.origin
            stack += ((f"{path}/{token}", at) for token, at in reversed(node.below.items()))
        return out


class _Text:
    def __init__(self, value: Value, source: Origin, raw: str, d: Decoded) -> None:
        self.value = value
        self.source = source
        self.raw = raw
        self._d = d

    def part(self, start: int, end: int) -> Origin:
        # The origin of value[start:end], counted after its escapes were read; the whole text's,
        # inexact, where that is unknown.
        at = self.source.start
        if self.raw == self.value:
            return Origin(Span(at + start, at + end), self.source.exact)
        offsets = self._offsets
        if offsets is None:
            return Origin(self.source.span, False)
        return Origin(Span(at + offsets[start], at + offsets[end]), self.source.exact)

    @cached_property
    def _offsets(self) -> list[int] | None:
        # For each character of the value, and its end, the offset in `raw`; None if unknown. The
        # codec knows its escapes: `\n` in JSON, `&lt;` in XML.
        offsets = self._d.unescape(self.raw)
        if offsets is None or not isinstance(self.value, str):
            return None
        # Fewer or more than the value has: the codec changed the text beyond its escapes.
        return offsets if len(offsets) == len(self.value) + 1 else None


# Moves: the origins at and below a step's path after it. source: the value's own origin before the
# step; below: those of the values in it, by their paths from it; text: its raw characters.


def _wrap(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    return {"/0" + rel: o for rel, o in {"": source, **below}.items()}


def _item_list(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    # The one member `item` takes its object's place, as a list of one item unless it is a list.
    if isinstance(step.before["item"], list):
        return _hoist(step, source, below, text)
    return {"/0" + rel.removeprefix("/item"): o for rel, o in below.items()}


def _hoist(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    key = "/" + escape_token(next(iter(step.before)))
    return _moved(below, key, "") or {"": Origin(source.span, False)}


def _dropped(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    tables = (_moved(below, f"/{key}", f"/{key}") for key in map(escape_token, step.after))
    return {"": source, **{path: origin for table in tables for path, origin in table.items()}}


def _numeric_keys(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    moved = (_moved(below, f"/{k}", f"/{i}") for i, k in enumerate(sorted(step.before, key=int)))
    return {path: origin for table in moved for path, origin in table.items()}


def _moved(below: Table, source: str, target: str) -> Table:
    return {
        target + path[len(source) :]: origin
        for path, origin in below.items()
        if path == source or path.startswith(source + "/")
    }


def _cells(separator: str) -> Callable[[Step, Origin, Table, _Text], Table]:
    # Empty cells drop out of the list.
    def move(step: Step, source: Origin, below: Table, text: _Text) -> Table:
        out: Table = {}
        value = str(step.before)
        at = _lead(value)

        for cell in value.strip(SPACE).split(separator):
            inner = cell.strip(SPACE)
            if inner:
                begin = at + _lead(cell)
                out[f"/{len(out)}"] = text.part(begin, begin + len(inner))
            at += len(cell) + len(separator)

        return out

    return move


def _lead(text: str) -> int:
    return len(text) - len(text.lstrip(SPACE))


def _trim(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    # Found by its text: the rule cuts at both ends only.
    start = str(step.before).find(str(step.after))
    return {"": text.part(start, start + len(str(step.after)))}


def _json(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    # No places where the text cannot be read, which the rule has excluded.
    value = str(step.before)
    base = _lead(value)
    inner = value.strip(SPACE)

    # Read again as the rule read it, for the places that the rule did not keep.
    try:
        _, edits = read_damaged(inner, closed=True, numbers_end=False, prose=True, max_depth=1000)
    except Refusal:
        return {}
    back = EditMap(edits)
    places = find_places(apply_edits(inner, edits)).values
    spans = {path: back.raw_span(a, b) for path, (a, b) in places.items()}
    return {path: text.part(base + a, base + b) for path, (a, b) in spans.items()}


# Rules that are not here leave every value where it was.
_MOVES: dict[str, Callable[[Step, Origin, Table, _Text], Table]] = {
    "coerce.wrap-array": _wrap,
    "coerce.item-list": _item_list,
    "coerce.numeric-keys": _numeric_keys,
    "coerce.single-key-array": _hoist,
    "coerce.unwrap-single": _hoist,
    "coerce.wrapper": _hoist,
    "coerce.unknown-argument": _dropped,
    "coerce.array-from-lines": _cells("\n"),
    "coerce.array-from-csv": _cells(","),
    "coerce.trim": _trim,
    "coerce.unquote": _trim,
    "coerce.json-from-string": _json,
}
