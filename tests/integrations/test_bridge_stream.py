"""Streams with tool calls: what comes when, how they end, fail and are closed, beside litellm
alone."""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import openai
import pytest

from tests.bridge import (
    KEY,
    NOW,
    OSLO,
    TOOLS,
    WAYS,
    ask,
    calls_of,
    checked_chunks,
    joined,
    litellm,
    question,
    run,
)
from tests.mock_openai import MockOpenAI
from tests.waiting import wait_until
from toolparse_lab.core.errors import CallRetracted
from toolparse_lab.integrations import litellm_bridge

OSLO_CALL = ("get_weather", '{"city":"Oslo","days":2}')
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def streamed(way: str, mock: MockOpenAI, text: str, **arguments: Any) -> list[Any]:
    return checked_chunks(ask(way, mock, text, stream=True, tools=TOOLS, **arguments))


SAID: list[tuple[str, dict[str, Any]]] = [
    *(
        ("escaped say=" + json.dumps(text), {})
        for text in (f"Let me see.\n{OSLO}\n{NOW}", OSLO, "plain < text", f"a {OSLO} b", "  ", "")
    ),
    # A call that is cut off ends a stream of arguments: see below.
    ("say=" + OSLO[:-20], {"stream_arguments": False}),
    (f"reason say=Well. {OSLO}", {}),
    (f"say=<think>not <tool_call> yet</think>{OSLO}", {}),
    ('tool say={"city":"Rome"}', {}),
    ('say={"name": "now", "arguments": {}}', {"tool_choice": "required"}),
    ("say=I would rather not.", {"tool_choice": "required"}),
]


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3)
def test_a_stream_says_what_the_whole_answer_says(mock: MockOpenAI, way: str, size: int) -> None:
    for text, arguments in SAID:
        whole = ask(way, mock, text, tools=TOOLS, **arguments).choices[0]
        said = joined(streamed(way, mock, f"size={size} {text}", **arguments))
        assert said["content"] == (whole.message.content or ""), text
        thought = getattr(whole.message, "reasoning_content", None)
        assert said["thought"].strip() == (thought or ""), text
        assert [c[1:] for c in said["calls"]] == calls_of(whole.message)
        assert len({c[0] for c in said["calls"]}) == len(said["calls"])
        assert said["reasons"] == [whole.finish_reason]


@pytest.mark.parametrize("way", WAYS)
def test_chunks_make_the_message_again(mock: MockOpenAI, way: str) -> None:
    chunks = streamed(way, mock, f"say=Well. {OSLO}{NOW}")
    built = litellm().stream_chunk_builder(chunks).choices[0]
    assert built.message.content.strip() == "Well."
    assert calls_of(built.message) == [OSLO_CALL, ("now", "{}")]
    assert built.finish_reason == "tool_calls"
    assert built.message.role == "assistant"


@pytest.mark.parametrize("way", WAYS)
def test_the_end_is_last_and_usage_after_it(mock: MockOpenAI, way: str) -> None:
    for text in (OSLO, "hello", ""):
        chunks = streamed(
            way, mock, "escaped say=" + json.dumps(text), stream_options={"include_usage": True}
        )
        *before, end, usage = chunks
        assert end.choices[0].finish_reason == ("tool_calls" if text == OSLO else "stop")
        assert {n: usage.usage.model_dump()[n] for n in USAGE} == USAGE
        assert not any(getattr(c, "usage", None) for c in (*before, end))
        assert all(c.choices[0].finish_reason is None for c in before)


@pytest.mark.parametrize("way", ["drop-in", "async drop-in"])
def test_without_include_usage_the_hidden_usage_is_litellms(mock: MockOpenAI, way: str) -> None:
    alone = ask(way.replace("drop-in", "alone"), mock, "say=" + OSLO, stream=True)
    *_, end = streamed(way, mock, "say=" + OSLO)
    assert set(end._hidden_params) == set(alone[-1]._hidden_params)
    assert (
        end._hidden_params["usage"].completion_tokens
        == alone[-1]._hidden_params["usage"].completion_tokens
    )


