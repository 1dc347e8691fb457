"""Files of rows: JSONL, a JSON array, CSV and Parquet.

Every row comes with the place where it stands.
"""

# How it works. Every reader returns early, CSV and Parquet with their header read, and an iterator
# that reads on as rows are taken, so that JSONL, CSV and Parquet of any size have a few rows in
# memory. A row that cannot be read is yielded as the error that says why: the iterator goes on
# behind it, and the caller decides what bad rows mean. Only what leaves nothing to go on with is
# raised, since no row behind it would be what it seems: a quote that is never closed, a line that
# is too long, a file of UTF-16.

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
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
    `from_json`: the rows were read as JSON, so that they hold nothing else.
    """

    name: str
    rows: Iterator[tuple[int | None, Any]]
    unit: str = "line"
    table: bool = False
    columns: tuple[str, ...] | None = None
    from_json: bool = False

    def bad(
        self,
        message: str,
        line: int | None = None,
        column: str | None = None,
        *,
        got: object = None,
        expected: object = None,
        hint: str | None = None,
    ) -> BadCase:
        """Return the error that names this source, the line and the column.

        line: the row's number, None for an error of the whole source.
        got, expected, hint: as BadCase has them.
        """
        return BadCase(
            message,
            source=self.name,
            line=line,
            column=column,
            unit=self.unit,
            got=got,
            expected=expected,
            hint=hint,
        )


def first_repeated(names: Sequence[str]) -> str | None:
    """Return the first name that stands there twice, or None.

    >>> first_repeated(["id", "input", "id"])
    'id'
    """
    return next((name for i, name in enumerate(names) if name in names[:i]), None)


def read_rows(path: Path) -> RowSource:
    """Return the rows of a file, by its suffix.

    Only the beginning is read here: errors in later rows come while the rows are taken, as BadCase
    in place of the row, or raised where nothing behind it can be read either.

    Raises UnreadableInput for a file that cannot be opened or has no reader.
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
    return reader(path)


def read_jsonl(path: Path) -> RowSource:
    """Return the rows of a file with one JSON object a line. Blank lines drop out."""
    return RowSource(str(path), _jsonl_rows(path), from_json=True)


def _jsonl_rows(path: Path) -> Iterator[tuple[int | None, Any]]:
    for number, text in text_lines(path):
        if isinstance(text, BadCase):
            yield number, text
        elif text.strip():
            try:
                yield number, _read_json(text, path, number)
            except BadCase as e:
                # A row like any other: the lines behind it can still be read.
                yield number, e


def read_json(path: Path) -> RowSource:
    """Return the rows of a JSON file that holds one array of them.

    Unlike the other formats the file is read whole, when its first row is taken.
    """
    return RowSource(str(path), _json_rows(path), unit="row", from_json=True)


def _json_rows(path: Path) -> Iterator[tuple[int | None, Any]]:
    text = "".join(line for _, line in whole_lines(path, limit=None))
    if not text.strip():
        return

    rows = _read_json(text, path, None)
    if not isinstance(rows, list):
        raise BadCase(
            "a .json file is one array of rows",
            source=str(path),
            got=rows,
            expected="an array",
            hint="name a file of one object a line .jsonl",
        )
    yield from enumerate(rows, 1)


def read_csv(path: Path) -> RowSource:
    """Return the rows of comma-separated text (tabs in a .tsv) with a header.

    An empty cell is None. The names of the columns are known at once, the rows are read as they are
    taken.

    Raises BadCase for a header that cannot be one.
    """
    table = _CsvFile(path)
    header = table.next_record()
    if header is None:
        return RowSource(str(path), iter(()), table=True)
    names = table.column_names(*header)
    return RowSource(str(path), table.rows(names), table=True, columns=tuple(names))


class _CsvFile:
    def __init__(self, path: Path) -> None:
        self.source = str(path)
        delimiter = "\t" if _kind(path) == ".tsv" else ","
        lines = (text for _, text in whole_lines(path))
        self.reader = csv.reader(lines, delimiter=delimiter, strict=True)

    def next_record(self) -> tuple[int, list[str]] | None:
        # The line is the one that the record begins on, since a quoted cell may go over several.
        while True:
            line = self.reader.line_num + 1
            # The limit is the process's own, and too small for a cell that holds many tools.
            limit_before = csv.field_size_limit(MAX_LINE)
            try:
                cells = next(self.reader, None)
            except csv.Error as e:
                hint = "quotes inside a quoted cell are doubled"
                raise self._bad(f"this is no CSV: {e}", line, hint=hint) from None
            finally:
                csv.field_size_limit(limit_before)
            if cells is None:
                return None
            if cells:
                return line, cells

    def column_names(self, line: int, header: list[str]) -> list[str]:
        names = [name.strip() for name in header]
        if len(names) == 1:
            self._check_separator(line, names[0])
        if "" in names:
            raise self._bad("a column has no name", line, got=", ".join(map(repr, names)))

        twice = first_repeated(names)
        if twice:
            raise self._bad("two columns have the same name", line, column=twice)
        return names

    def _check_separator(self, line: int, name: str) -> None:
        # Such a file would otherwise be read as rows of one long column.
        for separator in ";\t|":
            if separator in name:
                raise self._bad(
                    f"the header is one cell with {separator!r} in it",
                    line,
                    got=name,
                    hint="separate cells by commas",
                )

    def rows(self, names: list[str]) -> Iterator[tuple[int | None, Any]]:
        while (record := self.next_record()) is not None:
            line, cells = record
            if len(cells) != len(names):
                yield line, self._wrong_length(line, cells, names)
                continue

            # CSV cannot tell an empty text from no value; no value is by far the more frequent.
            yield line, {name: cell or None for name, cell in zip(names, cells, strict=True)}

    def _wrong_length(self, line: int, cells: list[str], names: list[str]) -> BadCase:
        return self._bad(
            f"{len(cells)} cells instead of {len(names)}",
            line,
            got=", ".join(cells)[:120],
            expected=", ".join(names),
            hint="quote a cell that holds a comma or a line break",
        )

    def _bad(self, message: str, line: int | None, **more: Any) -> BadCase:
        return BadCase(message, source=self.source, line=line, **more)


