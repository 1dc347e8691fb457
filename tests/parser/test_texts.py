"""What texts hold, in formats and outside of them: `cases_core/texts/`, whose README says the
shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import CORE, load, titled
from tests.laws import check_all, part
from tests.tables import asked_of, for_each

TEXTS = CORE / "texts"
TOOLS = json.loads((TEXTS / "tools.json").read_text("utf-8"))
SHORT = 400  # characters; longer texts are not split
ROWS = {file.stem: load(file.name, TEXTS) for file in sorted(TEXTS.glob("*.jsonl"))}
ALL = [row for rows in ROWS.values() for row in rows]


def tools_of(case: dict[str, Any]) -> Any:
    return TOOLS[case["tools"]] if isinstance(case["tools"], str) else case["tools"]


def called(result: tp.ParseResult) -> tuple[list[Any], list[Any]]:
    """Names and arguments of the calls that are ok, and of those that are valid."""
    return (
        [[call.name, call.arguments] for call in result.calls if call.ok],
        [[call.name, call.arguments] for call in result.calls if call.valid],
    )


@pytest.mark.parametrize("file", ROWS)
def test_texts_hold_these_calls(file: str) -> None:
    split = [row["title"] for row in part(ROWS[file], 3)]
    for_each(titled(ROWS[file]), lambda case: holds(case, case["title"] in split))


def holds(case: dict[str, Any], is_split: bool) -> None:
    every_split = is_split and len(case["raw"]) < SHORT
    results = [
        check_all(case["raw"], protocol, tools_of(case), every_split=every_split)
        for protocol in (case["protocol"], *case.get("also", ()))
    ]
    for result in results:
        assert called(result) == (case["calls"], case.get("valid", case["calls"]))
        recovered = [s.span.of(result.raw) for s in result.segments if s.kind == "recovered"]
        assert recovered == case.get("recovered", recovered)
        assert result.text == case.get("text", result.text)
    own = results[0]
    rules = {edit.rule for call in own.calls for edit in call.edits}
    rules |= {step.rule for call in own.calls for step in call.steps}
    assert sorted(rules) == case.get("rules", [])
    assert sorted({problem.code for problem in own.all_problems()}) == case.get("codes", [])
    if "problems" in case:
        assert [problem.code for problem in own.problems] == case["problems"]
    for call in own.calls if case.get("recovered") else ():
        assert call.confidence == 1 or call.problems[0].code == "call.recovered"


def test_without_repair_and_recovery_only_strict_calls_are_read() -> None:
    for row in part(ALL, 3):
        options = {"repair": False, "recover": False}
        strict = tp.parse(row["raw"], row["protocol"], tools_of(row), options)
        assert not any(call.edits for call in strict.calls), row["title"]
        unknown = tp.parse(row["raw"], row["protocol"])
        for result in (strict, unknown):
            assert all(segment.kind != "recovered" for segment in result.segments), row["title"]


@asked_of("case", titled([row for row in ALL if row.get("cut")]))
def test_a_text_that_ends_early_holds_the_same_calls_or_fewer(case: dict[str, Any]) -> None:
    for end in range(len(case["raw"])):
        calls, _ = called(tp.parse(case["raw"][:end], case["protocol"], tools_of(case)))
        assert calls == case["calls"][: len(calls)]
