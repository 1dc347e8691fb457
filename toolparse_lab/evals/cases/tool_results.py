"""Tools that run without code: rows of a case say the parts that a call of a tool gives back.

A row is ``{"name", "arguments", "output"}``, or without ``arguments``, or ``{"name", "output",
"default": true}``. A call is answered by the first of

1. a row of its name and arguments that was not used yet, or the last such row, so that a repeated
   call is answered.
2. the next row of its name without arguments.
3. the default of its name.

and by an error if there is none. Arguments are compared as a target's are: numbers as decimals,
alternatives by ``{"$any": […]}``, a default of the schema may be absent. An output is anything
that JSON can say, or an object of ``type`` text, json, error-text, error-json, execution-denied or
content (texts, images and files).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...core.toolspec import ToolSpec
from ...core.values import read_strict, write_canonical
from ..scoring.match import match_calls
from .target import Complaint, check_target

Row: TypeAlias = Mapping[str, Any]
_KEYS = ("name", "arguments", "output", "default")
_SHAPE = '[{"name": …, "arguments": {…}, "output": …}]'


def check_results(rows: Any, tools: Sequence[ToolSpec]) -> Complaint | None:
    """Return the first complaint about the rows of a case, or None if all is well.

    rows: the member `results` as it was read, of any form.
    tools: the case's own, which the rows have to name.
    """
    if not isinstance(rows, list):
        return "results is no list", rows, _SHAPE

    names = [tool.name for tool in tools]
    defaults: set[str] = set()  # the tools that have one already
    for i, row in enumerate(rows):
        complaint = _check_row(f"results[{i}]", row, names, defaults)
        if complaint is not None:
            return complaint
    return None


def _check_row(place: str, row: Any, names: Sequence[str], defaults: set[str]) -> Complaint | None:
    # defaults: the tools that have a default so far; the row's own is added.
    if not isinstance(row, Mapping):
        return f"{place} is no object", row, _SHAPE
    complaint = _check_members(place, row, names)
    if complaint is not None:
        return complaint
    if not row.get("default"):
        return _check_arguments(place, row)

    name = str(row["name"])
    if "arguments" in row or name in defaults:
        message = f"{place} is a second default, or one with arguments"
        return message, dict(row), "one default for a tool"
    defaults.add(name)
    return None


def _check_members(place: str, row: Row, names: Sequence[str]) -> Complaint | None:
    for key in row:
        if key not in _KEYS:
            return f"{place} has an unknown key {str(key)!r}", str(key), ", ".join(_KEYS)

    name = row.get("name")
    if name not in names:
        expected = ", ".join(names) or "a tool in `tools`"
        return f"{place}.name is no tool of the case", name, expected

    # An output may be null, which is why the member itself is asked for.
    if "output" not in row:
        return f"{place} has no output", dict(row), _SHAPE
    if not isinstance(row.get("default", False), bool):
        return f"{place}.default is true or false", row["default"], "true"
    return None


def _check_arguments(place: str, row: Row) -> Complaint | None:
    call = {key: row[key] for key in ("name", "arguments") if key in row}
    complaint = check_target([call])
    if complaint is None:
        return None
    message, actual, expected = complaint
    return f"{place}.arguments: {message}", actual, expected


def runnable_of(rows: Sequence[Row], tools: Sequence[ToolSpec]) -> dict[str, Callable[..., Any]]:
    """Return a function for every tool that rows answer for.

    The functions count which rows were used: make new ones for each conversation.

    rows: as `check_results` allows them.

    >>> tools = [ToolSpec("roll", "", "{}")]
    >>> rows = [{"name": "roll", "output": 4}, {"name": "roll", "output": 6}]
    >>> roll = runnable_of(rows, tools)["roll"]
    >>> roll(), roll(), roll()
    (4, 6, {'type': 'error-text', 'value': 'there is no result for these arguments'})
    """
    names = dict.fromkeys(str(row["name"]) for row in rows)
    return {name: _Answers(name, rows, tools) for name in names}


class _Answers:
    def __init__(self, name: str, rows: Sequence[Row], tools: Sequence[ToolSpec]) -> None:
        self._name = name
        self._tools = tools
        self._fitted: list[Row] = []  # rows that answer certain arguments
        self._ordered: list[Row] = []  # rows that answer one call each, in order
        self._default: Row | None = None
        self._used: set[int] = set()  # indexes into `_fitted`
        for row in rows:
            if row["name"] == name:
                self._add(row)

    def _add(self, row: Row) -> None:
        # The first default counts.
        if "arguments" in row:
            self._fitted.append(row)
        elif not row.get("default"):
            self._ordered.append(row)
        elif self._default is None:
            self._default = row

    def __call__(self, /, **arguments: Any) -> Any:
        # A row in order is used up by the call it answers.
        row = self._fitting(arguments)
        if row is None and self._ordered:
            row = self._ordered.pop(0)
        elif row is None:
            row = self._default

        # To the model this is an answer like any other, so that the conversation goes on.
        if row is None:
            return {"type": "error-text", "value": "there is no result for these arguments"}
        return row["output"]

    def _fitting(self, arguments: Mapping[str, Any]) -> Row | None:
        # The next row of these arguments, or the last one again.
        indexes = self._fitting_indexes(arguments)
        if not indexes:
            return None

        unused = [i for i in indexes if i not in self._used]
        chosen = unused[0] if unused else indexes[-1]
        self._used.add(chosen)
        return self._fitted[chosen]

    def _fitting_indexes(self, arguments: Mapping[str, Any]) -> list[int]:
        # As if the model had written them, so that numbers are compared by their digits.
        call = [(self._name, read_strict(write_canonical(dict(arguments))))]
        indexes = []
        for i, row in enumerate(self._fitted):
            target = [{"name": self._name, "arguments": row["arguments"]}]
            if match_calls(call, target, self._tools).ok:
                indexes.append(i)
        return indexes
