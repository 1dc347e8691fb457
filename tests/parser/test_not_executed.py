"""No way to an answer hands on a call that a parse does not take for the model's own: the tool
calls of every path are the calls that are `ok`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import joined
from tests.laws import in_pieces
from tests.tables import table
from tests.tools import function_named
from toolparse_lab.core.errors import CallRetracted
from toolparse_lab.integrations.litellm_bridge import completion

TOOLS = [function_named("delete"), function_named("note", required=["text"], text="string")]
MIDDLEWARE = tp.hermes_tool_middleware
JSON = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}}

# text, what the user said -> the names of the calls that may run, of all and of a forced choice
ANSWERS = {row["title"]: (row["text"], row["said"], row["names"]) for row in table(__file__)}


def messages(said: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": said}]


def names(calls: Any) -> list[str]:
    return [call["function"]["name"] for call in calls]


def turn_of(said: str, **more: Any) -> Any:
    return MIDDLEWARE.transform_params({"messages": messages(said), "tools": TOOLS, **more})


def parsed(text: str, said: str) -> list[str]:
    result = tp.parse(text, "hermes", TOOLS, request=messages(said))
    return [call.name for call in result.calls if call.ok and call.valid]


def pushed(text: str, said: str) -> list[str]:
    return [
        call.name
        for call in in_pieces(text, 1, "hermes", TOOLS, request=messages(said)).calls
        if call.ok and call.valid
    ]


def generated(text: str, said: str, **more: Any) -> list[str]:
    return names(MIDDLEWARE.wrap_generate(turn_of(said, **more), text).tool_calls)


def streamed(text: str, said: str, **more: Any) -> list[str]:
    stream = MIDDLEWARE.wrap_stream(turn_of(said, **more))
    deltas = [delta for character in text for delta in stream.feed(character)]
    last, answer = stream.close("stop")
    calls = [call for delta in [*deltas, *last] for call in delta.get("tool_calls", ())]
    assert names(calls) == names(answer.tool_calls)
    ends = [d["tool_input"]["id"] for d in [*deltas, *last]
            if d.get("tool_input", {}).get("type") == "tool-input-end"]  # fmt: skip
    assert ends == [call["id"] for call in calls]
    return names(calls)


def bridged(text: str, said: str, **more: Any) -> list[str]:
    answer = completion("openai/m", messages(said), tools=TOOLS, mock_response=text, **more)
    return names(c.model_dump() for c in answer.choices[0].message.tool_calls or ())


def bridge_streamed(text: str, said: str, **more: Any) -> list[str]:
    chunks = completion(
        "openai/m", messages(said), tools=TOOLS, mock_response=text, stream=True, **more
    )
    try:
        return [name for _, name, _ in joined(list(chunks))["calls"]]
    except CallRetracted:  # the stream ends with it, and the call has no end
        return []


PATHS: dict[str, Callable[..., list[str]]] = {
    "parse": parsed,
    "stream": pushed,
    "wrap_generate": generated,
    "wrap_stream": streamed,
    "completion": bridged,
    "completion in a stream": bridge_streamed,
}
CHOICES: dict[str, dict[str, Any]] = {
    "required": {"tool_choice": "required"},
    "named": {"tool_choice": {"type": "function", "function": {"name": "delete"}}},
    "a form of its own": {"response_format": JSON},
    "none": {"tool_choice": "none"},
}


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_only_calls_that_are_ok_are_handed_on(answer: str, path: str) -> None:
    text, said, expected = ANSWERS[answer]
    assert PATHS[path](text, said) == expected


@pytest.mark.parametrize("path", [path for path in PATHS if path not in ("parse", "stream")])
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.exhaustive(3)
def test_no_choice_hands_on_more(answer: str, choice: str, path: str) -> None:
    text, said, expected = ANSWERS[answer]
    calls = PATHS[path](text, said, **CHOICES[choice])
    assert set(calls) <= set(expected)
    assert len(calls) <= len(expected)


@pytest.mark.parametrize("answer", ANSWERS)
def test_a_broken_call_that_is_handed_on_has_no_arguments(answer: str) -> None:
    text, said, expected = ANSWERS[answer]
    middleware = tp.create_tool_middleware("hermes", broken_calls="call")
    turn = middleware.transform_params({"messages": messages(said), "tools": TOOLS})
    for call in middleware.wrap_generate(turn, text).tool_calls:
        if call["function"]["name"] not in (*expected, "format_disk"):
            with pytest.raises(json.JSONDecodeError):
                json.loads(call["function"]["arguments"])
