"""Streams of litellm's class around another: with tool calls in it, or with a view of chunks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable
from typing import Any

from ...middleware import Answer, ToolCallMiddleware, Turn
from ...runner.answer import close_stream
from .chunks import ChunkReader, HeldCalls
from .response import Again, AnswerIds, refusal


def stream_of(
    litellm: Any,
    inner: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    ids: AnswerIds | None = None,
    again: Again | None = None,
) -> Any:
    """`inner` (a CustomStreamWrapper) with the calls of its text as tool-call deltas.

    Itself a CustomStreamWrapper. ids: of the calls, where they are shared. again: asks the model
    again about calls that the schema refuses. Calls then come at the end of the stream.
    """
    reader = ChunkReader(litellm.types.utils, middleware, turn, ids)
    if again is None:
        return _stream_class(litellm)(inner, reader, turn)
    return _stream_class(litellm)(inner, HeldCalls(reader), turn, again)


def close_connection(stream: Any) -> None:
    """Close the provider's connection of a stream of litellm's made without async, for which
    litellm's own class has no `close`.
    """
    source = stream.completion_stream
    for closable in (source, getattr(source, "response", None)):
        close = getattr(closable, "close", None)
        if close is not None and not inspect.iscoroutinefunction(close):
            with contextlib.suppress(Exception):
                close()


@functools.lru_cache(maxsize=1)
def _stream_class(litellm: Any) -> Any:
    """Made when first needed, because importing litellm takes seconds."""

    class ToolCallStream(litellm.CustomStreamWrapper):  # type: ignore[misc]
        """A stream of litellm's around another: headers, hidden parameters, model and logging are
        the inner one's.
        """

        def __init__(
            self,
            inner: Any,
            reader: ChunkReader | HeldCalls,
            turn: Turn,
            again: Again | None = None,
        ) -> None:
            self._inner = inner
            self._reader = reader
            self._turn = turn
            # Calls that wait for the end, to be asked about once more.
            self._held = reader if isinstance(reader, HeldCalls) else None
            self._again = again
            self._ready: deque[Any] = deque()
            self._failure: Exception | None = None
            self._ended = False

        def __getattr__(self, name: str) -> Any:
            if name == "_inner":  # an object that is still being made, or copied
                raise AttributeError(name)
            return getattr(self._inner, name)

        def __del__(self) -> None:
            """Do nothing: litellm's closes the connection, and the inner stream has its own."""

        def __next__(self) -> Any:
            while True:
                if self._ready or self._ended:
                    return self._ready_or(StopIteration)
                try:
                    chunks = self._reader.feed(next(self._inner))
                except StopIteration:
                    self._end()
                    for index, answer, calls, again in self._held_answers():
                        calls.settle(index, again.corrected(answer))
                    self._release()
                except Exception as e:
                    self._end(e)
                    self._release()
                else:
                    if len(chunks) == 1:
                        return chunks[0]
                    self._ready.extend(chunks)

        async def __anext__(self) -> Any:
            while True:
                if self._ready or self._ended:
                    return self._ready_or(StopAsyncIteration)
                try:
                    chunks = self._reader.feed(await self._inner.__anext__())
                except StopAsyncIteration:
                    self._end()
                    try:
                        for index, answer, calls, again in self._held_answers():
                            calls.settle(index, await again.corrected_later(answer))
                    except asyncio.CancelledError:
                        await self.aclose()
                        raise
                    self._release()
                except asyncio.CancelledError:
                    await self.aclose()
                    raise
                except Exception as e:
                    self._end(e)
                    self._release()
                else:
                    if len(chunks) == 1:
                        return chunks[0]
                    self._ready.extend(chunks)

        def _end(self, failure: Exception | None = None) -> None:
            # After a failure the text held back is given first, and then the failure.
            self._ended = True
            self._ready.extend(self._reader.close(cut=failure is not None))
            if failure is not None:
                self._failure = refusal(failure, self._turn) or failure

        def _held_answers(self) -> list[tuple[int, Answer, HeldCalls, Again]]:
            # Those whose calls waited for the end, with what settles them.
            calls, again = self._held, self._again
            if calls is None or again is None:
                return []
            return [(index, calls.answers[index], calls, again) for index in sorted(calls.answers)]

        def _release(self) -> None:
            if self._held is not None:
                self._ready.extend(self._held.release())

        def _ready_or(self, end: type[Exception]) -> Any:
            if self._ready:
                return self._ready.popleft()
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            raise end

        def close(self) -> None:
            """End the stream and close the provider's connection, of a stream that `completion`
            made.
            """
            self._drop()
            close_connection(self._inner)

        async def aclose(self) -> None:
            """End the stream and close the provider's connection."""
            self._drop()
            await close_stream(self._inner)

        def _drop(self) -> None:
            self._ended, self._failure = True, None
            self._ready.clear()

    return ToolCallStream


def tapped_stream(litellm: Any, inner: Any, see: Callable[[Any], None]) -> Any:
    """`inner` (a CustomStreamWrapper) itself, but for a call of `see` with each chunk before it is
    passed on. A CustomStreamWrapper too.
    """
    return _tapped_class(litellm)(inner, see)


@functools.lru_cache(maxsize=1)
def _tapped_class(litellm: Any) -> Any:
    """Made when first needed, because importing litellm takes seconds."""

    class TappedStream(litellm.CustomStreamWrapper):  # type: ignore[misc]
        """A stream of litellm's around another. Everything else is the inner one's."""

        def __init__(self, inner: Any, see: Callable[[Any], None]) -> None:
            self._inner = inner
            self._see = see

        def __getattr__(self, name: str) -> Any:
            if name in ("_inner", "_see"):  # an object that is still being made, or copied
                raise AttributeError(name)
            return getattr(self._inner, name)

        def __del__(self) -> None:
            """Do nothing: litellm's closes the connection, and the inner stream has its own."""

        def __next__(self) -> Any:
            chunk = next(self._inner)
            self._see(chunk)
            return chunk

        async def __anext__(self) -> Any:
            chunk = await self._inner.__anext__()
            self._see(chunk)
            return chunk

        def close(self) -> None:
            """Close the provider's connection, of a stream made without async."""
            close_connection(self._inner)

        async def aclose(self) -> None:
            """Close the provider's connection."""
            await close_stream(self._inner)

    return TappedStream
