"""Arguments of a call that Gemini streams: values with the places where they belong."""

from __future__ import annotations

import re
from io import StringIO
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.types.call_pieces import json_value
from ...core.types.call_pieces import member as get
from ...core.values import write_canonical

if TYPE_CHECKING:
    from .shapes import Assembly

Texts: TypeAlias = "list[tuple[Any, Any]]"
"""places of the texts that are being written, each a node and a step"""
# `$.a.b[0]`, and `$['a b']`.
_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[(?:'([^']*)'|"([^"]*)")\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
_SNAKE = {name: re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", name) for name in _VALUES}


def take_partial(call: Any, assembly: Assembly, index: Any) -> bool:
    """Take in a piece of a call whose arguments come value by value. False for any other call."""
    pieces = get(call, "partialArgs") or get(call, "partial_args")
    more = get(call, "willContinue") or get(call, "will_continue")
    name = get(call, "name")
    if not name and assembly.partial is None:
        return False
    if name:
        if not pieces and not more:
            return False
        end_partial(assembly)
        assembly.call(index, id=get(call, "id"), name=name)
        assembly.partial = index, {}, []
    if assembly.partial is not None:
        place, tree, texts = assembly.partial
        for piece in pieces if isinstance(pieces, (list, tuple)) else ():
            _put(tree, texts, piece)
        if not more:
            assembly.partial = None
            _join(texts)
            assembly.call(place, arguments=tree)
    return True


def end_partial(assembly: Assembly) -> None:
    """End a call of which no last piece came: its arguments stay open."""
    if assembly.partial is not None:
        (place, tree, texts), assembly.partial = assembly.partial, None
        _join(texts)
        assembly.call(place, arguments=write_canonical(json_value(tree))[:-1])


def _join(texts: Texts) -> None:
    for node, step in texts:
        if isinstance(text := node[step], StringIO):
            node[step] = text.getvalue()


def _put(tree: dict[str, Any], texts: Texts, piece: Any) -> None:
    path = get(piece, "jsonPath") or get(piece, "json_path")
    steps: list[Any] = [
        int(number) if number else key or quoted or doubly
        for key, number, quoted, doubly in _STEP.findall(path if isinstance(path, str) else "")
    ]
    found = next(
        (n for n in _VALUES if get(piece, n) is not None or get(piece, _SNAKE[n]) is not None), None
    )
    if not steps or found is None:
        return
    value = get(piece, found)
    value = get(piece, _SNAKE[found]) if value is None else value
    if found == "stringValue" and not isinstance(value, str):
        return
    node: Any = tree
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(node, list) and isinstance(step, int):
            node += [None] * (min(step, len(node)) + 1 - len(node))
            step = min(step, len(node) - 1)
        elif not isinstance(node, dict):
            return
        before = node[step] if isinstance(node, list) else node.get(step)
        if after is not None:
            empty: Any = [] if isinstance(after, int) else {}
            node[step] = node = before if isinstance(before, (dict, list)) else empty
        elif found == "stringValue" and isinstance(before, StringIO):
            before.write(value)
        elif found == "stringValue":
            node[step] = StringIO()
            node[step].write(value)
            texts.append((node, step))
        else:
            node[step] = None if found == "nullValue" else value
