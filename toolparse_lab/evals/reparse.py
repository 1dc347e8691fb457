"""Recorded answers read again at size: by one process, by a pool of processes, or on a Dask
cluster that is there already.
"""

# How it works. A source is cut into pieces, and an engine is a generator from tasks to results, in
# order. Whoever takes the results drives it: tasks are made as they are wanted, a few ahead of the
# results, so that memory does not grow with their number, and closing the generator, as an error or
# Ctrl-C does, ends what has begun. All engines do the same with a piece (`answers.read_piece`), so
# that they give the same rows.
#
# Processes of a pool are started anew, not forked, and ignore Ctrl-C: the parent gets it, sets an
# event, and each process ends after the piece it is at. Nothing is killed, because a process that
# dies while it has the lock of the result queue blocks all others. Workers of a cluster read, and
# write the parts of a folder, themselves.

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, Unpack, overload

from ..core.errors import BadOptions, IncompleteError, MissingExtra, ToolparseError
from ..core.types import ParseOptions, Policy
from ..parser.foreign.protocol import AnyProtocol
from ..runner.progress import Progress
from .frames.answers import Answers, Done, Task, read_piece, run_answers
from .frames.files import PartsWriter
from .frames.recorded import join_frames, trials_frame
from .frames.reread import Reading

if TYPE_CHECKING:
    from .frames.recorded import Frame

__all__ = ["ENGINES", "reparse", "run_answers"]

Engine: TypeAlias = Literal["processes", "serial", "dask"]
ENGINES: Mapping[Engine, str] = {
    "processes": "a pool of processes on this machine",
    "serial": "this process alone",
    "dask": "the workers of a Dask cluster that is there already",
}
"""Engine -> the processes that read."""
_AHEAD = {"processes": 2, "dask": 3}  # pieces a process, or a thread of the cluster, has waiting
Results: TypeAlias = Generator[Done, None, None]
ROWS_AT_ONCE = 2000
"""Readings in a piece of work: few enough that what is interrupted ends soon, and files are read in
few pieces."""
FEW = 4000
"""Readings that one process is through with before others have begun."""


class ReparseSettings(TypedDict, total=False):
    """The options of `reparse` apart from the place to write to."""

    options: ParseOptions | Mapping[str, Any] | None
    own: Mapping[str, AnyProtocol] | None
    engine: Engine
    workers: int | None
    client: Any
    overwrite: bool
    batch_rows: int | None
    progress: bool | None


@overload
def reparse(
    source: Any,
    protocols: Any = ...,
    policies: Sequence[Policy] | Policy = ...,
    *,
    to: None = ...,
    **settings: Unpack[ReparseSettings],
) -> Frame: ...
@overload
def reparse(
    source: Any,
    protocols: Any = ...,
    policies: Sequence[Policy] | Policy = ...,
    *,
    to: str | os.PathLike[str],
    **settings: Unpack[ReparseSettings],
) -> Path: ...
def reparse(
    source: Any,
    protocols: Any = None,
    policies: Sequence[Policy] | Policy = ("safe",),
    *,
    options: ParseOptions | Mapping[str, Any] | None = None,
    own: Mapping[str, AnyProtocol] | None = None,
    engine: Engine = "processes",
    workers: int | None = None,
    client: Any = None,
    to: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    batch_rows: int | None = None,
    progress: bool | None = None,
) -> Frame | Path:
    """Read recorded answers again by every protocol under every policy.

    No model is called.

    source: a trials frame, a Parquet file or folder of one, a list of such paths, or
    `evals.frames.answers.Answers`. If it holds several readings of one answer, the first is taken.
    protocols, policies, options: as for `parse_frame`. own: protocols by the ids in the rows, of
    those that are neither shipped nor installed. engine: one of `ENGINES`. For a few thousand
    readings "processes" starts none. workers: processes, as many as there are cores by default.
    client: for "dask", a `distributed.Client` or the address of a scheduler. By default the current
    one. Files are then read and written by its workers, so they must see the same paths. to: a
    .parquet file or a folder of parts to write, so that the memory used does not grow with the
    number of rows. `overwrite` allows that it is there. batch_rows: answers a piece of work holds.
    By default as many as take about half a second.

    Gives the trials frame, or the path of the written file. Raises UnreadableInput,
    UnknownProtocol, BadOptions, StoreError, MissingExtra, and IncompleteError where a worker ended
    before its work was done.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.evals.reparse import reparse
    >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> run = lab.ingest([{"raw": text}], protocol="hermes", tools=[{"name": "f"}])
    >>> reparse(run.frame(), ["hermes"], engine="serial")["outcome"].tolist()
    ['ungraded']
    """
    reading = Reading.of(protocols, policies, options, own)
    if engine not in ENGINES:
        raise BadOptions("no engine of this name", got=engine, expected=", ".join(ENGINES))
    if client is not None and engine != "dask":
        raise BadOptions(
            "only the engine 'dask' has a client", got=engine, hint="say engine='dask'"
        )
    if workers is not None and engine != "processes":
        raise BadOptions(
            "only the engine 'processes' has workers", got=engine, hint="leave workers out"
        )
    if workers is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        workers = len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    elif not _is_count(workers):
        raise BadOptions("workers is a number of processes", got=workers, expected="1 or more")
    if batch_rows is None:
        batch_rows = max(1, ROWS_AT_ONCE // reading.readings)
    elif not _is_count(batch_rows):
        raise BadOptions("batch_rows is a number of answers", got=batch_rows, expected="1 or more")

    answers = Answers.of(source)
    pieces = answers.pieces(batch_rows, remote=engine == "dask")
    # One process is through with few before others have begun.
    is_few = answers.count is not None and answers.count * reading.readings <= FEW
    if engine == "processes" and is_few:
        engine = "serial"
    out = None if to is None else PartsWriter(Path(to), "trials", overwrite=overwrite)
    frames = []
    with Progress(answers.count, show=progress, unit="answer") as bar:
        with out or contextlib.nullcontext():
            # The parts of a folder are written where they are made; one file has one writer.
            tasks = (
                Task(piece, reading, out.part_path(i) if out is not None and out.folder else None)
                for i, piece in enumerate(pieces)
            )
            results = (
                run_pool(tasks, workers)
                if engine == "processes"
                else run_cluster(tasks, client)
                if engine == "dask"
                else (read_piece(task) for task in tasks)
            )
            with contextlib.closing(results):
                for count, frame in results:
                    if frame is not None and out is not None:
                        out.write(frame)
                    elif frame is not None:
                        frames.append(frame)
                    bar.advance(count)
        if out is not None:
            return out.path
        return join_frames(frames, "trials") if frames else trials_frame([])


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


def _in_order(
    tasks: Iterator[Task],
    waiting: deque[Any],
    most: int,
    submit: Callable[[Task], Any],
    result: Callable[[Any], Done],
) -> Results:
    # `waiting` is the caller's, who knows what has begun if it ends here.
    for task in tasks:
        waiting.append(submit(task))
        if len(waiting) > most:
            yield result(waiting[0])
            waiting.popleft()
    while waiting:
        yield result(waiting[0])
        waiting.popleft()


# a pool of processes


def run_pool(tasks: Iterator[Task], workers: int) -> Results:
    """Yield the results of the tasks in order, and leave no process behind.

    Raises IncompleteError, BadOptions and the error of a task.
    """
    context = _Context()
    stop = context.Event()
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_begin, initargs=(stop,)
    )
    waiting: deque[Future[Done]] = deque()

    def submit(task: Task) -> Future[Done]:
        if not waiting:
            _check_travels(task.reading)
        return executor.submit(_work, task)

    try:
        most = workers * _AHEAD["processes"]
        yield from _in_order(tasks, waiting, most, submit, lambda future: future.result())
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
    finally:
        # A process that is killed in the middle of an answer would leave the others waiting for its
        # lock for ever.
        stop.set()
        executor.shutdown(wait=True, cancel_futures=True)


