"""The transparent proxy over real HTTP: bytes as they came, pieces as they came, and everything that
models are asked and answer in a store."""

from __future__ import annotations

import concurrent.futures
import contextlib
import gzip
import http.client
import json
import os
import resource
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

import toolparse_lab as tp
from tests.extensions.serve.recorded import recorded_trials
from tests.replay_server import Answer, ReplayServer
from tests.runner.test_secrets import forms, stored
from tests.tables import each_case
from tests.waiting import PATIENCE, running, wait_until
from toolparse_lab.core.errors import BadOptions, SetupError, ToolparseError
from toolparse_lab.extensions.serve import Proxy, proxy
from toolparse_lab.runner.exchange.types import Passed
from toolparse_lab.runner.store.store import Store

ROOT = Path(__file__).parents[3]
CHAT = "/v1/chat/completions"
KEY = "planted-caller-0123456789"
EVENTS = {"Content-Type": "text/event-stream"}


def event(**members: Any) -> bytes:
    return f"data: {json.dumps(members)}\n\n".encode()


def delta(text: str, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more}
    return event(id="c", model="served", choices=[choice])


def streamed(*texts: str, **more: Any) -> Answer:
    end = event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    pieces = [*map(delta, texts), end, b"data: [DONE]\n\n"]
    return Answer(pieces, headers=EVENTS, chunked=True, **more)


def whole(text: str, **message: Any) -> Answer:
    choice = {"message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    return Answer([json.dumps({"id": "c", "model": "served", "choices": [choice]}).encode()])


class Got:
    """What a client of raw HTTP received."""

    def __init__(
        self,
        port: int,
        path: str = CHAT,
        body: Any = None,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        with contextlib.closing(connection):
            if body is None and method == "POST":
                body = {"model": "m", "messages": [{"role": "user", "content": "Hi?"}]}
            data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
            connection.request(method, path, data, dict(headers or {}))
            response = connection.getresponse()
            self.status, self.reason = response.status, response.reason
            self.headers = [
                (k, v)
                for k, v in response.getheaders()
                if k not in ("Connection", "Transfer-Encoding")
            ]
            self.cut = False
            try:
                self.body = response.read()
            except http.client.IncompleteRead as e:
                self.cut, self.body = True, e.partial

    def json(self) -> Any:
        return json.loads(self.body)


@pytest.fixture
def server() -> Iterator[ReplayServer]:
    with ReplayServer(whole("Hello")) as running:
        yield running


def exchanges(path: Path, app: str = "app") -> list[Passed]:
    with Store(path) as store:
        return [passed for _, passed in store.exchanges() if passed.app == app]


ANSWERS = {
    "plain": whole("Hello"),
    "stream": streamed("Hel", "lo"),
    "429": Answer(
        [b'{"error": {"message": "slow down"}}'],
        "429 Too Many Requests",
        {"Content-Type": "application/json", "Retry-After": "7", "X-RateLimit-Left": "0"},
    ),
    "gzip": Answer(
        [gzip.compress(b'{"choices": [{"message": {"content": "packed"}}]}')],
        headers={"Content-Type": "application/json", "Content-Encoding": "gzip"},
    ),
    "not JSON": Answer([b"\x00\xff bytes"], headers={"Content-Type": "application/octet-stream"}),
    "no type": Answer([b"words"], headers={}),
    "own headers": Answer(
        [b"{}"], "201 Made", {"Server": "mine", "Date": "now", "Set-Cookie": "a=b"}
    ),
    "redirection": Answer([b""], "307 Elsewhere", {"Location": "http://127.0.0.1:9/"}),
    "nothing": Answer([], "204 No Content", {}),
}


@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("name", list(ANSWERS))
def test_a_caller_receives_what_the_server_sent(
    server: ReplayServer, name: str, method: str
) -> None:
    server.answer = ANSWERS[name]
    path = "/v1/files/a%2Fb;x?q=%20+&q=2"
    body = b"\x00 any bytes" if method in ("POST", "PATCH") else None
    with proxy(server.url) as p:
        direct, passed = (Got(port, path, body, method) for port in (server.port, p.port))
    assert vars(passed) == vars(direct)
    (first, second) = server.asked
    host = ("Host", f"127.0.0.1:{server.port}")
    assert (second.line, second.body) == (first.line, first.body)
    # A request without a body may say so.
    sent = sorted(header for header in second.headers if header != ("Content-Length", "0"))
    assert sent == sorted(first.headers)
    assert host in second.headers


def test_hop_by_hop_headers_stay_and_all_others_go_on(server: ReplayServer) -> None:
    server.answer = Answer([b"{}"], headers={"Connection": "x-mine", "X-Mine": "1", "X-Other": "2"})
    sent = {"Connection": "keep-alive, X-Hop", "X-Hop": "1", "TE": "trailers", "X-End": "2"}
    with proxy(server.url) as p:
        got = Got(p.port, headers=sent)
    names = {name.lower() for name, _ in server.asked[0].headers}
    assert "x-end" in names
    assert not names & {"x-hop", "te", "user-agent", "accept", "accept-encoding"} - {
        "accept-encoding"
    }
    assert {name.lower() for name, _ in got.headers} == {"x-other", "content-length"}


def test_pieces_are_passed_one_by_one_and_recorded_with_their_times(
    server: ReplayServer, tmp_path: Path
) -> None:
    server.answer = streamed(*(f"w{n} " for n in range(20)), gap=0.01)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", p.port)) as connection:
            connection.request("POST", CHAT, b'{"model": "m", "messages": [], "stream": true}')
            response = connection.getresponse()
            pieces = []
            while piece := response.read1():
                pieces.append(piece)
        assert pieces == list(server.answer.pieces)
        p.flush()
        (trial,) = recorded_trials(tmp_path / "live.db")
    (passed,) = exchanges(tmp_path / "live.db")
    assert [size for _, size in passed.pieces] == [len(piece) for piece in server.answer.pieces]
    times = [at for at, _ in passed.pieces]
    assert times == sorted(times)
    assert times[-1] - times[0] > 0.1
    completion = trial.completion
    assert completion is not None
    assert completion.fidelity == "wire"
    assert [chunk.text for chunk in completion.chunks] == [f"w{n} " for n in range(20)]
    assert [chunk.at for chunk in completion.chunks] == times[:20]
    assert completion.ttft == times[0]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])
