"""Files of rows: JSONL, a JSON array, CSV and Parquet.

Every row comes with its place.
"""

# How it works. Every reader returns early, CSV and Parquet with their header read, and an iterator
# that reads on as rows are taken, so that JSONL, CSV and Parquet of any size have a few rows in
# memory. A row that cannot be read is yielded as the error that says why: the iterator goes on
# after it, and the caller decides what bad rows mean. Only what leaves nothing to go on with is
# raised, since no row after it would be what it seems: a quote that is never closed, a line that
# is too long, a file of UTF-16.

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any, cast

from ...core.errors import BadCase, MissingExtra, UnreadableInput
from ...core.values import Value, read_strict

MAX_LINE = 16 * 1024 * 1024
"""Bytes a line may have, or a cell of CSV; a longer one is taken for a file of another kind."""

MAX_UNPACKED = 1024**3
"""Bytes that a packed file may have when it is unpacked: a small one can hold any number."""

_BATCH = 1024  # rows of Parquet that are Python objects at a time
_PACKED = ".gz"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
# The column in which pandas keeps an index that has no name.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows with their places: (number, row), numbers counted from 1 in `unit`s.

    An unreadable row is the BadCase that says why, so that the others can be. `table`: the rows
    come from columns, so that an empty cell, or a member of a struct without a value, stands for
    nothing at all. `columns` are their names, where they are known before the first row.
    `from_json`: the rows were read as JSON, so that they hold nothing else. `path`: their file.
    """

    name: str
    rows: Iterator[tuple[int | None, Any]]
    unit: str = "line"
    table: bool = False
    columns: tuple[str, ...] | None = None
    from_json: bool = False
    path: Path | None = None

    def bad(
        self, message: str, line: int | None = None, column: str | None = None, **more: Any
    ) -> BadCase:
        """Return the error that names this source, the row's number, None for an error of the whole
        source, and the column. more: `got`, `expected` and `hint` as BadCase has them.
        """
        place: dict[str, Any] = {"line": line, "column": column, "unit": self.unit}
        return BadCase(message, source=self.name, **place, **more)


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that comes twice, or None."""
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


def read_rows(path: Path) -> RowSource:
    """Return the rows of a file, by its suffix.

    Errors in later rows come while the rows are taken, as BadCase in place of the row, or raised
    where nothing after it can be read either. Raises UnreadableInput for a file that cannot be
    opened or has no reader.
    """
    if path.is_dir():
        raise UnreadableInput("this is a directory", got=str(path), expected="a file of rows")
    reader = READERS.get(_kind(path))
    if reader is None:
        expected = f"{', '.join(sorted(READERS))}; texts also with {_PACKED}"
        hint = "pass a list of rows, or a path that ends in one of these"
        raise UnreadableInput(
            "no reader for this kind of file", got=path.name, expected=expected, hint=hint
        )
    if not path.exists():
        raise UnreadableInput(
            "there is no such file",
            got=str(path),
            expected="a file of rows",
            hint=f"relative paths begin in {Path.cwd()}",
        )
    return replace(reader(path), path=path)


class JsonLines(Iterator[tuple[int | None, Any]]):
    """The rows of a file with one JSON object a line. Blank lines drop out.

    `texts` are its lines, for whoever has them read elsewhere, by `row_of`.
    """

    def __init__(self, path: Path) -> None:
        self._name = str(path)
        lines = text_lines(path)
        self.texts: Iterator[tuple[int, str | BadCase]] = (
            (number, text)
            for number, text in lines
            if isinstance(text, BadCase) or (text and not text.isspace())
        )

    def __next__(self) -> tuple[int | None, Any]:
        number, text = next(self.texts)
        return number, self.row_of(self._name, number, text)

    @staticmethod
    def row_of(name: str, number: int | None, text: str | BadCase) -> Any:
        """Return the row of a line, or the error that is in its place. name: of its file."""
        if isinstance(text, BadCase):
            return text
        try:
            return _read_json(text, name, number)
        except BadCase as e:
            return e  # a row like any other: the lines after it can still be read


def read_jsonl(path: Path) -> RowSource:
    """Return the rows of a file with one JSON object a line, as `JsonLines`."""
    return RowSource(str(path), JsonLines(path), from_json=True)


