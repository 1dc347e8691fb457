"""Where the bytes of a streamed response end, seen below every client that litellm asks by."""

from __future__ import annotations

import contextlib
import functools
import importlib
from collections.abc import AsyncIterator, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from .litellm_door import close_body

# How it works. Some of litellm's streams raise when the connection breaks, some end as if nothing
# had happened, some give the failure a status that no server sent; each version does it in another
# way. All providers but the embedded model are asked through httpx, whatever client is around it.
# So `AsyncClient.send` is wrapped once in the process. It does nothing more than before unless the
# current context is one that records; then the body of a streamed response notes its end.


@dataclass(slots=True)
class BodyEnd:
    """reached: nothing more comes, because the body is complete or because the connection broke.

    finish_part: whether the provider has said why it ends, None where that is not watched. began:
    some of a stream has come. error: what the server wrote into the stream as one, where it is
    watched. response: that of httpx, which came last.
    """

    reached: bool = False
    finish_part: bool | None = None
    began: bool = False
    error: Any = None
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


_watching: ContextVar[BodyEnd | None] = ContextVar("toolparse_body_end", default=None)


def note_finish_part(is_one: bool) -> None:
    """Note for the call under way whether a piece of its stream says why the stream ends."""
    end = _watching.get()
    if end is not None:
        end.finish_part = end.finish_part or is_one


def note_error(error: Any) -> None:
    """Note for the call under way an error that the server wrote into the stream."""
    end = _watching.get()
    if end is not None:
        end.error = error


@functools.lru_cache(maxsize=1)
def _wrap_send() -> None:
    # Done once.
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
            response.stream = Watched(response.stream, end)
        return response

    httpx.AsyncClient.send = watched_send
