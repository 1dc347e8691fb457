"""Layer 3 in the middleware and behind litellm: a call that the schema refuses is asked about
again, whole and streamed, sync and async."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest

import toolparse_lab as tp
from tests.bridge import NOW, TIME, WAYS, ask, calls_of, checked, checked_chunks, joined, litellm
from tests.mock_openai import MockOpenAI, unseen
from tests.replay_server import Answer, Asked
from tests.tools import function_named
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.integrations.litellm_bridge import completion
from toolparse_lab.middleware import Reply, acorrect_answer, correct_answer
from toolparse_lab.middleware.correction import Feedback

TOOL = function_named(
    "get_weather",
    required=["city", "days"],
    city="string",
    days="integer",
    unit={"enum": ["C", "F"]},
)
TOOLS = [TOOL, TIME]
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def call(**arguments: Any) -> str:
    body = json.dumps({"name": "get_weather", "arguments": arguments})
    return f"<tool_call>{body}</tool_call>"


SOON = call(city="Oslo", days="soon", unit="C")
FIXED = '{"city": "Rome", "days": "3", "unit": "C"}'


class Correcting(MockOpenAI):
    """A mock that answers a correction with the next of a list."""

    def __init__(self) -> None:
        super().__init__()
        self.corrections: list[str] = []

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        last = str(body["messages"][-1]["content"])
        if "Correct the wrong fields" in last or "CORRECTED parameters" in last:
            order = self.corrections.pop(0)
            body = {**body, "messages": [{"role": "user", "content": unseen(order)}]}
        return super().chat(request, body)


@pytest.fixture
def mock() -> Iterator[Correcting]:
    litellm()
    with Correcting() as running:
        yield running


def told(answer: Any) -> dict[str, Any] | None:
    """What the bridge says of layer 3, in an answer or in the chunks of a stream."""
    if isinstance(answer, list):
        parts = [choice.delta for chunk in checked_chunks(answer) for choice in chunk.choices]
    else:
        parts = [choice.message for choice in checked(answer).choices]
    fields = [getattr(part, "provider_specific_fields", None) or {} for part in parts]
    found = [f["toolparse"]["feedback"] for f in fields if "feedback" in f.get("toolparse", {})]
    json.dumps(found)
    return found[0] if found else None


def made(answer: Any) -> list[tuple[str, Any]]:
    """The calls of an answer, their arguments read."""
    if isinstance(answer, list):
        pairs = [entry[1:] for entry in joined(answer)["calls"]]
    else:
        pairs = calls_of(answer.choices[0].message)
    return [(name, json.loads(arguments)) for name, arguments in pairs]


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3, 2)
def test_a_refused_call_is_corrected(mock: Correcting, way: str, stream: bool) -> None:
    mock.corrections = ["say=Sorry!\n```json\n" + FIXED + "\n```"]
    answer = ask(
        way, mock, "say=Well. " + SOON + NOW, tools=TOOLS, stream=stream, feedback="production",
        temperature=0.5,
    )  # fmt: skip
    # The named field is taken and coerced; the city, changed without need, is not.
    assert made(answer) == [
        ("get_weather", {"city": "Oslo", "days": 3, "unit": "C"}), ("now", {}),
    ]  # fmt: skip
    report = told(answer)
    assert report is not None
    assert (report["asked"], report["tokens"]) == (1, 15)
    assert report["seconds"] > 0
    assert report["calls"] == [
        {
            "call": 0,
            "tool": "get_weather",
            "valid": True,
            "stop": "accepted",
            "asked": 1,
            "changed": ["/days"],
            "collateral": ["/city"],
            "failures": [],
        }
    ]
    first, again = mock.bodies
    assert again["model"] == first["model"]
    assert again["temperature"] == 0.5
    assert not {"tools", "response_format", "stream"} & {k for k, v in again.items() if v}
    roles = [message["role"] for message in again["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert again["messages"][2]["content"] == "Well. " + SOON + NOW


@STREAMED
@pytest.mark.parametrize("way", ["drop-in", "async provider"])
def test_what_cannot_be_corrected_stays_as_it_was(mock: Correcting, way: str, stream: bool) -> None:
    for corrections, stop, asked in (
        (["say=I cannot.", "say=No."], "attempts_used_up", 2),
        (["status=500", "status=400"], "attempts_used_up", 2),
        (["say=" + json.dumps({"city": "Oslo", "days": "soon", "unit": "C"})], "same_arguments", 1),
        (['say={"days": "never"}', 'say={"days": "later"}'], "attempts_used_up", 2),
    ):
        mock.corrections = list(corrections)
        answer = ask(way, mock, "say=" + SOON, tools=TOOLS, stream=stream, feedback="production")
        assert made(answer) == [("get_weather", {"city": "Oslo", "days": "soon", "unit": "C"})]
        report = told(answer)
        assert report is not None
        assert (report["calls"][0]["stop"], report["asked"]) == (stop, asked)
        assert report["calls"][0]["valid"] is False
        assert mock.corrections == []
        assert "key" not in json.dumps(report)


@STREAMED
def test_nobody_is_asked_without_need(mock: Correcting, stream: bool) -> None:
    cut = SOON[:-28]
    for text, options in (
        (SOON, {}),
        (SOON, {"feedback": None}),
        (SOON, {"feedback": "cost-sensitive"}),
        (SOON, {"feedback": "production", "tool_choice": "none"}),
        (call(city="Oslo", days="3"), {"feedback": "production"}),
        (cut, {"feedback": "production"}),
        (cut, {"feedback": "production", "broken_calls": "call"}),
        (SOON.replace("get_weather", "ghost"), {"feedback": True, "unknown_tools": "call"}),
        ("Just talk.", {"feedback": "production"}),
    ):
        answer = ask("drop-in", mock, "say=" + text, tools=TOOLS, stream=stream, **options)
        assert told(answer) is None
    assert mock.calls == 9


def test_text_of_a_stream_is_not_held_back(mock: Correcting) -> None:
    mock.corrections = ["say=" + FIXED]
    chunks = ask(
        "drop-in", mock, "say=One two three. " + SOON, tools=TOOLS, stream=True, feedback=True
    )
    assert joined(chunks)["content"].strip() == "One two three."
    assert joined(chunks)["reasons"] == ["tool_calls"]
    texts = [i for i, c in enumerate(chunks) if c.choices and c.choices[0].delta.content]
    calls = [i for i, c in enumerate(chunks) if c.choices and c.choices[0].delta.tool_calls]
    assert len(texts) > 2
    assert max(texts) < min(calls)


def test_a_stream_that_breaks_off_is_not_corrected(mock: Correcting) -> None:
    chunks: list[Any] = []
    source = completion(
        "openai/m", [{"role": "user", "content": unseen("abort=40 say=" + SOON + "x" * 200)}],
        tools=TOOLS, api_base=mock.url, api_key="k", stream=True, feedback=True, max_retries=0,
    )  # fmt: skip
    with pytest.raises(openai.APIError):
        chunks.extend(source)
    assert mock.calls == 1
    assert made(chunks)[0][1]["days"] == "soon"


def test_usage_still_ends_a_stream(mock: Correcting) -> None:
    mock.corrections = ["say=" + FIXED]
    chunks = ask(
        "drop-in", mock, "say=" + SOON, tools=TOOLS, stream=True, feedback=True,
        stream_options={"include_usage": True},
    )  # fmt: skip
    assert chunks[-1].usage.total_tokens == 15
    assert made(chunks)[0][1]["days"] == 3


def test_calls_that_the_provider_read_are_corrected(mock: Correcting) -> None:
    mock.corrections = ["say=" + FIXED]
    answer = ask(
        "drop-in", mock, 'tool say={"city": "Oslo", "days": "soon"}', tools=TOOLS,
        feedback=Feedback(max_tokens=100),
    )  # fmt: skip
    assert made(answer) == [("get_weather", {"city": "Oslo", "days": 3})]
    assert "get_weather" in mock.bodies[-1]["messages"][2]["content"]


def test_each_choice_and_each_call_has_its_own_corrections(mock: Correcting) -> None:
    mock.corrections = ['say={"days": 1}', 'say={"days": 2}', 'say={"days": 3}']
    text = f"say={SOON}{SOON}~~{SOON}"
    answer = ask("async drop-in", mock, text, tools=TOOLS, n=2, feedback=True)
    days = [
        [json.loads(c.function.arguments)["days"] for c in choice.message.tool_calls]
        for choice in answer.choices
    ]
    assert days == [[1, 2], [3]]
    assert all("n" not in body for body in mock.bodies[1:])


def test_the_calls_of_an_answer_share_the_budget(mock: Correcting) -> None:
    mock.corrections = ['say={"days": 1}']
    answer = ask(
        "drop-in", mock, "say=" + SOON + SOON, tools=TOOLS, feedback=Feedback(max_tokens=15)
    )
    report = told(answer)
    assert report is not None
    assert [c["stop"] for c in report["calls"]] == ["accepted", "budget_used_up"]
    assert (report["asked"], report["tokens"]) == (1, 15)


def test_the_word_of_a_model_string(mock: Correcting) -> None:
    mock.corrections = ["say=" + FIXED]
    protocol = "hermes;feedback=maximum-reliability"
    answer = ask("provider", mock, "say=" + SOON, protocol=protocol, tools=TOOLS)
    assert made(answer)[0][1]["days"] == 3
    with pytest.raises(BadOptions, match="preset"):
        ask("drop-in", mock, "say=" + SOON, protocol="hermes;feedback=often", tools=TOOLS)
    with pytest.raises(BadOptions, match="feedback"):
        tp.create_tool_middleware("hermes", feedback=3)  # type: ignore[arg-type]


# the middleware, with a client of one's own


def middleware_answer(protocol: str, text: str, **options: Any) -> tuple[Any, Any, Any]:
    middleware = tp.create_tool_middleware(protocol, **options)
    turn = middleware.transform_params(
        {"messages": [{"role": "user", "content": "Weather?"}], "tools": TOOLS, "stream": True}
    )
    return middleware, turn, middleware.wrap_generate(turn, text)


def test_a_client_of_ones_own() -> None:
    middleware, turn, answer = middleware_answer("hermes", SOON, feedback="production")
    asked: list[dict[str, Any]] = []

    def send(params: dict[str, Any]) -> str:
        asked.append(params)
        return FIXED

    corrected = correct_answer(middleware, turn, answer, send)
    assert json.loads(corrected.answer.tool_calls[0]["function"]["arguments"])["days"] == 3
    assert corrected.answer.tool_calls[0]["id"] == answer.tool_calls[0]["id"]
    # What the model wrote stays what it wrote.
    assert corrected.answer.result is answer.result
    assert answer.result is not None
    assert not answer.result.calls[0].valid
    assert asked[0].keys() == {"messages"}
    assert corrected.asked == 1

    async def later(params: dict[str, Any]) -> Reply:
        return Reply(FIXED, tokens=7, cost=0.5)

    again = asyncio.run(acorrect_answer(middleware, turn, answer, later))
    assert again.answer == corrected.answer
    assert (again.tokens, again.cost) == (7, 0.5)
    nothing = correct_answer(middleware, turn, answer, lambda params: None)
    assert nothing.answer is answer
    assert nothing.calls[0].call.stop == "attempts_used_up"


@pytest.mark.parametrize("preset", ["go-orchestrator", "go-orchestrator-planned"])
def test_the_orchestrator_s_presets_merge_everything(preset: str) -> None:
    middleware, turn, answer = middleware_answer("hermes", SOON, feedback=preset)
    new = '{"city": "Rome", "days": 3, "unit": "F"}'
    corrected = correct_answer(middleware, turn, answer, lambda params: new)
    # Its detectors know the words of Go; a schema's refusal is told in words of its own.
    arguments = json.loads(corrected.answer.tool_calls[0]["function"]["arguments"])
    assert arguments in (json.loads(new), {"city": "Oslo", "days": "soon", "unit": "C"})
