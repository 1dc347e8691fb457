"""Tools behind HTTP, in the dialects of four validators, corrected by a model over HTTP and from a
recording."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.middleware.tool_server import TOOL, ToolServer
from tests.mock_openai import MockOpenAI
from tests.tables import each_case
from toolparse_lab.middleware.correction import (
    CorrectionContext,
    Feedback,
    HttpTool,
    ModelCorrection,
    ToolRefused,
    arun_call,
    asking,
    asking_later,
    run_call,
)
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Completion, Request
from toolparse_lab.runner.loop import run_sync
from toolparse_lab.runner.store.recording import replay, write_recording

DIALECTS = ("go", "pydantic", "fastapi", "jsonschema")


@pytest.fixture(scope="module")
def server() -> Iterator[ToolServer]:
    with ToolServer() as running:
        yield running


def right(context: CorrectionContext) -> dict[str, Any]:
    return {"lat": 59.9, "days": 2, "unit": "C"}


@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("dialect", DIALECTS)
@each_case
@pytest.mark.exhaustive(5)
def test_a_refusal_in_every_dialect_is_corrected_where_it_says(
    dialect: str, arguments: dict[str, Any], path: str, later: bool, server: ToolServer
) -> None:
    tool = HttpTool(f"{server.url}/{dialect}")
    # What the tool's schema says is not asked, so that the dialect alone tells the field.
    feedback = Feedback(detectors=("objects", "messages", "go-phrases"), policy="none")
    if later:
        call = asyncio.run(arun_call(TOOL, arguments, tool.later, correct=right, feedback=feedback))
    else:
        call = run_call(TOOL, arguments, tool, correct=right, feedback=feedback)
    assert call.ok, call
    (correction,) = call.corrections
    wrong_everywhere = dialect == "go" and path == "/unit"  # its words name no place
    assert [issue.path for issue in correction.issues] == [None if wrong_everywhere else path]
    if not wrong_everywhere:
        assert [edit.path for edit in correction.edits] == [path]
        assert call.arguments == {**arguments, path[1:]: right(None)[path[1:]]}  # type: ignore[arg-type]  # it looks at nothing
    assert call.value == {"got": dict(call.arguments)}


@each_case
def test_what_counts_as_a_success(
    orchestrator: bool, path: str, message: str | None, server: ToolServer
) -> None:
    tool = HttpTool(f"{server.url}/{path}", go_orchestrator=orchestrator)
    if message is None:
        assert tool() == ({} if path.endswith("{}") else "text")
        return
    with pytest.raises(ToolRefused) as e:
        tool()
    assert e.value.failure.message.startswith(message)
    assert e.value.failure.body == path.split("/")[2]


def test_a_tool_that_is_not_there_fails_without_its_key() -> None:
    tool = HttpTool("http://me:planted-secret@127.0.0.1:9/x", headers={"X-Key": "planted-secret"})
    with pytest.raises(ToolRefused, match="request failed") as e:
        tool(lat=1)
    assert "planted-secret" not in str(e.value) + repr(tool)


def test_the_same_model_is_asked_and_its_answer_can_be_replayed(
    tmp_path: Path, server: ToolServer
) -> None:
    tool = HttpTool(f"{server.url}/go")
    arguments = {"lat": "north", "days": 2}
    recorded: list[Completion] = []
    with MockOpenAI() as mock:
        model = tp.Model("openai/m", api_base=mock.url, api_key="none", price=(1, 1))
        messages = ({"role": "user", "content": "How warm is it?"},)
        order = {"role": "user", "content": 'say=Sorry: ```json\n{"lat": 59.9,}\n```'}
        question = Request(model, "m", messages, {"temperature": 0, "tool_choice": "required"})
        correction = ModelCorrection(question)

        def ask(request: Request) -> Completion:
            # The mock answers by the last message.
            asked = replace(request, messages=(*request.messages, order))
            recorded.append(replace(run_sync(complete(asked)), key=request.key))
            return recorded[-1]

        live = run_call(TOOL, arguments, tool, correct=asking(correction, ask), messages=messages)
        body = mock.bodies[0]
    assert "tool_choice" not in body
    assert body["temperature"] == 0
    assert next(m["content"] for m in body["messages"]) == "How warm is it?"
    assert "lat of type float64" in body["messages"][1]["content"]
    assert (live.ok, live.model_calls, live.arguments) == (True, 1, {"lat": 59.9, "days": 2})
    write_recording(tmp_path / "corrections.jsonl", recorded)
    again = replay(tmp_path / "corrections.jsonl")
    replayed = run_call(
        TOOL, arguments, tool, correct=asking(correction, again.answer), messages=messages,
        sleep=lambda seconds: None,
    )  # fmt: skip
    assert replayed == live
    later = asyncio.run(
        arun_call(TOOL, arguments, tool.later, correct=asking_later(correction, again),
                  messages=messages, sleep=lambda seconds: asyncio.sleep(0))
    )  # fmt: skip
    assert later == live
    other = run_call(
        TOOL, {"lat": "south"}, tool, correct=asking(correction, again.answer), messages=messages
    )
    assert (other.stop, other.model_calls) == ("not_recorded", 0)


def test_what_a_correction_costs_counts_even_where_it_is_no_use() -> None:
    model = tp.Model("openai/m", api_base="http://127.0.0.1:9/v1")
    question = Request(model, "m", ({"role": "user", "content": "x"},))
    answers = iter(["no", json.dumps({"lat": 1.5})])

    def ask(request: Request) -> Completion:
        return Completion(
            request.key, next(answers), prompt_tokens=30, completion_tokens=5, cost=0.01
        )

    def run(lat: Any) -> str:
        if isinstance(lat, float):
            return "sunny"
        raise ValueError("expected number")

    call = run_call(
        TOOL, {"lat": "x"}, run, correct=asking(ModelCorrection(question), ask),
        sleep=lambda seconds: None,
    )  # fmt: skip
    assert call.ok
    assert [(c.status, c.tokens, c.cost) for c in call.corrections] == [
        ("failed", 35, 0.01),
        ("applied", 35, 0.01),
    ]
