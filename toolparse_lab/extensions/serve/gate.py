"""The gate of the embedded model's endpoint: who may ask, told by the Host, Origin and key of a
request.
"""

# How it works. A page in a browser may reach any server on its own machine: by a form or `fetch` to
# a loopback address (its Origin says so), or by a name of its own that it lets point to 127.0.0.1
# (then its Host says so). The engine's HTTP server looks at neither, so it listens on a port of its
# own, under a key that nobody else knows, and this gate is in front of it.
#
# The gate reads the head of a request, checks it, puts the engine's key into it and passes the rest
# on, byte by byte in both directions. One connection carries one request ("Connection: close" is
# put into it), so that no second request hides after a first one that was good.

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import json
import re
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

from ...core.errors import BadOptions, SetupError

_MOST_HEAD = 65_536  # bytes of a request's head
_HEAD_SECONDS = 30.0
_REFUSAL_SECONDS = 2.0  # for a caller to end its request after it was refused
_PIECE = 65_536  # bytes that are passed on at once
_CLOSING = 10.0  # seconds for connections to end
_REQUEST_LINE = re.compile(r"[A-Z]{1,20} (?:/[^\s]*|\*) HTTP/1\.[01]")
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\x00]*)")
_KINDS = {401: "authentication_error", 403: "permission_error"}
# What says nothing but that the endpoint is there, and is asked for before a key is known.
_OPEN_PATHS = ("/health", "/v1/health")
# Headers that belong to one connection, or are the gate's own to set.
_OWN_HEADERS = frozenset(
    {"connection", "keep-alive", "proxy-connection", "upgrade", "authorization", "x-api-key"}
)


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

    def check(self, path: str, headers: list[tuple[str, str]]) -> None:
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


def _check_names(headers: list[tuple[str, str]]) -> None:
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


class Listener(ABC):
    """A running server on a thread of its own, and a context manager. `url` is what clients take as
    their base address. Raises SetupError if it cannot listen there.
    """

    def __init__(self, host: str, port: int, path: str) -> None:
        self._socket = bound(host, port)
        self.port: int = self._socket.getsockname()[1]
        self.url = f"{address(host, self.port)}{path}"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="toolparse-server", daemon=True
        )

    @abstractmethod
    async def _begin(self) -> None:
        """Serve the socket from now on."""

    @abstractmethod
    async def _end(self) -> None:
        """End every connection."""

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


class Gate(Listener):
    def __init__(self, host: str, port: int, rules: Rules) -> None:
        super().__init__(host, port, "/v1")
        self._rules = rules
        self._inside = ("", 0)
        self._inner_key = ""

    def open(self, inside: tuple[str, int], key: str) -> None:
        """Begin to pass requests on to the engine's own port, with its key."""
        self._inside, self._inner_key = inside, key
        self.start()

    async def _begin(self) -> None:
        self._server = await asyncio.start_server(self._serve, sock=self._socket, limit=_MOST_HEAD)

    async def _end(self) -> None:
        self._server.close()
        tasks = [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # One connection, which carries one request.
        try:
            try:
                head = await _head_of(reader)
                if head is not None:
                    line, headers = parsed_head(head)
                    self._rules.check(line.split(" ")[1], headers)
                    await self.answer(line, headers, reader, writer)
            except Refusal as e:
                writer.write(response_bytes(refusal_body(e), e.status))
                # A connection that is closed while bytes come in is reset, and the refusal lost
                # with it.
                with suppress(OSError, TimeoutError):
                    async with asyncio.timeout(_REFUSAL_SECONDS):
                        await writer.drain()
                        writer.write_eof()
                        while await reader.read(_PIECE):
                            pass
        except (OSError, asyncio.CancelledError):
            pass  # one of both sides is gone
        finally:
            writer.close()

    async def answer(
        self,
        line: str,
        headers: list[tuple[str, str]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        body: bytes = b"",
    ) -> None:
        """Answer a request that was let in: here, by passing it on to the engine.

        body: everything read of it already. Raises Refusal as long as nothing was written.
        """
        try:
            inner_reader, inner_writer = await asyncio.open_connection(*self._inside)
        except OSError:
            raise Refusal(502, "The engine does not answer.") from None
        try:
            lines = [line, *(f"{k}: {v}" for k, v in headers if k not in _OWN_HEADERS)]
            lines += [f"Authorization: Bearer {self._inner_key}", "Connection: close"]
            inner_writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
            await until_first(_pass_on(reader, inner_writer), _pass_on(inner_reader, writer))
        finally:
            inner_writer.close()


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


async def _head_of(reader: asyncio.StreamReader) -> bytes | None:
    # With the empty line after it. None if none came.
    try:
        async with asyncio.timeout(_HEAD_SECONDS):
            return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, TimeoutError):
        return None
    except asyncio.LimitOverrunError:
        raise Refusal(400, "The head of this request is too long.") from None


def parsed_head(head: bytes) -> tuple[str, list[tuple[str, str]]]:
    """Return the request line, and the headers with their names in lower case.

    Raises Refusal for a head that two servers might read differently.
    """
    line, *rest = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    matches = [_HEADER.fullmatch(text) for text in rest]
    if not _REQUEST_LINE.fullmatch(line) or None in matches:
        raise Refusal(400, "This is no request of HTTP/1.1 that this endpoint reads.")
    return line, [(m[1].lower(), m[2].rstrip(" \t")) for m in matches if m is not None]


def refusal_body(e: Refusal) -> bytes:
    """Return why a request was refused, in the shape of OpenAI's errors."""
    kind = _KINDS.get(e.status, "server_error" if e.status >= 500 else "invalid_request_error")
    return json.dumps({"error": {"code": e.status, "message": e.sentence, "type": kind}}).encode()


def response_bytes(body: bytes, status: int, more: Mapping[str, str] | None = None) -> bytes:
    """Return a whole response with JSON in it. more: further headers."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "Connection: close",
        *(f"{name}: {text}" for name, text in (more or {}).items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()


async def until_first(
    request: Coroutine[Any, Any, None], response: Coroutine[Any, Any, None]
) -> None:
    """Pass on in both directions. Whichever side ends first ends both, so that the engine stops
    where no one listens any more.
    """
    tasks = [asyncio.ensure_future(request), asyncio.ensure_future(response)]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
