"""Files of rows: JSONL, a JSON array, CSV and Parquet. Every row comes with the place where it stands."""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from ...errors import BadCase, MissingExtra, UnreadableInput
from ...values import Value, read_strict

MAX_LINE = 16 * 1024 * 1024
"""Bytes a line may have, or a cell of CSV; a longer one is taken for a file of another kind."""

_BATCH = 1024
_PACKED = ".gz"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")


@dataclass(frozen=True, slots=True)
class RowSource:
    """Rows with their places: (number, row), numbers counted from 1 in `unit`s.

    A row that cannot be read is the BadCase that says why, so that the others can be.
    `table`: the rows come from columns, so that an empty cell, or a member of a struct without a value, stands for
    nothing at all. `columns` are their names, where they are known before the first row. `from_json`: the rows were
    read as JSON, so that they hold nothing else.
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
        """The error that names this source, the line and the column."""
        return BadCase(
            message, source=self.name, line=line, column=column, unit=self.unit, got=got, expected=expected, hint=hint
        )


def read_rows(path: Path) -> RowSource:
    """The rows of a file, by its suffix; raises UnreadableInput for a file that cannot be opened or has no reader.

    Raises BadCase, naming the line, while the rows are taken, where nothing behind it can be read either.
    """
    if path.is_dir():
        raise UnreadableInput("this is a directory", got=str(path), expected="a file of rows")
    reader = READERS.get(_kind(path))
    if reader is None:
        expected = f"{', '.join(sorted(READERS))}; texts also with {_PACKED}"
        raise UnreadableInput("no reader for this kind of file", got=path.name, expected=expected)
    if not path.exists():
        raise UnreadableInput("there is no such file", got=str(path))
    return reader(path)


def read_jsonl(path: Path) -> RowSource:
    """One JSON object a line; blank lines are left out."""

    def rows() -> Iterator[tuple[int | None, Any]]:
        for number, text in text_lines(path):
            if isinstance(text, BadCase):
                yield number, text
            elif text.strip():
                try:
                    yield number, _read_json(text, path, number)
                except BadCase as e:
                    yield number, e

    return RowSource(str(path), rows(), from_json=True)


def read_json(path: Path) -> RowSource:
    """A JSON file that holds one array of rows."""

    def rows() -> Iterator[tuple[int | None, Any]]:
        text = "".join(line for _, line in whole_lines(path, limit=None))
        found = _read_json(text, path, None) if text.strip() else []
        if not isinstance(found, list):
            raise BadCase(
                "a .json file is one array of rows", source=str(path), got=found, expected="an array",
                hint="name a file of one object a line .jsonl",
            )  # fmt: skip
        yield from enumerate(found, 1)

    return RowSource(str(path), rows(), unit="row", from_json=True)


def read_csv(path: Path) -> RowSource:
    """Comma-separated text (tabs in a .tsv) with a header; an empty cell is None."""
    source = str(path)
    reader = csv.reader(
        (text for _, text in whole_lines(path)), delimiter="\t" if _kind(path) == ".tsv" else ",", strict=True
    )

    def bad(message: str, line: int | None, **more: Any) -> BadCase:
        return BadCase(message, source=source, line=line, **more)

    def take() -> tuple[int, list[str]] | None:
        while True:
            line = reader.line_num + 1
            # The limit is the process's own, and too small for a cell that holds many tools.
            before = csv.field_size_limit(MAX_LINE)
            try:
                cells = next(reader, None)
            except csv.Error as e:
                raise bad(f"this is no CSV: {e}", line, hint="quotes inside a quoted cell are doubled") from None
            finally:
                csv.field_size_limit(before)
            if cells is None:
                return None
            if cells:
                return line, cells

    first = take()
    if first is None:
        return RowSource(source, iter(()), table=True)
    line, header = first
    names = [name.strip() for name in header]
    if len(names) == 1 and (other := next((d for d in ";\t|" if d in names[0]), None)):
        raise bad(f"the header is one cell with {other!r} in it", line, got=names[0], hint="separate cells by commas")
    if "" in names:
        raise bad("a column has no name", line, got=", ".join(map(repr, names)))
    if twice := next((n for i, n in enumerate(names) if n in names[:i]), None):
        raise bad("two columns have the same name", line, column=twice)

    def rows() -> Iterator[tuple[int | None, Any]]:
        while (found := take()) is not None:
            line, cells = found
            if len(cells) == len(names):
                yield line, {name: cell or None for name, cell in zip(names, cells, strict=True)}
                continue
            yield line, bad(
                f"{len(cells)} cells instead of {len(names)}", line, got=", ".join(cells)[:120],
                expected=", ".join(names), hint="quote a cell that holds a comma or a line break",
            )  # fmt: skip

    return RowSource(source, rows(), table=True, columns=tuple(names))


def read_parquet(path: Path) -> RowSource:
    """The rows of a Parquet file, a batch at a time."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra("Parquet needs pyarrow", hint="pip install 'toolparse_lab[lab]'") from None
    source = str(path)
    try:
        file = pyarrow.parquet.ParquetFile(path)
    except (pyarrow.ArrowException, OSError) as e:
        raise UnreadableInput("this cannot be read as Parquet", got=f"{path}: {e}") from None
    columns = [name for name in file.schema_arrow.names if not _PANDAS_INDEX.fullmatch(name)]
    if twice := next((n for i, n in enumerate(columns) if n in columns[:i]), None):
        raise BadCase("two columns have the same name", source=source, column=twice)

    def rows() -> Iterator[tuple[int | None, Any]]:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=_BATCH, columns=columns):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except (pyarrow.ArrowException, OSError) as e:
            raise UnreadableInput(f"the file cannot be read behind row {number}", got=f"{path}: {e}") from None
        finally:
            file.close()

    return RowSource(source, rows(), unit="row", table=True, columns=tuple(columns))


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
    """`text_lines` of a file whose lines belong together; raises BadCase for one that is no text."""
    for number, text in text_lines(path, limit=limit):
        if isinstance(text, BadCase):
            raise text
        yield number, text


