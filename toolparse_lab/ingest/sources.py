"""Where answers from elsewhere are: files, frames, response objects, pieces of a stream, dumps of event streams."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..capture.sse import is_event_stream
from ..errors import BadCase, UnreadableInput
from ..evals.cases.row_files import RowSource, text_lines
from ..evals.cases.rows import rows_of


def answers_of(source: Any, *, split: str | None = None) -> RowSource:
    """The rows of anything `Lab.ingest` takes; raises as `rows_of` does."""
    if isinstance(source, (str, Path)):
        if isinstance(source, str) and ("\n" in source or is_event_stream(source)):
            return RowSource("text", iter([(1, source)]), unit="row")
        path = Path(source)
        if path.is_dir() or path.suffix.lower() == ".sse":
            return _streams(path)
        return rows_of(path, split=split)
    if isinstance(source, (list, tuple)) and source and all(map(is_chunk, source)):
        return RowSource("stream", iter([(1, list(source))]), unit="row")
    if is_response(source):
        return RowSource("response", iter([(1, source)]), unit="row")
    found = rows_of(source, split=split)
    return found if found.name else replace(found, name="rows")


def _streams(path: Path) -> RowSource:
    """Dumps of event streams: one answer a file, or several that end with the mark [DONE]."""
    files = sorted(p for p in path.iterdir() if p.suffix.lower() == ".sse") if path.is_dir() else [path]
    if not files or not all(f.is_file() for f in files):
        raise UnreadableInput(
            "there is no event stream" if path.exists() else "there is no such file", got=str(path),
            expected="a file with rows, an .sse file or a folder of them",
        )  # fmt: skip

    def rows() -> Iterator[tuple[int | None, Any]]:
        number = 0
        for file in files:
            for n, dump in enumerate(_dumps(file)):
                number += 1
                case_id = file.stem if n == 0 else f"{file.stem}-{n + 1}"
                yield number, dump if isinstance(dump, BadCase) else {"case_id": case_id, "response": dump}

    return RowSource(str(path), rows(), unit="stream")


def _dumps(file: Path) -> Iterator[str | BadCase]:
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


def _get(x: Any, name: str) -> Any:
    return x.get(name) if isinstance(x, Mapping) else getattr(x, name, None)


def is_chunk(x: Any) -> bool:
    """Whether this is a piece of a stream."""
    if isinstance(x, (str, bytes)) or x is None:
        return False
    kind, choices = _get(x, "type"), _get(x, "choices")
    if isinstance(choices, (list, tuple)):
        return str(_get(x, "object")).endswith(".chunk") or any(_get(c, "delta") is not None for c in choices)
    return isinstance(kind, str) and (kind.startswith(("response.", "content_block_")) or kind == "message_start")


def is_response(x: Any) -> bool:
    """Whether this is one whole answer of an interface, as an object or a mapping."""
    if isinstance(x, Mapping):
        if isinstance(x.get("choices"), (list, tuple)) or x.get("role") == "assistant":
            return True
        if isinstance(x.get("message"), Mapping) and "finish_reason" in x:
            return True
        kind = x.get("object") or x.get("type")
        return (kind == "response" and isinstance(x.get("output"), list)) or (
            kind == "message" and isinstance(x.get("content"), list)
        )
    return hasattr(x, "model_dump") or (hasattr(x, "choices") and not hasattr(x, "columns"))
