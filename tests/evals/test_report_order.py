"""A report as a page: what comes first, that every failure is behind its cell, and that its links
lead somewhere; and texts of models in files that people open elsewhere."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from toolparse_lab import parse
from toolparse_lab.core.toolspec import ToolSpec
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.frames.recorded import calls_frame, trials_frame
from toolparse_lab.evals.reports.figures.report import Report
from toolparse_lab.evals.reports.figures.view import RunView
from toolparse_lab.evals.reports.pages import html
from toolparse_lab.evals.reports.pages.files import plain_cells
from toolparse_lab.evals.scoring.trial import Trial
from toolparse_lab.runner.exchange.types import Completion

TOOL = ToolSpec("f", "d", json.dumps({"type": "object", "properties": {"a": {"type": "integer"}}}))


def trials(models: list[str], arms: list[str], cases: int = 6) -> Iterator[Trial]:
    """Trials of which the later models and arms get more right."""
    for m, model in enumerate(models):
        for a, arm in enumerate(arms):
            for c in range(cases):
                value = "1" if c < m + a else '"x", "b":'
                raw = f'<tool_call>{{"name": "f", "arguments": {{"a": {value}}}}}</tool_call>'
                target = [{"name": "f", "arguments": {"a": 1}}]
                yield Trial.of(
                    Case(f"c{c}", f"Do {c}.", (TOOL,), target, {"category": "single"}),
                    Completion(
                        key=f"{m}-{a}-{c}",
                        raw=raw,
                        status="ok",
                        finish_reason="stop",
                        cost=0.01 * (1 + m),
                        latency=1.0 + a,
                    ),
                    parse(raw, "hermes", (TOOL,)),
                    run_id="r",
                    model=model,
                    arm=arm,
                    prompt_protocol="hermes",
                )


@pytest.fixture(scope="module")
def report() -> Report:
    names = range(5)
    frame = trials_frame(trials([f"m{n}" for n in names], [f"a{n}" for n in names]))
    return Report(frame, ["model", "arm"])


@pytest.fixture(scope="module")
def page(report: Report) -> str:
    return report.html(page=True, gate=report.gate(success=0.99))


def test_what_is_concluded_comes_before_what_it_rests_on(page: str) -> None:
    places = [
        page.index(text)
        for text in ('class="say"', 'class="alert"', "Gate failed", ">Success</h2>", "How sure",
                     "What goes wrong", "Variant against variant", "example by example")
    ]  # fmt: skip
    assert places == sorted(places)


def test_matrix_intervals_and_failures_stand_best_first(report: Report, page: str) -> None:
    table = page[page.index('class="heat"') : page.index("How sure")]
    assert re.findall(r'scope="row"[^>]*>(a\d)', table) == [f"a{n}" for n in reversed(range(5))]
    assert re.findall(r'scope="col"[^>]*>(m\d)', table) == [f"m{n}" for n in reversed(range(5))]
    names = [f"m{m} · a{a}" for m in reversed(range(5)) for a in reversed(range(5))]
    assert [cell.name for cell in html.failing_cells(report)] == names
    dots = page[page.index("How sure") : page.index("What goes wrong")]
    assert list(dict.fromkeys(re.findall(r"m\d · a\d", dots))) == names


def test_what_many_cells_say_twice_is_folded(report: Report, page: str) -> None:
    n = sum(cell.n for cell in html.failing_cells(report))
    for title, answer in (("How sure", "25 intervals"), ("What goes wrong", f"{n} failures")):
        assert f"<details><summary>{title} <small>{answer}</small>" in page


def test_every_failure_is_behind_its_cell(report: Report, page: str) -> None:
    failed = report.headline[report.headline["score_success"] == 0]
    assert len(failed) > 50
    assert set(re.findall(r'trial <a href="#cell-[\d-]+">([^<]+)</a>', page)) == set(
        failed["trial_id"]
    )
    cells = {cell.keys: cell.n for cell in html.failing_cells(report)}
    for row in report.frame.to_dict("records"):
        assert cells[row["model"], row["arm"]] == row["n"] - round(row["n"] * row["success"])


def test_every_link_leads_to_one_place(page: str) -> None:
    anchors = Counter(re.findall(r' id="([^"]+)"', page))
    assert set(re.findall(r'href="([^"]*)"', page)) <= {f"#{anchor}" for anchor in anchors}
    assert set(anchors.values()) == {1}


def test_a_page_says_what_it_has_no_room_for(
    report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(html, "EXAMPLES", 2)
    page = report.html(page=True)
    assert "the first 2 of each cause" in page
    found = re.findall(r"<h3[^>]*>[^<]* <small>(\d+), the first 2 ·", page)
    assert max(map(int, found)) == 6


def test_a_fragment_has_no_anchors_that_could_meet_those_of_another(report: Report) -> None:
    assert not re.search(r'<(h2|div|nav)[^>]* id="', report.html())


FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "|calc", " \n=1", "＝1")


def test_no_control_character_and_no_formula_reaches_a_file(tmp_path: Path) -> None:
    evil = [*FORMULAS, "a\x1b[31m\x00\x07\u202eb"]
    report = Report(trials_frame(trials(evil, ["a"], 2)), ["model", "arm"], title=evil[-1])
    for suffix in (".md", ".tex", ".csv"):
        text = report.save(tmp_path / f"r{suffix}").read_text("utf-8")
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", text), suffix
    with (tmp_path / "r.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["model"].lstrip()[0] for row in rows} == {"'", "a"}
    frame = plain_cells(report.frame)
    assert frame["success"].equals(report.frame["success"])  # a number stays one


def test_without_targets_each_tool_has_its_figures() -> None:
    made = list(trials(["m0", "m1"], ["a"]))
    frame = trials_frame(made).assign(target=None, score_success=None, outcome="ungraded")
    report = Report(RunView(frame, calls=lambda: calls_frame(made)), ["model"])
    (row,) = report.tools.to_dict("records")
    results = [trial.result for trial in made if trial.result and trial.result.calls]
    ok = [result.calls[0].valid for result in results]
    assert (row["tool"], row["n"]) == ("f", len(ok))
    assert row["executable"] == pytest.approx(sum(ok) / len(ok))
    assert row["ci_low"] < row["executable"] < row["ci_high"]
    assert row["clean"] + row["refused"] == pytest.approx(1)
    assert "Tool by tool" in report.html()
    assert "Tool by tool: 1 tool" in report.text(120)
    assert Report(frame, ["model"]).tools.empty, "without the calls nothing is known of tools"