def test_text_and_calls_come_as_soon_as_they_are_settled(mock: MockOpenAI) -> None:
    for source, model in ((litellm_bridge, "openai/m"), (litellm(), "toolparse/hermes/openai/m")):
        at: dict[str, float] = {}
        said = f"gap=0.02 size=4 say=Hello there. {OSLO} and so on, and on, and on"
        asked = question(mock, said, model=model, tools=TOOLS, stream=True)
        for chunk in source.completion(**asked):
            for choice in chunk.choices:
                at["end"] = time.perf_counter()
                at.setdefault(
                    "call" if choice.delta.tool_calls else "text" if choice.delta.content else "",
                    at["end"],
                )
        assert at["text"] + 0.1 < at["call"] < at["end"] - 0.1


@pytest.mark.parametrize("way", WAYS)
def test_every_choice_is_read_on_its_own(mock: MockOpenAI, way: str) -> None:
    chunks = streamed(
        way, mock, f"say={OSLO}~~hello there~~a {NOW}", n=3, stream_options={"include_usage": True}
    )
    said = [joined(chunks, i) for i in range(3)]
    assert [s["content"].strip() for s in said] == ["", "hello there", "a"]
    assert [[c[1:] for c in s["calls"]] for s in said] == [[OSLO_CALL], [], [("now", "{}")]]
    assert said[0]["reasons"] == ["tool_calls"]
    if "drop-in" in way:  # litellm sends the end of the first choice only
        assert [s["reasons"] for s in said] == [["tool_calls"], ["stop"], ["tool_calls"]]
    # litellm 1.80 counts several choices itself.
    alone = ask("alone", mock, "say=a~~b", stream=True, n=2, stream_options={"include_usage": True})
    assert (chunks[-1].usage.total_tokens == 15) == (alone[-1].usage.total_tokens == 15)


@pytest.mark.parametrize("way", ["drop-in", "async drop-in"])
def test_a_stream_is_litellms_stream(mock: MockOpenAI, way: str) -> None:
    module = litellm()
    arguments = question(mock, "say=" + OSLO, tools=TOOLS, stream=True)

    async def made() -> Any:
        stream = await litellm_bridge.acompletion(**arguments)
        assert [c async for c in stream]
        return stream

    stream = run(made) if way.startswith("async") else litellm_bridge.completion(**arguments)
    assert isinstance(stream, module.CustomStreamWrapper)
    assert stream.model == "m"
    assert (
        stream._hidden_params["additional_headers"]["llm_provider-content-type"]
        == "text/event-stream"
    )
    if hasattr(module.CustomStreamWrapper, "hidden_params"):  # not with litellm 1.80
        assert stream.hidden_params is stream._hidden_params
        assert stream._response_headers["content-type"] == "text/event-stream"
    assert iter(stream) is stream
    if not way.startswith("async"):
        assert list(stream)
        assert list(stream) == []


def test_a_sync_stream_can_be_read_with_async_for(mock: MockOpenAI) -> None:
    async def work() -> list[Any]:
        asked = question(mock, "say=" + OSLO, tools=TOOLS, stream=True)
        return [chunk async for chunk in litellm_bridge.completion(**asked)]

    assert [c[1:] for c in joined(run(work))["calls"]] == [OSLO_CALL]


LONG = "Oslo and all that is north of it. " * 20
CALL_OF_LONG = OSLO.replace("Oslo", LONG)


def pieces_of(chunks: list[Any]) -> list[str]:
    return [
        call.function.arguments
        for chunk in chunks
        for choice in chunk.choices
        for call in choice.delta.tool_calls or ()
    ]


