"""Frames on disk: Parquet or CSV by the file's name, whole or in batches.

Anything written is there under its name when it is whole, and never before: it is written next to
it under a name of its own, and renamed at the end. pyarrow.parquet is imported by its users, since
frames alone do without; pyarrow itself is there with pandas.
"""

from __future__ import annotations

import contextlib
import glob
import os
import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from ...core.errors import BadOptions, MissingExtra, StoreError, UnreadableInput
from ...core.remote import is_remote, local_path, opened, remote_files, written
from .columns import columns_of
from .dtypes import EXTRA, build_frame, conform, join_frames, missing, typed


@contextlib.contextmanager
def _writing(path: str | Path) -> Iterator[None]:
    try:
        yield
    except OSError as e:
        raise StoreError("the frame cannot be written", got=f"{path}: {e.strerror or e}") from None


def write_frame(frame: pd.DataFrame, path: str | Path) -> str | Path:
    """Write a frame as Parquet, CSV or JSON lines, by the path's suffix, and return the path. It
    may be the address of a place that fsspec reaches.

    Raises BadOptions for another suffix, and StoreError.
    """
    file = Path(path)
    if file.suffix not in (".parquet", ".csv", ".jsonl"):
        raise BadOptions(
            "a frame is written as Parquet or CSV",
            got=file.name,
            expected=".parquet, .csv or .jsonl",
        )
    with _writing(path), written(path) as own:
        if file.suffix == ".jsonl":
            frame.to_json(own, orient="records", lines=True, date_format="iso")
        else:
            (frame.to_parquet if file.suffix == ".parquet" else frame.to_csv)(own, index=False)
    return path if is_remote(path) else file


def read_frame(path: str | Path, kind: str) -> pd.DataFrame:
    """Return the frame that `write_frame` or `FrameWriter` wrote, with its dtypes.

    kind: see `columns.columns_of`. Raises UnreadableInput for a file that is not there, is empty or
    is no frame.
    """
    file = path if is_remote(path) else Path(path)
    try:
        if Path(file).suffix != ".csv":
            parts = []
            for part in parquet_files(file):
                with _parquet(part) as opened_part:
                    parts.append(opened_part.read().to_pandas())
            return join_frames(parts, kind)
        file = local_path(file)
        # All as text: pandas would guess a dtype from the first rows, and read "NA" as missing.
        frame = pd.read_csv(file, dtype="string", keep_default_na=False, na_values=[""])
    except pd.errors.EmptyDataError:
        raise _empty(file) from None
    except (OSError, ValueError) as e:
        raise UnreadableInput("the frame cannot be read", got=f"{path}: {e}") from None
    if {"raw", "status"} <= set(frame):
        # CSV cannot tell an empty text from none, but an answer that came has one.
        is_answer = frame["status"].eq("ok").fillna(False)
        frame.loc[frame["raw"].isna() & is_answer, "raw"] = ""
    try:
        return conform(frame, kind)
    except ValueError as e:
        raise UnreadableInput("the frame cannot be read", got=f"{path}: {e}") from None


def _empty(file: str | Path) -> UnreadableInput:
    # A file of no bytes, which pyarrow and pandas each call something else.
    return UnreadableInput("the file is empty", got=str(file), expected="a frame as Parquet or CSV")


def parquet_files(path: str | Path) -> list[str]:
    """Return the file of a path, or the Parquet files inside the folder, by name. Raises
    UnreadableInput if there are none.
    """
    place = Path(path)
    if is_remote(path):
        files = remote_files(str(path), ".parquet")
    elif place.is_file():
        return [str(place)]
    elif place.is_dir():
        files = [str(file) for file in sorted(place.rglob("*.parquet"))]
    else:
        raise UnreadableInput("there is no such file or folder", got=str(path), expected="Parquet")

    # Names that begin so are what writers have not finished, or their notes.
    files = [file for file in files if not Path(file).name.startswith((".", "_"))]
    if not files:
        raise UnreadableInput(
            "there is no Parquet file in this folder", got=str(path), expected="*.parquet"
        )
    return files


