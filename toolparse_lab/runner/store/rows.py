"""The rows of the store's tables, made from the runner's types and back: answers, the plans of
runs, and the answer that counts for each question.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from ...core.errors import BadOptions
from ...core.values import write_canonical
from ..exchange.types import RESULT_KEYS, Chunk, Completion, PlanItem
from . import schema
from .batches import batches

# How rows are made. A completion's plain fields have a column of their own name; five are packed
# (zlib over UTF-8 with surrogatepass), because a model's text may have lone surrogates and NUL
# characters in it, which break text columns. The request is a row of `requests`, once for all
# answers to it, and results are rows of `tool_results`, which may be added later. So no answer is
# ever updated.

_PACKED = ("raw", "chunks", "reasoning", "response", "results")
_PLAIN = tuple(
    f.name
    for f in fields(Completion)
    if f.name not in (*_PACKED, "request") and f.name in schema.completions.c
)
COMPLETION_ROW = (*_PLAIN, "run_id", "raw", "chunks", "reasoning", "response")
"""The names of what `completion_row` returns, in order."""
# Plain fields with the words of a provider, with whatever characters it sent.
_FOREIGN_TEXTS = tuple(map(_PLAIN.index, ("error_message", "finish_reason", "system_fingerprint")))
_plain_fields = attrgetter(*_PLAIN)
# Built once, because building a statement costs more than running it.
INSERT_COMPLETION = schema.completions.insert()
_KNOWN_REQUESTS = sa.select(schema.requests.c.key).where(
    schema.requests.c.key.in_(sa.bindparam("keys", expanding=True))
)


def pack(text: str) -> bytes:
    """Return text as compressed bytes that keep lone surrogates."""
    return zlib.compress(text.encode("utf-8", "surrogatepass"))


def unpack(blob: bytes) -> str:
    """Return the text that `pack` was called with."""
    return zlib.decompress(blob).decode("utf-8", "surrogatepass")


def pack_json(value: Any) -> bytes:
    # A value that is not JSON is written as its text.
    return pack(_write(value))


_write = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str).encode


def unpack_json(blob: bytes) -> Any:
    """Return the value that `pack_json` was called with."""
    return json.loads(unpack(blob))


def plain_text(value: str | None) -> str | None:
    """Return a text for a text column: text that UTF-8 or PostgreSQL cannot store becomes a
    replacement character.
    """
    if value is None or (value.isascii() and "\0" not in value):
        return value
    return value.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


# -- writing


def completion_row(c: Completion, run_id: str | None) -> tuple[Any, ...]:
    """Return a completion as a `COMPLETION_ROW`, recorded by `run_id` or by no run.

    Its request and results are not in it: `keep_requests` and `keep_results` write them.
    """
    plain = list(_plain_fields(c))
    for place in _FOREIGN_TEXTS:
        plain[place] = plain[place] and plain_text(plain[place])
    chunks = pack_json([[x.at, x.text, x.kind] for x in c.chunks]) if c.chunks else None
    reasoning = pack(c.reasoning) if c.reasoning else None
    response = pack_json(dict(c.response)) if c.response is not None else None
    return (*plain, run_id, pack(c.raw), chunks, reasoning, response)


ITEM_ROW = ("run_id", "position", "case_id", "model", "trial", "arm", "key")
"""The names of what `item_rows` yields, in order."""


def item_rows(
    run_id: str, items: Iterable[PlanItem], start: int = 0
) -> Iterator[tuple[str, int, str | None, str | None, int, str, str]]:
    """Yield the rows of a plan's items, numbered from `start` in their order."""
    # The items of an arm mostly share its levels, which are then written once.
    arm, text = None, ""
    for n, item in enumerate(items, start):
        if item.arm is not arm and item.arm != arm:
            arm = item.arm
            text = json.dumps(dict(arm), ensure_ascii=True, separators=(",", ":"))
        case_id, model = plain_text(item.case_id), plain_text(item.model)
        yield run_id, n, case_id, model, item.trial, text, item.key


def items_digest(items: Iterable[PlanItem]) -> str:
    """Return the identity of a plan's items in their order, as hexadecimal sha256."""
    digest = hashlib.sha256()
    write = json.JSONEncoder().encode
    for batch in batches(item_rows("", items)):
        digest.update(write(batch).encode("ascii"))
    return digest.hexdigest()


def insert_rows(
    connection: sa.Connection, table: sa.Table, names: Sequence[str], rows: list[Any]
) -> None:
    """Write rows, tuples of the columns of these names."""
    if connection.dialect.name != "sqlite":
        connection.execute(table.insert(), [dict(zip(names, row, strict=True)) for row in rows])
    elif rows:
        # SQLite takes these values as they are; to look at each of them takes as long as to write.
        places = ", ".join("?" * len(names))
        statement = f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({places})"  # noqa: S608
        connection.exec_driver_sql(statement, rows)


