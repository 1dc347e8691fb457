"""Which of a question's recorded answers counts, and the answers themselves by row id."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import sqlalchemy as sa

from ..exchange.types import Completion
from . import schema
from .batches import batches
from .rows import completion_of, unpack_json

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
    """Return the completions of these row ids, each with its request and the results of
    its calls.
    """
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
