"""Where each argument came from: the places a codec found, carried through the coercion steps.

Most rules leave a value where it was. Each rule that moves values has one small function here, which says where the
new paths' values stood.
"""

from __future__ import annotations

from collections.abc import Callable

from .protocols.base import Decoded
from .rjson.damage import Refusal
from .rjson.positions import EditMap, apply_edits, find_places
from .rjson.repair import read_damaged
from .schema.scalars import SPACE
from .types import Origin, Span, Step
from .values import Value, escape_token

Table = dict[str, Origin]


def trace_origins(d: Decoded, steps: tuple[Step, ...], start: int, body: str) -> Table:
    """JSON Pointer into the final arguments -> origin in raw, for every value, containers included."""
    table = {path: Origin(Span(start + a, start + b)) for path, (a, b) in d.places().items()}
    for step in steps:
        move = _MOVES.get(step.rule)
        if move is None:
            continue
        source = table.get(step.path)
        if source is None:
            continue
        below = {p[len(step.path) :]: o for p, o in table.items() if p.startswith(step.path + "/")}
        for rel in below:
            del table[step.path + rel]
        text = _Text(step.before, source, body[source.start - start : source.end - start], d)
        moved = move(step, source, below, text)
        for rel, origin in moved.items():
            table[step.path + rel] = origin
    return table


class _Text:
    """The raw characters of a text value, and which of them each of its characters came from."""

    def __init__(self, value: Value, source: Origin, raw: str, d: Decoded) -> None:
        self.value = value
        self.source = source
        self.raw = raw
        self._d = d

    def part(self, start: int, end: int) -> Origin:
        """The origin of value[start:end]; inexact, the whole text's, where that cannot be told."""
        at = self.source.start
        if self.raw == self.value:
            return Origin(Span(at + start, at + end), self.source.exact)
        offsets = self._d.unescape(self.raw)
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
