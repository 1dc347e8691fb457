"""What is sent instead of a request with tools: the prompt, the history as text, nothing of the
caller's changed."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

import toolparse_lab as tp
from tests.tables import each_case
from tests.tools import function_named
from toolparse_lab.core.errors import BadMessage, BadOptions
from toolparse_lab.formats.registry import family_heads
from toolparse_lab.middleware import ToolCallMiddleware

WEATHER = function_named(
    "get_weather", "Weather by city", required=["city"], city="string", days="integer"
)
LOC = function_named("get_loc")
TOOLS = [WEATHER, LOC]
HERMES = tp.create_tool_middleware("hermes")


def call(id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": json.dumps(arguments)},
    }


def sent(
    messages: Any, middleware: ToolCallMiddleware = HERMES, **more: Any
) -> list[dict[str, Any]]:
    """The rewritten messages behind the system prompt."""
    params = middleware.transform_params({"messages": messages, "tools": TOOLS, **more}).params
    rewritten: list[dict[str, Any]] = params["messages"]
    return rewritten[1:] if rewritten and rewritten[0]["role"] == "system" else rewritten


def test_tools_go_into_a_system_prompt_and_everything_else_is_kept() -> None:
    given = {
        "model": "m", "temperature": 0.5, "messages": [{"role": "user", "content": "hi"}],
        "tools": TOOLS, "tool_choice": "auto", "parallel_tool_calls": False,
        "response_format": {"type": "text"}, "stream": True,
    }  # fmt: skip
    before = copy.deepcopy(given)
    turn = HERMES.transform_params(given)
    assert given == before
    assert set(turn.params) == {"model", "temperature", "messages", "response_format", "stream"}
    system, user = turn.params["messages"]
    assert system["role"] == "system"
    assert "get_weather" in system["content"]
    assert "<tool_call>" in system["content"]
    assert user == {"role": "user", "content": "hi"}
    assert (turn.choice, turn.tool_name, turn.active, turn.forced) == ("auto", None, True, False)
    assert [t.name for t in turn.tools] == ["get_weather", "get_loc"]


@pytest.mark.parametrize("role", ["system", "developer"])
def test_the_prompt_is_merged_with_a_system_message_at_the_beginning(role: str) -> None:
    messages = [{"role": role, "content": "Be brief."}, {"role": "user", "content": "hi"}]
    first = HERMES.transform_params({"messages": messages, "tools": TOOLS}).params["messages"]
    assert [m["role"] for m in first] == [role, "user"]
    assert first[0]["content"].endswith("\n\nBe brief.")
    last = tp.create_tool_middleware("hermes", placement="last")
    assert (
        last.transform_params({"messages": messages, "tools": TOOLS})
        .params["messages"][0]["content"]
        .startswith("Be brief.\n\n")
    )


def test_a_system_message_further_down_stays_there() -> None:
    messages = [{"role": "user", "content": "hi"}, {"role": "system", "content": "late"}]
    first = HERMES.transform_params({"messages": messages, "tools": TOOLS}).params["messages"]
    assert [m["role"] for m in first] == ["system", "user", "system"]
    assert first[2]["content"] == "late"
    last = tp.create_tool_middleware("hermes", placement="last").transform_params(
        {"messages": messages, "tools": TOOLS}
    )
    assert [m["role"] for m in last.params["messages"]] == ["user", "system", "system"]


def test_parts_of_a_system_message_with_marks_are_kept() -> None:
    marked = {"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}
    messages = [{"role": "system", "content": [marked]}]
    (system,) = HERMES.transform_params({"messages": messages, "tools": TOOLS}).params["messages"]
    assert system["content"][-1] == marked
    assert system["content"][0]["text"].endswith("\n\n")


def test_an_empty_conversation_and_one_without_tools() -> None:
    assert [
        m["role"]
        for m in HERMES.transform_params({"messages": [], "tools": TOOLS}).params["messages"]
    ] == ["system"]
    none: list[Any] = []
    for tools in (None, none):
        turn = HERMES.transform_params(
            {"messages": [{"role": "user", "content": "hi"}], "tools": tools}
        )
        assert turn.params == {"messages": [{"role": "user", "content": "hi"}]}
        assert not turn.active
    assert HERMES.transform_params({}).params == {"messages": []}


@each_case
def test_what_is_sent(messages: list[Any], expected: list[Any], problems: list[str]) -> None:
    errors: list[str] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda m, _: errors.append(m))
    before = copy.deepcopy(messages)
    assert sent(messages, middleware) == expected
    assert errors == problems
    assert messages == before


class Dumped:
    """A message as clients return it."""

    def __init__(self, **fields: Any) -> None:
        self.fields = fields

    def model_dump(self, *, exclude_none: bool = False) -> dict[str, Any]:
        return {k: v for k, v in self.fields.items() if not (exclude_none and v is None)}


def test_messages_of_clients_are_read() -> None:
    said = Dumped(
        role="assistant", content=None, tool_calls=[call("1", "get_loc")], function_call=None
    )
    assert sent([said]) == [
        {"role": "assistant", "content": '<tool_call>{"name":"get_loc","arguments":{}}</tool_call>'}
    ]


@pytest.mark.parametrize("protocol", list(family_heads()))
def test_what_an_answer_said_is_read_the_same_from_the_history(protocol: str) -> None:
    middleware = tp.create_tool_middleware(protocol)
    turn = middleware.transform_params({"messages": [], "tools": TOOLS})
    spoken = tp.protocols()[protocol].format_tool_call(
        {"name": "get_weather", "arguments": {"city": "Oslo", "days": 2}}
    )
    first = middleware.wrap_generate(turn, spoken)
    assert [c["function"]["name"] for c in first.tool_calls] == ["get_weather"]
    (again,) = sent([first.message], middleware)
    second = middleware.wrap_generate(turn, again["content"])
    assert [c["function"] for c in second.tool_calls] == [c["function"] for c in first.tool_calls]
    results = [
        {"role": "tool", "tool_call_id": c["id"], "content": "rain"} for c in first.tool_calls
    ]
    (_, result) = sent([first.message, *results], middleware)
    assert "rain" in result["content"]
    assert not middleware.wrap_generate(turn, result["content"]).tool_calls


def test_a_result_of_no_call_is_an_error() -> None:
    stray = {"role": "tool", "tool_call_id": "zz", "content": "x"}
    with pytest.raises(BadMessage, match="zz"):
        sent([stray])


@each_case
def test_what_a_result_may_be(result: dict[str, Any], content: str) -> None:
    (message,) = sent([{"role": "tool", "name": "get_loc", **result}])
    assert (
        message["content"]
        == f'<tool_response>{{"name":"get_loc","content":{content}}}</tool_response>'
    )


def test_images_are_left_out_where_they_are_not_taken() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    seen = {"role": "tool", "name": "get_loc", "content": [{"type": "text", "text": "seen"}, image]}
    bare = tp.create_tool_middleware("hermes", media="placeholder")
    (message,) = sent([seen, {"role": "user", "content": "b"}], bare)
    response = '<tool_response>{"name":"get_loc","content":"seen\\n[Image]"}</tool_response>'
    assert message["content"] == f"{response}\nb"


def test_what_is_sent_is_the_callers_in_no_part() -> None:
    part: dict[str, Any] = {"type": "image_url", "image_url": {"url": "u"}}
    (message,) = sent([{"role": "user", "content": [part]}])
    message["content"][0]["image_url"]["url"] = "other"
    assert part["image_url"]["url"] == "u"


def test_a_call_that_the_format_cannot_write_is_shown_as_json() -> None:
    errors: list[Any] = []
    middleware = tp.create_tool_middleware("morph_xml", on_error=lambda *a: errors.append(a))
    (message,) = sent(
        [{"role": "assistant", "content": None, "tool_calls": [call("1", "no name", a=1)]}],
        middleware,
    )
    assert json.loads(message["content"]) == {"name": "no name", "arguments": '{"a": 1}'}
    assert len(errors) == 1
    assert errors[0][1]["toolName"] == "no name"


def test_results_of_the_ai_sdk_and_results_of_ones_own() -> None:
    messages = [{"role": "tool", "name": "get_loc", "content": {"type": "text", "value": "here"}}]
    old = '<tool_response>{"toolName":"get_loc","result":{"type":"text","value":"here"}}</tool_response>'
    for middleware in (
        tp.create_tool_middleware("hermes", compat="ai-sdk-2"),
        tp.create_tool_middleware("hermes", result_format="ai-sdk-2"),
    ):
        assert sent(messages, middleware)[0]["content"] == old
    own = tp.create_tool_middleware("hermes", result_format=lambda r: f"{r.name} said {r.content}")
    assert sent(messages, own)[0]["content"] == "get_loc said here"


def test_original_schemas_read_the_arguments_and_are_not_shown() -> None:
    stripped = {"name": "get_weather", "parameters": {"type": "object", "properties": {"days": {}}}}
    turn = HERMES.transform_params(
        {"messages": [], "tools": [stripped]},
        original_tool_schemas={
            "get_weather": {"type": "object", "properties": {"days": {"type": "integer"}}}
        },
    )
    assert "integer" not in turn.params["messages"][0]["content"]
    answer = HERMES.wrap_generate(
        turn, '<tool_call>{"name":"get_weather","arguments":{"days":"3"}}</tool_call>'
    )
    assert answer.tool_calls[0]["function"]["arguments"] == '{"days":3}'


def test_provider_tools_are_left_out_and_said_to_be() -> None:
    errors: list[Any] = []
    middleware = tp.create_tool_middleware("hermes", on_error=lambda *a: errors.append(a))
    turn = middleware.transform_params({"messages": [], "tools": [{"type": "web_search"}, LOC]})
    assert [t.name for t in turn.tools] == ["get_loc"]
    assert [m["tool"] for _, m in errors] == [{"type": "web_search"}]
    assert not middleware.transform_params(
        {"messages": [], "tools": [{"type": "web_search"}]}
    ).active


def test_a_template_of_ones_own() -> None:
    by_function = tp.create_tool_middleware(
        "hermes", tool_system_prompt_template=lambda tools: f"T{len(json.loads(tools))}"
    )
    assert (
        by_function.transform_params({"messages": [], "tools": TOOLS}).params["messages"][0][
            "content"
        ]
        == "T2"
    )
    by_text = tp.create_tool_middleware("hermes", tool_system_prompt_template="Use {{tools_json}}")
    assert (
        "get_loc"
        in by_text.transform_params({"messages": [], "tools": TOOLS}).params["messages"][0][
            "content"
        ]
    )


@pytest.mark.parametrize("messages", ["hi", [{"content": "x"}], [1], {"role": "user"}])
def test_what_is_no_conversation(messages: Any) -> None:
    with pytest.raises(BadMessage):
        HERMES.transform_params({"messages": messages, "tools": TOOLS})


@each_case
def test_bad_options(options: dict[str, Any]) -> None:
    with pytest.raises(BadOptions):
        tp.create_tool_middleware("hermes", **options)


def test_auto_cannot_write_and_functions_were_replaced() -> None:
    with pytest.raises(BadOptions, match="auto"):
        tp.create_tool_middleware("auto")
    with pytest.raises(BadOptions, match="tools"):
        HERMES.transform_params({"messages": [], "functions": []})
    assert HERMES.transform_params({"messages": [], "functions": None}).params["functions"] is None


def test_an_on_error_that_raises_breaks_nothing() -> None:
    def fail(message: str, metadata: Any) -> None:
        raise RuntimeError(message)

    middleware = tp.create_tool_middleware("hermes", on_error=fail)
    assert (
        sent([{"role": "assistant", "content": [{"type": "weird"}]}], middleware)[0]["content"]
        == '{"type":"weird"}'
    )


def test_presets() -> None:
    said = [{"role": "assistant", "content": None, "tool_calls": [call("1", "get_loc")]}]
    for middleware, opener in (
        (tp.hermes_tool_middleware, "<tool_call>"), (tp.gemma_tool_middleware, "```tool_call"),
        (tp.xml_tool_middleware, "<get_loc"),
    ):  # fmt: skip
        assert sent(said, middleware)[0]["content"].startswith(opener)


@pytest.mark.parametrize("protocol", list(family_heads()))
def test_parallel_calls_of_the_history_read_back_together(protocol: str) -> None:
    calls = [
        {"id": str(i), "type": "function", "function": {"name": "f", "arguments": f'{{"a":{i}}}'}}
        for i in range(3)
    ]
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": "Now:", "tool_calls": calls},
    ]
    tool = {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}}
    made = tp.create_tool_middleware(protocol).transform_params(
        {"messages": messages, "tools": [tool]}
    )
    said = made.params["messages"][-1]["content"].removeprefix("Now:\n")
    assert [c.arguments for c in tp.parse(said, protocol, [tool]).calls] == [
        {"a": 0},
        {"a": 1},
        {"a": 2},
    ]


@each_case
def test_an_approval_is_told_as_a_result(
    answer: dict[str, Any], output: Any, expected: list[str]
) -> None:
    call = {"type": "tool-call", "toolCallId": "c", "toolName": "get_loc", "input": {}}
    question = {"type": "tool-approval-request", "approvalId": "a", "toolCallId": "c"}
    result = {"type": "tool-result", "toolCallId": "c", "toolName": "get_loc", "output": output}
    response = {"type": "tool-approval-response", "approvalId": "a", **answer}
    messages = [
        {"role": "assistant", "content": [call, question]},
        {"role": "tool", "content": [response]},
        *([{"role": "tool", "content": [result]}] if output else []),
    ]
    assistant, user = sent(messages)
    assert assistant["content"] == '<tool_call>{"name":"get_loc","arguments":{}}</tool_call>'
    results = user["content"].removeprefix("<tool_response>").removesuffix("</tool_response>")
    contents = [
        json.loads(text)["content"] for text in results.split("</tool_response>\n<tool_response>")
    ]
    assert contents == expected
