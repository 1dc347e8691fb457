"""The store's database: its address, its connections, and its failures as StoreError."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ...core.errors import BadOptions, StoreError
from ..exchange.redaction import REDACTED, is_secret_name, redact

# How connections work. SQLite's driver begins transactions on its own, late and never around DDL;
# its own way is switched off (isolation_level None), and every transaction begins here: IMMEDIATE
# for a writer, which then waits for its turn once, at the start, instead of failing in the middle
# when it wants to write what it has read. WAL lets readers go on beside one writer. With
# `synchronous = NORMAL` a commit survives kill -9 at any moment; only a power failure may take the
# newest commits with it, and never a part of one. PostgreSQL needs none of this; its server may be
# away for a while, which is waited for where nothing has begun yet.

_PAUSE = 0.2  # seconds between two looks for a server
_POSTGRES = ("postgres", "postgresql")
_POSTGRES_HINT = "pip install 'toolparse_lab[postgres]'"


def shown_url(url: sa.URL) -> str:
    """Return the address for messages: without a password, in its query neither."""
    hidden = {name: REDACTED for name in url.query if is_secret_name(name)}
    return redact(url.update_query_dict(hidden).render_as_string(hide_password=True))


def database_url(url: str | Path) -> sa.URL:
    """Return a path or SQLAlchemy URL as a URL. Raises BadOptions."""
    text = str(url)
    try:
        if "://" in text:
            address = sa.make_url(text)
            # One driver is tried with this package, whatever the plain names would mean.
            if address.drivername in _POSTGRES:
                return address.set(drivername="postgresql+psycopg")
            return address
    except sa.exc.ArgumentError:
        raise BadOptions(
            "not a database address",
            got=redact(text),
            expected="a path, or a URL such as sqlite:///runs.db",
        ) from None

    if text == ":memory:":
        return sa.URL.create("sqlite", database=":memory:")
    return sa.URL.create("sqlite", database=str(Path(text).expanduser()))


def database_engine(url: sa.URL, busy_timeout: float) -> sa.Engine:
    """Return an engine whose transactions are real ones on SQLite too.

    `busy_timeout` (seconds) is how long a SQLite writer waits for another one. Raises StoreError
    for a missing driver.
    """
    try:
        engine = sa.create_engine(url, **_engine_options(url))
    except (ImportError, sa.exc.NoSuchModuleError) as e:
        hint = _POSTGRES_HINT
        if url.get_backend_name() != "postgresql":
            hint = f"SQLite needs none, PostgreSQL: {_POSTGRES_HINT}"
        raise StoreError(
            f"the driver of the store {shown_url(url)} is not installed", got=str(e), hint=hint
        ) from None

    if engine.dialect.name == "sqlite":
        _begin_transactions_here(engine, busy_timeout)
    return engine


def _engine_options(url: sa.URL) -> dict[str, Any]:
    if url.get_backend_name() != "sqlite":
        # A server that was restarted is no reason to stop a run.
        return {"pool_pre_ping": True}
    if url.database in (None, "", ":memory:"):
        # A database in memory lives in its connection: one for all threads.
        return {"poolclass": sa.StaticPool, "connect_args": {"check_same_thread": False}}
    return {}


def _begin_transactions_here(engine: sa.Engine, busy_timeout: float) -> None:
    # Out of its driver's hands. See the top of this file.
    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        connection.isolation_level = None
        for pragma in (
            f"busy_timeout = {int(busy_timeout * 1000)}",
            "synchronous = NORMAL",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()
        _write_ahead(connection, busy_timeout)

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get("toolparse_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    # Readers go on while one writes. Tried for `seconds` if others change the mode too.
    until = time.monotonic() + seconds
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        except sqlite3.OperationalError as e:
            # SQLite does not wait for this lock by itself, whatever busy_timeout says.
            if "locked" not in str(e) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def connected(engine: sa.Engine, patience: float) -> sa.Connection:
    """Return a connection.

    For `patience` seconds it is tried again where the server does not answer, as when it is started
    again. Raises sqlalchemy.exc.OperationalError.
    """
    until = time.monotonic() + patience
    while True:
        try:
            return engine.connect()
        except sa.exc.OperationalError:
            if time.monotonic() >= until:
                raise
        time.sleep(_PAUSE)


def shut(writer: ThreadPoolExecutor, engine: sa.Engine) -> None:
    """Finish the writes under way and close every connection, in the writer's own thread.

    Waits for nothing: a store may be collected while that very thread runs, which cannot wait for
    itself.
    """
    try:
        writer.submit(engine.dispose)
    except RuntimeError:  # shut down already, as at the end of the interpreter
        engine.dispose()
    writer.shutdown(wait=False)


# A word of a driver's message -> the way out. The first match counts, so the sure words come first.
_HINTS = (
    ("locked", "another process is writing: wait, or stop it"),
    ("full", "free some space; the same run then goes on where it stopped"),
    ("no space left", "free some space; the same run then goes on where it stopped"),
    ("readonly", "the file or its folder may not be written"),
    ("read-only", "the file or its folder may not be written"),
    ("unable to open", "check that the folder exists and may be written, and that this is a file"),
    ("not a database", "this file is something else: choose another name"),
    ("malformed", "the file is damaged: export what can be read, and choose another name"),
    (
        "authentication failed",
        "check the user and the password, which may also stand in PGPASSWORD or ~/.pgpass",
    ),
    ("does not exist", "create the database first: createdb NAME"),
    (
        "connection",
        "check that the server is up and the address is right; the same run then goes on where it "
        "stopped",
    ),
)


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn every failure of the database inside into a StoreError that holds no statement, value or
    password.
    """
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as e:
        message = _driver_message(e)
        hint = next((text for word, text in _HINTS if word in message.lower()), None)
        raise StoreError(
            f"the store {shown_url(url)} failed; what was recorded before is kept",
            got=redact(message),
            hint=hint,
        ) from None
    except OSError as e:
        raise StoreError(f"the store {shown_url(url)} failed", got=str(e)) from None


def _driver_message(e: Exception) -> str:
    # SQLAlchemy's text would hold the statement with its values.
    original = getattr(e, "orig", None)
    if original:
        return str(original)
    return str(e) if isinstance(e, sqlite3.Error) else type(e).__name__
