"""Rows from wherever they are: a file, a pandas frame, a Hugging Face data set, or a list of mappings.

Tables have no way to leave a member of a row out: an empty cell, NaN or NA stands for nothing at all, and so does a
member without a value in a struct, which Arrow fills with None wherever another row has that member. JSON text in a
cell is read as it stands, so null arguments are written that way.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...errors import BadCase, BadOptions
from ...values import number, read_strict
from .row_files import RowSource, read_rows

Others: TypeAlias = Literal["error", "metadata", "drop"]
Errors: TypeAlias = Literal["raise", "skip"]
_EXPECTED = "a path, a pandas frame, a Hugging Face data set, or a list of rows"


def rows_of(source: Any, *, split: str | None = None) -> RowSource:
    """The rows of a path, a frame, a data set or an iterable of rows (what these are is the reader's business).

    split: which part of a Hugging Face DatasetDict. Raises BadCase for anything else, and what `read_rows` raises.
    """
    if isinstance(source, RowSource):
        return source
    if _is_splits(source):
        return rows_of(_split_of(source, split))
    if split is not None:
        raise BadOptions(
            "only a Hugging Face DatasetDict has splits", got=type(source).__name__, hint="leave split out"
        )
    if isinstance(source, (str, Path)):
        return read_rows(Path(source))
    if _is_frame(source):
        return _frame_rows(source)
    if _is_dataset(source):
        return _dataset_rows(source)
    if isinstance(source, (Mapping, bytes)) or not isinstance(source, Iterable):
        raise BadCase("this is neither a path nor a list of rows", got=type(source).__name__, expected=_EXPECTED)
    return RowSource("", enumerate(source, 1), unit="row")


def _is_frame(x: Any) -> bool:
    # By name, so that pandas is not imported for sources that are no frames.
    return any(t.__module__.partition(".")[0] == "pandas" and t.__name__ == "DataFrame" for t in type(x).__mro__)


def _frame_rows(frame: Any) -> RowSource:
    names = [str(name) for name in frame.columns]
    source = RowSource("DataFrame", iter(()), unit="row", table=True, columns=tuple(names))
    if twice := next((n for i, n in enumerate(names) if n in names[:i]), None):
        raise source.bad("two columns have the same name", column=twice)
    cells = zip(*(frame.iloc[:, i] for i in range(len(names))), strict=True)
    rows = enumerate((dict(zip(names, row, strict=True)) for row in cells), 1)
    return RowSource("DataFrame", rows, unit="row", table=True, columns=tuple(names))


def _is_dataset(x: Any) -> bool:
    """The shape of a Hugging Face Dataset or IterableDataset."""
    return not isinstance(x, type) and hasattr(x, "features") and hasattr(x, "column_names") and hasattr(x, "__iter__")


def _is_splits(x: Any) -> bool:
    return isinstance(x, Mapping) and bool(x) and all(_is_dataset(v) for v in x.values())


def _split_of(splits: Mapping[str, Any], split: str | None) -> Any:
    if split is None and len(splits) == 1:
        return next(iter(splits.values()))
    if split is None or split not in splits:
        raise BadOptions(
            "a DatasetDict is read one split at a time", got=split, expected=", ".join(map(str, splits)),
            hint="name one by split=",
        )  # fmt: skip
    return splits[split]


def _dataset_rows(data: Any) -> RowSource:
    columns = tuple(data.column_names) if data.column_names else None
    features = data.features if isinstance(data.features, Mapping) else {}
    labels = {name: f.names for name, f in features.items() if isinstance(getattr(f, "names", None), list)}

    def rows() -> Iterator[tuple[int | None, Any]]:
        for place, row in enumerate(data, 1):
            for name, words in labels.items():
                # A class label is kept as a number and means a word.
                if isinstance(row.get(name), int) and 0 <= row[name] < len(words):
                    row = {**row, name: words[row[name]]}
            yield place, row

    split = getattr(data, "split", None)
    return RowSource(f"Dataset {split}" if split else "Dataset", rows(), unit="row", table=True, columns=columns)


# rows that cannot be read

_KEPT, _SHOWN = 100, 5


class BadRows:
    """The rows of a source that cannot be read: all counted, the errors of the first `_KEPT` kept."""

    def __init__(self, source: RowSource, errors: Errors = "raise") -> None:
        if errors not in ("raise", "skip"):
            raise BadOptions("errors is what becomes of bad rows", got=errors, expected="raise or skip")
        self.source = source
        self.errors = errors
        self.count = 0
        self.found: list[BadCase] = []

    def add(self, e: BadCase) -> None:
        self.count += 1
        if len(self.found) < _KEPT:
            self.found.append(e)

    def end(self, rows: int) -> None:
        """At the end of a source of so many rows: raises BadCase for the bad ones, unless they are to be skipped."""
        if self.count == 0 or self.errors == "skip":
            return
        if self.count == 1:
            raise self.found[0]
        lines = [f"{self.count} of {rows} rows cannot be read", *(f"- {_said(e)}" for e in self.found[:_SHOWN])]
        if self.count > _SHOWN:
            lines.append(f"- and {self.count - _SHOWN} more")
        # Where one cause spoils every row there is a better way out than to skip them.
        hints = {e.hint for e in self.found}
        one = hints.pop() if len(hints) == 1 else None
        hint = 'mend them, or leave them out by errors="skip"'
        raise BadCase(
            "\n  ".join(lines), source=self.source.name, unit=self.source.unit, rows=tuple(self.found),
            hint=f"{one}; or {hint}" if one else hint,
        )  # fmt: skip


def _said(e: BadCase) -> str:
    """An error in one line."""
    got = "" if e.got is None else f" (got {' '.join(str(e.got).split())[:80]})"
    return f"{' '.join(e.message.split())[:200]}{got}"


# columns


@dataclass(frozen=True, slots=True)
class Renaming:
    """Which column is which: `columns` maps a column of the source to the name it has here, or to None to leave it
    out. `known` are the names there are; every name that begins with ``metadata_`` is one too. `others` says what
    becomes of a column that is neither known nor mapped: an error, a member of the metadata, or nothing."""

    known: tuple[str, ...]
    columns: Mapping[str, str | None]
    others: Others = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.columns, Mapping):
            raise BadOptions("columns map names to names", got=self.columns, expected='{"question": "input"}')
        if self.others not in ("error", "metadata", "drop"):
            raise BadOptions(
                "others is what becomes of other columns", got=self.others, expected="error, metadata or drop"
            )
        given: dict[str, str] = {}
        for column, name in self.columns.items():
            if name is None:
                continue
            if not isinstance(name, str) or not (name in self.known or name.startswith("metadata_")):
                raise BadOptions(
                    f"the column {column!r} is mapped to a name that is not known", got=name,
                    expected=", ".join((*self.known, "metadata_…", "None to leave it out")),
                )  # fmt: skip
            if name in given:
                raise BadOptions(f"two columns are mapped to {name!r}", got=f"{given[name]}, {column}")
            given[name] = column

    def check(self, source: RowSource) -> None:
        """Raises BadCase where the source is known not to have a column that is mapped, or to have an unknown one."""
        if source.columns is None:
            return
        if gone := [c for c in self.columns if c not in source.columns]:
            raise source.bad(
                "there is no such column", column=gone[0], expected=", ".join(source.columns) or "a header"
            )
        for column in source.columns:
            self._name(column, source, None)

    def apply(
        self, row: Mapping[str, Any], source: RowSource, line: int | None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """The row under the names known here, and the column each came from; cells of nothing are left out."""
        out: dict[str, Any] = {}
        came: dict[str, str] = {}
        for column, value in row.items():
            name = self._name(str(column), source, line)
            if name is None or (source.table and is_missing(value)):
                continue
            if name in out:
                raise source.bad(
                    f"two columns are the {name}", line, str(column), got=f"{came[name]}, {column}",
                    hint=f"leave one out: columns={{{str(column)!r}: None}}",
                )  # fmt: skip
            plain = source.from_json or (name == "tools" and not source.table)  # functions are tools, too
            out[name] = value if plain else json_value(value, source, line, str(column))
            came[name] = str(column)
        return out, came

    def _name(self, column: str, source: RowSource, line: int | None) -> str | None:
        if column in self.columns:
            return self.columns[column]
        if column in self.known or column.startswith("metadata_"):
            return column
        if self.others == "error":
            raise source.bad(
                "unknown column" if source.table else "unknown key", line, column if source.table else None,
                got=column, expected=", ".join(self.known),
                hint="put what is your own under metadata (a column metadata_… does that), "
                f'or say what it is: columns={{{column!r}: "metadata_{column}"}}, or None to leave it out',
            )  # fmt: skip
        return f"metadata_{column}" if self.others == "metadata" else None


def fold_metadata(row: dict[str, Any], source: RowSource, line: int | None) -> None:
    """Moves the members ``metadata_…`` of a row into its `metadata`."""
    names = [name for name in row if name.startswith("metadata_") and name != "metadata_"]
    metadata = row.get("metadata")
    if not names or not isinstance(metadata, (Mapping, type(None))):
        return
    folded = dict(metadata or {})
    for name in names:
        key = name.removeprefix("metadata_")
        if key in folded:
            raise source.bad("this is in the metadata already", line, name, got=key)
        folded[key] = row.pop(name)
    row["metadata"] = folded


# cells


def is_missing(x: Any) -> bool:
    """Whether a cell stands for nothing: None, NaN, NaT or NA. An empty list does not."""
    if x is None or type(x).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(x, float) and math.isnan(x)


def json_value(x: Any, source: RowSource, line: int | None, column: str) -> Any:
    """A cell as JSON: arrays and scalars of NumPy and Arrow as Python's; in tables, members of structs without a value
    are left out.

    Raises BadCase, naming the place, for what JSON cannot hold.
    """
    try:
        return _plain(x, source.table)
    except _NotJson as e:
        raise source.bad("a cell holds a value that is not JSON", line, column, got=repr(e.args[0])[:120]) from None
    except RecursionError:
        raise source.bad("a cell is nested too deeply", line, column, got=type(x).__name__) from None


class _NotJson(Exception):
    pass


def _plain(x: Any, table: bool) -> Any:
    if x is None or isinstance(x, (str, bool, int)):
        return x
    if isinstance(x, float):
        if not math.isfinite(x):
            raise _NotJson(x)
        return x
    if isinstance(x, Mapping):
        return {str(k): _plain(v, table) for k, v in x.items() if not (table and is_missing(v))}
    if isinstance(x, (list, tuple)):
        if x and all(isinstance(pair, tuple) and len(pair) == 2 for pair in x):
            return {str(k): _plain(v, table) for k, v in x}  # how Arrow gives a map
        return [None if is_missing(v) else _plain(v, table) for v in x]
    if isinstance(x, Decimal) and x.is_finite():
        return number(str(x))
    if isinstance(x, (datetime, date, time)):
        return x.isoformat()
    if hasattr(x, "tolist"):  # NumPy's arrays and scalars
        return _plain(x.tolist(), table)
    raise _NotJson(x)


def read_cell(x: Any, what: str, source: RowSource, line: int | None, column: str | None) -> Any:
    """A member that cannot be a text: JSON text is read; raises BadCase where it is none."""
    if not isinstance(x, str):
        return x
    try:
        return read_strict(x)
    except (ValueError, RecursionError) as e:
        raise source.bad(
            f"the {what} cannot be read: not JSON", line, column, got=f"{x.strip()[:120]} ({e})", expected="JSON text"
        ) from None


def listed(x: Any) -> Any:
    """A list of objects that a data set keeps as an object of lists, as a list again; anything else as it is."""
    if not isinstance(x, Mapping) or not x or not all(isinstance(v, list) for v in x.values()):
        return x
    sizes = {len(v) for v in x.values()}
    if len(sizes) > 1:
        return x
    return [{k: v[i] for k, v in x.items() if not is_missing(v[i])} for i in range(sizes.pop())]
