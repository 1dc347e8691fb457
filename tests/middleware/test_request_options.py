"""Options that a request says for itself: they hold for this request alone, and none is sent."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.entry.test_foreign import Snake
from tests.middleware.test_parity import streamed
from toolparse_lab.core.errors import BadOptions

TOOLS = [{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}]
TEXT = '<tool_call>{"name": "f", "arguments": {"n": "2"}}</tool_call>'
BROKEN = '<tool_call>{"name": "f"'
MIDDLEWARE = tp.hermes_tool_middleware


def ask(text: str = TEXT, *, pieces: bool = False, **more: Any) -> str:
    """The arguments of the call that an answer is."""
    turn = MIDDLEWARE.transform_params({"messages": [], "tools": TOOLS, **more})
    assert set(turn.params) <= {"messages", "providerOptions"}
    if pieces:
        answer = streamed(MIDDLEWARE.wrap_stream(turn), text)
    else:
        answer = MIDDLEWARE.wrap_generate(turn, text)
    return "".join(c["function"]["arguments"] for c in answer.tool_calls)


@pytest.mark.parametrize("pieces", [False, True])
@pytest.mark.parametrize(
    "said",
    [
        {"toolparse": {"coerce": "none"}},
        {"toolparse": {"options": {"coerce": "none"}}},
        {"toolparse": {"options": tp.ParseOptions(coerce="none")}},
        {"providerOptions": {"toolCallMiddleware": {"coerce": "none", "toolNames": ["f"]}}},
        {"provider_options": {"tool_call_middleware": {"coerce": "none"}}},
        {
            "toolparse": {
                "original_tool_schemas": {"f": {"properties": {"n": {}}}},
                "coerce": "none",
            }
        },
    ],
)
def test_options_hold_for_one_request(said: dict[str, Any], pieces: bool) -> None:
    assert ask(pieces=pieces) == '{"n":2}'
    assert ask(pieces=pieces, **said) == '{"n":"2"}'
    assert ask(pieces=pieces) == '{"n":2}'


@pytest.mark.parametrize("pieces", [False, True])
def test_on_error_hears_of_its_own_request(pieces: bool) -> None:
    heard: list[str] = []

    def hear(message: str, metadata: Any) -> None:
        heard.append(metadata["toolCall"])

    assert ask(BROKEN, pieces=pieces, toolparse={"on_error": hear}) == ""
    assert ask(BROKEN, pieces=pieces) == ""
    said = {"toolCallMiddleware": {"onError": hear}}
    assert ask(BROKEN, pieces=pieces, providerOptions=said) == ""
    assert heard == [BROKEN, BROKEN]


def test_options_reach_a_protocol_of_somebody_elses() -> None:
    heard: list[Any] = []

    class Theirs(Snake):
        def parse_generated_text(self, text: str, tools: Any, options: Any = None) -> list[Any]:
            heard.append((options.get("answerIn"), options["answer_in"], options.get("coerce")))
            return super().parse_generated_text(text, tools, options)

    middleware = tp.create_tool_middleware(Theirs())
    said = {"providerOptions": {"toolCallMiddleware": {"answerIn": "verse", "coerce": "none"}}}
    turn = middleware.transform_params({"messages": [], "tools": TOOLS, **said})
    text = '@@{"name": "f", "arguments": {"n": "2"}}@@'
    assert (
        middleware.wrap_generate(turn, text).tool_calls[0]["function"]["arguments"] == '{"n":"2"}'
    )
    assert heard == [("verse", "verse", "none")]
    other = middleware.transform_params({"messages": [], "tools": TOOLS})
    with pytest.raises(BadOptions, match="unknown option"):
        MIDDLEWARE.transform_params({"messages": [], "tools": TOOLS, **said})
    assert other.params == {"messages": other.params["messages"]}


def test_options_of_the_provider_stay() -> None:
    said = {"toolCallMiddleware": {"repair": False}, "openai": {"store": False}}
    params = {"messages": [], "tools": TOOLS, "providerOptions": said}
    assert MIDDLEWARE.transform_params(params).params["providerOptions"] == {
        "openai": {"store": False}
    }
    assert said == {"toolCallMiddleware": {"repair": False}, "openai": {"store": False}}


@pytest.mark.parametrize(
    "said", [{"coerse": "none"}, {"coerce": "never"}, {"on_error": 1}, {"options": 5}, [], "safe"]
)
def test_what_nobody_knows_is_refused(said: Any) -> None:
    with pytest.raises(BadOptions):
        MIDDLEWARE.transform_params({"messages": [], "tools": TOOLS, "toolparse": said})
