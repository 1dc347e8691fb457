"""Corrected calls against the four thresholds, and the cost table."""

from __future__ import annotations

import math

import pytest

from tests.middleware.test_correction_call import run_scenario
from toolparse_lab.middleware.correction import CorrectedCall, cost_table, readings_of


def calls_of(*names: str) -> list[CorrectedCall]:
    return [run_scenario(name, later=False)[0] for name in names]


def test_rates_name_their_counts_and_success_needs_the_tool() -> None:
    calls = calls_of("right at once", "fixed at the first", "never", "the callback fails")
    coercion, feedback, correction, success = readings_of(calls)
    assert (coercion.count, coercion.total) == (0, 4)
    assert (feedback.count, feedback.total) == (3, 4)
    assert (correction.count, correction.total) == (1, 3)
    assert (success.count, success.total) == (2, 4)
    assert [reading.ok for reading in readings_of(calls)] == [True, False, False, False]
    assert str(feedback) == "feedback rate: 75.0% (3 of 4), Layer 2 may need improvement"


@pytest.mark.parametrize(
    ("failed", "total", "is_ok"), [(0, 20, True), (1, 20, True), (2, 20, False)]
)
def test_a_limit_itself_is_not_broken(failed: int, total: int, is_ok: bool) -> None:
    good, bad = calls_of("right at once", "disabled")
    readings = readings_of([good] * (total - failed) + [bad] * failed)
    assert readings[3].ok is is_ok
    assert readings[2].ok
    assert math.isnan(readings[2].rate)
    assert "not measured" in str(readings[2])


def test_nothing_breaks_no_threshold() -> None:
    assert all(reading.ok and math.isnan(reading.rate) for reading in readings_of([]))


def test_costs_are_counted_by_scenario() -> None:
    calls = calls_of(
        "right at once", "no callback", "fixed at the first", "fixed at the second", "never"
    )
    rows = cost_table(calls, [1.0, 3.0, 4.0, 5.0, 6.0])
    assert [(r.calls, r.model_calls, r.accepted, r.seconds) for r in rows] == [
        (1, 0, 1, 1.0), (1, 1, 1, 4.0), (1, 2, 1, 5.0), (2, 2, 0, 4.5),
    ]  # fmt: skip
    with pytest.raises(ValueError, match="zip"):
        cost_table(calls, [1.0])