def read_parquet(path: Path) -> RowSource:
    """Return the rows of a Parquet file, read a batch at a time.

    Raises MissingExtra without pyarrow, UnreadableInput for a file that is not a Parquet, BadCase
    for two columns of one name.
    """
    file = _parquet_file(path)
    columns = [name for name in file.schema_arrow.names if not _PANDAS_INDEX.fullmatch(name)]
    twice = first_repeated(columns)
    if twice:
        raise BadCase("two columns have the same name", source=str(path), column=twice)

    rows = _parquet_rows(file, path, columns)
    return RowSource(str(path), rows, unit="row", table=True, columns=tuple(columns))


def _parquet_file(path: Path) -> Any:
    # Imported here, since no other format needs it and it takes long to load.
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            "Parquet needs pyarrow", hint="pip install 'toolparse_lab[lab]'"
        ) from None

    try:
        return pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as e:
        raise UnreadableInput("this cannot be read as Parquet", got=f"{path}: {e}") from None


def _parquet_rows(file: Any, path: Path, columns: list[str]) -> Iterator[tuple[int | None, Any]]:
    import pyarrow  # loaded by now: the file was opened with it

    number = 0
    try:
        for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
            for row in batch.to_pylist():
                number += 1
                yield number, row
    except (pyarrow.ArrowException, OSError) as e:
        raise UnreadableInput(
            f"the file cannot be read behind row {number}", got=f"{path}: {e}"
        ) from None
    finally:
        file.close()


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
    """Yield `text_lines` of a file whose lines belong together.

    Raises BadCase for a line that is not text, since the lines around it mean nothing without it.
    """
    for number, text in text_lines(path, limit=limit):
        if isinstance(text, BadCase):
            raise text
        yield number, text


def text_lines(path: Path, *, limit: int | None = -1) -> Iterator[tuple[int, str | BadCase]]:
    """Yield (number, line with its end) of a UTF-8 file, without its byte order mark.

    A line that is not UTF-8 is the BadCase that says so. Lines are decoded one by one, so that a
    wrong byte is reported on its own line.

    limit: bytes a line may have, `MAX_LINE` by default, None for no limit.

    Raises BadCase for a longer one, and for a file of UTF-16, which has no lines to go on with.
    """
    most = MAX_LINE if limit == -1 else limit
    with _open(path) as file:
        number = 0
        while line := _line(file, path, most):
            number += 1
            if most is not None and len(line) > most:
                raise BadCase(
                    "this line is too long",
                    source=str(path),
                    line=number,
                    got=line[:80].decode("utf-8", "replace"),
                    expected=f"one row a line, at most {most:,} bytes",
                )
            yield number, _decoded(line, path, number)


def _decoded(line: bytes, path: Path, number: int) -> str | BadCase:
    is_first = number == 1
    try:
        return line.decode("utf-8-sig" if is_first else "utf-8")
    except UnicodeDecodeError as e:
        problem = str(e)

    is_utf16 = is_first and line.startswith(_UTF16_MARKS)
    bad = BadCase(
        "this is not UTF-8 text" + (", but UTF-16" if is_utf16 else ""),
        source=str(path),
        line=number,
        got=problem,
        hint="save the file as UTF-8",
    )
    # In UTF-16 a line break is two bytes, so that nothing behind this line is a line either.
    if is_utf16:
        raise bad
    return bad


def _kind(path: Path) -> str:
    # The suffix that says the contents, below that of packing: .jsonl for cases.jsonl.gz.
    suffix = path.suffix.lower()
    if suffix != _PACKED:
        return suffix

    inner = Path(path.stem).suffix.lower()
    # Parquet is packed inside already: a file.parquet.gz is none that pyarrow reads.
    if inner == ".parquet":
        return suffix
    return inner


def _line(file: IO[bytes], path: Path, most: int | None) -> bytes:
    # One byte more than allowed is enough to see that a line is too long.
    size = -1 if most is None else most + 1
    try:
        return file.readline(size)
    except (OSError, EOFError, zlib.error) as e:
        raise UnreadableInput("the file cannot be read to its end", got=f"{path}: {e}") from None


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
    """Return True for the name of a packed file."""
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
        if path.suffix.lower() == _PACKED:
            return cast(IO[bytes], io.BufferedReader(_Unpacked(path)))
        return path.open("rb")
    except OSError as e:
        raise UnreadableInput("the file cannot be opened", got=f"{path}: {e.strerror}") from None


def _read_json(text: str, path: Path, line: int | None) -> Value:
    try:
        return read_strict(text)
    except (ValueError, RecursionError) as e:
        raise BadCase(
            "this is not JSON", source=str(path), line=line, got=f"{text.strip()[:120]} ({e})"
        ) from None
