"""Recorded answers read again at size: by one process, by a pool of processes, or on a Dask
cluster that is there already.
"""

# How it works. A source is cut into pieces, and all engines do the same with a piece
# (`answers.read_piece`), so that they give the same rows. Workers of a cluster read, and write the
# parts of a folder, themselves.

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from ..core.errors import BadOptions
from ..core.types import ParseOptions, Policy
from ..entry.foreign.protocol import AnyProtocol
from ..runner.progress import Progress
from .engines import ENGINES, Engine, check_engine, is_count, results_of, travels
from .frames.answers import Answers, Task, read_piece, run_answers
from .frames.files import PartsWriter
from .frames.parsing import ParseSettings
from .frames.recorded import join_frames, trials_frame

if TYPE_CHECKING:
    from .frames.recorded import Frame

__all__ = ["ENGINES", "reparse", "run_answers"]

ROWS_AT_ONCE = 2000
"""Readings in a piece of work: few enough that what is interrupted ends soon, and files are read in
few pieces."""
FEW = 4000
"""Readings that one process is through with before others have begun."""


class ReparseSettings(TypedDict, total=False):
    """The options of `reparse` apart from the place to write to.

    Args:
        options: of the parser, besides the policy.
        own: protocols by id, for rows of a frame that were asked by one of your own.
        engine: processes, serial or dask (default: processes).
        workers: processes (default: one a core).
        client: the scheduler of a Dask cluster.
        overwrite: write where something is already.
        batch_rows: rows that are read at once.
        progress: None shows a bar where someone can see it.
    """

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
    """Read recorded answers again by every protocol under every policy, without calling a model.

    source: as for `Answers.of`. If it holds several readings of one answer, the first is taken.
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
    reading = ParseSettings.of(protocols, policies, options, own)
    check_engine(engine, workers, client)
    if batch_rows is None:
        batch_rows = max(1, ROWS_AT_ONCE // reading.readings)
    elif not is_count(batch_rows):
        raise BadOptions("batch_rows is a number of answers", got=batch_rows, expected="1 or more")

    answers = Answers.of(source)
    pieces = answers.pieces(batch_rows, remote=engine == "dask")
    # One process is through with few before others have begun.
    is_few = answers.count is not None and answers.count * reading.readings <= FEW
    if engine == "processes" and is_few:
        engine = "serial"
    if engine == "processes" and not travels(reading.protocols):
        raise BadOptions(
            "a protocol cannot be sent to another process",
            got=", ".join(p if isinstance(p, str) else p.id for p in reading.protocols or ()),
            expected="ids, or protocols defined in a module",
            hint="put it into a module that can be imported, or say engine='serial'",
        )
    out = None if to is None else PartsWriter(Path(to), "trials", overwrite=overwrite)
    frames = []
    with Progress(answers.count, show=progress, unit="answer") as bar:
        with out or contextlib.nullcontext():
            # The parts of a folder are written where they are made; one file has one writer.
            tasks = (
                Task(piece, reading, out.part_path(i) if out is not None and out.folder else None)
                for i, piece in enumerate(pieces)
            )
            results = results_of(read_piece, tasks, engine, workers, client)
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
