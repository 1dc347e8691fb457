"""Where runs, plans and completions are kept: SQLite by default (WAL), any SQLAlchemy URL by the same code.

A completion is written, raw, before anything reads it. Texts of models are bytes here, because lone surrogates and
NUL characters break text columns. What was recorded is never changed or deleted: asking again adds a row.
"""

from __future__ import annotations

import json
import secrets
import threading
import weakref
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ..errors import BadOptions
from . import store_schema as schema
from .redaction import redact_named, redact_strings
from .store_engine import database_engine, database_url, shut, translated
from .types import Chunk, Completion, PlanItem, Request

_T = TypeVar("_T")
_BATCH = 400  # below every database's limit on parameters of one statement
_PACKED = ("raw", "chunks", "reasoning", "response")
_PLAIN = tuple(
    f.name for f in fields(Completion) if f.name not in (*_PACKED, "request") and f.name in schema.completions.c
)


def pack(text: str) -> bytes:
    """Text as compressed bytes that keep lone surrogates."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpack(blob: bytes) -> str:
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


def _pack_json(value: Any) -> bytes:
    return pack(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str))


def _unpack_json(blob: bytes) -> Any:
    return json.loads(unpack(blob))


def _text(value: str | None) -> str | None:
    """A text for a text column: what UTF-8 or PostgreSQL cannot hold becomes a replacement character."""
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


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
        return f"Store({self.url.render_as_string(hide_password=True)!r})"

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
        requests: Iterable[Request] = (),
        run_id: str | None = None,
    ) -> str:
        """Records a plan (JSON; credentials are removed) and its items before anything is asked; returns the run id.

        `requests`, where given, are kept too, so that a run can be resumed from the store alone.
        """
        now = datetime.now(UTC)
        run_id = run_id or f"{now:%Y%m%dT%H%M%S}-{secrets.token_hex(3)}"
        rows = _item_rows(run_id, items)
        bodies = {r.key: r.to_dict() for r in requests}
        safe = redact_strings(redact_named(dict(plan)))
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
            if rows:
                connection.execute(schema.items.insert(), rows)
            _keep_requests(connection, bodies)
        return run_id

    def extend_run(self, run_id: str, items: Iterable[PlanItem], requests: Iterable[Request] = ()) -> None:
        """Adds items to a run behind those it has, for questions that only answers could tell."""
        bodies = {r.key: r.to_dict() for r in requests}
        i = schema.items.c
        with self._writing() as connection:
            last = connection.execute(sa.select(sa.func.max(i.position)).where(i.run_id == run_id)).scalar()
            rows = _item_rows(run_id, items, 0 if last is None else last + 1)
            if rows:
                connection.execute(schema.items.insert(), rows)
            _keep_requests(connection, bodies)

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
        ids: list[int] = []
        with self._writing() as connection:
            keep_request = _insert_or_keep(connection, schema.requests)
            for c in completions:
                values = {name: getattr(c, name) for name in _PLAIN}
                for name in ("error_message", "finish_reason", "system_fingerprint"):
                    values[name] = _text(values[name])
                values["run_id"] = run_id
                values["raw"] = pack(c.raw)
                values["chunks"] = _pack_json([[x.at, x.text, x.kind] for x in c.chunks]) if c.chunks else None
                values["reasoning"] = pack(c.reasoning) if c.reasoning else None
                values["response"] = _pack_json(dict(c.response)) if c.response is not None else None
                if c.request:
                    connection.execute(keep_request, {"key": c.key, "body": _pack_json(dict(c.request))})
                made = connection.execute(schema.completions.insert().values(**values))
                ids.append(int(made.inserted_primary_key[0]) if made.inserted_primary_key else 0)
        return ids

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
            for batch in _batches(dict.fromkeys(keys)):
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
        for batch in _batches(c for c in self._chosen(run_id, case_id) if keys is None or c[0].key in keys):
            rows = self._rows([i for _, i in batch])
            for item, row_id in batch:
                yield item, rows[row_id]

    def items(self, run_id: str, *, case_id: str | None = None) -> list[PlanItem]:
        """The plan of a run, in order. Raises BadOptions for an unknown run."""
        i = schema.items.c
        query = sa.select(i.case_id, i.model, i.trial, i.arm, i.key).where(i.run_id == run_id).order_by(i.position)
        if case_id is not None:
            query = query.where(i.case_id == case_id)
        with self._reading() as connection:
            self._known(connection, run_id)
            return [
                PlanItem(case_id=r.case_id, model=r.model, key=r.key, trial=r.trial, arm=json.loads(r.arm))
                for r in connection.execute(query)
            ]

    def requests(self, run_id: str) -> dict[str, Request]:
        """The questions of a run by key, without credentials, as far as they were recorded."""
        i, r = schema.items.c, schema.requests.c
        query = sa.select(r.key, r.body).where(r.key.in_(sa.select(i.key).where(i.run_id == run_id)))
        with self._reading() as connection:
            return {row.key: Request.from_dict(_unpack_json(row.body)) for row in connection.execute(query)}

    def get(self, key: str) -> Completion | None:
        """The latest success for a key, else the latest failure, else None."""
        c = schema.completions.c
        query = sa.select(c.id).where(c.key == key).order_by((c.status == "ok").desc(), c.id.desc()).limit(1)
        with self._reading() as connection:
            row_id = connection.execute(query).scalar()
        return None if row_id is None else self._rows([row_id])[row_id]

    def history(self, key: str) -> list[Completion]:
        """Everything recorded for a key, oldest first: failed attempts and repeated questions included."""
        c = schema.completions.c
        with self._reading() as connection:
            ids = list(connection.execute(sa.select(c.id).where(c.key == key).order_by(c.id)).scalars())
        rows = self._rows(ids)
        return [rows[i] for i in ids]

    def runs(self) -> list[RunRecord]:
        """All runs, oldest first."""
        r = schema.runs.c
        with self._reading() as connection:
            found = list(connection.execute(sa.select(schema.runs).order_by(r.created, r.run_id)))
        return [self._run_record(row) for row in found]

    def run(self, run_id: str) -> RunRecord:
        """One run. Raises BadOptions for an unknown id."""
        with self._reading() as connection:
            return self._run_record(self._known(connection, run_id))

    # -- below -----------------------------------------------------------------------------------------------------

    def _run_record(self, row: Any) -> RunRecord:
        planned = self.items(row.run_id)
        chosen = dict(self._choice(row.run_id, row.floor))
        states = [chosen.get(item.key, (0, ""))[1] for item in planned]
        return RunRecord(
            run_id=row.run_id,
            created=row.created,
            status=row.status,
            items=len(planned),
            done=states.count("ok"),
            failed=states.count("error"),
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

    def _chosen(self, run_id: str, case_id: str | None) -> list[tuple[PlanItem, int]]:
        planned = self.items(run_id, case_id=case_id)
        with self._reading() as connection:
            floor = self._known(connection, run_id).floor
        chosen = dict(self._choice(run_id, floor))
        return [(item, chosen[item.key][0]) for item in planned if item.key in chosen]

    def _choice(self, run_id: str, floor: int) -> Iterator[tuple[str, tuple[int, str]]]:
        """For each key of a run, the row id and status of its answer."""
        c, i = schema.completions.c, schema.items.c
        query = (
            sa.select(c.key, c.id, c.status, c.run_id)
            .where(c.key.in_(sa.select(i.key).where(i.run_id == run_id)))
            .order_by(c.id)
        )
        best: dict[str, tuple[tuple[bool, bool, bool, int], str]] = {}
        with self._reading() as connection:
            for row in connection.execute(query):
                rank = (row.status == "ok", row.run_id == run_id, row.id <= floor, row.id)
                if row.key not in best or rank > best[row.key][0]:
                    best[row.key] = (rank, row.status)
        for key, (rank, status) in best.items():
            yield key, (rank[3], status)

    def _rows(self, ids: list[int]) -> dict[int, Completion]:
        c = schema.completions
        joined = c.outerjoin(schema.requests, schema.requests.c.key == c.c.key)
        query = sa.select(c, schema.requests.c.body).select_from(joined)
        found: dict[int, Completion] = {}
        with self._reading() as connection:
            for batch in _batches(ids):
                for row in connection.execute(query.where(c.c.id.in_(batch))):
                    found[row.id] = _completion(row)
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


def _completion(row: Any) -> Completion:
    values: dict[str, Any] = {name: getattr(row, name) for name in _PLAIN}
    values["raw"] = unpack(row.raw)
    chunks = _unpack_json(row.chunks) if row.chunks is not None else []
    values["chunks"] = tuple(Chunk(at, text, kind) for at, text, kind in chunks)
    values["reasoning"] = unpack(row.reasoning) if row.reasoning is not None else ""
    values["response"] = _unpack_json(row.response) if row.response is not None else None
    values["request"] = _unpack_json(row.body) if row.body is not None else {}
    return Completion(**values)


def _item_rows(run_id: str, items: Iterable[PlanItem], start: int = 0) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run_id,
            "position": n,
            "case_id": _text(item.case_id),
            "model": _text(item.model),
            "trial": item.trial,
            "arm": json.dumps(dict(item.arm), ensure_ascii=True, separators=(",", ":")),
            "key": item.key,
        }
        for n, item in enumerate(items, start)
    ]


def _keep_requests(connection: sa.Connection, bodies: Mapping[str, Any]) -> None:
    if bodies:
        connection.execute(
            _insert_or_keep(connection, schema.requests),
            [{"key": k, "body": _pack_json(v)} for k, v in bodies.items()],
        )


def _insert_or_keep(connection: sa.Connection, table: sa.Table) -> Any:
    made = sqlite.insert(table) if connection.dialect.name == "sqlite" else postgresql.insert(table)
    return made.on_conflict_do_nothing()


def _batches(values: Iterable[_T]) -> Iterator[list[_T]]:
    batch: list[_T] = []
    for value in values:
        batch.append(value)
        if len(batch) == _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch
