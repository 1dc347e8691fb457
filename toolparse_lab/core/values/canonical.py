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
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, TypeAlias, TypeVar

from .numbers import INT_DIGITS, BigNum, Num, digits_of, exact, number
from .numbers import plain_number as plain_number
from .numbers import real as real

# Values of any depth. How it works
# ---------------------------------
# Reading. State: `stack` holds the closer and the members of each open container, outermost first,
# `keys` the key of each open object's next member, and `value` the value that was read last.
# Invariant: `pos` is behind all that was read, where a value must begin; after the comma of an
# object its key is read at once. A value that is complete goes to the innermost container, and
# that may complete it, too: so containers are closed in a loop.
#
# Writing. State: an iterator over the rest of each open container, with the text that closes it.
# `inside` are the containers on the way from the root, by identity: one that comes again holds
# itself, and would be written for ever.
#
# Cost: linear in the text; about ten times that of the C code.

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
    stack: list[tuple[str, list[Any]]] = []
    keys: list[str] = []

    def key_end(pos: int) -> int:
        match = _KEY.match(text, pos)
        if match is None:
            raise ValueError(f"expected a key and a colon at character {pos}")
        keys.append(json.loads(match[1]))
        return match.end()

    while True:
        match = _VALUE.match(text, pos)
        if match is None:
            raise ValueError(f"expected a value at character {pos}")
        pos = match.end()
        value: Any
        if match.lastgroup == "opener":
            if len(stack) == max_depth:
                raise ValueError(f"nested deeper than {max_depth} at character {pos - 1}")
            closer = "}" if match["opener"] == "{" else "]"
            end = _CLOSED.match(text, pos)
            if end is None or end[1] != closer:
                stack.append((closer, []))
                pos = key_end(pos) if closer == "}" else pos
                continue
            pos, value = end.end(), pairs([]) if closer == "}" else []
        elif match.lastgroup == "string":
            value = json.loads(match["string"])
        elif match.lastgroup == "number":
            value = numbers(match["number"])
        else:
            value = _CONSTANTS[match["constant"]]

        while stack:
            closer, members = stack[-1]
            members.append(value if closer == "]" else (keys.pop(), value))
            match = _NEXT.match(text, pos)
            if match is None or match[1] not in (",", closer):
                raise ValueError(f"expected a comma or {closer!r} at character {pos}")
            pos = match.end()
            if match[1] == ",":
                pos = key_end(pos) if closer == "}" else pos
                break
            stack.pop()
            value = members if closer == "]" else pairs(members)
        else:
            return value, pos


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
            members = ((write_key(key) + ":", member) for key, member in node.items())
            stack.append((members, "}", id(node)))
        else:
            out.append("[")
            stack.append(((("", item) for item in node), "]", id(node)))

    return "".join(out)


def write_scalar(value: Any) -> str:
    """Return a string, number, boolean or null as JSON text."""
    if isinstance(value, str):
        return encode_basestring(value)
    if value is None:
        return "null"
    # Before int, which it is to Python.
    if isinstance(value, bool):
        return "true" if value else "false"
    # Before float and Decimal: these remember how they were written.
    if isinstance(value, (Num, BigNum)):
        return value.text
    if isinstance(value, int):
        return digits_of(value)
    # Infinity and NaN differ from themselves by NaN.
    if isinstance(value, float) and value - value == 0.0:
        return float.__repr__(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise TypeError(f"not a JSON value: {type(value).__name__}")


def write_key(key: Any) -> str:
    """Return a key as JSON text."""
    return encode_basestring(key if isinstance(key, str) else write_scalar(key))


Value: TypeAlias = Any
"""dict | list | str | bool | None | int | Num | BigNum; `Any` because JSON is recursive and mypy's
recursion costs more."""

_SURROGATE = re.compile("[\ud800-\udfff]")


def _reject_constant(name: str) -> Value:
    raise ValueError(f"{name} is not JSON")


Decoders: TypeAlias = tuple[json.JSONDecoder, json.JSONDecoder]
_Reader = TypeVar("_Reader")
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


def decoder_for(text: str, pair: tuple[_Reader, _Reader]) -> _Reader:
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
    return any(
        text[start : start + 16].isdigit() and text[start : start + stride].isdigit()
        for start in range(0, len(text), stride)
    )


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
        raise ValueError(f"something follows the value, at character {end}")
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

    return text if text.isascii() else escape_surrogates(text)


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
            continue
        # str.isdigit is true of other scripts' digits as well, which are no JSON Pointer.
        is_index = isinstance(node, list) and token.isascii() and token.isdigit()
        if not is_index or int(token) >= len(node):
            raise KeyError(path)
        node = node[int(token)]

    return node


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


def nodes(value: Value) -> Iterator[Value]:
    """Yield a value and everything in it, the last member of a container first."""
    todo = [value]
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, Mapping):
            todo.extend(node.values())
        elif isinstance(node, (list, tuple)):
            todo.extend(node)


def leaves(value: Value) -> Iterator[tuple[str, Value]]:
    """Yield every scalar, empty object and empty array with its JSON Pointer, in document order."""
    stack = [("", value)]
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
