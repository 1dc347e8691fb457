import asyncio
import gc
import sqlite3
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.mock_openai import MockOpenAI
from tests.waiting import PATIENCE
from toolparse_lab.core.errors import BadOptions, StoreError, UnknownName
from toolparse_lab.experiments.plan import make_plan
from toolparse_lab.runner.exchange.summary import RunEvent, Summary
from toolparse_lab.runner.exchange.types import Completion, Model, PlanItem, Questions, Request
from toolparse_lab.runner.loop import run_sync
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.progress import Progress
from toolparse_lab.runner.routes import estimate_cost, estimate_tokens
from toolparse_lab.runner.store.store import Store

KEY = "planted-key-0123456789"
FREE = Model("openai/m", price=(0, 0), max_retries=0)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "runs.db") as opened:
        yield opened


def questions(n: int, model: Model = FREE, **params: Any) -> list[Request]:
    return [
        Request(model, "m", ({"role": "user", "content": f"say={i}"},), params) for i in range(n)
    ]


class Provider:
    """A completion function without a network: notes what was asked, and fails as told."""

    def __init__(
        self,
        *,
        seconds: float = 0.0,
        failures: dict[str, list[str]] | None = None,
        cost: float = 0.0,
    ) -> None:
        self.seconds = seconds
        self.failures = failures or {}
        self.cost = cost
        self.asked: list[str] = []
        self.times: list[float] = []
        self.running = self.most = 0
        self.retry_after: float | None = None

    async def __call__(self, request: Request) -> Completion:
        text = request.messages[-1]["content"]
        self.asked.append(text)
        self.times.append(time.monotonic())
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.running -= 1
        left = self.failures.get(text)
        if left:
            response = None if self.retry_after is None else {"retry_after": self.retry_after}
            return Completion(
                request.key, status="error", error_kind=left.pop(0), response=response
            )
        return Completion(request.key, text, cost=self.cost, latency=self.seconds)


def run(requests: list[Request] | Questions, store: Store, **options: Any) -> Summary:
    return run_sync(run_requests(requests, store, **{"backoff": 0.01, **options}))


def test_everything_is_asked_once_and_a_second_run_asks_nothing(store: Store) -> None:
    provider = Provider()
    asked = questions(30)
    run_id = store.begin_run({}, [PlanItem(str(n), "m", r.key) for n, r in enumerate(asked)])
    summary = run([*asked, *asked[:7]], store, run_id=run_id, complete=provider)
    assert (summary.planned, summary.done, summary.cached, summary.failed, summary.calls) == (
        30, 30, 0, 0, 30,
    )  # fmt: skip
    assert summary.complete
    assert Counter(provider.asked) == Counter(f"say={i}" for i in range(30))
    assert store.run(run_id).status == "complete"
    again = run(asked, store, run_id=run_id, complete=provider)
    assert (again.done, again.cached, again.calls, again.complete) == (0, 30, 0, True)
    assert len(provider.asked) == 30


def test_a_run_of_which_more_follows_stays_open(store: Store) -> None:
    asked = questions(2)
    run_id = store.begin_run({}, [PlanItem("c", "m", r.key) for r in asked])
    assert run(asked, store, run_id=run_id, complete=Provider(), more=True).complete
    assert store.run(run_id).status == "running"
    assert run(asked, store, run_id=run_id, complete=Provider()).complete
    assert store.run(run_id).status == "complete"


def test_fresh_asks_again_once(store: Store) -> None:
    provider = Provider()
    asked = questions(5)
    run(asked, store, complete=provider)
    run_id = store.begin_run({}, [PlanItem("c", "m", r.key) for r in asked])
    assert run(asked, store, run_id=run_id, complete=provider, fresh=True).calls == 5
    assert run(asked, store, run_id=run_id, complete=provider, fresh=True).calls == 0
    assert (
        run(asked, store, complete=provider, max_age=3600).calls == 5
    )  # these answers carry no time
    assert len(store.history(asked[0].key)) == 3


