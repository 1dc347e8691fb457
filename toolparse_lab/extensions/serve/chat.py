"""Chat completions through the litellm bridge: a request's body in, the answer in OpenAI's shape
out, and what passed as it will be recorded.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from ...core.errors import UsageError
from ...integrations.litellm_bridge import acompletion_with
from ...integrations.litellm_bridge.stream import tapped_stream
from ...middleware import ToolCallMiddleware, Turn
from ...runner.answer import Answer
from ...runner.complete import completion_of, guard_logs
from ...runner.exchange.redaction import redact, redact_exact, url_secrets
from ...runner.exchange.types import MOST_ANSWER, Completion, Model, Request
from ...runner.failures import error_kind, error_message, retry_after, said_in, status_code
from ...runner.litellm_faults import hold_logging_worker, ignore_warnings
from ...runner.streams import BodyEnd, Redirected, TooLarge
from ...views.show import shorten
from .secrets import secrets_of_request
from .server import OURS, TURN, Headers, Refusal, headers_of, json_bytes, json_response

_EVENT_HEAD = {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-cache",
    **OURS,
}
_LAST_EVENT = b"data: [DONE]\n\n"
# Members of a body that the bridge reads or litellm has to know. All others go to the upstream
# endpoint as they came: what litellm would make of them (another address, a callback, a made-up
# answer) is not for a caller to say.
_READ = (
    *("messages", "tools", "tool_choice", "parallel_tool_calls", "response_format"),
    *("n", "stream_options", "functions", "function_call"),
)
_NO_KEY = "none-needed"  # OpenAI's client insists on one
# Arguments of litellm that say how it asks, and are no parameters of the request.
_NO_PARAMETERS = frozenset(
    {"messages", "model", "api_base", "api_key", "max_retries", "timeout", "stream", "tools"}
)
_MOST_CHUNKS = 4096  # that litellm keeps of a stream
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_WITHOUT_WORDS = re.compile(r"Error code: \d+$")
_NO_ANSWER = "the body of the upstream endpoint's answer is no chat completion"
_MOST_WORDS = 4_000  # characters of the upstream endpoint's own words about a failure
_TIMEOUT = 600.0  # seconds of the upstream endpoint without a word
# Members of an answer that are there although they are null.
_KEPT = frozenset({"content", "finish_reason"})
_OF_PROVIDER = "provider_specific_fields"
# A failure that no server gave a status -> that of the gateway.
_STATUS = {"connection": 502, "timeout": 504, "cut_stream": 502}


@dataclass(frozen=True, slots=True)
class Upstream:
    """The endpoint that is asked."""

    url: str  # up to /v1
    key: str = field(default="", repr=False)  # "" if callers bring their own

    def key_for(self, headers: Headers) -> str:
        """Return the key to ask with: this endpoint's, or the one that the caller sent."""
        if self.key:
            return self.key
        values = [value for name, value in headers if name == "authorization"]
        keys = [value[7:].strip() for value in values if value[:7].lower() == "bearer "]
        return keys[0] if keys and keys[0] else _NO_KEY


