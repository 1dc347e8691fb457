import asyncio
import concurrent.futures.thread
import gc
import sqlite3
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from tests.postgres_server import empty, postgres_url
from tests.tables import each_case
from toolparse_lab.core.errors import BadOptions, StoreError, UnreadableInput
from toolparse_lab.runner.exchange.types import Chunk, Completion, Model, PlanItem, Request
from toolparse_lab.runner.pool import run_requests
from toolparse_lab.runner.store import schema as store_schema
from toolparse_lab.runner.store.database import shown_url
from toolparse_lab.runner.store.recording import export_recording, import_recording, read_recording
from toolparse_lab.runner.store.rows import pack, unpack
from toolparse_lab.runner.store.store import Store

SECRET = "planted-secret-0123456789"
V1 = Path(__file__).parents[1] / "cases_runner" / "store_v1.sql"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(scope="module")
def server() -> Iterator[str | None]:
    with postgres_url() as url:
        yield url


@pytest.fixture
def postgres(server: str | None) -> str:
    if server is None:
        pytest.skip("there is no PostgreSQL server: set TOOLPARSE_TEST_POSTGRES, or install one")
    empty(server)
    return server


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, path: Path) -> Iterator[Store]:
    with Store(
        path if request.param == "sqlite" else request.getfixturevalue("postgres")
    ) as opened:
        yield opened


@pytest.fixture
def file_store(path: Path) -> Iterator[Store]:
    with Store(path) as opened:
        yield opened


def question(text: str = "hi", **model: Any) -> Request:
    return Request(
        Model("openai/m", **model), "m", ({"role": "user", "content": text},), {"temperature": 0}
    )


def answer(request: Request, raw: str = "hello", **changes: Any) -> Completion:
    values: dict[str, Any] = {
        "key": request.key,
        "raw": raw,
        "created": "2026-01-01",
        "request": request.to_dict(),
    }
    return Completion(**{**values, **changes})


def planned(requests: list[Request]) -> list[PlanItem]:
    return [
        PlanItem(f"case-{n}", "m", r.key, arm={"prompt_protocol": "hermes"})
        for n, r in enumerate(requests)
    ]


FULL = {
    "chunks": (Chunk(0.25, "a\ud800"), Chunk(0.5, "\udc00\x00", "reasoning")),
    "reasoning": "\ud800",
    "finish_reason": "length",
    "prompt_tokens": 3,
    "completion_tokens": 4,
    "cost": 1.25e-07,
    "latency": 0.123456,
    "ttft": 0.1,
    "queue_wait": 0.0,
    "attempt": 2,
    "endpoint_kind": "native_tools",
    "fidelity": "wire",
    "stream": True,
    "cut": True,
    "system_fingerprint": "fp",
    "response": {"usage": {"x": 1}, "text": "\ud800\x00"},
}


@pytest.mark.parametrize(
    "raw", ["hello", "", "a\x00b", "\ud800", "\ud83d\ude00", "😀", "x" * 1_000_000]
)
@pytest.mark.parametrize("url", ["file", ":memory:", "postgresql"])
def test_a_completion_comes_back_as_it_was(
    raw: str, url: str, path: Path, request: pytest.FixtureRequest
) -> None:
    place: str | Path = (
        path
        if url == "file"
        else request.getfixturevalue("postgres")
        if url == "postgresql"
        else url
    )
    asked = question()
    completion = answer(asked, raw, **FULL)
    with Store(place) as store:
        store.record(completion)
        assert store.get(asked.key) == completion
        assert store.history(asked.key) == [completion]


@given(st.text(st.characters(codec=None)))
def test_packing_keeps_every_code_point(text: str) -> None:
    assert unpack(pack(text)) == text


def test_a_repeating_answer_takes_little_room(file_store: Store, path: Path) -> None:
    file_store.record(answer(question(), "again and " * 100_000))
    file_store.close()
    assert path.stat().st_size < 150_000


