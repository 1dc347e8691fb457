"""Tools that run without code: rows of a case say what a call of a tool gives back.

A row is ``{"name", "arguments", "output"}``, or without ``arguments``, or ``{"name", "output", "default": true}``. A
call is answered by the first of

1. a row of its name and arguments that was not used yet, or the last such row, so that a repeated call is answered;
2. the next row of its name without arguments;
3. the default of its name;

and by an error where there is none. Arguments are compared as a target's are: numbers as decimals, alternatives by
``{"$any": […]}``, a default of the schema may be left out. An output is anything that JSON can say, or an object of
``type`` text, json, error-text, error-json, execution-denied or content (texts, images and files).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ...toolspec import ToolSpec
from ...values import read_strict, write_canonical
from ..scoring.match import match_calls
from .target import check_target

Row: TypeAlias = Mapping[str, Any]
_KEYS = ("name", "arguments", "output", "default")
_SHAPE = '[{"name": …, "arguments": {…}, "output": …}]'


def check_results(rows: Any, tools: Sequence[ToolSpec]) -> tuple[str, Any, str] | None:
    """What is wrong with the rows of a case, as (message, got, expected); None where nothing is."""
    if not isinstance(rows, list):
        return "results is no list", rows, _SHAPE
    defaults: set[str] = set()
    for i, row in enumerate(rows):
        at = f"results[{i}]"
        if not isinstance(row, Mapping):
            return f"{at} is no object", row, _SHAPE
        if unknown := [str(k) for k in row if k not in _KEYS]:
            return f"{at} has an unknown key {unknown[0]!r}", unknown[0], ", ".join(_KEYS)
        name = row.get("name")
        if all(t.name != name for t in tools):
            return f"{at}.name is no tool of the case", name, ", ".join(t.name for t in tools) or "a tool in `tools`"
        if "output" not in row:
            return f"{at} has no output", dict(row), _SHAPE
        if not isinstance(row.get("default", False), bool):
            return f"{at}.default is true or false", row["default"], "true"
        if row.get("default"):
            if "arguments" in row or name in defaults:
                return f"{at} is a second default, or one with arguments", dict(row), "one default for a tool"
            defaults.add(str(name))
        elif complaint := check_target([{k: row[k] for k in ("name", "arguments") if k in row}]):
            return f"{at}.arguments: {complaint[0]}", complaint[1], complaint[2]
    return None


def runnable_of(rows: Sequence[Row], tools: Sequence[ToolSpec]) -> dict[str, Callable[..., Any]]:
    """A function for every tool that rows answer for. They count what was used: make new ones for each conversation.

    >>> tools = [ToolSpec("roll", "", "{}")]
    >>> roll = runnable_of([{"name": "roll", "output": 4}, {"name": "roll", "output": 6}], tools)["roll"]
    >>> roll(), roll(), roll()
    (4, 6, {'type': 'error-text', 'value': 'there is no result for these arguments'})
    """
    return {name: _Answers(name, rows, tools) for name in dict.fromkeys(str(row["name"]) for row in rows)}


class _Answers:
    def __init__(self, name: str, rows: Sequence[Row], tools: Sequence[ToolSpec]) -> None:
        mine = [row for row in rows if row["name"] == name]
        self._name = name
        self._tools = tools
        self._fitted = [row for row in mine if "arguments" in row]
        self._ordered = [row for row in mine if "arguments" not in row and not row.get("default")]
        self._default = next((row for row in mine if row.get("default")), None)
        self._used: set[int] = set()

    def __call__(self, /, **arguments: Any) -> Any:
        row = self._fitting(arguments) or (self._ordered.pop(0) if self._ordered else self._default)
        if row is None:
            return {"type": "error-text", "value": "there is no result for these arguments"}
        return row["output"]

    def _fitting(self, arguments: Mapping[str, Any]) -> Row | None:
        said = [(self._name, read_strict(write_canonical(dict(arguments))))]
        fits = [
            i for i, row in enumerate(self._fitted)
            if match_calls(said, [{"name": self._name, "arguments": row["arguments"]}], self._tools).ok
        ]  # fmt: skip
        if not fits:
            return None
        chosen = next((i for i in fits if i not in self._used), fits[-1])
        self._used.add(chosen)
        return self._fitted[chosen]
