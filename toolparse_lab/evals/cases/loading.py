"""`load_cases`: cases from files, frames, data sets and rows."""

# How it works. A source becomes rows (`rows.rows_of`), a row becomes members under known names, and
# members become a case (`case.read_case`), which knows nothing of tables. What tables do otherwise
# (JSON as text in cells, objects of lists, OpenAI's shape of a tool) is undone here on the way. Bad
# rows are collected, so that one run over a file names them all.

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ...core.errors import BadCase, BadOptions
from . import bfcl
from .case import KEYS, Case, read_case
from .collection import Cases, Skipped
from .row_files import RowSource
from .rows import BadRows, Errors, Others, Renaming, fold_metadata, listed, read_cell, rows_of

_ROW_KEYS = (*KEYS, "messages")


class HasColumns(Protocol):
    """A pandas frame."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""


class HasColumnNames(Protocol):
    """A Hugging Face data set."""

    @property
    def column_names(self) -> Any:
        """The names of its columns."""


CasesLike: TypeAlias = (
    Cases
    | str
    | os.PathLike[str]
    | Iterable[Case | Mapping[str, Any]]
    | HasColumns
    | HasColumnNames
    | Mapping[str, HasColumns | HasColumnNames]
)
"""Cases, a path or a name such as "bfcl", rows, a pandas frame, or a Hugging Face data set."""


def load_cases(
    source: CasesLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> Cases:
    """Return the cases of a file, a frame, a data set, rows or Case objects.

    A frame is pandas', a data set Hugging Face's.

    A file is JSONL, a JSON array, CSV or Parquet, by its suffix. Rows are mappings. The Berkeley
    Function Calling Leaderboard is ``"bfcl"``, ``"bfcl:live"`` or the path of its wheel (see
    `toolparse_lab.evals.cases.bfcl`).

    Args:
        columns: the names that the source uses, ``{"question": "input", "notes": None}``. None
            leaves a column out.
        others: the handling of columns that are unknown: an error, members of the metadata, or
            nothing.
        split: which part of a DatasetDict.
        errors: all unreadable rows in one error, or skipped and counted in `Cases.skipped`.

    Raises BadCase naming file, line and column for unreadable rows (`BadCase.rows` if there are
    several), UnreadableInput for a file that cannot, BadOptions for the arguments.

    >>> rows = [{"nr": 1, "question": "Weather in Oslo?", "target": []}]
    >>> load_cases(rows, columns={"nr": "id", "question": "input"})[0].input
    'Weather in Oslo?'
    """
    cases, bad = read_all(source, columns=columns, others=others, split=split, errors=errors)
    if bad is not None:
        bad.end(len(cases) + bad.count)
    if len(cases) == 0:
        rows = bad.source if bad is not None else RowSource("", iter(()))
        reason = bad.first_message if bad is not None else None
        raise rows.bad(
            "there are no cases in it", got=reason, expected="at least one row that can be read"
        )
    return cases


def read_all(
    source: Any,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> tuple[Cases, BadRows | None]:
    """Return the cases of a source, perhaps none, and its bad rows.

    The bad rows are None if the source has no rows of its own, but whole cases. The arguments and
    errors are those of `load_cases`, but for bad rows, which are collected.
    """
    # Made first, so that wrong options are reported for every kind of source.
    renaming = Renaming(_ROW_KEYS, columns or {}, others)
    if _has_no_rows(source):
        if columns or split is not None:
            raise BadOptions(
                "this source has no columns to name and no splits", got=str(source)[:80]
            )
        return _whole_cases(source), None

    rows = rows_of(source, split=split)
    renaming.check(rows)
    bad = BadRows(rows, errors)
    loading = _Loading(rows, renaming)
    for line, row in rows.rows:
        try:
            loading.add(line, row)
        except BadCase as e:
            bad.add(e)
    loading.check_columns()
    return Cases(loading.cases, rows.name, _skipped_rows(bad)), bad


def _has_no_rows(source: Any) -> bool:
    if isinstance(source, Cases):
        return True
    return isinstance(source, (str, Path)) and bfcl.is_address(source)


def _whole_cases(source: Cases | str | Path) -> Cases:
    if isinstance(source, Cases):
        return source
    return bfcl.load_address(source)


def _skipped_rows(bad: BadRows) -> list[Skipped]:
    if bad.count == 0:
        return []
    return [Skipped("rows that cannot be read", bad.count, bad.first_message or "")]


@dataclass(slots=True)
class _Loading:
    # The cases of one source so far, and the facts known only of all rows together.
    source: RowSource
    renaming: Renaming
    cases: list[Case] = field(default_factory=list)
    lines: dict[str, int | None] = field(default_factory=dict)  # by the id of the case
    absent: set[str] = field(init=False)  # mapped columns that no row has had yet

    def __post_init__(self) -> None:
        self.absent = set(self.renaming.columns)

    def add(self, line: int | None, row: Any) -> None:
        if self.absent and isinstance(row, Mapping):
            self.absent.difference_update(row)

        case = row if isinstance(row, Case) else case_of(row, self.renaming, self.source, line)
        if case.id in self.lines:
            first = f"{self.source.unit} {self.lines[case.id]}"
            raise self.source.bad(
                "this id was used before",
                line,
                got=case.id,
                expected=f"an id of its own (the other one is in {first})",
            )

        self.lines[case.id] = line
        self.cases.append(case)

    def check_columns(self) -> None:
        # Only for sources that do not name their columns before the first row: `Renaming.check` has
        # checked the others.
        if not self.absent or not self.cases:
            return
        if self.source.columns is None:
            column = min(self.absent)
            hint = "columns= maps a name of your source to one of ours: {'question': 'input'}"
            raise self.source.bad(
                "no row has this column, which is mapped", column=column, got=column, hint=hint
            )


def case_of(row: Any, renaming: Renaming, source: RowSource, line: int | None) -> Case:
    """Return one row as a Case.

    row: a mapping under the source's own names, or the BadCase that stands for it.

    Raises BadCase naming the place.
    """
    if isinstance(row, BadCase):
        raise row
    if not isinstance(row, Mapping):
        raise source.bad(
            "a case is a JSON object", line, got=row, expected="an object with " + ", ".join(KEYS)
        )
    members, origins = renaming.apply(row, source, line)
    return case_of_members(members, origins, source, line)


def case_of_members(
    members: dict[str, Any], origins: Mapping[str, str], source: RowSource, line: int | None
) -> Case:
    """Return members under their known names as a Case.

    members: name -> value. Changed on the way.
    origins: the column that each member is from.

    Raises BadCase naming the row and, in a table, the column.
    """
    place = _Place(source, line, origins if source.table else {})
    if "messages" in members:
        _read_messages(members, place)
    fold_metadata(members, source, line)

    for name in ("tools", "target", "results"):
        if name in members:
            text = f"{name} of case {members.get('id')!r}"
            members[name] = place.read_cell(members[name], text, name)
            # Only tables keep a list of objects by column; elsewhere an object is one object.
            if source.table:
                members[name] = listed(members[name])

    if source.table:
        _read_table_cells(members, place)
    return read_case(members, source=source.name, line=line, unit=source.unit)


@dataclass(frozen=True, slots=True)
class _Place:
    # `origins`: the column of each member, in a table.
    source: RowSource
    line: int | None
    origins: Mapping[str, str]

    def read_cell(self, cell: Any, text: str, member: str) -> Any:
        return read_cell(cell, text, self.source, self.line, self.origins.get(member))

    def bad(self, message: str, member: str, **more: Any) -> BadCase:
        return self.source.bad(message, self.line, self.origins.get(member), **more)


def _read_messages(members: dict[str, Any], place: _Place) -> None:
    if "input" in members:
        raise place.bad(
            "a case has an input or messages, not both",
            "messages",
            hint="leave one out by columns=",
        )

    cell = place.read_cell(members.pop("messages"), "messages", "messages")
    messages = listed(cell)
    # Without this a text would pass for the input itself.
    if isinstance(messages, str):
        raise place.bad("messages are a list", "messages", got=messages)
    members["input"] = messages


def _read_table_cells(members: dict[str, Any], place: _Place) -> None:
    # Tables keep objects as JSON text, and some keep tools and calls in OpenAI's own shape.
    metadata = members.get("metadata")
    if isinstance(metadata, str):
        members["metadata"] = place.read_cell(metadata, "metadata", "metadata")

    tools = members.get("tools")
    if isinstance(tools, list):
        members["tools"] = [_tool(tool, place) for tool in tools]

    target = members.get("target")
    if isinstance(target, list):
        members["target"] = [_call(call, place) for call in target]


def _tool(cell: Any, place: _Place) -> Any:
    tool = place.read_cell(cell, "tool", "tools")
    if not isinstance(tool, Mapping):
        return tool

    # OpenAI puts the definition one level deeper.
    if isinstance(tool.get("function"), Mapping):
        return {**tool, "function": _tool(tool["function"], place)}

    schemas = {
        key: place.read_cell(tool[key], key, "tools")
        for key in ("parameters", "inputSchema")
        if key in tool
    }
    return {**tool, **schemas}


def _call(cell: Any, place: _Place) -> Any:
    call = place.read_cell(cell, "wanted call", "target")
    if not isinstance(call, Mapping):
        return call

    # A call that has a name or arguments of its own is none of OpenAI's.
    has_own_members = bool({"name", "arguments"} & call.keys())
    if isinstance(call.get("function"), Mapping) and not has_own_members:
        call = call["function"]

    arguments = call.get("arguments")
    if isinstance(arguments, str):
        return {**call, "arguments": place.read_cell(arguments, "arguments", "target")}
    return call
