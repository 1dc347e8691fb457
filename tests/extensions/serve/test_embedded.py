"""The embedded model's endpoint: what the engine answers, and requests with tools."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from tests.bridge import TIME, joined
from tests.tools import function_named
from toolparse_lab.core.errors import BadOptions, SetupError, UnknownProtocol
from toolparse_lab.extensions.serve import LocalServer, serve_local
from toolparse_lab.runner.complete import complete
from toolparse_lab.runner.exchange.types import Completion, Model, Request
from toolparse_lab.runner.loop import run_sync

pytestmark = [pytest.mark.local_model, pytest.mark.slow]

ASKED = {
    "model": "smollm2-135m",
    "messages": [{"role": "user", "content": "Roll a die."}],
    "max_tokens": 100,
    "temperature": 0,
    "seed": 1,
}
ROLL = function_named("roll", required=["sides"], sides={"enum": [6, 20]})


@pytest.fixture(scope="module")
def server() -> Iterator[LocalServer]:
    pytest.importorskip("xllamacpp")
    with serve_local() as running:
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
        serve_local(protocol="nonsense")


def complete_one(
    model: Model, text: str = "Hi", *, stream: bool = False, **params: Any
) -> Completion:
    params = {"max_tokens": 24, "temperature": 0, "seed": 1, **params}
    messages = ({"role": "user", "content": text},)
    return run_sync(complete(Request(model, "small", messages, params, stream=stream)))


def test_the_runner_asks_it_as_any_endpoint(server: LocalServer) -> None:
    answers = [complete_one(server.model, stream=stream) for stream in (False, True)]
    assert {c.status for c in answers} == {"ok"}, answers[0].error_message
    assert answers[0].raw == answers[1].raw
    assert len(answers[1].chunks) > 5
    call = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    for stream in (False, True):
        grammar = "root ::= " + json.dumps(call)
        assert complete_one(server.model, stream=stream, grammar=grammar, max_tokens=60).raw == call
        refused = complete_one(server.model, stream=stream, grammar="root ::= nowhere")
        assert refused.error_kind == "bad_request"
        assert complete_one(server.model, "x " * 9000, stream=stream).error_kind == (
            "context_overflow"
        )


def test_a_closed_endpoint_is_gone_and_a_taken_port_is_refused() -> None:
    with serve_local(api_key="only-mine") as running:
        url = f"{running.url}/chat/completions"
        body = json.dumps(
            {"messages": [{"role": "user", "content": "x"}], "max_tokens": 1}
        ).encode()
        asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})
        with pytest.raises(urllib.error.HTTPError, match="401") as refused:
            urllib.request.urlopen(asked)
        refused.value.close()
        assert complete_one(running.model, max_tokens=1).status == "ok"
        assert "only-mine" not in repr(running) + repr(running.model)
        port = int(running.url.split(":")[2].split("/")[0])
        with pytest.raises(SetupError, match="cannot be used"):
            serve_local(port=port)
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(asked, timeout=5)
    with serve_local(port=port) as again:
        assert str(port) in again.url


def test_an_open_endpoint_stays_on_loopback() -> None:
    with pytest.raises(BadOptions, match="key"):
        serve_local(host="0.0.0.0")
