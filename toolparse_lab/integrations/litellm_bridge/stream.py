"""Streams of litellm's class around another: with tool calls in it, or with a view of chunks."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import deque
from collections.abc import Callable, Generator
from typing import Any

from ...middleware import Answer, CorrectedAnswer
from ...middleware.drive import adrive, drive
from ...runner.answer import close_stream
from .chunks import ChunkReader, HeldCalls
from .response import Asked


def stream_of(asked: Asked, inner: Any) -> Any:
    """`inner` (a CustomStreamWrapper) with the calls of its text as tool-call deltas, itself a
    CustomStreamWrapper. Calls that are corrected come at its end.
    """
    litellm = asked.litellm
    reader = ChunkReader(litellm.types.utils, asked.middleware, asked.turn, asked.ids)
    held = HeldCalls(reader) if asked.corrects else None
    return _stream_classes(litellm)[0](inner, reader, asked, held)


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


def tapped_stream(litellm: Any, inner: Any, see: Callable[[Any], None]) -> Any:
    """`inner` (a CustomStreamWrapper) itself, but for a call of `see` with each chunk before it is
    passed on. A CustomStreamWrapper too.
    """
    return _stream_classes(litellm)[1](inner, see)


@functools.lru_cache(maxsize=1)
def _stream_classes(litellm: Any) -> tuple[Any, Any]:
    # Made when first needed, because importing litellm takes seconds.

    class OuterStream(litellm.CustomStreamWrapper):  # type: ignore[misc]
        """A stream of litellm's around another: headers, hidden parameters, model and logging are
        the inner one's.
        """

        _inner: Any

        def __getattr__(self, name: str) -> Any:
            if name in ("_inner", "_see"):  # an object that is still being made, or copied
                raise AttributeError(name)
            return getattr(self._inner, name)

        def __del__(self) -> None:
            """Do nothing: litellm's closes the connection, and the inner stream has its own."""

        def close(self) -> None:
            """End the stream and close the provider's connection, of one made without async."""
            self._drop()
            close_connection(self._inner)

        async def aclose(self) -> None:
            """End the stream and close the provider's connection."""
            self._drop()
            await close_stream(self._inner)

        def _drop(self) -> None:
            """Forget what was not yet given."""

    class ToolCallStream(OuterStream):
        def __init__(
            self, inner: Any, reader: ChunkReader, asked: Asked, held: HeldCalls | None
        ) -> None:
            self._inner = inner
            self._reader = held or reader
            self._asked = asked
            self._held = held  # calls that wait for the end, to be asked about once more
            self._ready: deque[Any] = deque()
            self._failure: Exception | None = None
            self._ended = False

        def __next__(self) -> Any:
            while not self._ready and not self._ended:
                try:
                    chunks = self._reader.feed(next(self._inner))
                except StopIteration:
                    drive(self._finish(), self._asked.corrected)
                except Exception as e:
                    self._fail(e)
                else:
                    if len(chunks) == 1:
                        return chunks[0]
                    self._ready.extend(chunks)
            return self._ready_or(StopIteration)

        async def __anext__(self) -> Any:
            try:
                while not self._ready and not self._ended:
                    try:
                        chunks = self._reader.feed(await self._inner.__anext__())
                    except StopAsyncIteration:
                        await adrive(self._finish(), self._asked.corrected_later)
                    except Exception as e:
                        self._fail(e)
                    else:
                        if len(chunks) == 1:
                            return chunks[0]
                        self._ready.extend(chunks)
            except asyncio.CancelledError:
                await self.aclose()
                raise
            return self._ready_or(StopAsyncIteration)

        def _finish(self) -> Generator[Answer, CorrectedAnswer, None]:
            # The answers that are yielded are to be corrected.
            self._end(cut=False)
            if self._held is not None:
                for index, answer in sorted(self._held.answers.items()):
                    self._held.settle(index, (yield answer))
                self._ready.extend(self._held.release())

        def _fail(self, failure: Exception) -> None:
            # The text held back is given first, and then the failure.
            self._end(cut=True)
            self._failure = self._asked.refusal(failure) or failure
            if self._held is not None:
                self._ready.extend(self._held.release())

        def _end(self, cut: bool) -> None:
            self._ended = True
            self._ready.extend(self._reader.close(cut=cut))

        def _ready_or(self, end: type[Exception]) -> Any:
            if self._ready:
                return self._ready.popleft()
            failure, self._failure = self._failure, None
            if failure is not None:
                raise failure
            raise end

        def _drop(self) -> None:
            self._ended, self._failure = True, None
            self._ready.clear()

    class TappedStream(OuterStream):
        def __init__(self, inner: Any, see: Callable[[Any], None]) -> None:
            self._inner = inner
            self._see = see

        def __next__(self) -> Any:
            chunk = next(self._inner)
            self._see(chunk)
            return chunk

        async def __anext__(self) -> Any:
            chunk = await self._inner.__anext__()
            self._see(chunk)
            return chunk

    return ToolCallStream, TappedStream
