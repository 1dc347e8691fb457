"""Work that is cut into pieces, done by a pool of processes."""

# How it works. An engine is a generator from pieces to results, in order. Whoever takes the results
# drives it: pieces are made as they are wanted, a few ahead of the results, so that memory does not
# grow with their number, and closing the generator, as an error or Ctrl-C does, ends what has
# begun. What is done with a piece is a function of a module, so that every engine does the same.
#
# Processes of a pool are started anew, not forked, and ignore Ctrl-C: the parent gets it, sets an
# event, and each process ends after the piece it is at. One that dies while it has the lock of the
# result queue blocks all others, so who has not ended in a second is killed with all of them. A
# process ends with its parent, whatever it was doing.

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import pickle
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Event
from types import ModuleType
from typing import Any, Literal, TypeAlias, TypeVar

from ..core.errors import BadOptions, IncompleteError
from ..runner.progress import Show

Engine: TypeAlias = Literal["processes", "serial"]
ENGINES: dict[Engine, str] = {
    "processes": "a pool of processes on this machine",
    "serial": "this process alone",
}
"""Engine -> the processes that read."""
_AHEAD = 2  # pieces that a process has waiting
Piece = TypeVar("Piece")
Done = TypeVar("Done")


def results_of(
    work: Callable[[Piece], Done],
    pieces: Iterator[Piece],
    engine: Engine,
    workers: int | None = None,
) -> Generator[Done]:
    """Return the results of the pieces in order, done by an engine. Close it where it is not taken
    to its end. workers: of a pool, by default one a core.
    """
    if engine == "processes":
        return run_pool(work, pieces, workers or available_processes())
    return (work(piece) for piece in pieces)


def check_engine(engine: str, workers: Any) -> None:
    """Raise BadOptions for an engine that does not exist or that has no use for workers."""
    if engine not in ENGINES:
        raise BadOptions("no engine of this name", got=engine, expected=", ".join(ENGINES))
    if workers is not None and engine != "processes":
        raise BadOptions(
            "only the engine 'processes' has workers", got=engine, hint="leave workers out"
        )
    if workers is not None and not is_count(workers):
        raise BadOptions("workers is a number of processes", got=workers, expected="1 or more")


@dataclass(frozen=True, slots=True)
class Workers:
    """Who does the work. `engine` None: this process, and all cores where it is worth it."""

    engine: Engine | None = None
    workers: int | None = None
    progress: Show = None


def is_count(x: Any) -> bool:
    """Return True for a whole number of 1 or more."""
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


def available_processes() -> int:
    """Return the number of cores that this process may use."""
    has_affinity = hasattr(os, "sched_getaffinity")
    return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1


def run_pool(
    work: Callable[[Piece], Done], pieces: Iterator[Piece], workers: int
) -> Generator[Done]:
    """Yield the results of the pieces in order, and leave no process behind. Raises IncompleteError
    where a process ended before its work was done, and the errors of the work.
    """
    context = _Context()
    stop = context.Event()
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(stop,)
    )
    _open[id(executor)] = partial(_end, executor, context, stop, _GRACE)
    waiting: deque[Future[Done]] = deque()
    try:
        for piece in pieces:
            waiting.append(executor.submit(_unless_stopped, work, piece))
            if len(waiting) > workers * _AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        # The executor's thread collects the processes. Asking for exit codes at the same time can
        # find none for the very process that died.
        executor.shutdown(wait=True, cancel_futures=True)
        codes = [p.exitcode for p in context.started if p.exitcode]
        # The pool ends the others by SIGTERM, so that is what the first one died of only where no
        # other code is there.
        codes.sort(key=lambda code: code == -signal.SIGTERM)
        end = "no exit code"
        if codes:
            end = f"killed by signal {-codes[0]}" if codes[0] < 0 else f"exit code {codes[0]}"
        if -signal.SIGKILL in codes:
            end += ", as the system does where memory runs out"
        raise IncompleteError(
            "a process ended before its answers were read",
            got=end,
            hint="give fewer workers or a smaller batch_rows; engine='serial' shows where it "
            "happens",
            code="worker-lost",
        ) from None
    except BaseException:
        # Interrupted, or nobody wants the rest.
        _end(executor, context, stop, _GRACE)
        raise
    finally:
        _end(executor, context, stop, _PATIENCE)
        _open.pop(id(executor), None)


_GRACE, _PATIENCE = 1.0, 60.0  # seconds for the answers that are being read
_open: dict[int, Callable[[], None]] = {}


def _end(executor: ProcessPoolExecutor, context: _Context, stop: Event, seconds: float) -> None:
    """End a pool and its processes, whatever they were doing: who reads an answer has some seconds
    for it, and is killed then. A second call does nothing.
    """
    end = time.monotonic() + seconds
    try:
        stop.set()
        # An executor that was interrupted while it started has no thread yet that would tell its
        # processes to end, and would wait for them for ever.
        executor.shutdown(wait=False, cancel_futures=True)
        for process in context.started:
            if process.is_alive():
                process.join(max(0.0, end - time.monotonic()))
    finally:
        for process in context.started:
            if process.is_alive():
                process.kill()
        executor.shutdown(wait=True)
        for process in context.started:  # an interrupted executor knows nothing of the last one
            process.join()


def _end_all() -> None:
    # A pool whose generator is still held by somebody when the interpreter ends.
    for end in list(_open.values()):
        end()


# Before the executors' own end, which waits for all that was submitted.
getattr(threading, "_register_atexit", atexit.register)(_end_all)


_starting = threading.Lock()
_stop: Event | None = None  # of this process, where it is one of a pool's


def _begin(stop: Event) -> None:
    # Ctrl-C reaches every process of a terminal. The parent alone heeds it and tells the others to
    # stop.
    global _stop
    _stop = stop
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # what was imported stays, so the collector need not look at it again and again


def _end_with_parent() -> None:
    # Whatever this process is doing: a parent that was killed tells it nothing.
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _unless_stopped(work: Callable[[Piece], Done], piece: Piece) -> Done:
    if _stop is not None and _stop.is_set():
        raise CancelledError
    return work(piece)


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Work on a piece whose objects all stay to its end, at which the collector looks again."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def travels(value: Any) -> bool:
    """Return True if another process, which has no code of a script or a notebook, can be given a
    value.
    """
    try:
        return b"__main__" not in pickle.dumps(value)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False


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
    # The mask is that of one thread. Another may take the signal, such as one of a library for
    # numbers, and Python would raise it here, before the child has been told what to do.
    pressed: list[tuple[Any, ...]] = []
    is_main = threading.current_thread() is threading.main_thread()
    handler = None
    if is_main:
        handler = signal.signal(signal.SIGINT, lambda *signalled: pressed.append(signalled))
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if is_main:
            signal.signal(signal.SIGINT, signal.SIG_DFL if handler is None else handler)
        if pressed and callable(handler):
            handler(*pressed[0])
