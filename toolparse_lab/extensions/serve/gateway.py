"""The HTTP endpoint of the gateway: who may ask, what there is, bodies, and where it listens."""

from __future__ import annotations

import asyncio
import http.client
import json
from functools import partial
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from ...core.errors import BadOptions
from ...integrations.litellm_bridge.options import middleware_for
from ...middleware import ToolCallMiddleware
from ...runner.exchange.redaction import is_http_address, redact, redact_url
from ...runner.litellm_door import close_clients, recording_litellm
from ...runner.litellm_faults import allow_tools_without_mcp, hold_logging_worker
from .chat import Chat, Headers, Question, Upstream, json_object, json_response
from .gate import Gate, Refusal, Rules, check_address, until_first
from .local import LocalServer, start_local

if TYPE_CHECKING:
    from .run_recorder import RunRecorder

_CHAT = ("/v1/chat/completions", "/chat/completions")
_MODELS = ("/v1/models", "/models")
_HEALTH = ("/health", "/v1/health")
_THERE_IS = "POST /v1/chat/completions, GET /v1/models, GET /health"
_OF_BODY = frozenset({"content-length", "transfer-encoding", "expect"})
_MODELS_SECONDS = 30.0  # for the upstream endpoint's list of models
_MOST_MODELS = 16 * 2**20  # bytes of it
MOST_BODY = 64 * 2**20  # bytes of a request's body; more is refused
_BODY_SECONDS = 60.0  # from one piece of a body to the next
_LONGEST_LINE = 100  # of a chunk's size


