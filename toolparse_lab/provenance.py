"""Where each argument came from: the places a codec found, carried through the coercion steps.

Most rules leave a value where it was. Each rule that moves values has one small function here, which says where the
new paths' values stood.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .protocols.base import Decoded, Places
from .rjson.damage import Refusal
from .rjson.positions import EditMap, apply_edits, find_places
from .rjson.repair import read_damaged
from .schema.scalars import SPACE
from .types import Origin, Span, Step
from .values import Value, escape_token

Table = dict[str, Origin]


def trace_origins(d: Decoded, steps: tuple[Step, ...], start: int, body: str) -> tuple[Table, tuple[Span | None, ...]]:
    """JSON Pointer into the final arguments -> origin in raw, for every value, containers included; and for each
    step the span of the value it changed, as it was when the step was made."""
    root = _Place()
    for path, (a, b) in d.places().items():
        root.put(path, Origin(Span(start + a, start + b)))
    spans: list[Span | None] = []
    for step in steps:
        place = root.find(step.path)
        source = place.origin if place else None
        spans.append(source.span if source else None)
        move = _MOVES.get(step.rule)
        if move is None or place is None or source is None:
            continue
        below = place.table()
        below.pop("", None)
        text = _Text(step.before, source, body[source.start - start : source.end - start], d)
        place.below.clear()
        for rel, origin in move(step, source, below, text).items():
            place.put(rel, origin)
    return root.table(), tuple(spans)


def find_step_spans(d: Decoded, steps: tuple[Step, ...], start: int, body: str) -> tuple[Span | None, ...]:
    """The spans of `trace_origins` alone; much cheaper where no step moves a value."""
    for step in steps:
        if step.rule in _MOVES:
            return trace_origins(d, steps, start, body)[1]
    return tuple(_spans_at(d.places(), start, [step.path for step in steps]))


def find_spans(d: Decoded, steps: tuple[Step, ...], start: int, body: str, paths: Iterable[str]) -> list[Span | None]:
    """Where the values at some paths into the final arguments stand in raw: the spans of `trace_origins`' table alone;
    cheaper where no step moves a value."""
    if any(step.rule in _MOVES for step in steps):
        table = trace_origins(d, steps, start, body)[0]
        return [table[p].span if p in table else None for p in paths]
    return _spans_at(d.places(), start, paths)


def _spans_at(places: Places, start: int, paths: Iterable[str]) -> list[Span | None]:
    return [Span(start + places[p][0], start + places[p][1]) if p in places else None for p in paths]


class _Place:
    """One value's origin and those below it: a tree, so that a step costs no more than what it moves."""

    __slots__ = ("below", "origin")

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
            found = node.below.get(token)
            if found is None:
                found = node.below[token] = _Place()
            node = found
        node.origin = origin

    def table(self) -> Table:
        """Every origin by its path from here, outer values first."""
        out: Table = {}
        stack: list[tuple[str, _Place]] = [("", self)]
        while stack:
            path, node = stack.pop()
            if node.origin is not None:
                out[path] = node.origin
            stack.extend((f"{path}/{token}", below) for token, below in reversed(node.below.items()))
        return out


class _Text:
    """The raw characters of a text value, and which of them each of its characters came from."""

    def __init__(self, value: Value, source: Origin, raw: str, d: Decoded) -> None:
        self.value = value
        self.source = source
        self.raw = raw
        self._d = d
        self._offsets: list[int] | None = None
        self._asked = False

    def part(self, start: int, end: int) -> Origin:
        """The origin of value[start:end]; inexact, the whole text's, where that cannot be told."""
        at = self.source.start
        if self.raw == self.value:
            return Origin(Span(at + start, at + end), self.source.exact)
        if not self._asked:
            self._asked, self._offsets = True, self._d.unescape(self.raw)
        offsets = self._offsets
        if offsets is None or not isinstance(self.value, str) or len(offsets) != len(self.value) + 1:
            return Origin(self.source.span, False)
        return Origin(Span(at + offsets[start], at + offsets[end]), self.source.exact)


def _wrap(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    return {"/0": source, **{"/0" + rel: o for rel, o in below.items()}}


def _item_list(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    if not isinstance(step.before["item"], list):
        return {"/0" + rel.removeprefix("/item"): o for rel, o in below.items()}
    return _hoist(step, source, below, text)


def _hoist(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    """The one member takes its object's place."""
    key = "/" + escape_token(next(iter(step.before)))
    out = {rel.removeprefix(key): o for rel, o in below.items() if rel == key or rel.startswith(key + "/")}
    return out or {"": Origin(source.span, False)}


def _numeric_keys(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    out: Table = {}
    for i, key in enumerate(sorted(step.before, key=int)):
        prefix = "/" + key
        out |= {f"/{i}" + r[len(prefix) :]: o for r, o in below.items() if r == prefix or r.startswith(prefix + "/")}
    return out


def _cells(separator: str) -> Callable[[Step, Origin, Table, _Text], Table]:
    def move(step: Step, source: Origin, below: Table, text: _Text) -> Table:
        out: Table = {}
        value = str(step.before)
        base = len(value) - len(value.lstrip(SPACE))
        at = base
        index = 0
        for cell in value.strip(SPACE).split(separator):
            inner = cell.strip(SPACE)
            if inner:
                begin = at + len(cell) - len(cell.lstrip(SPACE))
                out[f"/{index}"] = text.part(begin, begin + len(inner))
                index += 1
            at += len(cell) + len(separator)
        return out

    return move


def _trim(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    start = str(step.before).find(str(step.after))
    return {"": text.part(start, start + len(str(step.after)))}


def _json(step: Step, source: Origin, below: Table, text: _Text) -> Table:
    value = str(step.before)
    base = len(value) - len(value.lstrip(SPACE))
    inner = value.strip(SPACE)
    try:
        _, edits = read_damaged(inner, closed=True, numbers_end=False, prose=True, max_depth=1000)
    except Refusal:
        return {}
    back = EditMap(edits)
    out: Table = {}
    for path, (a, b) in find_places(apply_edits(inner, edits)).values.items():
        start, end = back.raw_span(a, b)
        out[path] = text.part(base + start, base + end)
    return out


_MOVES: dict[str, Callable[[Step, Origin, Table, _Text], Table]] = {
    "coerce.wrap-array": _wrap,
    "coerce.item-list": _item_list,
    "coerce.numeric-keys": _numeric_keys,
    "coerce.single-key-array": _hoist,
    "coerce.unwrap-single": _hoist,
    "coerce.array-from-lines": _cells("\n"),
    "coerce.array-from-csv": _cells(","),
    "coerce.trim": _trim,
    "coerce.unquote": _trim,
    "coerce.json-from-string": _json,
}
