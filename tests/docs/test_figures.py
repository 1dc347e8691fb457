"""Each figure of a page stands next to the command that prints it; by night they are run."""

from __future__ import annotations

import re
import shlex
from functools import cached_property
from pathlib import Path

import pytest

from scripts.figures import PAGES, ROOT, blocks_of, check, unprinted
from tests.evals.test_report import FRAME
from toolparse_lab.evals.reports.figures.report import Report

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
# Commands that a page names for what they do, and of which it has no figures.
WITHOUT_FIGURES = {
    "layers.py", "leaderboard_forms.py", "outside.py", "partitions.py",
    "recount.py", "runner.py", "template_check.py", "template_damage.py", "unwanted_calls.py",
    "views.py",
}  # fmt: skip


def test_every_command_of_a_page_prints_a_block() -> None:
    """Those of docs/measurements.md that write their table themselves have tests of their own."""
    named = {
        command
        for page in PAGES
        for command in re.findall(r"benchmarks/(\w+\.py)", page.read_text("utf-8"))
    }
    printing = {Path(shlex.split(block.command)[1]).name for block in BLOCKS}
    writing = {"frameworks.py"}  # writes recipes, and no figure
    assert named - printing - writing == WITHOUT_FIGURES
    assert all((ROOT / shlex.split(block.command)[1]).is_file() for block in BLOCKS)


def test_every_column_of_a_report_is_defined() -> None:
    """Of each of its frames, on the page of reports."""
    page = (ROOT / "docs/reports.md").read_text("utf-8")
    report = Report(FRAME, baseline="hermes")
    frames = [
        getattr(report, name)
        for name, value in vars(Report).items()
        if isinstance(value, cached_property) and name not in ("warnings", "notes")
    ]
    assert len(frames) >= 14
    columns = {str(column) for frame in frames for column in frame} - {*FRAME}
    columns -= {report.cell_name(row) for row in report.frame.to_dict("records")}
    assert {name for name in columns if f"`{name}`" not in page} == set()


def test_a_figure_that_is_another_one_is_noticed() -> None:
    output = "hermes | tuned | all | 55 | 53 | 96.40\nJSON: 0 wrong of 1187, at most 0.3%"
    rows = ["| format | n |", "|---|--:|", "| hermes | 55 | 53 | 96.4 |"]
    said = ["Of JSON 0 of 1,187 are wrong, at most 0.3 % (`--every 40`)."]
    assert list(unprinted([*rows, *said], output)) == []
    assert list(unprinted(["| hermes | 55 | 54 |"], output)) == ["| hermes | 55 | 54 |"]
    assert list(unprinted(["Of JSON 1 of 1,188."], output)) == ["Of JSON 1 of 1,188."]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: block.command)
def test_a_command_prints_what_stands_beside_it(block: object) -> None:
    assert check(block) == []  # type: ignore[arg-type]  # of `BLOCKS`