@dataclass(frozen=True, slots=True)
class Question:
    """A request for a chat completion as it came in."""

    body: Mapping[str, Any]
    model: str
    stream: bool
    key: str = field(repr=False)  # for the upstream endpoint
    secrets: tuple[str, ...] = field(repr=False)  # everything in it that is a credential

    @classmethod
    def of(cls, body: Mapping[str, Any], headers: Headers, upstream: Upstream) -> Question:
        """Read a request. Raises Refusal for one that cannot be asked."""
        model, messages = body.get("model"), body.get("messages")
        if not isinstance(model, str) or not model:
            raise Refusal(400, "model: a request says which model it asks.")
        if not isinstance(messages, list) or not messages:
            raise Refusal(400, "messages: a request has a list of at least one message.")
        # Only the shape is looked at here; the bridge reads the messages.
        if not all(isinstance(m, dict) and isinstance(m.get("role"), str) for m in messages):
            raise Refusal(400, "messages: each of them is an object with a role.")
        key = upstream.key_for(headers)
        credentials = [key, *url_secrets(upstream.url), *secrets_of_request(headers, body)]
        secrets = tuple(dict.fromkeys(s for s in credentials if s and s != _NO_KEY))
        return cls(body, model, body.get("stream") is True, key, secrets)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the bridge for it, without the address."""
        out = {name: self.body[name] for name in _READ if self.body.get(name) is not None}
        rest = {k: v for k, v in self.body.items() if k not in (*_READ, "model", "stream")}
        if rest:
            out["extra_body"] = rest
        return {**out, "stream": self.stream}


class Exchange:
    """A question and its answer on their way, as they will be recorded: a tap of the bridge.

    `failure` is the exception that ended it, None if it came to its end.
    """

    def __init__(self, question: Question, url: str, kept: bool = True) -> None:
        self.question = question
        self._kept = kept
        self.failure: BaseException | None = None
        self._url = url
        self._turn: Turn | None = None
        self._answer = Answer(native=False, started=time.perf_counter(), room=MOST_ANSWER)
        self._created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream: Any = None
        self._ended = False

    def watched(self) -> AbstractContextManager[None]:
        """Return the context in which to ask and to read, so that a stream's end is seen."""
        return self._answer.body_end

    def sent(self, turn: Turn) -> Mapping[str, Any]:
        """Take the request as it is sent."""
        # As it is now: litellm's own arguments, callbacks among them, come to it later.
        self._turn = replace(turn, params=dict(turn.params))
        self._answer.native = bool(turn.params.get("tools"))
        self._answer.started = time.perf_counter()
        return {"logger_fn": self._answer.log}

    def received(self, litellm: Any, response: Any) -> Any:
        """Take a whole answer, or the chunks of a stream."""
        if isinstance(response, litellm.CustomStreamWrapper):
            self._stream = response
            return tapped_stream(litellm, response, self._take)
        self._answer.read_response(response)
        return response

    def _take(self, chunk: Any) -> None:
        answer = self._answer
        answer.take_chunk(chunk)
        answer.check_room()
        if not self._kept:
            # Of what is not recorded its size is enough.
            for pieces in (answer.content, answer.reasoning, answer.chunks):
                pieces.clear()
        # litellm keeps all chunks, some kilobytes each, for a count of tokens that servers send.
        chunks = getattr(self._stream, "chunks", None)
        if isinstance(chunks, list) and len(chunks) > _MOST_CHUNKS:
            del chunks[16:-16]

    @property
    def body_end(self) -> BodyEnd:
        """How the response came."""
        return self._answer.body_end

    @property
    def refusal(self) -> Exception | None:
        """Why no more of the response was read, which clients hide behind exceptions of theirs."""
        return self._answer.body_end.refusal

    def end(self) -> None:
        """Note that nothing more will come. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        self._answer.latency = round(time.perf_counter() - self._answer.started, 6)
        if self._stream is not None:
            self._answer.end_stream(self._stream)

    @property
    def cut(self) -> bool:
        """True for a stream that ended without a finish reason. Known after `end`."""
        return self._answer.cut

    def completion(self) -> Completion | None:
        """Return the record of it, as that of a run, or None if nothing was sent.

        Its request and response are without credentials. Raw and chunks are as they came.
        """
        if self._turn is None:
            return None
        params = self._turn.params
        rest = {k: v for k, v in params.items() if k not in _NO_PARAMETERS}
        rest.pop("logger_fn", None)
        request = Request(
            Model(f"openai/{self.question.model}", api_base=self._url, api_key=self.question.key),
            self.question.model,
            tuple(params["messages"]),
            params={**(rest.pop("extra_body", None) or {}), **rest},
            tools=tuple(params.get("tools") or ()),
            stream=self.question.stream,
        )
        return completion_of(request, self._answer, self._created, self.failure)


@dataclass(frozen=True, slots=True)
class Chat:
    """Asks one upstream endpoint by one middleware. record: takes what has passed."""

    upstream: Upstream
    middleware: ToolCallMiddleware
    record: Callable[[Exchange], object] | None = None

    async def answer(self, body: bytes, request: web.BaseRequest) -> web.StreamResponse:
        """Ask, and return the response, whole or streamed, or an error in OpenAI's shape. Raises
        Refusal for a body that cannot be asked.
        """
        question = Question.of(json_object(body), headers_of(request), self.upstream)
        guard_logs(question.secrets)
        exchange = Exchange(question, self.upstream.url, self.record is not None)
        try:
            with exchange.watched():
                ignore_warnings()  # again and again: whoever resets Python's filters is not told
                answer = await acompletion_with(
                    self.middleware,
                    tap=exchange,
                    model=f"openai/{question.model}",
                    api_base=self.upstream.url,
                    api_key=question.key,
                    max_retries=0,
                    timeout=_TIMEOUT,
                    **question.arguments(),
                )
                if question.stream:
                    return await _streamed(answer, request, question, exchange)
                return json_response(_slim(answer.model_dump(mode="json")))
        except asyncio.CancelledError:
            exchange.failure = CallerGone("the caller went away before the end")
            raise
        except ConnectionError:
            exchange.failure = CallerGone("the caller went away before the end")
            raise
        except UsageError as e:
            exchange.failure = e
            error = _error(redact_exact(str(e), question.secrets), "invalid_request_error", 400)
            return json_response(error, 400)
        except Exception as e:
            exchange.failure = exchange.refusal or e
            return json_response(*_provider_error(exchange.failure, question, exchange.body_end))
        finally:
            # A cancelled request is recorded too, with what had come.
            exchange.end()
            hold_logging_worker()
            if self.record is not None:
                self.record(exchange)


async def _streamed(
    stream: Any, request: web.BaseRequest, question: Question, exchange: Exchange
) -> web.StreamResponse:
    """Write a stream as events.

    Its head goes with the first chunk, so a failure before it has its own status. A later failure
    is an event, and no end follows.
    """
    # The end of the answer waits until all has come: litellm ends a stream that broke off as if it
    # were finished, and only then can that be told.
    response = web.StreamResponse(headers=_EVENT_HEAD)
    endings: list[bytes] = []
    turn = 0.0
    try:
        async for chunk in stream:
            text = _event(_chunk_members(chunk))
            if endings or any(choice.finish_reason for choice in chunk.choices):
                endings.append(text)
                continue
            await response.prepare(request)  # a second time it does nothing
            await response.write(text)
            # A fast server never makes a stream wait.
            if time.monotonic() > turn:
                await asyncio.sleep(0)
                turn = time.monotonic() + TURN
        exchange.end()
        if exchange.refusal is not None:  # litellm may end a stream on it as if it were whole
            raise exchange.refusal
        if exchange.cut:
            raise BrokenStream("the upstream endpoint's stream ended before its last part")
    except Exception as e:
        if not response.prepared or isinstance(e, ConnectionError):
            raise
        # One that only ended too early is recorded as cut, without an exception.
        e = exchange.refusal or e
        exchange.failure = None if isinstance(e, BrokenStream) else e
        endings = [_event(_provider_error(e, question, exchange.body_end)[0])]
    else:
        endings.append(_LAST_EVENT)
    finally:
        await stream.aclose()
    await response.prepare(request)
    await response.write(b"".join(endings))
    await response.write_eof()
    return response


class BrokenStream(Exception):
    """The upstream endpoint's stream ended without a finish reason."""


