"""The HTTP server and client of the proxy."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import time
import zlib
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from aiohttp import (
    ClientError,
    ClientPayloadError,
    ClientResponse,
    ClientSession,
    ClientTimeout,
    DummyCookieJar,
    StreamReader,
    TCPConnector,
    hdrs,
    web,
)
from multidict import CIMultiDict
from yarl import URL

from ...core.errors import BadOptions
from ...runner.exchange.redaction import is_http_address, redact, redact_url, url_secrets
from ...runner.exchange.types import End, Passed
from .raw_flags import raw_flags, with_flags
from .secrets import secrets_of_request, without_secrets
from .server import LONGEST_LINE, TURN, Rules, Server, check_address, json_response
from .writer import Writer, app_name, say

# How it works. A request's bytes go to the upstream server and the response's bytes come back, in
# the pieces in which they arrive, without being read. Both are kept meanwhile if the path is one
# that models answer at; when the response has ended, credentials are removed from the copies, and
# they go to the writer's queue. aiohttp is told to add nothing: no redirections, no cookies, no
# decompression, no headers of its own. A writer that cannot keep up, or a disk that is full, is
# told and counted, and no request waits for it.
#
# A response that breaks off must break off for the caller as well: its connection is closed
# without the last chunk. What was received before goes out first.

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection",
     "te", "trailer", "transfer-encoding", "upgrade")
)  # fmt: skip
_OF_REQUEST = _HOP_BY_HOP | {"host", "expect"}
_UNTOUCHED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_ENDINGS = ("/chat/completions", "/completions", "/responses", "/api/chat", "/api/generate")
_MESSAGES = ("/v1/messages", "/messages")  # /v1/threads/…/messages is another thing
_KEPT = 32 * 2**20  # bytes of a body that are recorded; of more there is no record
_AT_ONCE = 2**20  # bytes of a request that are read before they are passed on
_CONNECTING = 30.0  # seconds
# Below the five seconds after which common servers close an idle connection.
_IDLE = 4.0
_PATIENCE = 400  # looks at the answers that are ending, 5 ms apart


class Proxy(Server):
    """A running proxy, a context manager. `url` is what clients take as their base address.

    recorded, dropped: how many exchanges were written, and how many could not be.
    """

    def __init__(
        self,
        upstream: str,
        host: str,
        port: int,
        rules: Rules,
        key: str,
        writer: Writer | None = None,
        app: str = "",
        flags: Mapping[str, Any] | None = None,
    ) -> None:
        parts = urlsplit(upstream)
        self._prefix = parts.path.rstrip("/")
        super().__init__(host, port, self._prefix, rules)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        self._origin = f"{parts.scheme}://{name}{f':{parts.port}' if parts.port else ''}"
        self._login = _login_of(upstream)
        self._own_secrets = tuple(s for s in (key, *url_secrets(upstream)) if s)
        self._key = key
        self._writer = writer
        self._app = app
        self._flags = flags or {}
        self._passing: set[StreamReader] = set()
        self.start()

    @property
    def recorded(self) -> int:
        return 0 if self._writer is None else self._writer.recorded

    @property
    def dropped(self) -> int:
        return 0 if self._writer is None else self._writer.dropped

    def flush(self) -> None:
        """Wait until everything that has ended is written."""
        if self._writer is not None:
            # A caller has the end of its answer a moment before its record is made.
            self._run(self._all_ended())
            self._writer.flush()

    def close(self) -> None:
        """End all connections, free the port and write what waits. A second call does nothing."""
        super().close()
        if self._writer is not None:
            self._writer.close()

    async def _all_ended(self) -> None:
        # Each answer that has come to its end is handed to the writer then, but for those whose
        # callers read too slowly.
        await asyncio.sleep(0.02)  # for those whose last bytes are on their way
        for _ in range(_PATIENCE):
            if not any(content.at_eof() for content in self._passing):
                return
            await asyncio.sleep(0.005)

    async def _begin(self) -> None:
        # `limit` is that of connections at once; aiohttp's own is 100.
        self._session = ClientSession(
            connector=TCPConnector(limit=0, keepalive_timeout=_IDLE),
            cookie_jar=DummyCookieJar(),
            auto_decompress=False,
            timeout=ClientTimeout(total=None, sock_connect=_CONNECTING),
            skip_auto_headers=_UNTOUCHED,
            max_line_size=LONGEST_LINE,
            max_field_size=LONGEST_LINE,
        )
        await super()._begin()

    async def _end(self) -> None:
        await super()._end()
        await self._session.close()

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Pass a request that was let in on, and its response back."""
        return await self.pass_on(request)

    async def pass_on(
        self, request: web.BaseRequest, body: bytes | None = None
    ) -> web.StreamResponse:
        """The same, with a body that was read already."""
        path = request.path
        is_asked = path.endswith((*_ENDINGS, _MESSAGES[0])) or path == _MESSAGES[1]
        is_kept = self._writer is not None and request.method == "POST" and is_asked
        exchange = _Exchange(request, is_kept)
        sent = _end_to_end(request.headers, _OF_REQUEST)
        self._put_key(sent)
        try:
            data = await self._body(request, exchange, sent) if body is None else body
            asking = self._session.request(
                request.method,
                URL(self._origin + self._target(request.raw_path), encoded=True),
                headers=sent,
                data=data,
                allow_redirects=False,
            )
            upstream = await asking.__aenter__()
        except asyncio.CancelledError:
            self._record(exchange, "caller")
            raise
        except Exception as e:
            # Of whatever kind: nothing was answered yet, and the caller is told who failed.
            secrets = exchange.secrets(self._own_secrets)
            reason = redact(f"{type(e).__name__}: {e}" if str(e) else type(e).__name__, secrets)
            message = f"The upstream server did not answer: {reason}"
            exchange.facts["error"] = message
            self._record(exchange, "unreachable")
            error = {"message": message, "type": "upstream", "param": None, "code": 502}
            return json_response({"error": error}, 502)
        try:
            return await self._pass_back(request, upstream, exchange)
        finally:
            upstream.release() if upstream.content.is_eof() else upstream.close()

    async def _pass_back(
        self, request: web.BaseRequest, upstream: ClientResponse, exchange: _Exchange
    ) -> web.StreamResponse:
        exchange.began(upstream)
        headers = _end_to_end(upstream.headers, _HOP_BY_HOP)
        response = _PassedBack(status=upstream.status, reason=upstream.reason)
        response.headers.extend(headers)
        response.sent = frozenset(name.lower() for name in headers)
        end: End = "caller"
        content = upstream.content
        self._passing.add(content)
        turn = 0.0
        try:
            await response.prepare(request)
            while True:
                if time.monotonic() > turn:
                    await asyncio.sleep(0)
                    turn = time.monotonic() + TURN
                piece, is_chunk = await content.readchunk()
                if piece:
                    exchange.received(piece)
                    await response.write(piece)
                elif not is_chunk or content.at_eof():
                    break
            end = "whole"
            await response.write_eof()
        except (ClientPayloadError, ClientError, TimeoutError) as e:
            gone = request.transport is None or request.transport.is_closing()
            if isinstance(e, ConnectionError) and gone:
                raise
            end = "cut"
            exchange.facts["error"] = redact(f"{type(e).__name__}: {e}", self._own_secrets)
            # Without the last chunk, so that nobody takes the part for the whole.
            response.force_close()
            if request.transport is not None:
                request.transport.close()
        finally:
            self._record(exchange, end)
            self._passing.discard(content)
        return response

    async def _body(
        self, request: web.BaseRequest, exchange: _Exchange, headers: CIMultiDict[str]
    ) -> bytes | AsyncIterator[bytes] | None:
        if not request.can_read_body:
            return None
        size = request.content_length
        flags = self._flags if exchange.is_kept else {}
        if flags or (size is not None and size <= _AT_ONCE):
            pieces = [piece async for piece in request.content.iter_any()]
            body = b"".join(pieces)
            if flags:
                body, asked = with_flags(request.path, body, flags)
                if asked:
                    exchange.facts["asked"] = dict(asked)
                    headers.popall(hdrs.CONTENT_LENGTH, None)
            exchange.sent(body)
            return body
        return _kept(request.content.iter_any(), exchange)

    def _target(self, raw_path: str) -> str:
        # Clients are given either address, that of the proxy or that with the upstream's path.
        if not self._prefix or raw_path == self._prefix or raw_path.startswith(f"{self._prefix}/"):
            return raw_path
        return self._prefix + raw_path

    def _put_key(self, headers: CIMultiDict[str]) -> None:
        # A key of the proxy's own says who may ask here, and is nobody else's business.
        if self._rules.api_key:
            own = self._rules.api_key
            for name in ("Authorization", "x-api-key"):
                if any(own in value for value in headers.getall(name, ())):
                    del headers[name]
                    if self._key:
                        value = self._key if name == "x-api-key" else f"Bearer {self._key}"
                        headers[name] = value
        elif self._key and "x-api-key" in headers:
            headers["x-api-key"] = self._key
        elif self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        if self._login and "Authorization" not in headers:
            headers["Authorization"] = self._login

    def _record(self, exchange: _Exchange, end: End) -> None:
        if self._writer is None or not exchange.is_kept:
            return
        try:
            passed = exchange.passed(self._app, end)
            secrets = exchange.secrets((*self._own_secrets, self._rules.api_key))
            self._writer.add(without_secrets(passed, secrets))
        except Exception as e:  # a record is never a reason to fail
            self._writer.dropped += 1
            say(f"not recorded: {redact(f'{type(e).__name__}: {e}')}")