def parquet_files_of(source: Any, also: str = "") -> list[str]:
    """Return the Parquet files that a path, a pattern or a list of them stands for.

    also: what else the caller takes, for the complaint. Raises UnreadableInput if there are none,
    and for anything else.
    """
    # A mapping would be taken for a list of its keys.
    is_path = isinstance(source, (str, os.PathLike))
    is_list = isinstance(source, Iterable) and not isinstance(source, Mapping)
    files: list[str] = []
    for path in [source] if is_path or not is_list else source:
        if not isinstance(path, (str, os.PathLike)):
            raise UnreadableInput(
                "this holds no recorded answers",
                got=f"{type(path).__name__} {path!r}",
                expected=f"{also}a trials frame, a Parquet file, a folder of them, a pattern, or a "
                "list of paths",
            )
        name = os.fspath(path)
        if Path(name).suffix == ".csv":
            raise UnreadableInput(
                "CSV is read one file at a time",
                got=name,
                expected="Parquet in a list",
                hint="read_frame(path, 'trials') makes a frame of it, and pandas.concat one of "
                "several",
            )
        names = [name]
        if glob.has_magic(name) and not is_remote(name) and not Path(name).exists():
            names = sorted(glob.glob(name, recursive=True))
            if not names:
                raise UnreadableInput("no file fits this pattern", got=name, expected="Parquet")
        files += [file for match in names for file in parquet_files(match)]
    # An empty list is more often a pattern that found nothing than a request for no rows.
    if not files:
        raise UnreadableInput("there is no file to read", got="an empty list", expected="Parquet")
    return files


def column_names(file: str | Path) -> list[str]:
    """Return the columns of one file of Parquet or CSV, by its suffix. Raises UnreadableInput."""
    if Path(file).suffix == ".csv":
        return [str(name) for name in pd.read_csv(file, nrows=0).columns]
    with _parquet(file) as opened_file:
        names: list[str] = opened_file.schema_arrow.names
        return names


def row_count(files: Iterable[str | Path]) -> int:
    """Return the number of rows of Parquet files. Raises UnreadableInput."""
    count = 0
    for file in files:
        with _parquet(file) as opened_file:
            count += opened_file.metadata.num_rows
    return count


def read_batches(
    files: Iterable[str | Path], size: int, columns: Sequence[str] | None = None
) -> Iterator[pd.DataFrame]:
    """Yield the rows of Parquet files in frames of at most `size` rows, whose index counts over all
    files. columns: only these, as far as they are there. Raises UnreadableInput.
    """
    start = 0
    for file in files:
        with _parquet(file) as opened_file:
            # Columns that one file has not, another may have.
            present = columns
            if columns is not None:
                present = [name for name in columns if name in opened_file.schema_arrow.names]

            for batch in opened_file.iter_batches(batch_size=size, columns=present):
                frame = batch.to_pandas()
                frame.index = pd.RangeIndex(start, start + len(frame))
                start += len(frame)
                yield frame


@contextlib.contextmanager
def _readable(path: str | Path) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as e:
        file = Path(path)
        if not is_remote(path) and file.is_file() and file.stat().st_size == 0:
            raise _empty(path) from None

        raise UnreadableInput(
            "this cannot be read as Parquet",
            got=f"{path}: {e}",
            hint="a damaged file must be written again",
        ) from None


def something_is_there(path: object) -> BadOptions:
    """Return the error of a file that would be overwritten."""
    return BadOptions(
        "there is something already",
        got=str(path),
        hint="choose another path, or say overwrite=True",
    )


class FrameWriter:
    """Frames of one kind one after the other into one Parquet file. If an error ends the writing,
    that one is raised, and nothing remains.

    Raises BadOptions for a path that is there already (unless `overwrite`) or has another suffix,
    StoreError where it cannot be written.
    """

    def __init__(self, path: str | Path, kind: str, *, overwrite: bool = False) -> None:
        """Check the path; nothing is written before the writer is entered."""
        self.path = Path(path)
        self.kind = kind
        if self.path.suffix != ".parquet":
            raise BadOptions(
                "frames are written as Parquet", got=self.path.name, expected="a name.parquet"
            )
        if self.path.exists() and not overwrite:
            raise something_is_there(self.path)
        self._partial = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}.partial")
        self._writer: Any = None

    def __enter__(self) -> FrameWriter:
        """Make the necessary folders, and clear the files that killed runs left."""
        with _writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            old = f".{glob.escape(self.path.name)}.????????.partial"
            for partial in self.path.parent.glob(old):
                partial.unlink(missing_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, tb: TracebackType | None
    ) -> None:
        """Put the file under its name, or remove it where an error ended the writing."""
        if e is not None:
            # An error on the way is a note to the one that ended it all.
            try:
                if self._writer is not None:
                    self._writer.close()
                self._partial.unlink(missing_ok=True)
            except OSError as problem:
                e.add_note(f"what was written so far could not be removed: {problem}")
            return
        with _writing(self.path):
            if self._writer is None:  # no rows are a frame too
                self.write(build_frame(self.kind, {}, 0))
            self._writer.close()
            # The old file goes as late as can be: until here every error leaves it as it was.
            self._partial.replace(self.path)

    def write(self, frame: pd.DataFrame) -> None:
        """Write the next rows, with the same columns. Raises StoreError."""
        import pyarrow.parquet as pq

        # The types of the file are those of the first frame.
        table = table_of(frame, self.kind, self._writer.schema if self._writer else None)
        with _writing(self.path):
            if self._writer is None:
                self._writer = pq.ParquetWriter(self._partial, table.schema)
            self._writer.write_table(table)


