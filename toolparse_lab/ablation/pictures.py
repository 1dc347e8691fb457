"""Pictures of an ablation as SVG: the waterfall, the cells, rescues and rules. They print, can be
read aloud, and need nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from ..errors import BadOptions, near
from ..evals.reports.pages.numbers import percent, points, span
from ..render.templating import Markup, macro
from .cells import LAYERS, WATERFALL, groups_of
from .figures import Figures

TEMPLATES = "ablation/templates"
PICTURES = ("waterfall", "cells", "layer2", "rules")
"""The pictures of an ablation, by name."""
# Okabe and Ito's colours.
BASE, RIGHT, WRONG, CHANGED = "#999999", "#009E73", "#E69F00", "#D55E00"
GAINS = ("#0072B2", "#009E73", "#E69F00")
_LEFT, _PLOT, _RIGHT = 250, 420, 150  # widths of labels, plot and values
_LINE, _TOP, _BAR = 26, 26, 14  # heights of a row, of the axis, of a bar
_MOST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Bar:
    """A coloured bar: where it begins, how wide it is, and what it says when it is pointed at."""

    x: float
    width: float
    colour: str
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A rate with its interval; `solid` is filled, which gold is."""

    low: float
    middle: float
    high: float
    solid: bool
    words: str


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a picture: its label, what is drawn, and the figures beside it."""

    y: int
    label: str
    value: str
    bars: tuple[Bar, ...] = ()
    marks: tuple[Mark, ...] = ()
    strong: bool = False


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture: rows under an axis, and what its colours stand for."""

    title: str
    words: str
    lines: tuple[Line, ...]
    ticks: tuple[tuple[float, str], ...]
    key: tuple[tuple[str, str], ...]
    left: int = _LEFT
    plot: int = _PLOT

    @property
    def width(self) -> int:
        """The width of the picture."""
        return _LEFT + _PLOT + _RIGHT

    @property
    def height(self) -> int:
        """The height of the picture, its key included."""
        return _TOP + _LINE * len(self.lines) + (_LINE if self.key else 0)

    @property
    def key_places(self) -> list[tuple[int, str, str]]:
        """(x, colour, words) of each entry of the key."""
        places, x = [], 0
        for colour, words in self.key:
            places.append((x, colour, words))
            x += 34 + 7 * len(words)
        return places


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture that a notebook shows. svg: as part of a page. words: its figures as text."""

    svg: str
    words: str

    def __repr__(self) -> str:
        return self.words

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": self.words, "text/html": self.svg}


def words(ablation: Figures, name: str) -> str:
    """Return the rows of a picture as lines of text. Raises BadOptions for another name."""
    chart = _chart(ablation, name)
    rows = [f"{line.label}: {line.value}".rstrip(": ") for line in chart.lines]
    return "\n".join([chart.words, *rows])


def picture(ablation: Figures, name: str, *, alone: bool = False) -> Markup:
    """Return one of `PICTURES` as SVG.

    alone: as a file of its own, not as a part of a page. Raises BadOptions for another name.
    """
    return macro(f"{TEMPLATES}/pictures.html", "chart", _chart(ablation, name), alone)


def _chart(ablation: Figures, name: str) -> Chart:
    """The contents of a picture. Raises BadOptions for a name that no picture has."""
    if name not in PICTURES:
        raise BadOptions(
            "an ablation has no such picture",
            got=name,
            expected=", ".join(PICTURES),
            hint=near(name, PICTURES),
        )
    return _MAKERS[name](ablation)


def _place(share: float) -> float:
    """A place on the axis for a share of 0 to 1."""
    return round(_LEFT + _PLOT * min(1.0, max(0.0, share)), 1)


def _percent_ticks() -> tuple[tuple[float, str], ...]:
    """The axis from 0 to 100 %."""
    return tuple((_place(i / 4), f"{25 * i} %") for i in range(5))


def _lines(rows: Iterable[dict[str, Any]]) -> tuple[Line, ...]:
    """Rows of a picture one under the other; what does not fit is left out."""
    return tuple(Line(y=_TOP + _LINE * i, **row) for i, row in enumerate(list(rows)[:_MOST_ROWS]))


def _name(by: Sequence[str], row: Mapping[Any, Any]) -> str:
    """The name of a group."""
    return " · ".join(str(row[name]) for name in by)


def _waterfall(ablation: Figures) -> Chart:
    """The rate of gold in S000, what each layer adds to it, and S111; valid as a hollow dot."""
    rows: list[dict[str, Any]] = []
    for keys, part in groups_of(ablation.attribution, ablation.by):
        names = dict(zip(ablation.by, keys, strict=True))
        cells = _of(ablation.cells, names).set_index("cell")
        if names:
            n = int(part["n"].iloc[0])
            rows.append({"label": _name(ablation.by, names), "value": f"n = {n}", "strong": True})
        gold = part[part["rung"] == "gold"].set_index("layer")
        rows.append(_end(cells, WATERFALL[0]))
        rows += [_step(gold.loc[layer], i) for i, layer in enumerate(LAYERS) if layer in gold.index]
        rows.append(_end(cells, WATERFALL[-1]))
    key = ((BASE, "gold"), *((GAINS[i], f"gain of {layer}") for i, layer in enumerate(LAYERS)))
    words = "Share of answers that are gold, without any layer, with each layer added, and with all"
    return Chart("Waterfall", words, _lines(rows), _percent_ticks(), key)


def _of(frame: pd.DataFrame, names: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of a group."""
    for name, value in names.items():
        frame = frame[frame[name] == value]
    return frame


