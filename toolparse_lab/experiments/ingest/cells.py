"""Cells of another's rows: their kinds read leniently, for logs are written in many ways."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ...core.errors import BadCase
from ...core.values import read_strict
from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import json_value

LARGEST = 2**31  # what a database's integers hold
# From here on a time is meant in milliseconds: in seconds it would be the year 5138.
_MILLISECONDS = 10**11
_LONGEST_TIME = 40  # characters; ISO time has at most 32


@dataclass(frozen=True, slots=True)
class Place:
    """The row that is read. line: its number in the source, None if rows have none."""

    source: RowSource
    line: int | None

    def bad(self, message: str, column: str | None = None, **more: Any) -> BadCase:
        """Return an error about this row. more: got, expected and hint.

        column: the name of the cell's column, None if the whole row is wrong.
        """
        return self.source.bad(message, self.line, column, **more)

    def json(self, x: Any, column: str) -> Any:
        """Return a cell as plain JSON, of whatever library it comes from.

        Raises BadCase.

        x: a cell, perhaps of NumPy or pandas. column: the name of its column, for the error.
        """
        return json_value(x, self.source, self.line, column)


def is_true(x: Any) -> bool:
    """Return True if a cell says yes: true, its word, or NumPy's.

    >>> is_true("True"), is_true(1), is_true("yes")
    (True, False, False)
    """
    if x is True:
        return True
    if isinstance(x, str):
        return x.lower() == "true"
    return hasattr(x, "item") and x.item() is True


def json_or_text(text: str) -> Any:
    """Return the value that a text is the JSON of.

    The text itself if it is none.

    >>> json_or_text('{"a": 1}'), json_or_text("{a: 1}")
    ({'a': 1}, '{a: 1}')
    """
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return text


def number_of(place: Place, x: Any, kind: type, column: str) -> Any:
    """Return a cell as an int or a float.

    Raises BadCase for anything that is no such number.

    place: the row, for the error.
    x: the cell, a number or its text.
    kind: `int` or `float`. Whole numbers must fit a database's integer.
    column: the name of the cell's column.
    """
    whole = kind is int
    value = _float_of(x)
    fits = math.isfinite(value) and not isinstance(x, bool)
    if fits and whole:
        fits = value.is_integer() and abs(value) < LARGEST

    if not fits:
        raise place.bad(f"this is no {'whole ' if whole else ''}number", column, got=x)

    return kind(value)


def _float_of(x: Any) -> float:
    try:
        return float(x)
    except (TypeError, ValueError, OverflowError):
        return math.nan


def time_of(place: Place, x: Any) -> str:
    """Return a cell as ISO time: seconds or milliseconds since 1970, or a text as it is. '' for
    none.

    place: the row, for errors.
    x: the cell. A text is cut to `_LONGEST_TIME` characters and not looked into.
    """
    if x is None:
        return ""

    if _is_number(x) and 0 < x < _MILLISECONDS * 1000:
        seconds = x / 1000 if x >= _MILLISECONDS else x
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")

    return str(place.json(x, "created"))[:_LONGEST_TIME]


def _is_number(x: Any) -> bool:
    # A truth value is one of Python's integers, but not a number here.
    return isinstance(x, (int, float)) and not isinstance(x, bool)


def mapping_of(place: Place, x: Any, column: str) -> Mapping[str, Any] | None:
    """Return a cell as an object, the `body` of one that has it.

    Raises BadCase for another value.

    None if there is none, or where it is someone's own words instead of JSON.

    place: the row, for errors.
    x: a mapping, its JSON text, or an object of a library.
    column: the name of the cell's column.
    """
    if isinstance(x, str):
        x = json_or_text(x)

    if x is None or isinstance(x, str):
        return None

    x = place.json(x, column)
    if not isinstance(x, Mapping):
        raise place.bad(f"the {column} is no object", column, got=x)

    # Lines of batch interfaces put the request proper one level down.
    body = x.get("body")
    return body if isinstance(body, Mapping) else x


def tool_choice_of(choice: Any) -> Any:
    """Return a cell as a tool choice: `required`, `none`, {"name": …}.

    Anything else is `auto`.

    >>> tool_choice_of('{"type": "function", "function": {"name": "f"}}')
    {'name': 'f'}
    """
    if isinstance(choice, str) and choice[:1] == "{":
        choice = json_or_text(choice)

    if not isinstance(choice, Mapping):
        return choice if choice in ("required", "none") else "auto"

    name = _name_in(choice)
    return {"name": name} if isinstance(name, str) else "auto"


def _name_in(choice: Mapping[str, Any]) -> Any:
    # In itself or in its member `function`.
    function = choice.get("function")
    if isinstance(function, Mapping):
        return function.get("name")

    return choice.get("name")
