"""docs/reports.md points every definition at its function: they must be there, and the benchmark
must run."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from benchmarks.report import main

PAGE = (Path(__file__).parents[2] / "docs" / "reports.md").read_text("utf-8")
NAMED = sorted(set(re.findall(r"`(toolparse_lab\.[\w.]+)`", PAGE)))


def test_every_definition_is_there() -> None:
    assert len(NAMED) >= 5
    for name in NAMED:
        module, _, attribute = name.rpartition(".")
        assert hasattr(importlib.import_module(module), attribute), name


@pytest.mark.slow
def test_the_benchmark_runs(capsys: pytest.CaptureFixture[str]) -> None:
    main(2_000)
    said = capsys.readouterr().out
    assert re.match(r"4,\d{3} rows, 2,\d{3} trials\n", said)
    assert "the page, from nothing" in said
