"""`reparse`: a source, an engine, and a frame or Parquet."""

# How it works. A source is cut into pieces, and an engine is a generator from tasks to results, in
# order. Whoever takes the results drives it: tasks are made as they are wanted, and closing the
# generator, as an error or Ctrl-C does, ends what has begun. All engines do the same with a piece
# (`answers.read_piece`), so that they give the same rows.

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, overload

from ...core.errors import BadOptions
from ...core.types import ParseOptions, Policy
from ...parser.foreign.protocol import AnyProtocol
from ...runner.progress import Progress
from ..frames.answers import Answers, Piece, read_piece
from ..frames.files import PartsWriter
from ..frames.recorded import join_frames, trials_frame
from ..frames.reread import Reading
from .cluster import run_cluster
from .pool import run_pool
from .tasks import Done, Task

if TYPE_CHECKING:
    from ..frames.recorded import Frame

Engine: TypeAlias = Literal["processes", "serial", "dask"]
ENGINES: Mapping[Engine, str] = {
    "processes": "a pool of processes on this machine",
    "serial": "this process alone",
    "dask": "the workers of a Dask cluster that is there already",
}
"""Engine -> the processes that read."""
Results: TypeAlias = Generator[Done, None, None]
Run: TypeAlias = Callable[[Iterator[Task]], Results]
"""Runs tasks and yields their results in order; closing it ends what has begun."""
ROWS_AT_ONCE = 2000
"""Readings in a piece of work: few enough that what is interrupted ends soon, and files are read in
few pieces."""
FEW = 4000
"""Readings that one process is through with before others have begun."""


class ReparseSettings(TypedDict, total=False):
    """The options of `reparse` beside the place to write to."""

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
    options: ParseOptions | Mapping[str, Any] | None = ...,
    own: Mapping[str, AnyProtocol] | None = ...,
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
    protocols: Any = ...,
    policies: Sequence[Policy] | Policy = ...,
    *,
    options: ParseOptions | Mapping[str, Any] | None = ...,
    own: Mapping[str, AnyProtocol] | None = ...,
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
    run = _engine_of(engine, workers, client)
    if batch_rows is None:
        batch_rows = max(1, ROWS_AT_ONCE // reading.readings)
    elif not _is_count(batch_rows):
        raise BadOptions("batch_rows is a number of answers", got=batch_rows, expected="1 or more")
    answers = Answers.of(source)
    if engine == "processes" and _is_few(answers, reading):
        run = _run_serial
    pieces = answers.pieces(batch_rows, remote=engine == "dask")
    with Progress(answers.count, show=progress, unit="answer") as bar:
        if to is None:
            return _to_frame(pieces, reading, run, bar)
        out = PartsWriter(Path(to), "trials", overwrite=overwrite)
        return _to_parquet(pieces, reading, run, bar, out)


def _to_frame(pieces: Iterator[Piece], reading: Reading, run: Run, bar: Progress) -> Frame:
    frames = []
    with closing(run(Task(piece, reading) for piece in pieces)) as results:
        for count, frame in results:
            if frame is not None:
                frames.append(frame)
            bar.advance(count)
    return join_frames(frames, "trials") if frames else trials_frame([])


def _to_parquet(
    pieces: Iterator[Piece], reading: Reading, run: Run, bar: Progress, out: PartsWriter
) -> Path:
    # No more than a few pieces are in memory.
    with out:
        # The parts of a folder are written where they are made; one file has one writer.
        tasks = (
            Task(piece, reading, out.part_path(i) if out.folder else None)
            for i, piece in enumerate(pieces)
        )
        with closing(run(tasks)) as results:
            for count, frame in results:
                if frame is not None:
                    out.write(frame)
                bar.advance(count)
    return out.path


def _engine_of(engine: Engine, workers: int | None, client: Any) -> Run:
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
    if engine == "dask":
        return lambda tasks: run_cluster(tasks, client)
    if engine == "serial":
        return _run_serial
    count = _cores() if workers is None else workers
    if not _is_count(count):
        raise BadOptions("workers is a number of processes", got=workers, expected="1 or more")
    return lambda tasks: run_pool(tasks, count)


def _is_count(x: Any) -> bool:
    return isinstance(x, int) and not isinstance(x, bool) and x >= 1


def _is_few(answers: Answers, reading: Reading) -> bool:
    # One process is through before others have begun.
    return answers.count is not None and answers.count * reading.readings <= FEW


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _run_serial(tasks: Iterator[Task]) -> Results:
    for task in tasks:
        yield read_piece(task.piece, task.reading, task.part)
