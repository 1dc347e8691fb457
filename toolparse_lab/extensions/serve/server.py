"""The HTTP server: who may ask, told by the Host, Origin and key of a request, and where it
listens.
"""

# How it works. A page in a browser may reach any server on its own machine: by a form or `fetch` to
# a loopback address (its Origin says so), or by a name of its own that it lets point to 127.0.0.1
# (then its Host says so). Every request is checked for both, those that follow on one connection
# included. aiohttp's parser refuses a head that two servers might read differently.

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeAlias
from urllib.parse import urlsplit

from aiohttp import ServerDisconnectedError, web
from aiohttp.client_proto import ResponseHandler

from ...core.errors import BadOptions, SetupError

Headers: TypeAlias = list[tuple[str, str]]  # names in lower case, with their values
LONGEST_LINE = 65_536  # bytes of a header
MOST_BODY = 64 * 2**20  # bytes of a body that is read here; more is refused
OURS = {"Server": "toolparse"}
"""Headers of what is answered here, which else name a library."""
TURN = 0.002  # seconds of one stream, until all others have their turn
_SLICE = 2**12  # bytes that a connection gets at once, so that no burst keeps the loop
_MOST_INTERIM = 32  # responses before the one that counts, such as 102 Processing
_IDLE_SECONDS = 30.0  # of a connection between two requests
_HEAD_SECONDS = 10.0  # for the head of a request
_LISTENING = 5.0  # seconds between two looks at a caller that has said all it wants to say
_BODY_SECONDS = 60.0  # from one piece of a body to the next
_REFUSAL_SECONDS = 2.0  # for a caller to end its request after it was refused
_CLOSING = 10.0  # seconds for connections to end
_NO_REQUEST = "This is no request of HTTP/1.1 that this endpoint reads."
_KINDS = {401: "authentication_error", 403: "permission_error"}
# What says nothing but that the endpoint is there, and is asked for before a key is known.
_OPEN_PATHS = ("/health", "/v1/health")


class Refusal(Exception):
    """A request that is not passed on. `status` is that of HTTP, `sentence` says why."""

    def __init__(self, status: int, sentence: str) -> None:
        self.status = status
        self.sentence = sentence
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class Rules:
    """Who may ask. host: where the endpoint listens. api_key: "" if none is necessary."""

    host: str
    api_key: str = ""

    def check(self, path: str, headers: Headers) -> None:
        """Raise Refusal for a request that may not be asked.

        On loopback its Host and its Origin must be loopback names. An endpoint that was put
        elsewhere on purpose has a key instead. headers: with their names in lower case.
        """
        if is_loopback(self.host):
            _check_names(headers)
        if not self.api_key or path.partition("?")[0] in _OPEN_PATHS:
            return
        keys = [v.removeprefix("Bearer ") for k, v in headers if k == "authorization"]
        keys += [v for k, v in headers if k == "x-api-key"]
        own = self.api_key.encode()
        if not any(hmac.compare_digest(key.encode("utf-8", "replace"), own) for key in keys):
            raise Refusal(401, "This endpoint needs its key: Authorization: Bearer KEY.")


def _check_names(headers: Headers) -> None:
    # A page of another site can make a browser send requests.
    hosts = [value for name, value in headers if name == "host"]
    if len(hosts) != 1 or not is_loopback(_name_in(f"//{hosts[0]}")):
        came = f"not {hosts[0][:100]!r}" if len(hosts) == 1 else "and there must be one"
        raise Refusal(
            403,
            f"The Host of a request to this endpoint is localhost or a loopback address, {came}.",
        )
    for name, value in headers:
        if name == "origin" and not is_loopback(_name_in(value)):
            raise Refusal(
                403, f"Pages of {value[:100]!r} may not ask this endpoint, only those of localhost."
            )
        if name == "sec-fetch-site" and value == "cross-site":
            raise Refusal(403, "Pages of other sites may not ask this endpoint.")