def keep_requests(
    connection: sa.Connection, keys: Iterable[str], body: Callable[[str], bytes]
) -> None:
    # Those that are not there yet: only of these the packed body is asked for.
    # In one order for all: two on a server that add the same ones would wait for each other.
    for batch in batches(sorted(set(keys))):
        present = set(connection.execute(_KNOWN_REQUESTS, {"keys": batch}).scalars())
        # Making a body renders a prompt, which costs more than the query above.
        rows = [{"key": key, "body": body(key)} for key in batch if key not in present]
        if rows:
            connection.execute(insert_or_keep(connection, schema.requests), rows)


def keep_results(
    connection: sa.Connection, completion_id: int, results: Iterable[Mapping[str, str]]
) -> None:
    # The first one recorded for a call stays.
    rows = []
    for result in results:
        members = {name: str(result[name]) for name in RESULT_KEYS}
        # A call is known by its id, name and arguments together: models repeat ids.
        call = write_canonical([members["call_id"], members["name"], members["arguments_json"]])
        digest = hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
        rows.append({"completion_id": completion_id, "call": digest, "body": pack_json(members)})
    if rows:
        connection.execute(insert_or_keep(connection, schema.tool_results), rows)


def insert_or_keep(connection: sa.Connection, table: sa.Table) -> Any:
    # Rows of the same key stay, whoever wrote them in between.
    insert: Any = sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing()


# -- runs


@dataclass(frozen=True)
class RunRecord:
    """A run as listed: `items` planned, `done` and `failed` of them as recorded now.

    An item is done where any run answered its question, and failed where there are failures only.
    """

    run_id: str
    created: str
    status: str
    """what it is now: running, complete, incomplete or interrupted; see `with_answers`"""
    items: int
    outline: Mapping[str, Any] = field(repr=False)
    """the plan, whose cases are None where they have not been read"""
    summary: Mapping[str, Any] | None = field(repr=False)
    alive: bool
    """whether somebody is working on it now"""
    load: Callable[[], Mapping[str, Any]] = field(repr=False, compare=False)
    count: Callable[[], tuple[int, int]] = field(repr=False, compare=False)

    # Both when somebody asks: of a run of a million answers they take seconds.

    @cached_property
    def plan(self) -> Mapping[str, Any]:
        """The plan as it was recorded."""
        return self.load()

    @cached_property
    def _counts(self) -> tuple[int, int]:
        return self.count()

    @property
    def done(self) -> int:
        return self._counts[0]

    @property
    def failed(self) -> int:
        return self._counts[1]


RUN = [column for column in schema.runs.c if column.name != "plan"]


def run_row(connection: sa.Connection, run_id: str) -> Any:
    """Return the row of a run, without its plan, which may be long.

    Raises BadOptions for an unknown id, with the newest ids.
    """
    r = schema.runs.c
    row = connection.execute(sa.select(*RUN).where(r.run_id == run_id)).first()
    if row is not None:
        return row

    newest = sa.select(r.run_id).order_by(r.created.desc()).limit(5)
    raise BadOptions(
        "there is no run of that id in this store",
        got=run_id,
        expected=list(connection.execute(newest).scalars()),
    )


def run_record(
    connection: sa.Connection,
    row: Any,
    living: Collection[str],
    load: Callable[[str], Mapping[str, Any]],
    count: Callable[[str], tuple[int, int]],
) -> RunRecord:
    """Return a run. living: the runs that someone works on. load: gives the plan of a run. count:
    gives the numbers of its items that are done and that failed.
    """
    alive = row.run_id in living
    return RunRecord(
        run_id=row.run_id,
        created=row.created,
        status="interrupted" if row.status == "running" and not alive else row.status,
        items=int(connection.execute(_counted(row)).scalar_one()),
        outline=outline_of(connection, row.run_id),
        summary=json.loads(row.summary) if row.summary else None,
        alive=alive,
        load=partial(load, row.run_id),
        count=partial(count, row.run_id),
    )


def plan_of(connection: sa.Connection, run_id: str) -> Mapping[str, Any]:
    """Return the plan of a run as it was recorded."""
    r = schema.runs.c
    text = connection.execute(sa.select(r.plan).where(r.run_id == run_id)).scalar_one()
    plan: Mapping[str, Any] = json.loads(text)
    return plan


def outline_of(connection: sa.Connection, run_id: str) -> Mapping[str, Any]:
    """Return the plan of a run, with None in the place of its cases where that saves reading
    them.
    """
    r = schema.runs.c
    if connection.dialect.name == "sqlite":
        brief = sa.func.json_replace(r.plan, "$.cases", None)
        with suppress(sa.exc.DBAPIError):  # a number that is none, which only Python reads as JSON
            text = connection.execute(sa.select(brief).where(r.run_id == run_id)).scalar_one()
            outline: Mapping[str, Any] = json.loads(text)
            return outline
    return plan_of(connection, run_id)