class _BridgeGate(Gate):
    # A gate whose chat completions go through the bridge.

    _chat: Chat

    async def _ask(
        self,
        body: bytes,
        headers: Headers,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        # If the caller goes, the upstream endpoint is asked no longer.
        question = Question.of(json_object(body), headers, self._chat.upstream)

        async def gone() -> None:
            while await reader.read(65_536):
                pass

        try:
            await until_first(self._chat.answer(question, writer), gone())
        finally:
            hold_logging_worker()

    async def _end(self) -> None:
        await super()._end()
        await close_clients()


class Gateway(_BridgeGate):
    """A running gateway, a context manager. `url` ends in /v1.

    Chat completions are asked of another endpoint, and there is little else.
    """

    def __init__(
        self, host: str, port: int, rules: Rules, chat: Chat, recorder: RunRecorder | None = None
    ) -> None:
        super().__init__(host, port, rules)
        self._chat = chat
        self._recorder = recorder

    @property
    def run_ids(self) -> list[str]:
        """The runs that were recorded so far."""
        return [] if self._recorder is None else list(self._recorder.run_ids)

    def close(self) -> None:
        """End all connections, free the port, and write the rows not yet recorded."""
        super().close()
        if self._recorder is not None:
            self._recorder.close()

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
            body = body or await _read_body(headers, reader, writer)
            await self._ask(body, headers, reader, writer)
        elif path in _MODELS and method == "GET":
            writer.write(await _models_of(self._chat.upstream, headers))
        elif path in _HEALTH and method == "GET":
            writer.write(json_response({"status": "ok"}))
        elif path in (*_CHAT, *_MODELS, *_HEALTH):
            raise Refusal(405, f"{method} does not exist here; there is {_THERE_IS}.")
        else:
            raise Refusal(404, f"{path[:100]!r} is not here; there is {_THERE_IS}.")
        await writer.drain()


class _ToolServer(_BridgeGate, LocalServer):
    """The embedded model's endpoint, where a request with tools goes through the
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
            body = body or await _read_body(headers, reader, writer)
            if _offers_tools(body):
                if target.partition("?")[0] not in _CHAT:
                    raise Refusal(
                        400, "Tools are for POST /v1/chat/completions; the model knows none itself."
                    )
                await self._ask(body, headers, reader, writer)
                return
            # The body was read here, so its head says its length and nothing else.
            headers = [(name, value) for name, value in headers if name not in _OF_BODY]
            headers.append(("content-length", str(len(body))))
        await super().answer(line, headers, reader, writer, body)


def _offers_tools(body: bytes) -> bool:
    """Return True for a JSON body with tools, or functions, which are their older form."""
    if b'"tools"' not in body and b'"functions"' not in body:
        return False
    try:
        members = json_object(body)
    except Refusal:
        return False
    return bool(members.get("tools") or members.get("functions"))


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
    _set_up_litellm()
    record = None if recorder is None else recorder.add
    chat = Chat(Upstream(upstream.rstrip("/"), upstream_key or ""), middleware, record)
    gateway = Gateway(host, port, Rules(host, api_key or ""), chat, recorder)
    gateway.start()
    return gateway


def _set_up_litellm() -> None:
    # For a process that is a gateway's own: litellm prints nothing, and takes tools.
    recording_litellm()
    allow_tools_without_mcp()


def serve_local(
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    api_key: str | None = None,
    threads: int | None = None,
    protocol: Any = "hermes",
    tool_choice_by: Literal["response_format", "prompt"] = "response_format",
) -> LocalServer:
    """Serve the embedded model at `http://host:port/v1` (port 0 = any free one) until closed.

    A request with tools is answered by the protocol. `api_key` makes the endpoint refuse other
    callers. Without one it must stay on loopback, where it answers requests to localhost alone,
    and none of pages of other sites (403).

    Raises BadOptions for an open endpoint on a public address and for anything that is not a port,
    UnknownProtocol, SetupError where the packages are missing or the port is taken.
    """
    middleware = middleware_for(protocol, {"tool_choice_by": tool_choice_by})
    _set_up_litellm()
    gate = partial(_ToolServer, middleware=middleware)
    return start_local(host, port, api_key=api_key, threads=threads, gate=gate)


async def _models_of(upstream: Upstream, headers: Headers) -> bytes:
    """Return the response to a request for the models: those that the upstream endpoint says.
    Raises Refusal if it gives none.
    """
    key = upstream.key_for(headers)
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
        return response.status, response.read(_MOST_MODELS)
    finally:
        connection.close()


async def _read_body(
    headers: Headers, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bytes:
    """Return the body of a request, b"" if it has none.

    Raises Refusal for one that is too long, that ends early, or whose length two servers might read
    differently.
    """
    size = _size_in(headers)
    if any(name == "expect" and value.lower() == "100-continue" for name, value in headers):
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    try:
        return await (_read_chunked(reader) if size is None else _read_exactly(reader, size))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
        raise Refusal(400, "The body of this request does not end as its head says.") from None
    except TimeoutError:
        raise Refusal(408, "The body of this request did not come.") from None


def _size_in(headers: Headers) -> int | None:
    """Return the length of a body by its head, None for one in chunks. Raises Refusal."""
    lengths = {value for name, value in headers if name == "content-length"}
    codings = [value.lower() for name, value in headers if name == "transfer-encoding"]
    if len(lengths) + len(codings) > 1 or codings not in ([], ["chunked"]):
        raise Refusal(400, "The length of this request's body is said in two ways.")
    if codings:
        return None
    text = lengths.pop() if lengths else "0"
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refusal(400, "The length of this request's body is no number.")
    return int(text)


async def _read_exactly(reader: asyncio.StreamReader, size: int) -> bytes:
    """Return so many bytes. Raises Refusal if they are too many, TimeoutError where none comes."""
    if size > MOST_BODY:
        raise Refusal(413, f"The body of a request to this endpoint has at most {MOST_BODY} bytes.")
    pieces, missing = [], size
    while missing:
        async with asyncio.timeout(_BODY_SECONDS):
            piece = await reader.read(missing)
        if not piece:
            raise asyncio.IncompleteReadError(b"", missing)
        pieces.append(piece)
        missing -= len(piece)
    return b"".join(pieces)


async def _read_chunked(reader: asyncio.StreamReader) -> bytes:
    """Return a body that came in chunks, without their sizes."""
    body = bytearray()
    while True:
        async with asyncio.timeout(_BODY_SECONDS):
            line = await reader.readuntil(b"\r\n")
        digits = line[:_LONGEST_LINE].partition(b";")[0].strip()
        if not digits or digits.strip(b"0123456789abcdefABCDEF"):
            raise ValueError(line)
        size = int(digits, 16)
        body += await _read_exactly(reader, min(size, MOST_BODY + 1))
        if len(body) > MOST_BODY:
            await _read_exactly(reader, MOST_BODY + 1)  # refuses it
        if size == 0:
            break
        if await _read_exactly(reader, 2) != b"\r\n":
            raise ValueError(line)
    # Trailers may follow the last chunk: they say nothing here, but have to be read.
    for _ in range(_LONGEST_LINE):
        async with asyncio.timeout(_BODY_SECONDS):
            if await reader.readuntil(b"\r\n") == b"\r\n":
                return bytes(body)
    raise ValueError("too many trailers")
