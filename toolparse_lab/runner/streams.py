"""Streams as the provider sent them: their chunks, and their ends, seen below every client that
litellm asks by.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import math
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextvars import ContextVar, Token
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from .local.provider import PROVIDER
from .provider_shapes import chunks_of_lines, lines_of

# How an end is seen. Some of litellm's streams raise when the connection breaks, some end as if
# nothing had happened, some give the failure a status that no server sent; each version does it in
# another way. All providers but the embedded model are asked through httpx, whatever client is
# around it. So `AsyncClient.send` is wrapped once in the process. It does nothing more than before
# unless the current context is one that records; then the body of a streamed response notes its
# end.
#
# The same place keeps three promises for every answer that is read. A body, a line and an event
# have a greatest size, so that no server fills the memory. What comes fast lets other tasks of the
# loop have their turn. A redirect to another host is not followed: it would get question and key.


class TooLarge(Exception):
    """More came than `Model.max_answer` allows."""


class Redirected(Exception):
    """A server sends a request on to another host, which does not get it."""


@dataclass(slots=True)
class BodyEnd:
    """room: bytes that the text of an answer may have. refusal: why no more of the response was
    read. reached: nothing more comes, because the body is complete or because the connection broke.

    finish_part: whether the provider has said why it ends, None where that is not watched. began:
    some of a stream has come. first: how a body began that came in the place of a stream. error:
    what the server wrote into the stream as one, where it is watched. model: the one that a stream
    names, where litellm hands on the one that was asked. response: that of httpx, which came last.
    """

    room: float = math.inf
    refusal: TooLarge | Redirected | None = None
    reached: bool = False
    finish_part: bool | None = None
    began: bool = False
    first: bytes = b""
    error: Any = None
    model: str | None = None
    response: Any = None
    _token: Token[BodyEnd | None] | None = None

    @property
    def status(self) -> int | None:
        """The HTTP status as the server sent it, None before it came."""
        return getattr(self.response, "status_code", None)

    @property
    def kind(self) -> str:
        """The content type in lower case, "" where there is none."""
        headers = getattr(self.response, "headers", None) or {}
        return str(headers.get("content-type", "")).lower()

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response."""
        headers = getattr(self.response, "headers", None)
        return [] if headers is None else list(headers.items())

    @property
    def address(self) -> Any:
        """The address that was asked, as httpx has it; None before a response came."""
        return getattr(_request_of(self.response), "url", None)

    @property
    def sent(self) -> bytes | None:
        """The body that was sent, where it is JSON."""
        content = getattr(_request_of(self.response), "_content", None)
        return content if isinstance(content, bytes) and content[:1] == b"{" else None

    def text(self) -> str | None:
        """The body of a whole response, the beginning of one that came in the place of a stream,
        and None for a stream.
        """
        content = getattr(self.response, "_content", None) or self.first or None
        return content.decode("utf-8", "replace") if isinstance(content, bytes) else None

    def __enter__(self) -> None:
        """Watch the streamed responses to what this task, and those it starts, send meanwhile."""
        _wrap_send()
        self._token = _watching.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _watching.reset(self._token)


def _request_of(response: Any) -> Any:
    return getattr(response, "_request", None)


_watching: ContextVar[BodyEnd | None] = ContextVar("toolparse_body_end", default=None)


_AROUND = 2**20  # bytes of a response around the text: its ids, its counted tokens
_TIMES = 8  # a stream repeats its members with each chunk
# An event of more lines and bytes is refused: joining its lines costs their square.
_MOST_LINES, _LONG_EVENT = 64, 2**18
_NO_STREAMS = ("application/json", "text/html", "text/plain")
# Bytes that are handed on at once, and those of a stream, of which each event takes a millisecond,
# or of a packed body, which may become a thousand times as much.
_SLICE, _SMALL_SLICE = 4096, 512
_TURN = 0.002  # seconds
_MOST_REDIRECTS = 5


