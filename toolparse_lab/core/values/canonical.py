"""JSON values as this project keeps them: number lexemes survive, text is canonical, paths are JSON
Pointers.

A *value* is ``dict | list | str | bool | None | int | Num | BigNum``. Integers are Python ints.
Every other number is a `Num`, a float that remembers the characters it was written with, so that
``3.0`` is written back as ``3.0``. A value that neither can hold, ``1e999`` or an integer of 5,000
digits, is a `BigNum`, a Decimal that remembers them (see `numbers`). Values may nest as deep as
memory allows: nothing here recurses beyond the interpreter's limit.

>>> read_strict('{"a": [3.0, 1e5, 2]}')["a"]
[3.0, 100000.0, 2]
>>> write_canonical(read_strict('{"a": [3.0, 1e5, 2]}'))
'{"a":[3.0,1e5,2]}'
>>> pointer_get({"a": {"b/c": [10]}}, "/a/b~1c/0")
10
"""

# How it works
# ------------
# Reading and writing are left to the C code of `json` wherever it does the right thing, and done by
# our own code where it does not: integers too long for `int`, -0, numbers whose lexeme must stay,
# nesting beyond the interpreter's recursion limit. Each function tries the quick way first; what is
# quick and wrong is found by a look at the text or the types that costs less than the way itself.
#
# Invariant: read_strict(write_canonical(v)) is the same as v, lexemes included, and
# write_canonical(read_strict(t)) is t without its white space, with escapes only where JSON needs
# them.
#
# Cost: linear. The slow ways cost three to ten times the quick ones.

from __future__ import annotations

import json
import json.encoder
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias

from .nested import read_deep, write_deep, write_key, write_scalar
from .numbers import INT_DIGITS, exact
from .numbers import BigNum as BigNum
from .numbers import Num as Num
from .numbers import number as number
from .numbers import plain_number as plain_number
from .numbers import real as real

Value: TypeAlias = Any
"""dict | list | str | bool | None | int | Num | BigNum; `Any` because JSON is recursive and mypy's
recursion costs more."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _reject_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


Decoders: TypeAlias = tuple[json.JSONDecoder, json.JSONDecoder]
_MINUS_ZERO = re.compile(r"-0(?!\.)")


def decoders(*, parse_int: Callable[[str], Value] = number, **hooks: Any) -> Decoders:
    """Return two C-backed readers of strict JSON, the first for texts whose integers need care.

    parse_int: the value of an integer's lexeme, for the first reader. hooks: as `JSONDecoder` takes
    them, for both. The two agree on every text that needs no care. `decoder_for` chooses.
    """
    common: dict[str, Any] = {"parse_float": real, "parse_constant": _reject_constant, **hooks}
    # int() in C is three times as fast as a hook, so the hook is kept for texts that need it.
    careful = json.JSONDecoder(parse_int=parse_int, **common)
    return careful, json.JSONDecoder(**common)


def decoder_for(text: str, pair: Decoders) -> json.JSONDecoder:
    """Return the reader that `text` needs: the careful one for -0 and very long integers."""
    careful, quick = pair
    # One character is found several times as fast as two, and most texts have no minus.
    if "-" in text and "-0" in text and _MINUS_ZERO.search(text):
        return careful
    if len(text) >= INT_DIGITS and _may_have_long_number(text):
        return careful
    return quick


def _may_have_long_number(text: str) -> bool:
    # So long a run covers a whole stride somewhere, and two looks at each stride are enough.
    stride = INT_DIGITS // 2
    for start in range(0, len(text), stride):
        if text[start : start + 16].isdigit() and text[start : start + stride].isdigit():
            return True
    return False


_STRICT = decoders()
_JSON_SPACE = re.compile(r"[ \t\n\r]*+")
_BEHIND = re.compile(_JSON_SPACE.pattern + r"\Z")


def space_end(text: str, pos: int = 0) -> int:
    """Return the offset after JSON's white space at `pos`."""
    # The pattern matches everywhere, if only the empty text.
    return _JSON_SPACE.match(text, pos).end()  # type: ignore[union-attr]


def read_strict(text: str) -> Value:
    """Return the value of strict JSON text of any depth.

    Raises ValueError for anything that is not JSON, NaN and Infinity included. Duplicate keys are
    *not* noticed here: the last one wins, as in `json.loads`.
    """
    try:
        return decoder_for(text, _STRICT).decode(text)
    except RecursionError:
        return _whole(text, *read_deep(text))


def _whole(text: str, value: Value, end: int) -> Value:
    if not _BEHIND.match(text, end):
        raise ValueError(f"something stands behind the value, at character {end}")
    return value


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_CLEAN = frozenset((str, int, bool, type(None)))  # types that the C-backed writer writes as we do
_TEXT = frozenset((str,))
_FEW = 16  # members up to which writing them one by one is quicker than a look at their types


def write_canonical(value: Value) -> str:
    """Return canonical JSON text: compact, keys in order, lexemes kept, lone surrogates escaped.

    Raises TypeError for values that JSON cannot carry, such as NaN or a list that holds itself.
    """
    try:
        # Arguments are an object, so one look here spares a call.
        text = _write_object(value) if type(value) is dict else _write(value)
    except (RecursionError, ValueError):  # too deep, or an int too long for Python's own limit
        text = write_deep(value)

    return escape_surrogates(text)


