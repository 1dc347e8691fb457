"""The store's database: its address, its connections, and its failures as StoreError."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from ..errors import BadOptions, StoreError
from .redaction import REDACTED, is_secret_name, redact

_POSTGRES = ("postgres", "postgresql")


def shown_url(url: sa.URL) -> str:
    """The address for messages: without a password, in its query neither."""
    hidden = {k: REDACTED for k in url.query if is_secret_name(k)}
    return redact(url.update_query_dict(hidden).render_as_string(hide_password=True))


def database_url(url: str | Path) -> sa.URL:
    """A path or SQLAlchemy URL as a URL. Raises BadOptions."""
    text = str(url)
    try:
        if "://" in text:
            made = sa.make_url(text)
            # One driver is tried with this package, whatever the plain names would mean.
            return made.set(drivername="postgresql+psycopg") if made.drivername in _POSTGRES else made
    except sa.exc.ArgumentError:
        raise BadOptions(
            "Not a database address.", got=redact(text), expected="a path, or a URL such as sqlite:///runs.db"
        ) from None
    if text == ":memory:":
        return sa.URL.create("sqlite", database=":memory:")
    return sa.URL.create("sqlite", database=str(Path(text).expanduser()))


def database_engine(url: sa.URL, busy_timeout: float) -> sa.Engine:
    """An engine whose transactions are what they say on SQLite too. Raises StoreError for a missing driver."""
    options: dict[str, Any] = {}
    in_memory = url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:")
    if in_memory:
        options["poolclass"] = sa.StaticPool
        options["connect_args"] = {"check_same_thread": False}
    elif url.get_backend_name() != "sqlite":
        options["pool_pre_ping"] = True  # a server that was restarted is no reason to stop a run
    try:
        engine = sa.create_engine(url, **options)
    except (ImportError, sa.exc.NoSuchModuleError) as e:
        raise StoreError(
            f"The driver of the store {shown_url(url)} is not installed.",
            got=str(e),
            hint="pip install 'toolparse_lab[postgres]'"
            if url.get_backend_name() == "postgresql"
            else "SQLite needs none, PostgreSQL: pip install 'toolparse_lab[postgres]'",
        ) from None
    if engine.dialect.name != "sqlite":
        return engine

    @sa.event.listens_for(engine, "connect")
    def _(connection: Any, record: Any) -> None:
        connection.isolation_level = None  # the driver would begin transactions late, and never around DDL
        for pragma in (
            f"busy_timeout = {int(busy_timeout * 1000)}",
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "foreign_keys = ON",
        ):
            connection.execute(f"PRAGMA {pragma}").close()

    @sa.event.listens_for(engine, "begin")
    def _(connection: sa.Connection) -> None:
        writing = connection.get_execution_options().get("toolparse_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")

    return engine


def shut(writer: ThreadPoolExecutor, engine: sa.Engine) -> None:
    """Waits for writes under way and closes every connection."""
    writer.shutdown(wait=True)
    engine.dispose()


_HINTS = (
    ("locked", "another process is writing: wait, or stop it"),
    ("full", "free some space; the same run then goes on where it stopped"),
    ("no space left", "free some space; the same run then goes on where it stopped"),
    ("readonly", "the file or its folder may not be written"),
    ("read-only", "the file or its folder may not be written"),
    ("unable to open", "check that the folder exists and may be written, and that this is a file"),
    ("not a database", "this file is something else: choose another name"),
    ("malformed", "the file is damaged: export what can be read, and choose another name"),
    ("authentication failed", "check the user and the password, which may also stand in PGPASSWORD or ~/.pgpass"),
    ("does not exist", "create the database first: createdb NAME"),
    ("connection", "check that the server is up and the address is right; the same run then goes on where it stopped"),
)


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Every failure of the database inside is a StoreError that holds no statement, value or password."""
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as e:
        # Its text would hold the statement with its values; the driver's own says what is wrong.
        said = str(getattr(e, "orig", None) or (e if isinstance(e, sqlite3.Error) else type(e).__name__))
        hint = next((text for word, text in _HINTS if word in said.lower()), None)
        raise StoreError(
            f"The store {shown_url(url)} failed; what was recorded before is kept.",
            got=redact(said),
            hint=hint,
        ) from None
    except OSError as e:
        raise StoreError(f"The store {shown_url(url)} failed.", got=str(e)) from None
