"""The simulation behind the table of docs/measurements.md: a small run of it, and its bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.intervals import BEGIN, END, SCENARIOS, is_honest, measure, ten_points_on_ten_cases

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
