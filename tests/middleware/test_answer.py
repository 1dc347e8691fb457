"""Answers: what becomes a tool call, what stays text, ids, finish reasons, and who is told of
failures."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

import toolparse_lab as tp
from tests.growth import grows_linearly
from tests.middleware.test_parity import check, plain, plans_of, streamed
from tests.middleware.test_transform import HERMES, TOOLS
from tests.tables import each_case
from tests.unwanted import TOOLS as NOTES
from tests.unwanted import formats, write
from toolparse_lab.core.errors import ParserClosed, UnreadableInput
from toolparse_lab.middleware import Answer, ToolCallMiddleware, Turn, fix_tool_call_with_schema

GOOD = '<tool_call>{"name":"get_weather","arguments":{"city":"A","days":"2"}}</tool_call>'
FIXED = {"name": "get_weather", "arguments": '{"city":"A","days":2}'}


def turn_of(middleware: ToolCallMiddleware = HERMES) -> Turn:
    return middleware.transform_params({"messages": [], "tools": TOOLS})


def both(text: str, middleware: ToolCallMiddleware = HERMES, finish: str | None = "stop") -> Answer:
    """The answer of a text, which is the same whole and character by character."""
    turn = turn_of(middleware)
    whole = middleware.wrap_generate(turn, text, finish_reason=finish)
    assert plain(streamed(middleware.wrap_stream(turn), text, finish)) == plain(whole)
    return whole


def test_a_call_between_texts() -> None:
    answer = both(f"Let me see. {GOOD}\n")
    assert answer.message["content"] == "Let me see. "
    assert [c["function"] for c in answer.tool_calls] == [FIXED]
    assert re.fullmatch("call_[A-Za-z0-9]{24}", answer.tool_calls[0]["id"])
    assert answer.finish_reason == "tool_calls"


@each_case
def test_white_space_alone_between_pieces_is_no_content(text: str, content: str | None) -> None:
    assert both(text).message["content"] == (text if content is None and "{<" in text else content)


@each_case
def test_what_cannot_be_read_stays_as_it_was_written(broken: str) -> None:
    told: list[tuple[str, Mapping[str, Any]]] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda *a: told.append(a))
    text = f"Look: {GOOD} and \n {broken}"
    answer = both(text, middleware)
    assert answer.message["content"] == f"Look:  and \n {broken}"
    assert len(answer.tool_calls) == 1
    assert any(p.severity == "error" for p in answer.problems)
    assert len(told) == 2  # once for the whole text, once for the stream
    assert told[0] == told[1]
    message, metadata = told[0]
    assert metadata["toolCall"] == broken
    assert text[slice(*metadata["span"])] == broken
    assert metadata["code"] in {p.code for p in answer.problems}
    assert "original text" in message


@each_case
def test_what_an_answer_is(
    protocol: str, options: dict[str, Any], text: str, content: Any, reasoning: str | None,
    calls: list[Any], finish: str, told: list[list[str | None]],
) -> None:  # fmt: skip
    """Of a whole text and of its stream, which are each told of once."""
    errors: list[list[str | None]] = []

    def tell(_: str, data: Mapping[str, Any]) -> None:
        errors.append([data.get("toolName"), data["toolCall"], data["code"]])

    answer = both(text, tp.create_tool_middleware(protocol, **options, on_error=tell))
    assert answer.message.get("content") == content
    assert answer.message.get("reasoning_content") == reasoning
    assert [c["function"] for c in answer.tool_calls] == calls
    assert answer.finish_reason == finish
    assert errors == told * 2


def test_each_failed_piece_is_told_once_and_a_broken_schema_not_at_all() -> None:
    told: list[str] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda m, _: told.append(m))
    bad = "<tool_call>{oops</tool_call>"
    middleware.wrap_generate(turn_of(), f"{bad}{GOOD}{bad}")
    assert told == ["Could not process JSON tool call, keeping original text."] * 2
    told.clear()
    answer = middleware.wrap_generate(turn_of(), GOOD.replace('"2"', '"x"'))
    assert told == []
    assert len(answer.tool_calls) == 1


def test_an_on_error_that_raises_breaks_no_answer() -> None:
    def fail(message: str, metadata: Any) -> None:
        raise RuntimeError(message)

    both("<tool_call>{oops</tool_call>", tp.create_tool_middleware("hermes", on_error=fail))


@each_case
def test_finish_reasons(given: str | None, called: str, not_called: str) -> None:
    assert both(GOOD, finish=given).finish_reason == called
    assert both("hi", finish=given).finish_reason == not_called


def test_ids_that_the_text_carries_are_kept_unless_they_stand_twice() -> None:
    text = GOOD.replace('{"name"', '{"id":"abc","name"')
    first, second = both(text + text).tool_calls
    assert first["id"] == "abc"
    assert second["id"].startswith("call_")


def test_reasoning_of_the_text_and_of_the_provider() -> None:
    assert "reasoning_content" not in both("hi").message
    answer = HERMES.wrap_generate(turn_of(), "hi", reasoning="before")
    assert answer.message == {"role": "assistant", "content": "hi", "reasoning_content": "before"}


def test_contents_in_parts_are_read_as_one_text() -> None:
    image = {"type": "image_url", "image_url": {"url": "u"}}
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    parts = [
        thought,
        {"type": "text", "text": f"so {GOOD[:20]}"},
        {"type": "text", "text": GOOD[20:]},
    ]
    answer = HERMES.wrap_generate(turn_of(), parts)
    assert [c["function"] for c in answer.tool_calls] == [FIXED]
    assert answer.message["content"] == "so "
    assert answer.message["reasoning_content"] == "hm"
    assert HERMES.wrap_generate(turn_of(), [image, *parts]).message["content"] == [
        {"type": "text", "text": "so "},
        image,
    ]
    assert HERMES.wrap_generate(turn_of(), None).message == {"role": "assistant", "content": None}
    with pytest.raises(UnreadableInput):
        HERMES.wrap_generate(turn_of(), 3)


def test_the_providers_own_calls_stand_behind_those_of_the_text() -> None:
    own = {
        "id": "n",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"days": "3"}'},
    }
    ran = {**own, "provider_executed": True}
    answer = HERMES.wrap_generate(turn_of(), GOOD, tool_calls=[own, ran])
    assert [c["function"]["arguments"] for c in answer.tool_calls] == [
        FIXED["arguments"],
        '{"days":3}',
        '{"days": "3"}',
    ]
    assert HERMES.wrap_generate(turn_of(), "hi", tool_calls=[own]).finish_reason == "tool_calls"
    assert HERMES.wrap_generate(turn_of(), "hi", tool_calls=[ran]).finish_reason == "stop"
    untouched = HERMES.transform_params({"messages": []})
    assert HERMES.wrap_generate(untouched, "x", tool_calls=[own]).tool_calls == (own,)


def test_without_parallel_calls_the_first_is_made_and_the_others_told() -> None:
    told: list[tuple[str, Mapping[str, Any]]] = []
    middleware = tp.create_tool_middleware(
        "hermes", on_error=lambda message, data: told.append((message, data))
    )
    asked = {"messages": [], "tools": TOOLS, "parallel_tool_calls": False}
    turn = middleware.transform_params(asked)
    assert "parallel_tool_calls" not in turn.params
    assert turn.params["messages"][0]["content"].endswith("\n\nCall at most one tool in an answer.")
    other = GOOD.replace('"A"', '"B"')
    broken, text = "<tool_call>{oops</tool_call>", f"a {GOOD} b {other} c "
    whole = middleware.wrap_generate(turn, text + broken)
    assert plain(streamed(middleware.wrap_stream(turn), text + broken, "stop")) == plain(whole)
    assert [c["function"] for c in whole.tool_calls] == [FIXED]
    assert whole.message["content"] == f"a  b  c {broken}"
    assert whole.result is not None
    assert len([c for c in whole.result.calls if c.ok]) == 2
    further = [data for _, data in told if data["code"] == "choice.further-call"]
    second = text.rindex(other)
    assert [(d["toolCall"], d["toolName"], d["span"]) for d in further] == [
        (other, "get_weather", (second, second + len(other)))
    ] * 2  # of the whole answer and of the stream
    assert [c["function"] for c in both(GOOD + GOOD).tool_calls] == [FIXED, FIXED]
    forced = middleware.transform_params({**asked, "tool_choice": "required"})
    assert "at most" not in str(forced.params["messages"])


def test_a_forced_stream_that_the_provider_answers_with_calls_is_no_failure() -> None:
    told: list[str] = []
    middleware = tp.create_tool_middleware(
        "hermes", on_error=lambda message, data: told.append(data["code"])
    )
    turn = middleware.transform_params({"messages": [], "tools": TOOLS, "tool_choice": "required"})
    deltas, answer = middleware.wrap_stream(turn).close("tool_calls", called=True)
    assert (deltas, answer.finish_reason, told) == ((), "tool_calls", [])
    middleware.wrap_stream(turn).close("stop")
    assert told == ["choice.no-call"]


def test_calls_are_fixed_by_schema_in_any_shape() -> None:
    fix = fix_tool_call_with_schema
    assert fix({"toolName": "get_weather", "input": {"days": "3"}}, TOOLS)["input"] == '{"days":3}'
    assert (
        fix({"name": "get_weather", "arguments": '{"days": 3}'}, TOOLS)["arguments"]
        == '{"days": 3}'
    )
    for same in (
        {"name": "nope", "arguments": '{"days":"3"}'},
        {"name": "get_weather", "arguments": "{"},
        {"name": "get_loc"},
        {"name": "many", "arguments": '{"a": 1}'},
    ):
        assert fix(same, [*TOOLS, {"name": "many", "parameters": {"type": "array"}}]) == same


def test_without_tools_an_answer_passes_through() -> None:
    turn = HERMES.transform_params({"messages": []})
    answer = HERMES.wrap_generate(turn, GOOD)
    assert answer == Answer({"role": "assistant", "content": GOOD}, "stop", None, ())
    stream = HERMES.wrap_stream(turn)
    assert stream.feed(GOOD[:3]) == ({"content": GOOD[:3]},)
    assert stream.feed("") == ()


def test_a_closed_stream_takes_nothing_more() -> None:
    stream = HERMES.wrap_stream(turn_of())
    stream.close("stop")
    with pytest.raises(ParserClosed):
        stream.feed("x")


def test_a_call_is_said_at_the_end() -> None:
    stream = HERMES.wrap_stream(turn_of(), tool_input=False)
    waiting = []
    for piece in (GOOD[:-1], GOOD[-1:] + " "):
        assert stream.feed(piece) == ()
        waiting.append(stream.waiting)
    assert waiting == [(), ("get_weather",)]
    (delta,) = stream.close("stop")[0]
    assert delta["tool_calls"][0]["index"] == 0
    assert delta["tool_calls"][0]["function"] == FIXED


@pytest.mark.parametrize("protocol", formats())
@pytest.mark.parametrize("tool_input", [True, False])
def test_no_delta_has_a_call_that_was_a_thought(protocol: str, tool_input: bool) -> None:
    first, second = (
        write(formats()[protocol], "note", {"text": word}) or "" for word in ("first", "second")
    )
    middleware = tp.create_tool_middleware(protocol)
    turn = middleware.transform_params({"messages": [], "tools": NOTES})
    for answer in (f"Maybe {first}\nNo.\n</think>\n\n", f"Maybe {first}\nNo.</think>{second}"):
        stream = middleware.wrap_stream(turn, tool_input=tool_input)
        deltas = [delta for letter in answer for delta in stream.feed(letter)]
        assert not [delta for delta in deltas if "tool_calls" in delta]
        shown = [d["tool_input"] for d in deltas if "tool_input" in d]
        last, whole = stream.close("stop")
        calls = [call for delta in last for call in delta.get("tool_calls", ())]
        said = [(call["id"], call["function"]) for call in calls]
        assert said == [(call["id"], call["function"]) for call in whole.tool_calls]
        assert "first" not in str(said)
        # What was shown is taken back, unless it becomes a call.
        void = {d["tool_input"]["id"] for d in last if _is_error(d)}
        assert {part["id"] for part in shown if part["type"] == "tool-input-start"} <= {
            *void, *(call["id"] for call in calls)
        }  # fmt: skip


def _is_error(delta: dict[str, Any]) -> bool:
    return bool(delta.get("tool_input", {}).get("type") == "tool-input-error")


def test_the_ai_sdk_s_stream_coerces_nothing_and_its_whole_answers_do() -> None:
    old = tp.create_tool_middleware("hermes", compat="ai-sdk-2")
    turn = turn_of(old)
    assert [c["function"] for c in old.wrap_generate(turn, GOOD).tool_calls] == [FIXED]
    raw_call = {"name": "get_weather", "arguments": '{"city":"A","days":"2"}'}
    assert [c["function"] for c in streamed(old.wrap_stream(turn), [GOOD]).tool_calls] == [raw_call]
    chosen = tp.create_tool_middleware("hermes", compat="ai-sdk-2", options={"coerce": "safe"})
    assert [c["function"] for c in streamed(chosen.wrap_stream(turn), [GOOD]).tool_calls] == [FIXED]


def test_the_ai_sdk_recovers_nothing() -> None:
    bare = '{"name":"get_loc","arguments":{}}'
    old = tp.create_tool_middleware("hermes", compat="ai-sdk-2")
    for answer in (
        old.wrap_generate(turn_of(old), bare),
        streamed(old.wrap_stream(turn_of(old)), bare),
    ):
        assert answer.message == {"role": "assistant", "content": bare}


def test_options_may_be_an_object() -> None:
    strict = tp.create_tool_middleware("hermes", options=tp.ParseOptions(repair=False))
    assert both(GOOD.replace("}}<", "}<"), strict).tool_calls == ()


class Brackets:
    """A protocol object as an AI SDK has it: `[[name {…}]]`."""

    def formatTools(self, *, tools: list[dict[str, Any]], toolSystemPromptTemplate: Any) -> str:
        return str(toolSystemPromptTemplate(",".join(t["name"] for t in tools)))

    def formatToolCall(self, toolCall: dict[str, Any]) -> str:
        return f"[[{toolCall['toolName']} {toolCall['input']}]]"

    def formatToolResponse(self, toolResult: dict[str, Any]) -> str:
        return f"(({toolResult['toolName']} {toolResult['output']}))"

    def parseGeneratedText(self, *, text: str, tools: Any, options: Any) -> list[dict[str, Any]]:
        parts: list[dict[str, Any]] = []
        last = 0
        for m in re.finditer(r"\[\[(\w+) (.*?)\]\]", text):
            parts.append({"type": "text", "text": text[last : m.start()]})
            parts.append({"type": "tool-call", "toolCallId": "x", "toolName": m[1], "input": m[2]})
            last = m.end()
        return [*parts, {"type": "text", "text": text[last:]}]

    def createStreamParser(self, *, tools: Any, options: Any) -> Any:
        raise NotImplementedError


def test_protocol_objects_of_ones_own() -> None:
    middleware = tp.create_tool_middleware(Brackets())
    called = {"id": "1", "type": "function", "function": {"name": "get_loc", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "1", "content": "here"},
    ]
    turn = middleware.transform_params({"messages": messages, "tools": TOOLS})
    system, said, result = turn.params["messages"]
    assert system["content"] == "get_weather,get_loc"
    assert said["content"] == "[[get_loc {}]]"
    assert result["content"] == "((get_loc here))"
    raw = 'See [[get_weather {"city":"A","days":"2"}]].'
    answer = check(raw, middleware, turn, plans_of(raw))
    assert [c["function"] for c in answer.tool_calls] == [FIXED]
    assert answer.message["content"] == "See ."


@pytest.mark.parametrize("piece", ["<tool_call>", "<think><tool_call>", "{", "x "])
def test_hostile_streams_cost_no_more_than_their_length(piece: str) -> None:
    def answer_of(size: int) -> Any:
        text = piece * (size // len(piece))
        stream = HERMES.wrap_stream(turn_of())
        for i in range(0, len(text), 7):
            stream.feed(text[i : i + 7])
        return stream.close(None)[1]

    assert grows_linearly(answer_of, 20_000)
    answer = answer_of(20_000)
    assert (answer.message["content"] or "") + answer.message.get("reasoning_content", "")


def test_ids_differ_whatever_seed_a_program_sets_and_after_a_fork() -> None:
    script = """
import os, random
from toolparse_lab.middleware.attempts import new_call_id
random.seed(1); first = new_call_id()
random.seed(1); second = new_call_id()
there, here = os.pipe()
if os.fork() == 0:
    os.write(here, new_call_id().encode())
    os._exit(0)
print(len({first, second, new_call_id(), os.read(there, 99).decode()}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "4\n"