class CallerGone(ConnectionError):
    """Whoever asked is gone, so that no one is left to be answered."""


def _chunk_members(chunk: Any) -> dict[str, Any]:
    members: dict[str, Any] = _slim(chunk.model_dump(mode="json"))
    # OpenAI sends the counted tokens without a choice.
    if "usage" in members and not any(
        piece is not None
        for choice in members["choices"]
        for piece in (choice["finish_reason"], *choice["delta"].values())
    ):
        members["choices"] = []
    return members


def _slim(value: Any) -> Any:
    """Return an answer without litellm's empty members, in the shape that OpenAI sends."""
    if isinstance(value, list):
        return [_slim(v) for v in value]
    if not isinstance(value, dict):
        return value
    members = {k: _slim(v) for k, v in value.items() if v is not None or k in _KEPT}
    if not members.get(_OF_PROVIDER, True):
        del members[_OF_PROVIDER]
    return members


def _error(message: str, kind: str, status: int) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def _provider_error(
    e: Exception, question: Question, end: BodyEnd
) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Return body, status and headers for a failure of the upstream endpoint, in its own words and
    without credentials. end: how its response came.
    """
    if isinstance(e, (Redirected, TooLarge)):
        return _error(error_message(e, question.secrets), "server_error", 502), 502, {}
    kind = error_kind(e)
    status = _STATUS.get(kind) or status_code(e) or 500
    # litellm says 500 of an answer that came well and cannot be read.
    if not 400 <= status <= 599 or (status == 500 and end.status == 200):
        status = 502
    wait = retry_after(e)
    more = {} if wait is None else {"Retry-After": f"{wait:g}"}
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    name = kinds.get(status, "invalid_request_error" if status < 500 else "server_error")
    message = error_message(e, question.secrets)
    said = said_in(end.text())
    if _WITHOUT_WORDS.search(message) or isinstance(e, BrokenStream):
        message = said or message
    elif end.status == 200 and end.text() is not None and not question.stream:
        # litellm says of such a body how it failed to read it.
        message = said or _NO_ANSWER
    words = redact(shorten(message, _MOST_WORDS), question.secrets)
    return _error(words, name, status), status, more


def json_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object of a body. Raises Refusal for anything else."""
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_number, parse_float=_number)
        if _SURROGATE.search(body):
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Refusal(400, "The body of this request is no JSON object.")
    return value


def _number(text: str) -> float:
    # NaN and what is too large for a number are no JSON.
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _event(value: Any) -> bytes:
    return b"data: " + json_bytes(value) + b"\n\n"
