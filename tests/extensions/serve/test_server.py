"""Who may ask a server, and what it refuses."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator

import pytest

from tests.replay_server import Answer, Asked, ReplayServer, json_answer
from tests.tables import each_case
from toolparse_lab.extensions.serve import Proxy, proxy
from toolparse_lab.extensions.serve.server import Refusal, Rules, is_loopback


def engine_answer(asked: Asked) -> Answer:
    """Stands for the engine: answers with the head that it got."""
    head = {"path": asked.path, "headers": dict(asked.headers), "body": asked.body.decode()}
    return json_answer(head)


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    with ReplayServer(engine_answer) as server:
        yield server.url


@pytest.fixture(params=["", "the-key"], ids=["open", "with a key"])
def server(request: pytest.FixtureRequest, engine: str) -> Iterator[Proxy]:
    with proxy(engine, api_key=request.param, upstream_key="inner-key") as running:
        yield running


def ask(port: int, request: bytes) -> tuple[int, bytes]:
    """Status and body of the response to some bytes; status 0 for none."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(request)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return (int(head.split()[1]) if head else 0), body


def post(*headers: str, path: str = "/v1/chat/completions", body: str = "{}") -> bytes:
    lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *headers]
    if not any(line.startswith("Connection:") for line in headers):
        lines.insert(1, "Connection: close")
    return "\r\n".join([*lines, "", body]).encode()


@each_case
def test_only_this_machine_s_own_names_are_let_in(
    headers: tuple[str, ...], status: int, server: Proxy
) -> None:
    code, body = ask(server.port, post(*headers, "Authorization: Bearer the-key"))
    assert code == status, body
    if status != 200:
        assert json.loads(body)["error"]["code"] == status


@each_case
def test_a_key_is_asked_for(headers: tuple[str, ...], status: int, engine: str) -> None:
    with proxy(engine, api_key="the-key", upstream_key="inner-key") as running:
        assert ask(running.port, post("Host: localhost", *headers))[0] == status
        assert ask(running.port, post("Host: localhost", path="/health"))[0] == 200


def test_the_upstream_server_gets_its_own_key_and_a_second_request_is_checked(
    server: Proxy,
) -> None:
    request = post(
        "Host: localhost", "Authorization: Bearer the-key", "Connection: keep-alive", body="x" * 90
    )
    second = post("Host: evil.example", path="/second")
    code, body = ask(server.port, request + second)
    passed_on, _, refused = body.partition(b"HTTP/1.1 ")
    answer = json.loads(passed_on)
    assert (code, answer["body"]) == (200, "x" * 90)
    assert answer["headers"]["Authorization"] == "Bearer inner-key"
    assert b"the-key" not in body
    assert refused.startswith(b"403 ")
    assert b"/second" not in body


def test_a_head_that_never_ends_is_refused(server: Proxy) -> None:
    assert ask(server.port, post("Host: localhost", "X: " + "a" * 200_000))[0] == 400


def test_an_endpoint_for_others_looks_at_the_key_alone() -> None:
    rules = Rules("0.0.0.0", "the-key")
    rules.check("/v1/models", [("host", "a.example"), ("x-api-key", "the-key")])
    with pytest.raises(Refusal, match="key"):
        rules.check("/v1/models", [("host", "a.example")])


@pytest.mark.parametrize(
    "line", ["get / HTTP/1.1", "GET x HTTP/1.1", "GET @x/ HTTP/1.1", "GET / HTTP/2"]
)
def test_an_odd_request_line_is_refused(line: str, server: Proxy) -> None:
    head = (
        f"{line}\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer the-key\r\n\r\n"
    )
    assert ask(server.port, head.encode())[0] == 400


def test_names_of_this_machine() -> None:
    names = ["localhost", "LocalHost", "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "", "localhos"]
    assert [is_loopback(name) for name in names] == [True] * 5 + [False] * 3
