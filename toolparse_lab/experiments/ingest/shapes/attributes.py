"""Attributes of spans and records as one tree, however an exporter wrote them."""

# How it works. The same attribute comes as a dotted key (`llm.output_messages.0.message.role`), as
# objects in objects, as OTLP's list of keys with typed values, as columns with a prefix, or as the
# JSON text of any of these. `attributes_of` makes objects of the dots and leaves alone what stands
# under a key of `_LEAVES`: there the words of users and the names of their parameters begin, and a
# dot in those means nothing.

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..columns import json_or_text

_LEAVES = frozenset((
    "arguments", "content", "definitions", "invocation_parameters", "json_schema", "messages",
    "metadata", "parameters", "system_instructions", "text", "value", "variables",
))  # fmt: skip
_PREFIX = "attributes."
_ROOTS = (
    "gen_ai.", "llm.", "openinference.", "input.", "output.", "session.", "error.", "ai.",
    "model_request_parameters",
)  # fmt: skip
_DEEPEST = 40


def attributes_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a span or record as nested dicts, {} if it has none."""
    pairs: list[tuple[str, Any]] = []
    for name, value in row.items():
        if name == "attributes":
            pairs += _pairs(value_of(value))
        elif name.startswith(_PREFIX):
            pairs.append((name[len(_PREFIX) :], value))
        elif name.startswith(_ROOTS):
            pairs.append((name, value))
    return _tree(pairs, 0)


def value_of(x: Any) -> Any:
    """Return the object or list that a text is the JSON of, anything else as it is."""
    return json_or_text(x) if isinstance(x, str) and x.lstrip()[:1] in ("{", "[") else x


def at(x: Any, *path: str | int) -> Any:
    """Return the member at a path, None if there is none. JSON texts on the way are read.

    >>> at({"a": '[{"b": 1}]'}, "a", 0, "b")
    1
    """
    for step in path:
        if isinstance(x, str):
            x = value_of(x)
        # Most are dicts, and asking an abstract class takes ten times as long.
        if isinstance(x, (dict, Mapping)):
            found = x.get(step)
            x = x.get(str(step)) if found is None and isinstance(step, int) else found
        elif isinstance(x, (list, tuple)) and isinstance(step, int) and -len(x) <= step < len(x):
            x = x[step]
        else:
            return None
    return x


def pick(x: Any, *paths: str) -> Any:
    """Return the first member of these dotted paths that is there and not an empty text.

    >>> pick({"a": {"b": ""}, "c": 1}, "a.b", "c")
    1
    """
    for path in paths:
        value = at(x, *path.split(".")) if "." in path else at(x, path)
        if value is not None and value != "":
            return value
    return None


def mapping_of(x: Any) -> Mapping[str, Any]:
    """Return an object, or the one that a text is the JSON of, {} for anything else."""
    x = value_of(x)
    return x if isinstance(x, Mapping) else {}


def items_of(x: Any) -> list[Any]:
    """Return the items of a list, of an object whose keys are its numbers, or of the JSON of one.

    >>> items_of({"1": "b", "0": "a"}), items_of(None)
    (['a', 'b'], [])
    """
    x = value_of(x)
    if isinstance(x, Mapping) and all(str(key).isdecimal() for key in x):
        return [x[key] for key in sorted(x, key=int)]
    return list(x) if isinstance(x, (list, tuple)) else []


def _pairs(attributes: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(attributes, Mapping):
        return [(str(name), value) for name, value in attributes.items()]
    return [
        (item["key"], _typed(item.get("value"), 0))
        for item in items_of(attributes)
        if isinstance(item, Mapping) and isinstance(item.get("key"), str)
    ]


def _typed(value: Any, depth: int) -> Any:
    # OTLP: {"stringValue": …}, {"intValue": "5"}, {"arrayValue": {"values": […]}}, …
    if not isinstance(value, Mapping) or len(value) != 1 or depth > _DEEPEST:
        return value
    ((kind, inner),) = value.items()
    if kind == "intValue":
        return int(inner) if isinstance(inner, str) and inner.lstrip("-").isdecimal() else inner
    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue"):
        return inner
    values = [] if inner == {} else at(inner, "values")
    if isinstance(values, list) and kind == "arrayValue":
        return [_typed(one, depth + 1) for one in values]
    if isinstance(values, list) and kind == "kvlistValue" and all(at(x, "key") for x in values):
        return {str(one["key"]): _typed(one.get("value"), depth + 1) for one in values}
    return value


def _tree(pairs: Iterable[tuple[str, Any]], depth: int) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for name, value in pairs:
        *steps, last = name.split(".")
        if last not in _LEAVES and depth < _DEEPEST:
            value = _expanded(value, depth + 1)
        node = root
        for step in steps:
            inner = node.get(step)
            if isinstance(inner, list):
                inner = {str(i): item for i, item in enumerate(inner)}
            elif not isinstance(inner, dict):
                inner = {}
            node[step] = node = inner
        before = node.get(last)
        if isinstance(before, dict) and isinstance(value, dict):
            before.update(value)
        elif not isinstance(before, dict) or not before:
            node[last] = value
    return root


def _expanded(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        return _tree(((str(name), inner) for name, inner in value.items()), depth)
    if isinstance(value, list) and depth < _DEEPEST:
        return [_expanded(item, depth + 1) for item in value]
    return value
