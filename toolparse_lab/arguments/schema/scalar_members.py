"""The short way of coercion: raw texts under an object of plain scalars.

Formats of tags give nothing but texts, and most tools take nothing but scalars. Then one pass reads
each text as its member's type, and the result is known to be valid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from json.encoder import encode_basestring
from typing import NamedTuple, TypeAlias

from ...core.values import Num, Value, escape_surrogates, escape_token, write_canonical
from .bounds import Bounds, within
from .kinds import LEAVES
from .plain import plain_schema
from .record import Record
from .scalars import TEXT_READERS

# How it works. What the members are is found out once a schema. The short way may only ever say
# what `coerce` under `safe` and `validate` would say: at the first text that is not plainly of its
# member's type it gives up, and they are asked. Each value is written as JSON on the way, since a
# second pass for that would take as long as the reading.

_Reader: TypeAlias = Callable[[Record, str, str], Value]
_READ_AS = ("integer", "number", "boolean")


class _Member(NamedTuple):
    # reader: None for a text, which stays as it is. key: its name in JSON, with the colon.
    reader: _Reader | None
    classes: tuple[type, ...]
    path: str
    key: str


class _Members(NamedTuple):
    by_name: dict[str, _Member]
    required: frozenset[str]
    bounds: Bounds


def read_texts(texts: Iterable[tuple[str, Value]], schema_json: str, record: Record) -> str | None:
    """Return raw texts read as a schema wants them, as canonical JSON."""
    # None where `coerce` has to be asked. The result is that of the policy `safe` for raw text, and
    # is valid.
    members = _members_of(schema_json)
    if members is None:
        return None

    by_name = members.by_name
    values: dict[str, Value] = {}
    parts: list[str] = []
    for name, text in texts:
        member = by_name.get(name)
        if member is None or type(text) is not str:
            return None
        reader, classes, path, key = member
        if reader is None:
            values[name] = text
            parts.append(key + encode_basestring(text))
            continue
        values[name] = value = reader(record, text, path)
        kind = type(value)
        if kind not in classes:
            return None
        # As `write_canonical`, which would be a call more for every number.
        if kind is Num:
            parts.append(key + value.text)
        elif kind is int:
            parts.append(f"{key}{value}")
        elif kind is bool:
            parts.append(key + ("true" if value else "false"))
        else:
            parts.append(key + write_canonical(value))

    if len(values) < len(parts) or not members.required <= values.keys():
        return None
    if members.bounds and not within(values, members.bounds):
        return None
    return escape_surrogates("{" + ",".join(parts) + "}")


def takes_texts(schema_json: str) -> bool:
    """Return True if `read_texts` may read something under a schema."""
    return _members_of(schema_json) is not None


@lru_cache(maxsize=2048)
def _members_of(schema_json: str) -> _Members | None:
    plain = plain_schema(schema_json)
    if plain is None:
        return None
    view, bounds = plain
    if view.box is not dict:
        return None

    by_name: dict[str, _Member] = {}
    for name, child in view.properties.items():
        leaf = child.leaf
        key = write_canonical(name) + ":"
        if leaf == "string":
            by_name[name] = _Member(None, LEAVES[leaf], "", key)
        elif leaf in _READ_AS:
            path = "/" + escape_token(name)
            by_name[name] = _Member(TEXT_READERS[leaf], LEAVES[leaf], path, key)
    return _Members(by_name, frozenset(view.required), bounds)
