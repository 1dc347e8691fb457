"""JSON values as this project keeps them: number lexemes survive, text is canonical, paths are JSON Pointers.

A *value* is ``dict | list | str | bool | None | int | Num``. Integers are Python ints; every other number is a
`Num`, a float that remembers the characters it was written with, so that ``3.0`` is written back as ``3.0``.

>>> read_strict('{"a": [3.0, 1e5, 2]}')["a"]
[3.0, 100000.0, 2]
>>> write_canonical(read_strict('{"a": [3.0, 1e5, 2]}'))
'{"a":[3.0,1e5,2]}'
>>> pointer_get({"a": {"b/c": [10]}}, "/a/b~1c/0")
10
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias

Value: TypeAlias = Any
"""dict | list | str | bool | None | int | Num; `Any` because JSON is recursive and mypy's recursion costs more."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_INT_DIGITS = 4000  # below CPython's default int/str conversion limit of 4,300 digits


_new_float = float.__new__


class Num(float):
    """A JSON number that is no plain integer, with its lexeme in `text`.

    Also used for integers that `int` cannot be trusted with: ``-0`` and those too long to print.
    """

    __slots__ = ("text",)
    text: str

    def __new__(cls, text: str) -> Num:
        try:
            self = _new_float(cls, text)
        except (ValueError, OverflowError):  # pragma: no cover - lexemes come from number grammars
            raise ValueError(f"not a JSON number: {text[:40]!r}") from None
        self.text = text
        return self

    def __reduce__(self) -> tuple[type[Num], tuple[str]]:
        return (Num, (self.text,))

    def __deepcopy__(self, memo: object) -> Num:
        return self


def number(text: str) -> int | Num:
    """The value of a JSON number lexeme: an int where that is exact and printable, else a `Num`."""
    digits = text[1:] if text[:1] == "-" else text
    if digits.isdigit() and text != "-0" and len(digits) <= _INT_DIGITS:
        return int(text)
    return Num(text)


def _reject_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


Decoders: TypeAlias = tuple[json.JSONDecoder, json.JSONDecoder]
_MINUS_ZERO = re.compile(r"-0(?![.\d])")


def decoders(**hooks: Any) -> Decoders:
    """Two C-backed readers of strict JSON with lexemes kept: for texts whose integers need care, and for all others.

    int() in C is three times as fast as a hook, so the hook is kept for texts that need it.
    """
    common: dict[str, Any] = {"parse_float": Num, "parse_constant": _reject_constant, **hooks}
    return json.JSONDecoder(parse_int=number, **common), json.JSONDecoder(**common)


def decoder_for(text: str, pair: Decoders) -> json.JSONDecoder:
    """The one of two readers that `text` needs."""
    if "-0" in text and _MINUS_ZERO.search(text):
        return pair[0]
    return pair[0] if len(text) >= _INT_DIGITS and _has_long_number(text) else pair[1]


def _has_long_number(text: str) -> bool:
    """Whether there may be a run of `_INT_DIGITS` digits: one that long covers a whole stride somewhere."""
    stride = _INT_DIGITS // 2
    return any(text[i : i + 16].isdigit() and text[i : i + stride].isdigit() for i in range(0, len(text), stride))


_STRICT = decoders()


def read_strict(text: str) -> Value:
    """Strict JSON text to a value, by the C-backed reader.

    Raises ValueError for anything that is not JSON (NaN and Infinity included) and RecursionError for nesting
    the C reader cannot take. Duplicate keys are *not* noticed here: the last one wins, as in `json.loads`.
    """
    return decoder_for(text, _STRICT).decode(text)


_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def write_canonical(value: Value) -> str:
    """A value to canonical JSON text: compact, keys in order, number lexemes kept, lone surrogates escaped."""
    if isinstance(value, str):
        text = encode_basestring(value)
    else:
        text = _write(value)
    if not text.isascii() and _SURROGATE.search(text):
        text = _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)
    return text


def _write(value: Value) -> str:
    try:
        return _write_shallow(value) if _has_num(value) else _ENCODE(value)
    except RecursionError:
        return _write_deep(value)


def _write_shallow(value: Value) -> str:
    """By recursion, which is quick: for what nests as people nest."""
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        return "{" + ",".join([f"{encode_basestring(k)}:{_write_shallow(v)}" for k, v in value.items()]) + "}"
    if kind is list:
        return "[" + ",".join([_write_shallow(v) for v in value]) + "]"
    if kind is Num:
        text: str = value.text
        return text
    return _ENCODE(value) if kind is not float else _float_text(value)


