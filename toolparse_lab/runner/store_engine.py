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
from .redaction import redact


def database_url(url: str | Path) -> sa.URL:
    """A path or SQLAlchemy URL as a URL. Raises BadOptions."""
    text = str(url)
    try:
        if "://" in text:
            return sa.make_url(text)
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
    try:
        engine = sa.create_engine(url, **options)
    except (ImportError, sa.exc.NoSuchModuleError) as e:
        raise StoreError(
            "The driver of this database is not installed.", got=str(e), hint="for PostgreSQL: pip install psycopg"
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
    ("readonly", "the file or its folder may not be written"),
    ("read-only", "the file or its folder may not be written"),
    ("unable to open", "check that the folder exists and may be written"),
    ("not a database", "this file is something else: choose another name"),
    ("malformed", "the file is damaged: export what can be read, and choose another name"),
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
            f"The store {url.render_as_string(hide_password=True)} failed; what was recorded before is kept.",
            got=redact(said),
            hint=hint,
        ) from None
    except OSError as e:
        raise StoreError(f"The store {url.render_as_string(hide_password=True)} failed.", got=str(e)) from None
