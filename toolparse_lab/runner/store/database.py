"""The store's database: its address, its connections, its failures as StoreError, and what is saved
elsewhere: a SQLite file that is deleted or replaced while it is open, and answers that a store does
not take.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeAlias
from urllib.parse import quote

import sqlalchemy as sa

from ...core.errors import BadOptions, StoreError
from ..exchange.redaction import REDACTED, is_secret_name, redact

# How connections work. SQLite's driver begins transactions on its own, late and never around DDL;
# its own way is switched off (isolation_level None), and every transaction begins here: IMMEDIATE
# for a writer, which then waits for its turn once, at the start, instead of failing in the middle
# when it wants to write what it has read. WAL lets readers go on next to one writer. With
# `synchronous = NORMAL` a commit survives kill -9 at any moment; only a power failure may take the
# newest commits with it, and never a part of one. PostgreSQL needs none of this; its server may be
# away for a while, which is waited for where nothing has begun yet.

Finalizer: TypeAlias = "weakref.finalize[[Any], Any]"
_PAUSE = 0.2  # seconds between two looks for a server
_SILENCE = 5.0  # seconds of waiting before a word is said
_HURRY = 3.0
_CONNECTING = 5  # seconds for a server that does not even refuse
_POSTGRES = ("postgres", "postgresql")
_POSTGRES_HINT = "in a checkout: pip install '.[postgres]'"


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


def file_of(url: sa.URL) -> Path | None:
    """Return the file of a store in a plain SQLite file, or None for any other one."""
    if url.get_backend_name() != "sqlite" or url.query or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database))


def shared_url(url: sa.URL) -> str | None:
    """Return the address for other processes, with its password, None of a database in memory."""
    if url.get_backend_name() == "sqlite" and url.database in (None, "", ":memory:"):
        return None
    file = file_of(url)
    url = url if file is None else url.set(database=str(file.absolute()))
    return url.render_as_string(hide_password=False)


def database_engine(url: sa.URL, busy_timeout: float) -> sa.Engine:
    """Return an engine whose transactions are real ones on SQLite too.

    `busy_timeout` (seconds) is how long a SQLite writer waits for another one. Raises StoreError
    for a missing driver.
    """
    options: dict[str, Any] = {}
    if url.get_backend_name() != "sqlite":
        # A server that was restarted is no reason to stop a run.
        options = {"pool_pre_ping": True}
        if url.get_backend_name() == "postgresql" and "connect_timeout" not in url.query:
            options["connect_args"] = {"connect_timeout": _CONNECTING}
    elif url.database in (None, "", ":memory:"):
        # A database in memory lives in its connection: one for all threads.
        options = {"poolclass": sa.StaticPool, "connect_args": {"check_same_thread": False}}
    try:
        engine = sa.create_engine(url, **options)
    except (ImportError, sa.exc.NoSuchModuleError) as e:
        hint = _POSTGRES_HINT
        if url.get_backend_name() != "postgresql":
            hint = f"SQLite needs none, PostgreSQL: {_POSTGRES_HINT}"
        raise StoreError(
            f"the driver of the store {shown_url(url)} is not installed", got=str(e), hint=hint
        ) from None
    if engine.dialect.name != "sqlite":
        return engine

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

    return engine


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


class Patience:
    """How long everything that uses a store waits together for its server, in seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._since: float | None = None  # when it was first away
        self._told = False

    def hurry(self) -> None:
        """Wait no longer than a few seconds: somebody wants to leave."""
        self.seconds = min(self.seconds, _HURRY)

    def is_over(self, place: str) -> bool:
        """Note that the server is away. True if that has lasted too long."""
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        away = now - self._since
        if _SILENCE <= away < self.seconds and not self._told:
            self._told = True
            said = f"toolparse: {place} does not answer; waiting {self.seconds:g} s in all"
            print(said, file=sys.stderr, flush=True)
        return away >= self.seconds

    def end(self) -> None:
        """Note that the server is there."""
        self._since, self._told = None, False


def connected(engine: sa.Engine, patience: Patience) -> sa.Connection:
    """Return a connection, tried again as long as there is patience where the server does not
    answer, as when it is started again. Raises sqlalchemy.exc.OperationalError.
    """
    while True:
        try:
            connection = engine.connect()
        except sa.exc.OperationalError:
            if patience.is_over(shown_url(engine.url)):
                raise
        else:
            patience.end()
            return connection
        time.sleep(_PAUSE)


