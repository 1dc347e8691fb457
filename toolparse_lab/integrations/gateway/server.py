"""The gateway's own endpoint: who may ask, the models to ask for, and where it listens."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from ...core.errors import BadOptions
from ...middleware import ToolCallMiddleware
from ...runner.exchange.redaction import is_http_address, redact_url
from ...runner.litellm_door import close_clients, recording_litellm
from ...runner.litellm_faults import allow_tools_without_mcp, hold_logging_worker
from ...runner.local.gate import Gate, Refusal, Rules, is_loopback, until_first
from ...runner.local.server import LocalServer, serve_local
from ..litellm_bridge.options import middleware_for
from .chat import Chat
from .http_body import Headers, json_object, json_response, read_body
from .models import models_of
from .question import Question, Upstream

if TYPE_CHECKING:
    from .recorder import Recorder

_CHAT = ("/v1/chat/completions", "/chat/completions")
_MODELS = ("/v1/models", "/models")
_HEALTH = ("/health", "/v1/health")
_THERE_IS = "POST /v1/chat/completions, GET /v1/models, GET /health"


class ChatGate(Gate):
    """A door with no engine behind it: chat completions are asked of another endpoint, and there is
    little else.
    """

    def __init__(self, host: str, port: int, rules: Rules, chat: Chat) -> None:
        super().__init__(host, port, rules)
        self._chat = chat

    async def answer(
        self,
        line: str,
        headers: Headers,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        body: bytes = b"",
    ) -> None:
        """Answer a request that was let in."""
        method, target, _ = line.split(" ")
        path = target.partition("?")[0]
        if path in _CHAT and method == "POST":
            body = body or await read_body(headers, reader, writer)
            question = Question.of(json_object(body), headers, self._chat.upstream)
            await ask(self._chat, question, reader, writer)
        elif path in _MODELS and method == "GET":
            writer.write(await models_of(self._chat.upstream, headers))
        elif path in _HEALTH and method == "GET":
            writer.write(json_response({"status": "ok"}))
        elif path in (*_CHAT, *_MODELS, *_HEALTH):
            raise Refusal(405, f"{method} does not exist here; there is {_THERE_IS}.")
        else:
            raise Refusal(404, f"{path[:100]!r} is not here; there is {_THERE_IS}.")
        await writer.drain()

    async def _end(self) -> None:
        await super()._end()
        await close_clients()


class ToolGate(Gate):
    """The door of the embedded model's endpoint, where a request with tools goes through the
    bridge: the engine itself would pass over them in silence.
    """

    def __init__(self, host: str, port: int, rules: Rules, middleware: ToolCallMiddleware) -> None:
        super().__init__(host, port, rules)
        self._middleware = middleware

    def open(self, inside: tuple[str, int], key: str) -> None:
        """Begin to pass requests on to the engine's own port, with its key."""
        host = f"[{inside[0]}]" if ":" in inside[0] else inside[0]
        self._chat = Chat(Upstream(f"http://{host}:{inside[1]}/v1", key), self._middleware)
        super().open(inside, key)

    async def answer(
        self,
        line: str,
        headers: Headers,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        body: bytes = b"",
    ) -> None:
        """Answer a request that was let in."""
        method, target, _ = line.split(" ")
        if method == "POST":
            body = body or await read_body(headers, reader, writer)
            if _offers_tools(body):
                if target.partition("?")[0] not in _CHAT:
                    raise Refusal(
                        400, "Tools are for POST /v1/chat/completions; the model knows none itself."
                    )
                question = Question.of(json_object(body), headers, self._chat.upstream)
                await ask(self._chat, question, reader, writer)
                return
            # The body was read here, so that its head says its length and nothing else.
            headers = [(name, value) for name, value in headers if name not in _OF_BODY]
            headers.append(("content-length", str(len(body))))
        await super().answer(line, headers, reader, writer, body)

    async def _end(self) -> None:
        await super()._end()
        await close_clients()


_OF_BODY = frozenset({"content-length", "transfer-encoding", "expect"})


def _offers_tools(body: bytes) -> bool:
    """Return True for a JSON body with tools, or functions, which are their older form."""
    if b'"tools"' not in body and b'"functions"' not in body:
        return False
    try:
        members = json_object(body)
    except Refusal:
        return False
    return bool(members.get("tools") or members.get("functions"))


async def ask(
    chat: Chat, question: Question, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Answer a question. If the caller goes, the upstream endpoint is asked no longer."""

    async def gone() -> None:
        while await reader.read(65_536):
            pass

    try:
        await until_first(chat.answer(question, writer), gone())
    finally:
        hold_logging_worker()


class Gateway:
    """A running gateway.

    A context manager. `url` ends in /v1. `close` frees the port and ends the recording, whose runs
    `run_ids` names.
    """

    def __init__(self, gate: Gate, url: str, recorder: Recorder | None = None) -> None:
        self._gate = gate
        self._recorder = recorder
        self.url = url

    @property
    def run_ids(self) -> list[str]:
        """The runs that were recorded so far."""
        return [] if self._recorder is None else list(self._recorder.run_ids)

    def close(self) -> None:
        """End all connections, and write the rows not yet recorded."""
        self._gate.close()
        if self._recorder is not None:
            self._recorder.close()

    def __enter__(self) -> Gateway:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Gateway({self.url!r})"


def serve(
    upstream: str,
    protocol: Any = "hermes",
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    upstream_key: str | None = None,
    api_key: str | None = None,
    recorder: Recorder | None = None,
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
    _check_address(upstream)
    if not 0 <= port <= 65_535:
        raise BadOptions("A port is a number up to 65535.", got=port, expected="0 for a free one")
    if not api_key and not is_loopback(host):
        raise BadOptions(
            "a gateway that others can reach needs a key",
            got=host,
            hint="pass api_key=..., or stay on 127.0.0.1",
        )
    if api_key and not upstream_key:
        # The caller's own key says who may ask here; it is nobody else's business.
        upstream_key = "none-needed"
    middleware = middleware or middleware_for(protocol, {})
    _set_up_litellm()
    chat = Chat(Upstream(upstream.rstrip("/"), upstream_key or ""), middleware, recorder)
    gate = ChatGate(host, port, Rules(host, api_key or ""), chat)
    gate.start()
    name = f"[{host}]" if ":" in host else host
    return Gateway(gate, f"http://{name}:{gate.port}/v1", recorder)


def _set_up_litellm() -> None:
    """Import litellm for a process that is a gateway's own: it prints nothing, and takes tools."""
    recording_litellm()
    allow_tools_without_mcp()


def _check_address(upstream: str) -> None:
    """Raise BadOptions for anything that is not an address of an endpoint."""
    if not is_http_address(upstream):
        raise BadOptions(
            "the upstream endpoint is an address",
            got=redact_url(upstream),
            expected="for example http://127.0.0.1:8000/v1",
        )


def serve_local_with_tools(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    api_key: str | None = None,
    threads: int | None = None,
    protocol: Any = "hermes",
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
) -> LocalServer:
    """`serve_local`, where a request with tools is answered by a protocol.

    Raises the errors of `serve_local`, and UnknownProtocol.
    """
    middleware = middleware_for(protocol, {"tool_choice_by": tool_choice_by})
    _set_up_litellm()

    def gate(host: str, port: int, rules: Rules) -> Gate:
        return ToolGate(host, port, rules, middleware)

    return serve_local(host, port, api_key=api_key, threads=threads, gate=gate)
