"""The cases that flip between the cells of a report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolparse_lab.evals.reports.figures.breakdowns import flip_grid_frame
from toolparse_lab.evals.reports.figures.report import Report

pytest.importorskip("litellm", reason="runs need the lab extra")

import toolparse_lab as tp


def name_of(keys: Any) -> str:
    return " · ".join(map(str, keys.values()))


def frame_of(rows: list[tuple[str, str, bool | None]]) -> pd.DataFrame:
    return pd.DataFrame(
        [{"case_id": case, "arm": arm, "score_success": success} for case, arm, success in rows],
        columns=["case_id", "arm", "score_success"],
    )


def test_a_case_flips_where_most_trials_differ() -> None:
    rows = [
        *(("both", arm, True) for arm in "ab"),
        *(("none", arm, False) for arm in "ab"),
        ("flip", "a", True),
        ("flip", "b", False),
        *(("mostly", "a", success) for success in (True, True, False)),
        ("mostly", "b", False),
        *(("even", "a", success) for success in (True, False)),
        ("even", "b", False),
        ("unjudged", "a", True),
        ("unjudged", "b", None),
    ]
    grid = flip_grid_frame(frame_of(rows), ["arm"], name_of)
    assert grid["case_id"].tolist() == ["flip", "mostly"]
    assert grid.to_dict("records")[1] == {"case_id": "mostly", "a": pytest.approx(2 / 3), "b": 0}


@given(st.lists(st.tuples(st.sampled_from("cde"), st.sampled_from("ab"), st.booleans())))
def test_only_cases_with_both_ends_flip(rows: list[tuple[str, str, bool]]) -> None:
    grid = flip_grid_frame(frame_of([*rows]), ["arm"], name_of)
    for row in grid.drop(columns="case_id").to_dict("records"):
        shares = [share for share in row.values() if share == share]
        assert max(shares) > 0.5 > min(shares)


def test_it_is_in_the_report(tmp_path: Path) -> None:
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}}}
    good = '<tool_call>{"name": "f", "arguments": {"x": 1}}</tool_call>'
    bad = good.replace("1", "2")
    rows = [
        {
            "id": f"c{n}",
            "input": "ask",
            "tools": [tool],
            "target": [{"name": "f", "arguments": {"x": 1}}],
            "raw": good if n == 0 or model == "m0" else bad,
            "model": model,
            "protocol": "hermes",
        }
        for n in range(3)
        for model in ("m0", "m1")
    ]
    with tp.Lab(tmp_path / "runs.db") as lab:
        report: Report = lab.ingest(rows).report(by=["model"])
        assert report.flip_grid["case_id"].tolist() == ["c1", "c2"]
        page = report.save(tmp_path / "r.html").read_text("utf-8")
        assert "Cases that flip" in page
        assert "Cases that flip" in report.save(tmp_path / "r.md").read_text("utf-8")
