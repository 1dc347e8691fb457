"""A run's writes to its store from the event loop: its answers, and its claims on questions."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, TypeVar, cast

from ..core.errors import BadOptions, StoreLost, ToolparseError, near
from .exchange.summary import RunEvent, Summary
from .exchange.types import Completion, Request
from .lane import Lane

if TYPE_CHECKING:
    from .store.claims import Claimed
    from .store.store import Store  # the pool loads without SQLAlchemy

Complete: TypeAlias = Callable[[Request], Awaitable[Completion]]


class RunLimits(TypedDict, total=False):
    """Limits and options of one run.

    Args:
        max_cost: stop before more is spent. In US dollars; calls in flight are reserved.
        max_calls: stop before more calls are made. Retries count.
        deadline: stop after this time. In seconds.
        fresh: ask again what is recorded already.
        max_age: ask again where the recorded answer is older, in seconds.
        progress: None shows a bar where someone can see it.
        on_event: takes each event.
        backoff: seconds before the first retry, doubled each time.
        give_up_after: failures in a row after which a model is asked no more, None for never.
        complete: is called in place of litellm.
    """

    max_cost: float | None
    max_calls: int | None
    deadline: float | None
    fresh: bool
    max_age: float | None
    progress: bool | None
    on_event: Callable[[RunEvent], None] | None
    backoff: float
    give_up_after: int | None
    complete: Complete | None


# Each of them may be None, for no limit.
_NUMBERS = ("max_cost", "max_calls", "deadline", "max_age", "backoff", "give_up_after")
_COUNTS = ("max_calls", "give_up_after")


def check_limits(limits: Mapping[str, Any]) -> None:
    """Raise BadOptions for a limit that does not exist, and for one that is not a number.

    The type checker finds most of these. Calls from notebooks and plan files pass no type checker.
    """
    names = RunLimits.__annotations__
    for name, value in limits.items():
        if name not in names:
            raise BadOptions(
                "a run has no such limit",
                got=name,
                expected=", ".join(names),
                hint=near(name, names) or "factors and sampling parameters go to lab.plan",
            )
        if name not in _NUMBERS or value is None:
            continue
        # `not value >= 0` and not `value < 0`, so that NaN is refused, too.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
            raise BadOptions(f"{name} is a number", got=repr(value), expected="0 or more, or None")
        if name in _COUNTS and value != math.inf and value != int(value):
            raise BadOptions(f"{name} is a whole number", got=value, expected="0 or more, or None")


def remaining_limits(limits: RunLimits, used: Summary, began: float) -> RunLimits | None:
    """Return the limits of the rounds to come, or None if there is no time left for any.

    used: by the rounds before. began: by `time.monotonic`, when the first did.
    """
    spent = {"max_cost": used.cost, "max_calls": used.calls, "deadline": time.monotonic() - began}
    remaining: dict[str, Any] = {**limits}
    for name, amount in spent.items():
        if remaining.get(name) is not None:
            remaining[name] -= amount
    deadline = remaining.get("deadline")
    return None if deadline is not None and deadline <= 0 else cast(RunLimits, remaining)


# How answers are recorded. A transaction costs about the same for one answer as for fifty, so
# answers that arrive close together share one. Each waits in `_waiting` with a future; one task at
# a time takes all that wait, writes them in the store's own thread, and sets their futures. A
# worker goes on only when its future is set: no more answers can be lost than there are calls in
# flight. Invariant: an answer is in `_waiting`, in the batch of the running task, or its future is
# done. An answer that the store does not take is saved in another file first, since it is paid.
# Cost: a wait of at most 20 ms, and of a tenth of what the answer itself took.

_WAIT = 0.1  # of what an answer took
_LONGEST_WAIT = 0.02  # seconds
_T = TypeVar("_T")


class _OnDisk(asyncio.Future[None]):
    def cancel(self, msg: object = None) -> bool:
        # Whoever waits for it is cancelled once it is done.
        return False


class Recorder:
    """Writes completions of one run through the store's writer, from one event loop."""

    def __init__(self, store: Store, run_id: str | None) -> None:
        self._store = store
        self._run_id = run_id
        self._waiting: list[tuple[Completion, _OnDisk]] = []
        self._task: asyncio.Task[None] | None = None

    async def record(self, completion: Completion) -> None:
        # On disk when it returns, also where the caller is cancelled: no answer that came is lost.
        on_disk = _OnDisk()
        self._waiting.append((completion, on_disk))
        if self._task is None:
            self._task = asyncio.create_task(self._write())
        try:
            await on_disk
        except asyncio.CancelledError:
            on_disk.result()
            raise

    async def _write(self) -> None:
        # Ends by itself, and `record` starts it again: no task is left over when a run ends.
        try:
            while self._waiting:
                # Others that arrive meanwhile cost no write of their own; its slot is not given to
                # another question before an answer is on disk, so that no more can be lost.
                first = self._waiting[0][0]
                # A replayed one has the latency of its recording, and took none.
                latency = 0.0 if first.fidelity == "replayed" else first.latency or 0.0
                await asyncio.sleep(min(_LONGEST_WAIT, _WAIT * latency))
                batch, self._waiting = self._waiting, []
                failures = await self._write_batch([completion for completion, _ in batch])
                for (_, on_disk), failure in zip(batch, failures, strict=True):
                    if failure is None:
                        on_disk.set_result(None)
                    else:
                        on_disk.set_exception(failure)
        finally:
            self._task = None

    async def _write_batch(self, batch: list[Completion]) -> list[Exception | None]:
        # A failure of the store is each caller's own, since each of them stops its worker.
        failure = await self._put(batch)
        failures = [failure] * len(batch)
        if failure is None or isinstance(failure, StoreLost):
            return failures  # a store that is lost has kept them all in another file
        # One that cannot be written must not take the others with it; two say that it is the store.
        refused = 0
        for n, completion in enumerate(batch):
            if len(batch) > 1 and refused < 2:
                failures[n] = await self._put([completion])
                refused += failures[n] is not None
        unwritten = [
            completion
            for completion, e in zip(batch, failures, strict=True)
            if e is not None and not isinstance(e, StoreLost)
        ]
        if unwritten:
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(self._store.writer, self._store.save_unwritten, unwritten)
        return failures

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


