"""Many requests, asked with care: only the missing part, no more at once than an endpoint takes,
within limits.

Everything is recorded, failures with their class, before anybody is told of it. Stopping at any
moment (a limit, an interrupt, a full disk) keeps the record. The same call later asks only for the
rest.
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..core.errors import StoreError, ToolparseError
from .budget import Budget
from .claims import Claims
from .complete import complete as ask_litellm
from .exchange.request import Questions, questions_of
from .exchange.summary import GivenUp, RunEvent, Summary
from .exchange.types import Completion, Model, Request
from .failures import error_kind, error_message
from .lane import Lane, Question
from .loop import run_sync
from .progress import Progress, Reporter
from .recorder import Recorder
from .routes import check_model, check_prices, estimate_cost, estimate_tokens

if TYPE_CHECKING:
    from .store.store import Store  # the pool loads without SQLAlchemy

# How the pool works. Questions are sorted into lanes, one an endpoint, as keys; a request is made
# when its turn comes. Each lane has workers, as many as it may have calls at once; a worker takes a
# question, asks until there is an answer or none will come, and takes the next. Lanes of a server
# that holds one model at a time stand in one queue (a turn), of which only the first has workers.
# When a lane's window grows, a worker that has just finished starts others; when it shrinks,
# workers end by themselves. Everything runs in one event loop, so the counts need no lock.
#
# Invariants: an answer is on disk before `on_event` or the summary knows it; a question is waiting
# in its lane, with a worker, settled, or left open because its model was given up; the run ends
# when the last worker has ended, whatever ended it. Cost: constant for each question beside the
# call and the write; memory for the keys, and for the requests under way.

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
    met: Collection[str] = (),
) -> Summary:
    """Ask the questions that the store does not know yet and record every answer and every failure.

    The same question is asked once, however often it stands in `requests`. Of `Questions` only
    those under way are in memory. Each model gets `Model.max_connections` at a time. An error that
    may go away is tried again `Model.max_retries` times, waiting `backoff` seconds, doubled each
    time, with jitter, or as long as the provider asks. A model that fails `give_up_after` times in
    a row (None: never), by a refused key or an unknown name, or because no one answers, not even
    after some pauses, is asked no more: its other questions stay open, `Summary.given_up` says why,
    and the other models go on. Where a model refuses the same parameter three times with no answer
    to it in between, its other questions that send it stay open in the same way. The pauses are 1,
    2, 4, 8 and 16 s, and only the first two where no connection ever came about, unless the alias
    is in `met`: models reached earlier in this run.
    `max_cost` (US dollars, calls in flight are reserved), `max_calls` (retries included) and
    `deadline` (seconds) stop the run before they are passed. `fresh` asks
    again the questions that this run has not asked itself, `max_age` answers older than that
    (seconds). `progress` None shows a bar where someone can see it. `more` says that further
    requests of this run follow, so that it is not marked complete.

    Cancelling it stops cleanly: every answer so far is recorded, the run is marked interrupted, and
    a "stopped" event carries the summary. Raises StoreError if the store fails, UnknownName or
    SetupError before anything is sent, MissingRecording from a replay, BadOptions for
    `max_cost` with a model without a known price.
    """
    questions = questions_of(requests)
    summary = Summary(run_id=run_id, planned=len(questions))
    pool = _Pool(
        store=store,
        run_id=run_id,
        more=more,
        questions=questions,
        summary=summary,
        budget=Budget(summary, max_cost, max_calls),
        reporter=Reporter(summary, on_event),
        recorder=Recorder(store, run_id),
        deadline=deadline,
        backoff=backoff,
        give_up_after=give_up_after,
        met=met,
    )
    loop = asyncio.get_running_loop()
    done = await loop.run_in_executor(
        store.writer,
        lambda: store.done_keys(questions, run_id=run_id, fresh=fresh, max_age=max_age),
    )
    summary.cached = len(done)

    if summary.missing:
        # A recording costs nothing, and what is asked afresh is asked by each run for itself.
        shared = not fresh and not getattr(complete, "free", False)
        pool.claims = Claims(store, run_id, shared, pool.note_settled, max_age)
    complete_checked: Complete | None = None
    if summary.missing:
        pool.add(key for key in questions if key not in done)
        # In a thread: importing litellm and looking up prices takes seconds, in which the loop goes
        # on.
        complete_checked = await loop.run_in_executor(None, pool.checked, complete)
    del done  # as many keys as the plan has, and of no use while it runs
    with Progress(summary.planned, initial=summary.cached, show=progress) as bar:
        pool.reporter.progress = bar
        await pool.run(complete_checked)
    return summary


@dataclass(slots=True)
class _Pool:
    store: Store
    run_id: str | None
    more: bool
    questions: Questions
    summary: Summary
    budget: Budget
    reporter: Reporter
    recorder: Recorder
    deadline: float | None
    backoff: float
    give_up_after: int | None
    met: Collection[str] = ()
    turns: list[deque[Lane]] = field(default_factory=list)
    workers: set[asyncio.Task[None]] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BaseException | None = None
    claims: Claims | None = None

    # -- before the first call

    def add(self, keys: Iterable[str]) -> None:
        lanes: dict[tuple[str, str, str | None], Lane] = {}
        turns: dict[str, deque[Lane]] = {}
        # A plan of 100,000 keys has a handful of models: their lanes are found by identity.
        lane_of: dict[tuple[str, int], Lane] = {}
        for key in keys:
            alias, model = self.questions.route(key)
            lane = lane_of.get((alias, id(model)))
            if lane is None:
                lane = lane_of[alias, id(model)] = self._join(lanes, turns, alias, model)
            claimed_first = self.claims is not None and self.claims.shared
            (lane.unclaimed if claimed_first else lane.waiting).append(key)
        self.turns = list(turns.values())

    def _join(
        self,
        lanes: dict[tuple[str, str, str | None], Lane],
        turns: dict[str, deque[Lane]],
        alias: str,
        model: Model,
    ) -> Lane:
        # `lanes` are by endpoint, `turns` by what may be asked at the same time: mostly the same.
        # Where a key is refused, or a quota is used up, another key may still do.
        name = (model.name, model.endpoint, model.api_key)
        lane = lanes.get(name)
        if lane is None:
            lane = lanes[name] = Lane.of(model, self.give_up_after)
            turn = model.endpoint if model.swaps else repr(name)
            turns.setdefault(turn, deque()).append(lane)
        lane.join(alias, model)
        lane.breaker.met |= alias in self.met
        return lane

    def checked(self, complete: Complete | None) -> Complete:
        # A function may have `check(keys)`, which raises for questions it cannot answer, and
        # `free`, which is True if no limit on cost applies.
        lanes = [lane for turn in self.turns for lane in turn]
        models = [pair for lane in lanes for pair in lane.aliases.items()]
        if complete is None:
            for _, model in models:
                check_model(model)
            complete = ask_litellm
        check = getattr(complete, "check", None)
        if check is not None:
            check(key for lane in lanes for key in (*lane.waiting, *lane.unclaimed))

        if getattr(complete, "free", False):
            self.budget.max_cost = None
        if self.budget.needs_prices:
            check_prices(dict(models))
        return complete

    # -- the run as a whole

    async def run(self, complete: Complete | None) -> None:
        # complete: None if there is nothing to ask. An error that stopped the run is raised once
        # everything that was answered is recorded.
        try:
            if complete is not None:
                if self.claims is not None:
                    await self.claims.enter()
                for turn in self.turns:
                    self._start_next(turn, complete)
            await self._watch()
        except BaseException as e:
            interrupted = isinstance(e, asyncio.CancelledError)
            self.summary.stopped = "interrupted" if interrupted else "error"
            await self._end()
            self.reporter.tell("stopped")
            if isinstance(e, StoreError):
                # By now all that was under way has tried to write what it has.
                raise self.store.explained(e) from None
            raise
        await self._end()
        self.reporter.tell("finished" if self.summary.stopped is None else "stopped")

    def _start_next(self, turn: deque[Lane], complete: Complete) -> None:
        # A lane that has had its turn does not come back: its questions are final or left open.
        if turn:
            self._staff(turn.popleft(), turn, complete)

    def _staff(self, lane: Lane, turn: deque[Lane], complete: Complete) -> None:
        # Called whenever the window may have grown or questions may have come back. Mostly there is
        # nothing to do.
        if lane.began is None:
            lane.began = time.monotonic()
        while lane.workers < min(lane.limit, lane.workers + lane.open):
            lane.workers += 1
            task = asyncio.create_task(self._work(lane, turn, complete))
            self.workers.add(task)
            task.add_done_callback(self._count_out)

    def _count_out(self, task: asyncio.Task[None]) -> None:
        # The first failure, or the last worker, ends the run. Later failures are consequences.
        self.workers.discard(task)
        failure = None if task.cancelled() else task.exception()
        self.failure = self.failure or failure
        if failure is not None or not self.workers:
            self.over.set()

    async def _watch(self) -> None:
        # A deadline is not a failure: workers are then stopped as by a limit.
        if self.workers:
            limit = None if self.deadline is None else self.deadline - self.reporter.seconds
            try:
                await asyncio.wait_for(self.over.wait(), limit)
            except TimeoutError:
                self.summary.stopped = "deadline"
        if self.failure is not None:
            raise self.failure

    async def _end(self) -> None:
        # A second cancellation must not keep the status from being written.
        workers = list(self.workers)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self.summary.seconds = self.reporter.seconds
        try:
            await asyncio.shield(asyncio.ensure_future(self._sign_off()))
        except ToolparseError:
            # Where the store has just failed, that first failure is the one to report.
            if self.summary.stopped != "error":
                raise

    async def _sign_off(self) -> None:
        status, summary = self._status(), self.summary.to_dict()
        if self.claims is not None:
            # At once: where the store fails below, the lease must not live as long as this process.
            self.claims.stop()
        if self.run_id is not None:
            await asyncio.get_running_loop().run_in_executor(
                self.store.writer, self.store.finish_run, self.run_id, status, summary
            )
        if self.claims is not None:
            await self.claims.leave(more=status == "running")

    def note_settled(self, done: int, failed: Mapping[str, str]) -> None:
        # By other processes.
        self.summary.cached += done
        self.summary.failed += len(failed)
        self.summary.failures.update(failed.values())
        self.reporter.show()

    def _status(self) -> str:
        # A run that others will continue with further requests stays "running".
        if self.summary.stopped == "interrupted":
            return "interrupted"
        if not self.summary.complete:
            return "incomplete"
        return "running" if self.more else "complete"

    # -- one worker

    async def _work(self, lane: Lane, turn: deque[Lane], complete: Complete) -> None:
        # A window that shrank, or an endpoint that went down, makes workers superfluous. They end
        # between two questions, never in the middle of one.
        try:
            while self.summary.stopped is None and lane.workers <= lane.limit:
                question = await self._take(lane)
                if question is None or not await self._settle(lane, question, complete):
                    break
                # An answer may have widened the window.
                self._staff(lane, turn, complete)
        finally:
            lane.workers -= 1
            if self._is_finished(lane):
                self._start_next(turn, complete)

    async def _take(self, lane: Lane) -> Question | None:
        while True:
            shared = self.claims is not None and self.claims.shared
            if self.claims is not None and shared:
                self.claims.recall(lane)
            question = lane.take(self.questions)
            if question is not None and lane.refuses(question.request):
                self._leave_out(lane, question)
                await asyncio.sleep(0)  # there may be 100,000 of them
                continue
            if question is not None or lane.over or self.claims is None or not shared:
                return question
            # One worker claims for all of them; the others find what it has won.
            async with lane.claiming:
                if self.summary.stopped is not None or lane.workers > lane.limit:
                    return None
                if lane.unclaimed and not lane.waiting and not lane.again and not lane.over:
                    await self.claims.fill(lane)

    def _is_finished(self, lane: Lane) -> bool:
        return lane.over and not lane.workers and self.summary.stopped is None

    async def _settle(self, lane: Lane, question: Question, complete: Complete) -> bool:
        # False if this worker should end.
        queued = time.monotonic() if question.attempts else self.reporter.started
        while True:
            if not await self._admitted(lane, question.request):
                self._put_back(lane, question)
                return False

            question.attempts += 1
            question.tries += 1
            queue_wait = round(time.monotonic() - queued, 6)
            completion = await self._ask(question, queue_wait, complete)
            queued = time.monotonic()
            wait = self._next_wait(lane, question, completion, queued)
            if wait is None:
                return True
            await asyncio.sleep(wait)

    async def _admitted(self, lane: Lane, request: Request) -> bool:
        # A pause of the lane comes first, because the limits may have changed by its end.
        # Everything is looked at again after each wait: meanwhile the run may have been stopped.
        while self.summary.stopped is None and not lane.breaker.lost:
            pause = lane.pause(time.monotonic())
            if pause > 0:
                await asyncio.sleep(pause)
                continue
            admitted = await self.budget.admits(request)
            if admitted is not None:
                return admitted
        return False

    def _put_back(self, lane: Lane, question: Question) -> None:
        # A question that was asked already is in the summary as a retry, so it has to end there,
        # too: as failed, if its model is given up now.
        lost = lane.breaker.lost
        if lost is None:
            lane.again.append(question)
        elif question.attempts:
            self._fail(question.request, None, lost)
        else:
            lane.waiting.append(question.key)

    def _next_wait(
        self, lane: Lane, question: Question, completion: Completion, now: float
    ) -> float | None:
        # Seconds until the question is asked again, None if this worker is done with it: it is
        # answered, has failed, or waits in its lane for the endpoint to come back.
        request = question.request
        was_lost = lane.breaker.lost
        lane.note(completion, now)
        refused = lane.note_params(request, completion)
        if completion.ok:
            self.summary.done += 1
            self.reporter.tell("recorded", request, completion)
            return None

        # From here on it is a failure: for good, to be asked again here, or to be asked by a probe.
        wait = lane.wait_before_retry(question, completion, self.backoff, now)
        if wait is None:
            lane.note_last_try(completion)
        if wait is None or lane.breaker.lost:
            self._fail(request, completion, completion.error_kind)
            if lane.breaker.lost and not was_lost:
                self._give_up(lane, request, completion)
            elif refused:
                self._refuse(lane, request, completion)
            return None

        self.summary.retries += 1
        self.reporter.tell("retry", request, completion)
        if lane.breaker.down:
            question.tries -= 1  # no fault of the question's
            lane.again.append(question)
            return None
        return wait

    def _fail(self, request: Request, completion: Completion | None, kind: str | None) -> None:
        # completion: None if the last attempt was recorded before, or there was none.
        self.summary.failed += 1
        self.summary.failures[kind or "other"] += 1
        if self.claims is not None:
            self.claims.end({request.key: kind or "other"})
        self.reporter.tell("failed", request, completion)

    def _give_up(self, lane: Lane, request: Request, completion: Completion) -> None:
        # Those that were asked already and were to be asked again have failed; the others are open.
        for question in lane.again:
            self._fail(question.request, None, lane.breaker.lost)
        lane.again.clear()

        if self.claims is not None:
            self.claims.end(dict.fromkeys(lane.waiting))
        open_keys = (*lane.waiting, *lane.unclaimed)
        not_asked = Counter(self.questions.route(key)[0] for key in open_keys)
        given_up = self.summary.given_up
        for alias in lane.aliases:
            left_out = given_up[alias]["not_asked"] if alias in given_up else 0
            given_up[alias] = _reason(lane, completion.error_message, not_asked[alias] + left_out)
        self.reporter.tell("given_up", request, completion)

    def _refuse(self, lane: Lane, request: Request, completion: Completion) -> None:
        # The lane's questions that send what this one was refused for are left out.
        name = completion.refused_param
        message = (
            f"it refuses {name}; plan again, which leaves out what was refused, or give "
            f"tp.Model(..., params={{'{name}': None}}): {completion.error_message or ''}"
        )
        lane.refused = _reason(lane, message)
        self.summary.given_up.setdefault(request.model_alias, {**lane.refused})
        self.reporter.tell("given_up", request, completion)

    def _leave_out(self, lane: Lane, question: Question) -> None:
        if question.attempts:  # it stands in the summary as a retry, and has to end there, too
            self._fail(question.request, None, "bad_request")
            return
        if self.claims is not None:
            self.claims.end({question.key: None})
        if lane.refused is not None:
            alias = question.request.model_alias
            self.summary.given_up.setdefault(alias, {**lane.refused})["not_asked"] += 1

    # -- one call

    async def _ask(self, question: Question, queue_wait: float, complete: Complete) -> Completion:
        # Raises what only the run as a whole can answer: StoreError, MissingRecording, BadOptions.
        request = question.request
        reserve = self.budget.reserve(request)
        self.reporter.tell("asked", request)
        try:
            completion = await _completion_of(request, complete)
            completion = dataclasses.replace(
                completion,
                key=question.key,
                attempt=question.attempts,
                queue_wait=queue_wait,
            )
            self.budget.charge(completion, reserve)
            await self._record(completion)
        finally:
            self.budget.release(reserve)
        return completion

    async def _record(self, completion: Completion) -> None:
        # Written even where this worker is cancelled: the summary must count what is on disk, also
        # for the last answers of a run that is stopped.
        try:
            await self.recorder.record(completion)
        except asyncio.CancelledError:
            if completion.ok:
                self.summary.done += 1
            raise


def _reason(lane: Lane, message: str | None, not_asked: int = 0) -> GivenUp:
    return {
        "kind": lane.breaker.lost or "bad_request",
        "message": message or "",
        "not_asked": not_asked,
        "calls": lane.calls,
        "seconds": round(time.monotonic() - (lane.began or 0.0), 3),
    }


async def _completion_of(request: Request, complete: Complete) -> Completion:
    # An error of a caller's function is a failure of that question, not of the run.
    try:
        return await complete(request)
    except ToolparseError:
        raise
    except Exception as e:
        return Completion(
            key=request.key,
            status="error",
            error_kind=error_kind(e),
            error_message=error_message(e, request.secrets),
            request=request.to_dict(),
            stream=request.stream,
        )


__all__ = [
    "Complete",
    "RunEvent",
    "Summary",
    "estimate_cost",
    "estimate_tokens",
    "run_requests",
    "run_sync",
]
