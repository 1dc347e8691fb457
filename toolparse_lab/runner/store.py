"""Where runs, plans and completions are kept: SQLite by default (WAL), any SQLAlchemy URL by the same code.

A completion is written, raw, before anything reads it. Texts of models are bytes here, because lone surrogates and
NUL characters break text columns. What was recorded is never changed or deleted: asking again adds a row.
"""

from __future__ import annotations

import json
import secrets
import threading
import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any

import sqlalchemy as sa

from ..errors import BadOptions
from . import store_schema as schema
from .batches import BATCH, batches
from .questions import Questions, questions_of
from .redaction import redact_named, redact_strings
from .store_engine import database_engine, database_url, shown_url, shut, translated
from .store_rows import (
    INSERT_COMPLETION,
    completion_of,
    completion_row,
    item_rows,
    keep_requests,
    keep_results,
    unpack_json,
)
from .types import Completion, PlanItem, Request


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as listed: `items` planned, `done` and `failed` of them as recorded now."""

    run_id: str
    created: str
    status: str
    items: int
    done: int
    failed: int
    plan: Mapping[str, Any]
    summary: Mapping[str, Any] | None


class Store:
    """`Store("runs.db")`, `Store("postgresql+psycopg://...")` or `Store(":memory:")`; a context manager.

    Thread-safe; all writes go through one lock, and `writer` is the one thread that async code writes from.
    Every failure of the database is a StoreError; what was recorded before stays.
    """

    def __init__(self, url: str | Path = "toolparse.db", *, busy_timeout: float = 10.0) -> None:
        self.url = database_url(url)
        self._lock = threading.RLock()
        self._engine = database_engine(self.url, busy_timeout)
        self.writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="toolparse-store")
        self._finalizer = weakref.finalize(self, shut, self.writer, self._engine)
        try:
            with self._writing() as connection:
                schema.prepare(connection)
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"Store({shown_url(self.url)!r})"

    def __enter__(self) -> Store:
        return self

    def __exit__(self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Waits for writes under way and closes every connection; may be called twice."""
        self._finalizer()

    # -- writing ---------------------------------------------------------------------------------------------------

    def begin_run(
        self,
        plan: Mapping[str, Any],
        items: Iterable[PlanItem],
        *,
        requests: Iterable[Request] | Questions = (),
        run_id: str | None = None,
    ) -> str:
        """Records a plan (JSON; credentials are removed) and its items before anything is asked; returns the run id.

        `requests`, where given, are kept too, so that a run can be resumed from the store alone; of `Questions` only
        those that are not there yet are made.
        """
        now = datetime.now(UTC)
        run_id = run_id or f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        self._keep(requests)
        # Cases are data: a parameter of theirs that is called `key` or `code` is no credential.
        named = redact_named({k: v for k, v in plan.items() if k != "cases"})
        safe = redact_strings({**named, **{k: plan[k] for k in ("cases",) if k in plan}})
        with self._writing() as connection:
            floor = connection.execute(sa.select(sa.func.max(schema.completions.c.id))).scalar() or 0
            connection.execute(
                schema.runs.insert().values(
                    run_id=run_id,
                    created=now.isoformat(timespec="milliseconds"),
                    status="running",
                    floor=floor,
                    plan=json.dumps(safe, ensure_ascii=True, separators=(",", ":"), default=str),
                )
            )
            _insert_items(connection, item_rows(run_id, items))
        return run_id

    def extend_run(self, run_id: str, items: Iterable[PlanItem], requests: Iterable[Request] | Questions = ()) -> None:
        """Adds items to a run behind those it has, for questions that only answers could tell."""
        self._keep(requests)
        i = schema.items.c
        with self._writing() as connection:
            last = connection.execute(sa.select(sa.func.max(i.position)).where(i.run_id == run_id)).scalar()
            _insert_items(connection, item_rows(run_id, items, 0 if last is None else last + 1))

    def _keep(self, requests: Iterable[Request] | Questions) -> None:
        """Before the items that need them, and not in one transaction: others may write between two batches."""
        asked = questions_of(requests)
        for batch in batches(asked):
            with self._writing() as connection:
                keep_requests(connection, batch, lambda key: asked[key].to_dict())

    def finish_run(self, run_id: str, status: str, summary: Mapping[str, Any] | None = None) -> None:
        """Sets a run's status: complete, incomplete or interrupted."""
        values: dict[str, Any] = {"status": status}
        if summary is not None:
            values["summary"] = json.dumps(dict(summary), ensure_ascii=True, separators=(",", ":"), default=str)
        with self._writing() as connection:
            connection.execute(schema.runs.update().where(schema.runs.c.run_id == run_id).values(**values))

    def record(self, completion: Completion, run_id: str | None = None) -> int:
        """Writes one completion, success or failure, and returns its row id. It is on disk when this returns."""
        return self.record_many([completion], run_id)[0]

    def record_many(self, completions: Iterable[Completion], run_id: str | None = None) -> list[int]:
        """Writes completions in one transaction: all of them, or none."""
        made = list(completions)
        rows = [completion_row(c, run_id) for c in made]
        asked = {c.key: c.request for c in made if c.request}
        ids: list[int] = []
        with self._writing() as connection:
            keep_requests(connection, asked, asked.__getitem__)
            for completion, row in zip(made, rows, strict=True):
                done = connection.execute(INSERT_COMPLETION, row)
                ids.append(int(done.inserted_primary_key[0]) if done.inserted_primary_key else 0)
                keep_results(connection, ids[-1], completion.results)
        return ids

    def record_results(self, run_id: str, results: Mapping[str, Iterable[Mapping[str, str]]]) -> None:
        """Adds what functions gave back to the answers that a run has, by the keys of their questions.

        It is in `Completion.results` from then on. What is recorded for a call already stays.
        """
        if not results:
            return
        chosen = self._choice(run_id, results)
        with self._writing() as connection:
            for key, rows in results.items():
                if key in chosen:
                    keep_results(connection, chosen[key], rows)

    # -- reading ---------------------------------------------------------------------------------------------------

    def done_keys(
        self,
        keys: Iterable[str],
        *,
        run_id: str | None = None,
        fresh: bool = False,
        max_age: float | None = None,
    ) -> set[str]:
        """Those of `keys` that need not be asked: answered without an error.

        `fresh` counts only answers recorded by `run_id` itself; `max_age` (seconds) only those that are not older,
        or were recorded by `run_id`.
        """
        if fresh and run_id is None:
            return set()
        c = schema.completions.c
        wanted = sa.and_(c.status == "ok")
        if fresh:
            wanted = sa.and_(wanted, c.run_id == run_id)
        elif max_age is not None:
            oldest = (datetime.now(UTC) - timedelta(seconds=max_age)).isoformat(timespec="milliseconds")
            wanted = sa.and_(wanted, sa.or_(c.created >= oldest, c.run_id == run_id) if run_id else c.created >= oldest)
        found: set[str] = set()
        with self._reading() as connection:
            for batch in batches(dict.fromkeys(keys)):
                found.update(connection.execute(sa.select(c.key).where(c.key.in_(batch), wanted).distinct()).scalars())
        return found

    def completions(
        self, run_id: str, *, case_id: str | None = None, keys: Collection[str] | None = None
    ) -> Iterator[tuple[PlanItem, Completion]]:
        """What a run has for each item of its plan, in plan order, while it runs too; items without an answer are
        left out.

        An item's answer is the latest success that the run recorded itself, else the latest it found when it began,
        else any; only where there is none, the latest failure. `keys`: only these. Raises BadOptions for an unknown
        run.
        """
        for items in self._item_batches(run_id, case_id):
            wanted = [item for item in items if keys is None or item.key in keys]
            found = self.answers({item.key for item in wanted}, run_id=run_id)
            yield from ((item, found[item.key]) for item in wanted if item.key in found)

    def answers(self, keys: Iterable[str], *, run_id: str | None = None) -> dict[str, Completion]:
        """What there is for each of `keys`: the answer as `run_id` has it (see `completions`), else the latest
        success, else the latest failure. Raises BadOptions for an unknown run."""
        chosen = self._choice(run_id, keys)
        rows = self._rows(chosen.values())
        return {key: rows[row_id] for key, row_id in chosen.items()}

    def items(self, run_id: str, *, case_id: str | None = None) -> list[PlanItem]:
        """The plan of a run, in order. Raises BadOptions for an unknown run."""
        return [item for some in self._item_batches(run_id, case_id) for item in some]

    def requests(self, run_id: str) -> dict[str, Request]:
        """The questions of a run by key, without credentials, as far as they were recorded."""
        i, r = schema.items.c, schema.requests.c
        query = sa.select(r.key, r.body).where(r.key.in_(sa.select(i.key).where(i.run_id == run_id)))
        with self._reading() as connection:
            return {row.key: Request.from_dict(unpack_json(row.body)) for row in connection.execute(query)}

    def request(self, key: str) -> Request | None:
        """One question, without credentials, where it was recorded."""
        r = schema.requests.c
        with self._reading() as connection:
            body = connection.execute(sa.select(r.body).where(r.key == key)).scalar()
        return None if body is None else Request.from_dict(unpack_json(body))

    def get(self, key: str) -> Completion | None:
        """The latest success for a key, else the latest failure, else None."""
        return self.answers([key]).get(key)

    def recorded_keys(self, keys: Iterable[str]) -> set[str]:
        """Those of `keys` that anything is recorded for, a failure too."""
        c = schema.completions.c
        found: set[str] = set()
        with self._reading() as connection:
            for batch in batches(keys):
                found.update(connection.execute(sa.select(c.key).where(c.key.in_(batch)).distinct()).scalars())
        return found

    def history(self, key: str) -> list[Completion]:
        """Everything recorded for a key, oldest first: failed attempts and repeated questions included."""
        return self.histories([key]).get(key, [])

    def histories(self, keys: Iterable[str]) -> dict[str, list[Completion]]:
        """The histories of those of `keys` that have one."""
        c = schema.completions.c
        ids: list[int] = []
        with self._reading() as connection:
            for batch in batches(keys):
                ids.extend(connection.execute(sa.select(c.id).where(c.key.in_(batch))).scalars())
        found: dict[str, list[Completion]] = {}
        for _, completion in sorted(self._rows(ids).items()):
            found.setdefault(completion.key, []).append(completion)
        return found

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        r = schema.runs.c
        with self._reading() as connection:
            found = list(connection.execute(sa.select(schema.runs).order_by(r.created, r.run_id)))
            return [self._run_record(connection, row) for row in found]

    def run_ids(self) -> list[str]:
        """The ids of all runs, oldest first."""
        r = schema.runs.c
        with self._reading() as connection:
            return list(connection.execute(sa.select(r.run_id).order_by(r.created, r.run_id)).scalars())

    def run(self, run_id: str) -> RunRecord:
        """One run. Raises BadOptions for an unknown id."""
        with self._reading() as connection:
            return self._run_record(connection, self._known(connection, run_id))

    # -- below -----------------------------------------------------------------------------------------------------

    def _run_record(self, connection: sa.Connection, row: Any) -> RunRecord:
        i, c = schema.items.c, schema.completions.c
        query = sa.select(sa.func.count()).select_from(schema.items).where(i.run_id == row.run_id)
        ok, failed = (sa.exists().where(c.key == i.key, c.status == status) for status in ("ok", "error"))
        counts = [connection.execute(q).scalar_one() for q in (query, query.where(ok), query.where(~ok, failed))]
        return RunRecord(
            run_id=row.run_id,
            created=row.created,
            status=row.status,
            items=counts[0],
            done=counts[1],
            failed=counts[2],
            plan=json.loads(row.plan),
            summary=json.loads(row.summary) if row.summary else None,
        )

    def _known(self, connection: sa.Connection, run_id: str) -> Any:
        row = connection.execute(sa.select(schema.runs).where(schema.runs.c.run_id == run_id)).first()
        if row is None:
            recent = connection.execute(
                sa.select(schema.runs.c.run_id).order_by(schema.runs.c.created.desc()).limit(5)
            ).scalars()
            raise BadOptions("There is no run of that id in this store.", got=run_id, expected=list(recent))
        return row

    def _item_batches(self, run_id: str, case_id: str | None) -> Iterator[list[PlanItem]]:
        """The plan of a run a few hundred items at a time, so that one of any length may be read."""
        i = schema.items.c
        query = sa.select(i.position, i.case_id, i.model, i.trial, i.arm, i.key).where(i.run_id == run_id)
        query = query.order_by(i.position).limit(BATCH)
        if case_id is not None:
            query = query.where(i.case_id == case_id)
        arms: dict[str, Any] = {}  # a handful of different ones
        last = -1
        with self._reading() as connection:
            self._known(connection, run_id)
        while True:
            with self._reading() as connection:
                rows = connection.execute(query.where(i.position > last)).all()
            for row in rows:
                if row.arm not in arms:
                    arms[row.arm] = json.loads(row.arm)
            yield [PlanItem(row.case_id, row.model, row.key, row.trial, arms[row.arm]) for row in rows]
            if len(rows) < BATCH:
                return
            last = rows[-1].position

    def _choice(self, run_id: str | None, keys: Iterable[str]) -> dict[str, int]:
        """The row id of the answer to each of `keys` that has one, as a run has it or, without one, the latest."""
        c = schema.completions.c
        query = sa.select(c.key, c.id, c.status, c.run_id)
        best: dict[str, tuple[bool, bool, bool, int]] = {}
        with self._reading() as connection:
            floor = -1 if run_id is None else self._known(connection, run_id).floor
            for batch in batches(keys):
                for row in connection.execute(query.where(c.key.in_(batch))):
                    own = run_id is not None and row.run_id == run_id
                    rank = (row.status == "ok", own, row.id <= floor, row.id)
                    if row.key not in best or rank > best[row.key]:
                        best[row.key] = rank
        return {key: rank[3] for key, rank in best.items()}

    def _rows(self, ids: Iterable[int]) -> dict[int, Completion]:
        c = schema.completions
        joined = c.outerjoin(schema.requests, schema.requests.c.key == c.c.key)
        query = sa.select(c, schema.requests.c.body).select_from(joined)
        found: dict[int, Completion] = {}
        t = schema.tool_results.c
        told = sa.select(t.completion_id, t.body).order_by(t.completion_id, t.call)
        with self._reading() as connection:
            for batch in batches(ids):
                results: dict[int, list[dict[str, str]]] = {}
                for row in connection.execute(told.where(t.completion_id.in_(batch))):
                    results.setdefault(row.completion_id, []).append(unpack_json(row.body))
                for row in connection.execute(query.where(c.c.id.in_(batch))):
                    found[row.id] = completion_of(row, results.get(row.id, ()))
        return found

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with self._lock, translated(self.url), self._engine.connect() as connection:
            connection = connection.execution_options(toolparse_write=True)
            with connection.begin():
                yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        # A database in memory is one connection, on which a reader would join a writer's transaction.
        shared = isinstance(self._engine.pool, sa.StaticPool)
        with self._lock if shared else nullcontext(), translated(self.url), self._engine.connect() as connection:
            yield connection


def _insert_items(connection: sa.Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    for some in batches(rows):
        connection.execute(schema.items.insert(), some)
