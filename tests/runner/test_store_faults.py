"""What may happen to a store and to those who share it: clocks that are set, process ids that come
again, disks that are full, files that are taken away. Nothing is lost, and nothing is asked twice.
"""

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from tests.postgres_server import empty, postgres_url
from tests.shared_run import check_moments, emptied, some_moments
from toolparse_lab.core.errors import StoreError, StoreLost
from toolparse_lab.runner import ledger
from toolparse_lab.runner.exchange.summary import Summary
from toolparse_lab.runner.exchange.types import Completion, Model, PlanItem, Request
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store import claims, database, schema
from toolparse_lab.runner.store.recording import import_recording
from toolparse_lab.runner.store.store import Store
from toolparse_lab.runner.termination import terminated_as_interrupted

DAY = 86400.0
_clock = claims.now_of


def questions(count: int) -> list[Request]:
    model = Model("openai/m", max_connections=2)
    return [Request(model, "m", ({"role": "user", "content": str(n)},)) for n in range(count)]


def keys_of(count: int) -> list[str]:
    return [request.key for request in questions(count)]


def items_of(requests: list[Request]) -> list[PlanItem]:
    return [PlanItem(f"c{n}", "m", r.key) for n, r in enumerate(requests)]


def answer(request: Request, **changes: Any) -> Completion:
    values: dict[str, Any] = {"raw": "words", "request": request.to_dict(), **changes}
    return Completion(key=request.key, **values)


def set_clock(monkeypatch: pytest.MonkeyPatch, by: float) -> None:
    """Set the clock of the database, by seconds."""
    monkeypatch.setattr(claims, "now_of", lambda connection: _clock(connection) + by)


def change_workers(store: Store, **values: Any) -> None:
    """Write something else into the rows of all workers."""
    with store._writing() as connection:
        connection.execute(schema.workers.update().values(**values))


# -- who lives


@pytest.mark.parametrize("by", [DAY, -DAY, 60.0, -60.0])
def test_a_clock_that_is_set_takes_no_claim_from_the_living(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by: float
) -> None:
    if claims.uptime() is None:
        pytest.skip("this system does not tell one start from another")
    keys = keys_of(2)
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("a")
        assert list(store.claim(keys[:1], "a", since).won) == keys[:1]
        set_clock(monkeypatch, by)
        later = store.enter("b")
        assert list(store.claim(keys, "b", later).won) == keys[1:]
        assert store.renew("a")


def test_what_has_failed_is_old_or_new_however_the_clock_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = keys_of(2)
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("a")
        store.claim([old, new], "a", since)
        store.renew("a", ended={old: "bad_request"})
        set_clock(monkeypatch, -DAY)
        later = store.enter("b")
        # It failed before b began, whatever the clock says, so that b asks it again.
        assert list(store.claim([old], "b", later).won) == [old]
        store.renew("a", ended={new: "timeout"})
        assert dict(store.claim([new], "b", later).failed) == {new: "timeout"}


@pytest.mark.parametrize("pid", ["another", "own"])
def test_a_process_that_got_the_number_of_a_dead_one_does_not_keep_its_claims(
    tmp_path: Path, pid: str
) -> None:
    if claims.process_start(os.getpid()) is None:
        pytest.skip("this system does not say when a process has started")
    keys = keys_of(2)
    with Store(tmp_path / "runs.db") as store:
        store.begin_run({}, (), run_id="lost")
        store.claim(keys, "dead", store.enter("dead", "lost"))
        number = os.getpid() if pid == "own" else os.getppid()
        change_workers(store, pid=number, started="1")
        assert store.run("lost").status == "interrupted"
        assert list(store.claim(keys, "b", store.enter("b")).won) == keys


def test_a_process_that_has_ended_unnoticed_does_not_keep_its_claims(tmp_path: Path) -> None:
    if claims.process_start(os.getpid()) is None:
        pytest.skip("this system does not say when a process has started")
    keys = keys_of(2)
    child = subprocess.Popen(["true"])
    started = claims.process_start(child.pid)
    with Store(tmp_path / "runs.db") as store:
        store.claim(keys, "dead", store.enter("dead"))
        change_workers(store, pid=child.pid, started=started or "1")
        while claims.process_start(child.pid):
            pass  # it ends, and nobody asks how
        assert list(store.claim(keys, "b", store.enter("b")).won) == keys
    child.wait()


