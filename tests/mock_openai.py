"""A mock of an OpenAI-compatible endpoint, for tests only: it answers what the test told it to,
over real HTTP.

What it does with a request is chosen by the words in the last message: ``slow=0.2`` (seconds before
the answer), ``status=500``, ``status=429`` with ``after=0.1`` or ``date=2`` (Retry-After, in
seconds or as the HTTP date so many seconds from now) and ``times=1`` (only the first so many),
``cut=3`` (the stream breaks off after so many chunks), ``gap=0.05`` (seconds between chunks),
``hang`` (never answers), ``tool`` (a native tool call), ``noformat`` (HTTP 400 for a request with a
response_format), ``confess`` (the error message repeats the whole request; as ``confess=quoted``,
``confess=base64`` or ``confess=html`` in that form), ``abort=3`` (the
connection breaks in the middle of the body after so many chunks), ``say=...`` (the answer is
everything after it, as a JSON string where ``escaped`` is said too; otherwise an echo of the last
message). A request with ``n`` gets so many choices: the parts of the answer between ``~~``.
"""

from __future__ import annotations

import base64
import html
import json
import re
import threading
import time
from collections import Counter
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote


def _confession(words: list[str], request: list[Any]) -> str:
    """The request as JSON, as a Python value and in the form that is asked for; "" without
    ``confess``."""
    word = next((word for word in words if word.startswith("confess")), None)
    if word is None:
        return ""
    text = json.dumps(request) + repr(request) + json.dumps(json.dumps(request))
    form = word.partition("=")[2]
    if form == "base64":
        parts = [*request[1].values(), *re.findall(r'"([^"\\\\]{8,})"', json.dumps(request[2]))]
        return " ".join(base64.b64encode(part.encode()).decode() for part in parts)
    if form == "quoted":
        return quote(text)
    return html.escape(text) if form == "html" else text