_starting = threading.Lock()
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
    return read_piece(task)


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


# a Dask cluster


def run_cluster(tasks: Iterator[Task], client: Any = None) -> Results:
    """Yield the results of the tasks in order.

    client: a `distributed.Client`, an address, or None for the current one. Raises MissingExtra,
    BadOptions if there is no cluster, IncompleteError, and the error of a task.
    """
    try:
        import distributed
    except ImportError as e:
        raise MissingExtra(
            "the engine 'dask' needs distributed",
            got=str(e),
            hint="pip install 'toolparse_lab[dask]'",
        ) from None
    make: Any = distributed.Client
    connected: Any = client
    own: Any = contextlib.nullcontext()  # closed again where it was made here
    if isinstance(client, make):
        if client.asynchronous:
            raise BadOptions(
                "this client is asynchronous", hint="give the address of its scheduler"
            )
    elif client is None:
        try:
            connected = make.current()
        except ValueError:
            raise BadOptions(
                "there is no Dask client here",
                expected="a distributed.Client, or the address of a scheduler such as "
                "tcp://host:8786",
                hint="make one, or give client=",
            ) from None
    else:
        try:
            # A notebook's own default client stays what it is.
            own = connected = make(client, set_as_default=False)
        except (OSError, ValueError, TypeError) as e:
            raise BadOptions(
                "there is no Dask scheduler at this address",
                got=f"{client}: {e}",
                expected="such as tcp://host:8786",
            ) from None

    def submit(task: Task) -> Any:
        return connected.submit(read_piece, task, pure=False)

    def result(future: Any) -> Done:
        try:
            done: Done = future.result()
        except ToolparseError:
            raise
        except (distributed.KilledWorker, distributed.CancelledError) as e:
            raise IncompleteError(
                "workers of the cluster ended before their answers were read",
                got=str(e).splitlines()[0] if str(e) else type(e).__name__,
                hint="give a smaller batch_rows; engine='serial' shows where it happens",
                code="worker-lost",
            ) from None
        except ImportError as e:
            raise BadOptions(
                "the workers of the cluster cannot import what they need",
                got=str(e),
                expected="toolparse_lab[lab] of the same version",
                hint="install it where the workers run",
            ) from None
        return done

    with own:
        waiting: deque[Any] = deque()
        try:
            most = max(1, sum(connected.nthreads().values())) * _AHEAD["dask"]
            yield from _in_order(tasks, waiting, most, submit, result)
        finally:
            if waiting:
                with contextlib.suppress(Exception):
                    connected.cancel(list(waiting), force=True)