def table_of(frame: pd.DataFrame, kind: str, schema: Any = None) -> Any:
    """Return a frame of a kind as an Arrow table, whose types do not depend on the contents.

    schema: of the rows before it, for columns of your own. Raises StoreError if it does not fit.
    """
    if schema is not None:
        try:
            return pa.Table.from_pandas(
                frame[schema.names], schema=schema.remove_metadata(), preserve_index=False
            )
        except (pa.ArrowException, KeyError) as e:
            raise StoreError(
                "these rows have other columns than those before them",
                got=str(e),
                expected=", ".join(schema.names),
            ) from None

    text = pa.large_string()
    types = {
        "string": text,
        "Int64": pa.int64(),
        "Float64": pa.float64(),
        "boolean": pa.bool_(),
        "category": pa.dictionary(pa.int32(), text),
    }
    declared = {column.name: types[column.dtype] for column in columns_of(kind)}
    fields = []
    for name in map(str, frame.columns):
        type_ = text if name.startswith(EXTRA) else declared.get(name)
        if type_ is None:
            type_ = pa.Schema.from_pandas(frame[[name]]).field(name).type
        fields.append(pa.field(name, type_))
    return pa.Table.from_pandas(frame, schema=pa.schema(fields), preserve_index=False)


FrameEngine: TypeAlias = Literal["pandas", "arrow", "polars"]
FRAME_ENGINES: tuple[FrameEngine, ...] = get_args(FrameEngine)


def convert_frame(frame: pd.DataFrame, kind: str, engine: FrameEngine) -> Any:
    """Return a frame of a kind as another library has it, with texts as dictionaries.

    Raises MissingExtra where the library is not installed.
    """
    if engine == "pandas":
        return frame
    table = table_of(frame, kind)
    columns = {name: _coded(table[name].combine_chunks()) for name in table.column_names}
    return _of_library(columns, engine)


def unpacked_table(
    sources: Sequence[bytes | str | Path],
    kind: str,
    engine: FrameEngine,
    others: Mapping[str, Sequence[str | None]],
) -> Any:
    """Return what `convert_frame` does of `packed` frames, one after the other, without a pandas
    frame on the way. others: texts of columns that the packed frames have not.
    """
    there = dict.fromkeys(name for source in sources for name in _names_in(source))
    columns: dict[str, Any] = dict.fromkeys([*(column.name for column in columns_of(kind)), *there])
    # The long texts apart from the rest, and then column by column, as in `unpacked`.
    long = [name for name in there if name in _LONG]
    for names in (long, [name for name in there if name not in _LONG]):
        parts = _parts_of(sources, names, None, coded=True, told_apart=())
        for name in names:
            columns[name] = _coded(_joined(parts.pop(name)).combine_chunks())
    length = len(columns["trial_id"])
    for name in columns.keys() - there:
        own = others.get(name)
        texts = pa.nulls(length, pa.large_string()) if own is None else own
        columns[name] = _coded(pa.array(texts, pa.large_string()))
    return _of_library(columns, engine)


def _names_in(source: bytes | str | Path) -> list[str]:
    with _parquet(source) as file:
        return [name for name in file.schema_arrow.names if not name.startswith("#")]


def _coded(column: Any) -> Any:
    is_coded = pa.types.is_dictionary(column.type)
    if is_coded or pa.types.is_large_string(column.type) or pa.types.is_string(column.type):
        # Every text column, whatever it holds, so that the types of all frames are the same.
        return column.dictionary_encode().cast(pa.dictionary(pa.int32(), pa.large_string()))
    return column


