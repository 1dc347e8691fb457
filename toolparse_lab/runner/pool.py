"""Many requests, asked with care: only what is missing, no more at once than an endpoint takes, within limits.

Everything is recorded, failures with their class, before anybody is told of it. Stopping at any moment (a limit, an
interrupt, a full disk) keeps what is recorded; the same call later asks only for the rest.
"""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ..errors import BadOptions, ToolparseError
from .failures import RETRIABLE, error_kind, error_message
from .local_provider import is_local
from .loop import run_sync
from .progress import Progress
from .routes import check_model, estimate_cost, estimate_tokens
from .types import Completion, Model, Request

if TYPE_CHECKING:
    from .store import Store

Complete = Callable[[Request], Awaitable[Completion]]
EventKind = Literal["asked", "recorded", "retry", "failed", "stopped", "finished"]
_LONGEST_WAIT = 120.0


@dataclass(slots=True)
class Summary:
    """What became of a call of `run_requests`; `stopped` says why it ended early, None where it did not."""

    run_id: str | None = None
    planned: int = 0
    """different questions"""
    cached: int = 0
    """answered by the store, not asked"""
    done: int = 0
    failed: int = 0
    """failed for good, retries included"""
    calls: int = 0
    """requests sent, retries included"""
    retries: int = 0
    cost: float = 0.0
    """US dollars, as far as prices are known"""
    unpriced: int = 0
    """answers without a known price"""
    seconds: float = 0.0
    stopped: Literal["max_cost", "max_calls", "deadline", "interrupted", "error"] | None = None
    failures: Counter[str] = field(default_factory=Counter)

    @property
    def missing(self) -> int:
        """Questions without an answer: failed ones and those not asked."""
        return self.planned - self.cached - self.done

    @property
    def complete(self) -> bool:
        return self.missing == 0

    def to_dict(self) -> dict[str, Any]:
        return {**dataclasses.asdict(self), "failures": dict(self.failures)}

    def __str__(self) -> str:
        parts = [f"{self.done} recorded", f"{self.cached} known before", f"{self.failed} failed"]
        left = self.missing - self.failed
        if left:
            parts.append(f"{left} left to ask")
        text = f"{', '.join(parts)}; {self.calls} calls in {self.seconds:.1f} s, ${self.cost:.4f}"
        if self.unpriced:
            text += f" and {self.unpriced} answers without a known price"
        if self.failures:
            text += "; failures: " + ", ".join(f"{kind} {n}" for kind, n in self.failures.most_common())
        return f"{text}; stopped: {self.stopped}" if self.stopped else text


@dataclass(frozen=True, slots=True)
class RunEvent:
    """What `on_event` is given. "recorded", "retry" and "failed" come after the completion was written."""

    kind: EventKind
    summary: Summary
    request: Request | None = None
    completion: Completion | None = None


@dataclass(slots=True)
class _Lane:
    """One endpoint: what waits for it, and until when nothing may be sent to it."""

    limit: int
    waiting: deque[tuple[Request, str]] = field(default_factory=deque)
    closed_until: float = 0.0


async def run_requests(
    requests: Iterable[Request],
    store: Store,
    *,
    run_id: str | None = None,
    complete: Complete | None = None,
    on_event: Callable[[RunEvent], None] | None = None,
    max_cost: float | None = None,
    max_calls: int | None = None,
    deadline: float | None = None,
    fresh: bool = False,
    max_age: float | None = None,
    progress: bool | None = None,
    backoff: float = 0.5,
    more: bool = False,
) -> Summary:
    """Asks what the store does not know yet and records every answer and every failure.

    The same question is asked once, however often it stands in `requests`. Each endpoint gets `Model.max_connections`
    at a time; what may go away is tried again `Model.max_retries` times, waiting `backoff` seconds, doubled each time,
    with jitter, or as long as the provider asks. `max_cost` (US dollars; calls in flight are reserved), `max_calls`
    (retries included) and `deadline` (seconds) stop the run before they are passed. `fresh` asks again what this run
    has not asked itself, `max_age` what is older (seconds). `progress` None shows a bar where somebody can see it.
    `more` says that further requests of this run follow, so that it is not marked complete.

    Cancelling it stops cleanly: what has been answered is recorded, the run is marked interrupted, and a "stopped"
    event carries the summary. Raises StoreError where the store fails, UnknownModel or MissingModelPackage before
    anything is sent, MissingRecording from a replay, BadOptions for `max_cost` with a model without a known price.
    """
    pool = _Pool(
        store=store,
        run_id=run_id,
        on_event=on_event,
        max_cost=max_cost,
        max_calls=max_calls,
        deadline=deadline,
        backoff=backoff,
        more=more,
    )
    unique = {r.key: r for r in requests}
    summary = pool.summary
    summary.run_id = run_id
    summary.planned = len(unique)
    loop = asyncio.get_running_loop()
    known = await loop.run_in_executor(
        store.writer, lambda: store.done_keys(unique, run_id=run_id, fresh=fresh, max_age=max_age)
    )
    summary.cached = len(known)
    pending = {k: r for k, r in unique.items() if k not in known}
    if pending:
        pool.complete = await loop.run_in_executor(None, _prepared, complete, pending, max_cost, max_calls)
    with Progress(len(unique), initial=len(known), show=progress) as pool.progress:
        await pool.run(pending)
    return summary


