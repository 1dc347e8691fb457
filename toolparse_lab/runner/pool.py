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
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Unpack

from ..core.errors import StoreError, ToolparseError
from .complete import complete as ask_litellm
from .exchange.summary import GivenUp, Summary
from .exchange.types import Completion, Questions, Request, questions_of
from .failures import error_kind, error_message
from .lane import Lane, Question
from .ledger import Claims, Complete, Recorder, RunLimits, check_limits
from .progress import Progress, Reporter
from .routes import check_model, check_prices, estimate_cost

if TYPE_CHECKING:
    from .store.store import Store  # the pool loads without SQLAlchemy

# How the pool works. Questions are sorted into lanes, one an endpoint, as keys; a request is made
# when its turn comes. Each lane has workers, as many as it may have calls at once; a worker takes a
# question, asks until there is an answer or none will come, and takes the next. Lanes of a server
# that has one model at a time wait in one queue (a turn), of which only the first has workers.
# When a lane's window grows, a worker that has just finished starts others; when it shrinks,
# workers end by themselves. Everything runs in one event loop, so the counts need no lock.
#
# Invariants: an answer is on disk before `on_event` or the summary knows it; a question is waiting
# in its lane, with a worker, settled, or left open because its model was given up; the run ends
# when the last worker has ended, whatever ended it. Cost: constant for each question next to the
# call and the write; memory for the keys, and for the requests under way.

GIVE_UP_AFTER = 10
"""Failures in a row that say that a model cannot be reached or will not answer."""


async def run_requests(
    requests: Iterable[Request] | Questions,
    store: Store,
    *,
    run_id: str | None = None,
    more: bool = False,
    met: Collection[str] = (),
    **limits: Unpack[RunLimits],
) -> Summary:
    """Ask the questions that the store does not know yet and record every answer and every failure.

    The same question is asked once, however often it is in `requests`. Of `Questions` only
    those under way are in memory. Each model gets `Model.max_connections` at a time. An error that
    may go away is tried again `Model.max_retries` times, waiting `backoff` seconds, doubled each
    time, with jitter, or as long as the provider asks. A model that fails `give_up_after` times in
    a row, by a refused key or an unknown name, or because no one answers, not even after some
    pauses, is asked no more: its other questions stay open, `Summary.given_up` says why, and the
    other models go on. Where a model refuses the same parameter three times with no answer to it in
    between, its other questions that send it stay open in the same way. The pauses are 1, 2, 4, 8
    and 16 s, and only the first two where no connection ever came about, unless the alias is in
    `met`: models reached earlier in this run. `more` says that further requests of this run follow,
    so that it is not marked complete.

    Cancelling it stops cleanly: every answer so far is recorded, the run is marked interrupted, and
    a "stopped" event carries the summary. Raises StoreError if the store fails, UnknownName or
    SetupError before anything is sent, MissingRecording from a replay, BadOptions for a wrong limit
    and for `max_cost` with a model without a known price.
    """
    check_limits(limits)
    fresh, max_age = limits.get("fresh", False), limits.get("max_age")
    complete = limits.get("complete")
    questions = questions_of(requests)
    summary = Summary(run_id=run_id, planned=len(questions))
    reporter = Reporter(summary, limits.get("on_event"))
    loop = asyncio.get_running_loop()
    done = await loop.run_in_executor(
        store.writer,
        lambda: store.done_keys(questions, run_id=run_id, fresh=fresh, max_age=max_age),
    )
    summary.cached = len(done)
    pool = _Pool(
        store=store,
        run_id=run_id,
        more=more,
        questions=questions,
        summary=summary,
        budget=_Budget(summary, limits.get("max_cost"), limits.get("max_calls")),
        reporter=reporter,
        recorder=Recorder(store, run_id),
        # A recording costs nothing, and what is asked afresh is asked by each run for itself.
        claims=Claims(store, run_id, not (fresh or getattr(complete, "free", False)), max_age),
        limits=limits,
        met=met,
    )
    if summary.missing:
        pool.add(key for key in questions if key not in done)
        # In a thread: importing litellm and looking up prices takes seconds, in which the loop goes
        # on.
        pool.complete = await loop.run_in_executor(None, pool.checked, complete)
    del done  # as many keys as the plan has, and of no use while it runs
    with Progress(summary.planned, initial=summary.cached, show=limits.get("progress")) as bar:
        reporter.progress = bar if bar.has_bar else None
        await pool.run()
    return summary


