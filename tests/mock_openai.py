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
import time
from collections import Counter
from dataclasses import replace
from email.utils import formatdate
from typing import Any
from urllib.parse import quote

from tests.replay_server import Answer, Asked, ReplayServer, event_answer, json_answer


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


class MockOpenAI(ReplayServer):
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
        super().__init__(port=port)
        self.url += "/v1"
        self.latency = latency
        self.chunk_size = chunk_size
        self.keeps = keep
        self.needs_key = needs_key
        self.room = room
        self.crowded = 0
        self.calls = 0
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.answered: Counter[str] = Counter()

    def keep(self, asked: Asked) -> None:
        self.calls += 1
        if self.keeps:
            self.bodies.append(asked.json)
            self.paths.append(asked.path)
            self.headers.append(asked.by_name)

    def reply(self, asked: Asked) -> Answer:
        if self.room is not None and self.running > self.room:
            self.crowded += 1
            return failure(429, "too many requests at once")
        if self.needs_key and asked.by_name.get("authorization") != f"Bearer {self.needs_key}":
            return failure(401, "wrong key")
        if not asked.line.startswith("POST "):
            return failure(501, "this server takes questions alone")
        return self.chat(asked, asked.json)

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        """The response to a body: the place for a mock that answers otherwise."""
        asked = str(body["messages"][-1]["content"])
        orders, coded, text = asked.partition("say64=")
        if coded:
            code, _, rest = text.partition(" ")
            text = base64.b64decode(code).decode("utf-8", "surrogatepass") + rest
        else:
            orders, _, text = asked.partition("say=")
        order = dict(re.findall(r"(\w+)=([\d.]+)", orders))
        words = orders.split()
        seen = self.answered[asked]
        if self.keeps or "times" in order:
            self.answered[asked] += 1
        if "hang" in words:
            return Answer([], bare=True, hang=True)
        answer = self._said(request, body, order, words, text or asked, seen)
        return replace(answer, delay=float(order.get("slow", self.latency)))

    def _said(
        self,
        request: Asked,
        body: dict[str, Any],
        order: dict[str, str],
        words: list[str],
        text: str,
        seen: int,
    ) -> Answer:
        status = int(order.get("status", 200))
        if status != 200 and seen < int(order.get("times", 10**9)):
            head = {"Retry_After": order["after"]} if "after" in order else {}
            if "date" in order:
                head["Retry_After"] = formatdate(time.time() + float(order["date"]), usegmt=True)
            key = request.by_name.get("authorization", "")
            message = f"told to fail with {status}; your key was {key}"
            message += _confession(words, [request.path, dict(request.headers), body])
            if "overflow" in words:
                message = (
                    "This model's maximum context length is 10 tokens. Please reduce the length."
                )
            return failure(status, message, **head)
        if "noformat" in words and "response_format" in body:
            return failure(400, "response_format is not supported")
        text = json.loads(text) if "escaped" in words else text
        finish = "tool_calls" if "tool" in words else "length" if "length" in words else "stop"
        texts = text.split("~~") if body.get("n") else [text]
        if body.get("stream"):
            return self._streamed(body, texts, finish, order, words)
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
        choices = [
            {"index": i, "message": {**message_out, "content": said}, "finish_reason": finish}
            for i, said in enumerate([message_out["content"], *texts[1:]])
        ]
        created = int(time.time())
        return json_answer(
            {**_about(body, "chat.completion", created), "choices": choices, "usage": _USAGE}
        )

    def _streamed(
        self,
        body: dict[str, Any],
        texts: list[str],
        finish: str,
        order: dict[str, str],
        words: list[str],
    ) -> Answer:
        def event(delta: dict[str, Any], reason: str | None = None, index: int = 0) -> Any:
            choice = {"index": index, "delta": delta, "finish_reason": reason}
            return {**_about(body, "chat.completion.chunk", 1), "choices": [choice]}

        events = [event({"role": "assistant", "content": ""})]
        if "reason" in words:
            events += [event({"reasoning_content": part}) for part in ("be", "cause")]
        before = len(events)
        size = int(order.get("size", self.chunk_size))
        for at in range(0, max(map(len, texts)), size):
            for index, text in enumerate(texts):
                piece = text[at : at + size]
                if "tool" in words:
                    call: dict[str, Any] = {"index": 0, "function": {"arguments": piece}}
                    if at == 0:
                        call.update(id="call_0", type="function")
                        call["function"]["name"] = "get_weather"
                    events.append(event({"tool_calls": [call]}))
                elif piece:
                    events.append(event({"content": piece}, index=index))
        cut = before + int(order.get("cut", order.get("abort", 10**9)))
        broken = cut < len(events)
        events += [event({}, finish, index) for index in range(len(texts))]
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append({**event({}), "choices": [], "usage": _USAGE})
        return event_answer(
            [*events, "[DONE]"],
            gap=float(order.get("gap", 0)),
            cut=cut if broken else None,
            headers={"Content-Length": "1000000"} if "abort" in order else {},  # more than comes
        )


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def _about(body: dict[str, Any], kind: str, created: int) -> dict[str, Any]:
    about = {"id": "mock-1", "object": kind, "created": created, "model": body["model"]}
    return {**about, "system_fingerprint": "mock_fp"}


def failure(status: int, message: str, **headers: str) -> Answer:
    """A response that says what failed."""
    body = {"error": {"message": message, "type": "mock"}}
    return json_answer(body, status, **headers)


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

    def chat(self, request: Asked, body: dict[str, Any]) -> Answer:
        said = [{"role": "user", "content": "say=" + self.text}]
        return super().chat(request, {**body, "messages": said})
