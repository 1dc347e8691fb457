"""Charts as SVG: rows of bars and dots under an axis, with their figures as text beside them. They
print, can be read aloud, and need nothing from elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...evals.reports.pages.columns import points
from ...views.templating import Markup, macro

TEMPLATES = "experiments/ablation/templates"
# Chosen to be told apart by colour-blind people, and to stand out on white and on black.
BASE, RIGHT, WRONG, CHANGED = "#858585", "#009E73", "#C77700", "#A8327D"
LAYER_COLOURS = ("#0072B2", "#009E73", "#C77700")
_LEFT, _PLOT, _RIGHT = 230, 390, 270  # widths of labels, plot and values
_LINE, _TOP = 26, 26  # heights of a row and of the axis
_MOST_ROWS = 60
_LONGEST = 34  # characters of a label that has bars beside it

Parts = Sequence[tuple[int, str, str]]
"""(count, colour, words) of each part of a bar."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A coloured bar: where it begins, how wide it is, and its content when it is pointed at."""

    x: float
    width: float
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A number with its interval, in places on the picture. `solid` is filled."""

    low: float
    middle: float
    high: float
    solid: bool
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a picture: its label, the quantity drawn, and the figures beside it.

    y: filled in by `lines_of`.
    """

    label: str
    value: str = ""
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    strong: bool = False
    y: int = 0

    @property
    def short_label(self) -> str:
        """The label, cut where it would run into the plot."""
        if self.strong or len(self.label) <= _LONGEST:
            return self.label
        return self.label[: _LONGEST - 1] + "…"


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: rows under an axis, and the meaning of its colours.

    ticks: (x, words). key: (colour, words).
    """

    title: str
    words: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    key: tuple[tuple[str, str], ...] = ()
    value_place: int = _LEFT + _PLOT + 12

    @property
    def width(self) -> int:
        """The width of the picture."""
        return _LEFT + _PLOT + _RIGHT

    @property
    def plot_height(self) -> int:
        """The height without the key."""
        return _TOP + _LINE * len(self.lines)

    @property
    def height(self) -> int:
        """The height of the picture, its key included."""
        return self.plot_height + (_LINE if self.key else 0)

    @property
    def key_places(self) -> list[tuple[int, str, str]]:
        """(x, colour, words) of each entry of the key."""
        places, x = [], 0
        for colour, words in self.key:
            places.append((x, colour, words))
            x += 34 + 7 * len(words)
        return places

    @property
    def text(self) -> str:
        """The picture for who cannot see it: its sentence, and each row as a line."""
        rows = (f"{line.label}: {line.value}" if line.value else line.label for line in self.lines)
        return "\n".join([f"{self.title}. {self.words}", *rows])

    def svg(self, *, alone: bool = False) -> Markup:
        """Return the picture as a part of a page, or `alone` as a file of its own."""
        return macro(f"{TEMPLATES}/pictures.html", "chart", self, alone)

    def picture(self) -> Picture:
        """Return the view in a notebook."""
        return Picture(str(self.svg()), self.text)


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a notebook shows. svg: as part of a page. words: its figures as text."""

    svg: str
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.words, "text/html": self.svg}


def lines_of(rows: Iterable[Line]) -> tuple[Line, ...]:
    """Return rows one under the other. Anything too large for a picture counts."""
    all_rows = list(rows)
    lines = all_rows[:_MOST_ROWS]
    if len(all_rows) > len(lines):
        lines.append(Line(f"… and {len(all_rows) - len(lines)} more rows", "see the table"))
    return tuple(
        Line(row.label, row.value, row.bars, row.marks, row.strong, _TOP + _LINE * i)
        for i, row in enumerate(lines)
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from one number to another. Numbers beyond it stand at its ends."""

    low: float
    high: float

    @classmethod
    def around_zero(cls, numbers: Iterable[float]) -> Scale:
        """Return the scale of differences of shares: whole tenths, 0 among them."""
        finite = [0.0, *(x for x in numbers if x == x)]
        low, high = math.floor(10 * min(finite)), math.ceil(10 * max(finite))
        return cls(min(low, -1) / 10, max(high, 1) / 10)

    def place(self, x: float) -> float:
        """Return the place of a number on the picture."""
        share = (x - self.low) / (self.high - self.low)
        return round(_LEFT + _PLOT * min(1.0, max(0.0, share)), 1)

    def bar(self, start: float, end: float, colour: str, words: str) -> Bar:
        """Return a bar between two numbers, never too thin to be seen."""
        low, high = self.place(min(start, end)), self.place(max(start, end))
        return Bar(low, max(1.0, round(high - low, 1)), colour, words)

    def mark(self, row: Mapping[Any, Any], name: str, prefix: str, words: str) -> Mark:
        """Return a filled dot for a number of a row with the interval beside it."""
        ends = (self.place(row[f"{prefix}low"]), self.place(row[f"{prefix}high"]))
        return Mark(ends[0], self.place(row[name]), ends[1], True, words)


SHARES = Scale(0.0, 1.0)


def percent_ticks() -> tuple[tuple[float, str], ...]:
    """Return the axis from 0 to 100 %."""
    return tuple((SHARES.place(i / 4), f"{25 * i} %") for i in range(5))


def intervals(title: str, words: str, rows: Sequence[tuple[str, float, float, float]]) -> Picture:
    """Return a picture of shares or differences with their intervals.

    title, words: the quantity drawn, and in which unit. rows: (label, value, low, high).

    >>> print(intervals("A title", "In points", [("a", 0.1, -0.05, 0.25)]))
    A title. In points
    a: +10 (−5 … +25)
    """
    scale = Scale.around_zero(number for row in rows for number in row[1:])
    lines = []
    for label, value, low, high in rows:
        text = points(value)
        if low < high:
            text += f" ({points(low)} … {points(high)})"
        figures = {"value": value, "low": low, "high": high}
        bar = scale.bar(0, value, LAYER_COLOURS[0], f"{label}: {text}")
        mark = scale.mark(figures, "value", "", f"{label}: {text}")
        lines.append(Line(label, text, (bar,), (mark,)))
    ticks = tuple((scale.place(x), points(x)) for x in (scale.low, 0.0, scale.high))
    return Chart(title, words, lines_of(lines), ticks).picture()


def stacked(
    title: str,
    words: str,
    rows: Sequence[tuple[str, str, Parts]],
    key: tuple[tuple[str, str], ...] = (),
) -> Chart:
    """Return bars of counts on one scale. rows: (label, figures, parts)."""
    most = max((sum(count for count, _, _ in parts) for _, _, parts in rows), default=0) or 1
    scale, lines = Scale(0, most), []
    for label, value, parts in rows:
        bars, x = [], 0
        for count, colour, part_words in parts:
            if count:
                bars.append(scale.bar(x, x + count, colour, f"{part_words}: {count}"))
            x += count
        lines.append(Line(label, value, tuple(bars)))
    ticks = ((scale.place(0), "0"), (scale.place(most), str(most)))
    return Chart(title, words, lines_of(lines), ticks, key)
