"""What a report says first: every shape of a difference and of none has a true sentence."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import toolparse_lab as tp
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
SENTENCES: Mapping[str, tuple[Mapping[tuple[str, str], tuple[int, int]], str]] = {
    "one cell": (
        {("m", A): (0, 150)},
        "150 of 200 answers hold the right call. 75 % (69–81 %).",
    ),
    # 60 cases flip one way: p is 2 / 2 ** 60.
    "one pair": (
        {("m", A): (0, 180), ("m", B): (0, 120)},
        f"{A} succeeds more often than {B}. By 30 points, on the same 200 cases; p < 0.001 "
        "(McNemar). 300 of 400 answers hold the right call.",
    ),
    "both strata": (
        {("m", A): (0, 180), ("m", B): (0, 120), ("k", A): (0, 100), ("k", B): (0, 80)},
        f"{A} succeeds more often than {B} with both models. By 30 points with m and 10 with k, on "
        "the same 200 cases; both p < 0.001 (McNemar, Holm). 480 of 800 answers hold the right "
        "call.",
    ),
    # 5 and 3 cases flip either way with k: the sum of 8 coins is 2 or more from nothing with .727.
    "one stratum of two": (
        {("m", A): (0, 180), ("m", B): (0, 120), ("k", A): (0, 100), ("k", B): (5, 103)},
        f"{A} succeeds more often than {B} with m; they do not differ by more than chance explains "
        f"with k. {A} less {B}, in points: +30 (",
    ),
    "nothing differs": (
        {("m", A): (0, 100), ("m", B): (5, 103)},
        f"{A} and {B} do not differ by more than chance explains. {A} less {B}, in points: +1 (−2 "
        "to +4), on the same 200 cases; p = 0.727 (McNemar).",
    ),
    "opposite": (
        {("m", A): (0, 180), ("m", B): (0, 120), ("k", A): (0, 80), ("k", B): (0, 120)},
        f"{A} succeeds more often than {B} with m, and less often with k.",
    ),
    "models alone": (
        {("m", A): (0, 180), ("k", A): (0, 120)},
        "m succeeds more often than k. By 30 points",
    ),
    "the best of three": (
        {("m", A): (0, 180), ("m", B): (0, 120), ("m", "gemma"): (0, 110)},
        f"{A} succeeds more often than both others. By 30 to 35 points, on the same 200 cases; p < "
        "0.001 (McNemar, Holm, and for every pair).",
    ),
    "two of three are alike": (
        {("m", A): (0, 180), ("m", B): (0, 120), ("m", "gemma"): (2, 181)},
        f"{A} succeeds more often than {B}; gemma does not differ from it by more than chance",
    ),
    "one of three differs with one model": (
        {
            ("m", A): (0, 180),
            ("m", B): (0, 120),
            ("m", "gemma"): (2, 181),
            ("k", A): (0, 100),
            ("k", B): (5, 103),
            ("k", "gemma"): (2, 99),
        },
        f"{A} succeeds more often than {B} with m; gemma does not differ from it by more than "
        "chance explains. By 30 points, on the same 200 cases; p < 0.001",
    ),
    "none of three": (
        {("m", A): (0, 100), ("m", B): (5, 103), ("m", "gemma"): (2, 99)},
        f"{A} has the highest rate of 3 formats, but from none does it differ by more than chance "
        "explains.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_the_first_sentence(name: str) -> None:
    cells, said = SENTENCES[name]
    report = Report(frame_of(cells), BY)
    text = conclusion_of(report).text
    assert text.startswith(said)
    # The same words on the page and in a terminal.
    heading = conclusion_of(report).first
    assert heading in report.html(page=True)
    assert heading in " ".join(report.text(400).split())


def test_a_baseline_is_what_all_others_are_held_against() -> None:
    frame = frame_of({("m", A): (0, 180), ("m", B): (0, 120), ("m", "gemma"): (0, 60)})
    text = conclusion_of(Report(frame, BY, baseline=B)).text
    assert text.startswith(f"{B} succeeds more often than gemma; {A} succeeds more often than {B}.")


def test_a_comparison_has_names_and_the_words_of_the_report() -> None:
    trials = frame_of(SENTENCES["both strata"][0])
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


def test_one_cell_is_worded_once() -> None:
    # 33 of 40 is 82.5 %.
    report = Report(frame_of({("m", A): (0, 33), ("k", A): (0, 20)}, 40))
    for text in (report.text(200), report.html(), report.markdown(), repr(report.matrix())):
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
