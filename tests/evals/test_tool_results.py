"""Rows of a case that answer for its tools."""

from __future__ import annotations

from typing import Any

from tests.tables import every_case
from tests.tools import tool_named
from toolparse_lab.core.toolspec import ToolSpec, tool_specs
from toolparse_lab.evals.cases.case import check_answer, matches_answer
from toolparse_lab.evals.cases.tool_results import check_results, runnable_of

TOOLS: tuple[ToolSpec, ...] = tool_specs(
    [tool_named("f", x="number", unit={"default": "m"}), {"name": "g"}]
)
NONE = {"type": "error-text", "value": "there is no result for these arguments"}


def test_rows_are_found_by_their_arguments() -> None:
    rows = [
        {"name": "f", "arguments": {"x": 1.0}, "output": "one"},
        {"name": "f", "arguments": {"x": 2}, "output": "two"},
    ]
    f = runnable_of(rows, TOOLS)["f"]
    assert [f(x=2), f(x=1), f(x=2), f(x=3)] == ["two", "one", "two", NONE]
    assert f(unit="m", x=1) == "one", "a default of the schema may be written"
    assert f(x=1, unit="km") == NONE


def test_equal_rows_answer_in_order_and_the_last_stays() -> None:
    rows: list[dict[str, Any]] = [{"name": "f", "arguments": {}, "output": n} for n in (1, 2)]
    f = runnable_of(rows, TOOLS)["f"]
    assert [f(), f(), f()] == [1, 2, 2]


def test_rows_without_arguments_answer_in_order_then_the_default() -> None:
    rows: list[dict[str, Any]] = [
        {"name": "f", "output": "else", "default": True},
        {"name": "f", "output": 1},
        {"name": "f", "arguments": {"x": 5}, "output": "five"},
        {"name": "f", "output": 2},
        {"name": "g", "output": None},
    ]
    tools = runnable_of(rows, TOOLS)
    f = tools["f"]
    assert [f(x=5), f(x=1), f(x=5), f(x=2), f(x=3), f()] == ["five", 1, "five", 2, "else", "else"]
    assert [tools["g"](self=1), tools["g"]()] == [None, NONE]


def test_every_conversation_has_its_own_count() -> None:
    rows = [{"name": "g", "output": 1}]
    assert runnable_of(rows, TOOLS)["g"]() == runnable_of(rows, TOOLS)["g"]() == 1


def test_alternatives_in_arguments() -> None:
    rows = [{"name": "f", "arguments": {"x": {"$any": [1, 2]}}, "output": "few"}]
    assert check_results(rows, TOOLS) is None
    assert runnable_of(rows, TOOLS)["f"](x=2) == "few"


@every_case
def test_what_cannot_be_read_is_named(rows: Any, says: str) -> None:
    import re

    complaint = check_results(rows, TOOLS)
    assert complaint is not None
    assert re.search(says, complaint[0])


# What the last text of a conversation is to say.


@every_case
def test_matching(wanted: Any, text: str, matches: bool) -> None:
    assert check_answer(wanted) is None
    assert matches_answer(wanted, text) is matches


@every_case
def test_what_cannot_be_matched_is_refused(wanted: Any) -> None:
    complaint = check_answer(wanted)
    assert complaint is not None
    assert complaint[0]
