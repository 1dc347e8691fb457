"""The store of runs, plans and completions: SQLite by default (WAL), any SQLAlchemy URL by the same
code.

A completion is written, raw, before anything reads it. Texts of models are bytes here, because lone
surrogates and NUL characters break text columns. The record is never changed or deleted: asking
again adds a row.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import tempfile
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from ...core.errors import StoreError, StoreLost
from ..exchange.redaction import redact_named, redact_strings, secrets_in
from ..exchange.types import Completion, PlanItem, Questions, Request, questions_of
from . import claims, database, rows, schema
from .batches import BATCH, batches
from .cached_parses import CachedParseTable
from .database import Anchor, Patience, translated
from .exchanges import RecordedExchanges
from .rows import RunRecord

__all__ = ["RunRecord", "Store"]
_OTHER = "was opened in one process and does not work in another"
_EACH = "open a lab in each process: tp.Lab(path)"
_PATIENCE = 30.0  # seconds for a server that was there and does not answer now

# How the store works. Every public method is one or a few short transactions. Writers take their
# turn at one lock of this process, and at SQLite's own between processes; a write is on disk when
# its method returns, which is all that survives kill -9 and all that anybody is promised. Readers
# take no lock (WAL), except in memory, where there is one connection for all. Async code must not
# wait for a disk: it calls these methods through `writer`, one thread, which also keeps the order
# of its writes. Long reads go page by page, a transaction each, so that a reader that takes its
# time holds nothing back.


class Store(CachedParseTable, RecordedExchanges):
    """`Store("runs.db")`, `Store("postgresql+psycopg://...")` or `Store(":memory:")`.

    A context manager.

    Thread-safe. All writes go through one lock, and `writer` is the one thread that async code
    writes from. Every failure of the database is a StoreError. Everything recorded before stays.
    """

    def __init__(self, url: str | Path = "toolparse.db", *, busy_timeout: float = 10.0) -> None:
        self.url = database.database_url(url)
        self._lock = threading.RLock()
        self._engine = database.database_engine(self.url, busy_timeout)
        # The keys of plans whose runs go on: their requests are there, and are not looked up again
        # with each answer.
        self._kept: set[str] = set()
        self._patience = Patience(0.0)  # an address that is wrong is told at once
        self._process = os.getpid()
        self.read_only = False
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        self._parses: Store | None = None  # of one that is only read
        self.writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolparse-store")
        self._anchor: Anchor | None = None
        self._rescue: Store | None = None
        file = database.file_of(self.url)
        self._leftovers = database.Leftovers(file)
        # Also where nobody calls `close`: a store that is collected leaves no thread and no file
        # open.
        self._finalizer = database.shut_when_collected(self, self.writer, self._engine)
        try:
            try:
                with self._writing() as connection:
                    schema.prepare(connection)
            except StoreError as e:
                self._open_to_read(file, e)
            if self.read_only:
                return
            if file is None:  # a server keeps its files itself
                self._patience.seconds = _PATIENCE
            else:
                with translated(self.url):
                    self._anchor = Anchor(file)
        except BaseException:
            self.close()
            raise

    def _open_to_read(self, file: Path | None, failure: StoreError) -> None:
        """Open a file that cannot be written, such as a colleague's, to read it. Raises the failure
        where that is not why it could not be opened.
        """
        said = str(failure.got).lower()
        unwritable = any(word in said for word in ("readonly", "read-only", "unable to open"))
        # Neither asks a folder that nobody may enter.
        if file is None or not unwritable or not os.path.isfile(file) or not file.stat().st_size:
            raise failure
        log = file.with_name(f"{file.name}-wal")
        self._reopen(file, copied=os.path.isfile(log) and log.stat().st_size > 0)
        self.read_only = True
        with self._reading() as connection:
            version = schema.version_of(connection)
        if version < schema.VERSION:
            # An older one is brought up to date in a copy.
            self._reopen(file, copied=True)
            self.read_only = False
            with self._writing() as connection:
                schema.prepare(connection)
            self.read_only = True
        self._parses = Store(":memory:")

    def _reopen(self, file: Path, *, copied: bool) -> None:
        self._finalizer.detach()
        self._engine.dispose()
        if copied:
            self._copy = tempfile.TemporaryDirectory(prefix="toolparse-store-")
        with translated(self.url):
            self._engine = database.reading_engine(file, self._copy.name if self._copy else None)
        self._finalizer = database.shut_when_collected(self, self.writer, self._engine)

    def hurry(self) -> None:
        """Wait no longer for a server that is away: whoever runs this wants to leave."""
        self._patience.hurry()

    def _check_process(self) -> None:
        # A fork has neither the threads nor the locks' owners of its parent, and would hang.
        if os.getpid() != self._process:
            raise StoreError(f"the store {database.shown_url(self.url)} {_OTHER}", hint=_EACH)

    def __reduce__(self) -> Any:
        raise StoreError(f"the store {database.shown_url(self.url)} {_OTHER}", hint=_EACH)

    def __repr__(self) -> str:
        return f"Store({database.shown_url(self.url)!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        self.close()

    @property
    def shared_url(self) -> str | None:
        """The address by which other processes open this store, with its password; None of one in
        memory.
        """
        return database.shared_url(self.url)

    def close(self) -> None:
        """Wait for writes under way and close every connection. May be called twice."""
        if os.getpid() != self._process:
            return  # the parent's threads and connections are its own
        if self._finalizer.detach():
            database.shut(self.writer, self._engine)
        self.writer.shutdown(wait=True)
        for other in (self._rescue, self._parses):
            if other is not None:
                other.close()
        if self._copy is not None:
            self._copy.cleanup()
        if self._anchor is not None:
            self._anchor.close()
            # A closed store may be read again, and nothing of it is kept open then.
            self._anchor = None

    # -- writing

    def begin_run(
        self,
        plan: Mapping[str, Any],
        items: Iterable[PlanItem],
        *,
        requests: Iterable[Request] | Questions = (),
        run_id: str | None = None,
    ) -> str:
        """Record a plan (JSON, credentials are removed) and its items before anything is asked.
        Return the run id.

        `requests`, where given, stay too, so that a run can be resumed from the store alone. Of
        `Questions` only those that are not there yet are made. Items that an earlier run began with
        are not written again.
        """
        items = tuple(items)
        digest = rows.items_digest(items)
        now = datetime.now(UTC)
        run_id = run_id or f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self._keep(requests)
        plan_text = _json_text(_without_credentials(plan))
        # The newest row now decides for good what this run may reuse.
        newest = sa.select(sa.func.max(schema.completions.c.id))
        r = schema.runs.c
        same_items = sa.select(r.run_id).where(r.items_digest == digest, r.items_from.is_(None))
        with self._writing() as connection:
            source = connection.execute(same_items.order_by(r.created).limit(1)).scalar()
            connection.execute(
                schema.runs.insert().values(
                    run_id=run_id,
                    created=now.isoformat(timespec="milliseconds"),
                    status="running",
                    floor=connection.execute(newest).scalar() or 0,
                    plan=plan_text,
                    items_digest=digest,
                    items_from=source,
                    items_count=len(items),
                )
            )
            if source is None:
                _insert_items(connection, run_id, items)
            # Until it is finished, the run is being worked on by this process.
            claims.serialize(connection)
            claims.enter(connection, run_id, run_id)
        return run_id

    def extend_run(
        self, run_id: str, items: Iterable[PlanItem], requests: Iterable[Request] | Questions = ()
    ) -> None:
        """Add items to a run after those it has, for questions that only answers could tell."""
        self._keep(requests)
        with self._writing() as connection:
            own = rows.items_of(rows.run_row(connection, run_id))
            query = sa.select(sa.func.max(schema.items.c.position)).where(own)
            last = connection.execute(query).scalar()
            _insert_items(connection, run_id, items, 0 if last is None else last + 1)

    def replace_plan(self, run_id: str, plan: Mapping[str, Any]) -> None:
        """Record another plan (JSON, credentials are removed) of a run that goes on, as one that
        takes any question does.
        """
        plan_text = _json_text(_without_credentials(plan))
        with self._writing() as connection:
            connection.execute(
                schema.runs.update().where(schema.runs.c.run_id == run_id).values(plan=plan_text)
            )

    def _keep(self, requests: Iterable[Request] | Questions) -> None:
        # Requests before the items that need them. Not in one transaction: others may write between
        # two batches, and a request that no item names yet harms no one.
        questions = questions_of(requests)
        for batch in batches(questions):
            with self._writing() as connection:
                rows.keep_requests(
                    connection, batch, lambda key: rows.pack_json(questions[key].to_dict())
                )
            self._kept.update(batch)

    def finish_run(
        self, run_id: str, status: str, summary: Mapping[str, Any] | None = None
    ) -> None:
        """Set a run's status (running, complete, incomplete, interrupted) and summary (JSON)."""
        values: dict[str, Any] = {"status": status}
        if summary is not None:
            values["summary"] = _json_text(dict(summary))
        with self._writing() as connection:
            connection.execute(
                schema.runs.update().where(schema.runs.c.run_id == run_id).values(**values)
            )
            if status != "running":
                claims.serialize(connection)
                claims.leave(connection, run_id)
                self._kept.clear()

    def record(self, completion: Completion, run_id: str | None = None) -> None:
        """Write one completion, success or failure. It is on disk when this returns."""
        self.record_many([completion], run_id)

    def record_many(self, completions: Iterable[Completion], run_id: str | None = None) -> None:
        """Write completions in one transaction: all of them, or none."""
        batch = list(completions)
        # Packing takes longer than writing, and is done before anybody else has to wait.
        packed = [rows.completion_row(completion, run_id) for completion in batch]
        requests = {c.key: c.request for c in batch if c.key not in self._kept and c.request}
        with self._writing(batch, run_id) as connection:
            rows.keep_requests(
                connection, requests, lambda key: rows.pack_json(dict(requests[key]))
            )
            if not any(completion.results for completion in batch):
                rows.insert_rows(connection, schema.completions, rows.COMPLETION_ROW, packed)
                return
            # One by one, and not the others apart: a later answer has a larger id.
            for completion, row in zip(batch, packed, strict=True):
                named = dict(zip(rows.COMPLETION_ROW, row, strict=True))
                row_id = connection.execute(rows.INSERT_COMPLETION, named).inserted_primary_key
                rows.keep_results(connection, row_id[0] if row_id else 0, completion.results)

    def record_rows(self, packed: list[tuple[Any, ...]], requests: Mapping[str, bytes]) -> None:
        """Write completions that no run asked for and that are rows already, in one transaction.

        packed: of `COMPLETION_ROW`. requests: packed, by key.
        """
        named = (dict(zip(rows.COMPLETION_ROW, row, strict=True)) for row in packed)
        completions = (rows.completion_of(row, requests.get(row["key"])) for row in named)
        with self._writing(completions) as connection:
            rows.keep_requests(connection, requests, requests.__getitem__)
            rows.insert_rows(connection, schema.completions, rows.COMPLETION_ROW, packed)

    def save_unwritten(self, completions: Iterable[Completion]) -> None:
        """Save answers that `record_many` could not write in a recording elsewhere, which
        `explained` names.
        """
        self._leftovers.add([completion.to_json() for completion in completions if completion.ok])

    def explained(self, failure: StoreError) -> StoreError:
        """Return a failure of this store that reports the fate of the answers it did not take."""
        return self._leftovers.explain(failure)

    def record_results(
        self, run_id: str, results: Mapping[str, Iterable[Mapping[str, str]]]
    ) -> None:
        """Add the result of functions to the answers that a run has, by the keys of their
        questions.

        It is in `Completion.results` from then on. Everything recorded for a call already stays.
        """
        if not results:
            return
        # Results belong to the answer that the run shows, not to all answers of the question.
        chosen = self._chosen(run_id, results)
        with self._writing() as connection:
            for key, key_results in results.items():
                if key in chosen:
                    rows.keep_results(connection, chosen[key], key_results)

    # How remarks are kept. Every change adds a row with the parts that changed, and of each part
    # the newest counts. The body is ASCII JSON as bytes: a person may paste what a model wrote, NUL
    # and lone surrogates included, which break text columns.

    def record_remark(self, run_id: str, trial_id: str, remark: Mapping[str, str]) -> None:
        """Add the remark of a person on a trial: "note", "outcome" and "why", as far as they
        change. Of each the newest counts. Scores and answers stay as they are. Raises BadOptions
        for an unknown run.
        """
        with self._writing() as connection:
            rows.run_row(connection, run_id)
            connection.execute(
                schema.remarks.insert().values(
                    run_id=run_id,
                    trial_id=trial_id,
                    created=datetime.now(UTC).isoformat(timespec="milliseconds"),
                    body=json.dumps(dict(remark), ensure_ascii=True).encode("ascii"),
                )
            )

    def remarks(self, run_id: str) -> dict[str, dict[str, str]]:
        """Return the remarks on each trial of a run that has some, by trial id."""
        r = schema.remarks.c
        query = sa.select(r.trial_id, r.body).where(r.run_id == run_id).order_by(r.id)
        remarks: dict[str, dict[str, str]] = {}
        with self._reading() as connection:
            for row in connection.execute(query):
                remarks.setdefault(row.trial_id, {}).update(json.loads(row.body))
        return remarks

    # -- sharing the work with others

    def enter(self, owner: str, run_id: str | None = None) -> float:
        """Say that `owner` (an id of its own) asks questions from now on. It is taken for dead
        where it does not `renew` for 30 seconds.

        Return the time in seconds by the store's clock.
        """
        with self._sharing() as connection:
            return claims.enter(connection, owner, run_id)

    def renew(
        self,
        owner: str,
        run_id: str | None = None,
        ended: Mapping[str, str | None] | None = None,
        lease: float = claims.LEASE,
    ) -> bool:
        """Say that `owner` lives, and the run that it works on. `ended` as for `claim`.

        False if it was taken for dead meanwhile: others may have its claims then.
        """
        with self._sharing() as connection:
            claims.let_go(connection, owner, ended or {})
            owners = {owner: run_id, run_id or owner: run_id}
            return owner in claims.renew(connection, owners, lease)

    def leave(self, owner: str, ended: Mapping[str, str | None] | None = None) -> None:
        """Say that `owner` asks no more: its claims are free."""
        with self._sharing() as connection:
            claims.let_go(connection, owner, ended or {})
            claims.leave(connection, owner)

    def claim(
        self,
        keys: Collection[str],
        owner: str,
        since: float,
        *,
        run_id: str | None = None,
        max_age: float | None = None,
        ended: Mapping[str, str | None] | None = None,
    ) -> claims.Claimed:
        """Claim questions before they are asked, so that no other process asks them too.

        since: the time that `enter` returned. The failures of others before may be asked again.
        run_id, max_age: as for `done_keys`. ended: claims of `owner` to be given up, with an error
        kind where the question has failed for good.
        """
        conditions = self._done_conditions(run_id, False, max_age)
        with self._sharing() as connection:
            claims.let_go(connection, owner, ended or {})
            won, failed = claims.take(connection, keys, owner, since, run_id)
            # After the claims: who answers a question keeps its claim until the answer is seen.
            done = rows.keys_where(connection, keys, *conditions)
            claims.let_go(connection, owner, dict.fromkeys(won & done))
        return claims.Claimed(
            [key for key in keys if key in won and key not in done],
            done,
            {key: kind for key, kind in failed.items() if key not in done},
        )

    # -- reading

    def done_keys(
        self,
        keys: Iterable[str],
        *,
        run_id: str | None = None,
        fresh: bool = False,
        max_age: float | None = None,
    ) -> set[str]:
        """Return the subset of `keys` that need not be asked: answered without an error.

        `fresh` counts only answers recorded by `run_id` itself. `max_age` (seconds) only those that
        are not older, or were recorded by `run_id`.
        """
        if fresh and run_id is None:
            return set()

        conditions = self._done_conditions(run_id, fresh, max_age)
        with self._reading() as connection:
            return rows.keys_where(connection, dict.fromkeys(keys), *conditions)

    @staticmethod
    def _done_conditions(run_id: str | None, fresh: bool, max_age: float | None) -> list[Any]:
        c = schema.completions.c
        conditions: list[Any] = [c.status == "ok"]
        if fresh:
            conditions.append(c.run_id == run_id)
        elif max_age is not None:
            # Times are ISO texts of one form, which sort as the times do.
            oldest = datetime.now(UTC) - timedelta(seconds=max_age)
            young = c.created >= oldest.isoformat(timespec="milliseconds")
            conditions.append(sa.or_(young, c.run_id == run_id) if run_id else young)
        return conditions

    def completions(
        self, run_id: str, *, case_id: str | None = None, keys: Collection[str] | None = None
    ) -> Iterator[tuple[PlanItem, Completion]]:
        """Yield the answer a run has for each item of its plan, in plan order, while it runs too.
        Items without an answer drop out.

        An item's answer is the latest success that the run recorded itself, else the latest it
        found when it began, else any. Only if there is none, the latest failure. `keys`: only
        these. Raises BadOptions for an unknown run.
        """
        # A page of answers at a time is in memory, whatever the length of the run.
        for page in self._item_pages(run_id, case_id):
            items = page if keys is None else [item for item in page if item.key in keys]
            answers = self.answers({item.key for item in items}, run_id=run_id)
            yield from ((item, answers[item.key]) for item in items if item.key in answers)

    def answers(self, keys: Iterable[str], *, run_id: str | None = None) -> dict[str, Completion]:
        """Return the answer to each of `keys` that has one: as `run_id` has it (see `completions`),
        else the latest success, else the latest failure. Raises BadOptions for an unknown run.
        """
        chosen = self._chosen(run_id, keys)
        with self._reading() as connection:
            completions = rows.completions_by_id(connection, chosen.values())
        return {key: completions[row_id] for key, row_id in chosen.items()}

    def items(self, run_id: str, *, case_id: str | None = None) -> list[PlanItem]:
        """Return the plan of a run, in order. Raises BadOptions for an unknown run."""
        return [item for page in self._item_pages(run_id, case_id) for item in page]

    def requests(self, run_id: str) -> dict[str, Request]:
        """Return the questions of a run by key, without credentials, as far as they were
        recorded.
        """
        i, r = schema.items.c, schema.requests.c
        with self._reading() as connection:
            run = sa.select(schema.runs).where(schema.runs.c.run_id == run_id)
            row = connection.execute(run).first()
            if row is None:
                return {}
            keys = sa.select(i.key).where(rows.items_of(row))
            query = sa.select(r.key, r.body).where(r.key.in_(keys))
            return {
                row.key: Request.from_dict(rows.unpack_json(row.body))
                for row in connection.execute(query)
            }

    def request(self, key: str) -> Request | None:
        """Return one question, without credentials, where it was recorded."""
        r = schema.requests.c
        with self._reading() as connection:
            body = connection.execute(sa.select(r.body).where(r.key == key)).scalar()
        return None if body is None else Request.from_dict(rows.unpack_json(body))

    def get(self, key: str) -> Completion | None:
        """Return the latest success for a key, else the latest failure, else None."""
        return self.answers([key]).get(key)

    def recorded_keys(self, keys: Iterable[str]) -> set[str]:
        """Return the subset of `keys` that anything is recorded for, a failure too."""
        with self._reading() as connection:
            return rows.keys_where(connection, keys)

    def history(self, key: str) -> list[Completion]:
        """Return everything recorded for a key, oldest first: failed attempts and repeated
        questions included.
        """
        return self.histories([key]).get(key, [])

    def histories(self, keys: Iterable[str]) -> dict[str, list[Completion]]:
        """Return the histories of those of `keys` that have one."""
        c = schema.completions.c
        ids: list[int] = []
        with self._reading() as connection:
            for batch in batches(keys):
                ids.extend(connection.execute(sa.select(c.id).where(c.key.in_(batch))).scalars())
            completions = rows.completions_by_id(connection, ids)

        # A later row has a larger id.
        histories: dict[str, list[Completion]] = {}
        for _, completion in sorted(completions.items()):
            histories.setdefault(completion.key, []).append(completion)
        return histories

    def runs(self) -> list[RunRecord]:
        """Return all runs, oldest first."""
        r = schema.runs.c
        query = sa.select(*rows.RUN).order_by(r.created, r.run_id)
        with self._reading() as connection:
            living = claims.live_runs(connection)
            found = connection.execute(query).all()
            runs = [
                rows.run_record(connection, row, living, self._plan, self._counts) for row in found
            ]
        return list(map(rows.with_answers, runs))

    def run_ids(self) -> list[str]:
        """Return the ids of all runs, oldest first."""
        r = schema.runs.c
        # By what was recorded before each, because a clock may jump back.
        query = sa.select(r.run_id).order_by(r.floor, r.created, r.run_id)
        with self._reading() as connection:
            return list(connection.execute(query).scalars())

    def run(self, run_id: str) -> RunRecord:
        """Return one run. Raises BadOptions for an unknown id."""
        with self._reading() as connection:
            row, living = rows.run_row(connection, run_id), claims.live_runs(connection)
            run = rows.run_record(connection, row, living, self._plan, self._counts)
        return rows.with_answers(run)

    def _plan(self, run_id: str) -> Mapping[str, Any]:
        with self._reading() as connection:
            return rows.plan_of(connection, run_id)

    def _counts(self, run_id: str) -> tuple[int, int]:
        with self._reading() as connection:
            return rows.counts_of(connection, run_id)

    def answer_ids(self, run_id: str, keys: Iterable[str]) -> dict[str, int]:
        """Return the id of the row of the answer that a run has, by key. See `completions`."""
        return self._chosen(run_id, keys)

    # -- below

    def _item_pages(self, run_id: str, case_id: str | None) -> Iterator[list[PlanItem]]:
        # The plan of a run, a few hundred items at a time, so that one of any length may be read.
        # Pages are found by position, since items are only ever added at the end. Each is read in a
        # transaction of its own: the caller may take its time, or write.
        with self._reading() as connection:
            run = rows.run_row(connection, run_id)
        i = schema.items.c
        query = sa.select(i.position, i.case_id, i.model, i.trial, i.arm, i.key)
        query = query.where(rows.items_of(run)).order_by(i.position).limit(BATCH)
        if case_id is not None:
            query = query.where(i.case_id == case_id)
        last, is_last = -1, False
        # A plan has a handful of different arms: each is parsed once, and shared.
        arms: dict[str, Any] = {}
        while not is_last:
            with self._reading() as connection:
                page = connection.execute(query.where(i.position > last)).all()
            for row in page:
                if row.arm not in arms:
                    arms[row.arm] = json.loads(row.arm)
                last = row.position
            is_last = len(page) < BATCH
            yield [PlanItem(r.case_id, r.model, r.key, r.trial, arms[r.arm]) for r in page]

    def _chosen(self, run_id: str | None, keys: Iterable[str]) -> dict[str, int]:
        with self._reading() as connection:
            floor = -1 if run_id is None else rows.run_row(connection, run_id).floor
            return rows.chosen_ids(connection, keys, run_id, floor)

    @contextmanager
    def _writing(
        self, completions: Iterable[Completion] = (), run_id: str | None = None
    ) -> Iterator[sa.Connection]:
        # completions, run_id: the rows to write, should the file be lost.
        self._check_process()
        if self.read_only:
            raise StoreError(
                f"the store {database.shown_url(self.url)} can only be read",
                hint="its file or folder may not be written: copy it, and use the copy",
            )
        self._check_file(completions, run_id)
        with (
            self._lock,
            self._naming_leftovers(),
            translated(self.url),
            database.connected(self._engine, self._patience) as connection,
        ):
            connection = connection.execution_options(toolparse_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _naming_leftovers(self) -> Iterator[None]:
        # Whatever fails last is what is read: it names the file of what was not written.
        try:
            yield
        except StoreError as e:
            raise self.explained(e) from None

    @contextmanager
    def _sharing(self) -> Iterator[sa.Connection]:
        # One at a time.
        with self._writing() as connection:
            claims.serialize(connection)
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        self._check_process()
        self._check_file()
        # A database in memory is one connection, on which a reader would join a writer's
        # transaction.
        shared = isinstance(self._engine.pool, sa.StaticPool)
        with (
            self._lock if shared else nullcontext(),
            self._naming_leftovers(),
            translated(self.url),
            database.connected(self._engine, self._patience) as connection,
        ):
            yield connection

    def _check_file(
        self, completions: Iterable[Completion] = (), run_id: str | None = None
    ) -> None:
        # Everything that was recorded, and these completions, are saved in another file first.
        if self._anchor is None or not self._anchor.is_lost():
            return
        path, completions = self._anchor.path, list(completions)
        with self._lock:
            try:
                if self._rescue is None:
                    rescue = Store(self._anchor.save())
                    # No one works on a copy.
                    with rescue._writing() as connection:
                        connection.execute(schema.claims.delete())
                        connection.execute(schema.workers.delete())
                    self._rescue = rescue
                self._rescue.record_many(completions, run_id)
            except (StoreError, sqlite3.Error, OSError) as e:
                self.save_unwritten(completions)
                raise StoreLost(
                    f"the store {path} {self._anchor.fate()} while it was open, and it could "
                    "not be saved.",
                    got=str(e),
                    hint="what is in it can be read as long as this process lives: free some space",
                ) from None
        raise StoreLost(
            f"the store {path} {self._anchor.fate()} while it was open; its answers are in "
            f"{self._rescue.url.database}",
            hint="move that file back to the old place, or use it as the store; the run then goes "
            "on where it stopped",
        )


def _insert_items(
    connection: sa.Connection, run_id: str, items: Iterable[PlanItem], start: int = 0
) -> None:
    for batch in batches(rows.item_rows(run_id, items, start)):
        rows.insert_rows(connection, schema.items, rows.ITEM_ROW, batch)


def _without_credentials(plan: Mapping[str, Any]) -> Any:
    # Cases are data: a parameter of theirs that is called `key` or `code` is not a credential.
    safe: dict[str, Any] = {}
    for name, value in plan.items():
        if name == "models" and isinstance(value, Mapping):
            # Aliases are the user's words: a model may be called "headers".
            safe[name] = {alias: redact_named(model) for alias, model in value.items()}
        else:
            safe[name] = value if name == "cases" else redact_named({name: value})[name]
    settings = {name: value for name, value in plan.items() if name not in ("cases", "models")}
    return redact_strings(safe, secrets_in(settings))


def _json_text(value: Any) -> str:
    # A value that is not JSON is written as its text.
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"), default=str)