def _of_library(columns: Mapping[str, Any], engine: FrameEngine) -> Any:
    length = max(map(len, columns.values()), default=0)
    nothing = pa.py_buffer(bytes(8 * (length + 1)))
    table = pa.table({name: _sharing(column, nothing) for name, column in columns.items()})
    if engine == "arrow":
        return table
    try:
        import polars
    except ImportError as e:
        raise MissingExtra(
            "the engine 'polars' needs Polars",
            got=str(e),
            hint="in a checkout: pip install '.[polars]'",
        ) from None
    return polars.from_arrow(table)


def _sharing(column: Any, nothing: Any) -> Any:
    # The column, where it has no value or the same one in each row, over a buffer of zeros that all
    # such columns have.
    length, type_ = len(column), column.type
    if not pa.types.is_dictionary(type_):
        is_missing = column.null_count == length
        return pa.Array.from_buffers(type_, length, [nothing, nothing]) if is_missing else column
    if column.null_count not in (0, length) or len(column.dictionary) > 1:
        return column
    known = nothing if column.null_count else None
    codes = pa.Array.from_buffers(type_.index_type, length, [known, nothing])
    return pa.DictionaryArray.from_arrays(codes, column.dictionary)


def packed(frame: pd.DataFrame, kind: str) -> bytes:
    """Return a frame as the bytes of a Parquet file for `unpacked`."""
    import pyarrow.parquet as pq

    table = table_of(frame, kind)
    for name in _TOLD_APART:
        if name in table.column_names:
            numbers = _numbers_of(table[name].dictionary_encode(), name)
            table = table.append_column(_NUMBER.format(name), numbers)
    out = pa.BufferOutputStream()
    pq.write_table(table, out, compression="zstd")
    return bytes(out.getvalue())


PANDAS_TYPES: dict[Any, Any] = {
    pa.string(): pd.StringDtype(),
    pa.large_string(): pd.StringDtype(),
    pa.int64(): pd.Int64Dtype(),
    pa.float64(): pd.Float64Dtype(),
    pa.bool_(): pd.BooleanDtype(),
}
"""Arrow's type of a column -> the dtype that frames have for it."""
# Texts of which many rows have the same, or of which rows are chosen. An id is each row's own.
_CODED = frozenset(
    column.name
    for column in columns_of("trials")
    if column.dtype == "string" and column.name != "trial_id"
)
# Nearly every row's own as well, and long. Reports only ask whether two are the same.
_TOLD_APART = ("raw", "input", "target")
_LONG = (*_TOLD_APART, "completion_key")
_FEW_ROWS = 10_000
_NUMBER = "#{}"  # the column of a packed frame that has the numbers in the place of such texts


def unpacked(
    sources: Iterable[bytes | str | Path],
    kind: str,
    columns: Sequence[str] | None = None,
    ids: Collection[str] | None = None,
    coded: bool = False,
    as_texts: Collection[str] = (),
) -> pd.DataFrame:
    """Return the rows of Parquet files or of `packed` frames, one after the other, as one frame.

    sources: at least one. columns: only these, as far as they are there; the others are not even
    decompressed. ids: the rows of these trials alone. coded: texts are categories, in the order in
    which they come, and in the place of answers, questions and targets are numbers that tell them
    apart, but for the columns `as_texts`; that takes a part of the memory, and of the time of
    whatever chooses rows. Raises UnreadableInput for anything else than Parquet.
    """
    told_apart = set(_TOLD_APART).difference(as_texts) if coded else ()
    parts = _parts_of(sources, columns, ids, coded, told_apart)
    declared = {column.name: column.dtype for column in columns_of(kind)}
    dtypes = {n: declared.get(n, "string" if n.startswith(EXTRA) else "") for n in parts}
    kept = {n for n in parts if not dtypes[n] or (coded and n in _CODED)}  # as they come
    absent = {
        n for n in parts if n not in kept and all(isinstance(part, _Nulls) for part in parts[n])
    }
    length = sum(map(len, next(iter(parts.values()), ())))

    # Of many rows column by column: all of them at once take several times the memory of the frame.
    there = [name for name in parts if name not in absent]
    groups = [there] if length < _FEW_ROWS else [[name] for name in there]
    arrays: dict[str, Any] = {}
    for group in groups:
        table = pa.table({name: _joined(parts.pop(name)) for name in group})
        frame = table.to_pandas(types_mapper=PANDAS_TYPES.get)
        arrays |= {name: frame[name].array for name in group}
    if columns is None:
        return build_frame(kind, arrays, length, {name: dtypes[name] for name in absent})
    out = {
        name: missing(dtypes[name], length)
        if name in absent
        else arrays[name]
        if name in kept
        else typed(arrays[name], dtypes[name])
        for name in columns
        if name in dtypes
    }
    return pd.DataFrame(out, index=pd.RangeIndex(length), copy=False)


