"""Tables as every writer takes them: columns are declared once, and drawn for a page, Markdown, a
terminal or LaTeX.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, TypeAlias

from ....core.values.wording import NOTHING, known
from ....views.templating import Markup

Row: TypeAlias = Mapping[Any, Any]
Cell: TypeAlias = str | Markup
"""Text, or HTML that is escaped already."""
Head: TypeAlias = Sequence[tuple[str, str]]
"""(name, classes) of each column; see `Section` for the classes."""
Medium: TypeAlias = Literal["html", "md", "text", "tex"]
BAR = 20  # columns of an interval in a terminal
_EMPTY = ("", NOTHING)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: its head, the classes of its cells, and what a row shows in it.

    key: the column of the row, by default the head with underscores. form: from that value to the
    cell. text: from the whole row to the cell instead. only: the media that have the column, all
    if ''. drop: the step at which a narrow terminal leaves the column out, 0 for none.
    """

    head: str
    kind: str = ""
    key: str = ""
    form: Callable[[Any], Cell] = lambda value: f"{value:,}" if type(value) is int else str(value)
    text: Callable[[Row], Cell] | None = None
    only: str = ""
    drop: int = 0

    def cell(self, row: Row) -> Cell:
        """Return what a row shows here."""
        if self.text is not None:
            return self.text(row)
        return self.form(row[self.key or self.head.replace(" ", "_")])


@dataclass(frozen=True)
class Section:
    """A table with its title and lead, drawn for one medium.

    Classes of `head`: l is left-aligned, k names the row, w is a sentence, c is code, t is
    left-aligned in a terminal too, full takes a line of its own on a phone. `examples` has a trial
    id for each row, `under` HTML to go below it.
    """

    title: str
    lead: str  # what a reader has to know to read the table
    head: Head
    rows: Sequence[Sequence[Cell]]
    examples: Sequence[str] = ()
    under: Sequence[Cell] = ()

    @property
    def columns(self) -> list[dict[str, Any]]:
        """The name and the classes of each column, and those that a page's template asks for."""
        flags = {"left": "l", "names_row": "k", "code": "c"}
        return [
            {"name": name, "kind": kind}
            | {flag: letter in kind.split() for flag, letter in flags.items()}
            for name, kind in self.head
        ]

    @property
    def n_left(self) -> int:
        """The number of the first columns, which name the row."""
        return n_left_of(kind for _, kind in self.head)


def n_left_of(kinds: Iterable[str]) -> int:
    """Return how many of the first columns name the row. kinds: the classes of each.

    >>> n_left_of(["l k", "l k full", "", "l w"])
    2
    """
    return len(list(takewhile(lambda kind: "k" in kind.split(), kinds)))


@dataclass(frozen=True)
class Listing:
    """A table as it is declared: the columns of all media over rows of values.

    answer: what the table says, in a few words, which stand beside its title while it is folded.
    part: the title of the part of a page that it is folded into, its own by default.
    """

    title: str
    lead: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    examples: Sequence[str] = ()
    answer: str = ""
    part: str = ""

    def on(self, medium: Medium) -> list[Column]:
        """Return the columns of a medium that have a value in some row.

        A terminal has none of sentences, which leave no room for figures.
        """
        return [
            column
            for column in self.columns
            if (not column.only or medium in column.only.split())
            and not (medium == "text" and "w" in column.kind.split())
            and ("k" in column.kind.split() or any(column.cell(r) not in _EMPTY for r in self.rows))
        ]

    def drawn(self, medium: Medium) -> Section:
        """Return the table with the columns and cells of a medium."""
        columns = self.on(medium)
        head = tuple((column.head, column.kind) for column in columns)
        rows = tuple(tuple(column.cell(row) for column in columns) for row in self.rows)
        return Section(self.title, self.lead, head, rows, tuple(self.examples))


def number(form: str) -> Callable[[Any], str]:
    """Return what formats a number that is no share, '–' where it is unknown.

    >>> number(".1f")(2), number(".1f")(None)
    ('2.0', '–')
    """
    return lambda x: NOTHING if known(x) is None else format(x, form)


def interval_bar(low: float, rate: float, high: float, width: int = BAR) -> str:
    """Return an interval on a scale of 0 to 100 %: ├ and ┤ its ends, ● the rate.

    low, rate, high: shares. Blanks where the rate is unknown. width: of the drawing, in columns.

    >>> interval_bar(0.2, 0.5, 1.0, 10)
    '··├──●───┤'
    """
    if math.isnan(rate):
        return " " * width
    # A share of 1 is at the last column, not after it.
    first, middle, last = (min(width - 1, int(x * width)) for x in (low, rate, high))
    cells = ["·"] * first + ["─"] * (last + 1 - first) + ["·"] * (width - 1 - last)
    # The rate last, so that it shows where an end is at the same column.
    cells[first], cells[last] = "├", "┤"
    cells[middle] = "●"
    return "".join(cells)