class _Exchange:
    # One request on its way, with copies of its bytes where they will be recorded.

    def __init__(self, request: web.BaseRequest, is_kept: bool) -> None:
        self.is_kept = is_kept
        self.facts: dict[str, Any] = {}
        if is_kept:
            self._started = time.perf_counter()
            self._created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._request = request
        self._sent: list[bytes] = []
        self._pieces: list[bytes] = []
        self._times: list[float] = []
        self._room = _KEPT
        self._status: int | None = None
        self._headers: list[list[str]] = []
        self._coding = ""

    def sent(self, piece: bytes) -> None:
        if self.is_kept:
            self._take(self._sent, piece)

    def began(self, upstream: ClientResponse) -> None:
        if self.is_kept:
            self._status = upstream.status
            self._headers = [[name, value] for name, value in upstream.headers.items()]
            self._coding = upstream.headers.get(hdrs.CONTENT_ENCODING, "")

    def received(self, piece: bytes) -> None:
        if self.is_kept:
            self._times.append(time.perf_counter() - self._started)
            self._take(self._pieces, piece)

    def _take(self, pieces: list[bytes], piece: bytes) -> None:
        self._room -= len(piece)
        if self._room < 0:
            self._sent.clear()
            self._pieces.clear()
            self._times.clear()
            self.facts["left_out"] = f"more than {_KEPT:,} bytes"
        else:
            pieces.append(piece)

    def passed(self, app: str, end: End) -> Passed:
        request = self._request
        sent = b"".join(self._sent)
        coding = request.headers.get(hdrs.CONTENT_ENCODING, "")
        sent = self._decoded([sent], coding, "request")[0]
        pieces = self._decoded(self._pieces, self._coding, "response")
        times = self._times[: len(pieces)]
        self.facts |= {
            "method": request.method,
            "query": request.query_string,
            "headers": [[name, value] for name, value in request.headers.items()],
            "response_headers": self._headers,
        }
        return Passed(
            app=app,
            created=self._created,
            path=request.path,
            request=sent,
            response=b"".join(pieces),
            status=self._status,
            pieces=tuple(zip(times, map(len, pieces), strict=True)),
            seconds=time.perf_counter() - self._started,
            end=end,
            facts=self.facts,
        )

    def _decoded(self, pieces: list[bytes], coding: str, name: str) -> list[bytes]:
        # Of what cannot be decoded there is no record: nobody could say what is in it.
        try:
            return _decompressed(pieces, coding)
        except (ValueError, zlib.error):
            self.facts["left_out"] = f"the {name}, whose Content-Encoding is {coding[:40]!r}"
            return [b""] if name == "request" else []

    def secrets(self, more: tuple[str, ...]) -> tuple[str, ...]:
        body: Any = None
        with suppress(ValueError, RecursionError):
            body = json.loads(b"".join(self._sent) or b"null")
        request = self._request
        headers = tuple((name.lower(), value) for name, value in request.headers.items())
        return (*secrets_of_request(headers, body, request.raw_path), *filter(None, more))