def test_messages_of_providers_may_hold_anything(store: Store) -> None:
    request = question()
    store.record(
        answer(request, "", status="error", error_kind="other", error_message="a\x00\ud800b")
    )
    found = store.get(request.key)
    assert found is not None
    assert found.error_message == "a\ufffd?b"


def test_a_run_yields_its_items_in_plan_order_with_what_is_recorded(store: Store) -> None:
    asked = [question(t) for t in "abcd"]
    run_id = store.begin_run({"trials": 1}, planned(asked), requests=asked)
    assert list(store.completions(run_id)) == []
    for request in (asked[2], asked[0]):
        store.record(answer(request, request.messages[0]["content"]), run_id)
    found = list(store.completions(run_id))
    assert [(item.case_id, c.raw) for item, c in found] == [("case-0", "a"), ("case-2", "c")]
    assert found[0][0] == planned(asked)[0]
    assert found[0][1].request == asked[0].to_dict()
    assert [c.raw for _, c in store.completions(run_id, case_id="case-2")] == ["c"]
    assert store.items(run_id) == planned(asked)
    assert store.requests(run_id) == {r.key: Request.from_dict(r.to_dict()) for r in asked}
    record = store.run(run_id)
    assert (record.items, record.done, record.failed, record.status, record.plan) == (
        4,
        2,
        0,
        "running",
        {"trials": 1},
    )
    store.finish_run(run_id, "incomplete", {"calls": 2})
    assert (store.run(run_id).status, store.run(run_id).summary) == ("incomplete", {"calls": 2})
    assert [r.run_id for r in store.runs()] == [run_id]


def test_a_run_grows_by_the_questions_that_answers_led_to(store: Store) -> None:
    first, second = question("a"), question("b")
    run_id = store.begin_run({}, [PlanItem("c", "m", first.key)], requests=[first])
    store.extend_run(run_id, [PlanItem("c", "m", second.key, 0, {"turn": 2})], [second])
    store.extend_run(run_id, [])
    assert [(i.key, i.arm) for i in store.items(run_id)] == [
        (first.key, {}),
        (second.key, {"turn": 2}),
    ]
    assert set(store.requests(run_id)) == {first.key, second.key}
    store.record(answer(second, "b"), run_id)
    assert [(i.arm, c.raw) for i, c in store.completions(run_id)] == [({"turn": 2}, "b")]
    assert (store.run(run_id).items, store.run(run_id).done) == (2, 1)


def test_two_items_may_share_a_question(store: Store) -> None:
    request = question()
    run_id = store.begin_run({}, [PlanItem("a", "m", request.key), PlanItem("b", "m", request.key)])
    store.record(answer(request), run_id)
    assert [item.case_id for item, _ in store.completions(run_id)] == ["a", "b"]


def test_a_failure_is_recorded_and_never_counts_as_done(store: Store) -> None:
    request = question()
    run_id = store.begin_run({}, planned([request]))
    store.record(answer(request, "", status="error", error_kind="timeout"), run_id)
    assert store.done_keys([request.key]) == set()
    assert [c.error_kind for _, c in store.completions(run_id)] == ["timeout"]
    assert (store.run(run_id).done, store.run(run_id).failed) == (0, 1)
    store.record(answer(request), run_id)
    store.record(answer(request, "", status="error", error_kind="auth"), run_id)
    assert store.done_keys([request.key]) == {request.key}
    assert [c.raw for _, c in store.completions(run_id)] == ["hello"]
    assert [c.status for c in store.history(request.key)] == ["error", "ok", "error"]


def test_asking_again_keeps_both_and_a_run_goes_on_seeing_its_own(store: Store) -> None:
    request = question()
    runs = []
    for text in ("first", "second"):
        runs.append(store.begin_run({}, planned([request])))
        assert store.done_keys([request.key], run_id=runs[-1], fresh=True) == set()
        store.record(answer(request, text), runs[-1])
        assert store.done_keys([request.key], run_id=runs[-1], fresh=True) == {request.key}
    reused = store.begin_run({}, planned([request]))
    store.record(answer(request, "third"), None)
    assert [[c.raw for _, c in store.completions(r)] for r in (*runs, reused)] == [
        ["first"],
        ["second"],
        ["second"],
    ]
    latest = store.get(request.key)
    assert latest is not None
    assert latest.raw == "third"
    assert len(store.history(request.key)) == 3


