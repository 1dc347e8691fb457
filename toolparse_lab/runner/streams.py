"""Streams as the provider sent them: their chunks, and their ends, seen below every client that
litellm asks by.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextvars import ContextVar
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


@dataclass(slots=True)
class BodyEnd:
    """reached: nothing more comes, because the body is complete or because the connection broke.

    finish_part: whether the provider has said why it ends, None where that is not watched. began:
    some of a stream has come. error: what the server wrote into the stream as one, where it is
    watched. model: the one that a stream names, where litellm hands on the one that was asked.
    response: that of httpx, which came last.
    """

    reached: bool = False
    finish_part: bool | None = None
    began: bool = False
    error: Any = None
    model: str | None = None
    response: Any = None

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
        request = _request_of(self.response)
        is_json = "json" in str(getattr(request, "headers", {}).get("content-type", ""))
        content = getattr(request, "_content", None)
        return content if is_json and isinstance(content, bytes) else None

    def text(self) -> str | None:
        """The body of a whole response, None for a stream."""
        content = getattr(self.response, "_content", None)
        return content.decode("utf-8", "replace") if isinstance(content, bytes) else None

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Watch the streamed responses to what this task, and those it starts, send meanwhile."""
        _wrap_send()
        token = _watching.set(self)
        try:
            yield
        finally:
            _watching.reset(token)


def _request_of(response: Any) -> Any:
    return getattr(response, "_request", None)


_watching: ContextVar[BodyEnd | None] = ContextVar("toolparse_body_end", default=None)


@functools.lru_cache(maxsize=1)
def _wrap_send() -> None:
    httpx: Any = importlib.import_module("httpx")
    send = httpx.AsyncClient.send

    class Watched(httpx.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, body: Any, end: BodyEnd) -> None:
            self._stream = body
            self._end = end

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._stream:
                    self._end.began = True
                    yield piece
            except Exception:
                self._end.reached = True
                raise
            self._end.reached = True
            await close_body(self._stream)

        async def aclose(self) -> None:
            await close_body(self._stream)

    @functools.wraps(send)
    async def watched_send(self: Any, request: Any, *, stream: bool = False, **kw: Any) -> Any:
        response = await send(self, request, stream=stream, **kw)
        end = _watching.get()
        if end is not None:
            end.response = response
        # What is not streamed may be another request of the same call: a login, a log.
        if stream and end is not None:
            end.reached = end.began = False
            end.model = None
            response.stream = Watched(response.stream, end)
        return response

    httpx.AsyncClient.send = watched_send


async def close_quietly(closable: Any) -> None:
    """Call `aclose` or `close` of an object that has one, and wait for it where it is awaitable.

    Nothing is raised: at that point there is no one to whom a failure to close would matter.
    """
    close = getattr(closable, "aclose", None) or getattr(closable, "close", None)
    if close is None:
        return
    with contextlib.suppress(Exception):
        result = close()
        if inspect.isawaitable(result):
            await result


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
    members = _members(chunk)
    choices = members.get("choices")
    if isinstance(choices, list) and choices:
        first = members["choices"] = [_members(choices[0])]
        if isinstance(first[0], dict) and "delta" in first[0]:
            first[0]["delta"] = _members(first[0]["delta"])
    return members


def _members(value: Any) -> Any:
    # Those that are not None. A server may send anything in the place of an object.
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
    if not kind.startswith(("application/json", "text/html", "text/plain")):
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
