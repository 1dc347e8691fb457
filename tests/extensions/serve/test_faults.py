"""An upstream server that does everything wrong, and callers that do: what the gateway and the proxy answer.

`benchmarks/bad_upstream.py` has the same faults at full length, with others who wait meanwhile.
"""

from __future__ import annotations

import contextlib
import json
import socket
import time
import zlib
from collections.abc import Iterator
from typing import Any

import pytest

from tests.replay_server import Answer, ReplayServer, json_answer
from tests.tables import each_case
from tests.waiting import wait_until
from toolparse_lab.extensions.serve import Gateway, Proxy, chat, proxy, serve, server
from toolparse_lab.runner.exchange.types import MOST_ANSWER

pytestmark = pytest.mark.slow
CHAT = "/v1/chat/completions"
EVENTS = {"Content-Type": "text/event-stream"}
TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
OPEN = b'{"choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"'


def delta(text: str) -> bytes:
    return (
        b"data: "
        + json.dumps({"id": "c", "choices": [{"index": 0, "delta": {"content": text}}]}).encode()
        + b"\n\n"
    )


def asked(**members: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "Hi"}],
        "tools": TOOLS,
        **members,
    }


def send(
    port: int, body: bytes | str | dict[str, Any], *, half: bool = False, path: str = CHAT
) -> tuple[int, str]:
    """Status and body of the response. half: the caller ends its side when it has asked."""
    data = (
        body
        if isinstance(body, bytes)
        else (body if isinstance(body, str) else json.dumps(body)).encode()
    )
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer key-of-the-caller-01\r\n"
            f"Connection: close\r\nContent-Length: {len(data)}\r\n\r\n".encode()
            + data
        )
        if half:
            connection.shutdown(socket.SHUT_WR)
        got = b""
        while piece := connection.recv(65536):
            got += piece
    while got.startswith(b"HTTP/1.1 102"):
        got = got.partition(b"\r\n\r\n")[2]
    head, _, content = got.partition(b"\r\n\r\n")
    assert b"aiohttp" not in head
    return (int(head.split()[1]) if head else 0), content.decode()


@pytest.fixture(scope="module")
def upstream() -> Iterator[ReplayServer]:
    with ReplayServer(json_answer({})) as running:
        yield running


@pytest.fixture(scope="module")
def gateway(upstream: ReplayServer) -> Iterator[Gateway]:
    with serve(f"{upstream.url}/v1") as running:
        yield running


@pytest.fixture
def passing(upstream: ReplayServer) -> Iterator[Proxy]:
    with proxy(upstream.url) as running:
        yield running


