"""No call is lost in silence: what looks like one is told, and a mention in a sentence is none."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from benchmarks import silent_misses
from tests.core_cases import load
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.scoring.score import score_text
from toolparse_lab.formats.registry import family_heads

ROWS = load("attempts_and_remarks.jsonl")
PARAMETERS = {
    "skill_view": ["name"],
    "note": ["text"],
    "add": ["x", "y"],
    "get_weather": ["city", "days"],
    "send_mail": ["to", "subject", "body"],
    "search_files": ["pattern", "limit"],
    "book_table": ["guests", "time"],
}


def tools_of(row: dict[str, Any]) -> list[tp.ToolSpec]:
    return [
        tp.ToolSpec.of(
            {
                "name": name,
                "parameters": {
                    "type": "object",
                    "properties": {key: {"type": "string"} for key in PARAMETERS.get(name, [])},
                },
            }
        )
        for name in row["tools"]
    ]


def is_told(result: tp.ParseResult, row: dict[str, Any]) -> bool:
    """Whether the result says of a text what its label says."""
    problems = [problem for problem in result.problems if problem.code == "call.looks-like"]
    if row["label"] == "remark":
        return not result.calls and all(problem.severity == "info" for problem in problems)
    return bool(result.calls) or any(problem.severity == "error" for problem in problems)


@pytest.mark.parametrize("protocol", [*family_heads(), "auto"])
def test_an_attempt_is_no_abstention_and_a_remark_is_no_attempt(protocol: str) -> None:
    wrong = []
    for row in ROWS:
        tools = tools_of(row)
        result = tp.parse(row["text"], protocol, tools)
        outcome = score_text(Case("c", "?", tuple(tools), []), result, finish_reason="stop").outcome
        assert list(result.all_problems()) or result.calls, row["text"]
        if row["label"] == "remark":
            assert not any(call.ok and call.valid for call in result.calls), row["text"]
        abstains = outcome.startswith("abstained")
        if abstains != (row["label"] == "remark") or not is_told(result, row):
            wrong.append((row["label"], outcome, row["text"]))
    assert len(wrong) <= 0.02 * len(ROWS), wrong


def test_the_problem_says_where_which_tool_and_what_would_read_it() -> None:
    tools = tools_of({"tools": ["note", "add"]})
    result = tp.parse('Right away.\nnote(text="milk")', "hermes", tools)
    problem = next(p for p in result.problems if p.code == "call.looks-like")
    assert problem.severity == "error"
    assert problem.span is not None
    assert problem.span.of(result.raw).startswith("note(")
    assert "note" in problem.message
    assert "'auto' reads one" in problem.message
    assert not result.ok


def test_no_attempt_in_a_form_of_no_format_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    assert silent_misses.main(["--n", "120", "--misses", "5"]) == 0, capsys.readouterr().out
