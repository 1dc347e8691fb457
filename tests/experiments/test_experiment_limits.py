"""Limits of a run are checked before a run is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.runner.ledger import check_limits

CASES = [{"id": "a", "input": "hi", "tools": [{"name": "f"}], "target": []}]


@pytest.mark.parametrize(
    ("limits", "complaint"),
    [
        ({"max_costs": 5}, "did you mean max_cost"),
        ({"temperature": 0}, "go to lab.plan"),
        ({"max_cost": "5"}, "max_cost is a number"),
        ({"max_calls": True}, "max_calls is a number"),
        ({"deadline": -1}, "0 or more"),
        ({"max_age": float("nan")}, "max_age is a number"),
    ],
)
def test_a_wrong_limit_is_refused_before_a_run_is_written(
    limits: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    with tp.Lab(tmp_path / "a.db") as lab:
        plan = lab.plan(CASES, tp.Model("openai/m", price=(0, 0)), ["hermes"], max_tokens=5)
        with pytest.raises(tp.errors.BadOptions, match=complaint):
            lab.run(plan, **limits)
        assert lab.runs() == []


def test_none_is_no_limit() -> None:
    check_limits(dict.fromkeys(("max_cost", "max_calls", "deadline", "max_age", "progress")))
