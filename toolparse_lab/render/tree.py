"""The arguments of a call as flat rows, in document order: what every view shows as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ..types import Origin, Step, ToolCall
from ..values import escape_token, read_plain, read_strict, write_canonical


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the arguments. `text` is its JSON for a leaf and a summary ('3 keys') for a container.

    `steps` are the coercions at the value itself, `inherited` the rules of the values around it.
    """

    path: str
    key: str
    depth: int
    kind: str
    text: str
    leaf: bool
    origin: Origin | None
    steps: tuple[Step, ...]
    inherited: tuple[str, ...]

    @property
    def rules(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.inherited, *(s.rule for s in self.steps))))


def read_value(text: str) -> Any:
    """Canonical JSON text to a value that keeps number lexemes, except where it nests beyond the strict reader."""
    try:
        return read_strict(text)
    except RecursionError:
        return read_plain(text)


def json_of(value: Any) -> str:
    """Canonical JSON of a value; a Decimal is written with its own digits."""
    return str(value) if isinstance(value, Decimal) else write_canonical(value)


def kind_of(value: Any) -> str:
    match value:
        case bool():
            return "boolean"
        case None:
            return "null"
        case str():
            return "string"
        case int():
            return "integer"
        case dict():
            return "object"
        case list():
            return "array"
    return "number"


def summary(value: Any) -> str:
    n = len(value)
    noun = "key" if isinstance(value, dict) else "item"
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def steps_by_path(call: ToolCall) -> Mapping[str, tuple[Step, ...]]:
    found: dict[str, list[Step]] = {}
    for step in call.steps:
        found.setdefault(step.path, []).append(step)
    return {path: tuple(steps) for path, steps in found.items()}


def rows_of(call: ToolCall) -> Iterator[Row]:
    """Every value of the call's arguments with its origin and coercions; nothing where the body was not read."""
    if not call.arguments_json:
        return
    origins = call.origins.get()
    steps = steps_by_path(call)
    stack: list[tuple[str, str, int, Any, tuple[str, ...]]] = [
        ("", "", 0, read_value(call.arguments_json), ()),
    ]
    while stack:
        path, key, depth, value, inherited = stack.pop()
        own = steps.get(path, ())
        leaf = not (isinstance(value, (dict, list)) and value)
        yield Row(
            path=path,
            key=key,
            depth=depth,
            kind=kind_of(value),
            text=json_of(value) if leaf else summary(value),
            leaf=leaf,
            origin=origins.get(path),
            steps=own,
            inherited=inherited,
        )
        if leaf:
            continue
        below = (*inherited, *(s.rule for s in own if s.stage == "coerce")) if own else inherited
        if isinstance(value, dict):
            children = [(f"{path}/{escape_token(k)}", k, v) for k, v in value.items()]
        else:
            children = [(f"{path}/{i}", str(i), v) for i, v in enumerate(value)]
        stack.extend((p, k, depth + 1, v, below) for p, k, v in reversed(children))
