"""What the tests of the litellm bridge share: tools, ways of asking, and what an OpenAI client says
of an answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import openai.types.chat as openai_types

from tests.mock_openai import MockOpenAI, unseen
from tests.tools import function_named
from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.runner.litellm_door import litellm_module
from toolparse_lab.runner.litellm_faults import hold_logging_worker, ignore_warnings
from toolparse_lab.runner.loop import run_sync

WEATHER = function_named(
    "get_weather", "The weather of a city.", required=["city"], city="string", days="integer"
)
TIME = function_named("now")
TOOLS = [WEATHER, TIME]
OSLO = '<tool_call>{"name": "get_weather", "arguments": {"city": "Oslo", "days": "2"}}</tool_call>'
NOW = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
KEY = "planted-key-0123456789"

# Every way in: the drop-in calls, and litellm's own with a model string of the provider; each sync
# and async.
WAYS = ("drop-in", "async drop-in", "provider", "async provider")


def litellm() -> Any:
    """litellm with the provider in it."""
    asyncio.set_event_loop(
        None
    )  # else litellm's sync calls make a loop for this thread and never close it
    litellm_bridge.register()
    ignore_warnings()
    return litellm_module()


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """The result of a coroutine, in the loop that litellm keeps its connections for."""

    async def inside() -> Any:
        try:
            return await work()
        finally:
            hold_logging_worker()

    return run_sync(inside())


def question(mock: MockOpenAI, text: str, **arguments: Any) -> dict[str, Any]:
    """The arguments of a call of litellm that asks the mock to say a text."""
    messages = [{"role": "user", "content": unseen(text)}]
    own = {"model": "openai/m", "messages": messages, "api_base": mock.url, "api_key": KEY}
    return {**own, **arguments}


def ask(
    way: str, mock: MockOpenAI, text: str, *, protocol: Any = "hermes", **arguments: Any
) -> Any:
    """The answer to one message, by one of WAYS or by litellm "alone" / "async alone"; a stream as
    the list of its chunks."""
    module = litellm()
    arguments = question(mock, text, **{"max_retries": 0, "timeout": 10, **arguments})
    model = arguments.pop("model")
    if way.endswith("drop-in"):
        arguments.update(model=model, protocol=protocol)
        source: Any = litellm_bridge
    else:
        arguments["model"] = f"toolparse/{protocol}/{model}" if way.endswith("provider") else model
        source = module
    if not way.startswith("async"):
        answer = source.completion(**arguments)
        return list(answer) if arguments.get("stream") else answer

    async def work() -> Any:
        answer = await source.acompletion(**arguments)
        return [chunk async for chunk in answer] if arguments.get("stream") else answer

    try:
        return run(work)
    except module.exceptions.MidStreamFallbackError as e:
        # litellm 1.80 wraps even a bad request, if it comes from an async stream of a provider that
        # is not its own.
        if isinstance(e.original_exception, module.BadRequestError):
            raise e.original_exception from None
        raise


def checked(answer: Any) -> Any:
    """The answer, which the OpenAI client's own types accept."""
    dumped = answer.model_dump()
    openai_types.ChatCompletion.model_validate(dumped, strict=True)
    return answer


def checked_chunks(chunks: list[Any]) -> list[Any]:
    """The chunks, which the OpenAI client's own types accept, with one id, and an end at the
    end."""
    for chunk in chunks:
        openai_types.ChatCompletionChunk.model_validate(chunk.model_dump(), strict=True)
    assert len({c.id for c in chunks}) == 1
    return chunks


def joined(chunks: list[Any], index: int = 0) -> dict[str, Any]:
    """What one choice of a stream says in all, its calls as (id, name, arguments)."""
    content, thought, reasons = "", "", []
    calls: dict[int, list[Any]] = {}
    for chunk in chunks:
        for choice in chunk.choices:
            if choice.index != index:
                continue
            content += choice.delta.content or ""
            thought += getattr(choice.delta, "reasoning_content", None) or ""
            for call in choice.delta.tool_calls or ():
                kept = calls.setdefault(call.index, [None, "", ""])
                kept[0] = kept[0] or call.id
                kept[1] += call.function.name or ""
                kept[2] += call.function.arguments
            if choice.finish_reason:
                reasons.append(choice.finish_reason)
    return {
        "content": content,
        "thought": thought,
        "calls": [tuple(c) for c in calls.values()],
        "reasons": reasons,
    }


def calls_of(message: Any) -> list[tuple[str, str]]:
    """Names and arguments of a message's calls."""
    return [(c.function.name, c.function.arguments) for c in message.tool_calls or ()]
