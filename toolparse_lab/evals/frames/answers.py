"""Recorded answers to be read again, in pieces: from a frame, from Parquet, or from batches made on
the way.

A trials frame may hold several readings of one answer. Only the first of them is taken.
"""

# How it works. A frame of trials may hold an answer several times, once for each reading, and only
# the first is to be read again. Which rows those are is known from the columns of identity alone,
# so one pass over them comes first; the texts are read piece by piece afterwards. An engine in this
# process is handed the rows, one elsewhere the place of the rows, so that texts do not travel.

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ...core.errors import UnreadableInput
from .files import (
    RowGroup,
    column_names,
    parquet_files,
    read_batches,
    read_frame,
    row_groups,
    write_part,
)
from .reread import IDENTITY, Reading, check_columns, read_again

Keep: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]] | None
"""True for each of all rows that is the first reading of its answer; None where each is."""


_IDENTITY_ROWS = 50_000  # rows of the identity columns in memory at a time


@dataclass(frozen=True, slots=True)
class Piece:
    """Some answers: a frame, or the place in a file where they stand.

    `keep` is of the rows that are read.
    """

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

        if self.keep is None:
            return frame
        return frame[self.keep]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers that are to be read: a frame, Parquet files, or an iterable of frames with one row
    per answer.

    `count` is the number of answers, None if only the batches can say.
    """

    count: int | None
    frame: pd.DataFrame | None = None
    files: tuple[str, ...] = ()
    batches: Iterable[pd.DataFrame] = ()
    keep: Keep = None

    @classmethod
    def of(cls, source: Any) -> Answers:
        """Return the answers of a trials frame, a Parquet or CSV file, a folder of Parquet files,
        or a list of their paths.

        source: one of these, or `Answers` that were made before. Raises UnreadableInput that names
        the missing part.
        """
        if isinstance(source, Answers):
            return source
        if isinstance(source, pd.DataFrame):
            return cls._of_frame(source)
        if isinstance(source, (str, os.PathLike)):
            path = Path(source)
            if path.suffix == ".csv":
                return cls._of_csv(path)
            return cls._of_paths([path])

        # A mapping would be taken for a list of its keys.
        if isinstance(source, Mapping) or not isinstance(source, Iterable):
            raise _bad_source(source)
        return cls._of_paths(source)

    @classmethod
    def _of_frame(cls, frame: pd.DataFrame) -> Answers:
        check_columns(frame.columns)
        keep = _first_readings([frame[list(IDENTITY)]])
        return cls(_count(keep, len(frame)), frame=frame, keep=keep)

    @classmethod
    def _of_csv(cls, path: Path) -> Answers:
        frame = read_frame(path, "trials")
        # Of the file, since the frame has every column, whether the file has it or not.
        check_columns(column_names(path), str(path))
        return cls._of_frame(frame)

    @classmethod
    def _of_paths(cls, paths: Iterable[Any]) -> Answers:
        # Only the columns of identity are read here.
        files: list[str] = []
        for path in paths:
            files += _files_of(path)

        # An empty list is more often a pattern that found nothing than a wish for no rows.
        if not files:
            raise UnreadableInput(
                "there is no file to read", got="an empty list", expected="Parquet"
            )
        for file in files:
            check_columns(column_names(file), file)

        rows = sum(group.rows for group in row_groups(files))
        keep = _first_readings(read_batches(files, _IDENTITY_ROWS, IDENTITY))
        return cls(_count(keep, rows), files=tuple(files), keep=keep)

    def pieces(self, size: int, *, remote: bool = False) -> Iterator[Piece]:
        """Yield the answers, in order, at most `size` rows at a time.

        remote: files are read where the piece is loaded, so that no rows travel. Batches come in
        the sizes they have.
        """
        if self.frame is not None:
            return self._pieces_of_frame(self.frame, size)
        if not self.files:
            return (Piece(frame=frame) for frame in self.batches)
        return self._places(size) if remote else self._pieces_of_files(size)

    def _pieces_of_frame(self, frame: pd.DataFrame, size: int) -> Iterator[Piece]:
        for start in range(0, len(frame), size):
            yield Piece(frame=self._first_of(frame.iloc[start : start + size], start))

    def _pieces_of_files(self, size: int) -> Iterator[Piece]:
        # The index of a frame counts over all files.
        for frame in read_batches(self.files, size):
            start = int(frame.index[0]) if len(frame) else 0
            yield Piece(frame=self._first_of(frame, start))

    def _places(self, size: int) -> Iterator[Piece]:
        for group in row_groups(self.files):
            for start in range(0, group.rows, size):
                stop = min(start + size, group.rows)
                # Of these rows alone, which are counted within their group.
                keep = self.keep
                if keep is not None:
                    keep = keep[group.start + start : group.start + stop]
                yield Piece(group=group, start=start, stop=stop, keep=keep)

    def _first_of(self, frame: pd.DataFrame, start: int) -> pd.DataFrame:
        if self.keep is None:
            return frame
        return frame[self.keep[start : start + len(frame)]]


def run_answers(batches: Iterable[pd.DataFrame], count: int | None = None) -> Answers:
    """Return answers that come in frames of one row each, as `Run.answers` makes them.

    count: how many there are, None if only the batches can say. Unlike frames and files they are
    taken as they come: each row is an answer.

    >>> import tempfile
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.evals.reparse import run_answers
    >>> lab = tp.Lab(tempfile.mkdtemp() + "/runs.db")
    >>> run = lab.ingest([{"raw": "Hi"}], protocol="hermes")
    >>> run_answers(run.answers(), 1).count
    1
    """
    return Answers(count, batches=batches)


def _bad_source(source: Any) -> UnreadableInput:
    return UnreadableInput(
        "this holds no recorded answers",
        got=f"{type(source).__name__} {source!r}",
        expected="a run, a run's id, a trials frame, a Parquet file, a folder of them, or a list "
        "of paths",
    )


def _files_of(path: Any) -> list[str]:
    if not isinstance(path, (str, os.PathLike)):
        raise _bad_source(path)

    if Path(path).suffix == ".csv":
        raise UnreadableInput(
            "CSV is read one file at a time",
            got=str(path),
            expected="Parquet in a list",
            hint="read_frame(path, 'trials') makes a frame of it, and pandas.concat one of several",
        )

    return [str(file) for file in parquet_files(Path(path))]


def _count(keep: Keep, rows: int) -> int:
    if keep is None:
        return rows
    return int(keep.sum())


def _first_readings(parts: Iterable[pd.DataFrame]) -> Keep:
    # Exact, at four bytes a value: each column becomes numbers, the same for the same value in
    # every part, so that the strings of one part alone are in memory.
    columns = {name: _Codes() for name in IDENTITY}
    for part in parts:
        for name, codes in columns.items():
            codes.add(part[name])
    if not columns[IDENTITY[0]].parts:
        return None  # not one part, and so no rows

    rows = pd.DataFrame({name: np.concatenate(codes.parts) for name, codes in columns.items()})
    keep: np.ndarray[Any, np.dtype[np.bool_]] = ~rows.duplicated().to_numpy()
    # A frame with one reading an answer, the usual one, need not be sifted.
    if keep.all():
        return None
    return keep


class _Codes:
    # The values of a column as numbers, part by part. A missing value is -1.
    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}  # by value
        self.parts: list[Any] = []

    def add(self, values: pd.Series[Any]) -> None:
        codes, uniques = pd.factorize(values)
        numbers = self.numbers
        # The last entry stands for -1, which is the code of a missing value.
        in_order = [*(numbers.setdefault(v, len(numbers)) for v in uniques), -1]
        self.parts.append(np.array(in_order, dtype=np.int32)[codes])


def read_piece(
    piece: Piece, reading: Reading, part: str | None = None
) -> tuple[int, pd.DataFrame | None]:
    """Do the work of every engine on a piece: return (answers, their rows), or write the rows to
    `part` and return None for them.

    part: the path of a file, see `PartsWriter.part_path`. Raises the errors of loading and of
    `parse_frame`, and StoreError.
    """
    frame = piece.load()
    rows = read_again(frame, reading)
    if part is None:
        return len(frame), rows
    write_part(rows, part, "trials")
    return len(frame), None