@each_case
def test_the_answers_of_every_api_are_recorded(
    server: ReplayServer,
    tmp_path: Path,
    path: str,
    question: dict[str, Any],
    plain: str,
    pieces: list[str],
    content_type: str,
    stream: bool,
) -> None:
    """Each answer is the text "Hello"."""
    server.answer = Answer([plain.encode()])
    if stream:
        parts = [piece.encode() for piece in pieces]
        server.answer = Answer(parts, headers={"Content-Type": content_type}, chunked=True)
    with proxy(server.url, store=tmp_path / "live.db", app="bot") as p:
        Got(p.port, path, {"model": "m", "stream": stream, **question})
        p.flush()
        assert (p.recorded, p.dropped) == (1, 0)
    (trial,) = recorded_trials(tmp_path / "live.db", "bot")
    completion = trial.completion
    assert completion is not None
    assert (completion.raw, completion.ok, completion.fidelity) == ("Hello", True, "wire")
    assert (completion.stream, trial.model) == (stream, "m")
    assert "Hi?" in trial.case.input_text
    assert "".join(chunk.text for chunk in completion.chunks) == ("Hello" if stream else "")
    is_text = path in ("/v1/completions", "/api/generate")
    assert completion.endpoint_kind == ("raw_completion" if is_text else "chat_text")


def test_a_call_that_the_server_left_in_the_text_is_read(
    server: ReplayServer, tmp_path: Path
) -> None:
    text = '<tool_call>{"name": "find_berth", "arguments": {"port": "Ystad"}}</tool_call>'
    server.answer = whole(text)
    tool = {"type": "function", "function": {"name": "find_berth", "parameters": {}}}
    asked = {"model": "m", "messages": [{"role": "user", "content": "Ystad?"}], "tools": [tool]}
    with proxy(server.url, store=tmp_path / "live.db") as p:
        Got(p.port, CHAT, asked)
        p.flush()
    with tp.Lab(tmp_path / "live.db") as lab:
        run = lab.ingest(lab.store)
        (trial,) = run.trials()
        assert trial.result is not None
        assert (trial.arm, trial.sub_code, trial.result.raw) == ("native", "not_lifted", text)
        assert [call.name for call in trial.result.calls] == ["find_berth"]
        assert not run.failures()


