"""A pool of processes. It takes pieces as they are wanted, gives rows in order, and leaves no process behind."""

from __future__ import annotations

import contextlib
import gc
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Event
from types import ModuleType
from typing import Any

from ..errors import BadOptions, WorkerLost
from ..evals.frames.answers import read_piece
from ..evals.frames.reread import Reading
from .tasks import Done, Task

_AHEAD = 2  # pieces a process has waiting: enough that none is idle, and few in memory
_starting = threading.Lock()


def run_pool(tasks: Iterator[Task], workers: int) -> Generator[Done, None, None]:
    """The results of the tasks in order. Raises WorkerLost, BadOptions and what a task raises."""
    context = _Context()
    stop = context.Event()
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin, initargs=(stop,))
    waiting: deque[Future[Done]] = deque()
    try:
        for task in tasks:
            if not waiting:
                _check_travels(task.how)
            waiting.append(executor.submit(_work, task))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise _lost(context) from None
    finally:
        # A process that is killed in the middle of an answer would leave the others waiting for its lock for ever.
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)


_stop: Event | None = None


def _begin(stop: Event) -> None:
    """Ctrl-C reaches every process of a terminal; the one that was asked tells the others to stop."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what was imported stays, so the collector need not look at it again and again


def _work(task: Task) -> Done:
    """A task, unless nobody wants it any more."""
    if _stop is not None and _stop.is_set():
        return 0, None
    return read_piece(task.piece, task.how, task.part)


def _check_travels(how: Reading) -> None:
    """A protocol made in a script or a notebook is not there in another process."""
    try:
        there = b"__main__" not in pickle.dumps(how.protocols)
    except (pickle.PicklingError, AttributeError, TypeError):
        there = False
    if not there:
        raise BadOptions(
            "a protocol cannot be sent to another process",
            got=", ".join(p if isinstance(p, str) else p.id for p in how.protocols or ()),
            expected="ids, or protocols defined in a module",
            hint="put it into a module that can be imported, or say engine='serial'",
        )


def _lost(context: _Context) -> WorkerLost:
    for process in context.started:
        process.join(5)
    # The pool ends the others by SIGTERM, so that is what the first one died of only where nothing else is told.
    codes = sorted((p.exitcode for p in context.started if p.exitcode), key=(-signal.SIGTERM).__eq__)
    said = next((f"killed by signal {-c}" if c < 0 else f"exit code {c}" for c in codes), "no exit code")
    return WorkerLost(
        "a process ended before its answers were read",
        got=said + (", as the system does where memory runs out" if -signal.SIGKILL in codes else ""),
        hint="give fewer workers or a smaller batch_rows; engine='serial' shows where it happens",
    )


class _Process(SpawnProcess):
    def start(self) -> None:
        """Starts without the caller's script, which the child would run again, and with Ctrl-C left to the parent."""
        with _starting, _interrupts_blocked():
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = script


class _Context(SpawnContext):
    """Starts processes anew, because a fork of a process with threads may hang, and remembers them."""

    def __init__(self) -> None:
        self.started: list[_Process] = []

    def Process(self, *args: Any, **kwargs: Any) -> _Process:  # type: ignore[override]  # noqa: N802 - a class there
        process = _Process(*args, **kwargs)
        self.started.append(process)
        return process


@contextlib.contextmanager
def _interrupts_blocked() -> Iterator[None]:
    """A child begins with the mask of its parent, so that none dies with a traceback while it is still importing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
