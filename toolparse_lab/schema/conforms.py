"""Whether a value conforms to a schema's types, enums, required members and branches."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from ..numerals import is_whole
from ..values import BigNum, Num, Value, same

if TYPE_CHECKING:
    from .view import View

# The types of a leaf, and the Python types that plainly are one: what is not here is looked at more closely.
LEAVES: Mapping[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, Num, float, BigNum), "boolean": (bool,), "null": (type(None),),
}  # fmt: skip


def is_type(value: Value, name: str) -> bool:
    """JSON Schema's idea of a type: 3.0 is an integer, True is no number."""
    if isinstance(value, bool):
        return name == "boolean"
    if isinstance(value, str):
        return name == "string"
    if isinstance(value, int):
        return name in ("integer", "number")
    if isinstance(value, (float, Decimal)):
        return name == "number" or (name == "integer" and is_whole(value))
    if isinstance(value, dict):
        return name == "object"
    if isinstance(value, list):
        return name == "array"
    return value is None and name == "null"


class TooDeep(Exception):
    """A value nests deeper than it is looked into."""


_MAX_UNIONS = 64
_MAX_HOPS = 64  # unions inside unions before a value is looked at: more is a circle


def conforms(view: View, value: Value, unions: int = 0, known: dict[tuple[int, int], bool] | None = None) -> bool:
    """See `View.conforms`. What must hold is a list, so that depth costs no recursion; only a union with several
    branches that a value may be meant for asks again. known: their answers, by branch and value."""
    if unions > _MAX_UNIONS:
        raise TooDeep("the value nests too deep to be validated")
    todo: list[tuple[View, Value, int]] = []
    hops = 0
    while True:
        kind = type(value)
        if view.leaf is None or kind not in LEAVES[view.leaf]:
            if view.union and not _chosen(view, value, unions, known, todo, hops):
                return False
            if kind is not view.box and not _fits(view, value):
                return False
            if isinstance(value, list):
                _items(view, value, todo)
            elif isinstance(value, dict) and not _members(view, value, todo):
                return False
        if not todo:
            return True
        view, value, hops = todo.pop()


def _chosen(
    view: View,
    value: Value,
    unions: int,
    known: dict[tuple[int, int], bool] | None,
    todo: list[tuple[View, Value, int]],
    hops: int,
) -> bool:
    """Whether some branch holds; where only one can, it goes to `todo`."""
    branches = [b for b in view.any_of if b.union or _fits(b, value)]
    if known is not None and len(branches) == 1 and (id(branches[0]), id(value)) in known:
        return known[id(branches[0]), id(value)]
    if len(branches) == 1 and hops < _MAX_HOPS:
        todo.append((branches[0], value, hops + 1))
        return True
    known = {} if known is None else known
    return any(_asked(b, value, unions + 1, known) for b in branches)


def _asked(view: View, value: Value, unions: int, known: dict[tuple[int, int], bool]) -> bool:
    key = id(view), id(value)
    if key not in known:
        known[key] = conforms(view, value, unions, known)
    return known[key]


def _fits(view: View, value: Value) -> bool:
    """Whether type and enum of one node alone allow a value."""
    if view.types is not None and not any(is_type(value, t) for t in view.types):
        return False
    return view.enum is None or any(same(value, e) for e in view.enum)


def _members(view: View, value: dict[str, Value], todo: list[tuple[View, Value, int]]) -> bool:
    """Whether plain members and the required ones are there; what else must hold goes to `todo`."""
    leaves = view.leaves
    for key, member in value.items():
        types = leaves.get(key)
        if types is not None:
            if type(member) not in types and not _fits(view.properties[key], member):
                return False
            continue
        child = view.child(key)
        if child is not None:
            todo.append((child, member, 0))
        elif view.closed and key not in view.properties:
            return False
    return view.required <= value.keys()


def _items(view: View, value: list[Value], todo: list[tuple[View, Value, int]]) -> None:
    """Each item that is not plainly what it should be goes to `todo`."""
    prefix, items = view.prefix, view.items
    if not prefix and items is not None and items.leaf is not None:
        types = LEAVES[items.leaf]
        todo.extend((items, item, 0) for item in value if type(item) not in types)
        return
    for i, item in enumerate(value):
        child = prefix[i] if i < len(prefix) else items
        if child is not None:
            todo.append((child, item, 0))
