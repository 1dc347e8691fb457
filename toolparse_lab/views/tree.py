"""The arguments of a call as flat rows, in document order: the list that every view shows as a
tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

from ..core.types import Origin, Step, ToolCall
from ..core.values import escape_token, read_plain, read_strict, write_canonical


@dataclass(frozen=True, slots=True)
class Row:
    """One value of the arguments.

    `text` is its JSON for a leaf and a summary ('3 keys') for a container.

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
        """The rules that changed the value or one around it, each once, from the outside in."""
        own = [step.rule for step in self.steps]
        return tuple(dict.fromkeys([*self.inherited, *own]))


RowsOfCalls: TypeAlias = Mapping[int, Sequence[Row]]
"""The index of a call -> the rows of its arguments."""


def read_value(text: str) -> Any:
    """Return the value of canonical JSON text.

    Numbers keep their digits as Decimal, except where the text nests beyond the strict reader.
    """
    try:
        return read_strict(text)
    except RecursionError:  # deeper than Python's own reader goes
        return read_plain(text)


def json_of(value: Any) -> str:
    """Return the canonical JSON of a value.

    A Decimal is written with its own digits.

    >>> json_of({"b": 1, "a": None}), json_of(Decimal("1.50"))
    ('{"b":1,"a":null}', '1.50')
    """
    if isinstance(value, Decimal):
        return str(value)
    return write_canonical(value)


def kind_of(value: Any) -> str:
    """Return the JSON type of a value, as a schema names it.

    A Decimal is a number.

    >>> kind_of(True), kind_of(3), kind_of(Decimal("3.0")), kind_of([])
    ('boolean', 'integer', 'number', 'array')
    """
    match value:
        # Before int, of which bool is a kind.
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
    """Return the size of a container, in words.

    >>> summary({"a": 1}), summary([1, 2])
    ('1 key', '2 items')
    """
    n = len(value)
    noun = "key" if isinstance(value, dict) else "item"
    if n == 1:
        return f"1 {noun}"
    return f"{n} {noun}s"


def steps_by_path(call: ToolCall) -> Mapping[str, tuple[Step, ...]]:
    """Return the steps of a call by their path, each path's in the order they were applied."""
    by_path: dict[str, list[Step]] = {}
    for step in call.steps:
        by_path.setdefault(step.path, []).append(step)
    return {path: tuple(steps) for path, steps in by_path.items()}


def rows_of(call: ToolCall) -> Iterator[Row]:
    """Return a row for every value of the call's arguments, each before the values inside it.

    The first row is that of the arguments as a whole, with an empty path. There are none if the
    body was not read.
    """
    if not call.arguments_json:
        return

    origins = call.origins.get()
    steps = steps_by_path(call)

    # A stack of our own, because arguments may nest deeper than Python recurses: path, key, depth,
    # value, and the rules of the values around it.
    stack: list[tuple[str, str, int, Any, tuple[str, ...]]] = [
        ("", "", 0, read_value(call.arguments_json), ()),
    ]
    while stack:
        path, key, depth, value, inherited = stack.pop()
        own = steps.get(path, ())
        # An empty container holds no rows of its own, so that it is shown as a value.
        leaf = not isinstance(value, (dict, list)) or not value
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

        if not leaf:
            # Reversed, because the last one put on the stack is the first to be taken from it.
            rules = _with_coercions(inherited, own)
            children = reversed(_children(path, value))
            stack.extend((p, k, depth + 1, child, rules) for p, k, child in children)


def _with_coercions(inherited: tuple[str, ...], own: Sequence[Step]) -> tuple[str, ...]:
    """Return the rules that the values inside a value inherit.

    inherited: the rules of the values around it. own: its own steps, of which only the coercions
    are handed on.
    """
    if not own:
        return inherited
    coercions = [step.rule for step in own if step.stage == "coerce"]
    return (*inherited, *coercions)


def _children(path: str, value: dict[str, Any] | list[Any]) -> list[tuple[str, str, Any]]:
    """Return (path, key, value) of each value directly inside a container at `path`.

    >>> _children("/x", {"a/b": 1}), _children("", [True])
    ([('/x/a~1b', 'a/b', 1)], [('/0', '0', True)])
    """
    if isinstance(value, dict):
        return [(f"{path}/{escape_token(k)}", k, v) for k, v in value.items()]
    return [(f"{path}/{i}", str(i), v) for i, v in enumerate(value)]