def test_old_answers_can_be_refused(store: Store) -> None:
    request = question()
    then = (datetime.now(UTC) - timedelta(hours=2)).isoformat(timespec="milliseconds")
    store.record(answer(request, created=then))
    assert store.done_keys([request.key], max_age=3600) == set()
    assert store.done_keys([request.key], max_age=3 * 3600) == {request.key}


def test_many_keys_are_looked_up_in_batches(store: Store) -> None:
    keys = [f"{n:064x}" for n in range(1500)]
    store.record_many([Completion(key=k) for k in keys[::2]])
    assert store.done_keys(keys) == set(keys[::2])
    run_id = store.begin_run({}, [PlanItem("c", "m", k) for k in keys])
    assert sum(1 for _ in store.completions(run_id)) == 750


def test_an_unknown_run_is_named_with_those_there_are(store: Store) -> None:
    run_id = store.begin_run({}, [])
    with pytest.raises(BadOptions, match=run_id):
        next(store.completions("no-such-run"))
    with pytest.raises(BadOptions, match="no-such-run"):
        store.run("no-such-run")


def test_threads_write_and_read_at_once(store: Store) -> None:
    failures: list[BaseException] = []

    def work(n: int) -> None:
        try:
            for m in range(10):
                store.record(Completion(key=f"{n}-{m}", raw=str(m)))
                assert store.get(f"{n}-{m}") is not None
        except BaseException as e:
            failures.append(e)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert failures == []
    assert len(store.done_keys([f"{n}-{m}" for n in range(8) for m in range(10)])) == 80


def test_the_memory_store_is_one_store_for_all_threads() -> None:
    with Store(":memory:") as store:
        done = [store.writer.submit(store.record, Completion(key=str(n))) for n in range(20)]
        for written in done:
            written.result()
        assert len(store.done_keys(map(str, range(20)))) == 20


def test_a_full_disk_is_a_store_error_and_keeps_what_was_before(path: Path) -> None:
    with Store(path) as store:
        store.record(Completion(key="before"))
        pages = sqlite3.connect(path)
        count = pages.execute("PRAGMA page_count").fetchone()[0]
        pages.close()

        @sa.event.listens_for(store._engine, "begin")
        def _(connection: sa.Connection) -> None:
            connection.exec_driver_sql(f"PRAGMA max_page_count = {count}")

        noise = "".join(chr(0x4E00 + n * 7919 % 20000) for n in range(200_000))
        with pytest.raises(StoreError, match="free some space") as e:
            store.record(Completion(key="too much", raw=noise))
        assert e.value.exit_code == 3
        with pytest.raises(StoreError, match="full"):
            store.record_many(
                [Completion(key=f"k{n}", raw=noise[n * 9000 :][:9000]) for n in range(20)]
            )
    with Store(path) as again:
        assert again.done_keys(["before", "too much", "k0"]) == {"before"}


def test_other_failures_of_the_database_are_store_errors_too(tmp_path: Path) -> None:
    other = tmp_path / "notes.db"
    other.write_text("this is no database, it is a text of some length that somebody wrote\n" * 50)
    with pytest.raises(StoreError, match="something else"):
        Store(other)
    with pytest.raises(StoreError, match="folder exists"):
        Store(tmp_path / "nowhere" / "runs.db")
    with pytest.raises(StoreError, match="this is no file"):
        Store(tmp_path)
    with pytest.raises(StoreError, match="driver"):
        Store("nosuchdatabase://host/x")
    with pytest.raises(BadOptions, match="address"):
        Store("sqlite:://:")
    taken = sqlite3.connect(tmp_path / "taken.db")
    taken.execute("create table runs (x)")
    taken.commit()
    taken.close()
    with pytest.raises(StoreError, match="other tables"):
        Store(tmp_path / "taken.db")


