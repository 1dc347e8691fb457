"""Who works on a store now, and which of them asks which question, once."""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from . import schema
from .batches import batches
from .rows import insert_or_keep

# How it is told who lives. A worker renews its lease while it lives, and is dead where the lease is
# over. Clocks are set, and machines sleep, so that a lease has two ends: one by the uptime of the
# worker's machine, which nobody sets and which stands still while the machine sleeps, and one by
# the database's clock. Whoever looks from the same machine since the same start goes by the
# uptime, all others by the database's clock, by which no lease is longer than `LONGEST_LEASE`. On
# the worker's machine it is dead at once where its process has ended, even if another process has
# got its number: the start of a process is recorded, too.
#
# A worker that was taken for dead but lives (it was stopped for a while) is there again with its
# next renewal, which says that its claims may be others' by now.

LEASE = 30.0
"""Seconds for which a worker is taken to be alive; renewed in a quarter of that time."""
LONGEST_LEASE = 3600.0
"""Seconds: a lease with more left is one from before the clock was set back."""


@functools.cache
def host() -> str:
    # Within this name a process id means one process.
    parts = [platform.node(), boot_id()]
    try:
        parts.append(os.readlink("/proc/self/ns/pid"))  # containers have process ids of their own
    except OSError:
        parts.append("")
    return "/".join(part.replace("/", "-")[:64] for part in parts)


@functools.cache
def boot_id() -> str:
    """Return the name of the start of this machine, or empty if the system has none."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""


def uptime() -> float | None:
    # Awake seconds, for all processes alike. None if one start cannot be told from another.
    return time.monotonic() if boot_id() else None


def process_start(pid: int) -> str | None:
    # Tells it from others that have had its number. Empty if it has ended, None if unknown.
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name of the program is in brackets, and may have any character in it.
    fields = stat[stat.rfind(b")") + 1 :].split()
    # A process that has ended but whose parent has not noticed is there still.
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


@functools.cache
def own_start(pid: int) -> str | None:
    # pid: a copy of this process has another one.
    return process_start(pid)


def now_of(connection: sa.Connection) -> float:
    """Return the database's own time, in seconds since 1970: clocks of machines differ."""
    if connection.dialect.name == "sqlite":
        return time.time()  # it has no other clock
    epoch = sa.extract("epoch", sa.func.clock_timestamp())
    return float(connection.execute(sa.select(epoch)).scalar_one())


def add_worker(
    connection: sa.Connection, owner: str, run_id: str | None, expires: float, since: float
) -> None:
    """Write the row of a worker of this process. `expires` by the database's clock, `since` by the
    store's (see below), in seconds.
    """
    pid = os.getpid()
    connection.execute(
        schema.workers.insert().values(
            owner=owner, run_id=run_id, host=host(), pid=pid, started=own_start(pid), since=since,
            **_lease_ends(expires, expires - now_of(connection)),
        )
    )  # fmt: skip


def renew(
    connection: sa.Connection, owners: Mapping[str, str | None], lease: float = LEASE
) -> set[str]:
    """Let these workers (id -> run) live for `lease` seconds from now. A row that others have
    removed is written again.

    Return those that lived until now, so that no one can have taken their claims.
    """
    now = now_of(connection)
    w = schema.workers.c
    rows = connection.execute(sa.select(schema.workers).where(w.owner.in_(owners))).all()
    alive = {row.owner for row in rows if _lives(row, now)}
    values = _lease_ends(now + lease, lease)
    connection.execute(schema.workers.update().where(w.owner.in_(owners)).values(**values))
    for owner in owners.keys() - {row.owner for row in rows}:
        add_worker(connection, owner, owners[owner], now + lease, 0.0)
    return alive


def _lease_ends(expires: float, lease: float) -> dict[str, float | None]:
    awake = uptime()
    return {"expires": expires, "uptime": None if awake is None else awake + lease}


def _living(connection: sa.Connection) -> list[Any]:
    # The rows of the workers that live.
    now = now_of(connection)
    return [r for r in connection.execute(sa.select(schema.workers)).all() if _lives(r, now)]


def live_runs(connection: sa.Connection) -> set[str]:
    """Return the ids of the runs that someone is working on."""
    return {row.run_id for row in _living(connection) if row.run_id}


def _lives(worker: Any, now: float) -> bool:
    # now: by the database's clock.
    if worker.host == host() and _has_ended(worker):
        return False
    awake = uptime()
    same_machine = worker.host.split("/")[1:2] == [boot_id()]
    if awake is not None and worker.uptime is not None and same_machine:
        return bool(worker.uptime > awake)
    return bool(now < worker.expires <= now + LONGEST_LEASE)


def _has_ended(worker: Any) -> bool:
    # On this machine.
    if sys.platform == "win32":  # the signal 0 would end the process there
        return False
    try:
        os.kill(worker.pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # it is there, and somebody else's
    # This process too may have the number of one that has ended, as the first one of a container.
    own = worker.pid == os.getpid()
    started = own_start(worker.pid) if own else process_start(worker.pid)
    # A store of an older version does not say when the process has started.
    return started is not None and worker.started is not None and started != worker.started


# How claims work. Everybody who asks is a row of `workers` with a lease, which is renewed while it
# lives; a claim names its worker and has no lease of its own, so that one small update keeps any
# number of claims. Claims of the dead are free. A claim is taken first and the answers are looked
# at afterwards: whoever recorded an answer before it let go of its claim is then seen. A question
# that has failed for good stays claimed with the kind of its failure, so that those who run at the
# same time do not ask it again; whoever begins later may.
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

    Return the time of the store's clock, after all failures until now.
    """
    now = now_of(connection)
    w, c = schema.workers.c, schema.claims.c
    living = {row.owner for row in _living(connection)}
    dead = set(connection.execute(sa.select(w.owner)).scalars()) - living
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


def serialize(connection: sa.Connection) -> None:
    # The database ends it with the transaction.
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
    living = {row.owner for row in _living(connection)}
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
    # With an error kind those that have failed for good, with None those not to be asked.
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
