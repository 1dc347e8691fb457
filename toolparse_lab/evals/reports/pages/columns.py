"""Tables as every writer takes them: columns are declared once, and drawn for a page, Markdown, a
terminal or LaTeX; and the words for numbers in their cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Literal, TypeAlias

import pandas as pd

from ....views.templating import Markup

Row: TypeAlias = Mapping[Any, Any]
Cell: TypeAlias = str | Markup
"""Text, or HTML that is escaped already."""
Head: TypeAlias = Sequence[tuple[str, str]]
"""(name, classes) of each column; see `Section` for the classes."""
Medium: TypeAlias = Literal["html", "md", "text", "tex"]
BAR = 20  # columns of an interval in a terminal


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
    form: Callable[[Any], Cell] = str
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
    """A table as it is declared: the columns of all media over rows of values."""

    title: str
    lead: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    examples: Sequence[str] = ()

    def on(self, medium: Medium) -> list[Column]:
        """Return the columns of a medium.

        A terminal has none of sentences, which leave no room for figures.
        """
        return [
            column
            for column in self.columns
            if (not column.only or medium in column.only.split())
            and not (medium == "text" and "w" in column.kind.split())
        ]

    def drawn(self, medium: Medium) -> Section:
        """Return the table with the columns and cells of a medium."""
        columns = self.on(medium)
        head = tuple((column.head, column.kind) for column in columns)
        rows = tuple(tuple(column.cell(row) for column in columns) for row in self.rows)
        return Section(self.title, self.lead, head, rows, tuple(self.examples))


def percent(x: Any) -> str:
    """Return a share as a percentage, '–' where it is unknown.

    Nothing but a whole is shown as 100, and nothing but nothing as 0.

    >>> percent(0.5), percent(0.999), percent(0.001), percent(None)
    ('50 %', '99 %', '<1 %', '–')
    """
    if x is None or pd.isna(x):
        return "–"
    text = f"{100 * x:.0f}"
    if text == "100" and x < 1:
        text = "99"
    elif text == "0" and x > 0:
        text = "<1"
    return f"{text} %"


def span(low: Any, high: Any) -> str:
    """Return an interval of shares in percent, '' where it is unknown.

    >>> span(0.25, 0.5)
    '25–50'
    """
    return "" if pd.isna(low) else f"{100 * low:.0f}–{100 * high:.0f}"


def points(x: Any) -> str:
    """Return a difference of shares in points, with its sign. '–' where it is unknown.

    >>> points(0.25), points(-0.25), points(-0.001)
    ('+25', '−25', '0')
    """
    if pd.isna(x):
        return "–"
    text = f"{100 * x:+.0f}".replace("-", "−")
    # A difference that rounds to nothing has no sign.
    return text.replace("+0", "0").replace("−0", "0")


def money(x: Any) -> str:
    """Return US dollars with as many digits as the sum needs, '–' where it is unknown."""
    if pd.isna(x):
        return "–"
    if x == 0:
        return "0"
    if x < 0.01:
        return f"{x:.2g}"
    return f"{x:.4f}" if x < 1 else f"{x:,.2f}"


def number(form: str) -> Callable[[Any], str]:
    """Return what formats a number, '–' where it is unknown.

    >>> number(".1f")(2), number(".1f")(None)
    ('2.0', '–')
    """
    return lambda x: "–" if pd.isna(x) else format(x, form)


def p_value(p: Any) -> str:
    """Return a p value, '–' where it is unknown.

    >>> p_value(0.04), p_value(0.00001), p_value(1)
    ('0.040', '<0.001', '1.000')
    """
    if p is None or pd.isna(p):
        return "–"
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def level_words(level: float) -> str:
    """Return the level of an interval in words.

    >>> level_words(0.95)
    '95 %'
    """
    return f"{level:.0%}".replace("%", " %")


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
