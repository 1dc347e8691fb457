"""Output of the commands: data to standard output, as tables or JSON.

The rest to standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..views.show import visible

_NONE = "–"  # the cell of a value that is not there


def say(text: str) -> None:
    """Write for people: to standard error."""
    print(text, file=sys.stderr, flush=True)


def put(text: str) -> None:
    """Write data: to standard output."""
    print(text)


def put_json(value: Any) -> None:
    """Write JSON, ASCII alone, so that no terminal and no pipe changes it."""
    print(json.dumps(plain(value), indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """Return a value as JSON has it: missing figures are null, numbers of numpy are numbers."""
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(v) for v in value]
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        # Not a number, or infinite: such a difference is not 0.
        return value if value - value == 0 else None
    # pandas has marks of its own for what is missing.
    return None if str(value) in ("<NA>", "NaT") else str(value)


def records(frame: Any) -> list[dict[str, Any]]:
    """Return the rows of a pandas frame, as JSON has them."""
    rows: list[dict[str, Any]] = plain(frame.to_dict("records"))
    return rows


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, width: int | None = None) -> str:
    """Aligned columns, those of numbers to the right.

    width: columns of the terminal. A longer line is cut there, None cuts none.
    """
    # A line break in a cell would break the columns.
    cells = [[visible(_cell(value)).replace("\n", "⏎") for value in row] for row in rows]
    columns = list(zip(*cells, strict=True)) if cells else [()] * len(head)
    sizes = [
        max(len(title), *map(len, column)) if column else len(title)
        for title, column in zip(head, columns, strict=True)
    ]
    numeric = [bool(column) and all(map(_is_number, column)) for column in columns]
    lines = []
    for row in [list(head), *cells]:
        parts = [
            text.rjust(size) if right else text.ljust(size)
            for text, size, right in zip(row, sizes, numeric, strict=True)
        ]
        lines.append(_cut("  ".join(parts).rstrip(), width))
    return "\n".join(lines)


def _cut(line: str, width: int | None) -> str:
    """Return the line, with an ellipsis at the width of a terminal."""
    if width is None or len(line) <= width:
        return line
    return line[: width - 1] + "…"


def report_width() -> int:
    """Columns for a report: those of the terminal, or those that COLUMNS asks for.

    Any other pipe or file has room for every column.
    """
    columns = os.environ.get("COLUMNS", "")
    wish = int(columns) if columns.isascii() and columns.isdigit() else 0
    return terminal_width() or wish or sys.maxsize


def terminal_width() -> int | None:
    """Columns of the terminal that reads this, None if none does."""
    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else None


def _cell(value: Any) -> str:
    if value is None:
        return _NONE
    if isinstance(value, float):
        return f"{value:.3f}"
    return str(value)


def _is_number(text: str) -> bool:
    """The cell is a number, with thousands, a sign or a currency.

    A missing one counts too.
    """
    return text == _NONE or text.replace(",", "").replace(".", "", 1).lstrip("-+$").isdigit()