@each_case
def test_a_password_in_an_address_is_not_shown(url: str, said: str) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError, match=said) as e:
        Store(url)
    assert "hunter22222" not in str(e.value)


def test_a_file_that_may_only_be_read_can_be_read(path: Path) -> None:
    with Store(path) as store:
        store.record(Completion(key="before"))
    with Store(f"sqlite:///file:{path}?mode=ro&uri=true") as store:
        assert store.done_keys(["before"]) == {"before"}
        with pytest.raises(StoreError, match="may not be written"):
            store.record(Completion(key="after"))


def test_a_newer_store_says_where_it_is_and_what_to_do(store: Store) -> None:
    with store._writing() as connection:
        connection.execute(
            store_schema.schema_version.update().values(version=store_schema.VERSION + 1)
        )
    with pytest.raises(StoreError, match="upgrade toolparse_lab") as e:
        Store(store.url.render_as_string(hide_password=False))
    assert shown_url(store.url) in str(e.value)
    assert f"at most {store_schema.VERSION}" in str(e.value)


def test_many_that_open_an_empty_database_at_once_make_one_store(path: Path, postgres: str) -> None:
    for url in (str(path), postgres):
        with ThreadPoolExecutor(8) as threads:
            for store in threads.map(lambda n, url=url: Store(url), range(8)):
                store.close()
        with Store(url) as store, store._reading() as connection:
            assert connection.execute(sa.select(store_schema.schema_version.c.version)).all() == [
                (store_schema.VERSION,)
            ]


def test_an_older_store_on_a_server_is_migrated(postgres: str) -> None:
    with Store(postgres) as store, store._writing() as connection:
        # As version 1 left it.
        for table in ("tool_results", "claims", "workers", "remarks"):
            connection.exec_driver_sql(f"DROP TABLE {table}")
        for column in ("items_digest", "items_from", "items_count"):
            connection.exec_driver_sql(f"ALTER TABLE runs DROP COLUMN {column}")
        connection.execute(store_schema.schema_version.update().values(version=1))
    with Store(postgres) as store:
        request = question()
        run = store.begin_run({}, planned([request]))
        store.record(answer(request, results=(told(1),)), run)
        assert [c.results for _, c in store.completions(run)] == [(told(1),)]


def test_a_server_that_drops_its_connections_is_connected_to_anew(postgres: str) -> None:
    with Store(postgres) as store:
        store.record(Completion(key="before"))
        other = sa.create_engine(postgres)
        with other.connect() as connection:
            cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            connection.exec_driver_sql(cut)
        other.dispose()
        store.record(Completion(key="after"))
        assert store.done_keys(["before", "after"]) == {"before", "after"}


def test_a_run_is_recorded_on_a_server(postgres: str) -> None:
    async def echo(request: Request) -> Completion:
        return answer(request, "said", cost=0.5)

    asked = [question(str(n)) for n in range(50)]
    with Store(postgres) as store:
        run = store.begin_run({}, planned(asked), requests=asked)
        assert asyncio.run(run_requests(asked, store, run_id=run, complete=echo)).done == 50
        assert asyncio.run(run_requests(asked, store, run_id=run, complete=echo)).calls == 0
        record = store.run(run)
        assert (record.status, record.items, record.done) == ("complete", 50, 50)
        assert [i.case_id for i, _ in store.completions(run)] == [f"case-{n}" for n in range(50)]


