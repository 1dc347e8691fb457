"""The charts of reports and comparisons: that each draws the figures, and no name can run."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.evals.test_report_order import trials
from tests.laws import examples
from tests.render_samples import HOSTILE
from toolparse_lab.core.errors import MissingExtra, UnknownName
from toolparse_lab.evals.frames.recorded import trials_frame
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.pages.charts import (
    CHARTS,
    OUTCOME_COLOURS,
    VERDICT_COLOURS,
    drawable,
)
from toolparse_lab.evals.scoring.outcomes import OUTCOMES
from toolparse_lab.views.show import visible

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return trials_frame(trials(["m0", "m1"], ["a0", "a1", "a2"]))


@pytest.fixture(scope="module")
def report(frame: pd.DataFrame) -> Report:
    return Report(frame, ["model", "arm"])


def rows_of(chart: Any) -> list[dict[str, Any]]:
    """All rows of data that a chart holds."""
    return [row for rows in chart.to_dict()["datasets"].values() for row in rows]


def layers_of(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield spec
    for layer in spec.get("layer", ()):
        yield from layers_of(layer)


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_has_axes_and_names_its_cells(report: Report, name: str) -> None:
    chart = report.chart(name)
    spec = chart.to_dict()
    titles = [
        layer["encoding"][axis].get("title")
        for layer in layers_of(spec)
        for axis in ("x", "y")
        if axis in layer.get("encoding", {})
    ]
    assert any(titles)
    names = {row.get("cell") for row in rows_of(chart)} | {
        row.get("name") for row in rows_of(chart)
    }
    assert {report.cell_name(cell) for cell in report.frame.to_dict("records")} <= names


def test_intervals_are_drawn_where_they_lie(report: Report) -> None:
    drawn = {row["cell"]: row for row in rows_of(report.chart("success"))}
    for cell in report.frame.to_dict("records"):
        row = drawn[report.cell_name(cell)]
        assert (row["low"], row["value"], row["high"]) == (
            cell["ci_low"], cell["success"], cell["ci_high"],
        )  # fmt: skip


def test_parts_of_a_bar_meet_and_fill_it(report: Report) -> None:
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of(report.chart("outcomes")):
        cells.setdefault(row["cell"], []).append(row)
    for parts in cells.values():
        bars = sorted({(row["start"], row["end"]) for row in parts})
        assert bars[0][0] == 0
        assert bars[-1][1] == pytest.approx(1)
        assert all(a[1] == pytest.approx(b[0]) for a, b in pairwise(bars))


def test_a_comparison_is_drawn_in_points(report: Report) -> None:
    comparison = report.compare("a0", "a2")
    values = [row["value"] for row in rows_of(comparison.chart()) if "value" in row]
    assert values == pytest.approx([100 * x for x in comparison.frame["difference"]])


def test_without_targets_a_report_draws_what_may_be_executed(frame: pd.DataFrame) -> None:
    report = Report(frame.assign(target=None, score_success=None, outcome="ungraded"), ["model"])
    rows = rows_of(report.chart("success"))
    assert [row["value"] for row in rows] == report.ungraded["executable"].tolist()
    assert {"as written", "refused"} == {row["part"] for row in rows_of(report.chart("verdicts"))}


def test_another_name_is_refused_with_those_there_are(report: Report) -> None:
    with pytest.raises(UnknownName, match="success"):
        report.chart("sucess")


def test_every_outcome_can_be_drawn_and_told_apart() -> None:
    assert set(OUTCOMES) < set(OUTCOME_COLOURS)
    assert len(set(OUTCOME_COLOURS.values())) == len(OUTCOME_COLOURS)
    assert {"clean", "invalid", "text", "none"} <= set(VERDICT_COLOURS)


def hostile_charts() -> Iterator[tuple[str, Any]]:
    """Every chart, with the ends of scripts, comments and tags in every column of its frame."""
    evil = (*(HOSTILE[name] for name in ("close script", "onerror")), "<!--<script>", "</SCRIPT\t>")
    frame = trials_frame(trials(list(evil), list(evil[:2])))
    for column in frame.select_dtypes(["object", "string", "category"]).columns:
        if column not in ("trial_id", "target", "model", "arm") and isinstance(
            frame[column].iloc[0], str
        ):
            kept = list(frame[column])
            frame[column] = [f"{evil[n % 4]}{v}" if n % 3 else v for n, v in enumerate(kept)]
    report = Report(frame, ["model", "arm"])
    for name in CHARTS:
        if CHARTS[name](report) is not None:
            yield name, report.chart(name)
    yield "comparison", report.compare(evil[0], evil[1]).chart()
    bare = Report(frame.assign(target=None, score_success=None, outcome="ungraded"), ["model"])
    yield "verdicts of no target", bare.chart("verdicts")


def test_no_name_can_end_the_script_that_a_chart_is_shown_by() -> None:
    shown = []
    for name, chart in hostile_charts():
        spec = json.dumps(chart.to_dict(), ensure_ascii=False)
        assert not re.search("<[a-zA-Z/!?]", spec), name
        shown.append("‹/script>" in spec)
    assert len(shown) == 5
    assert all(shown)


@given(st.lists(st.text(max_size=70), min_size=2, max_size=2, unique=True))
@settings(max_examples=examples(20), deadline=None)
def test_any_name_is_drawn_as_one_row(names: list[str]) -> None:
    shown = [drawable(name) for name in names]
    assert len(set(shown)) == len(set(map(visible, names)))


def test_pages_need_no_library_that_draws(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "altair", None)
    assert 'class="dots"' in report.html(page=True)
    with pytest.raises(MissingExtra, match="charts"):
        report.chart()
