"""Workers: the processes that ask questions now, and which of them live."""

from __future__ import annotations

import functools
import os
import platform
import sys
import time
from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from . import schema

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
    """Return the name of this machine since its start, within which a process id means one
    process.
    """
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
    """Return seconds that this machine has been awake since its start, for all processes alike, or
    None if one start cannot be told from another.
    """
    return time.monotonic() if boot_id() else None


def process_start(pid: int) -> str | None:
    """Return the start of a process, which tells it from others that have had its number, or empty
    for one that has ended, None if it cannot be known.
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name of the program stands in brackets, and may hold any character.
    fields = stat[stat.rfind(b")") + 1 :].split()
    # A process that has ended but whose parent has not noticed is there still.
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode("ascii")


@functools.cache
def own_start(pid: int) -> str | None:
    """Return the start of this process.

    `pid` is its number, since a copy of it has another one.
    """
    return process_start(pid)


def now_of(connection: sa.Connection) -> float:
    """Return the database's own time, in seconds since 1970: clocks of machines differ."""
    if connection.dialect.name == "sqlite":
        days = sa.func.julianday("now")
        return float(connection.execute(sa.select((days - 2440587.5) * 86400.0)).scalar_one())
    epoch = sa.extract("epoch", sa.func.clock_timestamp())
    return float(connection.execute(sa.select(epoch)).scalar_one())


def add_worker(
    connection: sa.Connection, owner: str, run_id: str | None, expires: float, since: float
) -> None:
    """Write the row of a worker of this process.

    `expires` by the database's clock, `since` by the store's (see `claims`), in seconds.
    """
    pid = os.getpid()
    row = {"owner": owner, "run_id": run_id, "host": host(), "pid": pid, "since": since}
    ends = _lease_ends(expires, expires - now_of(connection))
    row["started"] = own_start(pid)
    connection.execute(schema.workers.insert().values(**row, **ends))


def renew(
    connection: sa.Connection, owners: Mapping[str, str | None], lease: float = LEASE
) -> set[str]:
    """Let these workers (id -> run) live for `lease` seconds from now.

    A row that others have removed is written again.

    Returns those that lived until now, so that no one can have taken their claims.
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


def live_owners(connection: sa.Connection, now: float) -> set[str]:
    """Return the workers that live."""
    return {row.owner for row in connection.execute(sa.select(schema.workers)) if _lives(row, now)}


def live_runs(connection: sa.Connection) -> set[str]:
    """The ids of the runs that someone is working on."""
    now = now_of(connection)
    rows = connection.execute(sa.select(schema.workers)).all()
    return {row.run_id for row in rows if row.run_id and _lives(row, now)}


def _lives(worker: Any, now: float) -> bool:
    # now: by the database's clock.
    if _has_ended(worker):
        return False
    awake = uptime()
    same_machine = worker.host.split("/")[1:2] == [boot_id()]
    if awake is not None and worker.uptime is not None and same_machine:
        return bool(worker.uptime > awake)
    return bool(now < worker.expires <= now + LONGEST_LEASE)


def _has_ended(worker: Any) -> bool:
    # Known only of a process on this machine.
    # On Windows the signal 0 would end the process.
    if worker.host != host() or sys.platform == "win32":
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