def test_no_endpoint_gets_more_than_it_takes_and_none_waits_for_another(store: Store) -> None:
    provider = Provider(seconds=0.05)
    run(questions(12, Model("openai/m", max_connections=3)), store, complete=provider)
    assert provider.most == 3
    both = Provider(seconds=0.05)
    two = [
        q
        for n in "ab"
        for q in questions(6, Model(f"openai/{n}", api_base="http://x/v1", max_connections=2))
    ]
    run(two, store, complete=both)
    assert both.most == 4
    local = Provider(seconds=0.01)
    run(questions(4, Model("toolparse-local/smollm2-135m")), store, complete=local)
    assert local.most == 1


def test_what_may_go_away_is_tried_again_and_every_try_is_recorded(store: Store) -> None:
    model = Model("openai/m", price=(0, 0), max_retries=2)
    failures = {
        "say=0": ["server_error", "timeout"],
        "say=1": ["connection"] * 9,
        "say=2": ["auth"],
    }
    events: list[tuple[str, str | None]] = []

    def note(event: RunEvent) -> None:
        kind = event.completion.error_kind if event.completion else None
        events.append((event.kind, kind))

    asked = questions(4, model)
    summary = run(asked, store, complete=Provider(failures=failures), on_event=note)
    assert (summary.done, summary.failed, summary.calls, summary.retries) == (
        2,
        2,
        3 + 3 + 1 + 1,
        4,
    )
    assert summary.failures == Counter(connection=1, auth=1)
    tries = [[(c.attempt, c.status, c.error_kind) for c in store.history(r.key)] for r in asked]
    assert tries == [
        [(1, "error", "server_error"), (2, "error", "timeout"), (3, "ok", None)],
        [(1, "error", "connection"), (2, "error", "connection"), (3, "error", "connection")],
        [(1, "error", "auth")],
        [(1, "ok", None)],
    ]
    assert Counter(kind for kind, _ in events) == Counter(
        asked=8, retry=4, recorded=2, failed=2, finished=1
    )
    assert events[-1] == ("finished", None)
    again = Provider()
    assert run(asked, store, complete=again).done == 2  # failures are asked again, answers are not
    assert sorted(again.asked) == ["say=1", "say=2"]


def test_a_provider_that_asks_to_wait_is_left_alone_by_all_connections(store: Store) -> None:
    provider = Provider(failures={"say=0": ["rate_limited"]}, seconds=0.02)
    provider.retry_after = 0.4
    summary = run(
        questions(12, Model("openai/m", max_connections=2, max_retries=1)), store, complete=provider
    )
    assert summary.done == 12
    failed = provider.times[0] + provider.seconds
    # The other connection may just be about to ask when the refusal comes.
    assert len([t for t in provider.times if failed < t < failed + 0.38]) <= 1
    assert len([t for t in provider.times if t >= failed + 0.38]) >= 9


def test_max_calls_is_never_passed(store: Store) -> None:
    provider = Provider(seconds=0.01, failures={"say=1": ["server_error"] * 9})
    model = Model("openai/m", max_retries=3, max_connections=4)
    summary = run(questions(20, model), store, complete=provider, max_calls=9)
    assert (summary.calls, summary.stopped, summary.complete) == (9, "max_calls", False)
    assert len(provider.asked) == 9


def test_max_cost_is_never_passed_with_calls_in_flight_reserved(store: Store) -> None:
    model = Model("openai/m", price=(0, 10_000), max_connections=8)  # one cent a token
    asked = questions(50, model, max_tokens=10)
    assert estimate_cost(asked[0]) == pytest.approx(0.1)
    provider = Provider(seconds=0.01, cost=0.1)
    summary = run(asked, store, complete=provider, max_cost=0.55)
    assert summary.stopped == "max_cost"
    assert summary.cost == pytest.approx(0.5)
    assert (len(provider.asked), provider.most) == (5, 5)
    # Answers that turn out cheaper free what was reserved for them, so more is asked.
    cheap = Provider(seconds=0.01, cost=0.01)
    assert run(asked[5:], store, complete=cheap, max_cost=0.3).calls > 15
    assert cheap.most <= 3


def test_a_timeout_may_have_been_charged(store: Store) -> None:
    model = Model("openai/m", price=(0, 10_000), max_retries=0, max_connections=1)
    provider = Provider(failures={f"say={i}": ["timeout"] for i in range(9)})
    summary = run(questions(9, model, max_tokens=10), store, complete=provider, max_cost=0.35)
    assert (summary.calls, summary.stopped) == (3, "max_cost")


