"""Rows from wherever they are: a file, a pandas frame, a Hugging Face data set, or a list of
mappings.

Tables have no way to leave a member of a row out: an empty cell, NaN or NA stands for nothing at
all, and so does a member without a value in a struct, which Arrow fills with None wherever another
row has that member. JSON text in a cell is read as it is, so null arguments are written that
way.
"""

# How it works. Wherever rows come from, they end as a `RowSource`: rows with their places and what
# is known of all of them (are they a table, which columns are there). A row is then renamed
# (`Renaming.apply`), made plain JSON cell by cell (`json_value`), and its metadata folded together;
# `loading` makes a case of the result. Each of these raises BadCase with the place of the row, and
# `BadRows` collects them.

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ...core.errors import BadCase, BadOptions
from ...core.remote import local_path
from ...core.values import number, read_strict
from .case import likely_key
from .row_files import RowSource, first_repeated, read_rows

Others: TypeAlias = Literal["error", "metadata", "drop"]
Errors: TypeAlias = Literal["raise", "skip"]
METADATA = "metadata_"
"""How the names of columns begin that are members of a case's metadata."""
_EXPECTED = "a path, a pandas frame, a Hugging Face data set, or a list of rows"
_OWN = "put what is your own under metadata (a column metadata_… does that)"


def rows_of(source: Any, *, split: str | None = None) -> RowSource:
    """Return the rows of a path, a frame, a data set or an iterable of rows, which are passed on
    unseen.

    split: which part of a Hugging Face DatasetDict. Raises BadCase for another kind of source,
    BadOptions for a split that is not there, and the errors of `read_rows`.
    """
    if isinstance(source, RowSource):
        return source
    # Before all other kinds, since splits are a mapping and the only source with a choice.
    if isinstance(source, Mapping) and source and all(map(is_dataset, source.values())):
        if split is None and len(source) == 1:
            split = next(iter(source))
        if split is None or split not in source:
            raise BadOptions(
                "a DatasetDict is read one split at a time",
                got=split,
                expected=", ".join(map(str, source)),
                hint="name one by split=",
            )
        return rows_of(source[split])
    if split is not None:
        raise BadOptions(
            "only a Hugging Face DatasetDict has splits",
            got=type(source).__name__,
            hint="leave split out",
        )

    if isinstance(source, (str, Path)):
        return read_rows(local_path(source))
    # By name, so that pandas is not imported for sources that are not frames.
    kinds = ((t.__module__.partition(".")[0], t.__name__) for t in type(source).__mro__)
    if ("pandas", "DataFrame") in kinds:
        return _frame_rows(source)
    if is_dataset(source):
        return _dataset_rows(source)
    # One mapping is more likely a row that was to be in a list than a list of rows.
    if isinstance(source, (Mapping, bytes)) or not isinstance(source, Iterable):
        message = "this is neither a path nor a list of rows"
        raise BadCase(message, got=type(source).__name__, expected=_EXPECTED)
    return RowSource("", enumerate(source, 1), unit="row")


def _frame_rows(frame: Any) -> RowSource:
    names = [str(name) for name in frame.columns]
    # Column by column, so that each keeps its type: a row of a frame has one type for all cells.
    cells = zip(*(frame.iloc[:, i] for i in range(len(names))), strict=True)
    rows = enumerate((dict(zip(names, row, strict=True)) for row in cells), 1)
    source = RowSource("DataFrame", rows, unit="row", table=True, columns=tuple(names))
    if twice := first_repeated(names):
        raise source.bad("two columns have the same name", column=twice)
    return source


def is_dataset(x: Any) -> bool:
    # By shape, so that `datasets` need not be installed; a class has these names, too.
    names = ("features", "column_names", "__iter__")
    return not isinstance(x, type) and all(hasattr(x, name) for name in names)


def _dataset_rows(data: Any) -> RowSource:
    labels: dict[str, list[str]] = {}  # the words of a column of numbers
    for column, feature in data.features.items() if isinstance(data.features, Mapping) else ():
        words = getattr(feature, "names", None)
        if isinstance(words, list):
            labels[column] = words

    def rows() -> Iterator[tuple[int | None, Any]]:
        for place, row in enumerate(data, 1):
            # A row without a label has -1, which would be the last word to Python.
            words = {
                name: names[label]
                for name, names in labels.items()
                if isinstance(label := row.get(name), int) and 0 <= label < len(names)
            }
            yield place, {**row, **words} if words else row

    columns = tuple(data.column_names) if data.column_names else None
    split = getattr(data, "split", None)
    name = f"Dataset {split}" if split else "Dataset"
    return RowSource(name, rows(), unit="row", table=True, columns=columns)


# rows that cannot be read

# A file of another kind has a bad row on every line: a hundred errors are enough to see that.
_MOST_KEPT, _MOST_SHOWN = 100, 5
_MOST_REASONS, _LONGEST_REASON = 20, 200


class BadRows:
    """The rows of an unreadable source: all counted, the errors of the first `_MOST_KEPT` in
    `complaints`.
    """

    def __init__(self, source: RowSource, errors: Errors = "raise") -> None:
        """source: named in the error at the end. errors: see `load_cases`.

        Raises BadOptions for another word than raise and skip.
        """
        if errors not in ("raise", "skip"):
            raise BadOptions(
                "errors is what becomes of bad rows", got=errors, expected="raise or skip"
            )
        self.source = source
        self.errors = errors
        self.count = 0
        self.complaints: list[BadCase] = []
        self._places: dict[str, list[int | None]] = {}  # by the reason

    @property
    def first_message(self) -> str | None:
        return self.complaints[0].message if self.complaints else None

    def add(self, e: BadCase) -> None:
        """Count a bad row, and keep its error where it is one of the first."""
        self.count += 1
        if len(self.complaints) < _MOST_KEPT:
            self.complaints.append(e)
        reason = " ".join(e.reason.split())[:_LONGEST_REASON]
        if reason not in self._places and len(self._places) >= _MOST_REASONS:
            reason = "other reasons"
        self._places.setdefault(reason, []).append(e.line)

    def by_reason(self) -> dict[str, tuple[int, str]]:
        """Return how many rows each reason has, and the first of their places in words."""
        counts = {}
        for reason, lines in self._places.items():
            shown = [str(line) for line in lines[:_MOST_SHOWN] if line is not None]
            words = f"{self.source.unit}{'s' * (len(lines) > 1)} {', '.join(shown)}"
            if len(lines) > _MOST_SHOWN:
                words += f" and {len(lines) - _MOST_SHOWN:,} more"
            counts[reason] = len(lines), words if shown else ""
        return counts

    def end(self, rows: int, *, found: bool = True) -> None:
        """Raise BadCase for the bad rows of a source, unless they are to be skipped: one error that
        shows the first few and carries the rest. rows: how many the source has, good and bad.
        found: False if nothing is left of it, which is an error in any case.
        """
        if self.count == 0 or (self.errors == "skip" and found):
            return
        if self.count == 1:
            raise self.complaints[0]

        lines = [f"{self.count} of {rows} rows cannot be read"]
        for error in self.complaints[:_MOST_SHOWN]:
            message = " ".join(error.message.split())[:200]
            got = "" if error.got is None else f" (got {' '.join(str(error.got).split())[:80]})"
            lines.append(f"- {message}{got}")
        if self.count > _MOST_SHOWN:
            lines.append(f"- and {self.count - _MOST_SHOWN} more")

        # Where one cause spoils every row there is a better way out than to skip them.
        hints = {error.hint for error in self.complaints}
        shared = hints.pop() if len(hints) == 1 else None
        hint = 'mend them, or leave them out by errors="skip"' if found else None
        raise BadCase(
            "\n  ".join(lines),
            source=self.source.name,
            unit=self.source.unit,
            rows=tuple(self.complaints),
            hint="; or ".join(filter(None, (shared, hint))) or None,
        )


# columns