def _end(cells: pd.DataFrame, name: str) -> dict[str, Any]:
    """The row of the first or last cell: gold as a bar with its interval, valid as a dot."""
    cell = cells.loc[name]
    label = {"S000": "no layer (S000)", "S111": "all three (S111)"}[name]
    if pd.isna(cell["gold"]):
        return {"label": label, "value": "not recorded"}
    bar = Bar(_place(0), round(_PLOT * cell["gold"], 1), BASE, f"{label}: {percent(cell['gold'])}")
    marks = (_mark(cell, "valid", solid=False), _mark(cell, "gold", solid=True))
    return {"label": label, "value": _rate_words(cell), "bars": (bar,), "marks": marks}


def _step(row: pd.Series[Any], i: int) -> dict[str, Any]:
    """The row of one layer's gain, from the cell before it to the cell after it."""
    label = f"+ {LAYERS[i]}"
    if pd.isna(row["gain"]):
        return {"label": label, "value": "not recorded"}
    low, high = sorted((row["rate_from"], row["rate_to"]))
    words = f"{points(row['gain'])} [{points(row['gain_low'])}, {points(row['gain_high'])}]"
    bar = Bar(_place(low), max(1.0, round(_PLOT * (high - low), 1)), GAINS[i], f"{label}: {words}")
    return {"label": label, "value": words, "bars": (bar,)}


def _mark(cell: Mapping[Any, Any], rung: str, *, solid: bool) -> Mark:
    """A rung of a cell as a mark."""
    low, middle, high = (cell[f"{rung}_low"], cell[rung], cell[f"{rung}_high"])
    words = f"{rung} {percent(middle)}, interval {span(low, high)} %"
    return Mark(_place(low), _place(middle), _place(high), solid, words)


def _rate_words(cell: Mapping[Any, Any]) -> str:
    """A rate of gold with its interval."""
    return f"{percent(cell['gold'])} [{span(cell['gold_low'], cell['gold_high'])}]"


def _cells(ablation: Figures) -> Chart:
    """The eight cells: gold as a dot with its interval, valid as a hollow one."""
    rows: list[dict[str, Any]] = []
    for keys, part in groups_of(ablation.cells, ablation.by):
        names = dict(zip(ablation.by, keys, strict=True))
        if names:
            rows.append({"label": _name(ablation.by, names), "value": "", "strong": True})
        for cell in part.to_dict("records"):
            layers = [str(i + 1) for i, name in enumerate(("l1", "l2", "l3")) if cell[name]]
            label = f"{cell['cell']}  " + (f"layer {' + '.join(layers)}" if layers else "no layer")
            if pd.isna(cell["gold"]):
                rows.append({"label": label, "value": "not recorded"})
                continue
            marks = (_mark(cell, "valid", solid=False), _mark(cell, "gold", solid=True))
            rows.append({"label": label, "value": _rate_words(cell), "marks": marks})
    words = "Gold (filled) and valid (hollow) in each of the eight cells, with intervals"
    return Chart("The eight cells", words, _lines(rows), _percent_ticks(), ())


def _stacked(
    title: str,
    words: str,
    rows: Sequence[tuple[str, str, Sequence[tuple[int, str, str]]]],
    key: tuple[tuple[str, str], ...],
) -> Chart:
    """Bars of counts on one scale.

    rows: (label, figures, parts), each part with its count, colour and words.
    """
    most = max((sum(count for count, _, _ in parts) for _, _, parts in rows), default=0) or 1
    lines = []
    for label, value, parts in rows:
        bars, x = [], 0
        for count, colour, part_words in parts:
            if count:
                width = round(_PLOT * count / most, 1)
                bars.append(Bar(_place(x / most), width, colour, f"{part_words}: {count}"))
            x += count
        lines.append({"label": label, "value": value, "bars": tuple(bars)})
    ticks = ((_place(0), "0"), (_place(1), str(most)))
    return Chart(title, words, _lines(lines), ticks, key)


def _layer2(ablation: Figures) -> Chart:
    """Rescued calls of each policy: the wanted ones, and those that are valid and wrong."""
    columns = ["invalid", "true_rescues", "faithful", "changed_meaning"]
    frame = ablation.layer2
    table = frame.groupby("policy", sort=False)[columns].sum() if len(frame) else frame
    rows = []
    for policy, row in zip(table.index, table.to_dict("records"), strict=True):
        true, faithful, changed = (int(row[name]) for name in columns[1:])
        parts = [
            (true, RIGHT, "true rescues"),
            (faithful, WRONG, "faithful to a wrong value"),
            (changed, CHANGED, "meaning changed"),
        ]
        rescues = true + faithful + changed
        rows.append((str(policy), f"{true} of {rescues} true", parts))
    key = (
        (RIGHT, "true rescue"),
        (WRONG, "faithful to a wrong value"),
        (CHANGED, "meaning changed"),
    )
    words = "Calls that each policy made valid: true rescues and false ones"
    return _stacked("Rescues of layer 2", words, rows, key)


def _rules(ablation: Figures) -> Chart:
    """Values that each rule changed, right and wrong."""
    rows = []
    for row in ablation.rules.to_dict("records"):
        parts = [(row["right"], RIGHT, "right"), (row["wrong"], WRONG, "wrong")]
        label = f"{row['policy']}: {str(row['rule']).removeprefix('coerce.')}"
        rows.append((label, f"{row['right']} of {row['applied']} right", parts))
    key = ((RIGHT, "the wanted value"), (WRONG, "another value"))
    return _stacked("Rules of layer 2", "Values that each rule changed", rows, key)


_MAKERS = {"waterfall": _waterfall, "cells": _cells, "layer2": _layer2, "rules": _rules}