def test_max_cost_needs_prices_before_anything_is_sent(store: Store) -> None:
    provider = Provider()
    unpriced = questions(3, Model("hosted_vllm/Qwen3-8B", api_base="http://127.0.0.1:1/v1"))
    with pytest.raises(BadOptions, match="no known price"):
        run(unpriced, store, complete=provider, max_cost=1)
    assert provider.asked == []
    summary = run(unpriced, store, complete=provider, max_cost=1, max_calls=2)
    assert (summary.calls, summary.stopped) == (2, "max_calls")


def test_estimates_are_rather_too_high() -> None:
    request = Request(FREE, "m", ({"role": "user", "content": "word " * 300},), {"max_tokens": 7})
    given, made = estimate_tokens(request)
    assert 300 <= given < 900
    assert made == 7
    assert estimate_tokens(Request(FREE, "m", (), {}))[1] == 1024
    assert (
        estimate_tokens(
            Request(FREE, "m", ({"role": "user", "content": "\ud800" + "日本" * 100},), {})
        )[0]
        >= 200
    )


def test_a_deadline_ends_the_run_and_keeps_what_there_is(store: Store) -> None:
    provider = Provider(seconds=0.1)
    model = Model("openai/m", max_connections=2)
    summary = run(questions(100, model), store, complete=provider, deadline=0.55)
    assert summary.stopped == "deadline"
    assert 1 <= summary.done < 100
    assert len(store.done_keys(r.key for r in questions(100, model))) == summary.done


def test_an_unknown_model_stops_the_run_before_anything_is_sent(store: Store) -> None:
    run_id = store.begin_run({}, [])
    with pytest.raises(UnknownName):
        run([*questions(2), *questions(2, Model("nobody-knows-this"))], store, run_id=run_id)
    assert store.done_keys(r.key for r in questions(2)) == set()


def test_a_completion_function_that_raises_is_a_recorded_failure(store: Store) -> None:
    async def broken(request: Request) -> Completion:
        raise ValueError(f"my key is {KEY}")

    asked = questions(2, Model("openai/m", api_key=KEY))
    summary = run(asked, store, complete=broken)
    assert summary.failures == Counter(other=2)
    (completion,) = store.history(asked[0].key)
    assert completion.error_message == "my key is [redacted]"


def test_a_store_that_fails_stops_the_run(store: Store) -> None:
    count = 0

    @sa.event.listens_for(store._engine, "begin")
    def _(connection: sa.Connection) -> None:
        nonlocal count
        writing = bool(connection.get_execution_options().get("toolparse_write"))
        count += writing
        if writing and count > 5:
            raise sqlite3.OperationalError("database or disk is full")

    provider = Provider(seconds=0.001)
    events: list[RunEvent] = []
    with pytest.raises(StoreError, match="full"):
        run(
            questions(40, Model("openai/m", max_connections=2)),
            store,
            complete=provider,
            on_event=events.append,
        )
    assert len(provider.asked) <= 5 * 2 + 2  # a write may take the answers of both connections
    assert events[-1].kind == "stopped"
    assert events[-1].summary.stopped == "error"
    assert (
        5
        <= len(store.done_keys(r.key for r in questions(40, Model("openai/m"))))
        == events[-1].summary.done
    )


def test_nobody_is_told_of_an_answer_before_it_is_on_disk(store: Store, tmp_path: Path) -> None:
    seen: list[bool] = []

    def look(event: RunEvent) -> None:
        if event.kind == "recorded" and event.request is not None:
            with Store(tmp_path / "runs.db") as other:
                seen.append(bool(other.done_keys([event.request.key])))

    run(questions(5), store, complete=Provider(), on_event=look)
    assert seen == [True] * 5


def test_a_listener_that_fails_is_dropped_and_the_run_goes_on(store: Store) -> None:
    def listen(event: RunEvent) -> None:
        raise RuntimeError("display is gone")

    with pytest.warns(UserWarning, match="display is gone"):
        assert run(questions(5), store, complete=Provider(), on_event=listen).done == 5


