"""The writer of what passes by an application: off its way, bounded, and never a reason to fail."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Generic, TypeVar

from ...core.errors import BadOptions, ToolparseError
from ...runner.exchange.redaction import redact
from ...runner.exchange.types import Passed
from ...runner.store.store import Store

# How it works. Whoever serves an application calls `add`, which takes a lock for a moment and never
# waits. One thread takes all that waits, at most `_BATCH` at once, and writes it in one
# transaction; what came meanwhile is the next batch, so a busy application has few, large
# transactions and an idle one has each answer on disk at once. The store is opened by that thread.
# A process that was forked has no such thread: the next `add` starts another one.

_T = TypeVar("_T")
_MOST = 2000  # exchanges that wait
_MOST_BYTES = 64 * 2**20  # of their bodies
_BATCH = 200
_TELL_AGAIN = 60.0  # seconds from one word about a failure to the next
_CLOSING = 30.0  # seconds for the last batches
LONGEST_APP = 100  # characters of a name


def say(message: str) -> None:
    """Write a sentence to standard error."""
    print(f"toolparse: {message}", file=sys.stderr, flush=True)


class Background(ABC, Generic[_T]):
    """Takes things without waiting, and writes them on a thread of its own. Nothing of it raises.

    most: how many may wait. batch: how many are written at once. dropped: how many were not
    written, because the queue was full or the store failed.
    """

    _patience: float | None = None  # seconds for the last batches

    def __init__(self, most: int, batch: int) -> None:
        self.dropped = 0
        self._most, self._batch = most, batch
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._waiting: deque[_T] = deque()
        self._bytes = 0
        self._closed = False
        self._changed = threading.Condition()
        self._idle = True
        self._thread: threading.Thread | None = None

    @abstractmethod
    def _write(self, batch: list[_T]) -> None:
        """Write a batch, and tell what cannot be written."""

    @abstractmethod
    def _finish(self) -> None:
        """Called by the thread when all is written."""

    def _size(self, item: _T) -> int:
        # In bytes, of which `_MOST_BYTES` may wait.
        return 0

    def add(self, item: _T) -> bool:
        """Take something, without waiting. False if it is dropped because the queue is full."""
        if os.getpid() != self._process:
            self._begin()  # the thread is the parent's
        size = self._size(item)
        with self._changed:
            too_large = self._waiting and self._bytes + size > _MOST_BYTES
            if self._closed or len(self._waiting) >= self._most or too_large:
                self.dropped += 1
                return False
            self._waiting.append(item)
            self._bytes += size
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="toolparse-recorder", daemon=True
                )
                self._thread.start()
            self._changed.notify_all()
        return True

    def flush(self, seconds: float = _CLOSING) -> bool:
        """Wait until all that was taken is written, or given up. False if that takes longer."""
        with self._changed:
            return self._changed.wait_for(lambda: self._idle and not self._waiting, seconds)

    def close(self) -> None:
        """Write what waits. A second call does nothing."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(self._patience)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    break
                self._idle = False
                count = min(self._batch, len(self._waiting))
                batch = [self._waiting.popleft() for _ in range(count)]
                self._bytes -= sum(map(self._size, batch))
            self._write(batch)
        self._finish()


class Writer(Background[Passed]):
    """Writes exchanges into a store until it is closed. Nothing of it raises after it was made.

    store: a path or an SQLAlchemy URL. tell: is called with a sentence where something cannot be
    written. recorded: how many exchanges were written so far.
    """

    _patience = _CLOSING

    def __init__(self, store: str | os.PathLike[str], tell: Callable[[str], None] = say) -> None:
        self.recorded = 0
        self._path = os.fspath(store)
        self._tell = tell
        self._told = -_TELL_AGAIN
        super().__init__(_MOST, _BATCH)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._store: Store | None = None  # that of a parent is its own
        super()._begin()

    def open(self) -> None:
        """Open the store now. Raises StoreError or BadOptions for one that cannot be opened."""
        self._store = Store(self._path)

    def close(self) -> None:
        """Write what waits and close the store. A second call does nothing."""
        if os.getpid() != self._process:
            return
        atexit.unregister(self.close)
        super().close()
        if self._thread is None:
            self._finish()

    def _size(self, item: Passed) -> int:
        return item.size

    def _write(self, batch: list[Passed]) -> None:
        try:
            if self._store is None:
                self._store = Store(self._path)
            self._store.record_exchanges(batch)
            self.recorded += len(batch)
        except Exception as e:  # of whatever kind: the application goes on
            self.dropped += len(batch)
            now = time.monotonic()
            if now - self._told >= _TELL_AGAIN:
                self._told = now
                reason = e.message if isinstance(e, ToolparseError) else str(e)
                got = getattr(e, "got", None)
                text = f"{reason} ({got})" if got else reason
                self._tell(f"{self.dropped:,} not recorded so far: {redact(text)}")

    def _finish(self) -> None:
        if self._store is not None:
            self._store.close()


def app_name(name: str | None) -> str:
    """Return the name under which an application is recorded. Raises BadOptions."""
    app = "app" if name is None else name
    if not isinstance(app, str) or not app.strip() or len(app) > LONGEST_APP:
        raise BadOptions(
            "an application has a name",
            got=app,
            expected=f"a text of at most {LONGEST_APP} characters, such as 'support-bot'",
        )
    if not app.isprintable():
        raise BadOptions("the name of an application is printable text", got=ascii(app))
    return app