def _write_deep(value: Value) -> str:
    """Without recursion: nesting beyond the interpreter's limit."""
    out: list[str] = []
    stack: list[Iterator[Any]] = [iter((("", value),))]
    closers: list[str] = [""]
    first = True
    while stack:
        try:
            prefix, node = next(stack[-1])
        except StopIteration:
            stack.pop()
            out.append(closers.pop())
            first = False
            continue
        if not first:
            out.append(",")
        out.append(prefix)
        first = False
        if isinstance(node, str):
            out.append(encode_basestring(node))
        elif node is None:
            out.append("null")
        elif isinstance(node, bool):
            out.append("true" if node else "false")
        elif isinstance(node, Num):
            out.append(node.text)
        elif isinstance(node, int):
            out.append(int.__repr__(node))
        elif isinstance(node, float):
            out.append(_float_text(node))
        elif isinstance(node, dict):
            out.append("{")
            closers.append("}")
            stack.append((encode_basestring(k) + ":", v) for k, v in node.items())
            first = True
        elif isinstance(node, (list, tuple)):
            out.append("[")
            closers.append("]")
            stack.append(("", v) for v in node)
            first = True
        else:
            raise TypeError(f"not a JSON value: {type(node).__name__}")
    return "".join(out)


def _float_text(x: float) -> str:
    if not math.isfinite(x):
        raise TypeError("not a JSON value: a number that is not finite")
    return float.__repr__(x)


def _has_num(value: Value) -> bool:
    stack = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, float):
            return True
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
    return False


def plain_number(x: Num) -> int | float | Decimal:
    """What a user gets for a `Num`: a float, or a Decimal where a float would lose digits."""
    text = x.text
    value = float(x)
    if math.isfinite(value):
        try:
            if Decimal(text) == Decimal(float.__repr__(value)):
                return value
        except ArithmeticError:
            return value
    try:
        return Decimal(text)
    except ArithmeticError:  # an exponent beyond Decimal's own range
        return value


_PLAIN_DECODER = json.JSONDecoder(
    parse_float=lambda s: plain_number(Num(s)),
    parse_int=lambda s: n if isinstance(n := number(s), int) else plain_number(n),
)


def read_plain(text: str) -> Value:
    """Canonical JSON text to ordinary Python values: int, float, and Decimal only where a float loses digits."""
    try:
        return _PLAIN_DECODER.decode(text)
    except RecursionError:
        return _read_deep(text)


_TOKEN = re.compile(r'[{}\[\],:]|"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*|true|false|null', re.DOTALL)
_CONSTANTS = {"true": True, "false": False, "null": None}


def _read_deep(text: str) -> Value:
    """Canonical JSON of any depth, without recursion; `text` is known to be well-formed."""
    root: list[Value] = []
    stack: list[Value] = [root]
    keys: list[str | None] = [None]
    expect_key = False
    for match in _TOKEN.finditer(text):
        tok = match[0]
        if tok in "}]":
            stack.pop()
            keys.pop()
            expect_key = False
            continue
        if tok == ",":
            expect_key = isinstance(stack[-1], dict)
            continue
        if tok == ":":
            continue
        if expect_key:
            keys[-1] = json.loads(tok)
            expect_key = False
            continue
        node: Value
        if tok == "{":
            node = {}
        elif tok == "[":
            node = []
        elif tok[0] == '"':
            node = json.loads(tok)
        elif tok in _CONSTANTS:
            node = _CONSTANTS[tok]
        else:
            n = number(tok)
            node = plain_number(n) if isinstance(n, Num) else n
        box = stack[-1]
        if isinstance(box, dict):
            box[keys[-1]] = node
        else:
            box.append(node)
        if tok in "{[":
            stack.append(node)
            keys.append(None)
            expect_key = tok == "{"
    return root[0]


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
        if isinstance(x, (int, float)) and isinstance(y, (int, float)):
            if _exact(x) != _exact(y):
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


def _exact(x: int | float) -> int | float | Decimal:
    if isinstance(x, int) or not (isinstance(x, Num) or math.isfinite(x)):
        return x
    try:
        return Decimal(x.text if isinstance(x, Num) else float.__repr__(x))  # a float means the digits it prints
    except ArithmeticError:  # an exponent beyond Decimal's own range
        return float(x)
