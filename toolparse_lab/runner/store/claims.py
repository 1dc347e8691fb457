"""Claims: which process asks a question now, so that several on one store ask nothing twice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from . import schema
from .batches import batches
from .rows import insert_or_keep
from .workers import LEASE, add_worker, live_owners, now_of, renew

# How claims work. Everybody who asks is a row of `workers` with a lease, which is renewed while it
# lives; a claim names its worker and has no lease of its own, so that one small update keeps any
# number of claims. Who lives, `workers` says. Claims of the dead are free. A claim is taken first
# and the answers are looked at afterwards: whoever recorded an answer before it let go of its claim
# is then seen. A question that has failed for good stays claimed with the kind of its failure, so
# that those who run at the same time do not ask it again; whoever begins later may.
#
# Which of two came later is told by a clock of the store that never goes back (`_latest`): the
# database's clock may be set back, and old failures would then look as if they were new.
#
# Everything here happens one after the other: SQLite has one writer anyway, and on PostgreSQL each
# transaction calls `serialize` first, without which two could wait for each other's rows.

LOCK = 0x636C6169
"""The number of PostgreSQL's lock around claims."""
_TICK = 1e-6
"""Seconds between two times of the store's clock; a double tells a quarter of it apart."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The fates of keys: `won` are ours to ask, `done` are answered, `failed` (key -> error kind)
    were asked by others meanwhile, in vain. All other keys are being asked by others.
    """

    won: Sequence[str] = ()
    done: Collection[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


def enter(connection: sa.Connection, owner: str, run_id: str | None) -> float:
    """Add a worker, and forget the claims of dead ones.

    Returns the time of the store's clock, behind all failures until now.
    """
    now = now_of(connection)
    w, c = schema.workers.c, schema.claims.c
    dead = set(connection.execute(sa.select(w.owner)).scalars()) - live_owners(connection, now)
    for batch in batches(sorted(dead)):
        connection.execute(schema.claims.delete().where(c.owner.in_(batch), c.failed.is_(None)))
        connection.execute(schema.workers.delete().where(w.owner.in_(batch)))
    since = max(now, _latest(connection))
    add_worker(connection, owner, run_id, now + LEASE, since)
    return since


def leave(connection: sa.Connection, owner: str) -> None:
    """Take a worker away, with all that it has not asked."""
    c = schema.claims.c
    connection.execute(schema.claims.delete().where(c.owner == owner, c.failed.is_(None)))
    connection.execute(schema.workers.delete().where(schema.workers.c.owner == owner))


def forget_workers(connection: sa.Connection) -> None:
    """Take all workers away, in a copy on which no one works."""
    connection.execute(schema.claims.delete())
    connection.execute(schema.workers.delete())


def serialize(connection: sa.Connection) -> None:
    """Wait until no other transaction works on claims.

    The database ends it with this one.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))


def _latest(connection: sa.Connection) -> float:
    # By the store's clock. 0 if no one has read it.
    times = (sa.func.max(schema.claims.c.at), sa.func.max(schema.workers.c.since))
    return max(connection.execute(sa.select(time)).scalar() or 0.0 for time in times)


def take(
    connection: sa.Connection, keys: Collection[str], owner: str, since: float, run_id: str | None
) -> tuple[set[str], dict[str, str]]:
    """Claim those of `keys` that no one else has: the keys that are `owner`'s now, and those that
    have failed elsewhere since a time of the store's clock, with the kind of failure.
    """
    living = live_owners(connection, now_of(connection))
    if owner not in living:
        # Claims of a worker that is not there would be anybody's.
        renew(connection, {owner: run_id})
    c = schema.claims.c
    won: set[str] = set()
    failed: dict[str, str] = {}
    for batch in batches(sorted(keys)):
        connection.execute(
            insert_or_keep(connection, schema.claims),
            [{"key": key, "owner": owner, "failed": None, "at": None} for key in batch],
        )
        # By worker and not all at once: a statement takes a limited number of parameters.
        rows = connection.execute(sa.select(schema.claims).where(c.key.in_(batch))).all()
        free = []
        for row in rows:
            if row.failed is not None and row.at > since:
                failed[row.key] = row.failed
            elif row.owner == owner and row.failed is None:
                won.add(row.key)
            elif row.failed is not None or row.owner not in living:
                free.append(row.key)
        if free:
            values: dict[str, Any] = {"owner": owner, "failed": None, "at": None}
            connection.execute(schema.claims.update().where(c.key.in_(free)).values(**values))
            won.update(free)
    return won, failed


def let_go(connection: sa.Connection, owner: str, ended: Mapping[str, str | None]) -> None:
    """Give up claims of `owner`: with an error kind those that have failed for good, with None
    those that it will not ask.
    """
    c = schema.claims.c
    if not ended:
        return
    at = None
    if any(ended.values()):
        # Later than every time that somebody may compare it with.
        at = max(now_of(connection), _latest(connection) + _TICK)
    for key, kind in ended.items():
        own = (c.key == key, c.owner == owner)
        if kind is None:
            connection.execute(schema.claims.delete().where(*own))
        else:
            connection.execute(schema.claims.update().where(*own).values(failed=kind, at=at))
