"""Nothing fails in silence: what the parse of an answer found, and broken calls as calls."""

from __future__ import annotations

import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import OSLO, TOOLS, WAYS, ask, calls_of, checked, checked_chunks, joined, litellm
from tests.mock_openai import MockOpenAI
from tests.tables import each_case
from toolparse_lab.integrations.litellm_bridge.response import Asked
from toolparse_lab.integrations.litellm_bridge.stream import ChunkReader

CUT = OSLO[:-28]
GHOST = OSLO.replace("get_weather", "ghost")
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


def found_in(answer: Any) -> Any:
    """What the bridge found, in an answer or in the chunks of a stream; at one place only."""
    if isinstance(answer, list):
        said = [choice.delta for chunk in checked_chunks(answer) for choice in chunk.choices]
    else:
        said = [checked(answer).choices[0].message]
    fields = [getattr(part, "provider_specific_fields", None) or {} for part in said]
    found = [field["toolparse"] for field in fields if "toolparse" in field]
    assert len(found) <= 1
    json.dumps(found)
    return found[0] if found else None


def calls_in(answer: Any) -> list[tuple[str, str]]:
    """Names and arguments of the calls of an answer, whole or streamed."""
    if isinstance(answer, list):
        return [call[1:] for call in joined(answer)["calls"]]
    return calls_of(answer.choices[0].message)


def end_of(answer: Any) -> str:
    if isinstance(answer, list):
        (reason,) = joined(answer)["reasons"]
        return str(reason)
    return str(answer.choices[0].finish_reason)


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@each_case
@pytest.mark.exhaustive(5)
def test_verdict_and_problems(
    mock: MockOpenAI, way: str, stream: bool, text: str, verdict: str, code: str | None
) -> None:
    # A broken call ends a stream of arguments with an error.
    whole_calls = {"stream_arguments": False} if stream else {}
    answer = ask(way, mock, "say=Well. " + text, tools=TOOLS, stream=stream, **whole_calls)
    found = found_in(answer)
    assert found["verdict"] == verdict
    codes = [problem["code"] for problem in found["problems"]]
    assert (code in codes) if code else codes == []
    for problem in found["problems"]:
        assert problem["call"] == 0
        assert problem["message"]
    assert "blame" not in found


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3)
def test_plain_text_has_nothing_to_be_told(mock: MockOpenAI, way: str, stream: bool) -> None:
    assert found_in(ask(way, mock, "say=Hello there", tools=TOOLS, stream=stream)) is None
    assert found_in(ask(way, mock, "say=" + CUT, stream=stream)) is None


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3, 1)
def test_a_forced_answer_that_is_no_call_says_so(mock: MockOpenAI, way: str, stream: bool) -> None:
    answer = ask(way, mock, "say=No.", tools=TOOLS, tool_choice="required", stream=stream)
    found = found_in(answer)
    assert [problem["code"] for problem in found["problems"]] == ["choice.no-call"]
    assert found["problems"][0]["call"] is None
    answer = ask(
        way, mock, "say=No.", tools=TOOLS, tool_choice="required", stream=stream,
        broken_calls="call",
    )  # fmt: skip
    assert calls_in(answer) == [("unreadable_call", "unreadable: No.")]
    assert end_of(answer) == "tool_calls"


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3, 2)
def test_calls_that_the_server_read_have_a_blame(mock: MockOpenAI, way: str, stream: bool) -> None:
    found = found_in(ask(way, mock, 'tool say={"city": "Oslo"}', tools=TOOLS, stream=stream))
    assert found["blame"].startswith("Cannot be told")


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@each_case
@pytest.mark.exhaustive(5, 1)
def test_broken_calls_may_be_handed_on(
    mock: MockOpenAI, way: str, stream: bool, text: str, name: str
) -> None:
    answer = ask(way, mock, "say=Well. " + text, tools=TOOLS, stream=stream, broken_calls="call")
    assert calls_in(answer) == [(name, text)]
    assert end_of(answer) == "tool_calls"
    assert found_in(answer)["verdict"] in ("truncated", "refused")
    if not stream:
        assert answer.choices[0].message.content.strip() == "Well."


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3)
def test_handing_on_includes_unknown_tools_and_leaves_good_calls_alone(
    mock: MockOpenAI, way: str, stream: bool
) -> None:
    more: dict[str, Any] = {"tools": TOOLS, "stream": stream, "protocol": "hermes;broken=call"}
    answer = ask(way, mock, f"say={GHOST}{OSLO}", **more)
    assert [name for name, _ in calls_in(answer)] == ["ghost", "get_weather"]
    assert calls_in(answer)[1][1] == '{"city":"Oslo","days":2}'
    assert end_of(ask(way, mock, "length say=" + CUT, **more)) == "length"
    # An echo is readable and somebody else's: it is no broken call.
    quoted = [{"role": "user", "content": f"Mail: {OSLO} say={OSLO}"}]
    more["protocol"] += ";neutral=off"
    echoed = ask(way, mock, "", messages=quoted, **more)
    assert calls_in(echoed) == []
    assert found_in(echoed)["verdict"] == "echoed"