@pytest.mark.parametrize("way", WAYS)
def test_arguments_are_streamed_while_they_are_written(mock: MockOpenAI, way: str) -> None:
    said_as = f"size=8 say=Well. {CALL_OF_LONG}{NOW}"
    chunks = streamed(way, mock, said_as)
    at_once = streamed(way, mock, said_as, stream_arguments=False)
    assert joined(chunks)["reasons"] == joined(at_once)["reasons"] == ["tool_calls"]
    for said in (joined(chunks), joined(at_once)):
        assert [name for _, name, _ in said["calls"]] == ["get_weather", "now"]
    assert [c[2] for c in joined(chunks)["calls"]] == [c[2] for c in joined(at_once)["calls"]]
    assert len(pieces_of(at_once)) == 2
    pieces = pieces_of(chunks)
    assert len(pieces) > 10
    assert max(map(len, pieces)) < len(LONG) / 4
    # Nothing that came before the last piece is JSON that a client could execute.
    call = [p for p in pieces if p != "{}"]
    so_far = "".join(call[:-1])
    with pytest.raises(ValueError, match=r"."):
        json.loads(so_far)


@pytest.mark.parametrize("way", ["drop-in", "async drop-in"])
@pytest.mark.parametrize("end", [-30, None], ids=["cut off", "broken"])
def test_a_call_that_is_retracted_ends_the_stream_with_an_error(
    mock: MockOpenAI, way: str, end: int | None
) -> None:
    text = CALL_OF_LONG[:end] if end else CALL_OF_LONG.replace('"2"', "{]")
    arguments = question(mock, f"size=8 say={text}", tools=TOOLS, stream=True)
    got: list[Any] = []

    def read() -> None:
        got.extend(litellm_bridge.completion(**arguments))

    async def work() -> None:
        async for chunk in await litellm_bridge.acompletion(**arguments):
            got.append(chunk)  # noqa: PERF401 - what came before the failure is kept

    with pytest.raises(CallRetracted, match="get_weather"):
        read() if way == "drop-in" else run(work)
    said = joined(got)
    assert said["calls"]
    assert said["reasons"] == []
    with pytest.raises(ValueError, match=r"."):
        json.loads(said["calls"][0][2])
    arguments["stream_arguments"] = False
    assert joined(list(litellm_bridge.completion(**arguments)))["reasons"] == ["stop"]


BREAKS = {
    "held text": "Well. <tool_ca",
    "open call": OSLO[:-30],
    "plain": "one two three",
    "call before": OSLO + " and so",
}


