"""A report's figures are those that a script without the package counts in the raw log."""

from __future__ import annotations

import importlib
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.intervals import BEGIN, END, SCENARIOS, is_honest, measure, ten_points_on_ten_cases
from benchmarks.recount import FIGURES, differences, recount
from benchmarks.report import main
from tests.tools import tool_named

TOOL = tool_named("f", a="integer")


def log(seed: int, missing: float, trials: int) -> list[dict[str, Any]]:
    rng = random.Random(seed)
    rows = []
    for case in range(12):
        for model in ("a", "b"):
            for trial in range(trials):
                value = case + (rng.random() < 0.2)
                call = f'<tool_call>{{"name": "f", "arguments": {{"a": {value}}}}}</tool_call>'
                row = {
                    "case_id": f"c{case}", "model": model, "trial": trial, "tools": [TOOL],
                    "prompt_protocol": "hermes", "raw": call if rng.random() < 0.8 else "No.",
                    "target": [{"name": "f", "arguments": {"a": case}}] if case % 4 else [],
                }  # fmt: skip
                rows.append(
                    row | ({"raw": "", "error": "timeout"} if rng.random() < missing else {})
                )
    return rows


@pytest.mark.parametrize(("seed", "missing", "trials"), [(1, 0.0, 1), (2, 0.1, 3), (3, 0.5, 2)])
def test_every_figure_is_equal(seed: int, missing: float, trials: int, tmp_path: Path) -> None:
    rows = log(seed, missing, trials)
    with tp.Lab(tmp_path / "runs.db") as lab:
        cells: Any = lab.ingest(rows).report().frame.to_dict("records")
    counted = recount(json.loads(json.dumps(rows)))
    assert differences(counted, cells) == []
    # A figure that is another one is told.
    counted["a", "hermes"]["success"] += 0.01
    (found,) = differences(counted, cells)
    assert "success" in found
    assert set(FIGURES) == set(counted["a", "hermes"])


# The simulation behind the table of docs/measurements.md: a small run of it, and its bounds.


PAGE = Path(__file__).parents[2] / "docs" / "measurements.md"
SETS = 40


def test_the_table_of_the_page_keeps_its_bounds() -> None:
    table = PAGE.read_text("utf-8").split(BEGIN, 1)[1].split(END, 1)[0].strip()
    assert table.count("\n| ") == 3 * len(SCENARIOS), "three rates a scenario, under two lines"
    assert is_honest(table)
    assert not is_honest(table.replace("| 0.9", "| 0.8", 1).replace("0.953", "0.853"))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s.name.replace(" ", "-"))
def test_a_small_run_is_not_far_off(scenario: object) -> None:
    tally = measure(scenario, 0.9, 20, SETS, seed=3)  # type: ignore[arg-type]  # of the table
    assert tally.sets == SETS
    assert min(tally.rate_held, tally.difference_held) >= 0.8 * SETS
    assert max(tally.p_wrong, tally.worse_wrong, tally.not_worse_wrong) <= 0.2 * SETS


def test_ten_cases_cannot_tell_ten_points() -> None:
    verdicts = ten_points_on_ten_cases(100, seed=5)
    assert verdicts["cannot tell"] > 0.95


# docs/reports.md points every definition at its function: they must be there, and the benchmark
# must run.


DEFINITIONS = (Path(__file__).parents[2] / "docs" / "reports.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(toolparse_lab\.[\w.]+)`", DEFINITIONS)))


def test_every_definition_is_there() -> None:
    assert len(NAMED) >= 5
    for name in NAMED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.slow
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    main(500)
    said = capsys.readouterr().out
    assert re.match(r"\S+ rows, \S+ trials\n", said)
    assert "the page, from nothing" in said