def read_json(path: Path, *, whole: bool = False) -> RowSource:
    """Return the rows of a JSON file that holds one array of them, read whole when its first row is
    taken. whole: an object is the one row of the file, and several, one a line, are its rows.
    """

    def rows() -> Iterator[tuple[int | None, Any]]:
        text = "".join(line for _, line in whole_lines(path, limit=None))
        if not text.strip():
            return
        # Benchmarks write a .json with one object a line.
        if whole and _is_jsonl(text):
            yield from read_jsonl(path).rows
            return
        members = _read_json(text, str(path), None)
        if whole and isinstance(members, dict):
            members = [members]
        if not isinstance(members, list):
            raise BadCase(
                "a .json file is one array of rows",
                source=str(path),
                got=members,
                expected="an array",
                hint="name a file of one object a line .jsonl",
            )
        yield from enumerate(members, 1)

    return RowSource(str(path), rows(), unit="row", from_json=True)


def _is_jsonl(text: str) -> bool:
    lines = text.lstrip("\ufeff").lstrip().split("\n", 1)
    if len(lines) < 2 or not lines[1].strip() or not lines[0].startswith("{"):
        return False
    try:
        return isinstance(read_strict(lines[0]), dict)
    except (ValueError, RecursionError):
        return False


def read_csv(path: Path) -> RowSource:
    """Return the rows of comma-separated text (tabs in a .tsv) with a header, read as they are
    taken.

    An empty cell is None. Raises BadCase for a header that cannot be one.
    """
    source = RowSource(str(path), iter(()), table=True)
    records = _csv_records(path, source)
    header, first = next(records, (0, None))
    if first is None:
        return source
    names = [name.strip() for name in first]
    if len(names) == 1:
        # Such a file would otherwise be read as rows of one long column.
        for separator in ";\t|":
            if separator in names[0]:
                message = f"the header is one cell with {separator!r} in it"
                raise source.bad(message, header, got=names[0], hint="separate cells by commas")
    if "" in names:
        raise source.bad("a column has no name", header, got=", ".join(map(repr, names)))
    if twice := first_repeated(names):
        raise source.bad("two columns have the same name", header, twice)

    def rows() -> Iterator[tuple[int | None, Any]]:
        for line, cells in records:
            # CSV cannot tell an empty text from no value; no value is by far the more frequent.
            if len(cells) == len(names):
                yield line, {name: cell or None for name, cell in zip(names, cells, strict=True)}
                continue
            yield (
                line,
                source.bad(
                    f"{len(cells)} cells instead of {len(names)}",
                    line,
                    got=", ".join(cells)[:120],
                    expected=", ".join(names),
                    hint="quote a cell that holds a comma or a line break",
                ),
            )

    return replace(source, rows=rows(), columns=tuple(names))


