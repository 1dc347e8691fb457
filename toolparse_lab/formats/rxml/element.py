"""An element as it stands in the text, and the manner in which elements are read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from ...arguments.schema.view import View

Piece: TypeAlias = tuple[int, int, str]
"""A stretch between children: start, end, and its kind."""


@dataclass(frozen=True, slots=True)
class Manner:
    """The manner in which a text is read.

    repair: close the open parts instead of refusing it. closed: the text is known to be whole, so
    that the open parts at its end may be closed too. void: elements without an inside, unless the
    schema names them. code: script and style hold text. loose: white space in `</ name>` is taken
    as it is, and sections that are not closed are refused. max_depth: levels of elements.
    """

    repair: bool = False
    closed: bool = True
    void: frozenset[str] = frozenset()
    code: bool = False
    loose: bool = False
    max_depth: int = 100


@dataclass(slots=True, eq=False)
class Element:
    """One element: `<` of its tag at `begin`, its inside [start, end), the end of its closing tag
    at `after`.

    `index` counts the elements of its name before it. `pieces` are the stretches between its
    children: (start, end, kind), kind: text, cdata, comment, instruction or doctype. `view` says
    the schema's word of its value. `raw`: its inside is text, whatever it looks like. `code`:
    because it is a script or style. `lists`: it holds the items of a list.
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
    pieces: list[Piece] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)  # name -> children of that name


def walk(root: Element) -> Iterator[Element]:
    """Yield every element but the root, parents first, in the order of the text."""
    # Reversed, so that the first child is taken first.
    stack = list(reversed(root.children))
    while stack:
        element = stack.pop()
        yield element
        if element.children:
            stack.extend(reversed(element.children))


def pieces_between_children(element: Element) -> Iterator[tuple[list[Piece], Element | None]]:
    """Yield the pieces before each child and that child; at last those after all, and None."""
    pieces = element.pieces
    at = 0
    for child in element.children:
        first = at
        while at < len(pieces) and pieces[at][0] < child.begin:
            at += 1

        yield pieces[first:at], child

    yield pieces[at:], None