def reading_engine(file: Path, folder: str | None) -> sa.Engine:
    """Return an engine that only reads a SQLite file.

    folder: for a copy of it with the log of its newest answers, which cannot be read where nothing
    can be written.
    """
    place, how = file.absolute(), "mode=ro&immutable=1"
    if folder is not None:
        for path in (place, place.with_name(f"{place.name}-wal")):
            if path.exists():
                shutil.copyfile(path, Path(folder) / path.name)
        place, how = Path(folder) / place.name, "mode=rw"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            f"file:{quote(str(place))}?{how}", uri=True, isolation_level=None,
            check_same_thread=False,
        )  # fmt: skip

    return sa.create_engine("sqlite://", creator=connect, poolclass=sa.QueuePool)


class Connected(ABC):
    """What the parts of a store need of it: transactions to read in, and to write in."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[sa.Connection]: ...

    @abstractmethod
    def _writing(self) -> AbstractContextManager[sa.Connection]: ...


# How stores end that nobody closes. Garbage is collected in the middle of anything, also of the
# code that holds the one lock of all executors, and waiting for that lock there would never end. So
# a finalizer takes no lock: it puts the store's parts into a queue that is made for this, and a
# thread closes them. What is left when the interpreter ends is closed then.

_collected: SimpleQueue[tuple[ThreadPoolExecutor, sa.Engine]] = SimpleQueue()
_closers: dict[int, threading.Thread] = {}  # by process id: a forked child has no thread
_finalizers: list[Finalizer] = []


def shut_when_collected(store: object, writer: ThreadPoolExecutor, engine: sa.Engine) -> Finalizer:
    """Shut a store's parts once it is collected, or the interpreter ends.

    Returns the finalizer, which `close` detaches.
    """
    if os.getpid() not in _closers:

        def close_all() -> None:
            while True:
                shut(*_collected.get())

        closer = threading.Thread(target=close_all, name="toolparse-closer", daemon=True)
        _closers[os.getpid()] = closer
        closer.start()
    finalizer = weakref.finalize(store, _collected.put, (writer, engine))
    finalizer.atexit = False  # `_shut_the_rest` closes it, and waits for no thread
    _finalizers[:] = [*(f for f in _finalizers if f.alive), finalizer]
    return finalizer


@atexit.register
def _shut_the_rest() -> None:
    for finalizer in _finalizers:
        if ended := finalizer.detach():
            shut(*ended[2][0])
    with suppress(Empty):
        while True:
            shut(*_collected.get_nowait())


def shut(writer: ThreadPoolExecutor, engine: sa.Engine) -> None:
    """Finish the writes under way and close every connection, in the writer's own thread. Waits for
    nothing.
    """
    try:
        writer.submit(engine.dispose)
    except RuntimeError:  # shut down already, as at the end of the interpreter
        engine.dispose()
    writer.shutdown(wait=False)


_DAMAGED = "the file is damaged: export what can be read, and choose another name"
_SERVER = (
    "check that the server is up and the address is right; the same run then goes on where "
    "it stopped"
)
# A word of a driver's message -> the way out. The first match counts, so the sure words come first.
_HINTS = (
    ("locked", "another process is writing: wait, or stop it"),
    ("full", "free some space; the same run then goes on where it stopped"),
    ("no space left", "free some space; the same run then goes on where it stopped"),
    ("readonly", "the file or its folder may not be written"),
    ("read-only", "the file or its folder may not be written"),
    ("unable to open", "check that the folder exists and may be written, and that this is a file"),
    ("not a database", "this file is something else: choose another name"),
    ("malformed", _DAMAGED),
    ("corrupt", _DAMAGED),
    (
        "authentication failed",
        "check the user and the password, which may also stand in PGPASSWORD or ~/.pgpass",
    ),
    ("does not exist", "create the database first: createdb NAME"),
    ("connection", _SERVER),
)


@contextmanager
def translated(url: sa.URL) -> Iterator[None]:
    """Turn every failure of the database inside into a StoreError without any statement, value or
    password.
    """
    try:
        yield
    except (sa.exc.SQLAlchemyError, sqlite3.Error) as e:
        # SQLAlchemy's own text would have the statement with its values in it.
        name = e if isinstance(e, sqlite3.Error) else type(e).__name__
        message = str(getattr(e, "orig", None) or name)
        hint = next((text for word, text in _HINTS if word in message.lower()), None)
        cause = getattr(e, "orig", e)
        if isinstance(cause, sqlite3.Error) and hint in (None, _SERVER):
            # A page that cannot be read has many names.
            is_plain = isinstance(cause, sqlite3.OperationalError)
            hint = None if is_plain and "disk" not in message.lower() else _DAMAGED
        file = file_of(url)
        if file is not None and file.exists() and not file.is_file():
            hint = "this is no file: choose another name"
        raise StoreError(
            f"the store {shown_url(url)} failed; what was recorded before is kept",
            got=redact(message),
            hint=hint,
        ) from None
    except OSError as e:
        raise StoreError(f"the store {shown_url(url)} failed", got=str(e)) from None
    except json.JSONDecodeError as e:
        message = f"the store {shown_url(url)} holds a row that cannot be read"
        raise StoreError(message, got=str(e), hint=_DAMAGED) from None


# How a lost file is saved. A deleted file lives on, without a name, as long as somebody has it
# open; SQLite would go on writing into it and report nothing. So the file's identity is compared
# with that of its path before each transaction (two microseconds a file), and one connection stays
# open from the beginning, through which the whole database can be copied out. The same is true of
# the log next to it (`-wal`), which has the newest answers and is there as long as somebody has the
# store open: without it they would be gone at the first crash. Its index (`-shm`) goes with it.


class Anchor:
    """Keeps a SQLite file open: `is_lost` says whether its path leads elsewhere by now."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._connection = sqlite3.connect(self.path, check_same_thread=False)
        # Also where nobody calls `close`, of which Python 3.13 and later warn.
        self._finalizer = weakref.finalize(self, self._connection.close)
        # The first read opens the log of what is not in the file itself yet.
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        log = (self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))
        self._log = [(path, identity) for path in log if (identity := _identity(path))]
        self._identity = _identity(self.path)

    def is_lost(self) -> bool:
        # Deleted, moved away, replaced or emptied; the file itself, or its log.
        if _identity(self.path) != self._identity:
            return True
        return any(_identity(path) != identity for path, identity in self._log)

    def fate(self) -> str:
        # In words that go on after "The store" and its path.
        now = _identity(self.path)
        if now == self._identity:
            return "lost the log of its newest answers (-wal)"
        if now is None:
            return "was deleted"
        return "was emptied" if now[:2] == (self._identity or now)[:2] else "was replaced"

    def save(self) -> Path:
        """Copy the database into a new file next to the lost one, or where that cannot be, in the
        folder for temporary files. Raises sqlite3.Error or OSError where none can be written.
        """
        failure: Exception | None = None
        for path in _places(self.path, "rescued", ".db"):
            try:
                with closing(sqlite3.connect(path)) as copy:
                    self._connection.backup(copy)
            except (sqlite3.Error, OSError) as e:
                failure = e
                with suppress(OSError):
                    path.unlink()
            else:
                return path
        raise failure or OSError("no place for a copy")

    def close(self) -> None:
        self._finalizer()


