"""Options of the bridge: by keyword and in the model string, read here and sent to nobody."""

from __future__ import annotations

from typing import Any

import pytest

import toolparse_lab as tp
from tests.bridge import NOW, TOOLS, WAYS, ask, calls_of, joined, litellm
from tests.mock_openai import MockOpenAI, unseen
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions
from toolparse_lab.core.types import ParseOptions
from toolparse_lab.integrations.litellm_bridge.options import KEYWORDS, middleware_for

GHOST = '<tool_call>{"name": "ghost", "arguments": {"a": 1}}</tool_call>'
PLACES = ("keywords", "model string")
WORDS: dict[str, Any] = {
    "tool_choice_by": "prompt",
    "unknown_tools": "call",
    "broken_calls": "text",
    "placement": "last",
    "wording": "brief",
    "policy": "safe",
}


def said_by(place: str, **options: Any) -> dict[str, Any]:
    """The arguments of `ask` that say these options in one of PLACES."""
    if place == "keywords":
        return options
    return {"protocol": ";".join(["hermes", *(f"{name}={options[name]}" for name in options)])}


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.exhaustive(3)
def test_options_are_read_and_never_sent(
    mock: MockOpenAI, way: str, place: str, stream: bool
) -> None:
    said = said_by(place, **WORDS)
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": unseen("say=" + GHOST)},
    ]
    answer = ask(
        way, mock, "", messages=messages, tools=TOOLS, stream=stream, extra_body={"mine": 1}, **said
    )
    if stream:
        calls = [call[1:] for call in joined(answer)["calls"]]
    else:
        calls = calls_of(answer.choices[0].message)
    assert calls == [("ghost", '{"a":1}')]
    body = mock.bodies[-1]
    assert body["mine"] == 1
    assert body["messages"][0]["content"].startswith("Be kind.")
    assert not set(body) & {*KEYWORDS, "choice", "unknown", "broken"}
    assert body["model"] == "m"

    ask(way, mock, "say=" + NOW, tools=TOOLS, stream=stream, tool_choice="required", **said)
    assert "response_format" not in mock.bodies[-1]
    assert not set(mock.bodies[-1]) & set(KEYWORDS)


@pytest.mark.parametrize("way", WAYS)
def test_options_go_with_requests_that_have_no_tools(mock: MockOpenAI, way: str) -> None:
    ask(way, mock, "hello", options={"repair": False}, neutral_text=False, **WORDS)
    assert not set(mock.bodies[-1]) & set(KEYWORDS)


@pytest.mark.parametrize("way", WAYS)
def test_options_of_the_parser(mock: MockOpenAI, way: str) -> None:
    damaged = NOW.replace("{}}", "{},}")
    for more, called in (
        ({}, True),
        ({"options": {"repair": False}}, False),
        ({"options": ParseOptions(repair=False)}, False),
        ({"protocol": "hermes;repair=off"}, False),
        ({"protocol": "hermes;repair=off", "options": {"repair": True}}, True),
    ):
        answer = ask(way, mock, "say=" + damaged, tools=TOOLS, **more)
        assert bool(answer.choices[0].message.tool_calls) == called, more
        assert "options" not in mock.bodies[-1]


def test_a_keyword_goes_before_the_model_string() -> None:
    both = middleware_for("hermes;unknown=call;policy=safe", {"unknown_tools": "text"})
    assert both.unknown_tools == "text"
    assert both.ways.batch.coerce == "safe"
    assert middleware_for("hermes", {}).ways.batch.coerce == "middleware"
    assert middleware_for("hermes", {"policy": "none"}).ways.batch.coerce == "none"
    assert middleware_for("hermes; neutral = off ;max_depth=20", {}).ways.batch.max_depth == 20
    assert not middleware_for("hermes;neutral=off", {}).neutral_text
    assert middleware_for("hermes;choice=prompt", {}) is middleware_for("hermes;choice=prompt", {})


def test_a_wording_is_that_of_the_protocol() -> None:
    def prompt(spec: str) -> str:
        asked = middleware_for(spec, {}).transform_params({"messages": [], "tools": TOOLS})
        return str(asked.params["messages"][0]["content"])

    assert prompt("hermes;wording=plain") == prompt("hermes")
    assert len(prompt("hermes;wording=brief")) < len(prompt("hermes;wording=plain"))
    assert "get_weather" in prompt("hermes;wording=brief")
    rules = prompt("hermes;type_rules=on")
    assert len(prompt("hermes")) < len(rules) < len(prompt("hermes;type_rules=pairs"))
    assert prompt("hermes;type_rules=off") == prompt("hermes")


@each_case
def test_what_is_wrong_is_said_before_anything_is_sent(
    mock: MockOpenAI, spec: str, keywords: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadOptions, match=f"(?s){message}"):
        middleware_for(spec, keywords)
    before = mock.calls
    for way in WAYS:
        kind: Any = litellm().BadRequestError if way.endswith("provider") else BadOptions
        with pytest.raises(kind, match=f"(?s){message}"):
            ask(way, mock, "hello", protocol=spec, tools=TOOLS, **keywords)
    assert mock.calls == before


def test_a_middleware_takes_no_options_beside_its_own(mock: MockOpenAI) -> None:
    before = mock.calls
    asked: dict[str, Any] = {
        "model": "openai/m",
        "messages": [],
        "tools": TOOLS,
        "api_base": mock.url,
    }
    with pytest.raises(BadOptions, match="create_tool_middleware"):
        tp.hermes_tool_middleware.completion(**asked, unknown_tools="call")  # type: ignore[call-arg]
    assert mock.calls == before
