"""`load_cases`: cases from files, frames, data sets and rows, and those the package ships."""

# How it works. A source becomes rows (`rows.rows_of`), a row becomes members under known names, and
# members become a case (`case.read_case`), which knows nothing of tables. What tables do otherwise
# (JSON as text in cells, objects of lists, OpenAI's shape of a tool) is undone here on the way. Bad
# rows are collected, so that one run over a file names them all.

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from ...core.errors import BadCase, BadOptions, UnreadableInput
from .case import KEYS, Case, read_case
from .collection import Cases, Skipped
from .row_files import RowSource
from .rows import BadRows, Errors, Others, Renaming, fold_metadata, listed, read_cell, rows_of
from .target import rule_of

_ROW_KEYS = (*KEYS, "messages")


class HasColumns(Protocol):
    """A pandas frame."""

    @property
    def columns(self) -> Any: ...


class HasColumnNames(Protocol):
    """A Hugging Face data set."""

    @property
    def column_names(self) -> Any: ...


CasesLike: TypeAlias = (
    Cases
    | str
    | os.PathLike[str]
    | Iterable[Case | Mapping[str, Any]]
    | HasColumns
    | HasColumnNames
    | Mapping[str, HasColumns | HasColumnNames]
)
"""Cases, a path, rows, a pandas frame, or a Hugging Face data set."""


