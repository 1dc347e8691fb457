"""The charts of reports and comparisons, in Vega-Lite through Altair, for whoever restyles or saves
them: pages draw with HTML alone.

How it works. A chart is a function of a figure, those of a report in `CHARTS`, which makes a
frame of plain columns and lays marks over it. It returns None where the figure has nothing to draw.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any

import pandas as pd

from ....arguments.schema.validate import load_jsonschema
from ....core.errors import BadOptions, MissingExtra, UnknownName, near
from ....core.types import VERDICTS
from ....core.values.wording import level_words
from ....views import style
from ....views.show import visible
from ....views.words import word_of
from ..figures.cells import ANSWER_KINDS, UNRECORDED
from ..figures.comparison import COMPARISON_COLUMNS, ArmComparison
from ..figures.report import Report

if TYPE_CHECKING:
    from altair import TopLevelMixin as Chart

MOST_ROWS = 60
"""The rows of a chart; beyond it they hide each other."""
_WIDTH = 520  # pixels of the plot, without its labels
_LONGEST = 48  # characters of a name
_NOT_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What begins a tag, its end or a comment: Altair writes a chart into an inline script as it stands,
# and `</script>` in a name would end that.
_TAG = re.compile("<(?=[a-zA-Z/!?])")
_EXTRA = "in a checkout: pip install '.[charts]'"

# Outcome -> its colour, in the order of a bar: successes, then the model's, the parser's, the
# limits' and the provider's share.
OUTCOME_COLOURS: Mapping[str, str] = {
    "correct": style.GREEN,
    "abstained_correctly": "#7fcfb9",
    "wrong_call": style.VERMILLION,
    "abstained_wrongly": style.ORANGE,
    "self_answered": style.YELLOW,
    "attempted_unparseable": style.PURPLE,
    "held_back": "#9a6fb0",
    "fabricated": "#7a2f5c",
    "reader_error": "#b8a3ad",
    "truncated": style.SKY,
    "reasoning_only": "#aad9f4",
    "empty": "#1f5f8b",
    "refused": "#6f8fd0",
    "context_overflow": "#8c8c8c",
    "provider_error": "#b3b3b3",
    "ungraded": "#d9d9d9",
    UNRECORDED: "#efefef",
}
VERDICT_COLOURS: Mapping[str, str] = {
    "clean": style.GREEN,
    "repaired": "#7fcfb9",
    "repaired (lossless)": "#7fcfb9",
    "repaired (lossy)": style.ORANGE,
    "unchecked": style.YELLOW,
    "invalid": style.VERMILLION,
    "refused": style.PURPLE,
    "truncated": style.SKY,
    "echoed": "#1f5f8b",
    "looks like a call": "#d8c95a",
    "text": "#8c8c8c",
    "none": "#8c8c8c",
}


def _altair() -> Any:
    load_jsonschema()  # in a fifth of the time that Altair's own import of it takes
    try:
        import altair  # an extra, and a third of a second to import
    except ModuleNotFoundError as e:
        raise MissingExtra(
            "charts are drawn by Altair",
            got=f"no module named {e.name}",
            expected="the extra 'charts'",
            hint=_EXTRA,
        ) from None
    altair.data_transformers.disable_max_rows()
    return altair


@singledispatch
def figure_chart(figure: Any, name: str) -> Chart:
    """Return a chart of a figure, to show or to restyle.

    Raises UnknownName for another name, BadOptions where the figure has nothing to draw in it, and
    MissingExtra without Altair.
    """
    raise TypeError(f"no chart of a {type(figure).__name__}")


def _named(charts: Mapping[str, Callable[[Any], Chart | None]], figure: Any, name: str) -> Chart:
    if name not in charts:
        raise UnknownName(
            "no such chart", got=name, expected=", ".join(charts), hint=near(name, charts)
        )
    chart = charts[name](figure)
    if chart is None:
        raise BadOptions(
            f"there is nothing to draw in the chart {name!r}",
            got=f"{len(figure.frame)} rows",
            expected="answers that were judged",
        )
    return chart


# How a chart is laid out.


def _rows_axis(alt: Any, names: Sequence[str]) -> Any:
    # Names as they stand, one a row.
    axis = alt.Axis(labelLimit=0, domain=False, ticks=False, labelPadding=8)
    # A list to sort by would become an expression with the names of models in it.
    scale = alt.Scale(domain=list(dict.fromkeys(names)))
    return alt.Y("cell:N", title=None, sort=None, scale=scale, axis=axis)


def _shares_axis(alt: Any, channel: Callable[..., Any], column: str, title: str) -> Any:
    # channel: alt.X or alt.Y.
    axis = alt.Axis(format=".0%", tickCount=5)
    return channel(f"{column}:Q", title=title, scale=alt.Scale(domain=[0, 1]), axis=axis)


def _sized(alt: Any, chart: Any) -> Any:
    return chart.properties(width=_WIDTH, height=alt.Step(24))


def _key(alt: Any, **options: Any) -> Any:
    return alt.Legend(orient="bottom", labelLimit=0, columnPadding=40, symbolOpacity=1, **options)


def _level(figure: Any) -> str:
    return f"{level_words(figure.level)} interval"


def _intervals(rows: pd.DataFrame, title: str, x: Callable[..., Any], alt: Any) -> Any:
    # A dot with its interval in each row; dashed, what the missing trials leave open.
    y = _rows_axis(alt, rows["cell"].tolist())
    chart = alt.Chart(rows)
    tips = [c for c in rows if c not in ("worst", "best")]
    layers = [
        chart.mark_rule(strokeWidth=3, color=style.BLUE).encode(
            y=y, x=x("low", title), x2="high:Q", tooltip=tips
        ),
        chart.mark_point(filled=True, size=90, opacity=1, color=style.BLUE).encode(
            y=y, x=x("value", title), tooltip=tips
        ),
    ]
    if "worst" in rows and rows["worst"].notna().any():
        dashed = chart.mark_rule(strokeDash=[2, 3], opacity=0.6)
        layers.insert(0, dashed.encode(y=y, x=x("worst", title), x2="best:Q"))
    return alt.layer(*layers)


# The charts of a report.


def _success(report: Report) -> Chart | None:
    alt = _altair()
    title = f"success, {_level(report)}"
    frame = report.frame
    columns = {"success": "value", "ci_low": "low", "ci_high": "high"}
    if not report.has_targets:
        title = f"answers with a call whose calls may all be executed, {_level(report)}"
        frame = report.ungraded
        columns["executable"] = "value"
        del columns["success"]
    rows = frame[[*columns, "n"]].rename(columns=columns).astype(float)
    if "missing" in frame:
        bounds = frame[["worst", "best"]].astype(float)
        rows = rows.join(bounds.where(frame["missing"].gt(0), axis=0))
    rows.insert(0, "cell", [_name(report, cell) for cell in frame.to_dict("records")])
    rows = rows[rows["value"].notna()].head(MOST_ROWS)
    if rows.empty:
        return None

    return _sized(alt, _intervals(rows, title, partial(_shares_axis, alt, alt.X), alt))


def _stacked(rows: pd.DataFrame, colours: Mapping[str, str], title: str) -> Chart | None:
    # Bars of shares. rows: cell, part, n, which is written on its part, and share.
    if rows.empty:
        return None
    alt = _altair()
    end = rows.groupby("cell", sort=False)["share"].cumsum()
    words = {code: drawable(word_of(code)) for code in (*colours, *rows["part"])}
    colours = {words[code]: colour for code, colour in colours.items()}
    rows = rows.assign(end=end, part=rows["part"].map(words))
    rows["start"] = rows["end"] - rows["share"]
    rows["middle"] = (rows["start"] + rows["end"]) / 2
    present = [part for part in colours if (rows["part"] == part).any()]
    scale = alt.Scale(domain=present, range=[colours[part] for part in present])
    y = _rows_axis(alt, rows["cell"].tolist())
    tips = ["cell", "part", "n", alt.Tooltip("share:Q", format=".1%")]
    bars = alt.Chart(rows).mark_bar(stroke="#fff", strokeWidth=0.5)
    x, key = _shares_axis(alt, alt.X, "start", title), _key(alt, columns=3, symbolType="square")
    colour = alt.Color("part:N", title=None, scale=scale, legend=key)
    wide = alt.Chart(rows[rows["share"] > 0.05]).mark_text(fontSize=11, color="#000")
    layers = (
        bars.encode(y=y, x=x, x2="end:Q", color=colour, tooltip=tips),
        wide.encode(y=y, x="middle:Q", text="n:Q"),
    )
    return _sized(alt, alt.layer(*layers))


def _counts(report: Report, frame: pd.DataFrame, column: str, parts: Iterable[str]) -> pd.DataFrame:
    # The parts of each cell's bar, cells in the order of the report and parts in that of `parts`.
    names = [_name(report, row) for row in frame.to_dict("records")]
    rows = pd.DataFrame({"cell": names, "part": frame[column].astype(str), "n": frame["n"]})
    rows["share"] = rows["n"] / rows.groupby("cell")["n"].transform("sum")
    cells = report.frame.head(MOST_ROWS).to_dict("records")
    order = {_name(report, cell): n for n, cell in enumerate(cells)}
    places = {part: n for n, part in enumerate(parts)}
    rows = rows[rows["cell"].isin(order)]
    rows = rows.sort_values("part", key=lambda part: part.map(places), kind="stable")
    return rows.sort_values("cell", key=lambda cell: cell.map(order), kind="stable")


def _outcomes(report: Report) -> Chart | None:
    rows = _counts(report, report.waterfall, "outcome", OUTCOME_COLOURS)
    return _stacked(rows, OUTCOME_COLOURS, "share of the trials, by outcome")


def _verdicts(report: Report) -> Chart | None:
    parts: Sequence[str] = VERDICTS
    frame, column = report.verdicts, "verdict"
    if not report.has_targets:
        # An answer without a call is told apart from one that looks like a call.
        column, parts = "kind", ANSWER_KINDS
        frame = report.ungraded.melt([*report.by, "n"], list(parts), column, "share")
        frame["n"] = (frame["share"] * frame["n"]).round().astype(int)
        frame = frame[frame["n"].gt(0)]
    rows = _counts(report, frame, column, parts)
    return _stacked(rows, VERDICT_COLOURS, "share of the answers, by the worst verdict")


def drawable(text: str) -> str:
    """Return a text as a chart can hold it, in SVG and in a script: visible, `‹` where it begins a
    tag, and cut if it is long. Every text of a chart that is not of this module goes through here.
    """
    # A character that XML does not have would end the process, not only the drawing. A long name
    # is cut here, because Vega cuts between the halves of one character; what tells two such names
    # apart may be in the middle, so their digest stays.
    text = _TAG.sub("‹", _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", visible(text)))
    if len(text) <= _LONGEST:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:4]
    return f"{text[: _LONGEST - 20]}…{text[-13:]} ({digest})"


def _name(report: Report, cell: Mapping[Any, Any]) -> str:
    return drawable(report.cell_name(cell))


# The charts of a comparison.


def _differences(comparison: ArmComparison) -> Chart | None:
    frame = comparison.frame[comparison.frame["difference"].notna()].head(MOST_ROWS)
    if frame.empty:
        return None
    alt = _altair()
    strata = [c for c in frame if c not in COMPARISON_COLUMNS]
    columns = {"difference": "value", "ci_low": "low", "ci_high": "high", "n_cases": "cases"}
    rows = frame[list(columns)].astype(float).rename(columns=columns)
    rows[["value", "low", "high"]] *= 100
    names = [" · ".join(str(row[c]) for c in strata) for row in frame.to_dict("records")]
    pair = f"{comparison.b} − {comparison.a}"
    rows.insert(0, "cell", [drawable(name or pair) for name in names])
    # Never narrower than ten points either way: noise would fill the plot.
    reach = max(10.0, -rows["low"].min(), rows["high"].max())
    # No name in a title: it becomes part of an expression.
    title = f"points of success, b less a, {_level(comparison)}"

    def x(column: str, title: str) -> Any:
        scale = alt.Scale(domain=[-reach, reach], nice=True)
        return alt.X(f"{column}:Q", title=title, scale=scale, axis=alt.Axis(format="+.0f"))

    zero = alt.Chart(pd.DataFrame({"zero": [0.0]})).mark_rule(opacity=0.6)
    layers = (zero.encode(x=x("zero", title)), _intervals(rows, title, x, alt))
    return _sized(alt, alt.layer(*layers))


CHARTS: Mapping[str, Callable[[Report], Chart | None]] = {
    "success": _success,
    "outcomes": _outcomes,
    "verdicts": _verdicts,
}
"""The charts of a report by name."""
figure_chart.register(Report, lambda report, name: _named(CHARTS, report, name))
figure_chart.register(
    ArmComparison, lambda comparison, name: _named({"difference": _differences}, comparison, name)
)