def _parts_of(
    sources: Iterable[bytes | str | Path],
    columns: Sequence[str] | None,
    ids: Collection[str] | None,
    coded: bool,
    told_apart: Collection[str],
) -> dict[str, list[Any]]:
    # Of each column, what each source holds of it. See `unpacked`.
    parts: dict[str, list[Any]] = {}
    lengths: list[int] = []
    for source in sources:
        with _parquet(source, coded) as file:
            there = set(file.schema_arrow.names)
            numbers = {
                name: number for name in told_apart if (number := _NUMBER.format(name)) in there
            }
            names = [name for name in file.schema_arrow.names if not name.startswith("#")]
            wanted = names if columns is None else [name for name in columns if name in there]
            loaded = [numbers.get(name, name) for name in wanted]
            table = file.read(columns=loaded) if ids is None else _rows_of(file, loaded, ids)
        length = table.num_rows
        for name, own in zip(wanted, loaded, strict=True):
            if name not in parts:  # missing in the rows of the files before this one
                parts[name] = [_Nulls(length) for length in lengths]
            column = table[own]
            if name in told_apart and own == name:
                column = _numbers_of(column, name)
            is_missing = column.null_count == length
            parts[name].append(_Nulls(length, column.type) if is_missing else column)
        lengths.append(length)
        for name in parts.keys() - set(wanted):
            parts[name].append(_Nulls(length))
    return parts


@dataclass(frozen=True, slots=True)
class _Nulls:
    # A part of a column without a single value: most columns of a run have none at all.
    length: int
    type: Any = None

    def __len__(self) -> int:
        return self.length


def _joined(parts: Sequence[Any]) -> Any:
    # One column of its parts.
    types = {part.type for part in parts} - {None}
    if len(types) == 1:
        (type_,) = types
        chunks: list[Any] = []
        for part in parts:
            is_missing = isinstance(part, _Nulls)
            chunks += [pa.nulls(part.length, type_)] if is_missing else part.chunks
        return pa.chunked_array(chunks, type_).unify_dictionaries()
    wholes = [
        pa.nulls(part.length, part.type or pa.null()) if isinstance(part, _Nulls) else part
        for part in parts
    ]
    tables = [pa.table({"": whole}) for whole in wholes]
    return pa.concat_tables(tables, promote_options="permissive").unify_dictionaries()[0]


@contextlib.contextmanager
def _parquet(source: bytes | str | Path, coded: bool = False) -> Iterator[Any]:
    import pyarrow.parquet as pq

    place: Any = contextlib.nullcontext(source)
    if isinstance(source, bytes):
        place = contextlib.nullcontext(pa.BufferReader(source))
    elif is_remote(source):
        place = opened(str(source))
    with _readable("what was kept" if isinstance(source, bytes) else source), place as at:
        texts = _CODED.intersection(pq.read_schema(at).names) if coded else None
        with pq.ParquetFile(at, read_dictionary=texts) as file:
            yield file


def _rows_of(file: Any, columns: Sequence[str], ids: Collection[str]) -> Any:
    # The rows of these trials. Most files hold none, and no more of them is read.
    own = file.read(columns=["trial_id"])["trial_id"].cast(pa.large_string())
    is_chosen = pc.is_in(own, pa.array(list(ids), pa.large_string()))
    if not pc.any(is_chosen).as_py():
        return file.schema_arrow.empty_table().select(columns)
    return file.read(columns=columns).filter(is_chosen)


def _numbers_of(column: Any, name: str) -> Any:
    # The same number for the same text. That two different ones of a million texts get the same has
    # a chance of 1 in 30,000,000.
    numbers = []
    for chunk in column.chunks:
        texts = chunk.dictionary.to_pandas().to_numpy(object)
        hashes = pd.util.hash_array(texts, categorize=False).view("int64")
        codes = chunk.indices.fill_null(0).to_numpy(zero_copy_only=False)
        is_missing = chunk.is_null().to_numpy(zero_copy_only=False)
        if name == "input":  # an empty question is none
            is_missing = is_missing | (texts == "")[codes] if len(texts) else is_missing
        values = hashes[codes] if len(texts) else np.zeros(len(codes), "int64")
        numbers.append(pa.array(values, mask=is_missing))
    return pa.chunked_array(numbers, pa.int64())
