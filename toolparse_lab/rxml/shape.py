"""What a schema says of elements: which hold raw text, which hold the items of a list, what a child's value may be."""

from __future__ import annotations

from functools import lru_cache

from ..schema.view import View


@lru_cache(maxsize=4096)
def narrow(view: View | None) -> View | None:
    """The only branch of a union besides null; other views as they are."""
    if view is not None and view.any_of and view.types is None:
        rest = [b for b in view.any_of if b.types != ("null",)]
        if len(rest) == 1:
            return narrow(rest[0])
    return view


@lru_cache(maxsize=4096)
def kind_of(view: View | None) -> str:
    """text, array, object or other (scalars, unions); 'open' where the schema says nothing."""
    view = narrow(view)
    if view is None or view.types is None:
        if view is not None and view.any_of:
            return "text" if is_text(view) else "other"
        return "open" if view is None or view.enum is None else "other"
    types = [t for t in view.types if t != "null"]
    if types == ["string"]:
        return "text"
    return types[0] if types in (["array"], ["object"]) else "other"


@lru_cache(maxsize=4096)
def is_text(view: View) -> bool:
    """The schema calls it a string, or a string or null: then its text is raw."""
    if view.any_of:
        return any(is_text(b) for b in view.any_of) and all(
            b.types is not None and set(b.types) <= {"string", "null"} for b in view.any_of
        )
    return view.types is not None and "string" in view.types and set(view.types) <= {"string", "null"}


@lru_cache(maxsize=4096)
def may_be_object(view: View | None) -> bool:
    """Whether an object is a legal value, so that attributes have a place to be."""
    view = narrow(view)
    if view is None:
        return True
    if view.any_of:
        return any(may_be_object(b) for b in view.any_of)
    return view.enum is None and view.allows("object")


def wants_one(view: View) -> bool:
    """Whether no list is a legal value."""
    return not view.any_of and (view.enum is not None or (view.types is not None and "array" not in view.types))


def item_view(view: View | None, index: int) -> View | None:
    """The view of the item at `index` of an array."""
    view = narrow(view)
    if view is None:
        return None
    return view.prefix[index] if index < len(view.prefix) else view.items


def holds_items(view: View | None, index: int, name: str) -> bool:
    """Whether an element whose first child has this name holds the items of a list, rather than being one of them."""
    view = narrow(view)
    if view is None or kind_of(view) != "array":
        return False
    own = narrow(item_view(view, index))
    if own is None or kind_of(own) not in ("object", "open") or own.child(name) is None:
        return True
    return (name == "item" or (name.isascii() and name.isdigit())) and name not in own.properties


def member_view(view: View | None, index: int, lists: bool, name: str, count: int) -> View | None:
    """What the schema says of a child called `name`, `count` children behind the first, of an element with `view`."""
    view = narrow(view)
    if view is None:
        return None
    if kind_of(view) == "array":
        if not lists:
            own = narrow(item_view(view, index))
            return own.child(name) if own is not None else None
        numbered = name.isascii() and name.isdigit() and len(name) < 8
        return item_view(view, int(name) if numbered else count)
    return _member(view, name)


@lru_cache(maxsize=8192)
def _member(view: View, name: str) -> View | None:
    if name == "item" and not view.allows("object"):
        return view.items
    return view.child(name)
