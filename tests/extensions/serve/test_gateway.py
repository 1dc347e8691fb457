"""The gateway over real HTTP: what callers get, what the upstream endpoint is asked, who may
ask."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.bridge import NOW, OSLO, TOOLS, joined
from tests.mock_openai import MockOpenAI, unseen
from tests.replay_server import ReplayServer, json_answer
from tests.tables import each_case
from tests.waiting import PATIENCE, running, wait_until
from toolparse_lab.cli.app import main
from toolparse_lab.core.errors import BadOptions, SetupError, UnknownProtocol
from toolparse_lab.extensions.serve import Gateway, serve
from toolparse_lab.extensions.serve.server import MOST_BODY

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[3]
KEY = "planted-caller-0123456789"


@pytest.fixture(scope="module")
def gateway(mock: MockOpenAI) -> Iterator[Gateway]:
    with serve(mock.url) as running:
        yield running


@pytest.fixture
def client(gateway: Gateway) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=gateway.url, api_key=KEY, max_retries=0, timeout=20) as c:
        yield c


def ask(client: openai.OpenAI, text: str, **more: Any) -> Any:
    """One question; a stream comes back as the list of its chunks."""
    asked = {"model": "m", "messages": [{"role": "user", "content": unseen(text)}], **more}
    answer = client.chat.completions.create(**asked)
    return list(answer) if more.get("stream") else answer


def send(gateway: Gateway, request: bytes) -> tuple[int, dict[str, Any]]:
    """Status and JSON of the response to some bytes; 0 where none came."""
    port = int(gateway.url.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]), json.loads(body)) if head else (0, {})


def post(body: bytes, *headers: str, path: str = "/v1/chat/completions") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", *headers]
    if not any(line.lower().startswith(("content-length", "transfer-")) for line in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


QUESTION = {"model": "m", "messages": [{"role": "user", "content": "say=Hi"}]}


@pytest.mark.parametrize("stream", [False, True])
def test_calls_come_back_in_the_shape_of_openai(client: openai.OpenAI, stream: bool) -> None:
    answer = ask(client, f"say=Well. {OSLO}{NOW}", tools=TOOLS, stream=stream)
    if stream:
        said = joined(answer)
        calls = [call[1:] for call in said["calls"]]
        content, reason = said["content"], said["reasons"][0]
        assert len(said["reasons"]) == 1
    else:
        (choice,) = answer.choices
        calls = [(c.function.name, c.function.arguments) for c in choice.message.tool_calls]
        content, reason = choice.message.content, choice.finish_reason
    assert calls == [("get_weather", '{"city":"Oslo","days":2}'), ("now", "{}")]
    assert (content.strip(), reason) == ("Well.", "tool_calls")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("more", [{}, {"tools": []}, {"tools": TOOLS, "tool_choice": "none"}])
def test_without_active_tools_text_passes(
    client: openai.OpenAI, stream: bool, more: dict[str, Any]
) -> None:
    answer = ask(client, f"say=Just {OSLO}", stream=stream, **more)
    text = joined(answer)["content"] if stream else answer.choices[0].message.content
    assert text == f"Just {OSLO}"


def test_the_counted_tokens_come_last_and_alone(client: openai.OpenAI) -> None:
    chunks = ask(client, "say=Hi", tools=TOOLS, stream=True, stream_options={"include_usage": True})
    assert chunks[-1].choices == []
    assert chunks[-1].usage.prompt_tokens == 10
    assert [c.usage for c in chunks[:-1]] == [None] * (len(chunks) - 1)


def test_the_upstream_endpoint_is_asked_what_came(client: openai.OpenAI, mock: MockOpenAI) -> None:
    body = {"top_k": 3, "guided_json": {"type": "object"}, "chat_template_kwargs": {"x": 1}}
    ask(client, "say=Hi", temperature=0.25, seed=7, extra_body=body)
    sent = mock.bodies[-1]
    assert {name: sent[name] for name in ("temperature", "seed", *body)} == {
        "temperature": 0.25,
        "seed": 7,
        **body,
    }
    assert mock.headers[-1]["authorization"] == f"Bearer {KEY}"


@each_case
def test_a_caller_does_not_steer_what_asks(
    client: openai.OpenAI, mock: MockOpenAI, member: dict[str, Any]
) -> None:
    before = mock.calls
    answer = ask(client, "say=Right", tools=TOOLS, extra_body=member)
    assert answer.choices[0].message.content == "Right"
    assert mock.calls == before + 1
    assert mock.headers[-1]["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize("stream", [False, True])
@each_case
def test_failures_keep_their_status_and_no_key(
    client: openai.OpenAI, order: str, status: int, stream: bool
) -> None:
    with pytest.raises(openai.APIStatusError) as failure:
        ask(client, f"{order} say=x", tools=TOOLS, stream=stream)
    assert failure.value.status_code == status
    assert KEY not in str(failure.value.body)
    assert "told to fail" in str(failure.value)
    if "after" in order:
        assert failure.value.response.headers["retry-after"] == "2"


def test_an_endpoint_that_is_not_there_is_a_bad_gateway() -> None:
    with (
        serve("http://127.0.0.1:9/v1") as gone,
        openai.OpenAI(base_url=gone.url, api_key=KEY, max_retries=0) as client,
    ):
        for call in (lambda: ask(client, "say=Hi"), lambda: list(client.models.list())):
            with pytest.raises(openai.APIStatusError) as failure:
                call()
            assert failure.value.status_code == 502


@pytest.mark.parametrize("order", ["cut=2", "abort=2"])
def test_a_stream_that_breaks_is_not_finished(client: openai.OpenAI, order: str) -> None:
    chunks: list[Any] = []
    asked: Any = [{"role": "user", "content": unseen(f"{order} say=one two three four five")}]
    tools: Any = TOOLS
    stream: Any = client.chat.completions.create(
        model="m", messages=asked, tools=tools, stream=True
    )
    with pytest.raises(openai.APIError):
        chunks.extend(stream)
    said = joined(chunks)
    assert said["content"] == "one two thre"
    assert said["reasons"] == []


def test_a_forced_choice_that_is_refused_says_what_to_do(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="prompt"):
        ask(client, "noformat say=x", tools=TOOLS, tool_choice="required")


@pytest.mark.parametrize(
    ("request_bytes", "status", "word"),
    [
        (post(b"not json"), 400, "JSON"),
        (post(b"[1]"), 400, "JSON"),
        (post(b"[" * 100_000), 400, "JSON"),
        (post(b'{"messages": []}'), 400, "model"),
        (post(b'{"model": "m"}'), 400, "messages"),
        (post(b'{"model": "m", "messages": ["x"]}'), 400, "messages"),
        (post(b'{"model": "m", "messages": [{"content": "x"}]}'), 400, "role"),
        (post(json.dumps({**QUESTION, "tools": [{"name": 1}]}).encode()), 400, "name"),
        (post(json.dumps({**QUESTION, "tools": "x"}).encode()), 400, ""),
        (post(json.dumps({**QUESTION, "functions": [{"name": "f"}]}).encode()), 400, "functions"),
        (post(b"{}", path="/v1/embeddings"), 404, "/v1/chat/completions"),
        (post(b"{}", path="/v1/models"), 405, "GET"),
        (b"GET /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n\r\n", 405, "POST"),
        (post(b"", f"Content-Length: {MOST_BODY + 1}"), 413, "most"),
        (post(b"", "Content-Length: x"), 400, "HTTP/1.1"),
        (post(b"", "Content-Length: 2", "Transfer-Encoding: chunked"), 400, "HTTP/1.1"),
        (post(b"zz\r\n", "Transfer-Encoding: chunked"), 400, ""),
        (post(b"{}", "Origin: https://evil.example"), 403, "Pages"),
        (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403, "Host"),
    ],
)
def test_what_cannot_be_asked_is_refused(
    gateway: Gateway, mock: MockOpenAI, request_bytes: bytes, status: int, word: str
) -> None:
    before = mock.calls
    found, said = send(gateway, request_bytes)
    assert (found, mock.calls) == (status, before)
    assert word in said["error"]["message"]


def test_bodies_in_chunks_are_read(gateway: Gateway) -> None:
    body = json.dumps(QUESTION).encode()
    chunked = b"".join(
        b"%x;note=1\r\n%b\r\n" % (len(body[i : i + 9]), body[i : i + 9])
        for i in range(0, len(body), 9)
    )
    request = post(chunked + b"0\r\nTrailer: x\r\n\r\n", "Transfer-Encoding: chunked")
    status, said = send(gateway, request)
    assert (status, said["choices"][0]["message"]["content"]) == (200, "Hi")


def test_health_and_models(gateway: Gateway) -> None:
    assert send(gateway, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200
    # Another gateway's upstream has no list of models, and says so.
    status, said = send(gateway, b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert status == 501
    assert "models" in said["error"]["message"]


def test_the_models_are_those_of_the_upstream_endpoint() -> None:
    models = {"object": "list", "data": [{"id": "a/b", "object": "model"}]}
    with (
        ReplayServer(json_answer({}, 404)) as upstream,
        serve(f"{upstream.url}/v1/", upstream_key="the-upstream-key") as running,
    ):
        upstream.answers["/v1/models"] = json_answer(models)
        request = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"
        assert send(running, request) == (200, models)
        assert upstream.asked[0].by_name["authorization"] == "Bearer the-upstream-key"


def test_a_gateway_with_keys_of_its_own(mock: MockOpenAI) -> None:
    with serve(mock.url, api_key="own-key-0123456789", upstream_key="up-key-0123456789") as both:
        for key, status in (("other", 401), ("own-key-0123456789", 200)):
            request = post(json.dumps(QUESTION).encode(), f"Authorization: Bearer {key}")
            assert send(both, request)[0] == status
        assert mock.headers[-1]["authorization"] == "Bearer up-key-0123456789"
    with serve(mock.url, api_key="own-key-0123456789") as own:
        request = post(json.dumps(QUESTION).encode(), "Authorization: Bearer own-key-0123456789")
        assert send(own, request)[0] == 200
        # The key of the gateway is nobody else's business.
        assert "own-key" not in mock.headers[-1]["authorization"]


def test_a_caller_that_goes_ends_the_upstream_stream(gateway: Gateway, mock: MockOpenAI) -> None:
    asked: Any = [{"role": "user", "content": unseen("gap=0.2 say=" + "word " * 200)}]
    with openai.OpenAI(base_url=gateway.url, api_key=KEY, max_retries=0) as client:
        stream: Any = client.chat.completions.create(model="m", messages=asked, stream=True)
        next(iter(stream))
        assert mock.running == 1
        stream.close()
    wait_until(lambda: mock.running == 0)


def test_many_callers_at_once(gateway: Gateway) -> None:
    async def work() -> list[str]:
        async with openai.AsyncOpenAI(base_url=gateway.url, api_key=KEY, max_retries=0) as client:

            async def one(n: int) -> str:
                text = f"slow=0.05 say=<tool_call>{{'name': 'get_weather', 'arguments': {{'city': 'c{n}'}}}}</tool_call>"
                answer: Any = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": unseen(text)}],
                    tools=TOOLS,  # type: ignore[arg-type]
                )
                return str(answer.choices[0].message.tool_calls[0].function.arguments)

            return await asyncio.gather(*map(one, range(20)))

    assert asyncio.run(work()) == [
        json.dumps({"city": f"c{n}"}, separators=(",", ":")) for n in range(20)
    ]


@pytest.mark.parametrize(
    ("upstream", "more", "error"),
    [
        ("nonsense", {}, BadOptions),
        ("ftp://127.0.0.1/v1", {}, BadOptions),
        ("http://127.0.0.1:x/v1", {}, BadOptions),
        ("http://127.0.0.1/v1", {"protocol": "nonsense"}, UnknownProtocol),
        ("http://127.0.0.1/v1", {"port": 70_000}, BadOptions),
        ("http://127.0.0.1/v1", {"host": "0.0.0.0"}, BadOptions),
        ("http://127.0.0.1/v1", {"host": "no.such.host.invalid", "api_key": "k"}, SetupError),
    ],
)
def test_what_cannot_be_served_is_refused(upstream: str, more: Any, error: Any) -> None:
    with pytest.raises(error):
        serve(upstream, **more)


def test_the_command_serves_until_it_is_interrupted(
    mock: MockOpenAI, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "passing.db"
    command = [sys.executable, "-m", "toolparse_lab.cli", "serve", "--upstream", mock.url]
    with running(
        [*command, "--port", "0", "--record", str(store), "--upstream-key-env", "PLANTED"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PLANTED": "planted-upstream-0123456789"},
    ) as process:
        assert process.stdout is not None
        url = process.stdout.readline().split()[2].rstrip(";")
        with openai.OpenAI(base_url=url, api_key=KEY, max_retries=0) as client:
            assert ask(client, f"say={OSLO}", tools=TOOLS).choices[0].message.tool_calls
        assert mock.headers[-1]["authorization"] == "Bearer planted-upstream-0123456789"
        process.send_signal(signal.SIGINT)
        out, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "planted" not in out + errors
    assert main(["view", "latest", "--store", str(store)]) == 0
    assert "get_weather" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments",
    [
        ["--upstream", "nonsense"],
        ["--upstream", "http://127.0.0.1/v1", "--key-env", "NOT_SET_ANYWHERE"],
    ],
)
def test_the_command_says_what_is_wrong(arguments: list[str]) -> None:
    assert main(["serve", *arguments]) == 2