# How limits are kept. None is ever passed, so a call may go out only if the run could still pay for
# it: what was spent, what calls in flight may cost at most, and this call's own estimate. A request
# that does not fit waits as long as calls are in flight, because most of them turn out cheaper than
# reserved; with none in flight nothing will change any more, and the run stops. Invariant: spent +
# reserved <= max_cost, as far as the estimates are true.


@dataclass(slots=True)
class _Budget:
    summary: Summary
    max_cost: float | None = None
    max_calls: int | None = None
    reserved: float = 0.0  # US dollars for calls in flight
    in_flight: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def admits(self, request: Request) -> bool | None:
        # False stops the run, and `summary.stopped` names the limit. None: ask again, a call has
        # ended meanwhile.
        if self.max_calls is not None and self.summary.calls >= self.max_calls:
            self.summary.stopped = "max_calls"
            return False
        if self.max_cost is None:
            return True
        # Without a known price 0, in which case there is a max_calls (see `checked`).
        cost = estimate_cost(request) or 0.0
        if self.summary.cost + self.reserved + cost <= self.max_cost:
            return True
        if self.in_flight == 0:
            self.summary.stopped = "max_cost"
            return False
        self.changed.clear()
        await self.changed.wait()
        return None

    def reserve(self, request: Request) -> float:
        # Count a call that goes out now, to be released with the number that comes back.
        cost = 0.0 if self.max_cost is None else estimate_cost(request) or 0.0
        self.summary.calls += 1
        self.in_flight += 1
        self.reserved += cost
        return cost

    def charge(self, completion: Completion, reserve: float) -> None:
        # Failures without a price are taken for free, apart from those in which the provider has
        # worked.
        if completion.fidelity == "replayed":
            return  # its price was paid when it was recorded
        if completion.cost is not None:
            self.summary.cost += completion.cost
        elif completion.ok:
            self.summary.unpriced += 1
        elif completion.error_kind in ("timeout", "cut_stream"):
            self.summary.cost += reserve  # the provider may well charge for it

    def release(self, reserve: float) -> None:
        self.in_flight -= 1
        self.reserved -= reserve
        self.changed.set()