def test_workers_of_other_machines_go_by_the_clock_of_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = keys_of(3)
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("far")
        store.claim(keys[:1], "far", since)
        # No process of this number is here, which says nothing of another machine.
        change_workers(store, host="far/another-start/", pid=2**22 + 1)
        assert list(store.claim(keys[:2], "b", store.enter("b")).won) == keys[1:2]
        set_clock(monkeypatch, claims.LEASE + 1)
        assert keys[0] in store.claim(keys, "c", store.enter("c")).won
        monkeypatch.undo()
        # One that died before the clock was set back by a day is not waited for that long.
        with store._writing() as connection:
            connection.execute(schema.claims.update().values(owner="far"))
            expires = _clock(connection) + DAY
            claims.add_worker(connection, "far", None, expires, 0.0)
        change_workers(store, host="far/another-start/", expires=expires)
        assert set(store.claim(keys, "d", store.enter("d")).won) == set(keys)


def test_a_worker_that_was_taken_for_dead_is_told_and_is_there_again(tmp_path: Path) -> None:
    keys = keys_of(3)
    with Store(tmp_path / "runs.db") as store:
        since = store.enter("a", "run")
        store.claim(keys[:2], "a", since, run_id="run")
        assert store.renew("a", "run")
        change_workers(store, uptime=-1.0, expires=0.0)
        later = store.enter("b")  # forgets a
        assert list(store.claim(keys[:1], "b", later).won) == keys[:1]
        assert not store.renew("a", "run")
        assert store.renew("a", "run")
        assert list(store.claim(keys, "a", since, run_id="run").won) == keys[1:]
        assert list(store.claim(keys, "b", later).won) == keys[:1]


@pytest.mark.parametrize("notices", ["its own clocks", "its renewal"])
def test_a_run_that_was_stopped_for_a_while_asks_nothing_that_others_have_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, notices: str
) -> None:
    asked: list[str] = []
    path = tmp_path / "runs.db"
    requests = questions(30)

    async def complete(request: Request) -> Completion:
        asked.append(request.key)
        if len(asked) == 5:
            # As if this process had stood still: its lease is over, and another has done all.
            with Store(path) as other:
                change_workers(other, uptime=-1.0, expires=0.0)
                since = other.enter("other")
                left = [r for r in requests if r.key not in asked]
                assert other.claim([r.key for r in left], "other", since).won
                other.record_many([answer(r) for r in left])
                other.leave("other")
            if notices == "its own clocks":
                monkeypatch.setattr(ledger, "_EXPIRY", -1.0)
            else:
                await asyncio.sleep(0.3)
        return answer(request)

    if notices == "its renewal":
        monkeypatch.setattr(ledger, "_RENEWAL", 0.02)
    with Store(path) as store:
        summary = asyncio.run(run_requests(requests, store, complete=complete))
        assert summary.complete
    # Two are asked at a time: what was under way is all that may be asked by both.
    assert len(asked) <= 6 if notices == "its own clocks" else len(asked) <= 8


@pytest.mark.parametrize("fresh", [True, False])
def test_a_run_is_alive_as_long_as_it_lasts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh: bool
) -> None:
    states: list[str] = []
    monkeypatch.setattr(ledger, "_RENEWAL", 0.02)

    async def complete(request: Request) -> Completion:
        with Store(tmp_path / "runs.db") as other:
            change_workers(other, uptime=-1.0, expires=0.0)
            await asyncio.sleep(0.2)
            states.append(other.run(run).status)
        return answer(request)

    requests = questions(2)
    with Store(tmp_path / "runs.db") as store:
        run = store.begin_run({}, items_of(requests))
        asyncio.run(run_requests(requests, store, run_id=run, complete=complete, fresh=fresh))
        assert store.run(run).status == "complete"
    assert set(states) == {"running"}


def test_a_lease_ends_with_its_run_where_the_store_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger, "_RENEWAL", 0.02)
    renewals = 0

    async def run_and_wait(store: Store) -> int:
        nonlocal renewals

        def refuse(*_: Any, **__: Any) -> Any:
            raise StoreError("no")

        async def complete(request: Request) -> Completion:
            monkeypatch.setattr(store, "finish_run", refuse)
            return answer(request)

        with pytest.raises(StoreError):
            await run_requests(questions(1), store, run_id="r", complete=complete)
        renew = store.renew

        def count(*args: Any, **named: Any) -> bool:
            nonlocal renewals
            renewals += 1
            return renew(*args, **named)

        monkeypatch.setattr(store, "renew", count)
        await asyncio.sleep(0.2)
        return renewals

    with Store(tmp_path / "runs.db") as store:
        store.begin_run({}, (), run_id="r")
        assert asyncio.run(run_and_wait(store)) == 0