def load_cases(
    source: CasesLike,
    *,
    columns: Mapping[str, str | None] | None = None,
    others: Others = "error",
    split: str | None = None,
    errors: Errors = "raise",
) -> Cases:
    """Return the cases of a file, a frame, a data set, rows or Case objects.

    A file is JSONL, a JSON array, CSV or Parquet, by its suffix. A frame is one of pandas, a data
    set one of Hugging Face. Rows are mappings.

    Args:
        columns: the names that the source uses, ``{"question": "input", "notes": None}``. None
            leaves a column out.
        others: what to do with unknown columns: "error", "metadata" or "drop".
        split: which part of a DatasetDict.
        errors: "raise" reports all unreadable rows in one error, "skip" counts them in
            `Cases.skipped`.

    Raises BadCase naming file, line and column for unreadable rows (`BadCase.rows` if there are
    several), UnreadableInput for an unreadable file, BadOptions for bad arguments.

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
    """Return what `load_cases` does, perhaps no cases, and the source's bad rows, which are
    collected instead of raised; None if it has whole cases and no rows.
    """
    # Made first, so that wrong options are reported for every kind of source.
    renaming = Renaming(_ROW_KEYS, columns or {}, others)
    if isinstance(source, Cases):
        if columns or split is not None:
            raise BadOptions(
                "this source has no columns to name and no splits", got=str(source)[:80]
            )
        return source, None

    rows = rows_of(source, split=split)
    renaming.check(rows)
    bad = BadRows(rows, errors)
    cases: list[Case] = []
    lines: dict[str, int | None] = {}  # by the id of the case
    absent = set(renaming.columns)  # mapped columns that no row has had yet
    for line, row in rows.rows:
        if absent and isinstance(row, Mapping):
            absent.difference_update(row)
        try:
            case = row if isinstance(row, Case) else _case_of(row, renaming, rows, line)
            if case.id in lines:
                first = f"an id of its own (the other one is in {rows.unit} {lines[case.id]})"
                raise rows.bad("this id was used before", line, got=case.id, expected=first)
        except BadCase as e:
            bad.add(e)
            continue
        lines[case.id] = line
        cases.append(case)

    # Sources that name their columns before the first row were checked by `renaming`.
    if absent and cases and rows.columns is None:
        column = min(absent)
        hint = "columns= maps a name of your source to one of ours: {'question': 'input'}"
        raise rows.bad(
            "no row has this column, which is mapped", column=column, got=column, hint=hint
        )
    reason = bad.first_message or ""
    skipped = [Skipped("rows that cannot be read", bad.count, reason)] if bad.count else []
    return Cases(cases, rows.name, skipped), bad


def _case_of(row: Any, renaming: Renaming, source: RowSource, line: int | None) -> Case:
    # row: a mapping under the source's own names, or the BadCase in its place.
    if isinstance(row, BadCase):
        raise row
    if not isinstance(row, Mapping):
        expected = "an object with " + ", ".join(KEYS)
        raise source.bad("a case is a JSON object", line, got=row, expected=expected)
    return case_of_members(*renaming.apply(row, source, line), source, line)


def case_of_members(
    members: dict[str, Any], origins: Mapping[str, str], source: RowSource, line: int | None
) -> Case:
    """Return members under their known names, which are changed on the way, as a Case.

    origins: the column of each. Raises BadCase naming the row and, in a table, the column.
    """

    def read(cell: Any, text: str, member: str) -> Any:
        column = origins.get(member)
        # The member's own name is in the sentence already.
        return read_cell(
            cell, text, source, line, column if source.table or column != member else None
        )

    if "messages" in members:
        column = origins.get("messages") if source.table else None
        if "input" in members:
            message = "a case has an input or messages, not both"
            raise source.bad(message, line, column, hint="leave one out by columns=")
        messages = listed(read(members.pop("messages"), "messages", "messages"))
        # Without this a text would pass for the input itself.
        if isinstance(messages, str):
            raise source.bad("messages are a list", line, column, got=messages)
        members["input"] = messages
    fold_metadata(members, source, line)

    for name in ("tools", "target", "results"):
        if name in members:
            text = f"{name} of case {members.get('id')!r}"
            members[name] = read(members[name], text, name)
            # Only tables keep a list of objects by column; elsewhere an object is one object.
            if source.table:
                members[name] = listed(members[name])

    if source.table:
        # Tables keep objects as JSON text, and some keep tools and calls in OpenAI's own shape.
        if isinstance(members.get("metadata"), str):
            members["metadata"] = read(members["metadata"], "metadata", "metadata")
        for name, form in (("tools", _tool), ("target", _call)):
            if isinstance(members.get(name), list):
                members[name] = [form(cell, read) for cell in members[name]]
    return read_case(members, source=source.name, line=line, unit=source.unit)


def _tool(cell: Any, read: Callable[[Any, str, str], Any]) -> Any:
    tool = read(cell, "tool", "tools")
    if not isinstance(tool, Mapping):
        return tool
    # OpenAI puts the definition one level deeper.
    if isinstance(tool.get("function"), Mapping):
        return {**tool, "function": _tool(tool["function"], read)}
    schemas = ("parameters", "inputSchema")
    return {**tool, **{key: read(tool[key], key, "tools") for key in schemas if key in tool}}


def _call(cell: Any, read: Callable[[Any, str, str], Any]) -> Any:
    call = read(cell, "wanted call", "target")
    if not isinstance(call, Mapping):
        return call
    if (rule := rule_of(call)) and isinstance(call[rule], list):
        return {rule: [_call(one, read) for one in call[rule]]}
    # A call that has a name or arguments of its own is not in OpenAI's shape.
    if isinstance(call.get("function"), Mapping) and not {"name", "arguments"} & call.keys():
        call = call["function"]
    arguments = call.get("arguments")
    if isinstance(arguments, str):
        return {**call, "arguments": read(arguments, "arguments", "target")}
    return call


# the cases that come with the package

_PACKAGE = Path(__file__).resolve().parents[2]


def shipped_path(name: str) -> Path:
    """Return the path of a shipped file below the folder of data sets, which is inside an installed
    package, or next to it in a checkout. Raises UnreadableInput if it is in neither.
    """
    for base in (_PACKAGE / "datasets", _PACKAGE.parent / "datasets"):
        path = base / name
        if path.is_file():
            return path
    raise UnreadableInput(
        "a file that ships with toolparse_lab is missing", got=name, hint="install it again"
    )


def example_cases(*, demo: bool = False, types: bool = False) -> Cases:
    """Return the project's own cases.

    demo: only the short, easy ones for a model of 135M parameters. types: those about types, in
    English, and the short ones that want a call.

    >>> import toolparse_lab as tp
    >>> tp.example_cases()[0].id
    'single/weather-city'
    """
    cases = _shipped_cases("cases.jsonl", demo)
    if not types:
        return cases
    about = [c for c in cases if c.category == "types" and c.metadata.get("language") == "en"]
    short = [c for c in cases if c.metadata.get("demo") and c.target]
    return Cases(dict.fromkeys((*about, *short)), cases.source)


def example_conversations(*, demo: bool = False) -> Cases:
    """Return the project's own cases of several turns, whose tools have results.

    They are for plans with `max_turns` above 1. demo: as for `example_cases`.

    >>> import toolparse_lab as tp
    >>> len(tp.example_conversations()) > 0
    True
    """
    return _shipped_cases("conversations.jsonl", demo)


def _shipped_cases(name: str, demo: bool) -> Cases:
    cases = load_cases(shipped_path(name))
    return cases.filter(demo=True) if demo else cases


def example_recording(
    *, models: bool = False, conversations: bool = False, corrections: bool = False
) -> Path:
    """Return the path of recorded answers that ship, for `lab.replaying`.

    By default those of the embedded model to `example_cases`. models: those of two tool callers and
    the embedded model to the cases with `recorded` in their metadata, in seven protocols.
    conversations: the embedded model's, to the short ones of `example_conversations`. corrections:
    its, to `example_cases(types=True)`, with the questions about refused calls.

    >>> import toolparse_lab as tp
    >>> tp.example_recording().name
    'smollm2-135m.jsonl'
    """
    if models:
        return shipped_path("recordings/models.jsonl")
    kind = "-corrections" if corrections else "-conversations" if conversations else ""
    return shipped_path(f"recordings/smollm2-135m{kind}.jsonl")