@dataclass(slots=True)
class _Pool:
    store: Store
    run_id: str | None
    more: bool
    questions: Questions
    summary: Summary
    budget: _Budget
    reporter: Reporter
    recorder: Recorder
    claims: Claims
    limits: RunLimits
    met: Collection[str] = ()
    complete: Complete = ask_litellm
    turns: list[deque[Lane]] = field(default_factory=list)
    workers: set[asyncio.Task[None]] = field(default_factory=set)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    failure: BaseException | None = None

    # -- before the first call

    def add(self, keys: Iterable[str]) -> None:
        # Lanes are by endpoint, turns by what may be asked at the same time: mostly the same.
        lanes: dict[tuple[str, str, str | None], Lane] = {}
        turns: dict[str, deque[Lane]] = {}
        # A plan of 100,000 keys has a handful of models: their lanes are found by identity.
        lane_of: dict[tuple[str, int], Lane] = {}
        give_up_after = self.limits.get("give_up_after", GIVE_UP_AFTER)
        for key in keys:
            alias, model = self.questions.route(key)
            lane = lane_of.get((alias, id(model)))
            if lane is None:
                # Where a key is refused, or a quota is used up, another key may still do.
                name = (model.name, model.endpoint, model.api_key)
                if name not in lanes:
                    turn = turns.setdefault(model.endpoint if model.swaps else repr(name), deque())
                    lanes[name] = Lane.of(model, give_up_after, turn)
                    turn.append(lanes[name])
                lane = lane_of[alias, id(model)] = lanes[name]
                lane.join(alias, model)
                lane.breaker.met |= alias in self.met
            (lane.unclaimed if self.claims.shared else lane.waiting).append(key)
        self.turns = list(turns.values())

    def checked(self, complete: Complete | None) -> Complete:
        # A function may have `check(keys)`, which raises for questions it cannot answer, and
        # `free`, which is True if no limit on cost applies.
        lanes = [lane for turn in self.turns for lane in turn]
        models = {alias: model for lane in lanes for alias, model in lane.aliases.items()}
        if complete is None:
            for lane in lanes:
                for model in lane.aliases.values():
                    check_model(model)
            complete = ask_litellm
        check = getattr(complete, "check", None)
        if check is not None:
            check(key for lane in lanes for key in (*lane.waiting, *lane.unclaimed))

        budget = self.budget
        if getattr(complete, "free", False):
            budget.max_cost = None
        # `max_calls` also bounds what cannot be priced.
        if budget.max_cost is not None and budget.max_calls is None:
            check_prices(models)
        return complete

    # -- the run as a whole

    async def run(self) -> None:
        # An error that stopped the run is raised once everything that was answered is recorded.
        try:
            if self.turns:  # else there is nothing to ask
                await self.claims.enter(self.note_settled)
                for turn in self.turns:
                    self._staff(turn.popleft())
            if self.workers:
                deadline = self.limits.get("deadline")
                limit = None if deadline is None else deadline - self.reporter.seconds
                try:
                    await asyncio.wait_for(self.over.wait(), limit)
                except TimeoutError:  # no failure: workers are stopped as by a limit
                    self.summary.stopped = "deadline"
            if self.failure is not None:
                raise self.failure
        except BaseException as e:
            interrupted = isinstance(e, asyncio.CancelledError)
            if interrupted:
                self.store.hurry()
            self.summary.stopped = "interrupted" if interrupted else "error"
            await self._end()
            self.reporter.tell("stopped")
            if isinstance(e, StoreError):
                # By now all that was under way has tried to write what it has.
                raise self.store.explained(e) from None
            raise
        await self._end()
        self.reporter.tell("finished" if self.summary.stopped is None else "stopped")

    def _staff(self, lane: Lane) -> None:
        # Called whenever the window may have grown or questions may have come back. Mostly there is
        # nothing to do.
        if lane.began is None:
            lane.began = time.monotonic()
        while lane.workers < min(lane.limit, lane.workers + lane.open):
            lane.workers += 1
            task = asyncio.create_task(self._work(lane))
            self.workers.add(task)
            task.add_done_callback(self._count_out)

    def _count_out(self, task: asyncio.Task[None]) -> None:
        # The first failure, or the last worker, ends the run. Later failures are consequences.
        self.workers.discard(task)
        failure = None if task.cancelled() else task.exception()
        self.failure = self.failure or failure
        if failure is not None or not self.workers:
            self.over.set()

    async def _end(self) -> None:
        workers = list(self.workers)
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        self.summary.seconds = self.reporter.seconds
        try:
            # A second cancellation must not keep the status from being written.
            await asyncio.shield(asyncio.ensure_future(self._sign_off()))
        except ToolparseError:
            # Where the store has just failed, that first failure is the one to report.
            if self.summary.stopped != "error":
                raise

    async def _sign_off(self) -> None:
        if self.summary.stopped == "interrupted":
            status = "interrupted"
        elif not self.summary.complete:
            status = "incomplete"
        else:
            status = "running" if self.more else "complete"
        # At once: where the store fails below, the lease must not live as long as this process.
        self.claims.stop()
        if self.run_id is not None:
            summary = self.summary.to_dict()
            await asyncio.get_running_loop().run_in_executor(
                self.store.writer, self.store.finish_run, self.run_id, status, summary
            )
        await self.claims.leave(more=status == "running")

    def note_settled(self, done: int, failed: Mapping[str, str]) -> None:
        # By other processes.
        self.summary.cached += done
        self.summary.failed += len(failed)
        self.summary.failures.update(failed.values())
        self.reporter.show()

    # -- one worker

    async def _work(self, lane: Lane) -> None:
        # A window that shrank, or an endpoint that went down, makes workers superfluous. They end
        # between two questions, never in the middle of one.
        try:
            while self.summary.stopped is None and lane.workers <= lane.limit:
                question = await self._take(lane)
                if question is None or not await self._settle(lane, question):
                    break
                # An answer may have widened the window.
                self._staff(lane)
        finally:
            lane.workers -= 1
            # A lane that has had its turn does not come back: its questions are final or left open.
            if lane.turn and lane.over and not lane.workers and self.summary.stopped is None:
                self._staff(lane.turn.popleft())

    async def _take(self, lane: Lane) -> Question | None:
        while True:
            if self.claims.shared:
                self.claims.recall(lane)
            question = lane.take(self.questions)
            if question is not None and lane.refused and lane.refuses(question.request):
                if question.attempts:  # it is in the summary as a retry, and has to end there, too
                    self._fail(question.request, None, "bad_request")
                else:
                    self.claims.end({question.key: None})
                    alias = question.request.model_alias
                    given_up = self.summary.given_up.setdefault(alias, {**lane.refused})
                    given_up["not_asked"] += 1
                await asyncio.sleep(0)  # there may be 100,000 of them
                continue
            if question is not None or lane.over or not self.claims.shared:
                return question
            # One worker claims for all of them; the others find what it has won.
            async with lane.claiming:
                if self.summary.stopped is not None or lane.workers > lane.limit:
                    return None
                if lane.unclaimed and not lane.waiting and not lane.again and not lane.over:
                    await self.claims.fill(lane)

    async def _settle(self, lane: Lane, question: Question) -> bool:
        # False if this worker should end.
        request = question.request
        queued = time.monotonic() if question.attempts else self.reporter.started
        while True:
            if not await self._admitted(lane, request):
                lost = lane.breaker.lost
                if lost is None:
                    lane.again.append(question)
                elif question.attempts:  # in the summary as a retry, and has to end there, too
                    self._fail(request, None, lost)
                else:
                    lane.waiting.append(question.key)
                return False

            question.attempts += 1
            question.tries += 1
            completion = await self._ask(question, round(time.monotonic() - queued, 6))
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

    async def _ask(self, question: Question, queue_wait: float) -> Completion:
        # Raises what only the run as a whole can answer: StoreError, MissingRecording, BadOptions.
        request = question.request
        reserve = self.budget.reserve(request)
        self.reporter.tell("asked", request)
        try:
            try:
                completion = await self.complete(request)
            except ToolparseError:
                raise
            except Exception as e:
                # An error of a caller's function is a failure of that question, not of the run.
                completion = Completion(
                    key=request.key,
                    status="error",
                    error_kind=error_kind(e),
                    error_message=error_message(e, request.secrets),
                    request=request.to_dict(),
                    stream=request.stream,
                )
            completion = dataclasses.replace(
                completion, key=question.key, attempt=question.attempts, queue_wait=queue_wait
            )
            self.budget.charge(completion, reserve)
            try:
                await self.recorder.record(completion)
            except asyncio.CancelledError:
                # Written all the same: the summary counts what is on disk, also the last answers of
                # a run that is stopped.
                if completion.ok:
                    self.summary.done += 1
                raise
        finally:
            self.budget.release(reserve)
        return completion

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
        wait = lane.wait_before_retry(question, completion, self.limits.get("backoff", 0.5), now)
        limited = completion.error_kind == "rate_limited" and completion.fidelity != "replayed"
        if wait is None and limited:
            lane.breaker.exhausted()
        if wait is None or lane.breaker.lost:
            self._fail(request, completion, completion.error_kind)
            if lane.breaker.lost and not was_lost:
                self._give_up(lane, completion.error_message)
            elif refused:
                # The lane's questions that send what this one was refused for are left out.
                name = completion.refused_param
                lane.refused = _reason(
                    lane,
                    f"it refuses {name}; plan again, which leaves out what was refused, or give "
                    f"tp.Model(..., params={{'{name}': None}}): {completion.error_message or ''}",
                )
                self.summary.given_up.setdefault(request.model_alias, {**lane.refused})
            else:
                return None
            self.reporter.tell("given_up", request, completion)
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
        self.claims.end({request.key: kind or "other"})
        self.reporter.tell("failed", request, completion)

    def _give_up(self, lane: Lane, message: str | None) -> None:
        # Those that were asked already and were to be asked again have failed; the others are open.
        for question in lane.again:
            self._fail(question.request, None, lane.breaker.lost)
        lane.again.clear()
        self.claims.end(dict.fromkeys(lane.waiting))
        open_keys = (*lane.waiting, *lane.unclaimed)
        not_asked = Counter(self.questions.route(key)[0] for key in open_keys)
        given_up = self.summary.given_up
        for alias in lane.aliases:
            left_out = given_up[alias]["not_asked"] if alias in given_up else 0
            given_up[alias] = _reason(lane, message, not_asked[alias] + left_out)


def _reason(lane: Lane, message: str | None, not_asked: int = 0) -> GivenUp:
    return {
        "kind": lane.breaker.lost or "bad_request",
        "message": message or "",
        "not_asked": not_asked,
        "calls": lane.calls,
        "seconds": round(time.monotonic() - (lane.began or 0.0), 3),
    }
