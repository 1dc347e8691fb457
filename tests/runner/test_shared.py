"""Several processes on one plan and one store share the work, whatever becomes of one of them."""

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.postgres_server import postgres_url
from tests.shared_run import check_moments, emptied, some_moments
from toolparse_lab.core.errors import StoreLost
from toolparse_lab.runner.exchange.summary import Summary
from toolparse_lab.runner.exchange.types import Completion, Model, PlanItem, Request
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store import claims
from toolparse_lab.runner.store.store import Store
from toolparse_lab.runner.termination import terminated_as_interrupted


def questions(count: int) -> list[Request]:
    return [
        Request(Model("openai/m", max_connections=2), "m", ({"role": "user", "content": str(n)},))
        for n in range(count)
    ]


def answer(request: Request, **changes: Any) -> Completion:
    values: dict[str, Any] = {"raw": "said", "request": request.to_dict(), **changes}
    return Completion(key=request.key, **values)


def plan_items(requests: list[Request]) -> list[PlanItem]:
    return [PlanItem(f"c{n}", "m", r.key) for n, r in enumerate(requests)]


async def ask_twice(path: Path, count: int, **failure: Any) -> tuple[list[Summary], list[str]]:
    """Two runs of the same questions at once, each with a store of its own; what was asked."""
    asked: list[str] = []
    begun: list[float] = []

    class Noting(Store):
        def enter(self, *args: Any, **options: Any) -> float:
            since = super().enter(*args, **options)
            begun.append(since)
            return since

    async def complete(request: Request) -> Completion:
        asked.append(request.key)
        while len(begun) < 2:  # or one run might end before the other begins
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.01)
        return answer(request, **failure)

    with Noting(path) as one, Noting(path) as two:
        runs = [run_requests(questions(count), store, complete=complete) for store in (one, two)]
        return list(await asyncio.gather(*runs)), asked


def test_two_runs_at_once_ask_each_question_once_and_both_have_all_answers(tmp_path: Path) -> None:
    summaries, asked = asyncio.run(ask_twice(tmp_path / "runs.db", 60))
    assert sorted(asked) == sorted(r.key for r in questions(60))
    assert all(s.complete for s in summaries)
    assert all(s.done > 5 for s in summaries)
    assert sum(s.done for s in summaries) == 60


def test_what_has_failed_for_one_is_not_asked_by_the_other(tmp_path: Path) -> None:
    failure = {"status": "error", "error_kind": "bad_request"}
    summaries, asked = asyncio.run(ask_twice(tmp_path / "runs.db", 20, **failure))
    assert len(asked) == 20
    assert [s.failed for s in summaries] == [20, 20]
    assert [dict(s.failures) for s in summaries] == [{"bad_request": 20}] * 2
    # Whoever comes later asks again.
    _, asked = asyncio.run(ask_twice(tmp_path / "runs.db", 20, **failure))
    assert len(asked) == 20


def test_a_claim_ends_with_its_worker_or_with_its_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [r.key for r in questions(3)]
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("a")
        assert list(store.claim(keys[:2], "a", since).won) == keys[:2]
        store.enter("b")
        assert list(store.claim(keys, "b", since).won) == keys[2:]
        store.leave("a")
        assert list(store.claim(keys, "b", since).won) == keys
        monkeypatch.setattr(claims, "LEASE", -1.0)  # b's next lease is over when it begins
        store.renew("b", lease=-1.0)
        monkeypatch.undo()
        since = store.enter("c")
        assert list(store.claim(keys, "c", since).won) == keys


def test_a_process_that_has_ended_has_no_claims(tmp_path: Path) -> None:
    keys = [r.key for r in questions(3)]
    path = tmp_path / "runs.db"
    child = os.fork() if hasattr(os, "fork") else pytest.skip("there is no fork")
    if not child:
        with Store(path) as store:
            store.begin_run({}, (), run_id="lost")
            store.claim(keys, "child", store.enter("child", "lost"))
            os._exit(0)
    os.waitpid(child, 0)
    with Store(path) as store:
        assert store.run("lost").status == "interrupted"
        assert list(store.claim(keys, "other", store.enter("other")).won) == keys


def test_answered_questions_are_not_won(tmp_path: Path) -> None:
    first, second = questions(2)
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("a")
        store.record(answer(first))
        claimed = store.claim([first.key, second.key], "a", since)
        assert (list(claimed.won), set(claimed.done)) == ([second.key], {first.key})


def test_a_plan_is_stored_once_for_all_its_runs(tmp_path: Path) -> None:
    asked = questions(5)
    with Store(tmp_path / "runs.db") as store:
        runs = [store.begin_run({}, plan_items(asked)) for _ in range(3)]
        other = store.begin_run({}, plan_items(asked[:2]))
        late = PlanItem("late", "m", "k" * 64)
        store.extend_run(runs[0], [late])
        store.extend_run(runs[1], [late])
        with store._reading() as connection:
            count = connection.exec_driver_sql("SELECT count(*) FROM plan_items").scalar()
        assert count == 5 + 2 + 2
        assert store.items(runs[0]) == store.items(runs[1]) == [*plan_items(asked), late]
        assert store.items(runs[2]) == plan_items(asked)
        assert store.items(other) == plan_items(asked[:2])
        assert [store.run(run).items for run in runs] == [6, 6, 5]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_file_that_is_deleted_under_a_run_is_saved(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "runs.db"
    asked = questions(12)
    count = 0

    async def complete(request: Request) -> Completion:
        nonlocal count
        count += 1
        if count == 6:
            for file in tmp_path.glob("runs.db*"):
                file.unlink()
            if replaced:
                path.write_bytes(b"something else")
        return answer(request)

    with Store(path) as store:
        run = store.begin_run({}, plan_items(asked), requests=asked)
        with pytest.raises(StoreLost, match="replaced" if replaced else "deleted") as e:
            asyncio.run(run_requests(asked, store, run_id=run, complete=complete))
        assert e.value.exit_code == 3
        with pytest.raises(StoreLost):
            store.runs()
    rescued = next(tmp_path.glob("runs-rescued-*.db"))
    assert str(rescued) in str(e.value)
    with Store(rescued) as store:
        assert len(store.done_keys(r.key for r in asked)) == count
        assert store.items(run) == plan_items(asked)
        assert all(len(h) == 1 for h in store.histories(r.key for r in asked).values())
        assert store.run(run).status == "interrupted"


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_a_sigterm_interrupts_and_a_handler_of_ones_own_stays() -> None:
    import signal

    def be_told() -> None:
        with terminated_as_interrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(5)

    with pytest.raises(KeyboardInterrupt):
        be_told()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


forking = pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no SIGKILL and no fork")


@forking
@pytest.mark.exhaustive  # by day `test_crash` kills a run, and claims end in one process
def test_a_run_goes_on_where_another_process_is_ended(tmp_path: Path) -> None:
    count = 4
    stores = [str(tmp_path / f"{n}.db") for n in range(count)]
    ends = check_moments(stores, some_moments(count))
    assert sum(ends.values()) == count
    assert set(ends) != {"done"}


@forking
@pytest.mark.exhaustive
def test_a_run_on_a_server_goes_on_where_another_process_is_ended() -> None:
    with postgres_url() as url:
        if url is None:
            pytest.skip("no PostgreSQL: apt-get install postgresql")
        assert sum(check_moments(emptied(url), some_moments(2, seed=5)).values()) == 2
