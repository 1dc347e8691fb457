"""Anything saved elsewhere: a SQLite file that is deleted or replaced while it is open, and answers
that a store does not take.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

from ...core.errors import StoreError

# How a lost file is saved. A deleted file lives on, without a name, as long as somebody has it
# open; SQLite would go on writing into it and report nothing. So the file's identity is compared
# with that of its path before each transaction (two microseconds a file), and one connection stays
# open from the beginning, through which the whole database can be copied out. The same holds for
# the log beside it (`-wal`), which has the newest answers and is there as long as somebody has the
# store open: without it they would be gone at the first crash. Its index (`-shm`) goes with it.


class Anchor:
    """Holds a SQLite file open: `is_lost` says whether its path leads elsewhere by now."""

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

    @classmethod
    def of(cls, url: sa.URL) -> Anchor | None:
        """Return the anchor of a store in a plain SQLite file, or None for any other one."""
        path = file_of(url)
        return None if path is None else cls(path)

    def is_lost(self) -> bool:
        """Return True if the file, or its log, was deleted, moved away, replaced or emptied."""
        if _identity(self.path) != self._identity:
            return True
        return any(_identity(path) != identity for path, identity in self._log)

    def fate(self) -> str:
        """Return the words for the outcome to the file, behind "The store" and its path."""
        now = _identity(self.path)
        if now == self._identity:
            return "lost the log of its newest answers (-wal)"
        if now is None:
            return "was deleted"
        return "was emptied" if now[:2] == (self._identity or now)[:2] else "was replaced"

    def save(self) -> Path:
        """Copy the database into a new file beside the lost one, or where that cannot be, in the
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
        """Let the file go."""
        self._finalizer()


def file_of(url: sa.URL) -> Path | None:
    """Return the file of a store in a plain SQLite file, or None for any other one."""
    if url.get_backend_name() != "sqlite" or url.query or url.database in (None, "", ":memory:"):
        return None
    return Path(str(url.database))


class Leftovers:
    """A recording of the answers that a store has not taken, made when there is a first one.

    It is beside the store, or where that cannot be, in the folder for temporary files.
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
        if self.path is None and not self.lost:
            return failure
        parts, hints = [failure.message], [failure.hint] if failure.hint else []
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
