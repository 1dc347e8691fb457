"""The gateway: an OpenAI-compatible endpoint that gives tool calls to the models of another one."""

from __future__ import annotations

import asyncio
import http.client
import json
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aiohttp import web

from ...core.errors import BadOptions
from ...integrations.litellm_bridge.options import middleware_for
from ...middleware import ToolCallMiddleware
from ...runner.exchange.redaction import is_http_address, redact, redact_url
from ...runner.exchange.types import MOST_ANSWER
from ...runner.litellm_door import close_clients, recording_litellm
from ...runner.litellm_faults import allow_tools_without_mcp
from .chat import Chat, Upstream
from .server import Refusal, Rules, Server, body_of, check_address, headers_of, json_response

if TYPE_CHECKING:
    from .run_recorder import RunRecorder

CHAT = ("/v1/chat/completions", "/chat/completions")
_MODELS = ("/v1/models", "/models")
_HEALTH = ("/health", "/v1/health")
_THERE_IS = "POST /v1/chat/completions, GET /v1/models, GET /health"
_MODELS_SECONDS = 30.0  # for the upstream endpoint's list of models


class Gateway(Server):
    """A running gateway, a context manager. `url` ends in /v1.

    Chat completions are asked of another endpoint, and there is little else.
    """

    def __init__(
        self, host: str, port: int, rules: Rules, chat: Chat, recorder: RunRecorder | None = None
    ) -> None:
        super().__init__(host, port, "/v1", rules)
        self._chat = chat
        self._recorder = recorder
        self.start()

    @property
    def run_ids(self) -> list[str]:
        """The runs that were recorded so far."""
        return [] if self._recorder is None else list(self._recorder.run_ids)

    def close(self) -> None:
        """End all connections, free the port, and write the rows not yet recorded."""
        super().close()
        if self._recorder is not None:
            self._recorder.close()

    async def _end(self) -> None:
        await super()._end()
        await close_clients()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that was let in."""
        method, path = request.method, request.raw_path.partition("?")[0]
        if path in CHAT and method == "POST":
            return await self._chat.answer(await body_of(request), request)
        if path in _MODELS and method == "GET":
            return await _models_of(self._chat.upstream, request)
        if path in _HEALTH and method == "GET":
            return json_response({"status": "ok"})
        if path in (*CHAT, *_MODELS, *_HEALTH):
            raise Refusal(405, f"{method} does not exist here; there is {_THERE_IS}.")
        raise Refusal(404, f"{path[:100]!r} is not here; there is {_THERE_IS}.")


def serve(
    upstream: str,
    protocol: Any = "hermes",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    upstream_key: str | None = None,
    api_key: str | None = None,
    recorder: RunRecorder | None = None,
    middleware: ToolCallMiddleware | None = None,
) -> Gateway:
    """Serve an OpenAI-compatible endpoint at `http://host:port/v1` (port 0 = any free one) that
    asks another one and gives its models tool calls.

    upstream: the other endpoint's address, up to /v1. protocol: how its models are told to write a
    call. upstream_key: its key. Without one callers send theirs, and it is passed on. api_key: the
    key that callers must send. Without one the gateway must stay on loopback, where it answers
    requests to localhost alone, and none of pages of other sites. recorder: takes the traffic.
    middleware: takes the place of the protocol's own.

    Raises BadOptions for an address or a port that cannot be one and for an open gateway on a
    public address, UnknownProtocol, SetupError where the port is taken.
    """
    if not is_http_address(upstream):
        raise BadOptions(
            "the upstream endpoint is an address",
            got=redact_url(upstream),
            expected="for example http://127.0.0.1:8000/v1",
        )
    check_address("a gateway", host, port, api_key)
    if api_key and not upstream_key:
        # The caller's own key says who may ask here; it is nobody else's business.
        upstream_key = "none-needed"
    middleware = middleware or middleware_for(protocol, {})
    set_up_litellm()
    record = None if recorder is None else recorder.add
    chat = Chat(Upstream(upstream.rstrip("/"), upstream_key or ""), middleware, record)
    return Gateway(host, port, Rules(host, api_key or ""), chat, recorder)


def set_up_litellm() -> None:
    """Let litellm print nothing and take tools, in a process that is a server's own."""
    # Else it counts the tokens of answers that do not tell them, for a price nobody asks for: its
    # tables take 40 MB, and all callers wait while they are read.
    recording_litellm().disable_token_counter = True
    allow_tools_without_mcp()


async def _models_of(upstream: Upstream, request: web.BaseRequest) -> web.Response:
    """Return the response to a request for the models: those that the upstream endpoint says.
    Raises Refusal if it gives none.
    """
    key = upstream.key_for(headers_of(request))
    try:
        status, body = await asyncio.to_thread(_get, f"{upstream.url}/models", key)
    except (OSError, http.client.HTTPException, ValueError) as e:
        reason = redact(f"{type(e).__name__}: {e}", [key])
        raise Refusal(502, f"The upstream endpoint gives no models: {reason}") from None
    if status != 200:
        answer = status if 400 <= status <= 599 else 502
        raise Refusal(answer, f"The upstream endpoint gives no models: status {status}.")
    try:
        models: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(502, "The upstream endpoint's models are no JSON.") from None
    return json_response(models)


def _get(url: str, key: str) -> tuple[int, bytes]:
    # No redirection is followed.
    parts = urlsplit(url)
    is_open = parts.scheme == "http"
    kind = http.client.HTTPConnection if is_open else http.client.HTTPSConnection
    connection = kind(parts.hostname or "", parts.port, timeout=_MODELS_SECONDS)
    try:
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        connection.request("GET", target, headers={"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        body, end = bytearray(), time.monotonic() + _MODELS_SECONDS
        while len(body) < MOST_ANSWER and (piece := response.read1(65_536)):
            body += piece
            if time.monotonic() > end:
                raise TimeoutError("the list does not end")
        return response.status, bytes(body)
    finally:
        connection.close()