def test_the_version_1_store_opens_and_reads(path: Path) -> None:
    old = sqlite3.connect(path)
    old.executescript(V1.read_text())
    old.close()
    with Store(path) as store:
        (record,) = store.runs()
        assert (record.run_id, record.items, record.done, record.failed) == (
            "20260101T000000-abcdef",
            3,
            1,
            1,
        )
        found = {item.case_id: c for item, c in store.completions(record.run_id)}
        assert found["paris"].raw == 'a\ud800<tool_call>{"name": "f"}</tool_call>'
        assert [c.text for c in found["paris"].chunks] == [
            "a\ud800",
            '<tool_call>{"name": "f"}',
            "</tool_call>",
        ]
        assert found["oslo"].error_kind == "rate_limited"
        assert found["paris"].request["messages"] == [
            {"role": "user", "content": "weather in Paris?"}
        ]
        store.record(Completion(key="new"))
        told = {"call_id": "c", "name": "f", "arguments_json": "{}", "output_json": "1"}
        paris = next(
            item.key for item, _ in store.completions(record.run_id) if item.case_id == "paris"
        )
        store.record_results(record.run_id, {paris: [told]})
        assert next(c.results for i, c in store.completions(record.run_id) if i.key == paris) == (
            told,
        )
    Store(path.with_name("new.db")).close()
    migrated, new = (columns_of(path.with_name(name)) for name in (path.name, "new.db"))
    assert migrated == new
    assert _at_version(path) == (store_schema.VERSION, [])


def columns_of(path: Path) -> dict[str, set[tuple[str, str, bool]]]:
    """Name, type and whether it may be null of the columns of each table; integers are of one kind
    in SQLite."""
    engine = sa.create_engine(f"sqlite:///{path}")
    inspector = sa.inspect(engine)
    found = {
        table: {
            (c["name"], str(c["type"]).replace("BIGINT", "INTEGER"), c["nullable"])
            for c in inspector.get_columns(table)
        }
        for table in inspector.get_table_names()
    }
    engine.dispose()
    return found


def told(n: int, output: str = "1") -> dict[str, str]:
    return {
        "call_id": f"call_{n}",
        "name": "f",
        "arguments_json": '{"a":"\ud800"}',
        "output_json": output,
    }


def test_results_belong_to_the_answer_they_were_made_for(store: Store) -> None:
    request, other = question(), question("other")
    run = store.begin_run({}, planned([request, other]))
    store.record_results(run, {request.key: [told(1)]})  # there is no answer yet
    store.record(answer(request), run)
    assert [c.results for _, c in store.completions(run)] == [()]
    store.record_results(run, {request.key: [told(1), told(2)]})
    store.record_results(run, {request.key: [told(1, "changed"), told(3)], other.key: [told(1)]})
    ((_, found),) = store.completions(run)
    assert sorted(r["call_id"] for r in found.results) == ["call_1", "call_2", "call_3"]
    assert {r["output_json"] for r in found.results} == {"1"}
    again = store.begin_run({}, planned([request]))
    assert [c.results for _, c in store.completions(again)] == [found.results]
    store.record(answer(request, "anew"), again)
    assert [(c.raw, c.results) for _, c in store.completions(again)] == [("anew", ())]
    assert [c.results for _, c in store.completions(run)] == [found.results]
    with pytest.raises(BadOptions, match="no run"):
        store.record_results("nope", {request.key: [told(1)]})


def test_results_survive_a_recording(store: Store, tmp_path: Path) -> None:
    request = question()
    run = store.begin_run({}, planned([request]))
    store.record(answer(request, results=(told(1),)), run)
    assert export_recording(store, tmp_path / "r.jsonl", run_id=run) == 1
    (read,) = read_recording(tmp_path / "r.jsonl")
    assert read.results == (told(1),)
    with Store(tmp_path / "other.db") as other:
        assert import_recording(tmp_path / "r.jsonl", other) == 1
        assert import_recording(tmp_path / "r.jsonl", other) == 0
        found = other.get(request.key)
        assert found is not None
        assert found.results == (told(1),)
    assert "results" not in answer(request).to_dict()
    with pytest.raises(UnreadableInput, match="not a recorded completion"):
        Completion.from_dict({"key": "k", "results": [{"call_id": "c"}]})