class Leftovers:
    """A recording of the answers that a store has not taken, made when there is a first one: next
    to the store, or where that cannot be, in the folder for temporary files.
    """

    def __init__(self, store: Path | None) -> None:
        self._store = Path("toolparse") if store is None else store.absolute()
        self.path: Path | None = None
        self.lost = 0
        """how many could not be saved"""
        self.failure: OSError | None = None
        """the reason"""

    def add(self, lines: Sequence[str]) -> None:
        # What cannot be written is counted.
        if not lines:
            return
        text = "".join(f"{line}\n" for line in lines)
        places = _places(self._store, "unwritten", ".jsonl")
        for path in places if self.path is None else [self.path]:
            try:
                # What a model has said may be nobody else's business.
                path.touch(mode=0o600)
                _append(path, text)
            except OSError as e:
                self.failure = e
                if self.path is None:
                    path.unlink(missing_ok=True)
            else:
                self.path = path
                return
        self.lost += len(lines)

    def explain(self, failure: StoreError) -> StoreError:
        is_told = self.path is not None and str(self.path) in failure.message
        if is_told or (self.path is None and not self.lost):
            return failure
        parts, hints = (
            [f"{failure.message.removesuffix('.')}."],
            [failure.hint] if failure.hint else [],
        )
        if self.path is not None:
            parts.append(f"The answers that it did not take are in {self.path}.")
            adding = "toolparse_lab.runner.store.recording.import_recording(path, store)"
            hints.append(f"add those answers: {adding}")
        if self.lost:
            parts.append(f"{self.lost} answers could not be saved elsewhere: {self.failure}.")
        return type(failure)(" ".join(parts), got=failure.got, hint="; ".join(hints))


def _append(path: Path, text: str) -> None:
    # All of it or nothing.
    with path.open("r+b", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            rest = memoryview(text.encode("ascii"))
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise


def _places(store: Path, word: str, end: str) -> Iterator[Path]:
    # The best one first.
    name = f"{store.stem}-{word}-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}{end}"
    for folder in (store.parent, Path(tempfile.gettempdir())):
        path = folder / name
        if folder.is_dir() and not path.exists():
            yield path


def _identity(path: Path) -> tuple[int, int, bool] | None:
    # None if there is no file. Not its text: a file that is opened and closed loses the locks that
    # SQLite has on it in this process.
    try:
        status = os.stat(path)
    except OSError:
        return None
    # The index of the log may be empty for a moment; a database never is.
    return status.st_dev, status.st_ino, status.st_size > 0 or path.name.endswith(("-wal", "-shm"))
