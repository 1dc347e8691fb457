"""The short way of coercion: raw texts under an object of plain scalars.

Formats of tags give nothing but texts, and most tools take nothing but scalars. Then one pass reads
each text as its member's type, and the result is known to be valid.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ..values import Value, escape_token
from .bounds import Bounds, within
from .kinds import LEAVES
from .plain import plain_schema
from .record import Record
from .scalars import TEXT_READERS

# How it works. What the members are is found out once a schema. The short way may only ever say
# what `coerce` under `safe` and `validate` would say: at the first text that is not plainly of its
# member's type it gives up, and they are asked.

_Reader: TypeAlias = Callable[[Record, str, str], Value]
_READ_AS = ("integer", "number", "boolean")


class _Member(NamedTuple):
    """A declared scalar: what reads a text as one, its classes, and its JSON Pointer.

    reader: None for a text, which stays as it is.
    """

    reader: _Reader | None
    classes: tuple[type, ...]
    path: str


class _Members(NamedTuple):
    """The scalars of one schema by their names, the names it requires, and the scalars' bounds."""

    by_name: dict[str, _Member]
    required: frozenset[str]
    bounds: Bounds


def read_texts(texts: Value, schema_json: str) -> tuple[Record, Value] | None:
    """Return the record and the result of reading raw texts, None where `coerce` has to be asked.

    The result is that of the policy ``safe`` for raw text, and is valid.

    texts: the arguments. schema_json: the schema's text, by which what it says is cached.

    >>> schema = '{"type": "object", "properties": {"n": {"type": "integer"}}}'
    >>> read_texts({"n": "5"}, schema)[1], read_texts({"n": "five"}, schema)
    ({'n': 5}, None)
    """
    members = _members_of(schema_json)
    if members is None or type(texts) is not dict or not members.required <= texts.keys():
        return None

    record = Record("safe")
    by_name = members.by_name
    result: dict[str, Value] = {}
    for name, text in texts.items():
        member = by_name.get(name)
        if member is None or type(text) is not str:
            return None
        value = text if member.reader is None else member.reader(record, text, member.path)
        if type(value) not in member.classes:
            return None
        result[name] = value

    if members.bounds and not within(result, members.bounds):
        return None
    return record, result if record.steps else texts


@lru_cache(maxsize=2048)
def _members_of(schema_json: str) -> _Members | None:
    """Return the plain scalars of a schema, None if it says more of the object than its members."""
    plain = plain_schema(schema_json)
    if plain is None:
        return None
    view, bounds = plain
    if view.box is not dict:
        return None

    by_name: dict[str, _Member] = {}
    for name, child in view.properties.items():
        leaf = child.leaf
        if leaf == "string":
            by_name[name] = _Member(None, LEAVES[leaf], "")
        elif leaf in _READ_AS:
            path = "/" + escape_token(name)
            by_name[name] = _Member(TEXT_READERS[leaf], LEAVES[leaf], path)
    return _Members(by_name, frozenset(view.required), bounds)
