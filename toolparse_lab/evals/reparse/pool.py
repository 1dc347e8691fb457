"""A pool of processes.

It takes pieces as they are wanted, gives rows in order, and leaves no process behind.
"""

# How it works. Tasks go to the executor a few ahead of the results that are asked for, so memory
# does not grow with their number. Processes are started anew, not forked, and ignore Ctrl-C: the
# parent gets it, sets an event, and each process ends after the piece it is at. Nothing is killed,
# because a process that dies while it holds the lock of the result queue blocks all others.

from __future__ import annotations

import contextlib
import gc
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Event
from types import ModuleType
from typing import Any

from ...core.errors import BadOptions, IncompleteError
from ..frames.answers import read_piece
from ..frames.reread import Reading
from .tasks import Done, Task

_AHEAD = 2  # pieces a process has waiting: enough that none is idle, and few in memory
_starting = threading.Lock()


def run_pool(tasks: Iterator[Task], workers: int) -> Generator[Done, None, None]:
    """Yield the results of the tasks in order.

    Raises IncompleteError, BadOptions and the error of a task.
    """
    context = _Context()
    stop = context.Event()
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(stop,)
    )
    waiting: deque[Future[Done]] = deque()
    try:
        for task in tasks:
            if not waiting:
                _check_travels(task.reading)
            waiting.append(executor.submit(_work, task))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        # The executor's thread collects the processes. Asking for exit codes beside it can find
        # none for the very process that died.
        executor.shutdown(wait=True, cancel_futures=True)
        raise _lost(context.started) from None
    finally:
        # A process that is killed in the middle of an answer would leave the others waiting for its
        # lock for ever.
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)


_stop: Event | None = None  # of this process, where it is one of a pool's


def _begin(stop: Event) -> None:
    # Ctrl-C reaches every process of a terminal. The parent alone heeds it and tells the others to
    # stop.
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what was imported stays, so the collector need not look at it again and again


def _work(task: Task) -> Done:
    if _stop is not None and _stop.is_set():
        return 0, None
    return read_piece(task.piece, task.reading, task.part)


def _check_travels(reading: Reading) -> None:
    # A protocol made in a script or a notebook is not there in another process.
    try:
        travels = b"__main__" not in pickle.dumps(reading.protocols)
    except (pickle.PicklingError, AttributeError, TypeError):
        travels = False
    if not travels:
        ids = [p if isinstance(p, str) else p.id for p in reading.protocols or ()]
        raise BadOptions(
            "a protocol cannot be sent to another process",
            got=", ".join(ids),
            expected="ids, or protocols defined in a module",
            hint="put it into a module that can be imported, or say engine='serial'",
        )


def _lost(ended: Iterable[_Process]) -> IncompleteError:
    codes = [p.exitcode for p in ended if p.exitcode]
    # The pool ends the others by SIGTERM, so that is what the first one died of only where no other
    # code is there.
    codes.sort(key=lambda code: code == -signal.SIGTERM)
    end = _end_of_process(codes[0]) if codes else "no exit code"
    if -signal.SIGKILL in codes:
        end += ", as the system does where memory runs out"
    return IncompleteError(
        "a process ended before its answers were read",
        got=end,
        hint="give fewer workers or a smaller batch_rows; engine='serial' shows where it happens",
        code="worker-lost",
    )


def _end_of_process(code: int) -> str:
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class _Process(SpawnProcess):
    def start(self) -> None:
        # Without the caller's script, which the child would run again, and with Ctrl-C left to the
        # parent.
        with _starting, _interrupts_blocked():
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = script


class _Context(SpawnContext):
    # Starts processes anew, because a fork of a process with threads may hang, and remembers them
    # in `started`, which is read where one of them has died.
    def __init__(self) -> None:
        self.started: list[_Process] = []

    # The name is that of the class which the base has in this place.
    def Process(  # type: ignore[override]  # noqa: N802
        self, *args: Any, **kwargs: Any
    ) -> _Process:
        process = _Process(*args, **kwargs)
        self.started.append(process)
        return process


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    # A child begins with the mask of its parent, so that none dies with a traceback while it is
    # still importing.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
