"""Many requests, asked with care: only what is missing, no more at once than an endpoint takes, within limits.

Everything is recorded, failures with their class, before anybody is told of it. Stopping at any moment (a limit, an
interrupt, a full disk) keeps what is recorded; the same call later asks only for the rest.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
import warnings
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..errors import ToolparseError
from .failures import error_kind, error_message
from .lane import Lane, Question
from .loop import run_sync
from .progress import Progress
from .questions import Held, Questions, questions_of
from .recorder import Recorder
from .routes import check_model, check_prices, estimate_cost, estimate_tokens
from .summary import EventKind, GivenUp, RunEvent, Summary
from .types import Completion, Request

if TYPE_CHECKING:
    from .store import Store

Complete = Callable[[Request], Awaitable[Completion]]
GIVE_UP_AFTER = 10
"""Failures in a row that say that a model cannot be reached or will not answer."""


async def run_requests(
    requests: Iterable[Request] | Questions,
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
    give_up_after: int | None = GIVE_UP_AFTER,
    more: bool = False,
) -> Summary:
    """Asks what the store does not know yet and records every answer and every failure.

    The same question is asked once, however often it stands in `requests`; of `Questions` only those under way are in
    memory. Each model gets `Model.max_connections` at a time; what may go away is tried again `Model.max_retries`
    times, waiting `backoff` seconds, doubled each time, with jitter, or as long as the provider asks. A model that
    fails `give_up_after` times in a row (None: never), by a refused key or an unknown name, or because nobody answers,
    not even after some pauses, is asked no more: its other questions stay open, `Summary.given_up` says why, and the
    other models go on. `max_cost` (US dollars; calls in flight are reserved), `max_calls` (retries included) and
    `deadline` (seconds) stop the run before they are passed. `fresh` asks again what this run has not asked itself,
    `max_age` what is older (seconds). `progress` None shows a bar where somebody can see it. `more` says that further
    requests of this run follow, so that it is not marked complete.

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
        give_up_after=give_up_after,
        more=more,
    )
    pool.asked = asked = questions_of(requests)
    summary = pool.summary
    summary.run_id = run_id
    summary.planned = len(asked)
    loop = asyncio.get_running_loop()
    known = await loop.run_in_executor(
        store.writer, lambda: store.done_keys(asked, run_id=run_id, fresh=fresh, max_age=max_age)
    )
    summary.cached = len(known)
    if summary.missing:
        pool.add(key for key in asked if key not in known)
        pool.complete = await loop.run_in_executor(None, pool.prepared, complete)
    del known
    with Progress(summary.planned, initial=summary.cached, show=progress) as pool.progress:
        await pool.run()
    return summary