def _decompressed(pieces: list[bytes], coding: str) -> list[bytes]:
    coding = coding.strip().lower()
    if coding in ("", "identity"):
        return pieces
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise ValueError(coding)
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32)  # either head
    room = _KEPT
    out = []
    for piece in pieces:
        text = unpack.decompress(piece, room)
        room -= len(text)
        if unpack.unconsumed_tail or room <= 0:
            raise ValueError("more than is recorded")
        out.append(text)
    return out


async def _kept(pieces: AsyncIterator[bytes], exchange: _Exchange) -> AsyncIterator[bytes]:
    async for piece in pieces:
        exchange.sent(piece)
        yield piece


def _end_to_end(headers: Mapping[str, str], dropped: frozenset[str]) -> CIMultiDict[str]:
    # Without the headers that belong to one connection, those that `Connection` names among them.
    named: set[str] = set()
    for name, value in headers.items():
        if name.lower() == "connection":
            named.update(part.strip().lower() for part in value.split(","))
    kept: CIMultiDict[str] = CIMultiDict()
    for name, value in headers.items():
        if name.lower() not in dropped and name.lower() not in named:
            kept.add(name, value)
    return kept


class _PassedBack(web.StreamResponse):
    # sent: the names of the headers that the upstream server sent.
    __slots__ = ("sent",)
    sent: frozenset[str]

    async def _prepare_headers(self) -> None:
        await super()._prepare_headers()
        for name in (hdrs.DATE, hdrs.SERVER, hdrs.CONTENT_TYPE):
            if name.lower() not in self.sent:
                self.headers.popall(name, None)