# litellm 1.80 leaves the connection of an async stream that broke off to the garbage collector.
@pytest.mark.filterwarnings("ignore:(?s).*Connection.__del__:Warning")
@pytest.mark.parametrize("provider", ["openai", "hosted_vllm"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", BREAKS.values(), ids=BREAKS)
@pytest.mark.exhaustive(3, 1)
def test_a_stream_that_breaks_loses_no_text(
    mock: MockOpenAI, way: str, text: str, provider: str
) -> None:
    module = litellm()

    def read(each: str) -> tuple[list[Any], BaseException | None]:
        """What came, and how it failed."""
        got: list[Any] = []
        is_provider = each.endswith("provider")
        source: Any = litellm_bridge if each.endswith("drop-in") else module
        more = {} if each.endswith("alone") else {"tools": TOOLS, "stream_arguments": False}
        arguments = question(
            mock,
            f"abort={-(-len(text) // 4)} say={text}      more",
            model=f"toolparse/hermes/{provider}/m" if is_provider else f"{provider}/m",
            stream=True,
            max_retries=0,
            **more,
        )
        if not each.startswith("async"):
            try:
                got.extend(source.completion(**arguments))
            except Exception as e:
                return got, e
            return got, None

        async def work() -> BaseException | None:
            try:
                async for chunk in await source.acompletion(**arguments):
                    got.append(chunk)  # noqa: PERF401 - what came before a failure is kept
            except Exception as e:
                return e
            return None

        return got, run(work)

    alone, alone_failed = read("async alone" if way.startswith("async") else "alone")
    ours, failed = read(way)
    # litellm 1.80 raises nothing from an async stream, and makes up an end for it.
    assert type(failed) is type(alone_failed)
    assert (alone_failed is None) == bool(joined(alone)["reasons"])
    said = joined(ours)
    raw = joined(alone)["content"]
    if "call before" in text or text.startswith(OSLO):
        assert [c[1:] for c in said["calls"]] == [OSLO_CALL]
        assert said["content"] == raw.removeprefix(OSLO)
    else:
        assert (said["content"], said["calls"]) == (raw, [])
    assert bool(said["reasons"]) == bool(joined(alone)["reasons"])


@pytest.mark.parametrize("way", WAYS)
def test_a_stream_that_just_ends_is_what_litellm_makes_of_it(mock: MockOpenAI, way: str) -> None:
    """Later versions raise, earlier ones make up an end."""

    def read(each: str, **more: Any) -> dict[str, Any]:
        try:
            return joined(ask(each, mock, f"cut=8 say={OSLO}", stream=True, **more))
        except openai.APIError as e:
            return {"failed": type(e)}

    alone = read("async alone" if way.startswith("async") else "alone")
    said = read(way, tools=TOOLS)
    assert said.get("calls", []) == []
    for what in ("content", "reasons", "failed"):
        assert said.get(what) == alone.get(what)


@pytest.mark.parametrize("way", ["drop-in", "provider"])
def test_closing_a_stream_closes_the_connection(way: str) -> None:
    litellm()

    def arguments(mock: MockOpenAI) -> dict[str, Any]:
        return {
            "model": "openai/m" if way == "drop-in" else "toolparse/hermes/openai/m",
            "messages": [{"role": "user", "content": "gap=0.02 size=1 say=" + "abc " * 500}],
            "tools": TOOLS,
            "stream": True,
            "api_base": mock.url,
            "api_key": KEY,
        }

    source: Any = litellm_bridge if way == "drop-in" else litellm()
    with MockOpenAI() as mock:
        if way == "drop-in":
            stream = source.completion(**arguments(mock))
            next(stream)
            stream.close()
            assert next(stream, None) is None
            assert gone(mock)

        async def closed() -> None:
            stream = await source.acompletion(**arguments(mock))
            await stream.__anext__()
            # litellm's own object has no `aclose` before 1.81.
            await (stream if way == "drop-in" else stream.completion_stream).aclose()
            if way == "drop-in":
                assert [chunk async for chunk in stream] == []
            assert await asyncio.to_thread(gone, mock)

        async def cancelled() -> None:
            stream = await source.acompletion(**arguments(mock))

            async def read() -> None:
                async for _ in stream:
                    pass

            task = asyncio.create_task(read())
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(gone, mock)

        run(closed)
        run(cancelled)


def gone(mock: MockOpenAI) -> bool:
    """True once the mock has noticed that nobody reads its answer."""
    wait_until(lambda: mock.running == 0)
    return True


def test_streams_at_the_same_time_do_not_mix(mock: MockOpenAI) -> None:
    async def one(i: int) -> list[Any]:
        stream = await litellm_bridge.acompletion(
            **question(
                mock,
                f"gap=0.00{i + 1} say={i} {OSLO.replace('Oslo', f'City {i}')}",
                tools=TOOLS,
                stream=True,
            )
        )
        return [chunk async for chunk in stream]

    async def all_of_them() -> list[list[Any]]:
        return await asyncio.gather(*(one(i) for i in range(8)))

    for i, chunks in enumerate(run(all_of_them)):
        said = joined(chunks)
        assert said["content"].strip() == str(i)
        assert [c[1:] for c in said["calls"]] == [
            ("get_weather", f'{{"city":"City {i}","days":2}}')
        ]
