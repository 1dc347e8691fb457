"""Recorded answers to be read again, in pieces: from a frame, from Parquet, or from batches that are made on the way.

A trials frame may hold several readings of one answer. Only the first of them is taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ...errors import UnreadableInput
from .files import RowGroup, column_names, parquet_files, read_batches, read_frame, row_groups, write_part
from .reread import IDENTITY, Reading, check_columns, read_again

Keep: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]] | None
"""Which of all rows are the first reading of their answer; None where each is."""


@dataclass(frozen=True, slots=True)
class Piece:
    """Some answers: a frame, or the place in a file where they stand. `keep` is of the rows that are read."""

    frame: pd.DataFrame | None = None
    group: RowGroup | None = None
    start: int = 0
    stop: int = 0
    keep: Keep = None

    def load(self) -> pd.DataFrame:
        """The rows. Raises UnreadableInput where their file is gone or damaged."""
        frame = self.frame
        if frame is None:
            if self.group is None:
                raise UnreadableInput("a piece has neither rows nor a place")
            frame = self.group.read().iloc[self.start : self.stop]
        return frame if self.keep is None else frame[self.keep]


@dataclass(frozen=True, slots=True)
class Answers:
    """What is to be read: a frame, Parquet files, or an iterable of frames with one row an answer.

    `count` is the number of answers, None where only the batches tell.
    """

    count: int | None
    frame: pd.DataFrame | None = None
    files: tuple[str, ...] = ()
    batches: Iterable[pd.DataFrame] = ()
    keep: Keep = None

    @classmethod
    def of(cls, source: Any) -> Answers:
        """From a trials frame, a Parquet or CSV file, a folder of Parquet files, or a list of their paths.

        Raises UnreadableInput that names what is missing.
        """
        if isinstance(source, Answers):
            return source
        if isinstance(source, pd.DataFrame):
            check_columns(source.columns)
            keep = _first_readings([source[list(IDENTITY)]])
            return cls(len(source) if keep is None else int(keep.sum()), frame=source, keep=keep)
        if isinstance(source, (str, os.PathLike)) and Path(source).suffix == ".csv":
            return cls._of_csv(source)
        paths = [source] if isinstance(source, (str, os.PathLike)) else source
        if isinstance(paths, Mapping) or not isinstance(paths, Iterable):
            raise _bad_source(source)
        files: list[str] = []
        for path in paths:
            if not isinstance(path, (str, os.PathLike)):
                raise _bad_source(path)
            if Path(path).suffix == ".csv":
                raise UnreadableInput(
                    "CSV is read one file at a time", got=str(path), expected="Parquet in a list",
                    hint="read_frame(path, 'trials') makes a frame of it, and pandas.concat one of several",
                )  # fmt: skip
            files += (str(file) for file in parquet_files(Path(path)))
        if not files:
            raise UnreadableInput("there is no file to read", got="an empty list", expected="Parquet")
        for file in files:
            check_columns(column_names(file), file)
        rows = sum(group.rows for group in row_groups(files))
        keep = _first_readings(read_batches(files, 50_000, IDENTITY))
        return cls(rows if keep is None else int(keep.sum()), files=tuple(files), keep=keep)

    @classmethod
    def _of_csv(cls, path: str | os.PathLike[str]) -> Answers:
        frame = read_frame(Path(path), "trials")
        check_columns(column_names(Path(path)), str(path))  # the frame has every column, given or not
        return cls.of(frame)

    def pieces(self, size: int, *, remote: bool = False) -> Iterator[Piece]:
        """The answers, in order, at most `size` rows at a time. remote: files are read where the piece is loaded."""
        if self.frame is not None:
            for start in range(0, len(self.frame), size):
                yield Piece(frame=self._kept(self.frame.iloc[start : start + size], start))
        elif remote and self.files:
            for group in row_groups(self.files):
                for start in range(0, group.rows, size):
                    stop = min(start + size, group.rows)
                    keep = None if self.keep is None else self.keep[group.start + start : group.start + stop]
                    yield Piece(group=group, start=start, stop=stop, keep=keep)
        elif self.files:
            for frame in read_batches(self.files, size):
                yield Piece(frame=self._kept(frame, int(frame.index[0]) if len(frame) else 0))
        else:
            for frame in self.batches:
                yield Piece(frame=frame)

    def _kept(self, frame: pd.DataFrame, start: int) -> pd.DataFrame:
        return frame if self.keep is None else frame[self.keep[start : start + len(frame)]]


def run_answers(batches: Iterable[pd.DataFrame], count: int | None = None) -> Answers:
    """Answers that come in frames of one row each, as `Run.answers` makes them; `count` of them, where it is known."""
    return Answers(count, batches=batches)


def _bad_source(source: Any) -> UnreadableInput:
    return UnreadableInput(
        "this holds no recorded answers",
        got=f"{type(source).__name__} {source!r}",
        expected="a run, a run's id, a trials frame, a Parquet file, a folder of them, or a list of paths",
    )


def _first_readings(parts: Iterable[pd.DataFrame]) -> Keep:
    """Which rows are the first of their identity, over all parts; exact, at four bytes a value."""
    places: dict[str, dict[Any, int]] = {name: {} for name in IDENTITY}
    codes: dict[str, list[Any]] = {name: [] for name in IDENTITY}
    for part in parts:
        for name in IDENTITY:
            found, values = pd.factorize(part[name])
            place = places[name]
            # The last entry stands for -1, which is the code of a missing value.
            moved = np.array([*(place.setdefault(v, len(place)) for v in values), -1], dtype=np.int32)
            codes[name].append(moved[found])
    if not codes[IDENTITY[0]]:
        return None
    keep: np.ndarray[Any, np.dtype[np.bool_]] = (
        ~pd.DataFrame({name: np.concatenate(c) for name, c in codes.items()}).duplicated().to_numpy()
    )
    return None if keep.all() else keep


def read_piece(piece: Piece, how: Reading, part: str | None = None) -> tuple[int, pd.DataFrame | None]:
    """What every engine does with a piece: (answers, their rows), or the rows written to `part` and None."""
    frame = piece.load()
    rows = read_again(frame, how)
    if part is None:
        return len(frame), rows
    write_part(rows, part, "trials")
    return len(frame), None