TOO_LARGE = {
    "body": Answer([OPEN, *([b"a" * 2**20] * 12)], chunked=True),
    "packed body": Answer(
        [zlib.compress(OPEN + b"a" * 2**26, 9)], headers={"Content-Encoding": "deflate"}
    ),
    "line": Answer([b'data: {"choices": "', *([b"a" * 2**20] * 12)], headers=EVENTS, chunked=True),
    "event": Answer([b"data: x\n" * 9_000] * 5, headers=EVENTS, chunked=True),
    "text of a stream": Answer([delta("word " * 50_000)] * 40, headers=EVENTS, chunked=True),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", TOO_LARGE)
def test_what_has_no_end_is_ended(
    gateway: Gateway, upstream: ReplayServer, name: str, stream: bool
) -> None:
    if not stream and name not in ("body", "packed body"):
        pytest.skip("of streams")
    upstream.answer = TOO_LARGE[name]
    status, said = send(gateway.port, asked(stream=stream))
    assert f"more than {MOST_ANSWER:,} bytes" in said
    assert (status, "[DONE]" in said) == (200 if name == "text of a stream" else 502, False)


def test_a_fast_stream_lets_others_have_their_turn(
    gateway: Gateway, upstream: ReplayServer
) -> None:
    upstream.answer = Answer([delta("word ") * 400] * 30, headers=EVENTS, chunked=True, hang=True)
    with socket.create_connection(("127.0.0.1", gateway.port)) as reader:
        body = json.dumps(asked(stream=True)).encode()
        reader.sendall(
            b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
            % (CHAT.encode(), len(body), body)
        )
        reader.recv(1000)
        slowest = 0.0
        for _ in range(20):
            began = time.monotonic()
            with socket.create_connection(("127.0.0.1", gateway.port), timeout=10) as other:
                other.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert other.recv(1000).startswith(b"HTTP/1.1 200")
            slowest = max(slowest, time.monotonic() - began)
    assert slowest < 1.0  # it was as long as the stream


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_leads_to_another_host(
    gateway: Gateway, passing: Proxy, upstream: ReplayServer, status: int, stream: bool
) -> None:
    place = upstream.url.replace("127.0.0.1", "localhost") + "/elsewhere"
    upstream.answer = Answer([b""], status, headers={"Location": place})
    before = len(upstream.asked)
    got, said = send(gateway.port, asked(stream=stream))
    assert (got, "another host" in said) == (502, True)
    assert send(passing.port, asked(stream=stream))[0] == status
    assert [a.path for a in upstream.asked[before:]] == [CHAT, CHAT]


@pytest.mark.parametrize("stream", [False, True])
def test_a_caller_that_ends_its_side_is_answered(
    gateway: Gateway, passing: Proxy, upstream: ReplayServer, stream: bool
) -> None:
    whole = {
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": "word "},
            }
        ]
    }
    end = b'data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
    pieces = [delta("word "), delta("again"), end] if stream else [json.dumps(whole).encode()]
    upstream.answer = Answer(
        pieces,
        headers=EVENTS if stream else {"Content-Type": "application/json"},
        gap=0.05,
        delay=0.2,
    )
    for port in (gateway.port, passing.port):
        status, said = send(port, asked(stream=stream), half=True)
        assert (status, "word " in said) == (200, True)
        assert not stream or "[DONE]" in said


