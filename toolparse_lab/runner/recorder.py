"""Answers on their way to the disk: what arrives while a write is under way goes into the next one together."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from .types import Completion

if TYPE_CHECKING:
    from .store import Store


_WAIT = 0.1  # of what an answer took
_LONGEST_WAIT = 0.02  # seconds


class Recorder:
    """Writes completions of one run through the store's writer, from one event loop."""

    def __init__(self, store: Store, run_id: str | None) -> None:
        self._store = store
        self._run_id = run_id
        self._waiting: list[tuple[Completion, asyncio.Future[None]]] = []
        self._writing: asyncio.Task[None] | None = None

    async def record(self, completion: Completion) -> None:
        """Returns when the completion is on disk, also where the caller is cancelled meanwhile: an answer that has
        arrived is never lost. Raises StoreError."""
        loop = asyncio.get_running_loop()
        written: asyncio.Future[None] = loop.create_future()
        self._waiting.append((completion, written))
        if self._writing is None:
            self._writing = loop.create_task(self._write())
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await written
            raise

    async def _write(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                # Others that arrive meanwhile cost no write of their own; its slot is not given to another question
                # before an answer is on disk, so that no more can be lost.
                await asyncio.sleep(min(_LONGEST_WAIT, _WAIT * (self._waiting[0][0].latency or 0.0)))
                batch, self._waiting = self._waiting, []
                failure = await self._put(loop, [c for c, _ in batch])
                refused = 0
                for completion, written in batch:
                    alone = failure
                    # One that cannot be written must not take the others with it; two say that it is the store.
                    if failure is not None and len(batch) > 1 and refused < 2:
                        alone = await self._put(loop, [completion])
                        refused += alone is not None
                    with contextlib.suppress(asyncio.InvalidStateError):
                        if alone is None:
                            written.set_result(None)
                        else:
                            written.set_exception(alone)
        finally:
            self._writing = None

    async def _put(self, loop: asyncio.AbstractEventLoop, completions: list[Completion]) -> Exception | None:
        try:
            await loop.run_in_executor(self._store.writer, self._store.record_many, completions, self._run_id)
        except Exception as e:
            return e
        return None
