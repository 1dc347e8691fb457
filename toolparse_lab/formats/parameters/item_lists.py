"""Lists that a format writes as elements `<item>`, where no schema says that they are lists."""

from __future__ import annotations

from ...arguments.schema.view import View
from ...core.values import Value, escape_token

# How it works. Under a schema that wants a list, coercion makes one of `{"item": …}` and says so in
# a step. Under a free object, or a parameter that nobody declared, nothing would: the format itself
# says that these are items. So such a value is a list from the beginning, and its places move.

_ITEM = "item"
_MAX_DEPTH = 100  # of a value; what lies deeper stays as it is


class ItemLists:
    """A value of elements, in which the free lists are lists. view: its schema, not a list."""

    def __init__(self, value: Value, view: View) -> None:
        self._moves: dict[str, str] = {}
        self.value = self._members(value, view, "", "", 0)

    def path(self, path: str) -> str:
        return self._moves.get(path, path)

    def _read(self, value: Value, view: View | None, old: str, new: str, depth: int) -> Value:
        # old, new: the path in the elements, and as it is.
        if old != new:
            self._moves[old] = new
        free = view is None or (view.types is None and not view.any_of and view.enum is None)
        if not free or not isinstance(value, dict) or value.keys() != {_ITEM}:
            return self._members(value, view, old, new, depth)
        items = value[_ITEM]
        if not isinstance(items, list):
            return [self._read(items, None, f"{old}/{_ITEM}", f"{new}/0", depth + 1)]
        self._moves[f"{old}/{_ITEM}"] = new
        return self._members(items, None, f"{old}/{_ITEM}", new, depth)

    def _members(self, value: Value, view: View | None, old: str, new: str, depth: int) -> Value:
        if depth > _MAX_DEPTH or not isinstance(value, dict | list):
            return value
        if isinstance(value, list):
            return [
                self._read(item, view.item(i) if view else None, f"{old}/{i}", f"{new}/{i}",
                           depth + 1)
                for i, item in enumerate(value)
            ]  # fmt: skip
        return {
            key: self._read(
                member, view.child(key) if view else None, f"{old}/{escape_token(key)}",
                f"{new}/{escape_token(key)}", depth + 1,
            )
            for key, member in value.items()
        }  # fmt: skip
