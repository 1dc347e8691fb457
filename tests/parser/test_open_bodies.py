"""Nothing is executable out of an open, abandoned, forced or cut body."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.core_cases import SHIPPED, load
from tests.laws import EXHAUSTIVE, check_all
from tests.tables import asked_of, table
from tests.tools import object_schema, tool_named
from toolparse_lab.core.types import CallEnd, Withdrawn
from toolparse_lab.entry.parse import Reader

TOOLS = [
    tool_named("note", content="string", title="string"),
    tool_named("delete", id="string"),
    tool_named("ping"),
    tool_named("tag", tag="string", tags={"type": "array", "items": {"type": "string"}}),
    tool_named("user", user_id="string", note="string", user=object_schema(name="string")),
]
CASES = [(row["title"], row) for row in load("open_bodies.jsonl")]
SPOKEN = [pytest.param(row, id=title) for title, row in CASES if "finish_reason" not in row]
FORCED = [pytest.param(row, id=title) for title, row in CASES if "finish_reason" in row]


@asked_of("row", SPOKEN)
def test_only_these_calls_are_executable(row: dict[str, Any]) -> None:
    result = check_all(row["raw"], row["protocol"], TOOLS)
    executable = [call for call in result.calls if call.valid]
    assert [call.name for call in executable] == row.get("executable", [])
    if "arguments" in row:
        assert [call.arguments for call in executable] == row["arguments"]
    codes = {problem.code for call in result.calls for problem in call.problems}
    assert set(row.get("codes", ())) <= codes
    assert set(row.get("problems", ())) <= {problem.code for problem in result.problems}


@asked_of("row", FORCED)
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "delete"}}]
)
def test_a_forced_call_obeys_the_finish_reason(row: dict[str, Any], choice: Any) -> None:
    middleware = tp.create_tool_middleware(row["protocol"])
    turn = middleware.transform_params({"messages": [], "tools": TOOLS, "tool_choice": choice})
    whole = middleware.wrap_generate(turn, row["raw"], finish_reason=row["finish_reason"])
    assert [call["function"]["name"] for call in whole.tool_calls] == row["executable"]

    stream = middleware.wrap_stream(turn)
    for char in row["raw"]:
        assert not stream.feed(char)
    deltas, answer = stream.close(row["finish_reason"])
    called = [call["function"]["name"] for call in answer.tool_calls]
    assert called == row["executable"]
    assert answer.message["content"] == whole.message["content"]
    assert any("tool_calls" in delta for delta in deltas) == bool(row["executable"])


def test_calls_withdrawn_from_a_stream_are_named_at_its_end() -> None:
    raw = 'I could <tool_call>{"name": "ping"}</tool_call> but no.\n</think>\nHello'
    parser = tp.stream("hermes", TOOLS)
    events = [event for char in raw for event in parser.feed(char)]
    assert [e.calls[0].status for e in events if isinstance(e, CallEnd)] == ["ok"]
    result = parser.close()
    (withdrawn,) = (e for e in parser.last_events() if isinstance(e, Withdrawn))
    assert withdrawn.calls == result.calls
    assert result.calls[0].status == "draft"
    assert not result.calls[0].valid


NESTED = [(row["protocol"], row["raw"], TOOLS) for row in table(__file__)]
FORMATS = [
    (row["format"], row["raw"], row["tools"])
    for row in load("formats.jsonl", SHIPPED)
    if row["format"] in tp.protocols()
]


@asked_of(("protocol", "raw", "tools"), [*FORMATS, *NESTED])
@pytest.mark.parametrize("auto", [False, True], ids=["own", "auto"])
def test_no_prefix_executes_what_the_whole_does_not(
    protocol: str, raw: str, tools: list[Any], auto: bool
) -> None:
    reader = Reader("auto" if auto else protocol, tools)
    wanted = [(c.name, c.arguments_json) for c in reader.parse(raw).calls if c.valid]
    step = 1 if EXHAUSTIVE else 29
    for end in range(len(raw) % step, len(raw), step):
        calls = [(c.name, c.arguments_json) for c in reader.parse(raw[:end]).calls if c.valid]
        assert calls == wanted[: len(calls)], raw[:end]
