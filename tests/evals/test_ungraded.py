"""A log without targets: what its report says all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from toolparse_lab.cli.app import main

PARAMETERS = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
TOOLS = [{"name": "f", "parameters": PARAMETERS}]
CALL = '<tool_call>{"name": "f", "arguments": {"a": 1}}</tool_call>'
ANSWERS = {
    "clean": CALL,
    "repaired": CALL.replace("1}", "1,}"),
    "invalid": CALL.replace('"a"', '"b"'),
    "refused": CALL.replace("1}", '1, "a": 2}'),
    "truncated": CALL[:40],
    "looks like a call": "<tool_call>f a=1</tool_call>",
    "text": "Hello.",
}


def rows(times: int = 5, **target: Any) -> Iterator[dict[str, Any]]:
    for n in range(times):
        for kind, output in ANSWERS.items():
            name = f"{kind} {n}"
            yield {"case_id": name, "input": name, "output": output, "model": "m", **target}


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[tp.Lab]:
    with tp.Lab(tmp_path / "runs.db") as opened:
        yield opened


def test_what_is_known_without_a_target(lab: tp.Lab) -> None:
    run = lab.ingest(rows(), tools=TOOLS, protocol="hermes", progress=False)
    report = run.report()
    assert not report.has_targets
    (row,) = report.ungraded.to_dict("records")
    assert (row["n"], row["n_cases"], row["attempts"]) == (35, 35, 30)
    assert row["executable"] == pytest.approx(1 / 3)
    assert row["ci_low"] < 1 / 3 < row["ci_high"]
    assert sum(row[kind] for kind in ANSWERS) == pytest.approx(1)
    text = report.text(width=200)
    assert "35 answers without a target" in text
    assert "executable" in text
    assert "ungraded/invalid" in text
    page = report.html(page=True)
    assert "Without a target" in page
    assert "may be executed" in page
    assert "Less and more help" not in page
    assert "## Without a target" in report.markdown()


def test_the_matrix_has_the_share_that_may_be_executed(lab: tp.Lab) -> None:
    run = lab.ingest(rows(), tools=TOOLS, protocol="hermes", progress=False)
    for matrix in (run.matrix(), run.report().matrix()):
        assert matrix.measure == "executable"
        assert matrix.table.loc["hermes", "m"] == pytest.approx(1 / 3)
        assert repr(matrix).startswith("executable, policy safe")


def test_beside_graded_answers_they_have_a_table_of_their_own(lab: tp.Lab) -> None:
    target = [{"name": "f", "arguments": {"a": 1}}]
    graded = ({**row, "case_id": f"g {row['case_id']}"} for row in rows(1, target=target))
    run = lab.ingest([*rows(1), *graded], tools=TOOLS, protocol="hermes", progress=False)
    report = run.report()
    assert report.has_targets
    assert report.frame["n"].sum() == 7
    assert report.ungraded["n"].tolist() == [7]
    text = report.text(width=200)
    assert "7 trials judged" in text
    assert "without a target" in text
    assert run.matrix().measure == "success"


def test_with_targets_alone_nothing_of_it_is_there(lab: tp.Lab) -> None:
    target = [{"name": "f", "arguments": {"a": 1}}]
    run = lab.ingest(rows(1, target=target), tools=TOOLS, protocol="hermes", progress=False)
    assert run.report().ungraded.empty
    assert "without a target" not in run.report().text(width=200)


def test_ingest_ends_with_the_verdicts(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "log.jsonl"
    lines = [f'{{"input": "q{i}", "raw": "Hello {i}."}}\n' for i in range(3)]
    file.write_text("".join(lines))
    assert main(["ingest", str(file), "--store", str(tmp_path / "s.db")]) == 0
    out = capsys.readouterr().out
    assert "3 answers without a target, by their calls:" in out
    assert "no call" in out