def text_lines(path: Path, *, limit: int | None = -1) -> Iterator[tuple[int, str | BadCase]]:
    """(number, line with its end) of a UTF-8 file, without its byte order mark; the error for a line that is no text.

    Decoded line by line, so that a wrong byte is found on its own line. limit: bytes a line may have, `MAX_LINE` by
    default, None for no limit. Raises BadCase for a longer one.
    """
    most = MAX_LINE if limit == -1 else limit
    with _open(path) as file:
        number = 0
        while data := _line(file, path, most):
            number += 1
            if most is not None and len(data) > most:
                raise BadCase(
                    "this line is too long", source=str(path), line=number, got=data[:80].decode("utf-8", "replace"),
                    expected=f"one row a line, at most {most:,} bytes",
                )  # fmt: skip
            try:
                text: str | BadCase = data.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as e:
                wide = number == 1 and data[:2] in (b"\xff\xfe", b"\xfe\xff")
                text = BadCase(
                    "this is not UTF-8 text" + (", but UTF-16" if wide else ""), source=str(path), line=number,
                    got=str(e), hint="save the file as UTF-8",
                )  # fmt: skip
                if wide:
                    raise text from None
            yield number, text


def _kind(path: Path) -> str:
    """The suffix that says what a file holds, below that of packing."""
    packed = path.suffix.lower() == _PACKED and Path(path.stem).suffix.lower() != ".parquet"
    return (Path(path.stem) if packed else path).suffix.lower()


def _line(file: IO[bytes], path: Path, most: int | None) -> bytes:
    try:
        return file.readline(-1 if most is None else most + 1)
    except (OSError, EOFError, zlib.error) as e:
        raise UnreadableInput("the file cannot be read to its end", got=f"{path}: {e}") from None


def _open(path: Path) -> IO[bytes]:
    try:
        return cast(IO[bytes], gzip.open(path)) if path.suffix.lower() == _PACKED else path.open("rb")
    except OSError as e:
        raise UnreadableInput("the file cannot be opened", got=f"{path}: {e.strerror}") from None


def _read_json(text: str, path: Path, line: int | None) -> Value:
    try:
        return read_strict(text)
    except (ValueError, RecursionError) as e:
        raise BadCase("this is not JSON", source=str(path), line=line, got=f"{text.strip()[:120]} ({e})") from None
