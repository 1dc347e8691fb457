"""A log without targets: what its report says all the same."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import table
from toolparse_lab.cli.app import main
from toolparse_lab.evals.reports.figures.trial_rows import TrialRows
from toolparse_lab.evals.reports.pages.html import failing_cells

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
    assert "validate." in text
    page = report.html(page=True)
    assert "Without a target" in page
    assert "may be executed" in page
    assert "Less and more help" not in page
    assert "not judged 1" not in page, "the verdicts say what the answers are"
    causes = [line.split("  ")[0] for line in text.partition("What goes wrong")[2].splitlines()]
    causes = causes[3 : causes.index("", 2)]
    assert len(set(causes)) == len(causes), "a cause has one row, whatever its outcomes are"
    assert "## Without a target" in report.markdown()


def test_the_matrix_has_the_share_that_may_be_executed(lab: tp.Lab) -> None:
    run = lab.ingest(rows(), tools=TOOLS, protocol="hermes", progress=False)
    for matrix in (run.matrix(), run.report().matrix()):
        assert matrix.measure == "executable"
        assert matrix.table.loc["hermes", "m"] == pytest.approx(1 / 3)
        assert repr(matrix).startswith("executable, policy safe")


def test_two_arms_are_compared_by_what_may_be_executed(lab: tp.Lab) -> None:
    # 20 cases: b cannot be executed in 8 of them, and holds no call in one.
    kinds = {"a": ["clean"] * 20, "b": [*["invalid"] * 8, "text", *["repaired"] * 11]}
    log = [
        {"case_id": f"c{n}", "input": f"q{n}", "output": ANSWERS[kind], "model": model}
        for model, own in kinds.items()
        for n, kind in enumerate(own)
    ]
    run = lab.ingest(log, tools=TOOLS, protocol="hermes", progress=False)
    compared = run.compare("a", "b")
    (row,) = compared.frame.to_dict("records")
    assert (row["n_cases"], row["only_a"], row["only_b"]) == (19, 8, 0)
    assert row["difference"] == pytest.approx(-8 / 19)
    assert row["p"] == pytest.approx(2 / 2**8)
    assert set(compared.flips["outcome_b"]) == {"invalid"}
    assert any("No answer has a target" in note for note in compared.notes)
    told = " ".join(run.report().text().split())
    assert "a succeeds more often than b. By 42 points, on the same 19 cases" in told


def test_beside_graded_answers_they_have_a_table_of_their_own(lab: tp.Lab) -> None:
    target = [{"name": "f", "arguments": {"a": 1}}]
    graded = ({**row, "case_id": f"g {row['case_id']}"} for row in rows(1, target=target))
    run = lab.ingest([*rows(1), *graded], tools=TOOLS, protocol="hermes", progress=False)
    report = run.report()
    assert report.has_targets
    assert report.frame["n"].sum() == 7
    assert report.ungraded["n"].tolist() == [7]
    text = report.text(width=200)
    assert "7 answers judged" in text
    assert "Without a target: " in text
    assert run.matrix().measure == "success"


def test_with_targets_alone_nothing_of_it_is_there(lab: tp.Lab) -> None:
    target = [{"name": "f", "arguments": {"a": 1}}]
    run = lab.ingest(rows(1, target=target), tools=TOOLS, protocol="hermes", progress=False)
    assert run.report().ungraded.empty
    assert "Without a target" not in run.report().text(width=200)


def test_ingest_ends_with_the_verdicts(tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / "log.jsonl"
    lines = [f'{{"input": "q{i}", "raw": "Hello {i}."}}\n' for i in range(3)]
    file.write_text("".join(lines))
    assert main(["ingest", str(file), "--store", str(tmp_path / "s.db")]) == 0
    out = capsys.readouterr().out
    assert out.rstrip().endswith("“right” is not judged.")
    assert "0 of 3 answers cannot be executed. 3 hold no call." in out


# A server with tools that leaves calls in its text: 77 clean ones are no failures, and hide none.
# By hand: 10 + 9 invalid, 12 cut inside the call, 8 of an unknown tool, 7 lost attempts are 46 of
# 200; five requests got no answer.
MIXED: list[tuple[int, dict[str, Any], str, str]] = [
    (row["n"], row["row"], row["outcome"], row["cause"])
    for row in table(__file__)
    if row["test"] == "one_definition_of_a_failure"
]


def test_one_definition_of_a_failure(tmp_path: Path, capsys: Any) -> None:
    file, store = tmp_path / "log.jsonl", str(tmp_path / "s.db")
    lines = [
        {"case_id": f"{k}-{i}", "tools": TOOLS, "request": {"tools": TOOLS}, **row}
        for k, (n, row, _, _) in enumerate(MIXED)
        for i in range(n)
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    assert main(["ingest", str(file), "--store", store, "--protocol", "hermes"]) == 0
    told = capsys.readouterr().out
    # Clean are 77 and 30; 20 + 14 + 13 try nothing.
    sentence = (
        "46 of 200 answers cannot be executed. 107 can, as written. 47 hold no call. 5 requests got "
        "no answer. No expected answers, so “right” is not judged."
    )
    assert " ".join(told.split()).endswith(sentence)
    causes = {line.split()[-1]: int(line.split()[-2]) for line in told.splitlines()[3:8]}
    stopping = {c: n for n, _, o, c in MIXED if c and o != "provider_error"}
    assert Counter(causes.values()) == Counter(stopping.values())
    expected = Counter({(o, c): n for n, _, o, c in MIXED if c})
    with tp.Lab(store) as lab:
        run = lab.open()
        assert Counter((t.outcome, t.cause) for t in run.failures()) == expected
        turned_away = {str(t.blame) for t in run.failures() if t.cause == "rate_limited"}
        assert turned_away == {"Server turned it away: a rate or a quota was used up."}
        report = run.report()
        listed = report.failures.set_index(["outcome", "sub_code"])["n"].to_dict()
        assert listed == expected
        assert main(["report", "--score", "--failed", "--json", "--store", store]) == 0
        assert len(json.loads(capsys.readouterr().out)) == 51
        assert report.title == "log.jsonl"
        page = report.html(page=True)
        assert "46 of 200 answers cannot be executed" in page
        assert "46 of 200 answers cannot be executed" in report.text()
        assert sum(cell.n for cell in failing_cells(report)) == 46
        rows = TrialRows(run.frame())
        failing = [group.codes for group in rows.groups[: rows.failing]]
        assert {code: n for codes in failing for code, n in codes.items()} == stopping
        browser = run.browse()
        assert repr(browser).startswith("Browser(46 of 200 answers cannot be executed. 107 can")
        assert '<td class="r">46 of 200</td>' in browser.static_html()
        # Of attempts: 200 answers without 47 that try nothing.
        cells = report.ungraded
        assert (cells["n"].sum(), cells["attempts"].sum()) == (200, 153)
        assert (cells["executable"] * cells["attempts"]).sum() == pytest.approx(107)
        assert main(["view", "latest", "--store", store, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["case"]["id"] == "1-0"


def test_a_filter_gives_the_share_of_each_cell_s_own_answers() -> None:
    frame = tp.Lab(":memory:").ingest(
        [{"case_id": f"{model}{i}", "model": model, "raw": CALL if i < good else CALL[:30],
          "prompt_protocol": "hermes", "tools": TOOLS}
         for model, good in (("a", 3), ("b", 1)) for i in range(4)]
    ).frame()  # fmt: skip
    rows = TrialRows(frame)
    open_cells = {cell[1]: cell[2:5] for cell in rows.cells({})["cells"]}
    assert open_cells == {"a": [3, 4, 0.75], "b": [1, 4, 0.25]}
    cut = rows.cells({"where": {"cause": ["call.truncated"]}})
    assert {cell[1]: cell[2:5] for cell in cut["cells"]} == {"a": [1, 4, 0.25], "b": [3, 4, 0.75]}
    assert cut["measure"] == "answers that match, of the cell's own"


def test_a_page_and_a_report_give_a_cell_one_share(lab: tp.Lab) -> None:
    # By hand: case t has 3 of 3 good answers, u has 1 of 1, v has 0 of 1. (1 + 1 + 0) / 3 = 67 %.
    told = [("t", CALL)] * 3 + [("u", CALL), ("v", CALL[:30])]
    run = lab.ingest(
        [{"case_id": id, "input": id, "raw": raw, "model": "m", "prompt_protocol": "hermes",
          "tools": TOOLS, "latency": n} for n, (id, raw) in enumerate(told)]
    )  # fmt: skip
    report = run.report()
    (cell,) = TrialRows(run.frame(), cluster=run.plan.cluster or None).cells({})["cells"]
    (row,) = report.ungraded.to_dict("records")
    assert cell[2:4] == [4, 5]
    assert cell[4:] == [row["executable"], row["ci_low"], row["ci_high"]]
    assert row["executable"] == pytest.approx(2 / 3)
    words = "a share counts each case once: m · hermes has 67 %, and 4 of its 5 answers."
    assert any(note.endswith(words) for note in report.notes)


def test_all_tables_of_a_run_go_by_its_clusters(lab: tp.Lab) -> None:
    # Questions of one task are no independent ones.
    want = [{"name": "f", "arguments": {"a": 1}}]
    told = [(f"t{n % 3}", f"{n}", CALL if n % 3 else CALL[:30]) for n in range(12)]
    run = lab.ingest(
        [{"task_id": id, "input": q, "raw": raw, "model": "m", "prompt_protocol": "hermes",
          "tools": TOOLS, "target": want} for id, q, raw in told]
    )  # fmt: skip
    report = run.report(by=["model", "prompt_protocol", "arm"])
    (own,) = report.frame.to_dict("records")
    (cell,) = TrialRows(run.frame(), cluster=run.plan.cluster).cells({})["cells"]
    ends = (own["success"], own["ci_low"], own["ci_high"])
    assert cell[4:] == list(ends)
    for frame in (run.matrix().frame, report.matrix().frame, report.sensitivity):
        assert tuple(frame.iloc[0][["success", "ci_low", "ci_high"]]) == ends
    assert lab.diff(run, run).cluster == report.cluster == "metadata_conversation_id"


def test_a_report_shows_a_wrong_value_beside_the_wanted_one(lab: tp.Lab) -> None:
    target = [{"name": "f", "arguments": {"a": 2}}]
    asked = [{"role": "user", "content": "two?"}]
    row = {"case_id": "c", "messages": asked, "output": CALL, "model": "m", "target": target}
    run = lab.ingest([row], tools=TOOLS, protocol="hermes", progress=False)
    page = run.report().html(page=True)
    assert "“a” is 1; 2 was expected." in page
    assert "<dd>two?</dd>" in page


def test_two_logs_are_known_by_their_files(lab: tp.Lab, tmp_path: Path) -> None:
    runs = []
    for name in ("old.jsonl", "new.jsonl"):
        file = tmp_path / name
        file.write_text(json.dumps({"input": name[:3], "raw": CALL}) + "\n")
        runs.append(lab.ingest(file, tools=TOOLS, model="m", protocol="hermes", progress=False))
    found = lab.diff(*runs)
    assert (found.a, found.b) == ("old.jsonl", "new.jsonl")