class MockOpenAI:
    """`with MockOpenAI() as mock`: `mock.url` ends in /v1, `mock.bodies`, `mock.headers` and
    `mock.paths` are what was received.

    `keep=False` keeps none, for runs of any length; `mock.calls` counts. `port`: where it listens
    (0: any free one). `needs_key`: every other one is refused. `room`: more requests than that at
    once get a 429.
    """

    def __init__(
        self,
        *,
        latency: float = 0.0,
        chunk_size: int = 4,
        keep: bool = True,
        port: int = 0,
        needs_key: str | None = None,
        room: int | None = None,
    ) -> None:
        self.latency = latency
        self.chunk_size = chunk_size
        self.keep = keep
        self.needs_key = needs_key
        self.room = room
        self.crowded = 0
        self.calls = 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answered: Counter[str] = Counter()
        self.running = 0
        self.most_running = 0
        self.lock = threading.Lock()
        self.stopped = threading.Event()
        mock = self

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that went away is part of the tests."""

        class Answer(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, format: str, *args: Any) -> None:
                """Silence."""

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with mock.lock:
                    mock.calls += 1
                    if mock.keep:
                        mock.bodies.append(body)
                        mock.paths.append(self.path)
                        mock.headers.append({k.lower(): v for k, v in self.headers.items()})
                    mock.running += 1
                    mock.most_running = max(mock.most_running, mock.running)
                    full = mock.room is not None and mock.running > mock.room
                    mock.crowded += full
                try:
                    if full:
                        mock._fail(self, 429, "too many requests at once")
                    elif (
                        mock.needs_key
                        and self.headers.get("Authorization") != f"Bearer {mock.needs_key}"
                    ):
                        mock._fail(self, 401, "wrong key")
                    else:
                        mock._answer(self, body)
                finally:
                    with mock.lock:
                        mock.running -= 1

        self.server = Server(("127.0.0.1", port), Answer)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.stopped.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def _answer(self, http: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        asked = str(body["messages"][-1]["content"])
        orders, coded, text = asked.partition("say64=")
        if coded:
            code, _, rest = text.partition(" ")
            text = base64.b64decode(code).decode("utf-8", "surrogatepass") + rest
        else:
            orders, _, text = asked.partition("say=")
        order = dict(re.findall(r"(\w+)=([\d.]+)", orders))
        words = orders.split()
        with self.lock:
            seen = self.answered[asked]
            if self.keep or "times" in order:
                self.answered[asked] += 1
        self.stopped.wait(float(order.get("slow", self.latency)))
        if "hang" in words:
            self.stopped.wait(60)
            return
        status = int(order.get("status", 200))
        if status != 200 and seen < int(order.get("times", 10**9)):
            head = {"Retry-After": order["after"]} if "after" in order else {}
            if "date" in order:
                head["Retry-After"] = formatdate(time.time() + float(order["date"]), usegmt=True)
            key = http.headers.get("Authorization", "")
            message = f"told to fail with {status}; your key was {key}"
            message += _confession(words, [http.path, dict(http.headers), body])
            if "overflow" in words:
                message = (
                    "This model's maximum context length is 10 tokens. Please reduce the length."
                )
            self._send(http, status, {"error": {"message": message, "type": "mock"}}, head)
            return
        if "noformat" in words and "response_format" in body:
            self._fail(http, 400, "response_format is not supported")
            return
        text = json.loads(text) if "escaped" in words else text or asked
        finish = "tool_calls" if "tool" in words else "length" if "length" in words else "stop"
        if body.get("stream"):
            self._stream(http, body, text, finish, order, words)
            return
        texts = text.split("~~") if body.get("n") else [text]
        message_out: dict[str, Any] = {"role": "assistant", "content": texts[0]}
        if "reason" in words:
            message_out["reasoning_content"] = "because"
        if "tool" in words:
            message_out["content"] = None
            message_out["tool_calls"] = [
                {
                    "id": f"call_{i}",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": args},
                }
                for i, args in enumerate(text.split("|"))
            ]
        self._send(
            http,
            200,
            {
                "id": "mock-1",
                "object": "chat.completion",
                "created": int(time.time()),
                "model": body["model"],
                "system_fingerprint": "mock_fp",
                "choices": [
                    {
                        "index": i,
                        "message": {**message_out, "content": said},
                        "finish_reason": finish,
                    }
                    for i, said in enumerate([message_out["content"], *texts[1:]])
                ],
                "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            },
        )

    def _fail(self, http: BaseHTTPRequestHandler, status: int, message: str) -> None:
        self._send(http, status, {"error": {"message": message, "type": "mock"}})

    def _send(
        self,
        http: BaseHTTPRequestHandler,
        status: int,
        obj: dict[str, Any],
        head: dict[str, str] | None = None,
    ) -> None:
        out = json.dumps(obj).encode()
        http.send_response(status)
        http.send_header("Content-Type", "application/json")
        http.send_header("Content-Length", str(len(out)))
        for name, value in (head or {}).items():
            http.send_header(name, value)
        http.end_headers()
        http.wfile.write(out)

    def _stream(
        self,
        http: BaseHTTPRequestHandler,
        body: dict[str, Any],
        text: str,
        finish: str,
        order: dict[str, str],
        words: list[str],
    ) -> None:
        http.send_response(200)
        http.send_header("Content-Type", "text/event-stream")
        http.send_header("Connection", "close")
        if "abort" in order:
            http.send_header("Content-Length", "1000000")  # more than will come
        http.end_headers()
        http.close_connection = True

        def event(
            delta: dict[str, Any], reason: str | None = None, index: int = 0, **more: Any
        ) -> None:
            obj = {
                "id": "mock-1",
                "object": "chat.completion.chunk",
                "created": 1,
                "model": body["model"],
                "system_fingerprint": "mock_fp",
                "choices": [{"index": index, "delta": delta, "finish_reason": reason}],
                **more,
            }
            http.wfile.write(f"data: {json.dumps(obj)}\n\n".encode())
            http.wfile.flush()

        event({"role": "assistant", "content": ""})
        if "reason" in words:
            event({"reasoning_content": "be"})
            event({"reasoning_content": "cause"})
        size = int(order.get("size", self.chunk_size))
        texts = text.split("~~") if body.get("n") else [text]
        pieces = [
            (choice, said[i : i + size])
            for i in range(0, max(map(len, texts)), size)
            for choice, said in enumerate(texts)
            if i < len(said)
        ]
        for n, (choice, piece) in enumerate(pieces):
            if n == int(order.get("cut", order.get("abort", -1))):
                return
            if "tool" in words:
                call: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
                if n == 0:
                    call.update(id="call_0", type="function")
                    call["function"]["name"] = "get_weather"
                event({"tool_calls": [call]})
            else:
                event({"content": piece}, index=choice)
            self.stopped.wait(float(order.get("gap", 0)))
        for choice in range(len(texts)):
            event({}, finish, choice)
        if (body.get("stream_options") or {}).get("include_usage"):
            event(
                {},
                None,
                choices=[],
                usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
            )
        http.wfile.write(b"data: [DONE]\n\n")


def unseen(text: str) -> str:
    """The same order with its answer in base64: an answer that stands in the question is an echo.

    >>> unseen("slow=1 say=Hi")
    'slow=1 say64=SGk='
    """
    orders, ordered, answer = text.partition("say=")
    if not ordered:
        return text
    return f"{orders}say64={base64.b64encode(answer.encode('utf-8', 'surrogatepass')).decode()}"


class OneAnswer(MockOpenAI):
    """An endpoint that answers every question with one call, for the examples of the pages."""

    text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'

    def _answer(self, http: Any, body: dict[str, Any]) -> None:
        super()._answer(
            http, {**body, "messages": [{"role": "user", "content": "say=" + self.text}]}
        )
