"""Pictures of rows: bars and dots under an axis, with their figures as text next to them. Altair
draws them, as it does the charts of reports. The pictures of an ablation are such.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import pandas as pd

from ...core.errors import MissingExtra
from ...evals.reports.pages.charts import drawable, svg_of
from ...evals.reports.pages.columns import Row, percent, points, span
from ...views.templating import Markup
from .cells import JUDGED, LAYERS, START, WATERFALL, groups_of, under
from .figures import Figures, layer2_frame
from .sections import price_words
from .tools import check_names

# Chosen to be told apart by colour-blind people, and to stand out on white and on black.
BASE, RIGHT, WRONG, CHANGED = "#858585", "#009E73", "#C77700", "#A8327D"
LAYER_COLOURS = dict(zip(LAYERS, ("#0072B2", "#009E73", "#C77700"), strict=True))
_PLOT, _ROW = 390, 26  # width of the plot, height of a row
_MOST_ROWS = 60
_UNKNOWN = "not recorded"
# A file has no page around it whose colours it could take.
_OF_A_FILE = (
    "<style>svg{color:#1b1b1b;background:#fff}@media (prefers-color-scheme:dark)"
    "{svg{color:#ececec;background:#151515}}</style>"
)

Parts = Sequence[tuple[int, str, str]]
"""(count, colour, words) of each part of a bar."""


class Bar(NamedTuple):
    """A bar from one number to another. part: what it counts, which says its colour."""

    start: float
    end: float
    part: str


class Dot(NamedTuple):
    """A number with its interval. `solid` is filled."""

    low: float
    middle: float
    high: float
    solid: bool = True


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a picture: its label, the figures next to it, and what is drawn."""

    label: str
    value: str = ""
    bars: tuple[Bar, ...] = ()
    dots: tuple[Dot, ...] = ()
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Axis:
    """An axis from one number to another. Numbers beyond it are at its ends.

    label: an expression of Vega for the words of a tick.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    label: str

    @classmethod
    def of_differences(cls, numbers: Iterable[float]) -> Axis:
        """Return the axis of differences of shares: whole tenths, 0 among them."""
        finite = [0.0, *(x for x in numbers if x == x)]
        low = min(math.floor(10 * min(finite)), -1) / 10
        high = max(math.ceil(10 * max(finite)), 1) / 10
        return cls(low, high, (low, 0.0, high), "format(100*datum.value,datum.value?'+.0f':'d')")

    @classmethod
    def of_counts(cls, most: float) -> Axis:
        """Return the axis of counts up to the largest."""
        return cls(0.0, most, (0.0, most), "format(datum.value,',.0f')")


SHARES = Axis(0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), "format(100*datum.value,'.0f')+' %'")


@dataclass(frozen=True)
class Picture:
    """Rows under an axis, which show themselves in a notebook, as text where Altair is missing.

    colours: of each part of a bar; more than one have a legend.
    """

    title: str
    words: str
    lines: Sequence[Line]
    axis: Axis
    colours: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        rows = (f"{line.label}: {line.value}" if line.value else line.label for line in self.shown)
        return "\n".join([f"{self.title}. {self.words}", *rows])

    @property
    def shown(self) -> list[Line]:
        """The rows that there is room for, and how many there is none for."""
        lines = list(self.lines[:_MOST_ROWS])
        if more := len(self.lines) - len(lines):
            lines.append(Line(f"… and {more} more rows", "see the table"))
        return lines

    @property
    def svg(self) -> Markup:
        """The picture as a part of a page, '' without the extra `charts`."""
        return svg_of(self._spec(), repr(self).replace("\n", "; "))

    def file(self) -> str:
        """Return the picture as a file of its own. Raises MissingExtra."""
        drawn = str(self.svg)  # replacing in Markup would escape
        if not drawn:
            raise MissingExtra(
                "pictures are drawn by vl-convert",
                expected="the extra 'charts'",
                hint="in a checkout: pip install '.[charts]'",
            )
        svg = drawn[drawn.index("<svg") : drawn.rindex("</div>")]
        svg = svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
        return svg.replace(">", f">{_OF_A_FILE}", 1)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        html = {"text/html": str(self.svg)} if self.svg else {}
        return {"text/plain": repr(self), **html}

    def _spec(self) -> dict[str, Any]:
        # Vega-Lite. Words are data of text marks: in an axis they would be part of an expression.
        axis, rows = self.axis, list(enumerate(self.shown))
        ticks = {
            "values": axis.ticks, "labelExpr": axis.label, "orient": "top", "domain": False,
            "ticks": False,
        }  # fmt: skip
        scale = {"domain": [axis.low, axis.high], "clamp": True, "nice": False}
        colours = {"domain": list(self.colours), "range": list(self.colours.values())}
        legend = {"orient": "bottom", "labelLimit": 0, "symbolType": "square", "columnPadding": 40}

        def x(column: str, to: str = "") -> dict[str, Any]:
            place = {"field": column, "type": "quantitative", "title": None, "scale": scale}
            return {"x": {**place, "axis": ticks}, **({"x2": {"field": to}} if to else {})}

        def part(**more: Any) -> dict[str, Any]:
            return {"field": "part", "type": "nominal", "title": None, "scale": colours, **more}

        def layer(data: Iterable[Any], mark: dict[str, Any], encoding: dict[str, Any]) -> Any:
            return {"data": {"values": list(data)}, "mark": mark, "encoding": encoding}

        def words(of: Callable[[Line], str], at: int, align: str) -> Any:
            data = ({"y": y, "text": drawable(of(x)), "strong": x.strong} for y, x in rows)
            weight = {"expr": "datum.strong ? 'bold' : 'normal'"}
            mark = {"type": "text", "fontSize": 12, "align": align, "fontWeight": weight}
            return layer(data, mark, {"x": {"value": at}, "text": {"field": "text"}})

        bars = [bar._asdict() | {"y": y} for y, line in rows for bar in line.bars]
        dots = [dot._asdict() | {"y": y} for y, line in rows for dot in line.dots]
        bar = {"type": "bar", "height": 14, "strokeWidth": 1}  # seen even if it has no width
        colour = {"color": part(legend=legend if len(self.colours) > 1 else None)}
        rule = {
            "type": "rule",
            "strokeWidth": {"expr": "datum.solid ? 2 : 1"},
            "opacity": {"expr": "datum.solid ? 0.9 : 0.35"},
        }
        fill = {"expr": "datum.solid ? 'currentColor' : 'transparent'"}
        point = {"type": "point", "size": 75, "opacity": 1, "strokeWidth": 1.5, "fill": fill}
        places = {"domain": [y for y, _ in rows]}
        return {
            "width": _PLOT,
            "height": {"step": _ROW},
            "encoding": {"y": {"field": "y", "type": "ordinal", "axis": None, "scale": places}},
            "layer": [
                layer(bars, bar, x("start", "end") | colour | {"stroke": part(legend=None)}),
                words(lambda line: line.label, -12, "right"),
                words(lambda line: line.value, _PLOT + 12, "left"),
                layer(dots, rule, x("low", "high")),
                layer(dots, point | {"stroke": "currentColor"}, x("middle")),
            ],
        }


def intervals(title: str, words: str, rows: Sequence[tuple[str, float, float, float]]) -> Picture:
    """Return a picture of shares or differences with their intervals.

    title, words: the quantity drawn, and in which unit. rows: (label, value, low, high).

    >>> intervals("A title", "In points", [("a", 0.1, -0.05, 0.25)])
    A title. In points
    a: +10 (−5 … +25)
    """
    lines = []
    for label, value, low, high in rows:
        text = points(value)
        if low < high:
            text += f" ({points(low)} … {points(high)})"
        lines.append(Line(label, text, (Bar(0, value, ""),), (Dot(low, value, high),)))
    axis = Axis.of_differences(number for row in rows for number in row[1:])
    return Picture(title, words, lines, axis, {"": LAYER_COLOURS["layer 1"]})


def stacked(title: str, words: str, rows: Sequence[tuple[str, str, Parts]]) -> Picture:
    """Return bars of counts on one scale. rows: (label, figures, parts)."""
    most = max((sum(count for count, _, _ in parts) for _, _, parts in rows), default=0) or 1
    lines = []
    for label, value, parts in rows:
        ends = [0, *accumulate(count for count, _, _ in parts)]
        bars = (
            Bar(*pair, part) for pair, (n, _, part) in zip(pairwise(ends), parts, strict=True) if n
        )
        lines.append(Line(label, value, tuple(bars)))
    colours = {part: colour for _, _, parts in rows for _, colour, part in parts}
    return Picture(title, words, lines, Axis.of_counts(most), colours)


# The pictures of an ablation.


def picture_of(ablation: Figures, name: str) -> Picture:
    """Return one of `PICTURES`. Raises BadOptions for another name."""
    check_names([name], PICTURES, "an ablation has no such picture")
    return PICTURES[name](ablation)


def _lines(
    ablation: Figures, frame: pd.DataFrame, of_row: Callable[[Row], Iterable[Line]]
) -> list[Line]:
    # Of each group a line that heads it, if it has a name, and the lines of its rows.
    lines: list[Line] = []
    for names, part in groups_of(frame, ablation.by) if len(frame) else ():
        if names:
            lines.append(Line(" · ".join(map(str, names.values())), strong=True))
        for row in part.to_dict("records"):
            lines += of_row(row)
    return lines


def _layer_1(row: Row) -> str:
    return f"layer 1 {'on' if row['l1'] else 'off'}"


def _cell_line(cell: Row, label: str, *bars: Bar) -> Line:
    # Gold as a filled dot, valid as a hollow one.
    if math.isnan(cell["gold"]):
        return Line(label, _UNKNOWN)
    dots = (
        Dot(cell[f"{rung}_low"], cell[rung], cell[f"{rung}_high"], rung == "gold")
        for rung in JUDGED
    )
    interval = span(cell["gold_low"], cell["gold_high"])
    gold, valid = percent(cell["gold"]), percent(cell["valid"])
    return Line(label, f"{gold} [{interval}], valid {valid}, n = {cell['n']}", bars, tuple(dots))


def _share_line(row: Row, label: str, name: str, prefix: str, n: int) -> Line:
    if math.isnan(row[name]):
        return Line(label, "none" if n == 0 else _UNKNOWN)
    low, high = row[f"{prefix}low"], row[f"{prefix}high"]
    value = f"{percent(row[name])} [{span(low, high)}], n = {n}"
    return Line(label, value, dots=(Dot(low, row[name], high),))


def _gain_words(row: Row, name: str, prefix: str) -> str:
    return f"{points(row[name])} [{points(row[f'{prefix}low'])}, {points(row[f'{prefix}high'])}]"


def _waterfall(ablation: Figures) -> Picture:
    # Gold in S000, the gain of each layer, and S111.
    def end(row: Row, cell: str, label: str) -> Line:
        names = {name: row[name] for name in ablation.by}
        (figures,) = under(ablation.cells, {**names, "cell": cell}).to_dict("records")
        return _cell_line(figures, label, Bar(0, figures["gold"], "gold"))

    def step(row: Row) -> Iterable[Line]:
        # From the cell before it to the cell after it.
        if row["from"] == START:
            yield end(row, START, f"no layer ({START})")
        label = f"+ {row['layer']}"
        if math.isnan(row["gain"]):
            yield Line(label, _UNKNOWN)
        else:
            bar = Bar(row["rate_from"], row["rate_to"], f"gain of {row['layer']}")
            yield Line(label, f"{_gain_words(row, 'gain', 'gain_')}, n = {row['n']}", (bar,))
        if row["to"] == WATERFALL[-1]:
            yield end(row, WATERFALL[-1], f"all three ({WATERFALL[-1]})")

    gains = {f"gain of {layer}": colour for layer, colour in LAYER_COLOURS.items()}
    words = (
        "Share of answers that are gold, without any layer, with each layer added, and with all; "
        "hollow dots are valid ones"
    )
    lines = _lines(ablation, under(ablation.attribution, {"rung": "gold"}), step)
    return Picture("Waterfall", words, lines, SHARES, {"gold": BASE, **gains})


def _cells(ablation: Figures) -> Picture:
    def line(cell: Row) -> Iterable[Line]:
        present = [str(i + 1) for i, name in enumerate(("l1", "l2", "l3")) if cell[name]]
        layers = f"layer {' + '.join(present)}" if present else "no layer"
        return [_cell_line(cell, f"{cell['cell']}  {layers}")]

    words = "Gold (filled) and valid (hollow) in each of the eight cells, with intervals"
    return Picture("The eight cells", words, _lines(ablation, ablation.cells, line), SHARES)


def _layer1(ablation: Figures) -> Picture:
    def line(row: Row) -> Iterable[Line]:
        return [_share_line(row, _layer_1(row), "type_error_rate", "ci_", row["typed"])]

    words = "Share of typed parameters that are mistyped as the model wrote them"
    return Picture("Type errors", words, _lines(ablation, ablation.layer1, line), SHARES)


def _layer3(ablation: Figures) -> Picture:
    names = map(str, ablation.layer3)
    successes = [name for name in names if re.fullmatch(r"success_at_\d+", name)]
    figures = {name: f"taken, k = {name.rpartition('_')[2]}" for name in successes}

    def lines(row: Row) -> Iterable[Line]:
        place = f"{row['policy']}, {_layer_1(row)}"
        for name, what in {**figures, "gold_rate": "gold"}.items():
            yield _share_line(row, f"{place}: {what}", name, f"{name}_", row["entered"])

    words = "Refused calls that the tool took after at most k corrections, and that are gold then"
    return Picture("Corrections", words, _lines(ablation, ablation.layer3, lines), SHARES)


Gap = tuple[str, str, str, str, str]
"""Label, column, prefix of its interval, part that its bar is of or '', and further words."""


def _differences(
    ablation: Figures, frame: pd.DataFrame, title: str, words: str, gaps: Callable[[Row], list[Gap]]
) -> Picture:
    frame = under(frame, {"rung": "gold"})

    def lines(row: Row) -> Iterable[Line]:
        for label, column, prefix, part, more in gaps(row):
            if math.isnan(row[column]):
                yield Line(label, _UNKNOWN)
                continue
            value = _gain_words(row, column, prefix) + more
            bars = (Bar(0, row[column], part),) if part else ()
            dot = Dot(row[f"{prefix}low"], row[column], row[f"{prefix}high"])
            yield Line(label, value, bars, (dot,))

    drawn = _lines(ablation, frame, lines)
    axis = Axis.of_differences(x for line in drawn for d in line.dots for x in (d.low, d.high))
    return Picture(title, words, drawn, axis, LAYER_COLOURS)


def _tests(ablation: Figures) -> Picture:
    def gap(row: Row) -> list[Gap]:
        p = "" if math.isnan(row["p_holm"]) else f", p = {row['p_holm']:.3f}"
        return [(str(row["contrast"]), "difference", "ci_", "", f", n = {row['n']}{p}")]

    words = "Points of gold between two cells on the same answers, with intervals; p is adjusted"
    return _differences(ablation, ablation.tests, "Differences between cells", words, gap)


def _attribution(ablation: Figures) -> Picture:
    def gaps(row: Row) -> list[Gap]:
        layer = row["layer"]
        n, n_shapley = f", n = {row['n']}", f", n = {row['n_shapley']}"
        return [
            (f"{layer}: gain", "gain", "gain_", layer, n),
            (f"{layer}: Shapley", "shapley", "shapley_", layer, n_shapley),
        ]

    words = "Points of gold: the gain in the order 1, 2, 3, and the mean gain over all six orders"
    return _differences(ablation, ablation.attribution, "What each layer adds", words, gaps)


def _layer2(ablation: Figures) -> Picture:
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
    words = "Invalid calls that a policy made valid: true rescues, and false ones with their rate"
    return stacked("Rescues of layer 2", words, rows)


def _rules(ablation: Figures) -> Picture:
    rows = []
    for row in ablation.rules.to_dict("records"):
        parts = [(row["right"], RIGHT, "the wanted value"), (row["wrong"], WRONG, "another value")]
        label = f"{row['policy']}: {str(row['rule']).removeprefix('coerce.')}"
        share = f"{percent(row['right_share'])} [{span(row['ci_low'], row['ci_high'])}]"
        rows.append((label, f"right {share}, n = {row['applied']}", parts))
    return stacked("Rules of layer 2", "Values that each rule changed", rows)


def _costs(ablation: Figures) -> Picture:
    # Tokens that each cell spends beyond S000 for one true rescue.
    frame = ablation.costs

    def line(row: Row) -> Iterable[Line]:
        cell, tokens = row["cell"], row["tokens_per_rescue"]
        if not row["n"]:
            yield Line(cell, _UNKNOWN)
        elif math.isnan(tokens):
            yield Line(cell, f"no true rescue, n = {row['n']}")
        else:
            price = price_words(row, "tokens_per_rescue", "{:,.0f}".format)
            value = f"{price} × {row['true_rescues']:.0f}, n = {row['n']}"
            yield Line(cell, value, (Bar(0, tokens, "tokens"),))

    most = frame["tokens_per_rescue"].max() if len(frame) else 0
    words = "Tokens beyond those of S000 for each answer that is gold and was not there"
    lines = _lines(ablation, frame[frame["cell"] != START], line)
    axis = Axis.of_counts(most if most > 0 else 1)
    return Picture("Cost of a true rescue", words, lines, axis, {"tokens": BASE})


PICTURES: Mapping[str, Callable[[Figures], Picture]] = {
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
