"""Claims: which process asks a question now, so that several on one store ask nothing twice."""

from __future__ import annotations

import functools
import os
import platform
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from . import schema
from .batches import batches
from .rows import insert_or_keep

# How claims work. Everybody who asks is a row of `workers` with a lease, which is renewed while it
# lives; a claim names its worker and has no time of its own, so that one small update keeps any
# number of claims. A worker is dead where its lease is over by the database's clock, or at once
# where its process ran on this machine and is there no more. Claims of the dead are free. A claim
# is taken first and the answers are looked at afterwards: whoever recorded an answer before it let
# go of its claim is then seen. A question that has failed for good stays claimed with the kind of
# its failure, so that those who run at the same time do not ask it again; whoever begins later may.

LEASE = 30.0
"""Seconds for which a worker is taken to be alive; renewed in a quarter of that time."""
LOCK = 0x636C6169
"""The number of PostgreSQL's lock around the taking of claims."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """The fates of keys: `won` are ours to ask, `done` are answered, `failed` (key -> error kind)
    were asked by others meanwhile, in vain. All other keys are being asked by others."""

    won: Sequence[str] = ()
    done: Collection[str] = ()
    failed: Mapping[str, str] = field(default_factory=dict)


@functools.cache
def host() -> str:
    """The name of this machine since its start, within which a process id means one process."""
    parts = [platform.node()]
    for path in ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid"):
        try:
            if path.endswith("pid"):
                parts.append(os.readlink(path))  # containers have process ids of their own
            else:
                with open(path, encoding="ascii") as file:
                    parts.append(file.read().strip())
        except OSError:
            continue
    return "/".join(parts)[:200]


def now_of(connection: sa.Connection) -> float:
    """The database's own time, in seconds since 1970: clocks of machines differ."""
    if connection.dialect.name == "sqlite":
        days = sa.func.julianday("now")
        return float(connection.execute(sa.select((days - 2440587.5) * 86400.0)).scalar_one())
    epoch = sa.extract("epoch", sa.func.clock_timestamp())
    return float(connection.execute(sa.select(epoch)).scalar_one())


def enter(connection: sa.Connection, owner: str, run_id: str | None) -> float:
    """Add a worker, and forget what dead ones had claimed; returns the database's time."""
    now = now_of(connection)
    w, c = schema.workers.c, schema.claims.c
    living = live_owners(connection, now)
    dead = set(connection.execute(sa.select(w.owner)).scalars()) - living
    for batch in batches(sorted(dead)):
        connection.execute(schema.claims.delete().where(c.owner.in_(batch), c.failed.is_(None)))
        connection.execute(schema.workers.delete().where(w.owner.in_(batch)))
    row = {"owner": owner, "run_id": run_id, "host": host(), "pid": os.getpid()}
    connection.execute(schema.workers.insert().values(**row, expires=now + LEASE))
    return now


def renew(connection: sa.Connection, owners: Sequence[str], lease: float = LEASE) -> None:
    """Let these workers live for `lease` seconds from now."""
    connection.execute(
        schema.workers.update()
        .where(schema.workers.c.owner.in_(owners))
        .values(expires=now_of(connection) + lease)
    )


def leave(connection: sa.Connection, owner: str) -> None:
    """Take a worker away, with all that it has not asked."""
    c = schema.claims.c
    connection.execute(schema.claims.delete().where(c.owner == owner, c.failed.is_(None)))
    connection.execute(schema.workers.delete().where(schema.workers.c.owner == owner))


def forget_workers(connection: sa.Connection) -> None:
    """Take all workers away, in a copy on which nobody works."""
    connection.execute(schema.claims.delete())
    connection.execute(schema.workers.delete())


def live_owners(connection: sa.Connection, now: float) -> set[str]:
    """The workers that live."""
    w = schema.workers.c
    rows = connection.execute(sa.select(w.owner, w.host, w.pid).where(w.expires > now))
    return {row.owner for row in rows if not _is_gone(row.host, row.pid)}


def live_runs(connection: sa.Connection) -> set[str]:
    """The ids of the runs that somebody is working on."""
    owners = live_owners(connection, now_of(connection))
    w = schema.workers.c
    rows = connection.execute(sa.select(w.owner, w.run_id))
    return {row.run_id for row in rows if row.owner in owners and row.run_id}


def _is_gone(worker_host: str, pid: int) -> bool:
    """True where a worker's process is known to have ended, on this machine."""
    # On Windows the signal 0 would end the process.
    if worker_host != host() or pid == os.getpid() or sys.platform == "win32":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def take(
    connection: sa.Connection, keys: Collection[str], owner: str, since: float
) -> tuple[set[str], dict[str, str]]:
    """Claim those of `keys` that nobody else has: the keys that are `owner`'s now, and those that
    have failed elsewhere since a time of the database, with the kind of failure."""
    if connection.dialect.name == "postgresql":
        # Two that claim the same keys in another order would wait for each other.
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(LOCK)))
    living = live_owners(connection, now_of(connection))
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
            if row.failed is not None and row.at >= since:
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
    those that it will not ask."""
    c = schema.claims.c
    if not ended:
        return
    now = now_of(connection)
    for key, kind in ended.items():
        own = (c.key == key, c.owner == owner)
        if kind is None:
            connection.execute(schema.claims.delete().where(*own))
        else:
            connection.execute(schema.claims.update().where(*own).values(failed=kind, at=now))
