"""The provider `toolparse/<protocol>/<provider>/<model>`: what passes through it, and Router over
it."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.bridge import (
    KEY,
    OSLO,
    TOOLS,
    ask,
    calls_of,
    checked,
    checked_chunks,
    joined,
    litellm,
    run,
)
from tests.mock_openai import MockOpenAI, unseen
from toolparse_lab.integrations import litellm_bridge

OSLO_CALL = ("get_weather", '{"city":"Oslo","days":2}')
PROVIDER = ("provider", "async provider")


def test_registering_again_changes_nothing() -> None:
    module = litellm()
    before = (
        list(module.custom_provider_map),
        list(module.provider_list),
        list(module._custom_providers),
    )
    litellm_bridge.register()
    assert (
        list(module.custom_provider_map),
        list(module.provider_list),
        list(module._custom_providers),
    ) == before
    assert [item["provider"] for item in module.custom_provider_map].count("toolparse") == 1


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", PROVIDER)
def test_arguments_reach_the_inner_provider(mock: MockOpenAI, way: str, stream: bool) -> None:
    ask(
        way,
        mock,
        "say=" + OSLO,
        tools=TOOLS,
        stream=stream,
        temperature=0.5,
        top_p=0.25,
        max_tokens=77,
        seed=3,
        stop=["###"],
        extra_headers={"x-mine": "1"},
        extra_body={"mine": [1]},
        logit_bias={"1": 2},
    )
    body, headers = mock.bodies[-1], mock.headers[-1]
    expected = {
        "temperature": 0.5,
        "top_p": 0.25,
        "max_tokens": 77,
        "seed": 3,
        "stop": ["###"],
        "mine": [1],
    }
    assert {name: body[name] for name in expected} == expected
    assert body["model"] == "m"
    assert body["logit_bias"] == {"1": 2}
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["x-mine"] == "1"
    assert not {"tools", "tool_choice_by", "no-log", "caching"} & set(body)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", PROVIDER)
def test_what_the_caller_got_wrong_is_a_bad_request(
    mock: MockOpenAI, way: str, stream: bool
) -> None:
    module = litellm()
    with pytest.raises(module.BadRequestError, match=r"(?s)nonsense.*hermes"):
        ask(way, mock, "x", protocol="nonsense", tools=TOOLS, stream=stream)
    with pytest.raises(module.BadRequestError, match="toolparse/<protocol>/<provider>/<model>"):
        ask(way, mock, "x", model="", tools=TOOLS, stream=stream)
    with pytest.raises(module.BadRequestError, match="ghost"):
        ask(
            way,
            mock,
            "x",
            tools=TOOLS,
            stream=stream,
            tool_choice={"type": "function", "function": {"name": "ghost"}},
        )


@pytest.mark.parametrize(
    "without",
    [{}, {"tools": []}, {"tools": None}, {"tools": TOOLS, "tool_choice": "none"}],
    ids=["no tools", "empty", "None", "choice none"],
)
@pytest.mark.parametrize("way", PROVIDER)
def test_a_stream_without_active_tools_ends_as_litellms_own(
    mock: MockOpenAI, way: str, without: dict[str, Any]
) -> None:
    text = "say=Just talk, and then nothing more."
    said = joined(checked_chunks(ask(way, mock, text, stream=True, **without)))
    alone = joined(ask("alone", mock, text, stream=True))
    assert said == alone
    assert said["reasons"] == ["stop"]


def test_a_stream_without_active_tools_may_be_left(mock: MockOpenAI) -> None:
    module = litellm()
    stream = module.completion(
        model="toolparse/hermes/openai/m",
        messages=[{"role": "user", "content": "say=" + "word " * 200}],
        api_base=mock.url,
        api_key=KEY,
        stream=True,
    )
    next(stream)
    del stream


def test_router_needs_a_model_string_only(mock: MockOpenAI) -> None:
    module = litellm()
    params = {
        "model": "toolparse/hermes/openai/m",
        "api_base": mock.url,
        "api_key": KEY,
        "max_retries": 0,
    }
    router = module.Router(
        model_list=[{"model_name": "small", "litellm_params": params}], num_retries=0
    )
    asked: dict[str, Any] = {
        "model": "small",
        "messages": [{"role": "user", "content": unseen(f"say=Well. {OSLO}")}],
        "tools": TOOLS,
    }

    async def streamed() -> list[Any]:
        return [chunk async for chunk in await router.acompletion(stream=True, **asked)]

    for answer in (router.completion(**asked), run(lambda: router.acompletion(**asked))):
        assert calls_of(checked(answer).choices[0].message) == [OSLO_CALL]
    for chunks in (list(router.completion(stream=True, **asked)), run(streamed)):
        said = joined(checked_chunks(chunks))
        assert [c[1:] for c in said["calls"]] == [OSLO_CALL]
        assert (said["content"].strip(), said["reasons"]) == ("Well.", ["tool_calls"])


def test_router_falls_back_to_it(mock: MockOpenAI) -> None:
    module = litellm()
    common = {"api_base": mock.url, "api_key": KEY, "max_retries": 0}
    router = module.Router(
        model_list=[
            {
                "model_name": "broken",
                "litellm_params": {"model": "toolparse/nonsense/openai/m", **common},
            },
            {
                "model_name": "good",
                "litellm_params": {"model": "toolparse/hermes/openai/m", **common},
            },
        ],
        fallbacks=[{"broken": ["good"]}],
        num_retries=0,
    )
    asked = {
        "model": "broken",
        "messages": [{"role": "user", "content": unseen("say=" + OSLO)}],
        "tools": TOOLS,
    }
    answer = run(lambda: router.acompletion(**asked))
    assert calls_of(answer.choices[0].message) == [OSLO_CALL]


HANDLER = "chat_completions_handler.py"


@pytest.mark.skipif(importlib.util.find_spec("mcp") is not None, reason="mcp is installed")
def test_requests_with_tools_need_no_mcp(mock: MockOpenAI) -> None:
    answer = ask("alone", mock, 'tool say={"city":"Rome"}', tools=TOOLS)
    assert calls_of(answer.choices[0].message) == [("get_weather", '{"city":"Rome"}')]
    if not Path(litellm().__file__).with_name("responses").joinpath("mcp", HANDLER).exists():
        return  # litellm 1.80 knows no tools of its gateway in a chat
    with pytest.raises(Exception, match="No module named 'mcp'"):
        ask(
            "alone",
            mock,
            "x",
            tools=[{"type": "mcp", "server_url": "litellm_proxy", "server_label": "x"}],
        )


def test_cancelling_a_call_is_litellms_own(mock: MockOpenAI) -> None:
    module = litellm()

    async def cancelled(call: Any) -> None:
        task = asyncio.create_task(call)
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asked: dict[str, Any] = {
        "messages": [{"role": "user", "content": unseen("slow=2 say=x")}],
        "tools": TOOLS,
        "api_base": mock.url,
        "api_key": KEY,
    }
    run(lambda: cancelled(litellm_bridge.acompletion("openai/m", **asked)))
    run(lambda: cancelled(module.acompletion("toolparse/hermes/openai/m", **asked)))