def test_cancelling_keeps_what_is_recorded_and_says_so(store: Store) -> None:
    provider = Provider(seconds=0.05)
    events: list[RunEvent] = []
    asked = questions(60, Model("openai/m", max_connections=3))
    run_id = store.begin_run({}, [PlanItem("c", "m", r.key) for r in asked])

    async def go() -> None:
        task = asyncio.create_task(
            run_requests(asked, store, run_id=run_id, complete=provider, on_event=events.append)
        )
        while len(store.done_keys(r.key for r in asked)) <= 3:
            await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(BaseException) as e:  # noqa: PT011 - two classes of that name
        run_sync(go())
    assert type(e.value).__name__ == "CancelledError"
    last = events[-1]
    assert (last.kind, last.summary.stopped) == ("stopped", "interrupted")
    assert last.summary.done == len(store.done_keys(r.key for r in asked)) > 3
    assert store.run(run_id).status == "interrupted"
    assert provider.running == 0
    assert run(asked, store, run_id=run_id, complete=provider).cached == last.summary.done
    assert store.run(run_id).status == "complete"


def test_an_answer_that_arrives_while_being_cancelled_is_kept(store: Store) -> None:
    slow, cancelled = threading.Event(), threading.Event()
    real = store.record_many

    def record(completions: Iterable[Completion], run_id: str | None = None) -> None:
        slow.set()
        assert cancelled.wait(PATIENCE)
        real(completions, run_id)

    store.record_many = record  # type: ignore[method-assign]
    asked = questions(1)
    events: list[RunEvent] = []

    async def go() -> None:
        task = asyncio.create_task(
            run_requests(asked, store, complete=Provider(), on_event=events.append)
        )
        while not slow.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        cancelled.set()
        await task

    with pytest.raises(BaseException):  # noqa: B017, PT011
        run_sync(go())
    assert events[-1].summary.done == 1
    assert store.done_keys([asked[0].key]) == {asked[0].key}


def test_the_summary_reads_as_a_sentence() -> None:
    summary = Summary(planned=10, cached=2, done=5, failed=1, calls=7, cost=0.5, stopped="max_cost")
    summary.failures["timeout"] = 1
    assert str(summary).startswith("5 recorded, 2 known before, 1 failed, 2 left to ask; 7 calls")
    assert str(summary).endswith("failures: timeout 1; stopped: max_cost")
    assert summary.to_dict()["failures"] == {"timeout": 1}


# -- over real HTTP
# ----------------------------------------------------------------------------------------------------


def test_a_run_over_http_retries_and_waits(store: Store) -> None:
    with MockOpenAI(latency=0.01) as mock:
        model = Model(
            "openai/m", api_base=mock.url, api_key=KEY, timeout=5, max_connections=4, price=(1, 2)
        )
        texts = [
            "say=a",
            "status=429 after=0.1 times=1 say=b",
            "status=500 times=1 say=c",
            "status=401 say=d",
            "reason say=e",
        ]
        asked = [
            Request(model, "m", ({"role": "user", "content": t},), {"max_tokens": 9}, (), stream)
            for t in texts
            for stream in (False, True)
        ]
        run_id = store.begin_run(
            {}, [PlanItem(str(n), "m", r.key) for n, r in enumerate(asked)], requests=asked
        )
        summary = run(asked, store, run_id=run_id, max_cost=1)
        assert (summary.done, summary.failed, summary.retries) == (8, 2, 2)
        assert summary.failures == Counter(auth=2)
        assert summary.cost == pytest.approx(8 * 20e-6)
        assert mock.most_running <= 4
        sent = len(mock.bodies)
        assert run(asked, store, run_id=run_id).calls == 2  # the two refused ones, asked again
        assert len(mock.bodies) == sent + 2
        found = {item.case_id: c for item, c in store.completions(run_id)}
        assert [found[str(n)].raw for n in range(4)] == ["a", "a", "b", "b"]
        assert found["0"].queue_wait is not None
        assert found["1"].ttft is not None


# -- synchronous calls
# ----------------------------------------------------------------------------------------


def test_run_sync_works_where_a_loop_is_running() -> None:
    async def inner() -> int:
        await asyncio.sleep(0)
        return 7

    async def outer() -> int:
        return run_sync(inner())  # as a notebook cell does

    assert asyncio.run(outer()) == 7


def test_run_sync_inside_its_own_loop_is_refused_rather_than_stuck() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return run_sync(inner())

    with pytest.raises(BadOptions, match="await"):
        run_sync(outer())


