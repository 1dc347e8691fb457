"""The embedded model's endpoint where a request has tools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.bridge import TIME, joined
from toolparse_lab.core.errors import UnknownProtocol
from toolparse_lab.integrations.gateway import serve_local_with_tools
from toolparse_lab.runner.local.server import LocalServer

pytestmark = [pytest.mark.local_model, pytest.mark.slow]

ASKED = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": "Roll a die."}],
    "max_tokens": 100,
    "temperature": 0,
    "seed": 1,
}
ROLL = {
    "type": "function",
    "function": {
        "name": "roll",
        "parameters": {
            "type": "object",
            "properties": {"sides": {"enum": [6, 20]}},
            "required": ["sides"],
        },
    },
}


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    pytest.importorskip("xllamacpp")
    with serve_local_with_tools() as running:
        yield running


@pytest.fixture
def client(server: LocalServer) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="none", max_retries=0) as c:
        yield c


def test_a_request_with_tools_is_answered_by_the_protocol(client: openai.OpenAI) -> None:
    asked = {**ASKED, "tools": [ROLL], "tool_choice": "required"}
    answer = client.chat.completions.create(**asked)  # type: ignore[call-overload]
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "roll"
    chunks = list(client.chat.completions.create(**asked, stream=True))  # type: ignore[call-overload]
    assert joined(chunks)["calls"][0][1:] == ("roll", call.function.arguments)


def test_all_else_goes_to_the_engine(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(**{**ASKED, "max_tokens": 4})  # type: ignore[call-overload]
    assert answer.system_fingerprint  # the engine's own
    assert answer.choices[0].message.content
    assert [model.id for model in client.models.list()] == ["smollm2-135m"]
    assert client.completions.create(model="m", prompt="One", max_tokens=3).choices[0].text


def test_tools_elsewhere_are_refused(client: openai.OpenAI) -> None:
    function: Any = TIME["function"]
    tools: Any = [{"type": "function", **function}]
    with pytest.raises(openai.BadRequestError, match="/v1/chat/completions"):
        client.responses.create(model="smollm2-135m", input="hi", tools=tools)


def test_an_unknown_protocol_starts_nothing() -> None:
    with pytest.raises(UnknownProtocol):
        serve_local_with_tools(protocol="nonsense")