def _name_in(address: str) -> str:
    try:
        parts = urlsplit(address)
        if parts.username is not None or parts.path or parts.query:
            return ""
        _ = parts.port  # raises for what is no number
        return parts.hostname or ""
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Return True for localhost, and for an address that only this machine can reach.

    >>> [is_loopback(name) for name in ("localhost", "127.0.0.1", "::1", "localhost.evil.com")]
    [True, True, True, False]
    """
    if name.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def check_address(what: str, host: str, port: int, api_key: str | None) -> None:
    """Raise BadOptions for a port that cannot be one, and for others' access without a key.

    what: what listens there, with its article.
    """
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
        raise BadOptions("A port is a number up to 65535.", got=port, expected="0 for a free one")
    if not api_key and not is_loopback(host):
        raise BadOptions(
            f"{what} that others can reach needs a key",
            got=host,
            hint="pass api_key=..., or stay on 127.0.0.1",
        )


def address(host: str, port: int) -> str:
    """Return the address of a server.

    >>> address("127.0.0.1", 80), address("::1", 80)
    ('http://127.0.0.1:80', 'http://[::1]:80')
    """
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


class _Connection(web.RequestHandler):
    _timer: asyncio.TimerHandle | None = None
    _content: Any = None  # of the last request whose head is here
    _written = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes, and begin to count the seconds of a head with its first ones."""
        before = self._request_count
        super().data_received(data)
        if self._request_count > before:
            self._content = self._messages[-1][1]
            self._end_timer()
        elif self._timer is None and not self._messages and not self._request_in_progress:
            self._await_head()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._end_timer()
        super().connection_lost(exc)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _await_head(self) -> None:
        def end(before: int) -> None:
            self._timer = None
            if self._request_count == before and self.transport is not None:
                self.transport.write(_LATE)
                self.force_close()

        self._timer = self._loop.call_later(_HEAD_SECONDS, end, self._request_count)

    # A caller may end its side of the connection and wait for the answer, or be gone: both look
    # alike until something is written.
    def eof_received(self) -> bool | None:  # type: ignore[override]
        """Keep the connection of a caller whose whole request is here. It is the last one."""
        answered = self._waiter is not None and not self._messages
        if answered or self._content is None or not self._content.is_eof():
            return None
        self._close = True
        self._end_timer()
        self._timer = self._loop.call_later(_LISTENING, self._listen)
        return True

    def _listen(self) -> None:
        self._timer = None
        request, transport = self._current_request, self.transport
        if request is None or transport is None:
            return
        written = request.writer.output_size
        if not written and request.version >= (1, 1):
            transport.write(_GOES_ON)
        elif written == self._written:
            transport.abort()
            return
        self._written = written
        self._timer = self._loop.call_later(_LISTENING, self._listen)

    # What is no HTTP is refused in the shape of all other refusals.
    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the response was sent")
        broken = f"This should not happen: {type(exc).__name__}."
        sentence = broken if status >= 500 else _NO_REQUEST
        response = refused(Refusal(status, sentence))
        response.force_close()
        return response


_GOES_ON = b"HTTP/1.1 102 Processing\r\n\r\n"


@cache
def _tame_peers() -> None:
    """Let no server that is asked keep the loop by a burst, or by interim responses without end."""
    take, begin = ResponseHandler.feed_data, ResponseHandler.connection_made

    def connection_made(self: Any, transport: Any) -> None:
        begin(self, transport)
        if hasattr(transport, "max_size"):  # of asyncio's own, without TLS
            transport.max_size = _SLICE

    def feed_data(self: Any, data: Any, size: int = 0) -> None:
        interim = 100 <= data[0].code < 200 and data[0].code != 101
        self.interim = getattr(self, "interim", 0) + 1 if interim else 0
        if self.interim <= _MOST_INTERIM:
            take(self, data, size)
        elif self.transport is not None:
            self.set_exception(ServerDisconnectedError("interim responses without end"))
            self.transport.abort()

    ResponseHandler.feed_data = feed_data  # type: ignore[method-assign]
    ResponseHandler.connection_made = connection_made  # type: ignore[method-assign]


class _Connections(web.Server):
    def __init__(
        self,
        handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
        *,
        handler_cancellation: bool,
        **options: Any,
    ) -> None:
        super().__init__(handler, handler_cancellation=handler_cancellation)
        self._options = options

    def __call__(self) -> _Connection:
        return _Connection(self, loop=asyncio.get_running_loop(), **self._options)


