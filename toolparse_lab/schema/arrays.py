"""The rules that make arrays: out of text, out of the shapes XML leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..values import Value
from .scalars import SPACE, from_untyped_text, json_of
from .view import View

if TYPE_CHECKING:
    from .walk import Walk


def from_text(walk: Walk, value: str, view: View, path: str) -> Value:
    """A list out of text: JSON, else a single item, else (policy `middleware`) lines or comma-separated cells."""
    text = value.strip(SPACE)
    if text[:1] in ("[", "{"):
        found = json_of(text)
        if isinstance(found, list):
            return walk.note("coerce.json-from-string", path, value, found)
        if isinstance(found, dict):
            inner = walk.note("coerce.json-from-string", path, value, found)
            return walk.note("coerce.wrap-array", path, inner, [inner])
    if walk.safe:
        return _wrapped_if_single(walk, value, view, path)
    if text == "":
        return walk.note("coerce.array-from-empty", path, value, [])
    rule, cells = (
        ("coerce.array-from-lines", text.split("\n")) if "\n" in text else ("coerce.array-from-csv", text.split(","))
    )
    items: list[Value] = [c.strip(SPACE) for c in cells if c.strip(SPACE)]
    if len(items) == 1 and items[0] == value:
        rule = "coerce.wrap-array"
    new: Value = walk.note(rule, path, value, items)
    if view.items is None and not view.prefix:
        typed = [from_untyped_text(walk, c, f"{path}/{i}") for i, c in enumerate(items)]
        return typed if any(a is not b for a, b in zip(typed, items, strict=True)) else new
    return new


def _wrapped_if_single(walk: Walk, value: str, view: View, path: str) -> Value:
    """One item, where nothing in the text says that it might be several; in XML one element is one item anyway."""
    items = view.items or (view.prefix[0] if len(view.prefix) == 1 else None)
    text = value.strip(SPACE)
    if items is None or not text or (not walk.one_item and ("\n" in text or "," in text)):
        return value
    probe = type(walk)(walk.policy, walk.one_item)
    if not items.conforms(probe.value(value, items, path, 0)):
        return value
    return walk.note("coerce.wrap-array", path, value, [value])


def from_mapping(walk: Walk, value: dict[str, Value], path: str) -> Value:
    """A list out of {item: …}, out of numeric keys, or (policy `middleware`) out of the one key that holds a list."""
    if len(value) == 1:
        key, inner = next(iter(value.items()))
        if key == "item":
            return walk.note("coerce.item-list", path, value, inner if isinstance(inner, list) else [inner])
        if isinstance(inner, list) and not walk.safe:
            return walk.note("coerce.single-key-array", path, value, inner)
    if value and all(k.isascii() and k.isdigit() for k in value):
        return walk.note("coerce.numeric-keys", path, value, [value[k] for k in sorted(value, key=int)])
    return value
