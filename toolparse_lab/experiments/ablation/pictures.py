"""The pictures of an ablation: the waterfall, the cells, the differences between them, the gain of
each layer and costs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pandas as pd

from ...evals.reports.pages.columns import percent, points, span
from . import layers
from .cells import JUDGED, LAYERS, WATERFALL, groups_of
from .chart import (
    BASE,
    CHANGED,
    LAYER_COLOURS,
    RIGHT,
    SHARES,
    WRONG,
    Chart,
    Line,
    Mark,
    Picture,
    Scale,
    lines_of,
    percent_ticks,
    stacked,
)
from .figures import Figures, check_names
from .sections import price_words

_UNKNOWN = "not recorded"


def picture(ablation: Figures, name: str) -> Picture:
    """Return one of `PICTURES`. Raises BadOptions for another name."""
    drawing = chart(ablation, name)
    return Picture(drawing.svg(), drawing.text)


def chart(ablation: Figures, name: str) -> Chart:
    """Return the contents of one of `PICTURES`. Raises BadOptions for another name."""
    check_names([name], PICTURES, "an ablation has no such picture")
    return PICTURES[name](ablation)


def _groups(
    ablation: Figures, frame: pd.DataFrame
) -> Iterator[tuple[dict[str, Any], pd.DataFrame, list[Line]]]:
    # Names, rows, and the line that heads the group, if any.
    if frame.empty:
        return
    for keys, part in groups_of(frame, ablation.by):
        names = dict(zip(ablation.by, keys, strict=True))
        title = " · ".join(str(name) for name in names.values())
        yield names, part, [Line(title, strong=True)] if names else []


def _under(frame: pd.DataFrame, names: Mapping[str, Any]) -> pd.DataFrame:
    for name, value in names.items():
        frame = frame[frame[name] == value]
    return frame


# rates


def _waterfall(ablation: Figures) -> Chart:
    # Gold in S000, the gain of each layer, and S111. Valid as a hollow dot.
    rows: list[Line] = []
    for names, part, head in _groups(ablation, ablation.attribution):
        cells = {one["cell"]: one for one in _under(ablation.cells, names).to_dict("records")}
        gold = part[part["rung"] == "gold"].to_dict("records")
        rows += [*head, _end(cells[WATERFALL[0]], "no layer (S000)")]
        rows += [_step(row) for row in gold]
        rows.append(_end(cells[WATERFALL[-1]], "all three (S111)"))
    gains = ((LAYER_COLOURS[i], f"gain of {layer}") for i, layer in enumerate(LAYERS))
    words = (
        "Share of answers that are gold, without any layer, with each layer added, and with all; "
        "hollow dots are valid ones"
    )
    return Chart("Waterfall", words, lines_of(rows), percent_ticks(), ((BASE, "gold"), *gains))


def _end(cell: Mapping[Any, Any], label: str) -> Line:
    if pd.isna(cell["gold"]):
        return Line(label, _UNKNOWN)
    bar = SHARES.bar(0, cell["gold"], BASE, f"{label}: {percent(cell['gold'])}")
    return Line(label, _rate_words(cell), (bar,), _rungs(cell))


def _step(row: Mapping[Any, Any]) -> Line:
    # From the cell before it to the cell after it.
    label = f"+ {row['layer']}"
    if pd.isna(row["gain"]):
        return Line(label, _UNKNOWN)
    words = _gain_words(row, "gain", "gain_")
    bar = SHARES.bar(
        row["rate_from"],
        row["rate_to"],
        LAYER_COLOURS[LAYERS.index(row["layer"])],
        f"{label}: {words}",
    )
    return Line(label, f"{words}, n = {row['n']}", (bar,))


def _gain_words(row: Mapping[Any, Any], name: str, prefix: str) -> str:
    return f"{points(row[name])} [{points(row[f'{prefix}low'])}, {points(row[f'{prefix}high'])}]"


def _rungs(cell: Mapping[Any, Any]) -> tuple[Mark, ...]:
    marks = []
    for rung in JUDGED:
        low, high = cell[f"{rung}_low"], cell[f"{rung}_high"]
        words = f"{rung} {percent(cell[rung])}, interval {span(low, high)} %"
        ends = SHARES.place(low), SHARES.place(high)
        marks.append(Mark(ends[0], SHARES.place(cell[rung]), ends[1], rung == "gold", words))
    return tuple(marks)


def _rate_words(cell: Mapping[Any, Any]) -> str:
    interval = span(cell["gold_low"], cell["gold_high"])
    return f"{percent(cell['gold'])} [{interval}], valid {percent(cell['valid'])}, n = {cell['n']}"


def _cells(ablation: Figures) -> Chart:
    rows: list[Line] = []
    for _, part, head in _groups(ablation, ablation.cells):
        rows += head
        for cell in part.to_dict("records"):
            present = [str(i + 1) for i, name in enumerate(("l1", "l2", "l3")) if cell[name]]
            label = f"{cell['cell']}  {'layer ' + ' + '.join(present) if present else 'no layer'}"
            is_known = not pd.isna(cell["gold"])
            value = _rate_words(cell) if is_known else _UNKNOWN
            rows.append(Line(label, value, marks=_rungs(cell) if is_known else ()))
    words = "Gold (filled) and valid (hollow) in each of the eight cells, with intervals"
    return Chart("The eight cells", words, lines_of(rows), percent_ticks())


def _layer1(ablation: Figures) -> Chart:
    rows: list[Line] = []
    for _, part, head in _groups(ablation, ablation.layer1):
        rows += head
        for row in part.to_dict("records"):
            label = f"layer 1 {'on' if row['l1'] else 'off'}"
            rows.append(_share_line(row, label, "type_error_rate", "ci_", row["typed"]))
    words = "Share of typed parameters that are mistyped as the model wrote them"
    return Chart("Type errors", words, lines_of(rows), percent_ticks())


def _share_line(row: Mapping[Any, Any], label: str, name: str, prefix: str, n: int) -> Line:
    if pd.isna(row[name]):
        return Line(label, "none" if n == 0 else _UNKNOWN)
    interval = span(row[f"{prefix}low"], row[f"{prefix}high"])
    value = f"{percent(row[name])} [{interval}], n = {n}"
    return Line(label, value, marks=(SHARES.mark(row, name, prefix, f"{label}: {value}"),))


def _layer3(ablation: Figures) -> Chart:
    rows: list[Line] = []
    columns = [str(name) for name in ablation.layer3]
    figures = [name for name in columns if re.fullmatch(r"success_at_\d+", name)]
    for _, part, head in _groups(ablation, ablation.layer3):
        rows += head
        for row in part.to_dict("records"):
            place = f"{row['policy']}, layer 1 {'on' if row['l1'] else 'off'}"
            for name in (*figures, "gold_rate"):
                what = "gold" if name == "gold_rate" else f"taken, k = {name.rpartition('_')[2]}"
                rows.append(_share_line(row, f"{place}: {what}", name, f"{name}_", row["entered"]))
    words = "Refused calls that the tool took after at most k corrections, and that are gold then"
    return Chart("Corrections", words, lines_of(rows), percent_ticks())


# differences


def _tests(ablation: Figures) -> Chart:
    frame = ablation.tests[ablation.tests["rung"] == "gold"]
    return _differences(
        ablation,
        frame,
        "Differences between cells",
        "Points of gold between two cells on the same answers, with intervals; p is adjusted",
        lambda row: [_difference(row)],
    )


def _difference(row: Mapping[Any, Any]) -> tuple[str, str, str, str, str]:
    p = "" if pd.isna(row["p_holm"]) else f", p = {row['p_holm']:.3f}"
    return str(row["contrast"]), "difference", "ci_", "", f", n = {row['n']}{p}"


def _attribution(ablation: Figures) -> Chart:
    frame = ablation.attribution[ablation.attribution["rung"] == "gold"]
    return _differences(
        ablation,
        frame,
        "What each layer adds",
        "Points of gold: the gain in the order 1, 2, 3, and the mean gain over all six orders",
        _shares_of_layer,
    )


def _shares_of_layer(row: Mapping[Any, Any]) -> list[tuple[str, str, str, str, str]]:
    colour = LAYER_COLOURS[LAYERS.index(row["layer"])]
    return [
        (f"{row['layer']}: gain", "gain", "gain_", colour, f", n = {row['n']}"),
        (f"{row['layer']}: Shapley", "shapley", "shapley_", colour, f", n = {row['n_shapley']}"),
    ]


def _differences(
    ablation: Figures,
    frame: pd.DataFrame,
    title: str,
    words: str,
    parts: Callable[[Mapping[Any, Any]], list[tuple[str, str, str, str, str]]],
) -> Chart:
    # parts: a row's (label, column, interval's prefix, colour of a bar or '', further words).
    records = [(row, one) for row in frame.to_dict("records") for one in parts(row)]
    scale = Scale.around_zero(
        row[column]
        for row, (_, _, prefix, _, _) in records
        for column in (f"{prefix}low", f"{prefix}high")
    )
    rows: list[Line] = []
    for _, part, head in _groups(ablation, frame):
        rows += head
        for row in part.to_dict("records"):
            for label, column, prefix, colour, more in parts(row):
                if pd.isna(row[column]):
                    rows.append(Line(label, _UNKNOWN))
                    continue
                value = _gain_words(row, column, prefix) + more
                bars = (scale.bar(0, row[column], colour, f"{label}: {value}"),) if colour else ()
                mark = scale.mark(row, column, prefix, f"{label}: {value}")
                rows.append(Line(label, value, bars, (mark,)))
    ticks = tuple((scale.place(x), points(x)) for x in (scale.low, 0.0, scale.high))
    return Chart(title, words, lines_of(rows), ticks)


# counts


def _layer2(ablation: Figures) -> Chart:
    settings = ablation.settings
    frame = layers.layer2_frame(ablation.calls, settings.policies, (), settings.level)
    rows = []
    for row in frame.to_dict("records"):
        parts = [
            (row["true_rescues"], RIGHT, "true rescues"),
            (row["faithful"], WRONG, "faithful to a wrong value"),
            (row["changed_meaning"], CHANGED, "meaning changed"),
        ]
        n = row["true_rescues"] + row["false_rescues"]
        interval = span(row["false_rescue_low"], row["false_rescue_high"])
        false = f"false {percent(row['false_rescue'])} [{interval}], n = {n}" if n else "no rescue"
        rows.append((f"{row['policy']}, layer 1 {'on' if row['l1'] else 'off'}", false, parts))
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
    rows: list[Line] = []
    for _, part, head in _groups(ablation, frame[frame["cell"] != WATERFALL[0]]):
        rows += head
        for row in part.to_dict("records"):
            rows.append(_price(row, scale))
    ticks = tuple((scale.place(x), f"{x:,.0f}") for x in (0, scale.high))
    words = "Tokens beyond those of S000 for each answer that is gold and was not there"
    return Chart("Cost of a true rescue", words, lines_of(rows), ticks)


def _price(row: Mapping[Any, Any], scale: Scale) -> Line:
    if not row["n"]:
        return Line(row["cell"], _UNKNOWN)
    if pd.isna(row["tokens_per_rescue"]):
        return Line(row["cell"], f"no true rescue, n = {row['n']}")
    price = price_words(row, "tokens_per_rescue", "{:,.0f}".format)
    value = f"{price} × {row['true_rescues']:.0f}, n = {row['n']}"
    bar = scale.bar(0, row["tokens_per_rescue"], BASE, f"{row['cell']}: {value}")
    return Line(row["cell"], value, (bar,))


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