# -- what the disk does


def run_until(path: Path, fault: Callable[[Store], object], at: int = 6) -> tuple[StoreError, int]:
    """Ask twenty questions, after some of which the fault happens; the failure, and how many
    answers have arrived."""
    arrived = 0

    async def complete(request: Request) -> Completion:
        nonlocal arrived
        arrived += 1
        if arrived == at:
            fault(store)
        # Long enough for a page of its own.
        return answer(request, raw=os.urandom(3000).hex())

    asked = questions(20)
    with Store(path, busy_timeout=0.1) as store:
        run = store.begin_run({}, items_of(asked), requests=asked, run_id="first")
        with pytest.raises(StoreError) as e:
            asyncio.run(run_requests(asked, store, run_id=run, complete=complete))
        if isinstance(e.value, StoreLost):
            with pytest.raises(StoreLost):
                store.runs()
    assert e.value.exit_code == 3
    return e.value, arrived


def resume(path: Path) -> Summary:
    """Run the same questions again; how it went."""

    async def complete(request: Request) -> Completion:
        return answer(request)

    with Store(path) as store:
        summary = asyncio.run(run_requests(questions(20), store, complete=complete))
        assert len(store.done_keys(keys_of(20))) == 20
        assert all(len(h) == 1 for h in store.histories(keys_of(20)).values())
        return summary


def unwritten(failure: StoreError) -> Path:
    """The recording that a failure names."""
    path = failure.message.rsplit(" are in ", 1)[1].removesuffix(".")
    assert Path(path).stat().st_mode & 0o077 == 0 or os.name == "nt"
    return Path(path)


def check_leftovers(path: Path, failure: StoreError, arrived: int) -> None:
    """Hold that the store and the recording that the failure names have all answers."""
    with Store(path) as store:
        before = len(store.done_keys(keys_of(20)))
        if before < arrived:
            assert "import_recording" in str(failure.hint)
            assert before + import_recording(unwritten(failure), store) == arrived
        change_workers(store, started="1")  # as if the process had ended
        assert store.run("first").status in ("interrupted", "incomplete")
    summary = resume(path)
    assert (summary.cached, summary.done) == (arrived, 20 - arrived)


def test_a_locked_store_loses_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with closing(other):
        failure, arrived = run_until(path, lambda store: other.execute("BEGIN IMMEDIATE"))
        other.execute("ROLLBACK")
    assert "another process is writing" in str(failure.hint)
    check_leftovers(path, failure, arrived)