def _prepared(
    complete: Complete | None, pending: Mapping[str, Request], max_cost: float | None, max_calls: int | None
) -> Complete:
    """Whatever can be known to fail is found before the first call."""
    models = {r.model.name: r.model for r in pending.values()}
    if complete is None:
        from .complete import complete as ask

        for model in models.values():
            check_model(model)
        complete = ask
    check = getattr(complete, "check", None)
    if check is not None:
        check(pending.values())
    if max_cost is not None and max_calls is None:
        unpriced = sorted({r.model_alias for r in pending.values() if estimate_cost(r) is None})
        if unpriced:
            raise BadOptions(
                "max_cost cannot be kept: there is no known price for some models.",
                got=unpriced,
                hint="give them a price, tp.Model(..., price=(input, output) per million tokens; (0, 0) = free), "
                "or limit the run by max_calls",
            )
    return complete


@dataclass(slots=True)
class _Pool:
    store: Store
    run_id: str | None
    on_event: Callable[[RunEvent], None] | None
    max_cost: float | None
    max_calls: int | None
    deadline: float | None
    backoff: float
    more: bool = False
    complete: Complete | None = None
    progress: Progress | None = None
    summary: Summary = field(default_factory=Summary)
    reserved: float = 0.0
    in_flight: int = 0
    began: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, pending: Mapping[str, Request]) -> None:
        lanes: dict[tuple[str, str], _Lane] = {}
        for key, request in pending.items():
            model = request.model
            lane = lanes.setdefault((model.name, model.endpoint), _Lane(_limit(model)))
            lane.limit = max(lane.limit, _limit(model))
            lane.waiting.append((request, key))
        workers = [
            asyncio.create_task(self._work(lane))
            for lane in lanes.values()
            for _ in range(min(lane.limit, len(lane.waiting)))
        ]
        try:
            await self._watch(workers)
        except asyncio.CancelledError:
            self.summary.stopped = "interrupted"
            await self._end(workers)
            self._tell("stopped")
            raise
        except BaseException:
            self.summary.stopped = "error"
            await self._end(workers)
            self._tell("stopped")
            raise
        await self._end(workers)
        self._tell("finished" if self.summary.stopped is None else "stopped")

    async def _watch(self, workers: list[asyncio.Task[None]]) -> None:
        """Until all are done, one has failed, or time is up."""
        left: set[asyncio.Task[None]] = set(workers)
        while left:
            timeout = None if self.deadline is None else self.began + self.deadline - time.monotonic()
            if timeout is not None and timeout <= 0:
                self.summary.stopped = "deadline"
                return
            ended, left = await asyncio.wait(left, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
            for task in ended:
                task.result()

    async def _end(self, workers: list[asyncio.Task[None]]) -> None:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self.summary.seconds = time.monotonic() - self.began
        if self.run_id is None:
            return
        status = "incomplete" if not self.summary.complete else "running" if self.more else "complete"
        if self.summary.stopped == "interrupted":
            status = "interrupted"
        run_id, summary = self.run_id, self.summary.to_dict()
        written = asyncio.get_running_loop().run_in_executor(
            self.store.writer, lambda: self.store.finish_run(run_id, status, summary)
        )
        try:
            await asyncio.shield(written)
        except ToolparseError:
            # Where the store has just failed, that first failure is the one to report.
            if self.summary.stopped != "error":
                raise

    async def _work(self, lane: _Lane) -> None:
        while lane.waiting and self.summary.stopped is None:
            request, key = lane.waiting.popleft()
            queued = self.began
            for attempt in range(1, request.model.max_retries + 2):
                if not await self._admitted(lane, request):
                    return
                completion = await self._ask(request, key, attempt, round(time.monotonic() - queued, 6))
                if completion.ok:
                    self.summary.done += 1
                    self._tell("recorded", request, completion)
                    break
                wait = self._wait_before_retry(lane, completion, attempt, request.model)
                if wait is None:
                    self.summary.failed += 1
                    self.summary.failures[completion.error_kind or "other"] += 1
                    self._tell("failed", request, completion)
                    break
                self.summary.retries += 1
                self._tell("retry", request, completion)
                queued = time.monotonic()
                await asyncio.sleep(wait)

    async def _admitted(self, lane: _Lane, request: Request) -> bool:
        """Waits until this request may be sent; False where a limit would be passed."""
        while True:
            if self.summary.stopped is not None:
                return False
            closed = lane.closed_until - time.monotonic()
            if closed > 0:
                await asyncio.sleep(closed)
                continue
            if self.max_calls is not None and self.summary.calls >= self.max_calls:
                self.summary.stopped = "max_calls"
                return False
            if self.max_cost is not None:
                # Without a price there is a max_calls, see `_prepared`.
                cost = estimate_cost(request) or 0.0
                if self.summary.cost + self.reserved + cost > self.max_cost:
                    if self.in_flight == 0:
                        self.summary.stopped = "max_cost"
                        return False
                    self.changed.clear()
                    await self.changed.wait()
                    continue
            return True

    async def _ask(self, request: Request, key: str, attempt: int, queue_wait: float) -> Completion:
        assert self.complete is not None  # noqa: S101 - set before there is anything to ask
        reserve = (estimate_cost(request) or 0.0) if self.max_cost is not None else 0.0
        self.summary.calls += 1
        self.in_flight += 1
        self.reserved += reserve
        self._tell("asked", request)
        try:
            try:
                completion = await self.complete(request)
            except ToolparseError:
                raise
            except Exception as e:  # a completion function of somebody else's
                completion = Completion(
                    key=key,
                    status="error",
                    error_kind=error_kind(e),
                    error_message=error_message(e, request.model.secrets),
                    request=request.to_dict(),
                    stream=request.stream,
                )
            completion = dataclasses.replace(completion, key=key, attempt=attempt, queue_wait=queue_wait)
            if completion.cost is not None:
                self.summary.cost += completion.cost
            elif completion.ok:
                self.summary.unpriced += 1
            elif completion.error_kind in ("timeout", "cut_stream"):
                self.summary.cost += reserve  # the provider may well charge for it
            await self._record(completion)
        finally:
            self.in_flight -= 1
            self.reserved -= reserve
            self.changed.set()
        return completion

    async def _record(self, completion: Completion) -> None:
        """Written even where the run is being cancelled: an answer that has arrived is never lost."""
        written = asyncio.get_running_loop().run_in_executor(
            self.store.writer, self.store.record, completion, self.run_id
        )
        try:
            await asyncio.shield(written)
        except asyncio.CancelledError:
            await written
            if completion.ok:
                self.summary.done += 1
            raise

    def _wait_before_retry(self, lane: _Lane, completion: Completion, attempt: int, model: Model) -> float | None:
        """Seconds to wait before asking again, or None for not asking again."""
        if completion.error_kind not in RETRIABLE or attempt > model.max_retries or completion.fidelity == "replayed":
            return None
        wait: float = min(self.backoff * 2.0 ** (attempt - 1), 30.0) * random.uniform(0.5, 1.0)  # noqa: S311
        asked = completion.retry_after
        if asked is not None:
            if asked > _LONGEST_WAIT:
                return None
            wait = max(asked, wait)
        if completion.error_kind == "rate_limited":
            # All connections to this endpoint wait, not only the one that was told.
            lane.closed_until = max(lane.closed_until, time.monotonic() + (asked if asked is not None else wait))
        return wait

    def _tell(self, kind: EventKind, request: Request | None = None, completion: Completion | None = None) -> None:
        self.summary.seconds = time.monotonic() - self.began
        if self.progress is not None:
            self.progress.show_summary(
                done=self.summary.cached + self.summary.done,
                failed=self.summary.failed,
                cost=self.summary.cost,
                final=kind in ("stopped", "finished"),
            )
        if self.on_event is None:
            return
        try:
            self.on_event(RunEvent(kind, self.summary, request, completion))
        except Exception as e:
            self.on_event = None
            warnings.warn(f"on_event failed and is not called again: {type(e).__name__}: {e}", stacklevel=2)


def _limit(model: Model) -> int:
    return 1 if is_local(model.name) else int(model.max_connections)


__all__ = ["Complete", "RunEvent", "Summary", "estimate_cost", "estimate_tokens", "run_requests", "run_sync"]
