"""JSON values as this project keeps them: number lexemes survive, text is canonical, paths are JSON Pointers.

A *value* is ``dict | list | str | bool | None | int | Num | BigNum``. Integers are Python ints; every other number is
a `Num`, a float that remembers the characters it was written with, so that ``3.0`` is written back as ``3.0``. What
neither can hold, ``1e999`` or an integer of 5,000 digits, is a `BigNum`, a Decimal that remembers them (see
`numerals`). Values may nest as deep as memory allows: nothing here recurses beyond the interpreter's limit.

>>> read_strict('{"a": [3.0, 1e5, 2]}')["a"]
[3.0, 100000.0, 2]
>>> write_canonical(read_strict('{"a": [3.0, 1e5, 2]}'))
'{"a":[3.0,1e5,2]}'
>>> pointer_get({"a": {"b/c": [10]}}, "/a/b~1c/0")
10
"""

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from .deep import read_deep, write_deep, write_key, write_scalar
from .numerals import INT_DIGITS, exact
from .numerals import BigNum as BigNum
from .numerals import Num as Num
from .numerals import number as number
from .numerals import plain_number as plain_number
from .numerals import real as real

Value: TypeAlias = Any
"""dict | list | str | bool | None | int | Num | BigNum; `Any` because JSON is recursive and mypy's recursion costs
more."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _reject_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


Decoders: TypeAlias = tuple[json.JSONDecoder, json.JSONDecoder]
_MINUS_ZERO = re.compile(r"-0(?!\.)")


def decoders(*, parse_int: Callable[[str], Value] = number, **hooks: Any) -> Decoders:
    """Two C-backed readers of strict JSON with lexemes kept: for texts whose integers need care, and for all others.

    int() in C is three times as fast as a hook, so the hook is kept for texts that need it.
    """
    common: dict[str, Any] = {"parse_float": real, "parse_constant": _reject_constant, **hooks}
    return json.JSONDecoder(parse_int=parse_int, **common), json.JSONDecoder(**common)


def decoder_for(text: str, pair: Decoders) -> json.JSONDecoder:
    """The one of two readers that `text` needs."""
    if "-0" in text and _MINUS_ZERO.search(text):
        return pair[0]
    return pair[0] if len(text) >= INT_DIGITS and _has_long_number(text) else pair[1]


def _has_long_number(text: str) -> bool:
    """Whether there may be a run of `INT_DIGITS` digits: one that long covers a whole stride somewhere."""
    stride = INT_DIGITS // 2
    return any(text[i : i + 16].isdigit() and text[i : i + stride].isdigit() for i in range(0, len(text), stride))


_STRICT = decoders()
_JSON_SPACE = re.compile(r"[ \t\n\r]*+")
_BEHIND = re.compile(_JSON_SPACE.pattern + r"\Z")


def space_end(text: str, pos: int = 0) -> int:
    """The offset behind JSON's white space at `pos`."""
    return _JSON_SPACE.match(text, pos).end()  # type: ignore[union-attr]  # the pattern matches everywhere


def read_strict(text: str) -> Value:
    """Strict JSON text of any depth to a value. Raises ValueError for anything that is not JSON, NaN and Infinity
    included. Duplicate keys are *not* noticed here: the last one wins, as in `json.loads`."""
    try:
        return decoder_for(text, _STRICT).decode(text)
    except RecursionError:
        return _whole(text, *read_deep(text))


def _whole(text: str, value: Value, end: int) -> Value:
    if not _BEHIND.match(text, end):
        raise ValueError(f"something stands behind the value, at character {end}")
    return value


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_CLEAN = frozenset((str, int, bool, type(None)))  # what the C-backed writer writes as we do
_TEXT = frozenset((str,))
_FEW = 16  # members up to which writing them one by one is quicker than asking what they are


