"""Charts as SVG: rows of bars and dots under an axis, with their figures as text next to them. They
print, can be read aloud, and need nothing from elsewhere. The pictures of an ablation are such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import pandas as pd

from ...evals.reports.pages.columns import percent, points, span
from ...views.templating import Markup, macro
from .cells import JUDGED, LAYERS, START, WATERFALL, groups_of, under
from .figures import Figures, layer2_frame
from .sections import price_words
from .tools import check_names

TEMPLATES = "experiments/ablation/templates"
# Chosen to be told apart by colour-blind people, and to stand out on white and on black.
BASE, RIGHT, WRONG, CHANGED = "#858585", "#009E73", "#C77700", "#A8327D"
LAYER_COLOURS = ("#0072B2", "#009E73", "#C77700")
_LEFT, _PLOT, _RIGHT = 230, 390, 270  # widths of labels, plot and values
_LINE, _TOP = 26, 26  # heights of a row and of the axis
_MOST_ROWS = 60
_LONGEST = 34  # characters of a label that has bars next to it
_UNKNOWN = "not recorded"

Parts = Sequence[tuple[int, str, str]]
"""(count, colour, words) of each part of a bar."""
Row: TypeAlias = Mapping[Any, Any]


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
    """A row of a picture: its label, the quantity drawn, and the figures next to it.

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
    width: int = _LEFT + _PLOT + _RIGHT

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
    return tuple(replace(row, y=_TOP + _LINE * i) for i, row in enumerate(lines))


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis from one number to another. Numbers beyond it are at its ends."""

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

    def mark(self, low: float, middle: float, high: float, words: str, *, solid: bool) -> Mark:
        """Return a dot for a number, with its interval."""
        return Mark(self.place(low), self.place(middle), self.place(high), solid, words)

    def ticks(self) -> tuple[tuple[float, str], ...]:
        """Return an axis of differences: its ends and 0."""
        return tuple((self.place(x), points(x)) for x in (self.low, 0.0, self.high))


SHARES = Scale(0.0, 1.0)
_PERCENT = tuple((SHARES.place(i / 4), f"{25 * i} %") for i in range(5))


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
        bar = scale.bar(0, value, LAYER_COLOURS[0], f"{label}: {text}")
        mark = scale.mark(low, value, high, f"{label}: {text}", solid=True)
        lines.append(Line(label, text, (bar,), (mark,)))
    return Chart(title, words, lines_of(lines), scale.ticks()).picture()


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


# The pictures of an ablation.


def chart(ablation: Figures, name: str) -> Chart:
    """Return one of `PICTURES`. Raises BadOptions for another name."""
    check_names([name], PICTURES, "an ablation has no such picture")
    return PICTURES[name](ablation)


def _lines(
    ablation: Figures, frame: pd.DataFrame, of_row: Callable[[Row], Iterable[Line]]
) -> tuple[Line, ...]:
    # Of each group a line that heads it, if it has a name, and the lines of its rows.
    lines: list[Line] = []
    for names, part in groups_of(frame, ablation.by) if len(frame) else ():
        if names:
            lines.append(Line(" · ".join(map(str, names.values())), strong=True))
        for row in part.to_dict("records"):
            lines += of_row(row)
    return lines_of(lines)


def _layer_1(row: Row) -> str:
    return f"layer 1 {'on' if row['l1'] else 'off'}"


def _cell_line(cell: Row, label: str, *, bar: bool = False) -> Line:
    # Gold as a filled dot, and as a bar on demand; valid as a hollow one.
    if math.isnan(cell["gold"]):
        return Line(label, _UNKNOWN)
    ends = {rung: (cell[f"{rung}_low"], cell[f"{rung}_high"]) for rung in JUDGED}
    marks = []
    for rung, (low, high) in ends.items():
        words = f"{rung} {percent(cell[rung])}, interval {span(low, high)} %"
        marks.append(SHARES.mark(low, cell[rung], high, words, solid=rung == "gold"))
    gold, valid = percent(cell["gold"]), percent(cell["valid"])
    value = f"{gold} [{span(*ends['gold'])}], valid {valid}, n = {cell['n']}"
    bars = (SHARES.bar(0, cell["gold"], BASE, f"{label}: {gold}"),) if bar else ()
    return Line(label, value, bars, tuple(marks))


def _share_line(row: Row, label: str, name: str, prefix: str, n: int) -> Line:
    if math.isnan(row[name]):
        return Line(label, "none" if n == 0 else _UNKNOWN)
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    value = f"{percent(row[name])} [{span(low, high)}], n = {n}"
    mark = SHARES.mark(low, row[name], high, f"{label}: {value}", solid=True)
    return Line(label, value, marks=(mark,))


def _gain_words(row: Row, name: str, prefix: str) -> str:
    return f"{points(row[name])} [{points(row[f'{prefix}low'])}, {points(row[f'{prefix}high'])}]"


def _waterfall(ablation: Figures) -> Chart:
    # Gold in S000, the gain of each layer, and S111.
    def end(row: Row, cell: str, label: str) -> Line:
        names = {name: row[name] for name in ablation.by}
        (figures,) = under(ablation.cells, {**names, "cell": cell}).to_dict("records")
        return _cell_line(figures, label, bar=True)

    def step(row: Row) -> Iterable[Line]:
        # From the cell before it to the cell after it.
        if row["from"] == START:
            yield end(row, START, f"no layer ({START})")
        label = f"+ {row['layer']}"
        if math.isnan(row["gain"]):
            yield Line(label, _UNKNOWN)
        else:
            words = _gain_words(row, "gain", "gain_")
            colour = LAYER_COLOURS[LAYERS.index(row["layer"])]
            bar = SHARES.bar(row["rate_from"], row["rate_to"], colour, f"{label}: {words}")
            yield Line(label, f"{words}, n = {row['n']}", (bar,))
        if row["to"] == WATERFALL[-1]:
            yield end(row, WATERFALL[-1], f"all three ({WATERFALL[-1]})")

    lines = _lines(ablation, under(ablation.attribution, {"rung": "gold"}), step)
    gains = ((LAYER_COLOURS[i], f"gain of {layer}") for i, layer in enumerate(LAYERS))
    words = (
        "Share of answers that are gold, without any layer, with each layer added, and with all; "
        "hollow dots are valid ones"
    )
    return Chart("Waterfall", words, lines, _PERCENT, ((BASE, "gold"), *gains))


def _cells(ablation: Figures) -> Chart:
    def line(cell: Row) -> Iterable[Line]:
        present = [str(i + 1) for i, name in enumerate(("l1", "l2", "l3")) if cell[name]]
        layers = f"layer {' + '.join(present)}" if present else "no layer"
        return [_cell_line(cell, f"{cell['cell']}  {layers}")]

    words = "Gold (filled) and valid (hollow) in each of the eight cells, with intervals"
    return Chart("The eight cells", words, _lines(ablation, ablation.cells, line), _PERCENT)


def _layer1(ablation: Figures) -> Chart:
    def line(row: Row) -> Iterable[Line]:
        return [_share_line(row, _layer_1(row), "type_error_rate", "ci_", row["typed"])]

    words = "Share of typed parameters that are mistyped as the model wrote them"
    return Chart("Type errors", words, _lines(ablation, ablation.layer1, line), _PERCENT)


def _layer3(ablation: Figures) -> Chart:
    columns = [str(name) for name in ablation.layer3]
    figures = {name: f"taken, k = {name.rpartition('_')[2]}" for name in columns
               if re.fullmatch(r"success_at_\d+", name)}  # fmt: skip

    def lines(row: Row) -> Iterable[Line]:
        place = f"{row['policy']}, {_layer_1(row)}"
        for name, what in {**figures, "gold_rate": "gold"}.items():
            yield _share_line(row, f"{place}: {what}", name, f"{name}_", row["entered"])

    words = "Refused calls that the tool took after at most k corrections, and that are gold then"
    return Chart("Corrections", words, _lines(ablation, ablation.layer3, lines), _PERCENT)


Gap: TypeAlias = tuple[str, str, str, str, str]
"""Label, column, prefix of its interval, colour of a bar or '', and further words."""


def _differences(
    ablation: Figures, frame: pd.DataFrame, title: str, words: str, gaps: Callable[[Row], list[Gap]]
) -> Chart:
    frame = under(frame, {"rung": "gold"})
    scale = Scale.around_zero(
        row[f"{prefix}{end}"]
        for row in frame.to_dict("records")
        for _, _, prefix, _, _ in gaps(row)
        for end in ("low", "high")
    )

    def lines(row: Row) -> Iterable[Line]:
        for label, column, prefix, colour, more in gaps(row):
            if math.isnan(row[column]):
                yield Line(label, _UNKNOWN)
                continue
            value = _gain_words(row, column, prefix) + more
            said = f"{label}: {value}"
            bars = (scale.bar(0, row[column], colour, said),) if colour else ()
            low, high = row[f"{prefix}low"], row[f"{prefix}high"]
            yield Line(label, value, bars, (scale.mark(low, row[column], high, said, solid=True),))

    return Chart(title, words, _lines(ablation, frame, lines), scale.ticks())


def _tests(ablation: Figures) -> Chart:
    def gap(row: Row) -> list[Gap]:
        p = "" if math.isnan(row["p_holm"]) else f", p = {row['p_holm']:.3f}"
        return [(str(row["contrast"]), "difference", "ci_", "", f", n = {row['n']}{p}")]

    words = "Points of gold between two cells on the same answers, with intervals; p is adjusted"
    return _differences(ablation, ablation.tests, "Differences between cells", words, gap)


def _attribution(ablation: Figures) -> Chart:
    def gaps(row: Row) -> list[Gap]:
        layer, colour = row["layer"], LAYER_COLOURS[LAYERS.index(row["layer"])]
        n, n_shapley = f", n = {row['n']}", f", n = {row['n_shapley']}"
        return [
            (f"{layer}: gain", "gain", "gain_", colour, n),
            (f"{layer}: Shapley", "shapley", "shapley_", colour, n_shapley),
        ]

    words = "Points of gold: the gain in the order 1, 2, 3, and the mean gain over all six orders"
    return _differences(ablation, ablation.attribution, "What each layer adds", words, gaps)


def _layer2(ablation: Figures) -> Chart:
    rows = []
    for row in layer2_frame(ablation, ()).to_dict("records"):
        parts = [
            (row["true_rescues"], RIGHT, "true rescues"),
            (row["faithful"], WRONG, "faithful to a wrong value"),
            (row["changed_meaning"], CHANGED, "meaning changed"),
        ]
        n = row["true_rescues"] + row["false_rescues"]
        interval = span(row["false_rescue_low"], row["false_rescue_high"])
        false = f"false {percent(row['false_rescue'])} [{interval}], n = {n}" if n else "no rescue"
        rows.append((f"{row['policy']}, {_layer_1(row)}", false, parts))
    key = (
        (RIGHT, "true rescue"),
        (WRONG, "faithful to a wrong value"),
        (CHANGED, "meaning changed"),
    )
    words = "Invalid calls that a policy made valid: true rescues, and false ones with their rate"
    return stacked("Rescues of layer 2", words, rows, key)


def _rules(ablation: Figures) -> Chart:
    rows = []
    for row in ablation.rules.to_dict("records"):
        parts = [(row["right"], RIGHT, "right"), (row["wrong"], WRONG, "wrong")]
        label = f"{row['policy']}: {str(row['rule']).removeprefix('coerce.')}"
        share = f"{percent(row['right_share'])} [{span(row['ci_low'], row['ci_high'])}]"
        rows.append((label, f"right {share}, n = {row['applied']}", parts))
    key = ((RIGHT, "the wanted value"), (WRONG, "another value"))
    return stacked("Rules of layer 2", "Values that each rule changed", rows, key)


def _costs(ablation: Figures) -> Chart:
    # Tokens that each cell spends beyond S000 for one true rescue.
    frame = ablation.costs
    most = frame["tokens_per_rescue"].max() if len(frame) else 0
    scale = Scale(0, most if most > 0 else 1)

    def line(row: Row) -> Iterable[Line]:
        cell, tokens = row["cell"], row["tokens_per_rescue"]
        if not row["n"]:
            yield Line(cell, _UNKNOWN)
        elif math.isnan(tokens):
            yield Line(cell, f"no true rescue, n = {row['n']}")
        else:
            price = price_words(row, "tokens_per_rescue", "{:,.0f}".format)
            value = f"{price} × {row['true_rescues']:.0f}, n = {row['n']}"
            yield Line(cell, value, (scale.bar(0, tokens, BASE, f"{cell}: {value}"),))

    ticks = tuple((scale.place(x), f"{x:,.0f}") for x in (0, scale.high))
    words = "Tokens beyond those of S000 for each answer that is gold and was not there"
    lines = _lines(ablation, frame[frame["cell"] != START], line)
    return Chart("Cost of a true rescue", words, lines, ticks)


PICTURES: Mapping[str, Callable[[Figures], Chart]] = {
    "waterfall": _waterfall,
    "cells": _cells,
    "attribution": _attribution,
    "tests": _tests,
    "layer1": _layer1,
    "layer2": _layer2,
    "rules": _rules,
    "layer3": _layer3,
    "costs": _costs,
}
"""The pictures of an ablation, by name."""