class Server(ABC):
    """A running server on a thread of its own, and a context manager. `url` is what clients take as
    their base address. Raises SetupError if it cannot listen there.
    """

    def __init__(self, host: str, port: int, path: str, rules: Rules) -> None:
        self._rules = rules
        self._socket = bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{address(host, self.port)}{path}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="toolparse-server", daemon=True
        )

    @abstractmethod
    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer a request that was let in. Raises Refusal as long as nothing was sent."""

    async def _begin(self) -> None:
        _tame_peers()
        connections = _Connections(
            self._respond,
            access_log=None,
            auto_decompress=False,
            handler_cancellation=True,  # whoever goes away ends what is asked for him
            keepalive_timeout=_IDLE_SECONDS,
            lingering_time=_REFUSAL_SECONDS,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )
        self._runner = web.ServerRunner(connections, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket, backlog=1024).start()

    async def _end(self) -> None:
        await self._runner.cleanup()

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            if not request.raw_path.startswith(("/", "*")):
                raise Refusal(400, _NO_REQUEST)
            self._rules.check(request.raw_path, headers_of(request))
            if request.headers.get("Expect", "").lower() == "100-continue":
                await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                request.writer.output_size = 0  # the response itself has not begun
            return await self.answer(request)
        except Refusal as e:
            return refused(e)

    def start(self) -> None:
        """Begin to listen."""
        self._thread.start()
        self._run(self._begin())

    def close(self) -> None:
        """Free the port and end every connection. A second call does nothing."""
        if self._thread.is_alive():
            with suppress(TimeoutError):
                self._run(self._end(), _CLOSING)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()
        self._socket.close()

    def _run(self, coroutine: Coroutine[Any, Any, None], seconds: float | None = None) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.url!r})"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there. Raises SetupError if it cannot."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind)
        try:
            # So that a port whose last owner has just gone counts as free.
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(address)
            listening.listen(64)
        except BaseException:
            listening.close()
            raise
    except (OSError, UnicodeError) as e:
        raise SetupError(
            f"Port {port} of {host!r} cannot be used.",
            got=str(e),
            hint="pass port=0 for a free one",
        ) from None
    return listening


def headers_of(request: web.BaseRequest) -> Headers:
    """Return the headers of a request with their names in lower case."""
    return [(name.lower(), value) for name, value in request.headers.items()]


async def body_of(request: web.BaseRequest) -> bytes:
    """Return the body of a request, b"" if it has none.

    Raises Refusal for one that is too long or that ends early.
    """
    pieces = bytearray()
    size = request.content_length or 0
    try:
        while max(size, len(pieces)) <= MOST_BODY:
            async with asyncio.timeout(_BODY_SECONDS):
                piece = await request.content.readany()
            if not piece:
                return bytes(pieces)
            pieces += piece
    except TimeoutError:
        raise Refusal(408, "The body of this request did not come.") from None
    except Exception:
        raise Refusal(400, "The body of this request does not end as its head says.") from None
    raise Refusal(413, f"The body of a request to this endpoint has at most {MOST_BODY} bytes.")


def refused(e: Refusal) -> web.Response:
    """Return why a request was refused, in the shape of OpenAI's errors."""
    kind = _KINDS.get(e.status, "server_error" if e.status >= 500 else "invalid_request_error")
    error = {"code": e.status, "message": e.sentence, "type": kind}
    return json_response({"error": error}, e.status)


def json_response(
    value: Any, status: int = 200, more: Mapping[str, str] | None = None
) -> web.Response:
    """Return a whole response. more: further headers."""
    headers = {**OURS, **(more or {})}
    return web.Response(
        body=json_bytes(value), status=status, headers=headers, content_type="application/json"
    )


def _late() -> bytes:
    body = bytes(refused(Refusal(408, "The head of this request did not come.")).body)  # type: ignore[arg-type]
    head = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def json_bytes(value: Any) -> bytes:
    """Return JSON in ASCII, which can carry half a surrogate pair as well."""
    return json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode()


_LATE = _late()
