"""A report's figures are those that a script without the package counts in the raw log."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks.recount import FIGURES, differences, recount
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
