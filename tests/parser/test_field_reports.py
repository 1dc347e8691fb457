"""Situations out of public reports: `cases/field_reports.jsonl`, whose README says what it expects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import SHIPPED, load
from tests.laws import in_pieces
from tests.tables import asked_of

CASES = load("field_reports.jsonl", SHIPPED)
READ = [case for case in CASES if case["kind"] != "ingest"]
INGESTED = [case for case in CASES if case["kind"] == "ingest"]


def executable(result: tp.ParseResult) -> list[list[Any]]:
    return [[call.name, call.arguments] for call in result.calls if call.ok and call.valid]


def holds(result: tp.ParseResult, expect: Any) -> bool:
    if isinstance(expect, dict):
        return any(holds(result, one) for one in expect["any"])
    calls = executable(result)
    if expect == "no_valid_call":
        return not calls
    if expect == "refused":
        told = [p for p in result.all_problems() if p.severity == "error"]
        return not calls and bool(told)
    if expect == []:
        refused = [call for call in result.calls if call.status != "draft"]
        return not calls and not refused
    return bool(calls == expect)


@asked_of("case", READ, ids=lambda case: case["id"])
def test_reports(case: dict[str, Any]) -> None:
    text, tools = case["text"], case["tools"]
    for protocol in dict.fromkeys((case["protocol"], "auto")):
        if case["kind"] == "text":
            results = [
                tp.parse(text, protocol, tools),
                in_pieces(text, 1, protocol, tools),
                in_pieces(text, 4, protocol, tools),
            ]
        else:
            results = [tp.parse(json.loads(text), protocol, tools)]
        for result in results:
            assert holds(result, case["expect"]), (
                protocol,
                executable(result),
                [problem.code for problem in result.all_problems()],
            )


def logged(case: dict[str, Any]) -> tuple[list[dict[str, Any]], Any]:
    """The rows of the log, and the tools beside it: a row of a case is one answer, or its text."""
    text = case["text"]
    if text is not None and text.startswith("["):
        return json.loads(text), case["tools"] or None
    row: dict[str, Any] = {"id": "c1", "input": "Is there a berth?", "tools": case["tools"]}
    row |= {"target": [], "model": "m", "protocol": case["protocol"]}
    if text is None:
        row["error"] = "503"
    elif text.startswith("{"):
        row["response"] = json.loads(text)
    else:
        row["raw"] = text
    return [row], None


@pytest.mark.parametrize("case", INGESTED, ids=lambda case: case["id"])
def test_rows_of_logs(case: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("litellm", reason="runs need the lab extra")
    rows, tools = logged(case)
    with tp.Lab(tmp_path / "runs.db") as lab:
        run = lab.ingest(rows, cases=None, tools=tools, protocol=case["protocol"])
        trial, *_ = run.trials_df().to_dict("records")
        result = run.trials()[0].result
        report = run.report().frame.iloc[0]
    expect = case["expect"]
    if isinstance(expect, list):
        expect = {"calls": expect}
    seen = {
        "calls": executable(result) if result is not None else [],
        "outcome": trial["outcome"],
        "verdict": trial["verdict"],
        "error": trial["error"],
        "input": trial["input"],
        "tools": [tool["name"] for tool in json.loads(trial["tools_json"])],
        "counted": trial["outcome"] != "provider_error",
    }
    for name, wanted in expect.items():
        if name == "report":
            for figure, not_this in wanted.items():
                assert report[figure.removesuffix("_not")] != not_this
        elif name.endswith("_not"):
            assert seen[name.removesuffix("_not")] != wanted, name
        else:
            assert seen[name] == wanted, name