def _login_of(upstream: str) -> str:
    url = URL(upstream)
    if url.user is None:
        return ""
    login = f"{url.user}:{url.password or ''}".encode()
    return f"Basic {base64.b64encode(login).decode()}"


def proxy(
    upstream: str,
    *,
    store: str | os.PathLike[str] | None = None,
    app: str | None = None,
    host: str = "127.0.0.1",
    port: int = 0,
    api_key: str | None = None,
    upstream_key: str | None = None,
    ask_raw: str | Mapping[str, Any] | None = None,
    tell: Callable[[str], None] = say,
) -> Proxy:
    """Pass requests on to a server as they come, and record what models answer.

    It listens at `http://host:port` (port 0 = any free one). Recorded are POST requests for chat
    completions, completions, Responses, Anthropic's messages, and Ollama's /api/chat and
    /api/generate. All others pass as well.

    Args:
        upstream: the other server's address. A path of it, such as /v1, may be left out by clients.
        store: a path or an SQLAlchemy URL. None records nothing.
        app: the name of the records (default: app).
        api_key: the key that callers must send. Without one the proxy stays on loopback.
        upstream_key: the upstream server's key. Without one callers send theirs.
        ask_raw: the server's name (vllm, sglang, llama.cpp) or request members of your own, which
            every recorded request then gets. The record says which were added.
        tell: called with a sentence if something cannot be recorded.

    Raises BadOptions for a bad address or port, and for a proxy without a key on a public address,
    SetupError if the port is taken, StoreError for a store that cannot be opened.
    """
    if not is_http_address(upstream) or urlsplit(upstream).query or urlsplit(upstream).fragment:
        raise BadOptions(
            "the upstream server is an address",
            got=redact_url(str(upstream)),
            expected="for example http://127.0.0.1:8000, without a query",
        )
    check_address("a proxy", host, port, api_key)
    name, flags = app_name(app), raw_flags(ask_raw)
    writer = None
    if store is not None:
        writer = Writer(store, tell)
        writer.open()
    try:
        rules = Rules(host, api_key or "")
        return Proxy(upstream, host, port, rules, upstream_key or "", writer, name, flags)
    except BaseException:
        if writer is not None:
            writer.close()
        raise