def test_what_is_no_question_to_a_model_passes_and_is_not_recorded(
    server: ReplayServer, tmp_path: Path
) -> None:
    with proxy(server.url, store=tmp_path / "live.db") as p:
        for path in ("/v1/embeddings", "/v1/threads/1/messages", "/v1/messages/count_tokens"):
            assert Got(p.port, path).status == 200
        Got(p.port, "/v1/models", method="GET")
        p.flush()
        assert p.recorded == 0
    assert len(server.asked) == 4


@pytest.mark.parametrize("upstream_path", ["", "/v1", "/v1/"])
def test_a_client_may_take_the_address_with_or_without_the_path(
    server: ReplayServer, upstream_path: str
) -> None:
    with proxy(server.url + upstream_path) as p:
        assert p.url == f"http://127.0.0.1:{p.port}{upstream_path.rstrip('/')}"
        Got(p.port, CHAT)
        if upstream_path:
            Got(p.port, CHAT.removeprefix("/v1"))
    assert {asked.line for asked in server.asked} == {f"POST {CHAT} HTTP/1.1"}


# -- what fails


def test_a_stream_that_is_cut_stays_cut(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = streamed("one ", "two ", "three", cut=2)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        direct, passed = (Got(port) for port in (server.port, p.port))
        assert (passed.cut, passed.body) == (direct.cut, direct.body)
        assert passed.cut
        p.flush()
    (trial,) = recorded_trials(tmp_path / "live.db")
    completion = trial.completion
    assert completion is not None
    assert (completion.error_kind, completion.cut, completion.raw) == (
        "cut_stream",
        True,
        "one two ",
    )
    (record,) = exchanges(tmp_path / "live.db")
    assert record.end == "cut"


def test_a_plain_answer_that_is_cut_stays_cut(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = Answer([b'{"choices": [', b"]}"], cut=1)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        direct, passed = (Got(port) for port in (server.port, p.port))
        p.flush()
    assert (passed.cut, passed.body) == (direct.cut, direct.body) == (True, b'{"choices": [')
    (trial,) = recorded_trials(tmp_path / "live.db")
    assert trial.completion is not None
    assert trial.completion.error_kind == "connection"


def test_a_dead_server_is_a_502_of_type_upstream(tmp_path: Path) -> None:
    with ReplayServer() as server:
        address = server.url
    with proxy(address, store=tmp_path / "live.db") as p:
        got = Got(p.port)
        assert (got.status, got.json()["error"]["type"]) == (502, "upstream")
        assert Got(p.port, "/v1/models", method="GET").status == 502
        p.flush()
    (trial,) = recorded_trials(tmp_path / "live.db")
    assert trial.completion is not None
    assert trial.completion.error_kind == "connection"
    assert trial.outcome == "provider_error"


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 20", b"no HTTP at all\r\n\r\n"])
def test_a_server_that_ends_before_its_head_is_a_502(head: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with concurrent.futures.ThreadPoolExecutor(1) as pool:

            def serve() -> None:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(65_536)
                    connection.sendall(head)

            pool.submit(serve)
            with proxy(f"http://127.0.0.1:{port}") as p:
                got = Got(p.port)
    assert (got.status, got.json()["error"]["type"]) == (502, "upstream")


def test_failures_of_the_server_pass_and_are_recorded(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = ANSWERS["429"]
    with proxy(server.url, store=tmp_path / "live.db") as p:
        got = Got(p.port)
        assert (got.status, dict(got.headers)["Retry-After"]) == (429, "7")
        p.flush()
    (trial,) = recorded_trials(tmp_path / "live.db")
    completion = trial.completion
    assert completion is not None
    assert (completion.error_kind, completion.error_message) == ("rate_limited", "slow down")
    assert completion.retry_after == 7.0


def test_a_caller_that_goes_away_ends_the_request_of_the_server(
    server: ReplayServer, tmp_path: Path
) -> None:
    server.answer = streamed("word ", gap=0.01, hang=True)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        connection = http.client.HTTPConnection("127.0.0.1", p.port)
        connection.request("POST", CHAT, b'{"model": "m", "messages": []}')
        response = connection.getresponse()
        assert response.read1()
        response.close()
        connection.close()
        wait_until(lambda: p.recorded == 1)
    (record,) = exchanges(tmp_path / "live.db")
    assert record.end == "caller"


def test_a_slow_caller_holds_nobody_up_and_no_bytes_in_memory(
    server: ReplayServer, tmp_path: Path
) -> None:
    size, count = 65_536, 320
    server.answers["/v1/big"] = Answer([b"x" * size] * count, chunked=True)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        with socket.socket() as slow:
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.connect(("127.0.0.1", p.port))
            slow.sendall(b"GET /v1/big HTTP/1.1\r\nHost: localhost\r\n\r\n")
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(20):
                assert Got(p.port).status == 200
            # What waits is in the buffers of the sockets.
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 12_000
            got = bytearray()
            while not got.endswith(b"0\r\n\r\n"):
                got += slow.recv(size)
        assert got.count(b"x") == size * count
        p.flush()
        assert p.recorded == 20


# -- who may ask


def test_an_address_or_a_port_that_cannot_be_one_is_refused(server: ReplayServer) -> None:
    for bad in ("gpu:8000", "http://", "ftp://x", "http://x/?key=abcdef"):
        with pytest.raises(BadOptions, match="an address"):
            proxy(bad)
    with pytest.raises(BadOptions, match="needs a key"):
        proxy(server.url, host="0.0.0.0")
    with pytest.raises(BadOptions, match="server's flags"):
        proxy(server.url, ask_raw="vlm")
    with pytest.raises(BadOptions, match="has a name"):
        proxy(server.url, app=" ")
    with proxy(server.url) as p, pytest.raises(SetupError, match="cannot be used"):
        proxy(server.url, port=p.port)
    with pytest.raises(ToolparseError):
        proxy(server.url, store="/nowhere/at/all/live.db")


def test_a_key_of_the_proxy_is_asked_for_and_goes_no_further(server: ReplayServer) -> None:
    with proxy(server.url, host="0.0.0.0", api_key=KEY, upstream_key="upstream-key-1") as p:
        assert Got(p.port).status == 401
        assert Got(p.port, headers={"Authorization": f"Bearer {KEY}"}).status == 200
        assert Got(p.port, headers={"x-api-key": KEY}).status == 200
    with proxy(server.url, api_key=KEY) as p:
        assert Got(p.port, headers={"Authorization": f"Bearer {KEY}"}).status == 200
    heads = [{k.lower(): v for k, v in asked.headers} for asked in server.asked]
    assert [head.get("authorization") for head in heads] == ["Bearer upstream-key-1", None, None]
    assert [head.get("x-api-key") for head in heads] == [None, "upstream-key-1", None]


# -- flags


def test_no_flag_is_added_unless_somebody_says_so(server: ReplayServer, tmp_path: Path) -> None:
    body = {"model": "m", "messages": [], "logprobs": False}
    with proxy(server.url, store=tmp_path / "live.db", ask_raw="vllm") as p:
        Got(p.port, body=body)
        Got(p.port, "/v1/completions", {"model": "m", "prompt": "x"})
        Got(p.port, "/v1/embeddings", body)
        p.flush()
    chat, text, other = (json.loads(asked.body) for asked in server.asked)
    assert other == body
    assert chat == {
        **body,
        "skip_special_tokens": False,
        "include_stop_str_in_output": True,
        "return_token_ids": True,
    }
    assert text["logprobs"] == 1
    for trial in recorded_trials(tmp_path / "live.db"):
        assert trial.completion is not None
        assert trial.completion.response is not None
        assert trial.completion.response["asked"]["return_token_ids"] is True


# -- secrets

SECRETS = {
    "caller": KEY,
    "query": "planted-query-0123456789",
    "cookie": "planted-cookie-0123456789",
    "own header": "planted-own-0123456789",
    "api_key of the body": "planted-body-0123456789",
    "nested": 'planted/ne+"sted-0123456789',
    "environment": "planted-environment-0123456789",
    "login of the address": "planted-login-0123456789",
}


def _repeated(n: int = 3) -> Iterator[Answer]:
    # The server says them again: whole, and a few characters an event.
    everything = " and ".join(SECRETS.values())
    parts = [everything[i : i + n] for i in range(0, len(everything), n)]
    yield whole(everything, reasoning_content=everything)
    yield streamed(*parts)
    yield streamed(*parts, cut=60)
    tokens = [{"token": part, "logprob": 0.0, "bytes": list(part.encode())} for part in parts]
    choice = {"message": {"content": ""}, "finish_reason": "stop", "logprobs": {"content": tokens}}
    yield Answer([json.dumps({"choices": [choice]}).encode()])
    calls = [
        event(
            choices=[
                {
                    "index": 0,
                    "delta": {"tool_calls": [{"index": 0, "function": {"arguments": part}}]},
                }
            ]
        )
        for part in parts
    ]
    yield Answer(calls, headers=EVENTS, chunked=True)
    lines = [
        f"{json.dumps({'message': {'content': part}, 'done': False})}\n".encode() for part in parts
    ]
    yield Answer(lines, chunked=True)
    yield Answer([json.dumps({"error": {"message": everything}}).encode()], "401 No")
    yield Answer(
        [b'{"choices": [{"message": {"content": "x"}}]}'],
        headers={"Set-Cookie": SECRETS["cookie"], "X-Echo": KEY},
    )
    yield Answer(
        [gzip.compress(json.dumps({"choices": [{"message": {"content": everything}}]}).encode())],
        headers={"Content-Encoding": "gzip"},
    )


@pytest.mark.parametrize("number", range(9))
@pytest.mark.exhaustive(2)
def test_a_planted_key_is_in_no_file(
    server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setenv("PLANTED_API_KEY", SECRETS["environment"])
    server.answer = list(_repeated())[number]
    everything = " and ".join(SECRETS.values())
    address = server.url.replace("//", f"//user:{SECRETS['login of the address']}@")
    body = {
        "model": "m",
        "messages": [{"role": "system", "content": everything}],
        "tools": [{"type": "function", "function": {"name": "f", "description": everything}}],
        "api_key": SECRETS["api_key of the body"],
        "lane": [{"client_secret": SECRETS["nested"]}],
    }
    headers = {
        "Authorization": f"Bearer {KEY}",
        "Cookie": f"session={SECRETS['cookie']}",
        "X-Corp-Gate": SECRETS["own header"],
    }
    with proxy(address, store=tmp_path / "live.db") as p:
        path = "/api/chat" if number == 5 else CHAT
        Got(p.port, f"{path}?key={SECRETS['query']}", body, headers=headers)
        p.flush()
        assert p.recorded == 1
        (trial,) = recorded_trials(tmp_path / "live.db")
        texts = list(stored(tmp_path))
    assert server.asked[0].body == json.dumps(body).encode()  # the server gets all of it
    completion = trial.completion
    assert completion is not None
    texts += [("completion", completion.to_json())]
    assert any('"description"' in text for _, text in texts)
    found = [
        (name, where, text[max(0, text.index(form) - 80) :][:200])
        for name, secret in SECRETS.items()
        for form in dict.fromkeys(forms(secret))
        for where, text in texts
        if form in text
    ]
    assert found == []
    if completion.ok:
        assert "[redacted]" in completion.raw or number == 7
        # In pieces neither, and the pieces are still those of the text.
        assert not completion.chunks or completion.chunks[-1].at >= completion.chunks[0].at


def test_a_key_that_says_nothing_is_no_secret(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = whole("none of the EMPTY ones")
    with proxy(server.url, store=tmp_path / "live.db") as p:
        for key in ("none", "EMPTY"):
            Got(p.port, headers={"Authorization": f"Bearer {key}"})
        p.flush()
    trials = recorded_trials(tmp_path / "live.db")
    raws = {trial.completion.raw for trial in trials if trial.completion}
    assert raws == {"none of the EMPTY ones"}


def test_a_tool_with_a_parameter_password_stays_as_it_is(
    server: ReplayServer, tmp_path: Path
) -> None:
    schema = {"type": "object", "properties": {"password": {"type": "string"}}}
    tools = [{"type": "function", "function": {"name": "log_in", "parameters": schema}}]
    with proxy(server.url, store=tmp_path / "live.db") as p:
        Got(
            p.port,
            body={"model": "m", "messages": [{"role": "user", "content": "Hi?"}], "tools": tools},
        )
        p.flush()
    (trial,) = recorded_trials(tmp_path / "live.db")
    assert json.loads(trial.case.tools[0].schema_json) == schema


# -- what must not get in the way


@contextlib.contextmanager
def _run(
    server: ReplayServer, folder: Path, *words: str, **more: Any
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command that passes on and records into live.db, with its port."""
    command = [sys.executable, "-m", "toolparse_lab.cli", "serve", "--pass-through"]
    command += ["--upstream", server.url, "--record", "live.db", "--port", "0", *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with running(command, cwd=folder, env=env, **more) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "http://" in line, line
        yield process, int(line.split("http://127.0.0.1:")[1].split(",")[0].split(";")[0])


@pytest.mark.slow
def test_kill_9_loses_only_what_was_in_flight(server: ReplayServer, tmp_path: Path) -> None:
    server.answers["/api/chat"] = streamed("never ", "ends", gap=0.01, hang=True)
    with _run(server, tmp_path) as (process, port):
        for _ in range(25):
            assert Got(port).status == 200
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/api/chat", b"{}")
        assert connection.getresponse().read1()
        path = tmp_path / "live.db"
        wait_until(lambda: _count(path) >= 25, process)
        process.kill()
        process.communicate()
    connection.close()
    assert len(exchanges(path)) == 25
    assert len(recorded_trials(path)) == 25


def _count(path: Path) -> int:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        try:
            return int(connection.execute("select count(*) from exchanges").fetchone()[0])
        except sqlite3.OperationalError:
            return 0


@pytest.mark.slow
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_ends_it_with_everything_written(
    server: ReplayServer, tmp_path: Path, ending: signal.Signals
) -> None:
    server.answers["/api/chat"] = streamed("never ", "ends", gap=0.01, hang=True)
    with _run(server, tmp_path, "--app", "bot") as (process, port):
        for _ in range(5):
            Got(port)
        connection = http.client.HTTPConnection("127.0.0.1", port)
        connection.request("POST", "/api/chat", b"{}")
        assert connection.getresponse().read1()
        process.send_signal(ending)
        _, told = process.communicate(timeout=PATIENCE)
    connection.close()
    assert process.returncode == (143 if ending == signal.SIGTERM else 130), told
    assert "6 answers recorded" in told
    assert [passed.end for passed in exchanges(tmp_path / "live.db", "bot")] == [
        *["whole"] * 5,
        "caller",
    ]


@pytest.mark.slow
def test_a_full_disk_does_not_reach_the_caller(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = whole("long " + os.urandom(20_000).hex())

    def limited() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))

    with _run(server, tmp_path, preexec_fn=limited) as (process, port):
        answers = [Got(port) for _ in range(60)]
        assert {(answer.status, answer.body) for answer in answers} == {
            (200, server.answer.pieces[0])
        }
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, told
    assert "not recorded so far" in told
    assert "could not be" in told


def test_a_full_queue_drops_records_and_counts_them(
    server: ReplayServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from toolparse_lab.extensions.serve import writer

    monkeypatch.setattr(writer, "_MOST", 3)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        Got(p.port)
        p.flush()
        with contextlib.closing(sqlite3.connect(tmp_path / "live.db")) as other:
            other.execute("begin immediate")  # the writer waits for its turn
            for _ in range(10):
                assert Got(p.port).status == 200
            wait_until(lambda: p.dropped >= 6)
            other.rollback()
        p.flush()
        assert p.recorded + p.dropped == 11
    assert len(exchanges(tmp_path / "live.db")) == p.recorded


def test_many_streams_at_once_are_each_what_was_sent(server: ReplayServer, tmp_path: Path) -> None:
    server.answer = streamed(*(f"word {n} " for n in range(30)), gap=0.002)
    with proxy(server.url, store=tmp_path / "live.db") as p:
        with concurrent.futures.ThreadPoolExecutor(120) as pool:
            bodies = set(pool.map(lambda _: Got(p.port).body, range(120)))
        assert bodies == {b"".join(server.answer.pieces)}
        p.flush()
        assert (p.recorded, p.dropped) == (120, 0)


def test_it_ends_once_and_frees_its_port(server: ReplayServer) -> None:
    running: Proxy = proxy(server.url)
    port = running.port
    running.close()
    running.close()
    with proxy(server.url, port=port) as again:
        assert again.port == port