def counts_of(connection: sa.Connection, run_id: str) -> tuple[int, int]:
    """Return the numbers of items of a run that are done, and of those that failed."""
    i, c = schema.items.c, schema.completions.c
    items = _counted(run_row(connection, run_id))
    answered = sa.exists().where(c.key == i.key, c.status == "ok")
    tried = sa.exists().where(c.key == i.key, c.status == "error")
    done = connection.execute(items.where(answered)).scalar_one()
    failed = connection.execute(items.where(~answered, tried)).scalar_one()
    return int(done), int(failed)


def _counted(row: Any) -> sa.Select[Any]:
    return sa.select(sa.func.count()).select_from(schema.items).where(items_of(row))


def with_answers(run: RunRecord) -> RunRecord:
    """Return a run as complete that ended before its plan was done, where later runs have answered
    all of it.

    A run of conversations keeps the status with which it ended, since its next questions are
    unknown before its answers are read.
    """
    if run.status not in ("incomplete", "interrupted"):
        return run
    is_open = any(
        int(arm.get("max_turns") or 1) > 1 or arm.get("corrections")
        for arm in run.outline.get("arms") or ()
    )
    is_answered = not is_open and 0 < run.items == run.done
    return replace(run, status="complete") if is_answered else run


def items_of(row: Any) -> sa.ColumnElement[bool]:
    # A run that began with the items of an earlier one has none of these itself.
    i = schema.items.c
    own: sa.ColumnElement[bool] = i.run_id == row.run_id
    if row.items_from is None:
        return own
    return sa.or_(own, sa.and_(i.run_id == row.items_from, i.position < row.items_count))


# -- answers

# How an answer is chosen. Nothing is overwritten, so a question may have many rows: failed
# attempts, answers of other runs, answers asked again. A run must show the same answer every time
# it is read, also when other runs record more later. So the best row is: a success rather than a
# failure, the run's own rather than another's, one that was there when the run began rather than a
# later one, and of these the newest. All rows of the keys are looked at, without their texts, in
# one pass over the index of keys; only the chosen ones are then loaded.


def chosen_ids(
    connection: sa.Connection, keys: Iterable[str], run_id: str | None, floor: int
) -> dict[str, int]:
    """Return the row id of the answer to each of `keys` that has one, as a run has it.

    `floor` is the newest row when the run began. Without a run it is -1, and the newest counts.
    """
    c = schema.completions.c
    query = sa.select(c.key, c.id, c.status, c.run_id)
    best: dict[str, tuple[bool, bool, bool, int]] = {}
    for batch in batches(keys):
        for row in connection.execute(query.where(c.key.in_(batch))):
            own = run_id is not None and row.run_id == run_id
            rank = (row.status == "ok", own, row.id <= floor, row.id)
            if row.key not in best or rank > best[row.key]:
                best[row.key] = rank
    return {key: rank[-1] for key, rank in best.items()}


def completions_by_id(connection: sa.Connection, ids: Iterable[int]) -> dict[int, Completion]:
    """Return completions by the ids of their rows, with their requests and results."""
    c, t = schema.completions, schema.tool_results.c
    joined = c.outerjoin(schema.requests, schema.requests.c.key == c.c.key)
    query = sa.select(c, schema.requests.c.body).select_from(joined)
    # By call, which is a digest: any order will do, as long as it is the same every time.
    result_query = sa.select(t.completion_id, t.body).order_by(t.completion_id, t.call)
    completions: dict[int, Completion] = {}
    for batch in batches(ids):
        results: dict[int, list[dict[str, str]]] = {}
        for row in connection.execute(result_query.where(t.completion_id.in_(batch))):
            results.setdefault(row.completion_id, []).append(unpack_json(row.body))
        for row in connection.execute(query.where(c.c.id.in_(batch))):
            completions[row.id] = completion_of(row._asdict(), row.body, results.get(row.id, ()))
    return completions


def completion_of(
    row: Mapping[str, Any], request: bytes | None, results: Iterable[Mapping[str, str]] = ()
) -> Completion:
    """Return the completion that `completion_row` was called with. request: packed."""
    values: dict[str, Any] = {name: row[name] for name in _PLAIN}
    values["raw"] = unpack(row["raw"])
    if row["chunks"] is not None:
        chunks = unpack_json(row["chunks"])
        values["chunks"] = tuple(Chunk(at, text, kind) for at, text, kind in chunks)
    if row["reasoning"] is not None:
        values["reasoning"] = unpack(row["reasoning"])
    if row["response"] is not None:
        values["response"] = unpack_json(row["response"])
    if request is not None:
        values["request"] = unpack_json(request)
    return Completion(**values, results=tuple(results))


def keys_where(connection: sa.Connection, keys: Iterable[str], *conditions: Any) -> set[str]:
    """Return the subset of `keys` that has a row that fulfils all conditions."""
    c = schema.completions.c
    matching: set[str] = set()
    for batch in batches(keys):
        query = sa.select(c.key).where(c.key.in_(batch), *conditions).distinct()
        matching.update(connection.execute(query).scalars())
    return matching