@dataclass(slots=True)
class _Pool:
    store: Store
    run_id: str | None
    on_event: Callable[[RunEvent], None] | None
    max_cost: float | None
    max_calls: int | None
    deadline: float | None
    backoff: float
    give_up_after: int | None = GIVE_UP_AFTER
    more: bool = False
    asked: Questions = field(default_factory=lambda: Held(()))
    complete: Complete | None = None
    progress: Progress | None = None
    summary: Summary = field(default_factory=Summary)
    lanes: list[Lane] = field(default_factory=list)
    turns: list[deque[Lane]] = field(default_factory=list)
    reserved: float = 0.0
    in_flight: int = 0
    began: float = field(default_factory=time.monotonic)
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    workers: set[asyncio.Task[None]] = field(default_factory=set)
    failure: BaseException | None = None
    recorder: Recorder = field(init=False)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.store, self.run_id)

    def add(self, keys: Iterable[str]) -> None:
        """Questions into the lanes of their endpoints; lanes of a server that swaps models take turns."""
        lanes: dict[tuple[str, str, str | None], Lane] = {}
        turns: dict[str, deque[Lane]] = {}
        joined: dict[tuple[str, int], Lane] = {}
        for key in keys:
            alias, model = self.asked.route(key)
            lane = joined.get((alias, id(model)))
            if lane is None:
                # Where a key is refused, or a quota is used up, another key may still do.
                name = (model.name, model.endpoint, model.api_key)
                lane = lanes.get(name)
                if lane is None:
                    lane = lanes[name] = Lane.of(model, self.give_up_after)
                    turns.setdefault(model.endpoint if model.swaps else repr(name), deque()).append(lane)
                lane.join(alias, model)
                joined[alias, id(model)] = lane
            lane.waiting.append(key)
        self.lanes = list(lanes.values())
        self.turns = list(turns.values())

    def prepared(self, complete: Complete | None) -> Complete:
        """Whatever can be known to fail is found before the first call."""
        if complete is None:
            from .complete import complete as ask

            for lane in self.lanes:
                for model in lane.aliases.values():
                    check_model(model)
            complete = ask
        check = getattr(complete, "check", None)
        if check is not None:
            check(key for lane in self.lanes for key in lane.waiting)
        if getattr(complete, "free", False):
            self.max_cost = None
        if self.max_cost is not None and self.max_calls is None:
            check_prices({alias: model for lane in self.lanes for alias, model in lane.aliases.items()})
        return complete

    async def run(self) -> None:
        for turn in self.turns:
            self._start_next(turn)
        try:
            await self._watch()
        except asyncio.CancelledError:
            self.summary.stopped = "interrupted"
            await self._end()
            self._tell("stopped")
            raise
        except BaseException:
            self.summary.stopped = "error"
            await self._end()
            self._tell("stopped")
            raise
        await self._end()
        self._tell("finished" if self.summary.stopped is None else "stopped")

    def _start_next(self, turn: deque[Lane]) -> None:
        if turn:
            self._staff(turn.popleft(), turn)

    def _staff(self, lane: Lane, turn: deque[Lane]) -> None:
        """As many workers as the lane may have and has work for."""
        while lane.workers < min(lane.limit, lane.workers + len(lane.waiting) + len(lane.again)):
            lane.workers += 1
            task = asyncio.create_task(self._work(lane, turn))
            self.workers.add(task)
            task.add_done_callback(self._left)

    def _left(self, task: asyncio.Task[None]) -> None:
        self.workers.discard(task)
        failure = None if task.cancelled() else task.exception()
        self.failure = self.failure or failure
        if failure is not None or not self.workers:
            self.over.set()

    async def _watch(self) -> None:
        """Until all are done, one has failed, or time is up."""
        if self.workers:
            left = None if self.deadline is None else self.began + self.deadline - time.monotonic()
            try:
                await asyncio.wait_for(self.over.wait(), left)
            except TimeoutError:
                self.summary.stopped = "deadline"
        if self.failure is not None:
            raise self.failure

    async def _end(self) -> None:
        workers = list(self.workers)
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

    async def _work(self, lane: Lane, turn: deque[Lane]) -> None:
        try:
            while self.summary.stopped is None and lane.workers <= lane.limit:
                question = lane.take(self.asked)
                if question is None or not await self._settle(lane, question):
                    break
                self._staff(lane, turn)
        finally:
            lane.workers -= 1
            if lane.over and not lane.workers and self.summary.stopped is None:
                self._start_next(turn)

    async def _settle(self, lane: Lane, question: Question) -> bool:
        """Asks until there is an answer or none will come. False where this worker should end."""
        request = question.request
        queued = time.monotonic() if question.attempts else self.began
        while True:
            if not await self._admitted(lane, request):
                if question.attempts and lane.breaker.lost:
                    self._fail(request, None, lane.breaker.lost)
                elif not lane.breaker.lost:
                    lane.again.append(question)
                else:
                    lane.waiting.append(question.key)
                return False
            question.attempts += 1
            question.tries += 1
            waited = round(time.monotonic() - queued, 6)
            completion = await self._ask(question, waited)
            now = time.monotonic()
            lost = lane.breaker.lost
            lane.note(completion, now)
            if completion.ok:
                self.summary.done += 1
                self._tell("recorded", request, completion)
                return True
            wait = lane.wait_before_retry(question, completion, self.backoff, now)
            if wait is None and completion.error_kind == "rate_limited" and completion.fidelity != "replayed":
                lane.breaker.exhausted()
            if wait is None or lane.breaker.lost:
                self._fail(request, completion, completion.error_kind)
                if lane.breaker.lost and not lost:
                    self._give_up(lane, request, completion)
                return True
            self.summary.retries += 1
            self._tell("retry", request, completion)
            if lane.breaker.down:
                question.tries -= 1  # no fault of the question's
                lane.again.append(question)
                return True
            queued = now
            await asyncio.sleep(wait)

    def _fail(self, request: Request, completion: Completion | None, kind: str | None) -> None:
        self.summary.failed += 1
        self.summary.failures[kind or "other"] += 1
        self._tell("failed", request, completion)

    def _give_up(self, lane: Lane, request: Request, completion: Completion) -> None:
        for question in lane.again:  # asked already, and not to be asked again
            self._fail(question.request, None, lane.breaker.lost)
        lane.again.clear()
        message = completion.error_message or ""
        counts = Counter(self.asked.route(key)[0] for key in lane.waiting)
        for alias in lane.aliases:
            why: GivenUp = {"kind": str(lane.breaker.lost), "message": message, "not_asked": counts[alias]}
            self.summary.given_up[alias] = why
        self._tell("given_up", request, completion)

    async def _admitted(self, lane: Lane, request: Request) -> bool:
        """Waits until this request may be sent; False where a limit would be passed, or its model was given up."""
        while True:
            if self.summary.stopped is not None or lane.breaker.lost:
                return False
            pause = lane.pause(time.monotonic())
            if pause > 0:
                await asyncio.sleep(pause)
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

    async def _ask(self, question: Question, queue_wait: float) -> Completion:
        key, request, attempt = question.key, question.request, question.attempts
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
            if completion.fidelity == "replayed":
                pass  # what it cost was paid when it was recorded
            elif completion.cost is not None:
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
        try:
            await self.recorder.record(completion)
        except asyncio.CancelledError:
            if completion.ok:
                self.summary.done += 1
            raise

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


__all__ = ["Complete", "RunEvent", "Summary", "estimate_cost", "estimate_tokens", "run_requests", "run_sync"]
