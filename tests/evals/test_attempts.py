"""An attempt is never an abstention, in whatever format; and what only shows a call is no attempt.

`cases_evals/attempts.jsonl` holds texts labelled by hand: attempts, and four kinds that are none.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import asked_of, each_case
from toolparse_lab.core.toolspec import tool_specs
from toolparse_lab.evals.cases.case import Case
from toolparse_lab.evals.scoring.score import score_text
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.parser.recognition.attempts import example_spans, find_attempt, parameter_names
from toolparse_lab.parser.recognition.shown import ExampleEnds, is_shown, shown_ranges

HERE = Path(__file__).parents[1]


def rows_of(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (HERE / name).read_text("utf-8").splitlines()]


def tool(name: str, **properties: str) -> dict[str, Any]:
    members = {key: {"type": kind} for key, kind in properties.items()}
    return {"name": name, "parameters": {"type": "object", "properties": members}}


TOOLS = tool_specs(
    [
        tool("get_weather", city="string", days="integer"),
        tool("send_message", to="string", text="string"),
        tool("book_table", restaurant="string", guests="integer", time="string"),
        tool("list_files", path="string", recursive="boolean"),
    ]
)
NAMES = [one.name for one in TOOLS]
ROWS = rows_of("cases_evals/attempts.jsonl")
FORMATS = rows_of("cases/formats.jsonl")
PROTOCOLS = (*family_heads(), "auto")


def test_the_labelled_set_is_as_wide_as_it_says() -> None:
    kinds = Counter(row["kind"] for row in ROWS)
    assert set(kinds) == {"attempt", "abstention", "quotation", "refusal", "example"}
    assert min(kinds.values()) >= 20
    assert len({row["text"] for row in ROWS}) == len(ROWS) >= 200
    assert len({row["language"] for row in ROWS}) >= 12


@asked_of("row", ROWS, ids=lambda row: row["id"])
def test_labelled_texts(row: dict[str, Any]) -> None:
    sign = find_attempt(row["text"], NAMES, parameters=parameter_names(TOOLS))
    assert (sign is not None) is (row["kind"] == "attempt"), sign


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_labelled_attempt_is_an_abstention_under_any_protocol(protocol: str) -> None:
    for row in ROWS:
        result = tp.parse(row["text"], protocol, TOOLS)
        outcome = score_text(Case("c", "?", TOOLS, []), result, finish_reason="stop").outcome
        if row["kind"] == "attempt":
            assert not outcome.startswith("abstained"), row["id"]
        elif not result.calls:
            assert outcome == "abstained_correctly", row["id"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_known_format_is_an_abstention_under_any_protocol(protocol: str) -> None:
    for row in FORMATS:
        tools = tool_specs(row["tools"])
        calls = [{"name": c["name"], "arguments": c["arguments"]} for c in row["calls"]]
        targets: list[list[Any]] = [[], calls]
        result = tp.parse(row["raw"], protocol, tools)
        for wanted in targets:
            score = score_text(Case("c", "?", tools, wanted), result, finish_reason="stop")
            assert not score.outcome.startswith("abstained"), (row["id"], str(score))
            assert score.outcome != "empty", row["id"]


@asked_of("row", FORMATS, ids=lambda row: row["id"])
def test_a_call_of_a_known_format_has_a_sign_with_words_around_it(row: dict[str, Any]) -> None:
    tools = tool_specs(row["tools"])
    names, parameters = [one.name for one in tools], parameter_names(tools)
    for raw in (row["raw"], f"Let me look.\n\n{row['raw']}", f"{row['raw']}\n\nThat is all."):
        assert find_attempt(raw, names, parameters=parameters) is not None, raw


@each_case
def test_what_only_shows_something(text: str, shown: list[str]) -> None:
    assert [text[start:end] for start, end in shown_ranges(text)] == shown


def test_quotation_marks() -> None:
    assert is_shown("He wrote “f(x=1)”.", 10)
    assert is_shown('He wrote "f(x=1)".', 10)
    assert not is_shown('He wrote "f". f(x=1)', 14)


def test_an_example_ends_where_its_format_says() -> None:
    text = '> <tool_call>{"name": "get_weather"}</tool_call>\nget_weather(city="Oslo")'
    result = tp.parse(text, "hermes", TOOLS)
    (span,) = example_spans(result)
    assert span.of(text) == text.split("\n")[0][2:]
    assert "call.looks-like" in {problem.code for problem in result.problems}
    # A blank line inside a call does not end it.
    text = "see “<c>\n\n{}</c>”, f(x=1)"
    assert text[: ExampleEnds(text, ["</c>"]).after(5)].endswith("</c>")
    assert ExampleEnds("see <c>{}\n\nmore").after(4) == 9
