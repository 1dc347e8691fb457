"""The shape that a schema gives to elements: raw text, lists of items, views of children."""

from __future__ import annotations

from functools import lru_cache

from ...arguments.schema.view import View
from ...core.types import Step
from ...core.values import Value, escape_token
from .element import Place

# How it works. A schema speaks of values, XML of elements, and the two differ where lists are. A
# list of three tags may be `<tag>` three times, or one `<tags>` with three elements inside,
# whatever these are called. Which of the two an element is follows from its first child: a name
# that an item has as a member makes the element an item, any other name makes it the list. `index`
# in this module is how many elements of the same name came before, since a tuple has a view for
# each.

_TEXT = frozenset(("string", "null"))
_LONGEST_INDEX = 7  # digits of an element's name that is the index of an item


@lru_cache(maxsize=4096)
def narrow(view: View | None) -> View | None:
    """Return the only branch of a union besides null; other views as they are."""
    if view is None or view.types is not None:
        return view

    branches = [branch for branch in view.any_of if branch.types != ("null",)]
    return narrow(branches[0]) if len(branches) == 1 else view


@lru_cache(maxsize=4096)
def kind_of(view: View | None) -> str:
    """Return text, array, object, other (scalars, unions), or open where nothing is said."""
    view = narrow(view)
    if view is None:
        return "open"
    if view.types is None:
        # A union of strings is text. Of any other union nothing can be said before the value.
        if view.any_of:
            return "text" if is_text(view) else "other"
        return "open" if view.enum is None else "other"

    types = [name for name in view.types if name != "null"]
    if types == ["string"]:
        return "text"
    if types == ["array"] or types == ["object"]:
        return types[0]

    return "other"


@lru_cache(maxsize=4096)
def is_text(view: View) -> bool:
    # A string, or string and null. A number that is also allowed makes it doubtful.
    # Of a union all branches have to agree, and one of them has to be more than null.
    branches = view.any_of or (view,)
    if not all(branch.types is not None and _TEXT.issuperset(branch.types) for branch in branches):
        return False
    return any(map(is_text, view.any_of)) if view.any_of else "string" in (view.types or ())


@lru_cache(maxsize=4096)
def may_be_object(view: View | None) -> bool:
    # A schema that says nothing admits one.
    view = narrow(view)
    if view is None:
        return True
    if view.any_of:
        return any(may_be_object(branch) for branch in view.any_of)

    return view.enum is None and view.allows("object")


def wants_one(view: View) -> bool:
    # No list is a legal value. Only where the schema is sure: a union may have a list.
    if view.any_of:
        return False
    if view.enum is not None:
        return True

    return view.types is not None and "array" not in view.types


def item_view(view: View | None, index: int) -> View | None:
    view = narrow(view)
    return None if view is None else view.item(index)


def holds_items(view: View | None, index: int, name: str) -> bool:
    """Return True if an element holds the items of a list, rather than being one of them. name: its
    first child's.
    """
    view = narrow(view)
    if view is None or kind_of(view) != "array":
        return False

    item = narrow(item_view(view, index))
    if item is None or kind_of(item) not in ("object", "open") or item.child(name) is None:
        return True  # the child is no member of an item: then it is an item itself
    # `item` and numbers are what lists are written with, unless an item has a member of that name.
    written_as_list = name == "item" or (name.isascii() and name.isdigit())
    return written_as_list and name not in item.properties


def member_view(view: View | None, index: int, lists: bool, name: str, count: int) -> View | None:
    """Return the view of a child, None if nothing is known of it. count: children before it."""
    view = narrow(view)
    if view is None:
        return None
    if kind_of(view) != "array":
        return _member(view, name)

    if lists:
        # Its name, where that is a number of a likely size, else its place.
        is_index = name.isascii() and name.isdigit() and len(name) <= _LONGEST_INDEX
        return item_view(view, int(name) if is_index else count)
    item = narrow(item_view(view, index))
    return None if item is None else item.child(name)


@lru_cache(maxsize=8192)
def _member(view: View, name: str) -> View | None:
    # Of an item, where the schema's own word for a list is written.
    if name == "item" and not view.allows("object"):
        return view.items
    return view.child(name)


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