def test_a_store_that_may_not_be_written_any_more_loses_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"

    def read_only(store: Store) -> None:
        @sa.event.listens_for(store._engine, "begin")
        def _(connection: sa.Connection) -> None:
            connection.exec_driver_sql("PRAGMA query_only = ON")

    failure, arrived = run_until(path, read_only)
    assert "may not be written" in str(failure.hint)
    check_leftovers(path, failure, arrived)


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A file system of its own, where this process may make one."""
    if shutil.which("mount") is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("only root makes a file system")
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True).returncode:
        pytest.skip("no file system can be made here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_no_answer(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 2048) as disk:
        path = disk / "runs.db"

        def fill(store: Store) -> None:
            with (disk / "filling").open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))

        failure, arrived = run_until(path, fill)
        assert "free some space" in str(failure.hint)
        (disk / "filling").unlink()
        check_leftovers(path, failure, arrived)
        left = unwritten(failure)
        assert disk not in left.parents
        left.unlink()


def test_leftovers_that_fit_nowhere_are_said_to_be_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_append", lambda *_: (_ for _ in ()).throw(OSError("no room")))
    other = sqlite3.connect(tmp_path / "runs.db", isolation_level=None, check_same_thread=False)
    with closing(other):
        failure, _ = run_until(tmp_path / "runs.db", lambda store: other.execute("BEGIN IMMEDIATE"))
    assert "2 answers could not be saved elsewhere: no room." in failure.message
    assert [p.suffix for p in tmp_path.glob("*unwritten*")] == []


def without(
    *ends: str, empty: bool = False, then: Callable[[Path], object] = lambda path: None
) -> Callable[[Path], object]:
    """Take away the files of a store that end so, and put empty ones or another in their place."""

    def take(path: Path) -> None:
        for end in ends:
            Path(f"{path}{end}").unlink()
            if empty:
                Path(f"{path}{end}").touch()
        then(path)

    return take


LOGS, ALL = ("-wal", "-shm"), ("", "-wal", "-shm")
# What happens to the file of a store -> how, and what is said.
LOST: dict[str, tuple[Callable[[Path], object], str]] = {
    "no log": (without("-wal"), "lost the log"),
    "no log and no index": (without(*LOGS), "lost the log"),
    "an empty log": (without("-wal", empty=True), "lost the log"),
    "an empty log and index": (without(*LOGS, empty=True), "lost the log"),
    "deleted": (without(*ALL), "deleted"),
    "something else": (without(*ALL, then=lambda p: p.write_bytes(b"something else")), "replaced"),
    "another store": (without(*ALL, then=lambda p: Store(p).close()), "replaced"),
    "emptied": (lambda path: os.truncate(path, 0), "was emptied"),
}


@pytest.mark.parametrize("what", LOST)
def test_a_store_that_is_lost_under_a_run_is_saved(tmp_path: Path, what: str) -> None:
    change, words = LOST[what]
    path = tmp_path / "runs.db"
    failure, arrived = run_until(path, lambda store: change(path))
    assert isinstance(failure, StoreLost)
    assert words in failure.message
    rescued = next(tmp_path.glob("runs-rescued-*.db"))
    assert str(rescued) in failure.message
    with Store(rescued) as store:
        assert store.items("first") == items_of(questions(20))
        assert store.run("first").status == "interrupted"
    summary = resume(rescued)
    assert (summary.cached, summary.done) == (arrived, 20 - arrived)
    if what == "another store":
        assert resume(path).done == 20  # it is a store like any other


# -- servers


def test_a_server_that_starts_anew_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "_PAUSE", 0.01)
    with Store(tmp_path / "runs.db") as store:
        connect = store._engine.connect
        away = 3

        def connect_later() -> sa.Connection:
            nonlocal away
            if away > 0:
                away -= 1
                raise sa.exc.OperationalError("connect", None, Exception("connection refused"))
            return connect()

        monkeypatch.setattr(store._engine, "connect", connect_later)
        with pytest.raises(StoreError, match="server is up"):
            store.record(Completion(key="at once"))
        monkeypatch.setattr(store._patience, "seconds", 20.0)
        store.record(Completion(key="later"))
        assert store.done_keys(["at once", "later"]) == {"later"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with postgres_url() as url:
        if url is None:
            pytest.skip("no PostgreSQL: apt-get install postgresql")
        yield url


@pytest.mark.slow
def test_those_who_give_up_claims_never_wait_for_each_other(server: str) -> None:
    empty(server)
    keys = keys_of(40)
    Store(server).close()
    failures: list[BaseException] = []

    def claim_and_give_up(name: str, order: int) -> None:
        try:
            with Store(server) as store:
                since = store.enter(name)
                ended: dict[str, str | None] = {}
                for n in range(60):
                    won = store.claim(keys[::order], name, since, ended=ended).won
                    kinds = (None, "timeout")
                    ended = dict.fromkeys(reversed(won), kinds[n % 2])
                store.leave(name)
        except BaseException as e:
            failures.append(e)

    threads = [
        threading.Thread(target=claim_and_give_up, args=(f"w{n}", (-1) ** n)) for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


# -- several processes on one plan and one store


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
    keys = keys_of(3)
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
    keys = keys_of(3)
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
        runs = [store.begin_run({}, items_of(asked)) for _ in range(3)]
        other = store.begin_run({}, items_of(asked[:2]))
        late = PlanItem("late", "m", "k" * 64)
        store.extend_run(runs[0], [late])
        store.extend_run(runs[1], [late])
        with store._reading() as connection:
            count = connection.exec_driver_sql("SELECT count(*) FROM plan_items").scalar()
        assert count == 5 + 2 + 2
        assert store.items(runs[0]) == store.items(runs[1]) == [*items_of(asked), late]
        assert store.items(runs[2]) == items_of(asked)
        assert store.items(other) == items_of(asked[:2])
        assert [store.run(run).items for run in runs] == [6, 6, 5]


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGTERM")
def test_a_sigterm_interrupts_and_a_handler_of_ones_own_stays() -> None:
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