class _Sizes:
    """Counts what a response gives. `take` raises TooLarge for more than there is room for."""

    def __init__(self, end: BodyEnd, stream: bool) -> None:
        self._end = end
        self._most = _AROUND + end.room
        self._left = _AROUND + end.room * (_TIMES if stream else 1)
        self._line = self._event = self._lines = 0
        self._last = b""

    def take(self, piece: bytes) -> None:
        self._left -= len(piece)
        lines = piece.count(b"\n")
        self._line = len(piece) - piece.rfind(b"\n") - 1 + (0 if lines else self._line)
        near = self._last + piece
        if b"\n\n" in near or b"\n\r\n" in near:
            self._event = self._lines = 0
        self._last = near[-2:]
        self._event += len(piece)
        self._lines += lines
        many = self._lines > _MOST_LINES and self._event > _LONG_EVENT
        if self._left < 0 or self._line > self._most or many:
            self._end.refusal = TooLarge(f"the answer has more than {self._end.room:,} bytes")
            raise self._end.refusal


@functools.lru_cache(maxsize=1)
def _wrap_send() -> None:
    _wrap_send_of(importlib.import_module("httpx"))
    with contextlib.suppress(ImportError):  # what the newer of the clients ask by
        _wrap_send_of(importlib.import_module("httpx2"))


def _wrap_send_of(httpx: Any) -> None:
    send = httpx.AsyncClient.send

    class Watched(httpx.AsyncByteStream):  # type: ignore[misc]
        # noted: this response is the answer, and its end is of interest.
        def __init__(self, body: Any, end: BodyEnd, sizes: _Sizes | None, noted: bool) -> None:
            self._stream = body
            self._end = end
            self._sizes = sizes
            self._noted = noted
            self._in_place = noted and end.kind.startswith(_NO_STREAMS)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            end, turn = self._end, time.monotonic() + _TURN
            is_packed = self._sizes is None
            small = is_packed or (self._noted and not self._in_place)
            size = _SMALL_SLICE if small else _SLICE
            try:
                async for whole in self._stream:
                    end.began = end.began or self._noted
                    for at in range(0, len(whole), size):
                        piece = whole[at : at + size]
                        if self._sizes is not None:
                            self._sizes.take(piece)
                        if self._in_place and len(end.first) < _LONG_EVENT:
                            end.first += piece
                        yield piece
                        if time.monotonic() > turn:
                            await asyncio.sleep(0)
                            turn = time.monotonic() + _TURN
            except Exception:
                end.reached = end.reached or self._noted
                raise
            end.reached = end.reached or self._noted

        async def aclose(self) -> None:
            await close_body(self._stream)

    class Unpacked:
        # A decoder of httpx, whose output is counted: a small body may be packed of a large one.
        def __init__(self, decoder: Any, sizes: _Sizes) -> None:
            self._decoder = decoder
            self._sizes = sizes

        def decode(self, data: bytes) -> bytes:
            pieces = []
            for at in range(0, len(data), 64):
                pieces.append(self._decoder.decode(data[at : at + 64]))
                self._sizes.take(pieces[-1])
            return b"".join(pieces)

        def flush(self) -> bytes:
            return bytes(self._decoder.flush())

    async def sent(client: Any, request: Any, end: BodyEnd, **kw: Any) -> Any:
        # Without redirects to other hosts.
        follows = kw.pop("follow_redirects", httpx.USE_CLIENT_DEFAULT)
        follows = client.follow_redirects if follows is httpx.USE_CLIENT_DEFAULT else follows
        for _ in range(_MOST_REDIRECTS):
            response = await send(client, request, stream=True, follow_redirects=False, **kw)
            following = response.next_request if follows else None
            if following is None:
                return response
            await response.aclose()
            if not _same_host(request.url, following.url):
                end.refusal = Redirected(
                    f"{request.url.host} redirects to {following.url.host}: another host gets "
                    "neither the question nor the key"
                )
                raise end.refusal
            request = following
        end.refusal = Redirected(f"{request.url.host} redirects without end")
        raise end.refusal

    @functools.wraps(send)
    async def watched_send(self: Any, request: Any, *, stream: bool = False, **kw: Any) -> Any:
        end = _watching.get()
        if end is None:
            return await send(self, request, stream=stream, **kw)
        response = end.response = await sent(self, request, end, **kw)
        # What is not streamed may be another request of the same call: a login, a log.
        if stream:
            end.reached = end.began = False
            end.model = None
        sizes = _Sizes(end, stream)
        packed = "content-encoding" in response.headers
        if packed:
            response._decoder = Unpacked(response._get_content_decoder(), sizes)
        response.stream = Watched(response.stream, end, None if packed else sizes, stream)
        if not stream:
            try:
                await response.aread()
            except BaseException:
                await close_quietly(response)
                raise
        return response

    httpx.AsyncClient.send = watched_send


