"""Recorded answers read again at size: by one process, by a pool of processes, or on a Dask
cluster that is there already.
"""

# How it works. A source is cut into pieces, and all engines do the same with a piece
# (`answers.read_piece`), so that they give the same rows. Workers of a cluster read, and write the
# parts of a folder, themselves.

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload

import numpy as np
import pandas as pd

from ..core.errors import BadOptions, UnreadableInput
from ..core.types import ParseOptions, Policy
from ..entry.foreign.protocol import AnyProtocol
from ..runner.progress import Progress
from .engines import ENGINES, Engine, check_engine, is_count, results_of, travels
from .frames.files import (
    PartsWriter,
    RowGroup,
    column_names,
    parquet_files_of,
    read_batches,
    read_frame,
    row_groups,
    write_part,
)
from .frames.parsing import IDENTITY, ParseSettings, check_columns, read_again
from .frames.recorded import join_frames, trials_frame

if TYPE_CHECKING:
    from .frames.recorded import Frame

# How it works. A frame of trials may hold an answer several times, once for each reading, and only
# the first is to be read again. Which rows those are is known from the columns of identity alone,
# so one pass over them comes first; the texts are read piece by piece afterwards. An engine in this
# process is handed the rows, one elsewhere the place of the rows, so that texts do not travel.


Keep: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]] | None
"""True for each of all rows that is the first reading of its answer; None where each is."""


_IDENTITY_ROWS = 50_000  # rows of the identity columns in memory at a time


@dataclass(frozen=True, slots=True)
class Piece:
    """Some answers: a frame, or their place in a file. `keep` is of the rows that are read."""

    frame: pd.DataFrame | None = None
    group: RowGroup | None = None
    start: int = 0
    stop: int = 0
    keep: Keep = None

    def load(self) -> pd.DataFrame:
        """Return the rows. Raises UnreadableInput if their file is gone or damaged."""
        frame = self.frame
        if frame is None:
            if self.group is None:
                raise UnreadableInput("a piece has neither rows nor a place")
            frame = self.group.read().iloc[self.start : self.stop]
        return frame if self.keep is None else frame[self.keep]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers that are to be read: a frame, Parquet files, or an iterable of frames with one row
    per answer, of which `count` is None if only they can say.
    """

    count: int | None
    frame: pd.DataFrame | None = None
    files: tuple[str, ...] = ()
    batches: Iterable[pd.DataFrame] = ()
    keep: Keep = None

    @classmethod
    def of(cls, source: Any) -> Answers:
        """Return the answers of a trials frame, a Parquet or CSV file, a folder of Parquet files, a
        list of their paths, or `Answers`. Raises UnreadableInput that names the missing part.
        """
        if isinstance(source, Answers):
            return source
        is_path = isinstance(source, (str, os.PathLike))
        if is_path and Path(source).suffix == ".csv":
            # Of the file, since the frame has every column, whether the file has it or not.
            frame = read_frame(source, "trials")
            check_columns(column_names(source), str(source))
            return cls.of(frame)
        if isinstance(source, pd.DataFrame):
            check_columns(source.columns)
            keep = _first_readings([source[list(IDENTITY)]])
            count = len(source) if keep is None else int(keep.sum())
            return cls(count, frame=source, keep=keep)

        files = parquet_files_of(source, also="a run, a run's id, ")
        for file in files:
            check_columns(column_names(file), file)

        # Only the columns of identity are read here.
        keep = _first_readings(read_batches(files, _IDENTITY_ROWS, IDENTITY))
        rows = sum(group.rows for group in row_groups(files))
        return cls(rows if keep is None else int(keep.sum()), files=tuple(files), keep=keep)

    def pieces(self, size: int, *, remote: bool = False) -> Iterator[Piece]:
        """Yield the answers, in order, at most `size` rows at a time; batches in the sizes they
        have.

        remote: files are read where the piece is loaded, so that no rows travel.
        """
        if self.files and remote:
            for group in row_groups(self.files):
                for start in range(0, group.rows, size):
                    stop = min(start + size, group.rows)
                    # Of these rows alone, which are counted within their group.
                    keep = self.keep
                    if keep is not None:
                        keep = keep[group.start + start : group.start + stop]
                    yield Piece(group=group, start=start, stop=stop, keep=keep)
            return

        if self.frame is not None:
            starts = range(0, len(self.frame), size)
            frames: Iterable[pd.DataFrame] = (self.frame.iloc[i : i + size] for i in starts)
        else:
            frames = read_batches(self.files, size) if self.files else self.batches
        done = 0
        for frame in frames:
            keep = None if self.keep is None else self.keep[done : done + len(frame)]
            done += len(frame)
            yield Piece(frame=frame if keep is None else frame[keep])


def run_answers(batches: Iterable[pd.DataFrame], count: int | None = None) -> Answers:
    """Return answers that come in frames of one row each, as `Run.answers` makes them, and are
    taken as they come. count: how many there are, None if only the batches can say.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.evals.reparse import run_answers
    >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
    >>> run = lab.ingest([{"raw": "Hi"}], protocol="hermes")
    >>> run_answers(run.answers(), 1).count
    1
    """
    return Answers(count, batches=batches)


def _first_readings(parts: Iterable[pd.DataFrame]) -> Keep:
    # Exact, at four bytes a value: each column becomes numbers, the same for the same value in
    # every part, so that the strings of one part alone are in memory.
    numbers: dict[str, dict[Any, int]] = {name: {} for name in IDENTITY}  # by value
    columns: dict[str, list[Any]] = {name: [] for name in IDENTITY}
    for part in parts:
        for name, known in numbers.items():
            codes, uniques = pd.factorize(part[name])
            # The last entry is for -1, which is the code of a missing value.
            in_order = [*(known.setdefault(v, len(known)) for v in uniques), -1]
            columns[name].append(np.array(in_order, dtype=np.int32)[codes])
    if not columns[IDENTITY[0]]:
        return None  # not one part, and so no rows

    rows = pd.DataFrame({name: np.concatenate(codes) for name, codes in columns.items()})
    keep: np.ndarray[Any, np.dtype[np.bool_]] = ~rows.duplicated().to_numpy()
    # A frame with one reading an answer, the usual one, need not be sifted.
    return None if keep.all() else keep


Done: TypeAlias = tuple[int, pd.DataFrame | None]
"""The number of answers in a task, and its rows, where they were not written already."""


@dataclass(frozen=True, slots=True)
class Task:
    """A piece, the way it is read, and the `PartsWriter.part_path` of its rows, None to have them
    back.
    """

    piece: Piece
    reading: ParseSettings
    part: str | None = None


def read_piece(task: Task) -> Done:
    """Do the work of every engine on a piece. Raises the errors of loading, of `parse_frame` and of
    writing.
    """
    frame = task.piece.load()
    rows = read_again(frame, task.reading)
    if task.part is None:
        return len(frame), rows
    write_part(rows, task.part, "trials")
    return len(frame), None


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
