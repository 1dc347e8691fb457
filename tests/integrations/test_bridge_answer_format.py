"""What a request says beside its tools: a response_format, parameters of newer models, tools that
are no functions."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel

import toolparse_lab as tp
from tests.bridge import OSLO, TOOLS, WAYS, ask, calls_of, checked, joined, litellm
from tests.mock_openai import MockOpenAI
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, BadToolChoice, ResponseFormatRejected

CALL = '{"name": "get_weather", "arguments": {"city": "Oslo", "days": "2"}}'
OSLO_CALL = ("get_weather", '{"city":"Oslo","days":2}')
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])


class Sky(BaseModel):
    """How the sky looks, and that of a part of it."""

    name: str
    part: Sky | None = None


SCHEMA = Sky.model_json_schema()
AS_SCHEMA = {
    "type": "json_schema",
    "json_schema": {"name": "sky", "schema": SCHEMA, "strict": True},
}
AS_OBJECT = {"type": "json_object"}
FORMATS = [AS_SCHEMA, AS_OBJECT, Sky]


def said(answer: Any) -> tuple[str, list[tuple[str, str]], str]:
    """Content, calls and finish reason of an answer, whole or streamed."""
    if isinstance(answer, list):
        parts = joined(answer)
        (reason,) = parts["reasons"]
        return parts["content"], [call[1:] for call in parts["calls"]], reason
    choice = checked(answer).choices[0]
    return choice.message.content or "", calls_of(choice.message), choice.finish_reason


@STREAMED
@pytest.mark.parametrize("form", FORMATS, ids=["schema", "object", "pydantic"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(5)
def test_an_answer_is_a_call_or_of_the_form(
    mock: MockOpenAI, way: str, form: Any, stream: bool
) -> None:
    more: dict[str, Any] = {"tools": TOOLS, "response_format": form, "stream": stream}
    assert said(ask(way, mock, "say=" + CALL, **more)) == ("", [OSLO_CALL], "tool_calls")
    sent = mock.bodies[-1]["response_format"]
    if form is AS_OBJECT:
        assert sent == AS_OBJECT
    else:
        checker = Draft202012Validator(sent["json_schema"]["schema"])
        assert checker.is_valid(json.loads(CALL.replace('"2"', "2")))
        assert checker.is_valid({"name": "now", "part": {"name": "x", "part": None}})
        assert not checker.is_valid({"arguments": {"city": "Oslo"}})
        assert not checker.is_valid({"part": {"part": None}})
    assert "single JSON value" in mock.bodies[-1]["messages"][0]["content"]

    # An answer that names a tool, or holds the markup of a call, is still an answer.
    for text in ('{"name": "now"}', json.dumps({"name": f"see {OSLO}"}), '{"name": "grey"}'):
        answer = ask(way, mock, "escaped say=" + json.dumps(text), **more)
        assert said(answer) == (text, [], "stop")
    # A provider that does not keep to the format may follow the prompt.
    assert said(ask(way, mock, "say=" + OSLO, **more)) == ("", [OSLO_CALL], "tool_calls")


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3, 1)
def test_without_response_format_the_form_is_asked_for_in_words(
    mock: MockOpenAI, way: str, stream: bool
) -> None:
    more: dict[str, Any] = {"tools": TOOLS, "tool_choice_by": "prompt", "stream": stream}
    answer = ask(way, mock, "noformat say=" + OSLO, response_format=AS_SCHEMA, **more)
    assert said(answer)[1] == [OSLO_CALL]
    assert "response_format" not in mock.bodies[-1]
    assert '"$defs"' in mock.bodies[-1]["messages"][0]["content"]
    with pytest.raises(ResponseFormatRejected, match='tool_choice_by="prompt"'):
        ask(way, mock, "noformat say=x", tools=TOOLS, stream=stream, response_format=AS_SCHEMA)


@pytest.mark.parametrize("way", WAYS)
def test_a_forced_call_has_no_other_form(mock: MockOpenAI, way: str) -> None:
    asked: dict[str, Any] = {"tools": TOOLS, "tool_choice": "required"}
    answer = ask(way, mock, "say=" + CALL, response_format=AS_SCHEMA, **asked)
    assert said(answer)[1] == [OSLO_CALL]
    ask(way, mock, "say=" + CALL, **asked)
    assert mock.bodies[-1]["response_format"] == mock.bodies[-2]["response_format"]


@pytest.mark.parametrize("way", WAYS)
def test_a_form_stays_as_it_is_without_tools(mock: MockOpenAI, way: str) -> None:
    for more in ({}, {"tools": TOOLS, "tool_choice": "none"}):
        answer = ask(way, mock, "say={}", response_format=AS_SCHEMA, **more)
        assert said(answer)[0] == "{}"
        sent = mock.bodies[-1]["response_format"]["json_schema"]["schema"]
        assert sent["$defs"]["Sky"]["properties"].keys() == {"name", "part"}
    ask(way, mock, "say=x", response_format={"type": "text"}, tools=TOOLS)
    assert mock.bodies[-1]["response_format"] == {"type": "text"}


@each_case
def test_forms_that_cannot_stand_beside_tools(mock: MockOpenAI, form: Any, message: str) -> None:
    before = mock.calls
    with pytest.raises(BadOptions, match=message):
        ask("drop-in", mock, "x", tools=TOOLS, response_format=form)
    with pytest.raises(litellm().BadRequestError, match=message):
        ask("provider", mock, "x", tools=TOOLS, response_format=form)
    assert mock.calls == before


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_every_chunking_says_the_same(cut: int) -> None:
    middleware = tp.create_tool_middleware("hermes")
    asked = {"messages": [], "tools": TOOLS, "response_format": AS_OBJECT}
    turn = middleware.transform_params(asked)
    for text in (CALL, '{"a": 1}', f"Well. {OSLO}", CALL[:-5], f"<think>hm</think>{CALL}"):
        stream = middleware.wrap_stream(turn)
        deltas = [*stream.feed(text[:cut]), *stream.feed(text[cut:])]
        last, answer = stream.close("stop")
        whole = middleware.wrap_generate(turn, text)
        assert answer.result == whole.result
        content = "".join(delta.get("content", "") for delta in (*deltas, *last))
        assert content == (whole.message["content"] or "")


@STREAMED
@pytest.mark.parametrize("way", WAYS)
@each_case
@pytest.mark.exhaustive(5, 3)
def test_parameters_of_newer_models_pass(
    mock: MockOpenAI, way: str, name: str, value: Any, stream: bool
) -> None:
    answer = ask(way, mock, "say=" + OSLO, tools=TOOLS, stream=stream, **{name: value})
    assert said(answer)[1] == [OSLO_CALL]
    body = mock.bodies[-1]
    if name == "verbosity" and way.endswith("provider"):
        # litellm 1.80 has the argument and sends it nowhere.
        ask("alone", mock, "x", model="openai/gpt-5", **{name: value})
        assert body.get(name) == mock.bodies[-1].get(name)
    else:
        assert body[name] == value
    ask(way, mock, "hello", drop_params=True, stream=stream, thinking={"type": "enabled"})
    assert "thinking" not in mock.bodies[-1]


CUSTOM = {"type": "custom", "custom": {"name": "shell", "description": "Runs a line."}}
FLAT = {"type": "custom", "name": "shell", "format": {"type": "text"}}
ANTHROPIC = {"type": "custom", "name": "later", "input_schema": {"type": "object"}}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("custom", [CUSTOM, FLAT])
def test_custom_tools_are_left_out_with_a_note(mock: MockOpenAI, way: str, custom: Any) -> None:
    answer = ask(way, mock, "say=" + OSLO, tools=[*TOOLS, custom])
    assert said(answer)[1] == [OSLO_CALL]
    found = answer.choices[0].message.provider_specific_fields["toolparse"]
    assert found["left_out"] == [{"type": "custom", "name": "shell"}]
    assert "shell" not in json.dumps(mock.bodies[-1])


def test_custom_tools_in_a_middleware() -> None:
    notes: list[Any] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda *a: notes.append(a))
    history = [
        {"role": "assistant", "tool_calls": [
            {"id": "1", "type": "custom", "custom": {"name": "shell", "input": "ls"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "a b"},
    ]  # fmt: skip
    turn = middleware.transform_params({"messages": history, "tools": [*TOOLS, CUSTOM, ANTHROPIC]})
    assert [note for note, _ in notes] == [
        "tool-call-middleware: a custom tool is left out; it takes free text, and a call has JSON "
        "arguments"
    ]
    assert [tool.name for tool in turn.tools] == ["get_weather", "now", "later"]
    assert "ls" in turn.params["messages"][1]["content"]
    with pytest.raises(BadToolChoice):
        middleware.transform_params(
            {"messages": [], "tools": [CUSTOM],
             "tool_choice": {"type": "custom", "custom": {"name": "shell"}}}
        )  # fmt: skip
