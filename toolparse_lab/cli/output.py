"""What commands write: data to standard output, as tables or JSON; everything else to standard error."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..render.show import visible


def say(text: str) -> None:
    """For people: to standard error."""
    print(text, file=sys.stderr, flush=True)


def put(text: str) -> None:
    """Data: to standard output."""
    print(text)


def put_json(value: Any) -> None:
    """JSON, ASCII alone, so that no terminal and no pipe changes it."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """A value as JSON has it: missing figures are null, numbers of numpy are numbers."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if value - value == 0 else None
    return None if str(value) in ("<NA>", "NaT") else str(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """The rows of a pandas frame."""
    rows: list[dict[str, Any]] = plain(frame.to_dict("records"))
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None) -> str:
    """Aligned columns; numbers to the right. The last column is cut to what a terminal has room for."""
    cells = [[visible(_cell(value)).replace("\n", "⏎") for value in row] for row in rows]
    right = [bool(cells) and all(_is_number(row[i]) for row in cells) for i in range(len(head))]
    widths = [max(len(h), *(len(row[i]) for row in cells)) if cells else len(h) for i, h in enumerate(head)]
    lines = []
    for row in [list(head), *cells]:
        parts = [text.rjust(size) if r else text.ljust(size) for text, size, r in zip(row, widths, right, strict=True)]
        line = "  ".join(parts).rstrip()
        lines.append(line if width is None or len(line) <= width else line[: width - 1] + "…")
    return "\n".join(lines)


def report_width() -> int:
    """Columns for a report: those of the terminal; a pipe or a file has room for every column."""
    return terminal_width() or sys.maxsize


def terminal_width() -> int | None:
    """Columns of the terminal that reads this, None where none does."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def _is_number(text: str) -> bool:
    return text == "–" or text.replace(",", "").replace(".", "", 1).lstrip("-+$").isdigit()