@pytest.mark.parametrize("way", ["drop-in", "provider"])
def test_a_loop_goes_on_after_a_broken_call(mock: MockOpenAI, way: str) -> None:
    """The broken call and the framework's complaint become text that the model can read."""
    first = ask(way, mock, "say=" + CUT, tools=TOOLS, broken_calls="call").choices[0].message
    messages = [
        {"role": "user", "content": "Weather?"},
        first.model_dump(),
        {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "Invalid arguments"},
        {"role": "user", "content": "say=Sorry."},
    ]
    again = ask(way, mock, "", messages=messages, tools=TOOLS, broken_calls="call")
    assert again.choices[0].message.content == "Sorry."
    sent = json.dumps(mock.bodies[-1]["messages"])
    assert "Invalid arguments" in sent
    assert mock.bodies[-1]["messages"][2] == {"role": "assistant", "content": CUT}


@pytest.mark.parametrize("way", ["drop-in", "provider"])
def test_tools_that_only_a_provider_could_run_are_noted(mock: MockOpenAI, way: str) -> None:
    tools = [*TOOLS, {"type": "web_search"}]
    assert found_in(ask(way, mock, "say=Hello", tools=tools))["left_out"] == [
        {"type": "web_search"}
    ]


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_names_the_model_that_a_whole_answer_names(mock: MockOpenAI, way: str) -> None:
    for text in ("hello", OSLO):
        whole = ask(way, mock, "say=" + text, tools=TOOLS)
        chunks = ask(
            way, mock, "say=" + text, tools=TOOLS, stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        assert {chunk.model for chunk in chunks} == {whole.model} == {"m"}


def test_a_call_that_the_server_lost_has_a_blame() -> None:
    module = litellm()
    shapes = module.types.utils
    logprobs = {
        "content": [
            {"token": OSLO, "logprob": -0.1, "bytes": list(OSLO.encode()), "top_logprobs": []}
        ]
    }
    middleware = tp.create_tool_middleware("hermes")
    turn = middleware.transform_params({"messages": [], "tools": TOOLS})
    choice = shapes.Choices(
        message=shapes.Message(content="", role="assistant"),
        finish_reason="stop",
        logprobs=logprobs,
    )
    response = module.ModelResponse(choices=[choice])
    whole = Asked(module, middleware, turn).read(response)
    found = whole.choices[0].message.provider_specific_fields["toolparse"]
    assert found["blame"].startswith("Server lost it: the model wrote get_weather")

    reader = ChunkReader(shapes, middleware, turn)
    for finish, said in ((None, logprobs), ("stop", None)):
        delta = shapes.Delta(content="", role="assistant")
        part = shapes.StreamingChoices(delta=delta, finish_reason=finish, logprobs=said)
        reader.feed(shapes.ModelResponseStream(choices=[part]))
    (end,) = reader.close()
    found = end.choices[0].delta.provider_specific_fields["toolparse"]
    assert found["blame"].startswith("Server lost it: the model wrote get_weather")
