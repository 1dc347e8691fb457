"""Whole answers with tool calls: by the drop-in calls and by the provider, over HTTP, beside
litellm alone."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import NOW, OSLO, TOOLS, WAYS, ask, calls_of, checked, litellm, question, run
from tests.mock_openai import MockOpenAI
from toolparse_lab.core.errors import (
    BadOptions,
    BadToolSpec,
    ResponseFormatRejected,
    ToolparseError,
    UnknownProtocol,
)
from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.integrations.litellm_bridge.response import _copied
from toolparse_lab.middleware import create_tool_middleware

OSLO_CALL = ("get_weather", '{"city":"Oslo","days":2}')


def failure_of(way: str, mock: MockOpenAI, text: str, **arguments: Any) -> Any:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - its type is what is compared
        ask(way, mock, text, **arguments)
    return caught.value


@pytest.mark.parametrize("way", WAYS)
def test_a_call_in_the_text_is_a_tool_call(mock: MockOpenAI, way: str) -> None:
    answer = checked(ask(way, mock, "say=" + OSLO, tools=TOOLS))
    (choice,) = answer.choices
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content is None
    assert calls_of(choice.message) == [OSLO_CALL]
    (call,) = choice.message.tool_calls
    assert call.id.startswith("call_")
    assert call.type == "function"
    sent = mock.bodies[-1]
    assert not {"tools", "tool_choice", "parallel_tool_calls", "protocol"} & set(sent)
    assert "get_weather" in sent["messages"][0]["content"]


@pytest.mark.parametrize("way", WAYS)
def test_what_litellm_says_of_the_answer_is_kept(mock: MockOpenAI, way: str) -> None:
    alone = ask("async alone" if way.startswith("async") else "alone", mock, "say=" + OSLO)
    answer = ask(way, mock, "say=" + OSLO, tools=TOOLS)
    assert (answer.id, answer.object, answer.system_fingerprint) == (
        alone.id,
        alone.object,
        alone.system_fingerprint,
    )
    assert answer.usage.model_dump() == alone.usage.model_dump()
    assert answer.model == alone.model
    assert answer.created >= alone.created
    headers = answer._hidden_params["additional_headers"]
    assert headers["llm_provider-content-type"] == "application/json"
    assert answer._response_headers["content-type"] == "application/json"
    if "drop-in" in way:
        assert set(answer._hidden_params) == set(alone._hidden_params)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "text", ["hello", " a \n", "1 < 2", "", OSLO[:-20], OSLO.replace("get_weather", "nothing")]
)
@pytest.mark.exhaustive(5, 2)
def test_what_is_no_good_call_stays_text(mock: MockOpenAI, way: str, text: str) -> None:
    said = "escaped say=" + json.dumps(text)
    alone, answer = ask("alone", mock, said), checked(ask(way, mock, said, tools=TOOLS))
    message = answer.choices[0].message.model_dump()
    found = (message["provider_specific_fields"] or {}).pop("toolparse", None)
    # litellm has an empty dict or None where it has nothing to say, by its version.
    message["provider_specific_fields"] = message["provider_specific_fields"] or None
    expected = alone.choices[0].message.model_dump()
    expected["provider_specific_fields"] = expected["provider_specific_fields"] or None
    assert message == expected
    assert (found is not None) == ("<tool_call>" in text)
    assert answer.choices[0].finish_reason == "stop"


@pytest.mark.parametrize("way", WAYS)
def test_text_around_calls_is_kept_and_a_cut_answer_says_so(mock: MockOpenAI, way: str) -> None:
    answer = checked(ask(way, mock, f"length say=Let me see.\n{OSLO}\n{NOW}", tools=TOOLS))
    (choice,) = answer.choices
    assert choice.message.content.strip() == "Let me see."
    assert calls_of(choice.message) == [OSLO_CALL, ("now", "{}")]
    assert choice.finish_reason == "length"
    assert len({c.id for c in choice.message.tool_calls}) == 2


@pytest.mark.parametrize("way", WAYS)
def test_every_choice_is_read_on_its_own(mock: MockOpenAI, way: str) -> None:
    answer = checked(ask(way, mock, f"say={OSLO}~~hello~~{NOW}", tools=TOOLS, n=3))
    assert [calls_of(c.message) for c in answer.choices] == [[OSLO_CALL], [], [("now", "{}")]]
    assert [c.finish_reason for c in answer.choices] == ["tool_calls", "stop", "tool_calls"]
    assert [c.message.content for c in answer.choices] == [None, "hello", None]
    assert [c.index for c in answer.choices] == [0, 1, 2]


@pytest.mark.parametrize("way", WAYS)
def test_reasoning_is_neither_lost_nor_doubled(mock: MockOpenAI, way: str) -> None:
    thought = "I should not <tool_call> yet"
    split = ask(way, mock, f"say=<think>{thought}</think>{OSLO}", tools=TOOLS).choices[0].message
    assert split.reasoning_content == thought
    assert split.content is None
    assert calls_of(split) == [OSLO_CALL]
    given = ask(way, mock, f"reason say=Well. {OSLO}", tools=TOOLS).choices[0].message
    assert (given.reasoning_content, given.content.strip()) == ("because", "Well.")


@pytest.mark.parametrize("way", WAYS)
def test_calls_that_the_provider_made_itself_are_kept(mock: MockOpenAI, way: str) -> None:
    answer = checked(ask(way, mock, 'tool say={"city":"Rome"}', tools=TOOLS))
    assert calls_of(answer.choices[0].message) == [("get_weather", '{"city":"Rome"}')]
    assert answer.choices[0].finish_reason == "tool_calls"


@pytest.mark.parametrize("way", WAYS)
def test_without_tools_the_answer_is_litellms_own(mock: MockOpenAI, way: str) -> None:
    cases: list[dict[str, Any]] = [{}, {"tools": TOOLS, "tool_choice": "none"}]
    for arguments in cases:
        alone, answer = (
            ask("alone", mock, "say=" + OSLO),
            ask(way, mock, "say=" + OSLO, **arguments),
        )
        assert answer.choices[0].model_dump() == alone.choices[0].model_dump()


@pytest.mark.parametrize("way", WAYS)
def test_a_conversation_with_results_is_sent_as_text(mock: MockOpenAI, way: str) -> None:
    first = ask(way, mock, "say=" + OSLO, tools=TOOLS).choices[0].message
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": '{"celsius": 4}'}
    history = [{"role": "user", "content": "Oslo?"}, first.model_dump(), result]
    final = checked(ask(way, mock, "", messages=history, tools=TOOLS)).choices[0]
    assert final.finish_reason == "stop"
    assert "celsius" in final.message.content
    assert [m["role"] for m in mock.bodies[-1]["messages"]] == [
        "system",
        "user",
        "assistant",
        "user",
    ]
    assert OSLO_CALL[0] in mock.bodies[-1]["messages"][2]["content"]
    assert history[1]["tool_calls"], "the caller's messages are left alone"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "status", ["400", "401", "404", "422", "429", "500", "503", "400 overflow"]
)
@pytest.mark.exhaustive(3)
def test_failures_are_litellms_own(mock: MockOpenAI, way: str, status: str, stream: bool) -> None:
    asked = f"status={status}"
    alone = "async alone" if way.startswith("async") else "alone"
    theirs = failure_of(alone, mock, asked, stream=stream)
    ours = failure_of(way, mock, asked, tools=TOOLS, stream=stream)
    if stream and way == "async provider":
        # It is asked when it is first read, and litellm wraps what fails then.
        ours = getattr(ours, "original_exception", None) or ours
    assert type(ours) is type(theirs)
    assert ours.status_code == theirs.status_code
    assert not isinstance(ours, ToolparseError)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_litellm_does_not_know_is_its_own_failure(mock: MockOpenAI, way: str) -> None:
    alone = failure_of("alone", mock, "hello", model="no-such-provider/m")
    assert type(failure_of(way, mock, "hello", model="no-such-provider/m", tools=TOOLS)) is type(
        alone
    )


@pytest.mark.parametrize("way", WAYS)
def test_a_timeout_is_litellms_own(mock: MockOpenAI, way: str) -> None:
    with pytest.raises(litellm().Timeout):
        ask(way, mock, "slow=3 say=x", tools=TOOLS, timeout=0.3)


def test_a_connection_that_cannot_be_made_is_litellms_own() -> None:
    with MockOpenAI() as gone:
        pass
    for way in ("alone", *WAYS):
        with pytest.raises(litellm().InternalServerError, match="Connection error"):
            ask(way, gone, "hello", tools=None if way == "alone" else TOOLS)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "get_weather"}}]
)
def test_a_forced_choice_is_one_call(mock: MockOpenAI, way: str, choice: Any) -> None:
    said = 'say={"name": "get_weather", "arguments": {"city": "Oslo", "days": "2"}}'
    answer = checked(ask(way, mock, said, tools=TOOLS, tool_choice=choice))
    assert calls_of(answer.choices[0].message) == [OSLO_CALL]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert mock.bodies[-1]["response_format"]["type"] == "json_schema"
    assert "tool_choice" not in mock.bodies[-1]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
def test_a_provider_without_response_format_is_told_apart(
    mock: MockOpenAI, way: str, stream: bool
) -> None:
    said = 'noformat say={"name": "now", "arguments": {}}'
    refused = failure_of(way, mock, said, tools=TOOLS, tool_choice="required", stream=stream)
    assert isinstance(refused, ResponseFormatRejected)
    assert isinstance(refused, litellm().BadRequestError)
    assert 'tool_choice_by="prompt"' in str(refused)
    assert "response_format is not supported" in str(refused)
    assert refused.status_code == 400
    answer = ask(way, mock, said, tools=TOOLS, tool_choice="required", tool_choice_by="prompt")
    assert calls_of(answer.choices[0].message) == [("now", "{}")]
    assert "response_format" not in mock.bodies[-1]


def test_a_provider_that_litellm_knows_to_lack_a_parameter(monkeypatch: pytest.MonkeyPatch) -> None:
    module = litellm()

    def failing(name: str) -> Any:
        failure = module.UnsupportedParamsError(
            message=f"openai does not support parameters: ['{name}']"
        )

        def refuse(**arguments: Any) -> None:
            raise failure

        monkeypatch.setattr(module, "completion", refuse)
        with pytest.raises(module.UnsupportedParamsError) as caught:
            litellm_bridge.completion("openai/m", [], tools=TOOLS, tool_choice="required")
        return failure, caught.value

    failure, raised = failing("response_format")
    assert isinstance(raised, ResponseFormatRejected)
    assert raised.__cause__ is failure
    failure, raised = failing("temperature")
    assert raised is failure


def test_what_the_caller_got_wrong_is_said(mock: MockOpenAI) -> None:
    with pytest.raises(UnknownProtocol, match="nonsense"):
        ask("drop-in", mock, "x", protocol="nonsense", tools=TOOLS)
    with pytest.raises(BadToolSpec):
        ask("drop-in", mock, "x", tools=[{"nothing": 1}])
    with pytest.raises(BadOptions, match="create_tool_middleware"):
        litellm_bridge.completion(
            "openai/m",
            [],
            middleware=create_tool_middleware("hermes"),
            protocol="hermes",
            tools=TOOLS,
        )
    with pytest.raises(BadOptions):
        litellm_bridge.completion("openai/m", [], tool_choice_by="magic", tools=TOOLS)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "protocol", ["hermes", "gemma", "morph_xml", "qwen3_coder_xml", "yaml_xml"]
)
def test_every_protocol_speaks(mock: MockOpenAI, protocol: str) -> None:
    from toolparse_lab.formats.registry import protocol_of

    said = protocol_of(protocol).format_tool_call(
        {"toolName": "get_weather", "input": {"city": "Oslo", "days": 2}}
    )
    for way in ("drop-in", "provider"):
        answer = checked(
            ask(way, mock, "escaped say=" + json.dumps(said), protocol=protocol, tools=TOOLS)
        )
        assert calls_of(answer.choices[0].message) == [OSLO_CALL]


def test_a_middleware_has_the_calls_itself(mock: MockOpenAI) -> None:
    middleware = tp.hermes_tool_middleware
    arguments = question(mock, "say=" + OSLO, tools=TOOLS)
    answers = [
        middleware.completion(**arguments),
        run(lambda: middleware.acompletion(**arguments)),
        litellm_bridge.completion(middleware=middleware, **arguments),
    ]
    for answer in answers:
        assert calls_of(answer.choices[0].message) == [OSLO_CALL]


def test_calls_at_the_same_time_do_not_mix(mock: MockOpenAI) -> None:
    module = litellm()

    async def one(i: int) -> list[tuple[str, str]]:
        said = OSLO.replace("Oslo", f"City {i}")
        source, model = (
            (litellm_bridge, "openai/m") if i % 2 else (module, "toolparse/hermes/openai/m")
        )
        asked = question(mock, f"slow=0.0{i % 5} say={said}", model=model, tools=TOOLS)
        answer = await source.acompletion(**asked)
        return calls_of(answer.choices[0].message)

    async def all_of_them() -> list[list[tuple[str, str]]]:
        return await asyncio.gather(*(one(i) for i in range(12)))

    for i, calls in enumerate(run(all_of_them)):
        assert calls == [
            ("get_weather", json.dumps({"city": f"City {i}", "days": 2}, separators=(",", ":")))
        ]


def test_a_callback_sees_the_call_once_by_either_way(mock: MockOpenAI) -> None:
    module = litellm()
    logged: list[Any] = []

    def note(kwargs: Any, response: Any, start: Any, end: Any) -> None:
        logged.append(response)

    before = list(module.success_callback)
    # litellm makes ready for functions as callbacks only when it first meets callbacks at all.
    module.utils.callback_list = []
    module.success_callback = [note]
    try:
        answer = ask("drop-in", mock, "say=" + OSLO, tools=TOOLS)
        for _ in range(100):
            if logged:
                break
            run(lambda: asyncio.sleep(0.02))
        (seen,) = logged
        assert calls_of(seen.choices[0].message) == [OSLO_CALL]
        assert seen.choices[0].message.content is None
        assert answer.choices[0].message.content is None
        ask("provider", mock, "say=" + OSLO, tools=TOOLS)
        run(lambda: asyncio.sleep(0.3))
        assert len(logged) == 2, "one call of the provider is logged once"
        assert calls_of(logged[1].choices[0].message) == [OSLO_CALL]
    finally:
        module.success_callback = before


def test_a_copy_is_what_pydantic_copies() -> None:
    shapes = litellm().types.utils
    call = shapes.ChatCompletionMessageToolCall(
        id="a", type="function", function={"name": "f", "arguments": "{}"}
    )
    message = shapes.Message(content="x", tool_calls=[call], provider_specific_fields={"a": 1})
    choice = shapes.Choices(index=0, message=message, finish_reason="stop")
    answer = litellm().ModelResponse(choices=[choice], model="m")
    changes: tuple[tuple[Any, dict[str, Any]], ...] = (
        (call, {"id": "b"}),
        (call, {"function": None, "unheard_of": 1}),
        (message, {"content": None, "tool_calls": []}),
        (choice, {"finish_reason": "length"}),
        (answer, {"choices": []}),
    )
    for model, changed in changes:
        ours, theirs = _copied(model, **changed), model.model_copy(update=changed)
        for name in (
            "__dict__",
            "__pydantic_fields_set__",
            "__pydantic_extra__",
            "__pydantic_private__",
        ):
            assert getattr(ours, name) == getattr(theirs, name), (model, name)
        assert ours.model_dump() == theirs.model_dump()


@pytest.mark.parametrize("way", ["drop-in", "async drop-in"])
def test_arguments_that_the_provider_read_itself_fit_the_schema(mock: MockOpenAI, way: str) -> None:
    answer = checked(ask(way, mock, 'tool say={"city": "Rome", "days": "2"}', tools=TOOLS))
    assert calls_of(answer.choices[0].message) == [("get_weather", '{"city":"Rome","days":2}')]
    fitting = checked(ask(way, mock, 'tool say={"city": "Rome", "days": 2}', tools=TOOLS))
    assert calls_of(fitting.choices[0].message) == [("get_weather", '{"city": "Rome", "days": 2}')]
