"""The claims of one run on its questions: what it may ask, while others ask the rest."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import ToolparseError
from .lane import Lane

if TYPE_CHECKING:
    from ..store.claims import Claimed
    from ..store.store import Store  # the pool loads without SQLAlchemy

# How claims are used. Questions wait in `Lane.unclaimed` until they are claimed, some at a time in
# one transaction; what is won goes to `Lane.waiting`, from where workers take it. What others ask
# goes back to the end, and is looked at again after a pause once nothing else is left: it will be
# answered, have failed, or be free because its process died. A batch is a quarter of what waits,
# so that a process that comes later finds something to do, and at least what may be sent at once.
# Cost: about one transaction for twenty questions.

_MOST_AT_ONCE = 64
_PAUSE = 0.25  # seconds between two looks at what others ask
_RENEWAL = 7.0  # seconds; the lease is four times as long
_TOOLS_LEASE = 3600.0  # seconds for the functions that are called between two rounds
_T = TypeVar("_T")


@dataclass(slots=True)
class Claims:
    """The claims of one call of `run_requests`.

    on_settled: called with how many questions others have answered, and the error kinds (key ->
    kind) of those at which they have failed.
    """

    store: Store
    run_id: str | None
    on_settled: Callable[[int, Mapping[str, str]], None]
    max_age: float | None = None
    owner: str = field(default_factory=lambda: secrets.token_hex(12))
    since: float = 0.0
    ended: dict[str, str | None] = field(default_factory=dict)
    """claims to be given up with the next write: key -> error kind, None for one not asked"""
    renewal: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Begin to be a worker, whose lease is renewed from now on. Raises StoreError."""
        self.since = await self._write(self.store.enter, self.owner, self.run_id)
        self.renewal = asyncio.create_task(self._renew())

    async def leave(self, more: bool) -> None:
        """Stop being one; `more` says that further questions of the run follow. Raises
        StoreError."""
        if self.renewal is None:
            return
        self.renewal.cancel()
        if more and self.run_id is not None:
            await self._write(self.store.renew, self.run_id, None, None, _TOOLS_LEASE)
        await self._write(self.store.leave, self.owner, self._ended())

    async def fill(self, lane: Lane) -> None:
        """Claim some of a lane's questions; waits a moment first where all are asked by others."""
        size = min(_MOST_AT_ONCE, max(lane.limit, len(lane.unclaimed) // 4))
        if lane.elsewhere >= len(lane.unclaimed):
            await asyncio.sleep(_PAUSE)
            size = _MOST_AT_ONCE
        keys = [lane.unclaimed.popleft() for _ in range(min(size, len(lane.unclaimed)))]
        try:
            claimed = await self._write(self._claim, keys, self._ended())
        except BaseException:
            lane.unclaimed.extendleft(reversed(keys))
            raise
        lane.waiting.extend(claimed.won)
        settled = {*claimed.won, *claimed.done, *claimed.failed}
        others = [key for key in keys if key not in settled]
        lane.unclaimed.extend(others)
        # Those behind each other at the end that were not free when they were last looked at.
        lane.elsewhere = lane.elsewhere + len(others) if others and not claimed.won else len(others)
        self.on_settled(len(claimed.done), claimed.failed)

    def _claim(self, keys: list[str], ended: Mapping[str, str | None]) -> Claimed:
        return self.store.claim(
            keys, self.owner, self.since, run_id=self.run_id, max_age=self.max_age, ended=ended
        )

    async def _renew(self) -> None:
        """Renew the lease until cancelled; a store that fails is noticed by those who record."""
        while True:
            await asyncio.sleep(_RENEWAL)
            with contextlib.suppress(ToolparseError):
                await self._write(self.store.renew, self.owner, self.run_id, self._ended())

    def _ended(self) -> dict[str, str | None]:
        ended, self.ended = self.ended, {}
        return ended

    async def _write(self, function: Callable[..., _T], *arguments: Any) -> _T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.store.writer, function, *arguments)
