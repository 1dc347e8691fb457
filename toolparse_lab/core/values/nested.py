"""JSON nested deeper than the interpreter recurses: read and written with a stack of our own.

Slower than the C-backed reader and writer, so used only where those give up.
"""

# How it works
# ------------
# Reading. State: `_open` holds the closer and the members of each open container, outermost first,
# `_keys` the key of each open object's next member, and `value` the value that was read last.
# Invariant: `pos` is behind all that was read, where a value must begin; after the comma of an
# object its key is read at once. A value that is complete goes to the innermost container, and
# that may complete it, too: so `place` closes containers in a loop.
#
# Writing. State: an iterator over the rest of each open container, with the text that closes it.
# `inside` are the containers on the way from the root, by identity: one that comes again holds
# itself, and would be written for ever.
#
# Cost: linear in the text; about ten times that of the C code.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from .numbers import BigNum, Num, digits_of, number

# Possessive, so that no text is gone through twice.
_WS = r"[ \t\n\r]*+"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\.)*+"'
_NUMBER = r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?"
_VALUE = re.compile(
    rf"{_WS}(?:(?P<opener>[{{\[])|(?P<string>{_STRING})|(?P<number>{_NUMBER})"
    r"|(?P<constant>true|false|null))"
)
_KEY = re.compile(rf"{_WS}({_STRING}){_WS}:")
_CLOSED = re.compile(rf"{_WS}([}}\]])")
_NEXT = re.compile(rf"{_WS}([,}}\]])")
_CONSTANTS = {"true": True, "false": False, "null": None}


def read_deep(
    text: str,
    pos: int = 0,
    *,
    pairs: Callable[[list[tuple[str, Any]]], Any] = dict,
    numbers: Callable[[str], Any] = number,
    max_depth: int | None = None,
) -> tuple[Any, int]:
    """Return one strict JSON value of any depth from `pos` on, and the offset after it.

    pairs makes an object of its members, numbers a number of its lexeme. Raises ValueError for
    anything that is not JSON, or nests deeper than `max_depth`.
    """
    reader = _DeepReader(text, pos, pairs, max_depth)
    while True:
        match = _VALUE.match(text, reader.pos)
        if match is None:
            raise ValueError(f"expected a value at character {reader.pos}")
        reader.pos = match.end()
        kind = match.lastgroup
        if kind == "opener":
            if reader.open(match["opener"]):
                continue
        elif kind == "string":
            reader.value = json.loads(match["string"])
        elif kind == "number":
            reader.value = numbers(match["number"])
        else:
            reader.value = _CONSTANTS[match["constant"]]
        if reader.place():
            return reader.value, reader.pos


class _DeepReader:
    __slots__ = ("_keys", "_max_depth", "_open", "_pairs", "_text", "pos", "value")

    def __init__(
        self,
        text: str,
        pos: int,
        pairs: Callable[[list[tuple[str, Any]]], Any],
        max_depth: int | None,
    ) -> None:
        self._text = text
        self._pairs = pairs
        self._max_depth = max_depth
        self._open: list[tuple[str, list[Any]]] = []
        self._keys: list[str] = []
        self.pos = pos
        self.value: Any = None

    def open(self, opener: str) -> bool:
        if len(self._open) == self._max_depth:
            raise ValueError(f"nested deeper than {self._max_depth} at character {self.pos - 1}")
        closer = "}" if opener == "{" else "]"
        end = _CLOSED.match(self._text, self.pos)
        if end is not None and end[1] == closer:
            self.pos = end.end()
            self.value = self._pairs([]) if closer == "}" else []
            return False

        self._open.append((closer, []))
        if closer == "}":
            self._read_key()
        return True

    def place(self) -> bool:
        while self._open:
            closer, members = self._open[-1]
            members.append(self.value if closer == "]" else (self._keys.pop(), self.value))
            if not self._ends(closer):
                return False
            self._open.pop()
            self.value = members if closer == "]" else self._pairs(members)
        return True

    def _ends(self, closer: str) -> bool:
        match = _NEXT.match(self._text, self.pos)
        if match is None or match[1] not in (",", closer):
            raise ValueError(f"expected a comma or {closer!r} at character {self.pos}")
        self.pos = match.end()
        if match[1] == closer:
            return True
        if closer == "}":
            self._read_key()
        return False

    def _read_key(self) -> None:
        match = _KEY.match(self._text, self.pos)
        if match is None:
            raise ValueError(f"expected a key and a colon at character {self.pos}")
        self._keys.append(json.loads(match[1]))
        self.pos = match.end()


def write_deep(value: Any) -> str:
    """Return a value to compact JSON text."""
    out: list[str] = []
    # Each entry: the members to come, each with the text before it; the closer; the container's id.
    stack: list[tuple[Iterator[tuple[str, Any]], str, int]] = [(iter((("", value),)), "", 0)]
    inside: set[int] = set()
    first = True  # no member was written yet in the innermost container

    while stack:
        members, closer, identity = stack[-1]
        entry = next(members, None)
        if entry is None:
            stack.pop()
            out.append(closer)
            inside.discard(identity)
            first = False
            continue

        prefix, node = entry
        if not first:
            out.append(",")
        out.append(prefix)
        first = isinstance(node, (dict, list, tuple))
        if not first:
            out.append(write_scalar(node))
            continue
        if id(node) in inside:
            raise TypeError("not a JSON value: it contains itself")
        inside.add(id(node))
        if isinstance(node, dict):
            out.append("{")
            stack.append((_members(node), "}", id(node)))
        else:
            out.append("[")
            stack.append((_items(node), "]", id(node)))

    return "".join(out)


def _members(node: dict[Any, Any]) -> Iterator[tuple[str, Any]]:
    return ((write_key(key) + ":", member) for key, member in node.items())


def _items(node: list[Any] | tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    return (("", item) for item in node)


def write_scalar(value: Any) -> str:
    """Return a string, number, boolean or null as JSON text."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    # Before int, which it is to Python.
    if isinstance(value, bool):
        return "true" if value else "false"
    number = _number_text(value)
    if number is None:
        raise TypeError(f"not a JSON value: {type(value).__name__}")
    return number


def _number_text(value: Any) -> str | None:
    # Before float and Decimal: these remember how they were written.
    if isinstance(value, (Num, BigNum)):
        return value.text
    if isinstance(value, int):
        return digits_of(value)
    if isinstance(value, float):
        # Infinity and NaN differ from themselves by NaN.
        return float.__repr__(value) if value - value == 0.0 else None
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    return None


def write_key(key: Any) -> str:
    """Return a key as JSON text."""
    return encode_basestring(key if isinstance(key, str) else write_scalar(key))
