"""What a report says first: every shape of a difference and of none has a true sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.cli.app import main
from toolparse_lab.evals.frames.account import account_of
from toolparse_lab.evals.reports.figures.comparison import compare_arms
from toolparse_lab.evals.reports.figures.conclusion import conclusion_of
from toolparse_lab.evals.reports.figures.report import Report

TOOL = tool_named("f", required=["a"], a="integer")
CALL = '<tool_call>{"name": "f", "arguments": {"a": %s}}</tool_call>'


def frame_of(cells: Mapping[tuple[str, str], tuple[int, int]], n: int = 200) -> pd.DataFrame:
    """Trials of which the cases from the first to the last number of each cell are right, cells
    being (model, format).
    """
    right, wrong = graded()
    rows = [
        {
            **(right if first <= case < last else wrong),
            "trial_id": f"{model} {asked} {case}",
            "case_id": f"c{case:03}",
            "model": model,
            "prompt_protocol": asked,
            "arm": asked,
        }
        for (model, asked), (first, last) in cells.items()
        for case in range(n)
    ]
    return pd.DataFrame(rows)


@cache
def graded() -> list[dict[str, Any]]:
    """The rows of an answer that is right and of one that is not."""
    rows = [
        {"case_id": f"c{n}", "raw": CALL % n, "target": [{"name": "f", "arguments": {"a": 1}}]}
        for n in (1, 2)
    ]
    run = tp.Lab(":memory:").ingest(rows, tools=[TOOL], protocol="hermes", progress=False)
    found: list[dict[Any, Any]] = run.frame().to_dict("records")
    return found


BY = ["model", "prompt_protocol"]
A, B = "hermes", "morph_xml"


@every_case
def test_the_first_sentence(cells: list[list[Any]], said: str) -> None:
    """Cells are (model, format, first, last). Where 60 cases flip one way p is 2 / 2 ** 60; where 5
    and 3 flip either way, the sum of 8 coins is 2 or more from nothing with .727."""
    report = Report(frame_of({(m, asked): (a, b) for m, asked, a, b in cells}), BY)
    assert conclusion_of(report).text.startswith(said)


def test_a_baseline_is_what_all_others_are_held_against() -> None:
    frame = frame_of({("m", A): (0, 180), ("m", B): (0, 120), ("m", "gemma"): (0, 60)})
    text = conclusion_of(Report(frame, BY, baseline=B)).text
    assert text.startswith(f"{B} succeeds more often than gemma; {A} succeeds more often than {B}.")


def test_a_comparison_has_names_and_the_words_of_the_report() -> None:
    trials = frame_of(
        {("m", A): (0, 180), ("m", B): (0, 120), ("k", A): (0, 100), ("k", B): (0, 80)}
    )
    said = f"{A} succeeds more often than {B} with both models"
    for comparison in (compare_arms(trials, A, B), compare_arms(trials, B, A)):
        text = str(comparison)
        assert said in text
    report = Report(trials, BY)
    frame = conclusion_of(report).frame
    assert frame is not None
    other = compare_arms(trials, B, A).frame
    assert frame["p_holm"].tolist() == pytest.approx(other["p_holm"].tolist())
    assert frame["difference"].tolist() == pytest.approx(other["difference"].tolist())


def test_conclusion_and_cells_are_worded_once() -> None:
    # 33 of 40 is 82.5 %.
    report = Report(frame_of({("m", A): (0, 33), ("k", A): (0, 20)}, 40))
    heading = conclusion_of(report).first
    for text in (report.text(400), report.html(page=True), report.markdown()):
        assert heading in " ".join(text.split())
    for text in (report.text(400), report.html(), report.markdown(), repr(report.matrix())):
        assert "83 %" in text
        assert "82 %" not in text


def test_the_whole_equals_its_parts() -> None:
    verdicts = ["clean", "repaired (lossless)", "repaired (lossy)", "none", "invalid", "clean"]
    rows = pd.DataFrame(
        {
            "outcome": ["ungraded"] * 6 + ["provider_error"],
            "sub_code": [""] * 7,
            "error_code": ["", "", "", "", "validate.type", "", ""],
            "target": [None] * 7,
            "verdict": [*verdicts, None],
        }
    )
    account = account_of(rows)
    assert account.text == (
        "1 of 6 answers cannot be executed. 4 can: 2 as written, 1 after repair, 1 after lossy "
        "repair. 1 holds no call. 1 request got no answer."
    )
    assert account_of(rows[:3]).text == (
        "All 3 answers can be executed. 1 as written, 1 after repair, 1 after lossy repair."
    )
    bare = "No tools were given, so names and arguments were not checked."
    assert bare in account_of(rows.assign(tools_json="[]")).rest
    some = rows.assign(tools_json=["[]", *["[{}]"] * 6])
    assert "1 had no tools, so names" in account_of(some).rest


def test_a_run_without_answers_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "s.db")
    models = {"m": tp.Model("openai/x", api_key="k", price=(0, 0))}
    with tp.Lab(store) as lab:
        plan = lab.plan(tp.example_cases(demo=True)[:2], models, [A, B])
        run = lab.run(plan, max_calls=0, progress=False)
        assert conclusion_of(run.report()).text == "There are no answers. 4 requests got no answer."
        assert "has a target" not in str(compare_arms(run.frame(), A, B))
    assert main(["reparse", run.run_id, "--store", store, "--json"]) == 0
    assert [row["outcome"] for row in json.loads(capsys.readouterr().out)] == [None, None]


def test_compare_with_one_run_compares_within_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "s.db")
    rows = [
        {"case_id": f"c{n}", "model": m, "raw": CALL % (n if m == "m" else -1), "tools": [TOOL],
         "target": [{"name": "f", "arguments": {"a": n}}]}
        for n in range(9) for m in ("m", "k")
    ]  # fmt: skip
    with tp.Lab(store) as lab:
        lab.ingest(rows, protocol="hermes", progress=False)
    assert main(["compare", "--store", store]) == 0
    out, err = capsys.readouterr()
    assert "m succeeds more often than k" in out
    assert "one run" in err
    assert main(["compare", "--store", store, "--fail-on-regression"]) == 2
