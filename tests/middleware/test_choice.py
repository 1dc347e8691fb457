"""Tool choice: what is asked for, what is refused, and how a forced answer is read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import toolparse_lab as tp
from tests.middleware.test_transform import HERMES, TOOLS
from tests.tables import each_case, every_case
from tests.tools import object_schema
from toolparse_lab.core.errors import BadOptions, BadToolChoice
from toolparse_lab.middleware import create_dynamic_if_then_else_schema

ARGUMENTS = TOOLS[0]["function"]["parameters"]
SEARCH = {"type": "provider-defined", "id": "x.search", "name": "search", "args": {}}


def transform(choice: Any, tools: Any = TOOLS, **options: Any) -> Any:
    middleware = tp.create_tool_middleware("hermes", **options)
    return middleware.transform_params({"messages": [], "tools": tools, "tool_choice": choice})


@each_case
def test_a_named_tool(choice: Any) -> None:
    turn = transform(choice)
    assert (turn.choice, turn.tool_name, turn.forced, turn.active) == (
        "tool",
        "get_weather",
        True,
        True,
    )
    assert turn.params["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": "get_weather",
            "description": "Weather by city",
            "schema": object_schema(
                required=["name", "arguments"], name={"const": "get_weather"}, arguments=ARGUMENTS
            ),
        },
    }


@pytest.mark.parametrize("choice", ["required", "any", {"type": "required"}, {"type": "any"}])
def test_any_tool(choice: Any) -> None:
    turn = transform(choice)
    schema = turn.params["response_format"]["json_schema"]["schema"]
    assert schema == create_dynamic_if_then_else_schema(TOOLS)
    assert list(schema) == ["type", "properties", "required", "if", "then", "else"]
    assert schema["properties"]["name"]["enum"] == ["get_weather", "get_loc"]
    assert schema["if"] == {"properties": {"name": {"const": "get_weather"}}, "required": ["name"]}
    assert schema["then"]["properties"]["arguments"] == ARGUMENTS
    assert schema["else"]["if"]["properties"]["name"]["const"] == "get_loc"
    assert "else" not in schema["else"]


@pytest.mark.parametrize("choice", [None, "auto", {"type": "auto"}])
def test_auto(choice: Any) -> None:
    turn = transform(choice)
    assert (turn.choice, turn.forced) == ("auto", False)
    assert "response_format" not in turn.params


def test_none_writes_no_prompt_and_reads_no_calls_but_rewrites_the_history() -> None:
    messages = [{"role": "tool", "name": "get_loc", "content": "here"}]
    turn = HERMES.transform_params({"messages": messages, "tools": TOOLS, "tool_choice": "none"})
    assert [m["role"] for m in turn.params["messages"]] == ["user"]
    assert "<tool_response>" in turn.params["messages"][0]["content"]
    text = '<tool_call>{"name":"get_loc","arguments":{}}</tool_call>'
    answer = HERMES.wrap_generate(turn, text)
    assert answer.message == {"role": "assistant", "content": text}
    assert answer.result is None
    stream = HERMES.wrap_stream(turn)
    assert stream.feed(text) == ({"content": text},)
    assert stream.close("stop") == ((), answer)


def test_none_as_the_ai_sdk_has_it() -> None:
    with pytest.raises(BadToolChoice) as caught:
        transform("none", compat="ai-sdk-2")
    assert caught.value.message == (
        "The 'none' toolChoice type is not supported by this middleware. "
        "Please use 'auto', 'required', or specify a tool name."
    )


@each_case
def test_what_is_refused(choice: Any, tools: Any, code: str, message: str) -> None:
    with pytest.raises(BadToolChoice) as caught:
        transform(choice, tools)
    assert (caught.value.code, caught.value.message) == (code, message)


def test_a_schema_of_no_tool_or_a_providers() -> None:
    with pytest.raises(BadToolChoice):
        create_dynamic_if_then_else_schema([])
    with pytest.raises(BadToolChoice):
        create_dynamic_if_then_else_schema([*TOOLS, SEARCH])


def test_the_schema_may_go_into_the_prompt() -> None:
    turn = transform("required", tool_choice_by="prompt")
    assert "response_format" not in turn.params
    assert turn.forced
    text = turn.params["messages"][0]["content"]
    assert json.loads(text[text.rindex("\n") + 1 :]) == create_dynamic_if_then_else_schema(TOOLS)


CALL = '{"name":"get_weather","arguments":{"city":"A","days":"2"}}'


@each_case
def test_a_forced_answer_is_one_call(text: str, content: str | None) -> None:
    answer = HERMES.wrap_generate(transform("required"), text)
    assert [c["function"] for c in answer.tool_calls] == [
        {"name": "get_weather", "arguments": '{"city":"A","days":2}'}
    ]
    assert (answer.message["content"], answer.finish_reason) == (content, "tool_calls")
    assert answer.result is not None
    assert answer.result.calls[0].origin("/city").span.of(answer.result.raw) == "A"


@every_case
@pytest.mark.parametrize("finish", ["stop", "length"])
def test_what_is_not_one_call_stays_text(text: str, finish: str) -> None:
    errors: list[Any] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda *a: errors.append(a))
    answer = middleware.wrap_generate(transform("required"), text, finish_reason=finish)
    assert answer.message == {"role": "assistant", "content": text}
    assert answer.finish_reason == finish
    assert [p.code for p in answer.problems] == ["choice.no-call"]
    assert [m for m, _ in errors] == ["Failed to parse toolChoice JSON from generated model output"]
    assert errors[0][1]["text"] == text
    assert errors[0][1]["code"] == "choice.no-call"
    errors.clear()
    stream = middleware.wrap_stream(transform("required"))
    assert stream.feed(text) == ()
    deltas, streamed = stream.close(finish)
    assert streamed == answer
    assert deltas == (({"content": text},) if text else ())
    assert [m for m, _ in errors] == ["Failed to parse toolChoice JSON from streamed model output"]


def test_only_the_named_tool_may_be_called() -> None:
    turn = transform({"type": "tool", "toolName": "get_weather"})
    assert HERMES.wrap_generate(turn, '{"name":"get_loc","arguments":{}}').tool_calls == ()
    assert len(HERMES.wrap_generate(turn, CALL).tool_calls) == 1


def test_arguments_that_break_the_schema_are_still_the_call_and_a_problem() -> None:
    answer = HERMES.wrap_generate(
        transform("required"), '{"name":"get_weather","arguments":{"days":"x"}}'
    )
    assert len(answer.tool_calls) == 1
    assert {p.stage for p in answer.problems} == {"validate"}


def test_reasoning_of_a_forced_answer_is_kept() -> None:
    answer = HERMES.wrap_generate(
        transform("required"), f"<think>hm</think>{CALL}", reasoning="before"
    )
    assert answer.message["reasoning_content"] == "before\nhm"
    harmony = tp.create_tool_middleware("harmony_channel")
    raw = f"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{CALL}"
    assert [
        c["function"]["name"] for c in harmony.wrap_generate(transform("required"), raw).tool_calls
    ] == ["get_weather"]


@each_case
def test_reasoning_and_markup_around_a_call_that_breaks_its_schema(protocol: str, raw: str) -> None:
    """Such a call is not recovered from a text, so that only the forced reading finds it."""
    middleware = tp.create_tool_middleware(protocol)
    raw = raw.replace("{}", '{"name":"get_weather","arguments":{"days":"x"}}')
    answer = middleware.wrap_generate(transform("required"), raw)
    assert [c["function"]["arguments"] for c in answer.tool_calls] == ['{"days":"x"}']
    assert answer.message["reasoning_content"] == "hm"
    assert answer.result is not None
    assert "".join(s.span.of(raw) for s in answer.result.segments) == raw


def test_calls_of_the_provider_answer_a_forced_choice_too() -> None:
    native = {
        "id": "n",
        "type": "function",
        "function": {"name": "get_weather", "arguments": '{"days": "2"}'},
    }
    answer = HERMES.wrap_generate(transform("required"), None, tool_calls=[native])
    assert answer.problems == ()
    assert answer.finish_reason == "tool_calls"
    assert answer.tool_calls[0]["function"]["arguments"] == '{"days":2}'
    assert native["function"] == {"name": "get_weather", "arguments": '{"days": "2"}'}


@each_case
def test_a_forced_answer_as_the_ai_sdk_has_it(text: str, name: str, arguments: str) -> None:
    middleware = tp.create_tool_middleware("hermes", compat="ai-sdk-2")
    answer = middleware.wrap_generate(transform("required", compat="ai-sdk-2"), text)
    assert [c["function"] for c in answer.tool_calls] == [{"name": name, "arguments": arguments}]
    assert answer.message["content"] is None


ANY_OF = ("any_of", "any_of_many")


@pytest.mark.parametrize("form", ANY_OF)
def test_a_schema_that_engines_follow(form: Any) -> None:
    turn = transform("required", choice_schema=form)
    schema = turn.params["response_format"]["json_schema"]["schema"]
    assert "if" not in json.dumps(schema)
    assert schema["type"] == "object"
    assert [branch["properties"]["name"] for branch in schema["anyOf"]] == [
        {"const": "get_weather"},
        {"const": "get_loc"},
    ]
    good = {"name": "get_weather", "arguments": {"city": "A"}}
    checker = Draft202012Validator(schema)
    assert checker.is_valid(good)
    assert not checker.is_valid({**good, "name": "get_loc2"})
    assert not checker.is_valid({**good, "arguments": {"days": "x"}})
    named = transform({"type": "tool", "name": "get_loc"}, choice_schema=form).params
    inner = named["response_format"]["json_schema"]["schema"]
    assert inner["properties"]["name"] == {"const": "get_loc"}


REFERRING = {
    "name": "nest",
    "parameters": {
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}},
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}, "$ref": {"const": {"$ref": "#"}}},
        "required": ["root"],
        "additionalProperties": False,
    },
}


@pytest.mark.parametrize("choice", ["required", {"type": "tool", "name": "nest"}])
def test_references_of_a_tool_lead_to_its_own_schema(choice: Any) -> None:
    other = {**REFERRING, "name": "other", "parameters": {"$defs": {"Node": {"type": "null"}},
             "type": "object", "properties": {"root": {"$ref": "#/$defs/Node"}}}}  # fmt: skip
    turn = transform(choice, [REFERRING, other], choice_schema="any_of")
    schema = turn.params["response_format"]["json_schema"]["schema"]
    checker = Draft202012Validator(schema)
    deep = {"root": {"next": {"next": {}}}, "$ref": {"$ref": "#"}}
    assert checker.is_valid({"name": "nest", "arguments": deep})
    assert not checker.is_valid({"name": "nest", "arguments": {"root": {"next": 1}}})
    assert not checker.is_valid({"name": "nest", "arguments": {"root": None}})
    assert checker.is_valid({"name": "other", "arguments": {"root": None}}) == (
        choice == "required"
    )


@pytest.mark.parametrize("parameters", [True, {}, {"properties": {"a": True}}])
def test_arguments_are_an_object_whatever_the_schema_says(parameters: Any) -> None:
    turn = transform("required", [{"name": "f", "parameters": parameters}], choice_schema="any_of")
    checker = Draft202012Validator(turn.params["response_format"]["json_schema"]["schema"])
    assert checker.is_valid({"name": "f", "arguments": {"a": 1}})
    assert not checker.is_valid({"name": "f", "arguments": "a"})


@pytest.mark.parametrize("by", ["response_format", "prompt"])
def test_parallel_calls_are_asked_for_as_a_list(by: Any) -> None:
    middleware = tp.create_tool_middleware("hermes", choice_schema="any_of_many", tool_choice_by=by)

    def root(choice: Any, **more: Any) -> str:
        turn = middleware.transform_params(
            {"messages": [], "tools": TOOLS, "tool_choice": choice, **more}
        )
        if by == "prompt":
            text = turn.params["messages"][0]["content"]
            return json.loads(text[text.rindex("\n") + 1 :])["type"]  # type: ignore[no-any-return]
        return turn.params["response_format"]["json_schema"]["schema"]["type"]  # type: ignore[no-any-return]

    assert root("required", parallel_tool_calls=True) == "array"
    assert root("required") == root("required", parallel_tool_calls=False) == "object"
    assert root({"type": "tool", "name": "get_loc"}, parallel_tool_calls=True) == "object"


@each_case
def test_several_calls_answer_a_required_choice(text: str) -> None:
    middleware = tp.create_tool_middleware("hermes", choice_schema="any_of_many")
    asked: dict[str, Any] = {"messages": [], "tools": TOOLS, "tool_choice": "required"}
    turn = middleware.transform_params(asked)
    answer = middleware.wrap_generate(turn, text)
    assert [c["function"]["name"] for c in answer.tool_calls] == ["get_weather", "get_loc"]
    assert answer.tool_calls[0]["function"]["arguments"] == '{"city":"A","days":2}'
    stream = middleware.wrap_stream(turn)
    assert stream.feed(text) == ()
    deltas, _ = stream.close("stop")
    assert [d["tool_calls"][0]["index"] for d in deltas if "tool_calls" in d] == [0, 1]
    # All of them, or none: one that is wrong makes a forced answer wrong.
    bad = text.replace("get_loc", "nope")
    assert middleware.wrap_generate(turn, bad).tool_calls == ()
    for more in (
        {"parallel_tool_calls": False},
        {"tool_choice": {"type": "tool", "name": "get_loc"}},
    ):
        alone = middleware.transform_params({**asked, **more})
        assert middleware.wrap_generate(alone, text).tool_calls == ()


def test_a_form_of_schema_that_nobody_knows() -> None:
    with pytest.raises(BadOptions, match="if_then_else or any_of"):
        tp.create_tool_middleware("hermes", choice_schema="all_of")  # type: ignore[arg-type]