def test_run_sync_passes_errors_on() -> None:
    async def fails(e: Exception) -> None:
        raise e

    for e in (KeyError("x"), TimeoutError("of its own")):
        with pytest.raises(type(e)) as caught:
            run_sync(fails(e))
        assert caught.value is e


# -- progress
# ----------------------------------------------------------------------------------------------------


def test_the_bar_shows_what_was_asked_for_and_is_not_drawn_too_often(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Progress(1000, show=True) as bar:
        began = time.monotonic()
        for n in range(1000):
            bar.show_summary(Summary(done=n, failed=2, cost=0.25))
            time.sleep(0.0005)
        seconds = time.monotonic() - began
        bar.show_summary(Summary(done=998, failed=2, cost=0.5), final=True)
    drawn = [line for line in capsys.readouterr().err.split("\r") if "failed" in line]
    assert 2 <= len(drawn) <= seconds * 4 + 4
    assert "1000/1000" in drawn[-1]
    assert "failed 2, $0.5000" in drawn[-1]


def test_the_bar_is_off_where_nobody_can_see_it(
    capsys: pytest.CaptureFixture[str], store: Store
) -> None:
    run(questions(3), store, complete=Provider())
    run(questions(6), store, complete=Provider(), progress=False)
    assert capsys.readouterr().err == ""
    run(questions(9), store, complete=Provider(), progress=True)
    assert "9/9" in capsys.readouterr().err


# -- any number of questions
# -----------------------------------------------------------------------------------


class Made(Questions):
    """Questions that are made when they are looked up, and how many of them are alive at once."""

    def __init__(self, count: int) -> None:
        self.model = Model("openai/m", price=(0, 0), max_connections=4, max_retries=0)
        self.made = 0
        self.keys_ = {self._request(n).key: n for n in range(count)}

    def _request(self, n: int) -> Request:
        return Request(self.model, "m", ({"role": "user", "content": f"say={n}"},))

    def __getitem__(self, key: str) -> Request:
        self.made += 1
        return self._request(self.keys_[key])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_)

    def __len__(self) -> int:
        return len(self.keys_)

    def route(self, key: str) -> tuple[str, Model]:
        return "m", self.model


@pytest.fixture
def few_objects() -> Iterator[None]:
    """Hide the objects of other tests, which are many, from the collector."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.slow
@pytest.mark.usefixtures("few_objects")
def test_only_the_questions_under_way_are_in_memory(store: Store) -> None:
    asked = Made(600)
    alive: list[int] = []

    async def answer(request: Request) -> Completion:
        await asyncio.sleep(0)
        if asked.made % 50 == 0:
            alive.append(sum(isinstance(o, Request) for o in gc.get_objects()))
        return Completion(request.key, "x", request=request.to_dict())

    before = sum(isinstance(o, Request) for o in gc.get_objects())
    run_id = store.begin_run(
        {}, [PlanItem(str(n), "m", key) for key, n in asked.keys_.items()], requests=asked
    )
    assert asked.made == 600
    summary = run(asked, store, run_id=run_id, complete=answer)
    assert (summary.done, asked.made) == (600, 1200)
    assert len(alive) >= 5
    assert max(alive) - before < 40
    assert run(asked, store, run_id=run_id, complete=answer).cached == 600
    store.begin_run({}, [PlanItem("c", "m", key) for key in asked], requests=asked)
    assert asked.made == 1200  # what is known is not made again


@pytest.mark.slow
def test_a_plan_holds_keys_alone() -> None:
    cases = [
        {"id": str(n), "input": f"question {n}", "tools": [{"name": "f"}], "target": []}
        for n in range(100)
    ]
    make_plan(cases[:2], FREE, "hermes")  # imports litellm
    tracemalloc.start()
    try:
        began, _ = tracemalloc.get_traced_memory()
        plan = make_plan(cases, {"m": FREE}, ["hermes", "morph_xml"], trials=5, max_tokens=9)
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert plan.calls == 1000
    assert (now - began) / plan.calls < 950  # bytes; a request takes several thousand
    key, request = next(iter(plan.requests.items()))
    assert request.key == key
    assert plan.cost == 0
    assert plan.tokens == tuple(
        map(sum, zip(*(estimate_tokens(r) for r in plan.requests.values()), strict=True))
    )
