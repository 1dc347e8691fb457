"""litellm's stream object with tool calls in it: an iterator, an async iterator, and closable."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
from collections import deque
from typing import Any

from ...middleware import Answer, ToolCallMiddleware, Turn
from ...runner.answer import close_stream
from .again import Again
from .answer_ids import AnswerIds
from .chunks import ChunkReader
from .held_calls import HeldCalls
from .refusal import refusal


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
    """Close the provider's connection below a stream of litellm's made without async.

    litellm's own class has no `close` for it.
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
            """Note that no more will come.

            After a failure the text held back is given first, and then the failure.
            """
            self._ended = True
            self._ready.extend(self._reader.close(cut=failure is not None))
            if failure is not None:
                self._failure = refusal(failure, self._turn) or failure

        def _held_answers(self) -> list[tuple[int, Answer, HeldCalls, Again]]:
            """Return the answers whose calls waited for the end, by the index of a choice, with
            what settles them.
            """
            calls, again = self._held, self._again
            if calls is None or again is None:
                return []
            return [(index, calls.answers[index], calls, again) for index in sorted(calls.answers)]

        def _release(self) -> None:
            """Let the chunks go that waited for the end."""
            if self._held is not None:
                self._ready.extend(self._held.release())

        def _ready_or(self, end: type[Exception]) -> Any:
            """Return the next chunk that is ready.

            If there is none, raise the failure or `end`.
            """
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
            """Forget what was not yet given."""
            self._ended, self._failure = True, None
            self._ready.clear()

    return ToolCallStream
