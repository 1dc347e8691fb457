"""A SQLite file that is deleted or replaced while it is open: noticed, and saved elsewhere."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path

import sqlalchemy as sa

# How a lost file is saved. A deleted file lives on, without a name, as long as somebody has it
# open; SQLite would go on writing into it and report nothing. So the file's identity is compared
# with that of its path before each transaction (two microseconds), and one connection stays open
# from the beginning, through which the whole database can be copied out.


class Anchor:
    """Holds a SQLite file open: `is_lost` says whether its path leads elsewhere by now."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._connection = sqlite3.connect(self.path, check_same_thread=False)
        # The first read opens the log of what is not in the file itself yet.
        self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        self._identity = _identity(self.path)

    @classmethod
    def of(cls, url: sa.URL) -> Anchor | None:
        """The anchor of a store in a plain SQLite file; None for any other one."""
        if url.get_backend_name() != "sqlite" or url.query:
            return None
        if url.database in (None, "", ":memory:"):
            return None
        return cls(Path(str(url.database)))

    def is_lost(self) -> bool:
        """True where the file was deleted, moved away or replaced."""
        return _identity(self.path) != self._identity

    def fate(self) -> str:
        """The word for what happened to the file."""
        return "deleted" if _identity(self.path) is None else "replaced"

    def save(self) -> Path:
        """Copy the database into a new file beside the lost one, or where that cannot be, in the
        folder for temporary files. Raises sqlite3.Error or OSError where none can be written."""
        failure: Exception | None = None
        for path in self._places():
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

    def _places(self) -> Iterator[Path]:
        """Paths of new files, the best one first."""
        name = f"{self.path.stem}-rescued-{datetime.now(UTC):%Y%m%dT%H%M%S}-{os.getpid()}"
        for folder in (self.path.parent, Path(tempfile.gettempdir())):
            path = folder / f"{name}.db"
            if folder.is_dir() and not path.exists():
                yield path

    def close(self) -> None:
        """Let the file go."""
        self._connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    """The numbers by which the system knows the file of a path; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