@pytest.mark.parametrize("name", ["key", "code", "token", "api_key", "password"])
def test_cases_of_a_plan_are_data(store: Store, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A parameter may have a name that headers use for credentials; a credential itself is removed
    there too."""
    monkeypatch.setenv("SOME_API_KEY", SECRET)
    case = {
        "id": "a",
        "tools": [{"parameters": {"properties": {name: {"type": "string"}}}}],
        "input": SECRET,
    }
    record = store.run(store.begin_run({"cases": [case], "params": {name: "x"}}, []))
    assert record.plan["cases"][0]["tools"] == case["tools"]
    assert SECRET not in str(record.plan)
    assert record.plan["params"] == {name: "[redacted]"}


def _at_version(path: Path) -> tuple[int, list[str]]:
    connection = sqlite3.connect(path)
    (version,) = connection.execute("select version from toolparse_schema").fetchone()
    notes = [
        r[0]
        for r in connection.execute(
            "select name from sqlite_master where name like 'note%' order by name"
        )
    ]
    connection.close()
    return version, notes


def test_migrations_run_in_order_and_all_or_none(path: Path, file_store: Store) -> None:
    store = file_store
    order: list[int] = []

    def step(n: int) -> store_schema.Migration:
        def go(connection: sa.Connection) -> None:
            order.append(n)
            connection.exec_driver_sql(f"create table note{n} (x)")
            if n == 5 and len(order) < 6:
                raise sa.exc.OperationalError("create", None, sqlite3.OperationalError("disk full"))

        return go

    steps = {n: step(n) for n in (4, 1, 5, 3, 2)}
    with store._writing() as connection:
        connection.execute(store_schema.schema_version.update().values(version=1))
    with pytest.raises(StoreError), store._writing() as connection:
        store_schema.prepare(connection, version=6, migrations=steps)
    assert _at_version(path) == (1, [])
    with store._writing() as connection:
        store_schema.prepare(connection, version=6, migrations=steps)
    assert order == [1, 2, 3, 4, 5, 1, 2, 3, 4, 5]
    assert _at_version(path) == (6, ["note1", "note2", "note3", "note4", "note5"])
    store.close()
    with pytest.raises(StoreError, match="newer version") as e:
        Store(path)
    assert e.value.exit_code == 3


def test_there_is_a_step_from_every_older_version() -> None:
    assert sorted(store_schema.MIGRATIONS) == list(range(1, store_schema.VERSION))


def test_the_tables_are_as_good_for_postgresql() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in store_schema.tables.sorted_tables:
        text = str(CreateTable(table).compile(dialect=dialect))
        assert "CREATE TABLE" in text
        for index in table.indexes:
            assert "CREATE INDEX" in str(CreateIndex(index).compile(dialect=dialect))
    text = str(CreateTable(store_schema.completions).compile(dialect=dialect))
    assert "raw BYTEA NOT NULL" in text
    assert "id BIGSERIAL NOT NULL" in text


def test_a_store_may_be_collected_in_its_writers_own_thread(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", faults.append)
    store = Store(path)
    finalizer = store._finalizer
    writer = store.writer
    stores = [store]
    del store
    writer.submit(stores.clear).result(timeout=10)

    writer.shutdown(wait=True)
    assert not finalizer.alive
    assert faults == []


def test_a_store_is_collected_while_the_lock_of_executors_is_held(tmp_path: Path) -> None:
    store: Store | None = Store(tmp_path / "runs.db")
    assert store is not None
    writer = store.writer
    writer.submit(int).result()

    def collect() -> None:
        nonlocal store
        # Held while an executor makes a thread, which may collect garbage.
        with concurrent.futures.thread._global_shutdown_lock:
            store = None
            gc.collect()

    collecting = threading.Thread(target=collect, daemon=True)
    collecting.start()
    collecting.join(5)
    assert not collecting.is_alive()
    for thread in writer._threads:
        thread.join(5)
        assert not thread.is_alive()


def test_closing_twice_is_fine(path: Path) -> None:
    store = Store(path)
    store.close()
    store.close()
    assert not list(path.parent.glob("*-wal"))
