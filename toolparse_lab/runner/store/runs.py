"""Runs as read from the store: their plans, the answer that counts for each question, and notes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa

from ...core.errors import BadOptions
from ..exchange.types import Completion, PlanItem
from . import schema
from .batches import BATCH, batches
from .rows import completion_of, unpack_json


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as listed: `items` planned, `done` and `failed` of them as recorded now."""

    run_id: str
    created: str
    status: str
    """what it is now: running, complete, incomplete or interrupted; see `status_now`"""
    items: int
    done: int
    failed: int
    plan: Mapping[str, Any]
    summary: Mapping[str, Any] | None
    alive: bool = False
    """whether somebody is working on it now"""


def items_of(row: Any) -> sa.ColumnElement[bool]:
    # A run that began with the items of an earlier one has none of these itself.
    i = schema.items.c
    own: sa.ColumnElement[bool] = i.run_id == row.run_id
    if row.items_from is None:
        return own
    return sa.or_(own, sa.and_(i.run_id == row.items_from, i.position < row.items_count))


def run_row(connection: sa.Connection, run_id: str) -> Any:
    """Return the row of a run.

    Raises BadOptions for an unknown id, with the newest ids.
    """
    r = schema.runs.c
    row = connection.execute(sa.select(schema.runs).where(r.run_id == run_id)).first()
    if row is not None:
        return row

    newest = sa.select(r.run_id).order_by(r.created.desc()).limit(5)
    raise BadOptions(
        "there is no run of that id in this store",
        got=run_id,
        expected=list(connection.execute(newest).scalars()),
    )


def run_record(connection: sa.Connection, row: Any, living: Collection[str] = ()) -> RunRecord:
    """Return a run with its counts: an item is done where any run answered its question, and failed
    where there are failures only. `living`: the runs that someone works on.
    """
    i, c = schema.items.c, schema.completions.c
    items = sa.select(sa.func.count()).select_from(schema.items).where(items_of(row))
    answered = sa.exists().where(c.key == i.key, c.status == "ok")
    tried = sa.exists().where(c.key == i.key, c.status == "error")

    def count(query: Any) -> int:
        return int(connection.execute(query).scalar_one())

    plan = json.loads(row.plan)
    planned, done = count(items), count(items.where(answered))
    alive = row.run_id in living
    return RunRecord(
        run_id=row.run_id,
        created=row.created,
        status=status_now(row.status, alive, 0 < planned == done, plan),
        items=planned,
        done=done,
        failed=count(items.where(~answered, tried)),
        plan=plan,
        summary=json.loads(row.summary) if row.summary else None,
        alive=alive,
    )


def status_now(ended: str, alive: bool, answered: bool, plan: Mapping[str, Any]) -> str:
    """Return the status of a run that was last written down as `ended`: interrupted where no one
    works on it although it has not ended, and complete too where later runs have answered all of
    it.

    A run of conversations keeps the status with which it ended, since its next questions are
    unknown before its answers are read.
    """
    status = "interrupted" if ended == "running" and not alive else ended
    if status not in ("incomplete", "interrupted"):
        return status
    turns = [int(arm.get("max_turns") or 1) for arm in plan.get("arms") or ()]
    conversing = max(turns, default=1) > 1
    return "complete" if answered and not conversing else status


class ItemPages:
    """The plan of a run, a few hundred items at a time, so that one of any length may be read.

    Each page is read in a transaction of its own (`read(connection)`), so that a reader that takes
    its time blocks no writer. Pages are found by position, since items are only ever added behind.
    """

    def __init__(self, row: Any, case_id: str | None) -> None:
        i = schema.items.c
        query = sa.select(i.position, i.case_id, i.model, i.trial, i.arm, i.key)
        query = query.where(items_of(row)).order_by(i.position).limit(BATCH)
        if case_id is not None:
            query = query.where(i.case_id == case_id)
        self._query = query
        self._last = -1
        # A plan has a handful of different arms: each is parsed once, and shared.
        self._arms: dict[str, Any] = {}
        self.over = False

    def read(self, connection: sa.Connection) -> list[PlanItem]:
        """Return the next page. Sets `over` if it is the last one."""
        rows = connection.execute(self._query.where(schema.items.c.position > self._last)).all()
        self.over = len(rows) < BATCH
        if rows:
            self._last = rows[-1].position
        return list(map(self._item, rows))

    def _item(self, row: Any) -> PlanItem:
        arm = self._arms.get(row.arm)
        if arm is None:
            arm = self._arms[row.arm] = json.loads(row.arm)
        return PlanItem(row.case_id, row.model, row.key, row.trial, arm)


