"""litellm's stream object with someone who looks at each of its chunks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ...runner.answer import close_stream
from .stream import close_connection


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
