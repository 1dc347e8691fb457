"""Answers on their way to the disk: an answer that arrives while a write is under way goes into the
next one together.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from ..core.errors import StoreLost
from .exchange.types import Completion

if TYPE_CHECKING:
    from .store.store import Store  # the pool loads without SQLAlchemy

# How answers are recorded. A transaction costs about the same for one answer as for fifty, so
# answers that arrive close together share one. Each waits in `_waiting` with a future; one task at
# a time takes all that wait, writes them in the store's own thread, and sets their futures. A
# worker goes on only when its future is set: no more answers can be lost than there are calls in
# flight. Invariant: an answer is in `_waiting`, in the batch of the running task, or its future is
# done. An answer that the store does not take is saved in another file first, since it is paid.
# Cost: a wait of at most 20 ms, and of a tenth of what the answer itself took.

_WAIT = 0.1  # of what an answer took
_LONGEST_WAIT = 0.02  # seconds


class Recorder:
    """Writes completions of one run through the store's writer, from one event loop."""

    def __init__(self, store: Store, run_id: str | None) -> None:
        self._store = store
        self._run_id = run_id
        self._waiting: list[tuple[Completion, asyncio.Future[None]]] = []
        self._task: asyncio.Task[None] | None = None

    async def record(self, completion: Completion) -> None:
        # On disk when it returns, also where the caller is cancelled: no answer that came is lost.
        loop = asyncio.get_running_loop()
        on_disk: asyncio.Future[None] = loop.create_future()
        self._waiting.append((completion, on_disk))
        if self._task is None:
            self._task = loop.create_task(self._write())
        try:
            await asyncio.shield(on_disk)
        except asyncio.CancelledError:
            await on_disk
            raise

    async def _write(self) -> None:
        # Ends by itself, and `record` starts it again: no task is left over when a run ends.
        try:
            while self._waiting:
                # Others that arrive meanwhile cost no write of their own; its slot is not given to
                # another question before an answer is on disk, so that no more can be lost.
                latency = self._waiting[0][0].latency or 0.0
                await asyncio.sleep(min(_LONGEST_WAIT, _WAIT * latency))
                batch, self._waiting = self._waiting, []
                await self._write_batch(batch)
        finally:
            self._task = None

    async def _write_batch(self, batch: list[tuple[Completion, asyncio.Future[None]]]) -> None:
        # A failure of the store is each caller's own, since each of them stops its worker.
        failure = await self._put([completion for completion, _ in batch])
        failures: list[Exception | None] = []
        refused = 0
        for completion, _ in batch:
            own_failure = failure
            # One that cannot be written must not take the others with it; two say that it
            # is the store.
            lost = isinstance(failure, StoreLost)  # which has kept them all in another file
            if failure is not None and not lost and len(batch) > 1 and refused < 2:
                own_failure = await self._put([completion])
                refused += own_failure is not None
            failures.append(own_failure)
        await self._save_elsewhere(
            [
                completion
                for (completion, _), e in zip(batch, failures, strict=True)
                if e is not None and not isinstance(e, StoreLost)
            ]
        )
        for (_, on_disk), own_failure in zip(batch, failures, strict=True):
            _settle(on_disk, own_failure)

    async def _save_elsewhere(self, completions: list[Completion]) -> None:
        if completions:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._store.writer, self._store.save_unwritten, completions)

    async def _put(self, completions: list[Completion]) -> Exception | None:
        # The failure comes back, not raised.
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(
                self._store.writer, self._store.record_many, completions, self._run_id
            )
        except Exception as e:
            return e
        return None


def _settle(on_disk: asyncio.Future[None], failure: Exception | None) -> None:
    # A loop that is closing may have cancelled it.
    with contextlib.suppress(asyncio.InvalidStateError):
        if failure is None:
            on_disk.set_result(None)
        else:
            on_disk.set_exception(failure)
