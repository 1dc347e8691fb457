"""`reparse`: a source, an engine, and a frame or Parquet."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, overload

from ..errors import BadOptions
from ..evals.frames.answers import Answers, read_piece
from ..evals.frames.files import PartsWriter
from ..evals.frames.recorded import join_frames, trials_frame
from ..evals.frames.reread import ProtocolLike, Reading
from ..runner.progress import Progress
from ..types import ParseOptions, Policy
from .pool import run_pool
from .tasks import Done, Task

if TYPE_CHECKING:
    from ..evals.frames.recorded import Frame

Engine: TypeAlias = Literal["processes", "serial", "dask"]
ENGINES: Mapping[Engine, str] = {
    "processes": "a pool of processes on this machine",
    "serial": "this process alone",
    "dask": "the workers of a Dask cluster that is there already",
}
"""What reads, and where."""
Results: TypeAlias = Generator[Done, None, None]
ROWS_AT_ONCE = 2000
"""Readings in a piece of work: few enough that what is interrupted ends soon, and files are read in few pieces."""
FEW = 4000
"""Readings that one process is through with before others have begun."""


@overload
def reparse(
    source: Any,
    protocols: Sequence[ProtocolLike] | ProtocolLike | None = ...,
    policies: Sequence[Policy] | Policy = ...,
    *,
    options: ParseOptions | Mapping[str, Any] | None = ...,
    engine: Engine = ...,
    workers: int | None = ...,
    client: Any = ...,
    to: None = ...,
    overwrite: bool = ...,
    batch_rows: int | None = ...,
    progress: bool | None = ...,
) -> Frame: ...
@overload
def reparse(
    source: Any,
    protocols: Sequence[ProtocolLike] | ProtocolLike | None = ...,
    policies: Sequence[Policy] | Policy = ...,
    *,
    options: ParseOptions | Mapping[str, Any] | None = ...,
    engine: Engine = ...,
    workers: int | None = ...,
    client: Any = ...,
    to: str | os.PathLike[str],
    overwrite: bool = ...,
    batch_rows: int | None = ...,
    progress: bool | None = ...,
) -> Path: ...
def reparse(
    source: Any,
    protocols: Sequence[ProtocolLike] | ProtocolLike | None = None,
    policies: Sequence[Policy] | Policy = ("safe",),
    *,
    options: ParseOptions | Mapping[str, Any] | None = None,
    engine: Engine = "processes",
    workers: int | None = None,
    client: Any = None,
    to: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    batch_rows: int | None = None,
    progress: bool | None = None,
) -> Frame | Path:
    """Reads recorded answers again by every protocol under every policy; no model is called.

    source: a trials frame, a Parquet file or folder of one, a list of such paths, or `evals.frames.answers.Answers`;
    where it holds several readings of one answer, the first is taken. protocols, policies, options: as for
    `parse_frame`.
    engine: one of `ENGINES`; for a few thousand readings "processes" starts none. workers: processes, as many as there
    are cores by default. client: for "dask", a `distributed.Client` or the address of a scheduler; by default the
    current one. Files are then read and written by its workers, so they must see the same paths. to: a .parquet file
    or a folder of parts to write, so that the memory used does not grow with the number of rows; `overwrite` allows
    that it is there. batch_rows: answers a piece of work holds; by default as many as take about half a second.

    Gives the trials frame, or the path of what was written. Raises UnreadableInput, UnknownProtocol, BadOptions,
    StoreError, MissingExtra, and WorkerLost where a worker ended before its work was done.
    """
    how = Reading.of(protocols, policies, options)
    run = _engine_of(engine, workers, client)
    if batch_rows is None:
        batch_rows = max(1, ROWS_AT_ONCE // how.readings)
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise BadOptions("batch_rows is a number of answers", got=batch_rows, expected="1 or more")
    answers = Answers.of(source)
    if engine == "processes" and answers.count is not None and answers.count * how.readings <= FEW:
        run = _run_serial
    pieces = answers.pieces(batch_rows, remote=engine == "dask")
    with Progress(answers.count, show=progress, unit="answer") as bar:
        if to is None:
            frames = []
            with closing(run(Task(piece, how) for piece in pieces)) as results:
                for count, frame in results:
                    if frame is not None:
                        frames.append(frame)
                    bar.advance(count)
            return join_frames(frames, "trials") if frames else trials_frame([])
        with PartsWriter(Path(to), "trials", overwrite=overwrite) as out:
            # The parts of a folder are written where they are made; one file has one writer.
            tasks = (Task(p, how, out.part_path(i) if out.folder else None) for i, p in enumerate(pieces))
            with closing(run(tasks)) as results:
                for count, frame in results:
                    if frame is not None:
                        out.write(frame)
                    bar.advance(count)
        return out.path


def _engine_of(engine: Engine, workers: int | None, client: Any) -> Callable[[Iterator[Task]], Results]:
    if engine not in ENGINES:
        raise BadOptions("no engine of this name", got=engine, expected=", ".join(ENGINES))
    if client is not None and engine != "dask":
        raise BadOptions("only the engine 'dask' has a client", got=engine, hint="say engine='dask'")
    if workers is not None and engine != "processes":
        raise BadOptions("only the engine 'processes' has workers", got=engine, hint="leave workers out")
    if engine == "dask":
        from .cluster import run_cluster

        return lambda tasks: run_cluster(tasks, client)
    if engine == "serial":
        return _run_serial
    count = _cores() if workers is None else workers
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise BadOptions("workers is a number of processes", got=workers, expected="1 or more")
    return lambda tasks: run_pool(tasks, count)


def _cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _run_serial(tasks: Iterator[Task]) -> Results:
    for task in tasks:
        yield read_piece(task.piece, task.how, task.part)
