"""JSON nested deeper than the interpreter recurses: read and written with a stack of our own.

Slower than the C-backed reader and writer, so used only where those give up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any

from .numerals import BigNum, Num, digits_of, number

_WS = r"[ \t\n\r]*+"
_STRING = r'"(?:[^"\\\x00-\x1f]|\\.)*+"'
_VALUE = re.compile(
    rf"{_WS}(?:(?P<opener>[{{\[])|(?P<string>{_STRING})|(?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
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
    """One strict JSON value of any depth from `pos` on, and the offset behind it.

    pairs makes an object of its members, numbers a number of its lexeme. Raises ValueError for what is no JSON, or
    nests deeper than `max_depth`.
    """
    open_: list[tuple[str, list[Any]]] = []  # closer and members of each open container
    keys: list[str] = []
    while True:
        m = _VALUE.match(text, pos)
        if m is None:
            raise ValueError(f"expected a value at character {pos}")
        pos = m.end()
        kind, lexeme = m.lastgroup, m[str(m.lastgroup)]
        value: Any
        if kind == "opener":
            if len(open_) == max_depth:
                raise ValueError(f"nested deeper than {max_depth} at character {pos - 1}")
            closer = "}" if lexeme == "{" else "]"
            end = _CLOSED.match(text, pos)
            if end is None or end[1] != closer:
                open_.append((closer, []))
                if closer == "}":
                    pos = _read_key(text, pos, keys)
                continue
            pos = end.end()
            value = pairs([]) if closer == "}" else []
        elif kind == "string":
            value = json.loads(lexeme)
        else:
            value = numbers(lexeme) if kind == "number" else _CONSTANTS[lexeme]
        while open_:
            closer, members = open_[-1]
            members.append(value if closer == "]" else (keys.pop(), value))
            m = _NEXT.match(text, pos)
            if m is None or (m[1] != "," and m[1] != closer):
                raise ValueError(f"expected a comma or {closer!r} at character {pos}")
            pos = m.end()
            if m[1] == ",":
                if closer == "}":
                    pos = _read_key(text, pos, keys)
                break
            open_.pop()
            value = members if closer == "]" else pairs(members)
        else:
            return value, pos


def _read_key(text: str, pos: int, keys: list[str]) -> int:
    m = _KEY.match(text, pos)
    if m is None:
        raise ValueError(f"expected a key and a colon at character {pos}")
    keys.append(json.loads(m[1]))
    return m.end()


def write_deep(value: Any) -> str:
    """A value to compact JSON text. Raises TypeError for what JSON cannot carry, such as a list that holds itself."""
    out: list[str] = []
    stack: list[Iterator[Any]] = [iter((("", value),))]
    closers: list[str] = [""]
    around: list[int] = [0]
    inside: set[int] = set()
    first = True
    while stack:
        try:
            prefix, node = next(stack[-1])
        except StopIteration:
            stack.pop()
            out.append(closers.pop())
            inside.discard(around.pop())
            first = False
            continue
        if not first:
            out.append(",")
        out.append(prefix)
        first = isinstance(node, (dict, list, tuple))
        if first:
            if id(node) in inside:
                raise TypeError("not a JSON value: it contains itself")
            around.append(id(node))
            inside.add(id(node))
        if isinstance(node, dict):
            out.append("{")
            closers.append("}")
            stack.append((write_key(k) + ":", v) for k, v in node.items())
        elif isinstance(node, (list, tuple)):
            out.append("[")
            closers.append("]")
            stack.append(("", v) for v in node)
        else:
            out.append(write_scalar(node))
    return "".join(out)


def write_scalar(value: Any) -> str:
    """A string, number, boolean or null as JSON text. Raises TypeError for everything else."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Num, BigNum)):
        return value.text
    if isinstance(value, int):
        return digits_of(value)
    if isinstance(value, float) and value - value == 0.0:
        return float.__repr__(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def write_key(key: Any) -> str:
    """A key as JSON text; one that is no text as `json.dumps` writes it."""
    return encode_basestring(key if isinstance(key, str) else write_scalar(key))