def write_canonical(value: Value) -> str:
    """A value to canonical JSON text: compact, keys in order, number lexemes kept, lone surrogates escaped."""
    try:
        text = _write(value)
    except (RecursionError, ValueError):  # too deep, or an int too long for Python's own limit
        text = write_deep(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
    return text


def _write(value: Value) -> str:
    """By recursion, which is quick: for what nests as people nest."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        if len(value) > _FEW and _CLEAN.issuperset(map(type, value.values())) and _TEXT.issuperset(map(type, value)):
            return _ENCODER.encode(value)
        parts: list[str] = []
        for key, member in value.items():
            name = encode_basestring(key) if type(key) is str else write_key(key)
            kind = type(member)
            if kind is str:
                parts.append(f"{name}:{encode_basestring(member)}")
            elif kind is Num:
                parts.append(f"{name}:{member.text}")
            elif kind is int:
                parts.append(f"{name}:{member}")
            elif kind is bool:
                parts.append(f"{name}:true" if member else f"{name}:false")
            else:
                parts.append(f"{name}:{_write(member)}")
        return "{" + ",".join(parts) + "}"
    if isinstance(value, (list, tuple)):
        if len(value) > _FEW and _CLEAN.issuperset(map(type, value)):
            return _ENCODER.encode(value)
        return "[" + ",".join([_write(item) for item in value]) + "]"
    return write_scalar(value) if not isinstance(value, dict) else _write(dict(value))


def _plain(text: str) -> int | float | Decimal:
    n = number(text)
    return n if isinstance(n, int) else plain_number(n)


_PLAIN = decoders(parse_int=_plain, parse_float=_plain)


def read_plain(text: str) -> Value:
    """Strict JSON text of any depth to ordinary Python values: int, float, and Decimal only where a float loses
    digits. Raises ValueError for anything that is not JSON."""
    try:
        return decoder_for(text, _PLAIN).decode(text)
    except RecursionError:
        return _whole(text, *read_deep(text, numbers=_plain))


def unescape(inside: str) -> str:
    """What the inside of a JSON string means.

    >>> unescape('a\\n\\u00e9')
    'a\\né'
    """
    return str(read_strict(f'"{inside}"')) if "\\" in inside else inside


def escape_token(key: str | int) -> str:
    """One reference token of a JSON Pointer (RFC 6901)."""
    text = str(key)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return text


def pointer_tokens(path: str) -> list[str]:
    """The unescaped tokens of a JSON Pointer; raises ValueError when it is neither empty nor begins with '/'."""
    if not path:
        return []
    if path[0] != "/":
        raise ValueError(f"a JSON Pointer is empty or begins with '/': got {path[:80]!r}")
    return [t.replace("~1", "/").replace("~0", "~") for t in path[1:].split("/")]


def pointer_get(value: Value, path: str) -> Value:
    """The value at a JSON Pointer; raises KeyError naming the path when there is nothing."""
    node = value
    for token in pointer_tokens(path):
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and token.isascii() and token.isdigit() and int(token) < len(node):
            node = node[int(token)]
        else:
            raise KeyError(path)
    return node


def pointer_set(value: Value, path: str, new: Value) -> Value:
    """`value` with `new` at `path`, changed in place except at the root, which is returned."""
    tokens = pointer_tokens(path)
    if not tokens:
        return new
    node = value
    for token in tokens[:-1]:
        node = node[int(token)] if isinstance(node, list) else node[token]
    if isinstance(node, list):
        node[int(tokens[-1])] = new
    else:
        node[tokens[-1]] = new
    return value


def leaves(value: Value, path: str = "") -> Iterator[tuple[str, Value]]:
    """Every scalar, empty object and empty array with its JSON Pointer, in document order."""
    stack = [(path, value)]
    while stack:
        at, node = stack.pop()
        if isinstance(node, dict) and node:
            stack.extend((f"{at}/{escape_token(k)}", v) for k, v in reversed(node.items()))
        elif isinstance(node, list) and node:
            stack.extend((f"{at}/{i}", node[i]) for i in range(len(node) - 1, -1, -1))
        else:
            yield at, node


def same(a: Value, b: Value) -> bool:
    """JSON equality: 1 and 1.0 are one number, True and 1 are not; without recursion."""
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        if isinstance(x, bool) or isinstance(y, bool):
            return False
        if isinstance(x, (int, float, Decimal)) and isinstance(y, (int, float, Decimal)):
            if exact(x) != exact(y):
                return False
        elif isinstance(x, dict) and isinstance(y, dict):
            if x.keys() != y.keys():
                return False
            stack.extend((x[k], y[k]) for k in x)
        elif isinstance(x, list) and isinstance(y, list):
            if len(x) != len(y):
                return False
            stack.extend(zip(x, y, strict=True))
        elif type(x) is not type(y) or x != y:
            return False
    return True
