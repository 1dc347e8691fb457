"""An element as it stands in the text, and the manner in which elements are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ..schema.view import View


@dataclass(frozen=True, slots=True)
class Manner:
    """How to read. `void` names elements without an inside, unless the schema names them; `code` makes script and
    style hold text; `loose` takes white space in `</ name>` as it is and refuses sections that are not closed."""

    repair: bool = False
    closed: bool = True
    void: frozenset[str] = frozenset()
    code: bool = False
    loose: bool = False
    max_depth: int = 100


@dataclass(slots=True, eq=False)
class Element:
    """One element: `<` of its tag at `begin`, its inside [start, end), the end of its closing tag at `after`.

    `index` counts the elements of its name before it. `pieces` are the stretches between its children: (start, end,
    kind), kind: text, cdata, comment, instruction or doctype. `view` says what the schema says of its value.
    `lists`: it holds the items of a list.
    """

    name: str
    begin: int
    start: int
    end: int
    after: int
    view: View | None
    parent: Element | None
    index: int = 0
    depth: int = 0
    raw: bool = False
    code: bool = False
    lists: bool | None = None  # None until its first child is seen
    attributes: tuple[int, int] = (0, 0)
    children: list[Element] = field(default_factory=list)
    pieces: list[tuple[int, int, str]] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)


def walk(root: Element) -> Iterator[Element]:
    """Every element but the root, parents before their children, in the order of the text."""
    stack = list(reversed(root.children))
    while stack:
        element = stack.pop()
        yield element
        if element.children:
            stack.extend(reversed(element.children))
