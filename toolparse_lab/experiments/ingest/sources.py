"""Sources of answers from elsewhere: files, frames, response objects, pieces of a stream, dumps of
event streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...core.errors import BadCase, MissingExtra, UnreadableInput
from ...core.remote import is_remote, local_path
from ...core.types.call_pieces import member as get
from ...core.values import read_strict
from ...entry.capture.captured import is_event_stream
from ...entry.capture.frames import frames_in
from ...entry.capture.gemini import ends, is_gemini
from ...entry.capture.known import is_envelope, is_error, is_piece_alone
from ...evals.cases.row_files import (
    MAX_UNPACKED,
    RowSource,
    has_more_lines,
    is_packed,
    read_json,
    text_lines,
)
from ...evals.cases.rows import is_dataset, rows_of

MAX_PACKED_ROWS = 100_000
"""Rows that are read of a packed file if nobody says how many: a small one can hold any number."""
_SAMPLE = re.compile(r"samples/[^/]+\.json")


def answers_of(source: Any, *, split: str | None = None) -> RowSource:
    """Return the rows of anything `Lab.ingest` takes.

    split: the part of a data set to read, None for all of it. Raises as `rows_of` does.
    """
    kind = kind_of(source)
    if kind == "path":
        rows = _file_rows(local_path(source), split)
        return replace(rows, name=str(source)) if is_remote(source) else rows
    # The splits of a data set are a mapping, too.
    if kind == "rows" or (kind == "row" and (not source or any(map(is_dataset, source.values())))):
        rows = rows_of(source, split=split)
        return rows if rows.name else replace(rows, name="rows")
    row = list(source) if kind == "stream" else source
    return RowSource("rows" if kind == "row" else kind, iter([(1, row)]), unit="row")


def _file_rows(path: Path, split: str | None) -> RowSource:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if path.is_dir() or suffixes[-1:] == [".sse"]:
        return _streams(path)
    if suffixes[-1:] == [".eval"] and path.is_file():
        return _inspect_log(path)
    if suffixes[-1:] == [".json"] or suffixes[-2:] == [".json", ".gz"]:
        rows = read_json(path, whole=True)
        return replace(rows, rows=_pieces_as_one(rows.rows), path=path)
    return rows_of(path, split=split)


def _pieces_as_one(rows: Iterator[tuple[int | None, Any]]) -> Iterator[tuple[int | None, Any]]:
    # An array of the pieces of one stream is one answer.
    for number, row in rows:
        if number == 1 and isinstance(row, Mapping) and (is_chunk(row) or is_gemini(row)):
            members = [(number, row), *rows]
            pieces = [piece for _, piece in members]
            yield from [(number, pieces)] if _is_stream(pieces) else members
        else:
            yield number, row


def at_most(rows: RowSource, most: int | None) -> RowSource:
    """Return rows that raise UnreadableInput after `most` of them.

    None: no limit, except `MAX_PACKED_ROWS` for a packed file. Lines of JSONL are counted at once.
    """
    file = rows.path
    if most is None:
        if file is None or not is_packed(file):
            return rows
        most = MAX_PACKED_ROWS
    too_many = UnreadableInput(
        "the source has more rows than are read",
        got=f"{rows.name}: more than {most:,}",
        expected=f"at most {most:,} rows",
        hint=f"max_rows={10 * most} reads more",
    )
    # A cell of CSV may have line breaks, and JSON or Parquet has no lines to count.
    if file is not None and ".jsonl" in file.name.lower() and has_more_lines(file, most):
        raise too_many

    def limited() -> Iterator[tuple[int | None, Any]]:
        for count, row in enumerate(rows.rows, 1):
            if count > most:
                raise too_many
            yield row

    return replace(rows, rows=limited())


Kind: TypeAlias = Literal["text", "path", "chunk", "stream", "response", "row", "rows"]


def kind_of(x: Any) -> Kind:
    """Return what a source, or a row of one, is.

    text: an answer, or an event stream. chunk: a piece of a stream. stream: all its pieces.
    response: a whole answer of an interface. row: any other mapping. rows: anything else.

    >>> kind_of("log.jsonl"), kind_of({"role": "assistant"}), kind_of({"raw": ""}), kind_of([])
    ('path', 'response', 'row', 'rows')
    """
    if isinstance(x, (str, Path)):
        # A text with a line break is no path.
        return "text" if isinstance(x, str) and ("\n" in x or is_event_stream(x)) else "path"
    if is_response(x):
        return "chunk" if is_chunk(x) else "response"
    if isinstance(x, Mapping):
        return "row"
    if isinstance(x, (list, tuple)):
        # An empty list is a source without rows.
        return "stream" if _is_stream(x) else "rows"
    return "chunk" if is_chunk(x) else "rows"


def _inspect_log(path: Path) -> RowSource:
    # A zip with the log's header and a file for each sample, packed by zstd.
    try:
        from backports.zstd import zipfile
    except ImportError:
        import zipfile  # type: ignore[no-redef]  # knows zstd from Python 3.14 on

    def rows() -> Iterator[tuple[int | None, Any]]:
        try:
            with zipfile.ZipFile(path) as log:
                header = _member(log, "header.json") if "header.json" in log.namelist() else {}
                names = [name for name in log.namelist() if _SAMPLE.fullmatch(name)]
                for number, name in enumerate(names, 1):
                    try:
                        yield number, {**_member(log, name), "header": header}
                    except ValueError as e:
                        yield (
                            number,
                            BadCase(
                                f"this sample is no JSON: {e}", source=f"{path}:{name}", line=number
                            ),
                        )
        except NotImplementedError as e:
            raise MissingExtra(
                "the samples of this log are packed by zstd",
                got=f"{path}: {e}",
                hint="in a checkout: pip install '.[lab]', or write it as JSON: inspect log dump",
            ) from None
        except (zipfile.BadZipFile, OSError, ValueError) as e:
            raise UnreadableInput("this is no log of inspect", got=f"{path}: {e}") from None

    return RowSource(str(path), rows(), unit="sample", from_json=True, path=path)


def _member(log: Any, name: str) -> dict[str, Any]:
    if log.getinfo(name).file_size > MAX_UNPACKED:
        raise ValueError(f"more than {MAX_UNPACKED:,} bytes")
    value = read_strict(log.read(name).decode("utf-8", "surrogatepass"))
    if not isinstance(value, dict):
        raise ValueError("no object")
    return value


def _streams(path: Path) -> RowSource:
    # One answer a file, or several that end with the mark [DONE].
    files = [path]
    if path.is_dir():
        own = path.resolve()  # a link that leads out of the folder is none of its files
        files = sorted(
            p
            for p in path.iterdir()
            if p.suffix.lower() == ".sse" and p.resolve().is_relative_to(own)
        )
    if not files or not all(f.is_file() for f in files):
        raise UnreadableInput(
            "there is no event stream" if path.exists() else "there is no such file",
            got=str(path),
            expected="a file with rows, an .sse file or a folder of them",
        )

    def rows() -> Iterator[tuple[int | None, Any]]:
        # A row's case is named after its file. An unreadable stream is an error in place of a row.
        number = 0
        for file in files:
            for n, dump in enumerate(_dumps(file), 1):
                number += 1
                if isinstance(dump, BadCase):
                    yield number, dump
                else:
                    case_id = file.stem if n == 1 else f"{file.stem}-{n}"
                    yield number, {"case_id": case_id, "response": dump}

    return RowSource(str(path), rows(), unit="stream")


def _dumps(file: Path) -> Iterator[str | bytes | BadCase]:
    # A binary stream is one answer. The last one of text needs no end mark.
    with file.open("rb") as opened:
        if frames_in(opened.read(12)) is not None:
            opened.seek(0)
            yield opened.read()
            return
    lines: list[str] = []
    for _, line in text_lines(file):
        if isinstance(line, BadCase):
            yield line
            return
        lines.append(line)
        if line.startswith("data:") and line[5:].strip() == "[DONE]":
            yield "".join(lines)
            lines = []
    if "".join(lines).strip():
        yield "".join(lines)


def is_chunk(x: Any) -> bool:
    """Return True for a piece of a stream.

    >>> is_chunk({"choices": [{"delta": {"content": "a"}}]}), is_chunk("a")
    (True, False)
    """
    if isinstance(x, (str, bytes)) or x is None:
        return False
    choices = get(x, "choices")
    if isinstance(choices, (list, tuple)):
        # OpenAI's chat interface, and all that imitate it: by its own word, or by a delta.
        return str(get(x, "object")).endswith(".chunk") or any(
            get(choice, "delta") is not None for choice in choices
        )
    return is_piece_alone(x) and not is_error(x)


def is_response(x: Any) -> bool:
    """Return True for one whole answer of an interface, as an object or a mapping.

    x: of any type. A text is none, even if it is the JSON of one.
    """
    if not isinstance(x, Mapping):
        # A frame may have a column `choices`.
        return hasattr(x, "model_dump") or (hasattr(x, "choices") and not hasattr(x, "columns"))
    return is_envelope(x)


def _is_stream(items: list[Any] | tuple[Any, ...]) -> bool:
    # Pieces of Gemini's have the shape of its answers: those of one stream have one id, or only the
    # last of them says why it ended.
    if not items:
        return False
    if all(map(is_chunk, items)):
        return True
    if len(items) < 2 or not all(map(is_gemini, items)):
        return False
    ids = {str(get(x, "responseId") or get(x, "response_id") or "") for x in items}
    return (len(ids) == 1 and ids != {""}) or not all(map(ends, items[:-1]))
