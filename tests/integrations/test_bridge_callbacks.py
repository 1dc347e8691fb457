"""litellm's callbacks at the bridge: they see tools and calls, by whatever way the call was made."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.bridge import OSLO, TOOLS, WAYS, ask, calls_of, joined, litellm
from tests.mock_openai import MockOpenAI
from tests.waiting import wait_until
from toolparse_lab.integrations.litellm_bridge.response import Asked
from toolparse_lab.middleware import create_tool_middleware

OSLO_CALL = ("get_weather", '{"city":"Oslo","days":2}')


@pytest.fixture
def seen() -> Iterator[list[Any]]:
    """What a callback was told of successes: (keyword arguments, answer)."""
    module = litellm()
    told: list[Any] = []

    base: Any = module.integrations.custom_logger.CustomLogger

    class Watcher(base):  # type: ignore[misc]
        def log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            told.append((kwargs, response_obj))

        async def async_log_success_event(
            self, kwargs: Any, response_obj: Any, start_time: Any, end_time: Any
        ) -> None:
            told.append((kwargs, response_obj))

    names = (
        "callbacks", "success_callback", "_async_success_callback", "failure_callback",
        "_async_failure_callback", "input_callback",
    )  # fmt: skip
    before = {name: list(getattr(module, name)) for name in names}
    module.callbacks = [Watcher()]
    yield told
    for name, value in before.items():
        setattr(module, name, value)


def waited(seen: list[Any]) -> Any:
    """The one success, which litellm tells from another thread or task."""
    wait_until(lambda: seen)
    (told,) = seen
    return told


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3)
def test_a_callback_sees_tools_and_calls(seen: list[Any], way: str, stream: bool) -> None:
    with MockOpenAI() as mock:
        answer = ask(way, mock, f"say=Well. {OSLO}", tools=TOOLS, stream=stream)
        kwargs, response = waited(seen)
        assert not {"success_callback", "callbacks"} & set(mock.bodies[-1])
    assert [message["role"] for message in kwargs["messages"]] == ["user"]
    params = kwargs["optional_params"]
    assert params["tools"] == TOOLS
    assert "response_format" not in params
    message = response.choices[0].message
    assert calls_of(message) == [OSLO_CALL]
    assert response.choices[0].finish_reason == "tool_calls"
    # The answer that the caller got, and the one that is logged, name the call by one id.
    if stream:
        ids = [call[0] for call in joined(answer)["calls"]]
    else:
        ids = [call.id for call in answer.choices[0].message.tool_calls]
    assert [call.id for call in message.tool_calls] == ids

    payload = kwargs["standard_logging_object"]
    assert payload["model_parameters"]["tools"] == TOOLS
    assert OSLO not in json.dumps(payload["response"], default=str)
    assert "get_weather" in json.dumps(payload["response"], default=str)


@pytest.mark.parametrize("way", ["drop-in", "async drop-in"])
def test_what_is_kept_from_the_log_stays_out_of_it(
    seen: list[Any], way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(litellm(), "turn_off_message_logging", True)
    with MockOpenAI() as mock:
        ask(way, mock, f"say=SECRET {OSLO}", tools=TOOLS)
        kwargs, response = waited(seen)
    assert "SECRET" not in json.dumps(kwargs["messages"])
    assert "SECRET" not in str(response)
    assert "SECRET" not in json.dumps(kwargs["standard_logging_object"], default=str)


@pytest.mark.parametrize("way", ["drop-in", "provider"])
def test_a_forced_call_is_logged_as_it_was_asked_for(seen: list[Any], way: str) -> None:
    with MockOpenAI() as mock:
        said = 'say={"name": "now", "arguments": {}}'
        ask(way, mock, said, tools=TOOLS, tool_choice="required")
    kwargs, response = waited(seen)
    assert kwargs["optional_params"]["tool_choice"] == "required"
    assert calls_of(response.choices[0].message) == [("now", "{}")]


def test_a_call_leaves_the_hosts_callbacks_alone() -> None:
    module = litellm()
    names = ("callbacks", "success_callback", "_async_success_callback")
    before = [list(getattr(module, name)) for name in names]
    with MockOpenAI() as mock:
        for way in WAYS:
            ask(way, mock, "say=" + OSLO, tools=TOOLS)
    assert [list(getattr(module, name)) for name in names] == before


def test_litellms_own_object_is_left_as_it_came() -> None:
    """Its cache and its logging still hold it."""
    module = litellm()
    middleware = create_tool_middleware("hermes")
    turn = middleware.transform_params({"messages": [], "tools": TOOLS})
    with MockOpenAI() as mock:
        own = ask("alone", mock, "say=" + OSLO)
    before = own.model_dump()
    answer = Asked(module, middleware, turn).read(own)
    assert own.choices[0].message.content == OSLO
    assert own.model_dump() == before
    assert calls_of(answer.choices[0].message) == [OSLO_CALL]
