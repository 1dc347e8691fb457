"""Recorded answers read again at size: by one process, by a pool of processes, or a partition at a
time by whatever spreads work over machines.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack, overload

import numpy as np
import pandas as pd
import pyarrow as pa

from ..core.errors import BadOptions, UnreadableInput
from ..core.remote import is_remote, remote_files, written
from ..core.toolspec import ToolsLike, tool_specs
from ..core.types import ParseOptions, Policy
from ..core.values import write_canonical
from ..entry.foreign.protocol import AnyProtocol
from ..runner.progress import Progress
from .engines import Engine, check_engine, is_count, results_of, travels
from .frames.columns import columns_of
from .frames.files import (
    PANDAS_TYPES,
    FrameWriter,
    column_names,
    parquet_files_of,
    read_batches,
    read_frame,
    row_count,
    something_is_there,
    table_of,
)
from .frames.parsing import IDENTITY, ParseSettings, check_columns, read_again
from .frames.recorded import join_frames, trials_frame

if TYPE_CHECKING:
    from .frames.recorded import Frame

# How it works. A frame of trials may hold an answer several times, once for each reading, and only
# the first is to be read again. Which rows those are is known from the columns of identity alone,
# so one pass over them comes first; the texts are read piece by piece afterwards. All engines do
# the same with a piece (`read_piece`), so that they give the same rows.


Keep: TypeAlias = np.ndarray[Any, np.dtype[np.bool_]] | None
"""True for each of all rows that is the first reading of its answer; None where each is."""


_IDENTITY_ROWS = 50_000  # rows of the identity columns in memory at a time


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
        count = row_count(files) if keep is None else int(keep.sum())
        return cls(count, files=tuple(files), keep=keep)

    def pieces(self, size: int) -> Iterator[pd.DataFrame]:
        """Yield the answers, in order, at most `size` rows at a time; batches in the sizes they
        have.
        """
        if self.frame is not None:
            starts = range(0, len(self.frame), size)
            frames: Iterable[pd.DataFrame] = (self.frame.iloc[i : i + size] for i in starts)
        else:
            frames = read_batches(self.files, size) if self.files else self.batches
        done = 0
        for frame in frames:
            keep = None if self.keep is None else self.keep[done : done + len(frame)]
            done += len(frame)
            yield frame if keep is None else frame[keep]


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


Task: TypeAlias = tuple[pd.DataFrame, ParseSettings]
"""Answers, and the way they are read."""


def read_piece(task: Task) -> tuple[int, pd.DataFrame]:
    """Do the work of every engine on a piece, and return the number of its answers and its rows.

    Raises the errors of `parse_frame`.
    """
    return len(task[0]), read_again(*task)


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
        engine: processes or serial (default: processes).
        workers: processes (default: one a core).
        overwrite: write where something is already.
        batch_rows: rows that are read at once.
        progress: None shows a bar where someone can see it.
    """

    options: ParseOptions | Mapping[str, Any] | None
    own: Mapping[str, AnyProtocol] | None
    engine: Engine
    workers: int | None
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
    to: a .parquet file to write, so that the memory used does not grow with the number of rows.
    `overwrite` allows that it is there. batch_rows: answers a piece of work holds. By default as
    many as take about half a second.

    Gives the trials frame, or the path of the written file. Raises UnreadableInput,
    UnknownProtocol, BadOptions, StoreError, and IncompleteError where a process ended before its
    work was done.

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
    check_engine(engine, workers)
    if batch_rows is None:
        batch_rows = max(1, ROWS_AT_ONCE // reading.readings)
    elif not is_count(batch_rows):
        raise BadOptions("batch_rows is a number of answers", got=batch_rows, expected="1 or more")

    answers = Answers.of(source)
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
    place = contextlib.ExitStack()  # a file that stands elsewhere is put there at the end
    out = None
    if to is not None:
        if is_remote(to) and not overwrite and remote_files(str(to), ""):
            raise something_is_there(to)
        own_file = place.enter_context(written(os.fspath(to)))
        out = FrameWriter(own_file, "trials", overwrite=overwrite)
    frames = []
    with Progress(answers.count, show=progress, unit="answer") as bar:
        with place, out or contextlib.nullcontext():
            tasks = ((frame, reading) for frame in answers.pieces(batch_rows))
            results = results_of(read_piece, tasks, engine, workers)
            with contextlib.closing(results):
                for count, frame in results:
                    if out is not None:
                        out.write(frame)
                    else:
                        frames.append(frame)
                    bar.advance(count)
        if to is not None:
            return Path(to)
        return join_frames(frames, "trials") if frames else trials_frame([])


# One partition: an Arrow table in, an Arrow table out. `read_table` is a function of its arguments
# alone and can be pickled, so that whatever spreads work over machines calls it: Dask, Ray Data,
# Spark's `mapInArrow`, an array of jobs.


def read_table(
    table: pa.Table | pa.RecordBatch,
    protocol: str | AnyProtocol | None = None,
    *,
    tools: ToolsLike = None,
    policy: Policy = "safe",
    options: ParseOptions | Mapping[str, Any] | None = None,
) -> pa.Table:
    """Return recorded answers parsed and scored: a row each, in order.

    It has the columns of the trials frame, whose types do not depend on the contents. No store and
    no model is asked.

    Args:
        table: answers, with a column `raw` at least. Every other column of the trials frame counts
            that is there: `input`, `target`, `tools_json`, `case_id`, `trial`, `model` … Lists and
            structs are written as JSON. Columns with other names stay as they are.
        protocol: reads all answers. None: each row's `prompt_protocol`, `auto` without it.
        tools: of rows that have no `tools_json`.
        policy, options: as for `parse`.

    Answers without `case_id` are of one case if they are to the same `input`, or have the same text
    where there is none. Without `trial` they are its first. Raises UnreadableInput for a missing
    column `raw` and for a cell that cannot be read, and the errors of `parse`.

    >>> import pyarrow as pa
    >>> text = '<tool_call>{"name": "f", "arguments": {}}</tool_call>'
    >>> answers = pa.table({"raw": [text, "Hi"], "page": [1, 2]})
    >>> read = read_table(answers, "hermes", tools=[{"name": "f"}])
    >>> read.select(["n_calls", "verdict", "page"]).to_pylist()[0]
    {'n_calls': 1, 'verdict': 'clean', 'page': 1}
    """
    if isinstance(table, pa.RecordBatch):
        table = pa.Table.from_batches([table])
    if "raw" not in table.column_names:
        raise UnreadableInput(
            "a partition has the texts of its answers in the column raw",
            got=", ".join(table.column_names) or "no columns",
            expected="raw",
            hint='table.rename_columns({"completion": "raw"}) names the columns',
        )
    reading = ParseSettings.of(protocol, policy, options)
    declared = {column.name for column in columns_of("trials")}
    columns = {
        name: _as_text(table[name]) if pa.types.is_nested(table[name].type) else table[name]
        for name in table.column_names
        if name in declared
    }
    frame = pa.table(columns).to_pandas(types_mapper=PANDAS_TYPES.get)
    _complete(frame, reading, tools)
    read = table_of(read_again(frame, reading), "trials")
    for name in table.column_names:
        if name not in declared:
            read = read.append_column(name, table[name])
    return read


def _as_text(column: Any) -> Any:
    texts = [None if value is None else write_canonical(value) for value in column.to_pylist()]
    return pa.array(texts, pa.large_string())


def _complete(frame: pd.DataFrame, reading: ParseSettings, tools: ToolsLike) -> None:
    # Fills the columns that tell answers apart, and the tools, where they are not there.
    (protocol,) = reading.protocols or ("auto",)
    asked = protocol if isinstance(protocol, str) else protocol.id
    _fill(frame, "prompt_protocol", lambda: asked)
    _fill(frame, "arm", lambda: frame["prompt_protocol"])
    _fill(frame, "model", lambda: "unknown")
    _fill(frame, "run_id", lambda: None)
    _fill(frame, "trial", lambda: 0)
    _fill(frame, "case_id", lambda: [_case_id(texts) for texts in _questions(frame)])
    offered = tool_specs(tools)
    text = write_canonical([tool.to_dict() for tool in offered]) if offered else None
    _fill(frame, "tools_json", lambda: text)


def _fill(frame: pd.DataFrame, name: str, values: Any) -> None:
    if name not in frame:
        frame[name] = pd.Series(values(), index=frame.index, dtype=object)
    elif frame[name].isna().any() and (filled := values()) is not None:
        own = frame[name].astype(object)
        frame[name] = own.where(own.notna(), pd.Series(filled, index=frame.index, dtype=object))


def _questions(frame: pd.DataFrame) -> Any:
    names = [name for name in ("input", "raw") if name in frame]
    return zip(*(frame[name].astype(object) for name in names), strict=True)


def _case_id(texts: tuple[Any, ...]) -> str:
    text = next((text for text in texts if isinstance(text, str) and text), "")
    return f"input-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
