"""A part of a kind that nobody knows is never dropped in silence, at any place of any shape."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import toolparse_lab as tp
from tests.tables import each_case
from toolparse_lab.core.errors import ToolparseError
from toolparse_lab.entry.capture import capture

TOOLS = [{"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}]
WORDS = st.from_regex(r"zz_[a-z]{1,6}", fullmatch=True)
VALUES = st.one_of(st.integers(1, 9), st.just("text"), st.just({"name": "f", "a": 1}), st.just([1]))
MEMBERS = st.dictionaries(WORDS, VALUES, min_size=1, max_size=3)
PARTS = st.one_of(MEMBERS, st.builds(lambda kind, more: {"type": kind, **more}, WORDS, MEMBERS))
Place = Callable[[dict[str, Any]], Any]


def _chat(message: dict[str, Any]) -> dict[str, Any]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def _chat_chunks(delta: dict[str, Any]) -> list[dict[str, Any]]:
    end = {"index": 0, "delta": {}, "finish_reason": "stop"}
    return [{"choices": [{"index": 0, "delta": d}]} for d in ({"role": "assistant"}, delta)] + [
        {"choices": [end]}
    ]


def _responses(*output: Any) -> dict[str, Any]:
    return {"object": "response", "status": "completed", "output": list(output)}


def _responses_events(*events: Any) -> list[dict[str, Any]]:
    done = {"type": "response.completed", "response": _responses()}
    return [{"type": "response.created", "response": {"id": "r"}}, *events, done]


def _anthropic_events(*events: Any) -> list[dict[str, Any]]:
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}
    return [{"type": "message_start", "message": {"content": []}}, *events, end]


def _gemini(*parts: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {"candidates": [{"content": content, "finishReason": "STOP"}]}


def _converse(*blocks: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": list(blocks)}
    return {"output": {"message": message}, "stopReason": "end_turn"}


def _converse_events(*events: Any) -> list[dict[str, Any]]:
    return [{"messageStart": {"role": "assistant"}}, *events, {"messageStop": {"stopReason": "x"}}]


def _delta(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": 0, "delta": part}


PLACES: dict[str, Place] = {
    "chat part": lambda part: _chat({"role": "assistant", "content": [part]}),
    "chat content": lambda part: _chat_chunks({"content": part}),
    "chat call": lambda part: _chat({"role": "assistant", "tool_calls": [part]}),
    "chat member": lambda part: _chat({"role": "assistant", "content": None, "zz_member": part}),
    "chat delta": lambda part: _chat_chunks({"content": [part]}),
    "chat delta's member": lambda part: _chat_chunks({"zz_member": part}),
    "chat delta's call": lambda part: _chat_chunks({"tool_calls": [part]}),
    "chat chunk": lambda part: [*_chat_chunks({}), part],
    "choice": lambda part: [{"choices": [{"index": 0, "zz_member": part}]}, *_chat_chunks({})],
    "responses item": lambda part: _responses(part),
    "responses part": lambda part: _responses({"type": "message", "content": [part]}),
    "responses event": lambda part: _responses_events({"type": "response.zz.delta", "x": part}),
    "responses item added": lambda part: _responses_events(
        {"type": "response.output_item.added", "output_index": 0, "item": part}
    ),
    "responses item done": lambda part: _responses_events(
        {"type": "response.output_item.done", "output_index": 0, "item": part}
    ),
    "responses part added": lambda part: _responses_events(
        {"type": "response.content_part.added", "output_index": 0, "part": part}
    ),
    "responses at the end": lambda part: [
        {"type": "response.created", "response": {"id": "r"}},
        {"type": "response.completed", "response": _responses(part)},
    ],
    "anthropic block": lambda part: {
        "type": "message", "role": "assistant", "content": [part], "stop_reason": "end_turn",
    },
    "anthropic block start": lambda part: _anthropic_events(
        {"type": "content_block_start", "index": 0, "content_block": part}
    ),
    "anthropic delta": lambda part: _anthropic_events(_delta(part)),
    "anthropic event": lambda part: _anthropic_events(part),
    "gemini part": _gemini,
    "gemini candidate": lambda part: {"candidates": [{"zz_member": part, "finishReason": "STOP"}]},
    "gemini content": lambda part: {
        "candidates": [{"content": {"role": "model", "zz_member": part}, "finishReason": "STOP"}]
    },
    "gemini chunk": lambda part: [_gemini(part), _gemini()],
    "gemini array": lambda part: json.dumps([_gemini(part), _gemini()]),
    "gemini event": lambda part: f"data: {json.dumps(_gemini(part))}\n\n",
    "converse block": _converse,
    "converse start": lambda part: _converse_events(
        {"contentBlockStart": {"start": part, "contentBlockIndex": 0}}
    ),
    "converse delta": lambda part: _converse_events(
        {"contentBlockDelta": {"delta": part, "contentBlockIndex": 0}}
    ),
    "converse event": lambda part: _converse_events(part),
    "cohere part": lambda part: {
        "message": {"role": "assistant", "content": [part]}, "finish_reason": "COMPLETE",
    },
    "cohere call": lambda part: {
        "message": {"role": "assistant", "tool_calls": [part]}, "finish_reason": "COMPLETE",
    },
    "cohere event": lambda part: [
        {"type": "message-start", "id": "x"},
        {"type": "content-delta", "index": 0, "delta": {"message": {"content": part}}},
        {"type": "message-end", "delta": {"finish_reason": "COMPLETE"}},
    ],
    "ollama call": lambda part: {"message": {"content": "", "tool_calls": [part]}, "done": True},
    "ollama member": lambda part: {"message": {"content": "", "zz_member": part}, "done": True},
    "ollama part": lambda part: {"message": {"content": [part]}, "done": True},
    "ollama piece": lambda part: [
        {"message": {"content": "", "zz_member": part}, "done": False},
        {"message": {"content": ""}, "done": True},
    ],
    "ai sdk part": lambda part: {"role": "assistant", "content": [part]},
    "ai sdk result": lambda part: {"content": [part], "finishReason": "stop"},
    "ai sdk call": lambda part: {"text": "", "toolCalls": [part], "finishReason": "stop"},
    "ai sdk stream": lambda part: [
        {"type": "start"}, part, {"type": "finish", "finishReason": "stop"},
    ],
    "genai part": lambda part: {"role": "assistant", "parts": [part]},
    "pydantic-ai part": lambda part: {"kind": "response", "parts": [part]},
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES)
@settings(max_examples=12, deadline=None)
@given(part=PARTS)
def test_no_part_is_dropped_in_silence(place: str, part: dict[str, Any]) -> None:
    body = PLACES[place](part)
    found = capture(body)
    assert found.unread, body
    assert any("zz" in unread for unread in found.unread)
    result = tp.parse(body, tools=TOOLS)
    assert (result.calls, result.ok) == ((), False)
    assert "response.unread-part" in {problem.code for problem in result.problems}


def test_such_an_answer_is_no_abstention(lab: tp.Lab) -> None:
    part = {"type": "zz_kind", "zz_name": "f"}
    rows = [
        {"case_id": place, "input": "Hi", "response": body(part), "target": []}
        for place, body in PLACES.items()
    ]
    trials = lab.ingest(rows, tools=TOOLS, progress=False).trials()
    assert [trial.case_id for trial in trials] == [*PLACES]
    for trial in (*trials, *(trial.reparse() for trial in trials)):
        said = (trial.outcome, trial.sub_code, trial.blame.code)
        assert said == ("attempted_unparseable", "unread_part", "unread_part"), trial.case_id
        assert "zz" in trial.detail, trial.case_id


def _arguments(**pieces: Any) -> dict[str, Any]:
    call = {**pieces, "partialArgs": [{"jsonPath": "$.a[0]", **pieces}]}
    return {"candidates": [{"content": {"parts": [{"functionCall": call}]}}]}


_CALL = {"type": "custom_tool_call", "id": "i", "call_id": "x", "name": "f", "input": "{}"}
_FUNCTION = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}
_LOGPROB = {"token": "a", "logprob": -1}
DAMAGED: tuple[Any, ...] = (
    *(PLACES[place](_CALL) for place in PLACES if "event" not in place and "array" not in place),
    _chat_chunks({"tool_calls": [_FUNCTION]}),
    _responses_events(
        {"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{}"},
        {"type": "response.output_item.done", "output_index": 0, "item": _CALL},
        {"type": "response.completed", "response": _responses(_CALL)},
    ),
    _anthropic_events(
        {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use"}},
        _delta({"type": "input_json_delta", "partial_json": "{}"}),
        {"type": "content_block_stop", "index": 0},
    ),
    _converse_events({"contentBlockDelta": {"delta": {"toolUse": {"input": "{}"}},
                                            "contentBlockIndex": 0}}),
    [{"type": "tool-call-start", "index": 0, "delta": {"message": {"tool_calls": _FUNCTION}}}],
    {"message": {"content": "x"}, "finish_reason": "COMPLETE"},
    [{"type": kind, "toolCallId": "t", "toolName": "f", "input": {}}
     for kind in ("tool-input-start", "tool-input-delta", "tool-input-available")],
    [_arguments(name="f", stringValue="x", willContinue=True), _arguments(numberValue=1)],
    {"choices": [{"message": {"content": "a"}, "logprobs": {"content": [_LOGPROB]}}]},
    {"error": {"message": "x"}},
)  # fmt: skip


def _with_each(value: Any, new: Any) -> Iterator[Any]:
    """Yield the value with one after the other of its parts, and itself, replaced."""
    yield new
    if isinstance(value, (dict, list)):
        for key, part in list(value.items() if isinstance(value, dict) else enumerate(value)):
            for other in _with_each(part, new):
                changed: Any = value.copy()
                changed[key] = other
                yield changed


@pytest.mark.parametrize(
    "new", [{}, [], 1, {"type": []}, 10**400, math.nan, b"x"], ids=lambda new: str(new)[:9]
)
def test_no_value_at_any_place_of_a_body_makes_it_raise(new: Any) -> None:
    for body in DAMAGED:
        for damaged in _with_each(body, new):
            with suppress(ToolparseError):
                tp.parse(damaged, tools=TOOLS)


@pytest.mark.parametrize(
    "new", [{"type": "zz_kind", "zz": "f"}, {"zz": "f"}, [{"zz": "f"}]], ids=str
)
def test_what_nobody_knows_in_the_place_of_an_answer_is_said(new: Any) -> None:
    def says(body: Any) -> bool:
        with suppress(ToolparseError):
            found = capture(body)
            said = found.content or found.tool_calls or found.refusal or found.reasoning
            return bool(said or found.unread or found.error or found.cut)
        return True

    for body in filter(says, DAMAGED):
        for changed in _with_each(body, new):
            assert says(changed), changed


def test_hostile_bodies_cost_no_more_than_their_size() -> None:
    nested: Any = "x"
    for _ in range(5000):
        nested = {"type": "message", "content": [nested], "text": nested}
    assert capture(_gemini({"text": nested})).unread
    assert capture(_chat({"role": "assistant", "content": [nested]})).unread
    body: Any = _gemini({"text": "x"})
    for _ in range(5000):
        body = {"body": body}
    with pytest.raises(ToolparseError, match="no answer"):
        capture(body)
    # An answer is looked for under each number up to the largest one.
    for index in (10**15, -1):
        found = capture([{"choices": [{"index": index, "delta": {"content": "x"}}]}])
        assert (found.content, found.choices) == ("x", 1)
    pieces = [_arguments(name="f", stringValue="x", willContinue=True)]
    pieces += [_arguments(stringValue="x" * 100, willContinue=True)] * 20_000
    (call,) = capture([*pieces, _arguments(stringValue="!")]).tool_calls
    text = call["function"]["arguments"]["a"][0]
    assert (len(text), text[-1]) == (2_000_002, "!")


@each_case
def test_a_call_that_is_still_written_is_cut_off(part: dict[str, Any]) -> None:
    (call,) = tp.parse({"role": "assistant", "parts": [part]}, tools=TOOLS).calls
    assert (call.name, call.status) == ("f", "truncated")


def test_a_models_own_object_is_no_response() -> None:
    text = '{"candidates": [{"name": "Ann", "content": {"role": "engineer"}}]}'
    assert tp.parse(text).text == text


def test_beside_a_call_it_is_a_warning() -> None:
    call = {"functionCall": {"name": "f", "args": {"a": 1}}}
    result = tp.parse(_gemini(call, {"zz_name": 1}), tools=TOOLS)
    assert [call.arguments for call in result.calls] == [{"a": 1}]
    (problem,) = result.problems
    assert (problem.code, problem.severity) == ("response.unread-part", "warning")


@each_case
def test_tools_that_a_server_runs_are_no_calls_of_the_client(body: Any) -> None:
    found = capture(body)
    assert (found.tool_calls, found.content, found.unread) == ((), "Well", ())
    # One that the request offers is the client's own.
    own = {"type": "custom_tool_call", "call_id": "x", "name": "web_search", "input": "{}"}
    offered = {**_responses(own), "tools": [{"type": "custom", "name": "web_search"}]}
    assert len(capture(offered).tool_calls) == 1