def _csv_records(path: Path, source: RowSource) -> Iterator[tuple[int, list[str]]]:
    # The limit is the process's own, and too small for a cell that holds many tools. It stays
    # raised: another thread may be reading.
    csv.field_size_limit(max(MAX_LINE, csv.field_size_limit()))
    # The line is the one that the record begins on, since a quoted cell may go over several.
    lines = (text for _, text in whole_lines(path))
    reader = csv.reader(lines, delimiter="\t" if _kind(path) == ".tsv" else ",", strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as e:
            hint = "quotes inside a quoted cell are doubled"
            raise source.bad(f"this is no CSV: {e}", line, hint=hint) from None
        if cells is None:
            return
        if cells:
            yield line, cells


def read_parquet(path: Path) -> RowSource:
    """Return the rows of a Parquet file, read a batch at a time.

    Raises MissingExtra without pyarrow, UnreadableInput for a file that is not a Parquet, BadCase
    for two columns of one name.
    """
    # Imported here, since no other format needs it and it takes long to load.
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            "Parquet needs pyarrow", hint="in a checkout: pip install '.[lab]'"
        ) from None
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as e:
        raise UnreadableInput("this cannot be read as Parquet", got=f"{path}: {e}") from None

    columns = [name for name in file.schema_arrow.names if not _PANDAS_INDEX.fullmatch(name)]
    if twice := first_repeated(columns):
        raise BadCase("two columns have the same name", source=str(path), column=twice)

    def rows() -> Iterator[tuple[int | None, Any]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (pyarrow.ArrowException, OSError) as e:
            message = f"the file cannot be read after row {number}"
            raise UnreadableInput(message, got=f"{path}: {e}") from None
        finally:
            file.close()

    return RowSource(str(path), rows(), unit="row", table=True, columns=tuple(columns))


READERS: dict[str, Callable[[Path], RowSource]] = {
    ".jsonl": read_jsonl,
    ".ndjson": read_jsonl,
    ".json": read_json,
    ".csv": read_csv,
    ".tsv": read_csv,
    ".parquet": read_parquet,
}
"""File suffix -> reader; a new format is one more entry."""


def whole_lines(path: Path, *, limit: int | None = -1) -> Iterator[tuple[int, str]]:
    """Yield `text_lines` of a file whose lines mean nothing without each other: raises BadCase for
    one that is not text.
    """
    for number, text in text_lines(path, limit=limit):
        if isinstance(text, BadCase):
            raise text
        yield number, text


def text_lines(path: Path, *, limit: int | None = -1) -> Iterator[tuple[int, str | BadCase]]:
    """Yield (number, line with its end) of a UTF-8 file, without its byte order mark. A line that
    is not UTF-8 is the BadCase that says so.

    limit: bytes a line may have, `MAX_LINE` by default, None for no limit. Raises BadCase for a
    longer one, and for a file of UTF-16, which has no lines to go on with.
    """
    most = MAX_LINE if limit == -1 else limit
    number = 0
    with _open(path) as file:
        while True:
            # One byte more than allowed is enough to see that a line is too long.
            try:
                line = file.readline(-1 if most is None else most + 1)
            except (OSError, EOFError, zlib.error) as e:
                message = "the file cannot be read to its end"
                raise UnreadableInput(message, got=f"{path}: {e}") from None
            if not line:
                return
            number += 1
            if most is not None and len(line) > most:
                raise BadCase(
                    "this line is too long",
                    source=str(path),
                    line=number,
                    got=line[:80].decode("utf-8", "replace"),
                    expected=f"one row a line, at most {most:,} bytes",
                )
            text: str | BadCase
            try:
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as e:
                is_utf16 = number == 1 and line.startswith(_UTF16_MARKS)
                text = BadCase(
                    "this is not UTF-8 text" + (", but UTF-16" if is_utf16 else ""),
                    source=str(path),
                    line=number,
                    got=str(e),
                    hint="save the file as UTF-8",
                )
                # In UTF-16 a line break is two bytes, so that nothing after this line is a line.
                if is_utf16:
                    raise text from None
            yield number, text


def _kind(path: Path) -> str:
    # The suffix that says the contents, below that of packing: .jsonl for cases.jsonl.gz.
    suffix = path.suffix.lower()
    if suffix != _PACKED:
        return suffix

    # Parquet is packed inside already: a file.parquet.gz is none that pyarrow reads.
    inner = Path(path.stem).suffix.lower()
    return suffix if inner == ".parquet" else inner


class _Unpacked(io.RawIOBase):
    # The bytes of a packed file, up to `MAX_UNPACKED`.
    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = gzip.GzipFile(path)
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        self._size += len(data)
        if self._size > MAX_UNPACKED:
            raise UnreadableInput(
                "this packed file is too large when it is unpacked",
                got=f"{self._path}: more than {MAX_UNPACKED:,} bytes",
                hint="unpack it yourself if it is what you expect: gunzip FILE",
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def is_packed(path: str | Path) -> bool:
    return Path(path).suffix.lower() == _PACKED


def has_more_lines(path: Path, most: int) -> bool:
    """Return True if a file has more lines than `most`, without reading on."""
    with _open(path) as file:
        lines = 0
        while block := file.read(1 << 20):
            lines += block.count(b"\n")
            if lines > most:
                return True
    return False


def _open(path: Path) -> IO[bytes]:
    try:
        if is_packed(path):
            return cast(IO[bytes], io.BufferedReader(_Unpacked(path)))
        return path.open("rb")
    except OSError as e:
        raise UnreadableInput("the file cannot be opened", got=f"{path}: {e.strerror}") from None


def _read_json(text: str, name: str, line: int | None) -> Value:
    try:
        return read_strict(text)
    except (ValueError, RecursionError) as e:
        raise BadCase(
            "this is not JSON", source=name, line=line, got=f"{text.strip()[:120]} ({e})"
        ) from None
