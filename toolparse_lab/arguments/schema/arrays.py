"""The rules that make arrays: out of text, out of the shapes XML leaves behind.

Each returns the new list, or the value itself if its rule does not apply.
"""

from __future__ import annotations

from ...core.values import Value
from .record import Record
from .scalars import SPACE, from_untyped_text, json_of
from .view import View

# How it works. Three rules in a row, from the surest to the boldest: JSON says itself that it is a
# list; an object may be what XML made of a list; and text may be several items in one line or in
# several. The last is a guess that only `middleware` makes, since a comma may belong to the text.


def list_from_json(record: Record, value: str, path: str) -> Value:
    """Return a list out of JSON text."""
    # JSON that cannot be read is left to other rules.
    text = value.strip(SPACE)
    if text[:1] not in ("[", "{"):
        return value

    parsed = json_of(text, record.safe)
    if isinstance(parsed, list):
        return record.note("coerce.json-from-string", path, value, parsed)
    if isinstance(parsed, dict):
        item = record.note("coerce.json-from-string", path, value, parsed)
        return record.note("coerce.wrap-array", path, item, [item])

    return value


def list_from_separated_text(record: Record, value: str, view: View, path: str) -> Value:
    """Return a list out of lines, or of comma-separated cells where there is only one line."""
    # Cells are trimmed and empty ones left out. If the schema says nothing of items, each cell is
    # read as untyped text.
    text = value.strip(SPACE)  # first of all: a line feed at the end separates nothing
    if text == "":
        return record.note("coerce.array-from-empty", path, value, [])

    # Lines win over commas: a line of prose has commas of its own.
    if "\n" in text:
        rule, items = "coerce.array-from-lines", _cells(text, "\n")
    else:
        rule, items = "coerce.array-from-csv", _cells(text, ",")
    if items == [value]:
        rule = "coerce.wrap-array"  # nothing was split

    new = record.note(rule, path, value, items)
    if view.items is None and not view.prefix:
        return _typed_items(record, new, path)

    return new


def _cells(text: str, separator: str) -> list[Value]:
    cells = (cell.strip(SPACE) for cell in text.split(separator))
    return [cell for cell in cells if cell]


def _typed_items(record: Record, items: Value, path: str) -> Value:
    typed = [from_untyped_text(record, cell, f"{path}/{i}") for i, cell in enumerate(items)]
    changed = any(new is not old for new, old in zip(typed, items, strict=True))
    return typed if changed else items


def list_from_mapping(record: Record, value: dict[str, Value], path: str) -> Value:
    """Return a list out of {item: …}, of numeric keys, or (policy `middleware`) of one key's list."""
    # Numeric keys are in the order of their numbers, not of the text.
    if len(value) == 1:
        new = _list_from_only_member(record, value, path)
        if new is not value:
            return new

    # An empty object has no keys that say anything.
    if value and all(_is_index(key) for key in value):
        ordered = [value[key] for key in sorted(value, key=int)]
        return record.note("coerce.numeric-keys", path, value, ordered)

    return value


def _list_from_only_member(record: Record, value: dict[str, Value], path: str) -> Value:
    key, inner = next(iter(value.items()))
    if key == "item":
        # What XML leaves of <item> elements: one alone is no list yet.
        items = inner if isinstance(inner, list) else [inner]
        return record.note("coerce.item-list", path, value, items)
    if isinstance(inner, list) and not record.safe:
        return record.note("coerce.single-key-array", path, value, inner)

    return value


def _is_index(key: str) -> bool:
    # Other scripts' digits are not a number in JSON.
    return key.isascii() and key.isdigit()
