"""Sources of answers from elsewhere: files, frames, response objects, pieces of a stream, dumps of
event streams.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...core.errors import BadCase, UnreadableInput
from ...evals.cases.row_files import RowSource, text_lines
from ...evals.cases.rows import rows_of
from ...parser.capture.captured import is_event_stream


def answers_of(source: Any, *, split: str | None = None) -> RowSource:
    """The rows of anything `Lab.ingest` takes.

    Raises as `rows_of` does.

    source: a path, a text, a response, the pieces of a stream, a frame, or rows in any other form.
    split: the part of a data set to read, None for all of it.
    """
    if isinstance(source, (str, Path)):
        return _rows_of_text(source, split)
    if _is_list_of_chunks(source):
        return RowSource("stream", iter([(1, list(source))]), unit="row")
    if is_response(source):
        return RowSource("response", iter([(1, source)]), unit="row")

    rows = rows_of(source, split=split)
    return rows if rows.name else replace(rows, name="rows")


def _rows_of_text(source: str | Path, split: str | None) -> RowSource:
    # A text without a line break is taken for a path.
    # A text with a line break is no path but the stream itself.
    if isinstance(source, str) and ("\n" in source or is_event_stream(source)):
        return RowSource("text", iter([(1, source)]), unit="row")

    path = Path(source)
    if path.is_dir() or path.suffix.lower() == ".sse":
        return _streams(path)

    return rows_of(path, split=split)


def _is_list_of_chunks(x: Any) -> bool:
    # An empty list is a source without rows.
    if not isinstance(x, (list, tuple)) or not x:
        return False
    return all(map(is_chunk, x))


def _streams(path: Path) -> RowSource:
    # One answer a file, or several that end with the mark [DONE].
    files = _stream_files(path)
    if not files or not all(f.is_file() for f in files):
        raise UnreadableInput(
            "there is no event stream" if path.exists() else "there is no such file",
            got=str(path),
            expected="a file with rows, an .sse file or a folder of them",
        )

    return RowSource(str(path), _stream_rows(files), unit="stream")


def _stream_files(path: Path) -> list[Path]:
    # By name. The file need not exist: the caller looks.
    if not path.is_dir():
        return [path]

    return sorted(p for p in path.iterdir() if p.suffix.lower() == ".sse")


def _stream_rows(files: list[Path]) -> Iterator[tuple[int | None, Any]]:
    # A row's case is named after its file. An unreadable stream is an error in place of a row.
    number = 0
    for file in files:
        for n, dump in enumerate(_dumps(file)):
            number += 1
            if isinstance(dump, BadCase):
                yield number, dump
                continue

            case_id = file.stem if n == 0 else f"{file.stem}-{n + 1}"
            yield number, {"case_id": case_id, "response": dump}


def _dumps(file: Path) -> Iterator[str | BadCase]:
    # The last stream needs no end mark.
    lines: list[str] = []
    for _, line in text_lines(file):
        if isinstance(line, BadCase):
            yield line
            return

        lines.append(line)
        if _is_end_mark(line):
            yield "".join(lines)
            lines = []

    if "".join(lines).strip():
        yield "".join(lines)


def _is_end_mark(line: str) -> bool:
    return line.startswith("data:") and line[5:].strip() == "[DONE]"


def _get(x: Any, name: str) -> Any:
    return x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)


def is_chunk(x: Any) -> bool:
    """Return True for a piece of a stream.

    >>> is_chunk({"choices": [{"delta": {"content": "a"}}]}), is_chunk("a")
    (True, False)
    """
    if isinstance(x, (str, bytes)) or x is None:
        return False

    # OpenAI's chat interface, and all that imitate it.
    kind, choices = _get(x, "type"), _get(x, "choices")
    if isinstance(choices, (list, tuple)):
        return _is_chat_chunk(x, choices)

    # Events of OpenAI's responses and of Anthropic's messages.
    if not isinstance(kind, str):
        return False

    return kind.startswith(("response.", "content_block_")) or kind == "message_start"


def _is_chat_chunk(x: Any, choices: Sequence[Any]) -> bool:
    # By its own word, or by a delta in one of its choices.
    if str(_get(x, "object")).endswith(".chunk"):
        return True
    return any(_get(choice, "delta") is not None for choice in choices)


def is_response(x: Any) -> bool:
    """Return True for one whole answer of an interface, as an object or a mapping.

    x: of any type. A text is none, even if it is the JSON of one.
    """
    if isinstance(x, Mapping):
        return _is_response_mapping(x)
    if hasattr(x, "model_dump"):
        return True
    # A frame may have a column `choices`.
    return hasattr(x, "choices") and not hasattr(x, "columns")


def _is_response_mapping(x: Mapping[Any, Any]) -> bool:
    # A response, a choice or a message of OpenAI's, or a response of two others.
    if isinstance(x.get("choices"), (list, tuple)) or x.get("role") == "assistant":
        return True
    if isinstance(x.get("message"), Mapping) and "finish_reason" in x:
        return True

    kind = x.get("object") or x.get("type")
    if kind == "response":
        return isinstance(x.get("output"), list)

    return kind == "message" and isinstance(x.get("content"), list)