def test_a_caller_that_is_gone_is_noticed(
    upstream: ReplayServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_LISTENING", 0.05)
    upstream.answer = Answer([b""], delay=3.0)
    ended: list[object] = []
    with serve(f"{upstream.url}/v1") as running:
        monkeypatch.setattr(
            running,
            "_chat",
            chat.Chat(running._chat.upstream, running._chat.middleware, ended.append),
        )
        body = json.dumps(asked()).encode()
        with socket.create_connection(("127.0.0.1", running.port)) as caller:
            caller.sendall(
                b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b"
                % (CHAT.encode(), len(body), body)
            )
            time.sleep(0.3)
        began = time.monotonic()
        wait_until(lambda: bool(ended))
        assert time.monotonic() - began < 2.0


NO_JSON = (
    '{"model": "m", "messages": [{"role": "user", "content": "x"}], "temperature": NaN}',
    '{"model": "m", "messages": [{"role": "user", "content": "x"}], "top_p": -Infinity}',
    '{"model": "m", "messages": [{"role": "user", "content": "x"}], "top_p": 1e999}',
    '{"model": "m", "messages": [{"role": "user", "content": "\\ud800"}]}',
    '{"model": "m", "messages": [{"role": "user", "content": "\\uDC00 \\ud83d"}]}',
    b'{"model": "m", "messages": [{"role": "user", "content": "\xed\xa0\x80"}]}',
    b'{"model": "m", "messages": [{"role": "user", "content": "\xff"}]}',
)


@pytest.mark.parametrize("body", NO_JSON)
def test_a_body_that_is_no_json_is_refused(
    gateway: Gateway, upstream: ReplayServer, body: str | bytes
) -> None:
    before = len(upstream.asked)
    status, said = send(gateway.port, body)
    assert (status, "JSON" in said, len(upstream.asked)) == (400, True, before)


def test_a_whole_character_in_two_escapes_is_asked(
    gateway: Gateway, upstream: ReplayServer
) -> None:
    upstream.answer = json_answer({"error": {"message": "heard"}}, 400)
    send(
        gateway.port, '{"model": "m", "messages": [{"role": "user", "content": "\\ud83d\\ude00"}]}'
    )
    assert upstream.asked[-1].json["messages"][0]["content"] == "😀"


WORDS = "The moon is closed on Mondays."
SAID = {
    "error object": json_answer(
        {"error": {"message": WORDS, "type": "invalid_request_error"}}, 400
    ),
    "error text": json_answer({"error": WORDS}, 422),
    "detail": json_answer({"detail": WORDS}, 503),
    "text": Answer([WORDS.encode()], 500, headers={"Content-Type": "text/plain"}),
    "error with 200": json_answer({"error": {"message": WORDS, "code": 400}}),
    "event": Answer(
        [b"data: " + json.dumps({"error": {"message": WORDS, "code": 400}}).encode() + b"\n\n"],
        headers=EVENTS,
    ),
    "event of a name": Answer(
        [b"event: error\ndata: " + json.dumps({"error": {"message": WORDS}}).encode() + b"\n\n"],
        headers=EVENTS,
    ),
    "event after a part": Answer(
        [
            delta("word "),
            b"data: " + json.dumps({"error": {"message": WORDS, "code": 500}}).encode() + b"\n\n",
        ],
        headers=EVENTS,
    ),
    "text in place of a stream": Answer([WORDS.encode()], headers={"Content-Type": "text/plain"}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", SAID)
def test_the_words_of_the_upstream_server_reach_the_caller(
    gateway: Gateway, upstream: ReplayServer, name: str, stream: bool
) -> None:
    if not stream and name.startswith(("event", "text in")):
        pytest.skip("of streams")
    upstream.answer = SAID[name]
    status, said = send(gateway.port, asked(stream=stream))
    assert WORDS in said
    assert status >= 400 or name == "event after a part"


@pytest.mark.parametrize("stream", [False, True])
@each_case
def test_an_odd_answer_gives_no_words_of_a_traceback(
    gateway: Gateway, upstream: ReplayServer, body: Any, stream: bool
) -> None:
    upstream.answer = json_answer(body)
    status, said = send(gateway.port, asked(stream=stream))
    print(status, said)
    for word in (
        "Traceback",
        'File "',
        "NoneType",
        "object has no",
        "litellm",
        "line ",
        "Error:",
        "convert_to",
        "received_args",
        "pydantic",
    ):
        assert word not in said


def test_the_head_of_a_request_has_ten_seconds(
    passing: Proxy, gateway: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert server._HEAD_SECONDS == 10
    monkeypatch.setattr(server, "_HEAD_SECONDS", 0.3)
    for port in (passing.port, gateway.port):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as slow:
            slow.sendall(b"GET / HTTP/1.1\r\n")
            with contextlib.suppress(OSError):
                for _ in range(20):  # one header after the other, without an end
                    slow.sendall(b"X-A: b\r\n")
                    time.sleep(0.1)
            got = b""
            while piece := slow.recv(1000):
                got += piece
        assert got.startswith(b"HTTP/1.1 408 ")
        assert b"aiohttp" not in got
        with socket.create_connection(("127.0.0.1", port), timeout=10) as second:
            for _ in range(2):
                second.sendall(b"GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n")
                got = second.recv(1000)
                while not got.endswith(b"}"):
                    got += second.recv(1000)
            second.sendall(b"GET /hea")
            assert b" 408 " in second.recv(1000)


def test_a_400_names_no_library(passing: Proxy) -> None:
    for line in (
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", passing.port), timeout=10) as connection:
            connection.sendall(line)
            got = connection.recv(4000)
        assert got.split()[1] == b"400"
        assert b"aiohttp" not in got.lower()
        assert b"python" not in got.lower()