# How claims are used. Questions wait in `Lane.unclaimed` until they are claimed, some at a time in
# one transaction; what is won goes to `Lane.waiting`, from where workers take it. What others ask
# goes back to the end, and is looked at again after a pause once nothing else is left: it will be
# answered, have failed, or be free because its process died. A batch is a quarter of what waits,
# so that a process that comes later finds something to do, and at least what may be sent at once.
# Cost: about one transaction for twenty questions.
#
# A process that was stopped for longer than its lease (a debugger, a laptop that slept) has no
# claims any more, whatever it remembers. It notices by its own clocks, before it asks the next
# question, or by what the next renewal returns, and claims anew what waits in its lanes (`epoch`).

_MOST_AT_ONCE = 64
_PAUSE = 0.25  # seconds between two looks at what others ask
_RENEWAL = 7.0  # seconds; the lease is four times as long
_EXPIRY = 25.0  # seconds after which the lease is taken to be over, some less than it lasts
_TOOLS_LEASE = 3600.0  # seconds for the functions that are called between two rounds


@dataclass(slots=True)
class Claims:
    """The lease of one call of `run_requests`, and its claims on questions: those it may ask, while
    others ask the rest. shared: whether questions are claimed; if not, the run alone has a lease.
    """

    store: Store
    run_id: str | None
    shared: bool
    max_age: float | None = None
    owner: str = field(default_factory=lambda: secrets.token_hex(12))
    since: float = 0.0
    ended: dict[str, str | None] = field(default_factory=dict)
    """claims to be given up with the next write: key -> error kind, None for one not asked"""
    epoch: int = 0
    """rises whenever what was claimed before may be others' by now"""
    renewed: tuple[float, float] = (0.0, 0.0)
    renewal: asyncio.Task[None] | None = None
    on_settled: Callable[[int, Mapping[str, str]], None] = lambda done, failed: None

    async def enter(self, on_settled: Callable[[int, Mapping[str, str]], None]) -> None:
        """Begin to be a worker, whose lease is renewed from now on. Raises StoreError.

        on_settled: called with how many questions others have answered, and the error kinds (key ->
        kind) of those at which they have failed.
        """
        self.on_settled = on_settled
        if self.shared:
            loop = asyncio.get_running_loop()
            self.since = await loop.run_in_executor(
                self.store.writer, self.store.enter, self.owner, self.run_id
            )
        elif self.run_id is None:
            return
        else:
            self.owner = self.run_id
        self.renewed = _clocks()
        self.renewal = asyncio.create_task(self._renew())

    def stop(self) -> None:
        """Renew the lease no more."""
        if self.renewal is not None:
            self.renewal.cancel()

    async def leave(self, more: bool) -> None:
        """End the work. more: further questions of the run follow."""
        if self.renewal is None:
            return
        self.stop()
        if more and self.run_id is not None:
            await self._write(self.store.renew, self.run_id, self.run_id, lease=_TOOLS_LEASE)
        if self.shared:
            await self._write(self.store.leave, self.owner)

    def end(self, keys: Mapping[str, str | None]) -> None:
        """Give up the claims on these keys with the next write: with an error kind where a question
        has failed for good, with None if it is not asked.
        """
        if self.shared:
            self.ended.update(keys)

    def recall(self, lane: Lane) -> None:
        """Take back the questions waiting in a lane where its claims may be others' by now."""
        now, then = _clocks(), self.renewed
        if max(now[0] - then[0], now[1] - then[1]) > _EXPIRY:
            self._lapse()
        if lane.epoch != self.epoch:
            lane.unclaimed.extendleft(reversed(lane.waiting))
            lane.waiting.clear()
            lane.epoch = self.epoch

    async def fill(self, lane: Lane) -> None:
        """Claim some of a lane's questions, after a moment where all are asked by others."""
        size = min(_MOST_AT_ONCE, max(lane.limit, len(lane.unclaimed) // 4))
        if lane.elsewhere >= len(lane.unclaimed):
            await asyncio.sleep(_PAUSE)
            size = _MOST_AT_ONCE
        keys = [lane.unclaimed.popleft() for _ in range(min(size, len(lane.unclaimed)))]
        try:
            claimed: Claimed = await self._write(
                self.store.claim, keys, self.owner, self.since,
                run_id=self.run_id, max_age=self.max_age,
            )  # fmt: skip
        except BaseException:
            lane.unclaimed.extendleft(reversed(keys))
            raise
        lane.waiting.extend(claimed.won)
        settled = {*claimed.won, *claimed.done, *claimed.failed}
        others = [key for key in keys if key not in settled]
        lane.unclaimed.extend(others)
        # Those in a row at the end that were not free when they were last looked at.
        lane.elsewhere = lane.elsewhere + len(others) if others and not claimed.won else len(others)
        self.on_settled(len(claimed.done), claimed.failed)

    async def _renew(self) -> None:
        # A store that fails is noticed by those who record.
        while True:
            await asyncio.sleep(_RENEWAL)
            with contextlib.suppress(ToolparseError):
                clocks = _clocks()
                if not await self._write(self.store.renew, self.owner, self.run_id):
                    self._lapse()
                self.renewed = clocks

    def _lapse(self) -> None:
        self.epoch += 1
        self.renewed = _clocks()

    async def _write(self, function: Callable[..., _T], *arguments: Any, **named: Any) -> _T:
        # Also gives up the claims that have ended. They stay where it fails, for the next one.
        ended, self.ended = self.ended, {}
        call = functools.partial(function, *arguments, ended=ended, **named)
        try:
            return await asyncio.get_running_loop().run_in_executor(self.store.writer, call)
        except BaseException:
            self.ended = {**ended, **self.ended}
            raise


def _clocks() -> tuple[float, float]:
    # One stands still while a machine sleeps, the other one may be set.
    return time.monotonic(), time.time()