def new_items_position(connection: sa.Connection, run_id: str) -> int:
    """Return the position of the first item added to a run now."""
    i = schema.items.c
    row = run_row(connection, run_id)
    last = connection.execute(sa.select(sa.func.max(i.position)).where(items_of(row))).scalar()
    return 0 if last is None else last + 1


# How an answer is chosen. Nothing is overwritten, so a question may have many rows: failed
# attempts, answers of other runs, answers asked again. A run must show the same answer every time
# it is read, also when other runs record more later. So the best row is: a success rather than a
# failure, the run's own rather than another's, one that was there when the run began rather than a
# later one, and of these the newest. All rows of the keys are looked at, without their texts, in
# one pass over the index of keys; only the chosen ones are then loaded.


class _Rank(NamedTuple):
    # The order of a question's rows, compared from left to right. The greatest one counts.
    ok: bool
    own: bool
    before_run: bool
    row_id: int


def chosen_ids(
    connection: sa.Connection, keys: Iterable[str], run_id: str | None, floor: int
) -> dict[str, int]:
    """Return the row id of the answer to each of `keys` that has one, as a run has it.

    `floor` is the newest row when the run began. Without a run it is -1, and the newest counts.
    """
    c = schema.completions.c
    query = sa.select(c.key, c.id, c.status, c.run_id)
    best: dict[str, _Rank] = {}
    for batch in batches(keys):
        for row in connection.execute(query.where(c.key.in_(batch))):
            own = run_id is not None and row.run_id == run_id
            rank = _Rank(row.status == "ok", own, row.id <= floor, row.id)
            if row.key not in best or rank > best[row.key]:
                best[row.key] = rank
    return {key: rank.row_id for key, rank in best.items()}


def completions_by_id(connection: sa.Connection, ids: Iterable[int]) -> dict[int, Completion]:
    c = schema.completions
    joined = c.outerjoin(schema.requests, schema.requests.c.key == c.c.key)
    query = sa.select(c, schema.requests.c.body).select_from(joined)
    completions: dict[int, Completion] = {}
    for batch in batches(ids):
        results = _results(connection, batch)
        for row in connection.execute(query.where(c.c.id.in_(batch))):
            completions[row.id] = completion_of(row, results.get(row.id, ()))
    return completions


def _results(connection: sa.Connection, ids: list[int]) -> dict[int, list[dict[str, str]]]:
    # By the row id of their answer.
    t = schema.tool_results.c
    # By call, which is a digest: any order will do, as long as it is the same every time.
    query = sa.select(t.completion_id, t.body).order_by(t.completion_id, t.call)
    results: dict[int, list[dict[str, str]]] = {}
    for row in connection.execute(query.where(t.completion_id.in_(ids))):
        results.setdefault(row.completion_id, []).append(unpack_json(row.body))
    return results


def keys_where(connection: sa.Connection, keys: Iterable[str], *conditions: Any) -> set[str]:
    """Return the subset of `keys` that has a row that fulfils all conditions."""
    c = schema.completions.c
    matching: set[str] = set()
    for batch in batches(keys):
        query = sa.select(c.key).where(c.key.in_(batch), *conditions).distinct()
        matching.update(connection.execute(query).scalars())
    return matching


def ids_of(connection: sa.Connection, keys: Iterable[str]) -> list[int]:
    """Return the row ids of everything recorded for `keys`, in no order."""
    c = schema.completions.c
    ids: list[int] = []
    for batch in batches(keys):
        ids.extend(connection.execute(sa.select(c.id).where(c.key.in_(batch))).scalars())
    return ids


# How remarks are kept. Every change adds a row with the parts that changed, and of each part the
# newest holds. The body is ASCII JSON as bytes: a person may paste what a model wrote, NUL and lone
# surrogates included, which break text columns.


def insert_remark(
    connection: sa.Connection, run_id: str, trial_id: str, remark: Mapping[str, str]
) -> None:
    """Add parts of the remarks on a trial. Rows before it stay."""
    connection.execute(
        schema.remarks.insert().values(
            run_id=run_id,
            trial_id=trial_id,
            created=datetime.now(UTC).isoformat(timespec="milliseconds"),
            body=json.dumps(dict(remark), ensure_ascii=True).encode("ascii"),
        )
    )


def newest_remarks(connection: sa.Connection, run_id: str) -> dict[str, dict[str, str]]:
    # Of each part the newest.
    r = schema.remarks.c
    query = sa.select(r.trial_id, r.body).where(r.run_id == run_id).order_by(r.id)
    remarks: dict[str, dict[str, str]] = {}
    for row in connection.execute(query):
        remarks.setdefault(row.trial_id, {}).update(json.loads(row.body))
    return remarks