def _same_host(a: Any, b: Any) -> bool:
    """Return True for two addresses of one server, the second with TLS perhaps."""
    if a.host != b.host:
        return False
    same = (a.scheme, a.port) == (b.scheme, b.port)
    return same or (a.scheme, b.scheme, a.port, b.port) == ("http", "https", None, None)


async def close_quietly(closable: Any) -> None:
    """Call `aclose` or `close` of an object that has one, and wait for it where it is awaitable.

    Nothing is raised: at that point there is no one to whom a failure to close would matter.
    """
    close = getattr(closable, "aclose", None) or getattr(closable, "close", None)
    if close is None:
        return
    try:
        result = close()
        if hasattr(result, "__await__"):
            await result
    except Exception:
        return


async def close_body(body: Any) -> None:
    """Close the body of a response, and what it is made of.

    litellm 1.80 gives httpx the body of its own transport as a plain iterator. Closing the response
    closes that, and the connection stays open.
    """
    while body is not None:
        await close_quietly(body)
        body = getattr(body, "_stream", None)


# -- chunks

_SSE_LINES = ("data:", "event:", "id:", "retry:", ":")


def is_direct(stream: Any) -> bool:
    # One client gives chunks in OpenAI's shape, and so does the embedded model's provider. The
    # client's stream is known by the name of its class: importing it takes seconds. Others are read
    # from their lines.
    inner = getattr(stream, "completion_stream", None)
    if type(inner).__name__ == "AsyncStream" or lines_of(stream) is not None:
        return True
    return getattr(stream, "custom_llm_provider", None) == PROVIDER


async def chunks_of(stream: Any) -> AsyncIterator[Any]:
    # Read inside litellm's wrapper where that is possible: it costs up to 1 ms a chunk and changes
    # finish reasons.
    found = lines_of(stream)
    if found is not None:
        source = chunks_of_lines(*found)
    else:
        source = stream.completion_stream if is_direct(stream) else stream
    async for chunk in source:
        if chunk is not None:
            yield _as_dicts(chunk)


def _as_dicts(chunk: Any) -> Any:
    # A chunk of OpenAI's client as dicts, down to the delta of its first choice: a member that is
    # missing takes pydantic a hundred times as long as a dict, and most of them are.
    if not type(chunk).__module__.startswith("openai."):
        return chunk
    members = members_of(chunk)
    choices = members.get("choices")
    if isinstance(choices, list) and choices:
        first = members["choices"] = [members_of(choices[0])]
        if isinstance(first[0], dict) and "delta" in first[0]:
            first[0]["delta"] = members_of(first[0]["delta"])
    return members


def members_of(value: Any) -> Any:
    """Return what an object of pydantic has but None, as a dict, and anything else as it is."""
    if not hasattr(value, "__pydantic_extra__"):
        return value
    members = {name: member for name, member in vars(value).items() if member is not None}
    return {**members, **(value.__pydantic_extra__ or {})}


async def unstreamed_text(stream: Any) -> str | None:
    # The body of a response that says it is not a stream, None for any other. Only the provider's
    # own client shows it. A stream under a wrong name can still be read.
    inner = getattr(stream, "completion_stream", None)
    response = getattr(inner, "response", None)
    if type(inner).__name__ != "AsyncStream" or response is None:
        return None
    kind = str(response.headers.get("content-type", "")).lower()
    if not kind.startswith(_NO_STREAMS):
        return None
    body: bytes = await response.aread()
    text = body.decode("utf-8", "replace")
    return None if text.lstrip("\ufeff \r\n").startswith(_SSE_LINES) else text


