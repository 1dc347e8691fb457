"""Tools that run without code: rows of a case say what a call of a tool gives back.

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
from ..scoring.match import agree
from .target import Complaint, check_target

Row: TypeAlias = Mapping[str, Any]
_KEYS = ("name", "arguments", "output", "default")
_SHAPE = '[{"name": …, "arguments": {…}, "output": …}]'


def check_results(rows: Any, tools: Sequence[ToolSpec]) -> Complaint | None:
    """Return the first complaint about the member `results` of a case, of any form, or None.

    tools: the case's own, which the rows have to name.
    """
    if not isinstance(rows, list):
        return "results is no list", rows, _SHAPE

    names = [tool.name for tool in tools]
    defaults: set[str] = set()  # the tools that have one already
    for i, row in enumerate(rows):
        place = f"results[{i}]"
        if not isinstance(row, Mapping):
            return f"{place} is no object", row, _SHAPE
        if unknown := [str(key) for key in row if key not in _KEYS]:
            return f"{place} has an unknown key {unknown[0]!r}", unknown[0], ", ".join(_KEYS)
        name = row.get("name")
        if name not in names:
            expected = ", ".join(names) or "a tool in `tools`"
            return f"{place}.name is no tool of the case", name, expected
        # An output may be null, which is why the member itself is asked for.
        if "output" not in row:
            return f"{place} has no output", dict(row), _SHAPE
        if not isinstance(row.get("default", False), bool):
            return f"{place}.default is true or false", row["default"], "true"

        if row.get("default"):
            if "arguments" in row or name in defaults:
                message = f"{place} is a second default, or one with arguments"
                return message, dict(row), "one default for a tool"
            defaults.add(name)
        elif complaint := check_target([{k: row[k] for k in ("name", "arguments") if k in row}]):
            message, actual, expected = complaint
            return f"{place}.arguments: {message}", actual, expected
    return None


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
        own = [row for row in rows if row["name"] == name]
        self._name = name
        self._tools = tools
        self._fitted = [row for row in own if "arguments" in row]
        # Rows that answer one call each, in order.
        self._ordered = [row for row in own if "arguments" not in row and not row.get("default")]
        self._default = next((r for r in own if r.get("default") and "arguments" not in r), None)
        self._used: set[int] = set()  # indexes into `_fitted`

    def __call__(self, /, **arguments: Any) -> Any:
        # As if the model had written them, so that numbers are compared by their digits.
        call = [(self._name, read_strict(write_canonical(dict(arguments))))]
        fitting = [
            i
            for i, row in enumerate(self._fitted)
            if agree(call, [{"name": self._name, "arguments": row["arguments"]}], self._tools)
        ]
        row = self._default
        if fitting:
            # The next row of these arguments, or the last one again.
            chosen = next((i for i in fitting if i not in self._used), fitting[-1])
            self._used.add(chosen)
            row = self._fitted[chosen]
        elif self._ordered:
            row = self._ordered.pop(0)

        # To the model this is an answer like any other, so that the conversation goes on.
        if row is None:
            return {"type": "error-text", "value": "there is no result for these arguments"}
        return row["output"]