def escape_surrogates(text: str) -> str:
    """Return JSON text with an escape for each lone surrogate, which UTF-8 cannot carry."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", text)

    return text


def _write(value: Value) -> str:
    kind = type(value)
    if kind is str:
        return encode_basestring(value)
    if kind is dict:
        return _write_object(value)
    if isinstance(value, (list, tuple)):
        if len(value) > _FEW and _CLEAN.issuperset(map(type, value)):
            return _ENCODER.encode(value)
        return "[" + ",".join([_write(item) for item in value]) + "]"

    if isinstance(value, dict):
        return _write_object(dict(value))
    return write_scalar(value)


def _write_object(value: dict[Any, Value]) -> str:
    if (
        len(value) > _FEW
        and _CLEAN.issuperset(map(type, value.values()))
        and _TEXT.issuperset(map(type, value))
    ):
        return _ENCODER.encode(value)

    parts: list[str] = []

    for key, member in value.items():
        name = encode_basestring(key) if type(key) is str else write_key(key)
        kind = type(member)
        # The four commonest kinds are written here: a call for each would take longer than this.
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


def _plain(text: str) -> int | float | Decimal:
    n = number(text)
    return n if isinstance(n, int) else plain_number(n)


_PLAIN = decoders(parse_int=_plain, parse_float=_plain)


def read_plain(text: str) -> Value:
    """Return strict JSON text of any depth as ordinary Python values.

    Numbers are int, float, and Decimal only where a float loses digits. Raises ValueError for
    anything that is not JSON.
    """
    try:
        return decoder_for(text, _PLAIN).decode(text)
    except RecursionError:
        return _whole(text, *read_deep(text, numbers=_plain))


def unescape(inside: str) -> str:
    """Return what the inside of a JSON string means. Raises ValueError for a wrong escape."""
    return str(read_strict(f'"{inside}"')) if "\\" in inside else inside


def escape_token(key: str | int) -> str:
    """Return one reference token of a JSON Pointer (RFC 6901, section 3), for a key or an index."""
    text = str(key)
    if "~" in text or "/" in text:
        text = text.replace("~", "~0").replace("/", "~1")
    return text


def pointer_tokens(path: str) -> list[str]:
    """Return the unescaped tokens of a JSON Pointer. Raises ValueError for what is not one."""
    if not path:
        return []
    if path[0] != "/":
        raise ValueError(f"a JSON Pointer is empty or begins with '/': got {path[:80]!r}")
    # In this order (RFC 6901, section 4): ~01 means ~1, not /.
    return [t.replace("~1", "/").replace("~0", "~") for t in path[1:].split("/")]


def pointer_get(value: Value, path: str) -> Value:
    """Return the value at a JSON Pointer. Raises KeyError naming the path if nothing is there."""
    node = value
    for token in pointer_tokens(path):
        if isinstance(node, dict) and token in node:
            node = node[token]
        elif isinstance(node, list) and _is_index(token, len(node)):
            node = node[int(token)]
        else:
            raise KeyError(path)

    return node


def _is_index(token: str, size: int) -> bool:
    # str.isdigit is true of other scripts' digits as well, which are no JSON Pointer.
    return token.isascii() and token.isdigit() and int(token) < size


def pointer_set(value: Value, path: str, new: Value) -> Value:
    """Return `value` with `new` at `path`, changed in place except at the root.

    Raises KeyError or IndexError if there is nothing to put it into. A list is not extended.
    """
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
    """Yield every scalar, empty object and empty array with its JSON Pointer, in document order."""
    stack = [(path, value)]
    while stack:
        at, node = stack.pop()
        if isinstance(node, dict) and node:
            stack.extend((f"{at}/{escape_token(k)}", v) for k, v in reversed(node.items()))
        elif isinstance(node, list) and node:
            stack.extend((f"{at}/{i}", node[i]) for i in range(len(node) - 1, -1, -1))
        else:
            yield at, node


_NUMBERS = (int, float, Decimal)


def same(a: Value, b: Value) -> bool:
    """Return JSON equality: 1 and 1.0 are one number, True and 1 are not.

    Compares numbers by their digits, not as floats, and keys in any order. Without recursion.
    """
    # Pairs that still have to be the same; the members of two containers join them.
    stack = [(a, b)]
    while stack:
        x, y = stack.pop()
        if x is y:
            continue
        if isinstance(x, dict) and isinstance(y, dict):
            if x.keys() != y.keys():
                return False
            stack.extend((x[k], y[k]) for k in x)
        elif isinstance(x, list) and isinstance(y, list):
            if len(x) != len(y):
                return False
            stack.extend(zip(x, y, strict=True))
        elif not _same_scalar(x, y):
            return False

    return True


def _same_scalar(x: Value, y: Value) -> bool:
    # bool is an int in Python, and no number in JSON; two equal ones are one object.
    if isinstance(x, bool) or isinstance(y, bool):
        return False
    if isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
        return exact(x) == exact(y)
    return type(x) is type(y) and bool(x == y)