# -- what litellm's readers lose of a chunk (1.80 to 1.110)

_lock = threading.Lock()
_wrapped: set[tuple[str, str]] = set()
_READ_AS = {
    "response.refusal.delta": "response.output_text.delta",
    "response.reasoning_text.delta": "response.reasoning_summary_text.delta",
}


def keep_finish_parts(model: str, provider: str) -> None:
    """Let litellm's readers of streams hand on what they lose; nothing is done for others.

    Gemini: whether a chunk has a finish reason (litellm reads "stop" from every chunk, and a stream
    that was cut looks finished), and a comment is no broken JSON. Anthropic: the error in a stream,
    of which litellm keeps the message alone. Responses: refusals are text, and reasoning content is
    reasoning. All three: the model that answers.
    """
    if "claude" in model and provider.startswith(("anthropic", "vertex_ai")):
        module = importlib.import_module("litellm.llms.anthropic.chat.handler")
        _before(module, "ModelResponseIterator", "chunk_parser", _note_error)
    elif provider in ("gemini", "vertex_ai", "vertex_ai_beta"):
        module = importlib.import_module(
            "litellm.llms.vertex_ai.gemini.vertex_and_google_ai_studio_gemini"
        )
        _before(module, "ModelResponseIterator", "chunk_parser", _note_finish_part)
        _before(module, "ModelResponseIterator", "_common_chunk_parsing_logic", _without_comment)
    elif provider in ("openai", "azure"):
        with contextlib.suppress(ImportError):  # not in the oldest
            module = importlib.import_module(
                "litellm.completion_extras.litellm_responses_transformation.transformation"
            )
            name = "OpenAiResponsesToChatCompletionStreamIterator"
            _before(module, name, "chunk_parser", _read_responses)


def _before(module: ModuleType, name: str, method: str, change: Callable[[Any], Any]) -> None:
    # Let a method of a class have its argument changed first. Done once.
    with _lock:
        key = (f"{module.__name__}:{name}", method)
        if key in _wrapped:
            return
        _wrapped.add(key)
        holder = getattr(module, name, None)
        original = getattr(holder, method, None)
        if original is None:  # another litellm
            return

        @functools.wraps(original)
        def changed(self: Any, chunk: Any) -> Any:
            return original(self, change(chunk))

        setattr(holder, method, changed)


def _note_error(chunk: Any) -> Any:
    end = _watching.get()
    if end is not None and isinstance(chunk, dict) and chunk.get("type") == "error":
        end.error = chunk.get("error")
    _note_model(chunk, "message", "model")
    return chunk


def _note_model(chunk: Any, member: str, name: str) -> None:
    end = _watching.get()
    holder = chunk.get(member) if member and isinstance(chunk, dict) else chunk
    model = holder.get(name) if isinstance(holder, dict) else None
    if end is not None and isinstance(model, str):
        end.model = model


def _note_finish_part(chunk: Any) -> Any:
    end = _watching.get()
    if end is not None and isinstance(chunk, dict):
        candidates = chunk.get("candidates") or ()
        blocked = (chunk.get("promptFeedback") or {}).get("blockReason")
        finished = any(candidate.get("finishReason") for candidate in candidates)
        end.finish_part = end.finish_part or finished or bool(blocked)
    _note_model(chunk, "", "modelVersion")
    return chunk


def _without_comment(chunk: Any) -> Any:
    return "" if isinstance(chunk, str) and chunk.startswith(":") else chunk


def _read_responses(chunk: Any) -> Any:
    if not isinstance(chunk, dict):
        return chunk
    _note_model(chunk, "response", "model")
    # An enum of litellm's, or a text.
    kind = getattr(chunk.get("type"), "value", chunk.get("type"))
    return {**chunk, "type": _READ_AS[kind]} if kind in _READ_AS else chunk
