"""The relaxed dialect: JSON with comments, trailing commas, single quotes and bare words, read by
fixed rules.

Unlike `repair` it guesses nothing and repairs nothing: a construct that the dialect does not have
is a typed error with its position. A bare word is a string, so ``True`` is the text "True" here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ...core.errors import BadOptions
from ...core.values import read_plain, write_canonical
from .relaxed_reader import RelaxedReader
from .strict import read_unique
from .tokens import RELAXED, lexemes, token_of

_DEFAULT_DEPTH = 1000
_BUT_WHITE_SPACE = re.compile(r"[^\t\n\r ]")
_BUT_LINE_FEEDS = re.compile(r"[^\n]")

Reviver = Callable[[str, Any], Any]
_NOT_STRICT = object()


def parse(
    text: str,
    *,
    relaxed: bool = True,
    tolerant: bool = False,
    warnings: bool = False,
    duplicate: bool = False,
    reviver: Reviver | None = None,
    max_depth: int = _DEFAULT_DEPTH,
) -> Any:
    """Return the value of relaxed JSON text.

    relaxed=False reads strict JSON only.

    Args:
        duplicate: a key may stand twice, and the last one wins. tolerant (and warnings, which means
            the same): reads on behind errors, then raises one RJSONParseError with `.warnings`,
            `.line` of the first and `.obj`, what could be read. reviver(key, value) replaces each
            value, innermost first.

    Raises RJSONParseError with `.line`, `.column` and `.position`.

    >>> parse("{a: 1, b: 'it\\\\'s', /* c */ d: [x, 007,],}")
    {'a': 1, 'b': "it's", 'd': ['x', '007']}
    """
    if not isinstance(text, str):
        raise BadOptions("relaxed JSON is text", got=type(text).__name__, expected="str")

    value = _read_if_strict(text, duplicate=duplicate, max_depth=max_depth)
    if value is _NOT_STRICT:
        value = RelaxedReader(
            text,
            relaxed=relaxed,
            tolerant=tolerant or warnings,
            duplicate=duplicate,
            max_depth=max_depth,
        ).read()

    return value if reviver is None else _revive(value, reviver)


def _read_if_strict(text: str, *, duplicate: bool, max_depth: int) -> Any:
    """Return the value of strict JSON by the C-backed reader, or `_NOT_STRICT` if it is none."""
    if text.count("[") + text.count("{") > max_depth:
        return _NOT_STRICT  # it may nest too deep; the slow reader counts
    try:
        if not duplicate:
            read_unique(text)
        return read_plain(text)
    except ValueError:
        return _NOT_STRICT


def transform(text: str) -> str:
    """Return relaxed JSON as strict JSON, of the same length if possible.

    Comments and trailing commas become white space, other quotes double ones. Raises
    RJSONParseError for a character that begins no token.

    >>> transform("{a: 1, /* x */}")
    '{"a": 1           }'
    """
    out: list[str] = []
    comma = -1  # where in `out` the last comma is, while only white space followed it
    is_opened = True  # nothing stood between the last opener and that comma

    for start, kind, raw in lexemes(text, RELAXED):
        if kind == "space":
            out.append(_BUT_WHITE_SPACE.sub(" ", raw))
            continue
        if kind == "comment":
            out.append(_BUT_LINE_FEEDS.sub(" ", raw))
            continue

        if raw in ("]", "}") and comma >= 0 and not is_opened:
            out[comma] = " "
        if raw == ",":
            comma = len(out)
        else:
            comma = -1
            is_opened = raw in ("[", "{")

        out.append(token_of(text, start, kind, raw).text)

    return "".join(out)


def stringify(value: object) -> str:
    """Return a value as strict JSON text with sorted keys, compact.

    Raises BadOptions for values that JSON cannot carry.

    >>> stringify({"b": [1, 2.5], "a": None})
    '{"a":null,"b":[1,2.5]}'
    """
    try:
        return write_canonical(_sorted(value))
    except (TypeError, ValueError) as error:
        raise BadOptions("this is no JSON value", got=str(error)) from None


def _sorted(value: Any) -> Any:
    """Return a copy with the keys of every object in order. Without recursion."""
    # The copy hangs in a list of its own, so that the value itself is replaced like any other.
    root: list[Any] = [value]
    stack: list[tuple[Any, Any]] = [(root, 0)]
    while stack:
        box, key = stack.pop()
        node = box[key]
        if isinstance(node, dict):
            node = box[key] = {str(k): node[k] for k in sorted(node, key=str)}
            stack.extend((node, k) for k in node)
        elif isinstance(node, (list, tuple)):
            node = box[key] = list(node)
            stack.extend((node, i) for i in range(len(node)))

    return root[0]


def _revive(value: Any, reviver: Reviver) -> Any:
    """Return every value through the reviver, innermost first, the whole last, under the key ''.
    Without recursion.
    """
    # Parents come before what they hold in `order`; gone through backwards, they come after it.
    root: dict[str, Any] = {"": value}
    order: list[tuple[Any, Any]] = []
    stack: list[tuple[Any, Any]] = [(root, "")]

    while stack:
        box, key = stack.pop()
        order.append((box, key))
        node = box[key]
        if isinstance(node, dict):
            stack.extend((node, k) for k in reversed(node))
        elif isinstance(node, list):
            stack.extend((node, i) for i in range(len(node) - 1, -1, -1))

    for box, key in reversed(order):
        box[key] = reviver(str(key), box[key])

    return root[""]