@dataclass(frozen=True, slots=True)
class Renaming:
    """The names that the columns of a source have here.

    `columns` maps a column of the source to its name here, or to None to leave it out. `names` are
    those there are. Every name that begins with ``metadata_`` is one too. `others` decides the
    handling of a column that is neither named so nor mapped: an error, a member of the metadata, or
    nothing.
    """

    names: tuple[str, ...]
    columns: Mapping[str, str | None]
    others: Others = "error"

    def __post_init__(self) -> None:
        """Raise BadOptions for columns that are not a mapping, unknown names, and one name for two
        columns.
        """
        if not isinstance(self.columns, Mapping):
            raise BadOptions(
                "columns map names to names", got=self.columns, expected='{"question": "input"}'
            )
        if self.others not in ("error", "metadata", "drop"):
            message = "others is what becomes of other columns"
            raise BadOptions(message, got=self.others, expected="error, metadata or drop")

        columns: dict[str, str] = {}  # by the name they are mapped to
        for column, name in self.columns.items():
            if name is None:
                continue
            if not self._is_name(name):
                raise BadOptions(
                    f"the column {column!r} is mapped to a name that is not known",
                    got=name,
                    expected=", ".join((*self.names, "metadata_…", "None to leave it out")),
                )
            if name in columns:
                raise BadOptions(
                    f"two columns are mapped to {name!r}", got=f"{columns[name]}, {column}"
                )
            columns[name] = column

    def _is_name(self, name: object) -> bool:
        return isinstance(name, str) and (name in self.names or name.startswith(METADATA))

    def check(self, source: RowSource) -> None:
        """Raise BadCase if a mapped column is not in the source, or it has one that is unknown.

        A source that does not name its columns is left to `apply`.
        """
        columns = source.columns
        if columns is None:
            return
        for column in self.columns:
            if column not in columns:
                expected = ", ".join(columns) or "a header"
                raise source.bad("there is no such column", column=column, expected=expected)
        for column in columns:
            self._name(column, source, None)

    def apply(
        self, row: Mapping[str, Any], source: RowSource, line: int | None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Return the row's values under our names, empty cells left out, and for each name the
        column that it came from.

        Values are plain JSON, but for tools that are Python functions. Raises BadCase for an
        unknown column, for two of one name, and for values that JSON cannot hold.
        """
        members: dict[str, Any] = {}
        origins: dict[str, str] = {}
        for key, value in row.items():
            column = str(key)
            name = self._name(column, source, line)
            if name is None or (source.table and is_missing(value)):
                continue
            if name in members:
                raise source.bad(
                    f"two columns are the {name}",
                    line,
                    column,
                    got=f"{origins[name]}, {column}",
                    hint=f"leave one out: columns={{{column!r}: None}}",
                )

            # Functions are tools, too, where rows come from Python.
            if source.from_json or (name == "tools" and not source.table):
                members[name] = value
            else:
                members[name] = json_value(value, source, line, column)
            origins[name] = column
        return members, origins

    def _name(self, column: str, source: RowSource, line: int | None) -> str | None:
        if column in self.columns:
            return self.columns[column]
        if self._is_name(column):
            return column
        if self.others != "error":
            return f"{METADATA}{column}" if self.others == "metadata" else None

        likely = likely_key(column, self.names)
        first = f"call it {likely}" if likely else _OWN
        name = likely or METADATA + column
        raise source.bad(
            "unknown column" if source.table else "unknown key",
            line,
            column if source.table else None,
            got=column,
            expected=", ".join(self.names),
            hint=f'{first}, or say what it is: columns={{{column!r}: "{name}"}}, or None to leave '
            "it out",
        )


def fold_metadata(row: dict[str, Any], source: RowSource, line: int | None) -> None:
    """Move the members ``metadata_…`` of a row into its `metadata`. Metadata that are not an object
    remain for `read_case` to complain about. Raises BadCase for a key that is there already.
    """
    # The prefix alone would be a member without a name.
    names = [name for name in row if name.startswith(METADATA) and name != METADATA]
    metadata = row.get("metadata")
    if not names or not isinstance(metadata, (Mapping, type(None))):
        return

    folded = dict(metadata or {})
    for name in names:
        key = name.removeprefix(METADATA)
        if key in folded:
            raise source.bad("this is in the metadata already", line, name, got=key)
        folded[key] = row.pop(name)
    row["metadata"] = folded


# cells


def is_missing(x: Any) -> bool:
    """Return True for a cell that stands for nothing: None, NaN, NaT or NA.

    An empty list or text does not stand for nothing.

    >>> is_missing(float("nan")), is_missing([])
    (True, False)
    """
    # By name, so that pandas is not imported to ask for its own kinds of nothing.
    if x is None or type(x).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(x, float) and math.isnan(x)


def json_value(x: Any, source: RowSource, line: int | None, column: str) -> Any:
    """Return a cell as JSON: arrays and scalars of NumPy and Arrow become Python's own, and in
    tables members of structs without a value drop out. Raises BadCase for what JSON cannot hold.
    """
    try:
        return _plain(x, source.table)
    except _NotJson as e:
        raise source.bad(
            "a cell holds a value that is not JSON", line, column, got=repr(e.args[0])[:120]
        ) from None
    except RecursionError:
        raise source.bad(
            "a cell is nested too deeply", line, column, got=type(x).__name__
        ) from None


class _NotJson(Exception):
    pass


def _plain(x: Any, table: bool) -> Any:
    # table: the value is from a table's cell, see `RowSource`.
    if x is None or isinstance(x, (str, bool, int)) or (isinstance(x, float) and math.isfinite(x)):
        return x
    if isinstance(x, float):
        raise _NotJson(x)

    # Struct cells come as mappings, and pandas has NumPy's scalars in lists: hence the recursion.
    if isinstance(x, Mapping):
        # Arrow fills a member in wherever another row has it, so an empty one says nothing.
        members = x.items()
        return {str(k): _plain(v, table) for k, v in members if not (table and is_missing(v))}
    if isinstance(x, (list, tuple)):
        # Arrow gives a map as a list of pairs.
        if x and all(isinstance(pair, tuple) and len(pair) == 2 for pair in x):
            return {str(key): _plain(value, table) for key, value in x}
        # An item that is missing stays as null: without it the others would move up.
        return [None if is_missing(item) else _plain(item, table) for item in x]

    # A decimal column keeps its digits: the number is made of its text.
    if isinstance(x, Decimal) and x.is_finite():
        return number(str(x))
    if isinstance(x, (datetime, date, time)):
        return x.isoformat()
    if hasattr(x, "tolist"):  # NumPy's arrays and scalars
        return _plain(x.tolist(), table)
    raise _NotJson(x)


def read_cell(x: Any, what: str, source: RowSource, line: int | None, column: str | None) -> Any:
    """Return a member that cannot be a text with its JSON text read, anything but a text as it is.

    what: the member's name in the error. Raises BadCase for a text that is not JSON.
    """
    if not isinstance(x, str):
        return x
    try:
        return read_strict(x)
    except (ValueError, RecursionError) as e:
        raise source.bad(
            f"the {what} cannot be read: not JSON",
            line,
            column,
            got=f"{x.strip()[:120]} ({e})",
            expected="JSON text",
        ) from None


def listed(x: Any) -> Any:
    """Return an object of lists, as some data sets keep a list of objects, as that list. Anything
    else comes back as it is.

    >>> listed({"role": ["user"], "content": ["Hi"]})
    [{'role': 'user', 'content': 'Hi'}]
    """
    if not isinstance(x, Mapping) or not x or not all(isinstance(c, list) for c in x.values()):
        return x
    # Lists of different lengths are members that happen to be lists.
    if len({len(cells) for cells in x.values()}) > 1:
        return x
    rows = zip(*x.values(), strict=True)
    return [
        {n: cell for n, cell in zip(x, row, strict=True) if not is_missing(cell)} for row in rows
    ]
