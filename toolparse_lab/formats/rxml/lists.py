"""Lists written as one element with the items inside, whatever these are called."""

from __future__ import annotations

from ...arguments.schema.view import View
from ...core.types import Step
from ...core.values import Value, escape_token
from .shape import item_view, kind_of, narrow
from .text import Place

# How it works. `<rows><row>…</row></rows>` reads as an object with the one member `row`. Where the
# schema wants a list there, and no item has a member of that name, the member is the item, or the
# list of them; the same for one item and for many. `item` itself is left to coercion, which knows
# it from every format.


class ListReader:
    """Takes the elements around items off, and moves the places of the contents."""

    def __init__(self, places: dict[str, Place]) -> None:
        self.places = places
        self.steps: list[Step] = []

    def read(self, value: dict[str, Value], view: View) -> Value:
        """Return the value, which is not changed, with lists in place of their elements."""
        if not any(isinstance(member, (dict, list)) for member in value.values()):
            return value
        return self._value(value, view, "")

    def _value(self, value: Value, view: View | None, path: str) -> Value:
        view = narrow(view)
        if view is None:
            return value

        name = _item_name(value, view)
        if name is not None:
            value = self._taken_off(value, name, path)
        if isinstance(value, dict):
            return self._members(value, view, path)
        if isinstance(value, list):
            return [
                self._value(item, item_view(view, index), f"{path}/{index}")
                for index, item in enumerate(value)
            ]
        return value

    def _members(self, value: dict[str, Value], view: View, path: str) -> dict[str, Value]:
        if kind_of(view) == "array":
            item = narrow(item_view(view, 0))
            return value if item is None else self._members(value, item, path)
        return {
            key: self._value(member, view.child(key), f"{path}/{escape_token(key)}")
            for key, member in value.items()
        }

    def _taken_off(self, value: dict[str, Value], name: str, path: str) -> list[Value]:
        inside = value[name]
        old = f"{path}/{escape_token(name)}"
        if isinstance(inside, list):
            items, new = inside, path
        else:
            items, new = [inside], f"{path}/0"

        for key in [key for key in self.places if key == old or key.startswith(old + "/")]:
            place = self.places.pop(key)
            if key != old or new != path:
                self.places[new + key[len(old) :]] = place
        self.steps.append(Step("read", "read.list-element", path, None, value, items))
        return items


def _item_name(value: Value, view: View) -> str | None:
    if not isinstance(value, dict) or len(value) != 1 or kind_of(view) != "array":
        return None
    name: str = next(iter(value))
    if name == "item" or name.startswith(("#", "@")) or name.isdigit():
        return None

    # A member of an item is never an item itself.
    item = narrow(item_view(view, 0))
    if item is None or item.open or item.any_of or name in item.properties:
        return None
    # A text is no item of a list of objects, so that the element is the object itself.
    inside = value[name]
    items = inside if isinstance(inside, list) else [inside]
    if kind_of(item) == "object" and not all(isinstance(i, dict) for i in items):
        return None
    return name
