"""The columns of another's log: what each means, and how leniently its cells are read.

A column is named by the caller, by its own name where that is one of `NAMES`, or by `GUESSES` if it
has a name that is common elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from ...core.errors import BadCase, BadOptions
from ...core.values import read_strict
from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import Errors, Others, Renaming, json_value
from ...evals.frames.columns import columns_of
from ...runner.exchange.redaction import is_secret_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The options of `Lab.ingest`. Raises BadOptions for `max_rows` below 1."""

    tools: Any = None
    cases: Any = None
    columns: Mapping[str, str | None] | None = None
    others: Others = "metadata"
    model: str | None = None
    protocol: Any = "auto"
    errors: Errors = "skip"
    split: str | None = None
    max_rows: int | None = None
    shape: str | None = None
    requests: Any = None

    def __post_init__(self) -> None:
        most = self.max_rows
        if most is not None and (isinstance(most, bool) or most < 1):
            raise BadOptions("max_rows is the most rows that are read", got=most, expected=">= 1")


# Name -> what a column of this name contains, and words of other logs for it: the first that is
# there in order of trust, where no column has the name.
_FIELDS: Mapping[str, tuple[str, ...]] = {
    "raw": ("The model's text, character by character.",),
    "output": (
        "The answer as text; JSON of a response object or a message is read as one.",
        "completion", "raw_output", "output_text", "generated_text", "generation", "model_output",
        "answer", "text", "content",
    ),
    "response": (
        "A response object, its JSON, its chunks, or the text of its event stream.",
        "raw_response", "response_body", "response_json", "result",
    ),
    "tool_calls": ("The provider's own calls, beside a text.",),
    "messages": (
        "The conversation as asked; where no other column holds the answer, its last message is "
        "it.",
    ),
    "input": (
        "What was asked: a text, or messages.", "prompt", "question", "query", "user_input",
    ),
    "request": (
        "The request as sent; its messages, tools and model count where no column says them.",
        "request_body", "model_parameters",
    ),
    "tools": ("Tool definitions, or their JSON.", "tools_json", "functions", "available_tools"),
    "target": (
        "The calls that are right, as in a case.",
        "target_json", "expected_calls", "expected_tool_calls",
    ),
    "case_id": (
        "The case that was asked.",
        "custom_id", "example_id", "sample_id", "question_id", "task_id", "id",
    ),
    "trial": (
        "The repetition, from 0; counted in order where it is left out.", "repetition", "epoch",
    ),
    "model": ("The model.", "model_name", "model_id", "engine"),
    "served_model": ("The model that answered, where another one was asked.", "response_model"),
    "served_by": ("Who answered behind a router.",),
    "endpoint": ("The path or the address that was asked.",),
    "prompt_protocol": (
        "The format the model was told to write; `auto` where nobody knows.", "protocol",
    ),
    "arm": ("A name for what was varied, where the protocol is not all.",),
    "tool_choice": ("`auto`, `required`, `none`, or the tool that had to be called.",),
    "reasoning": (
        "What the model thought, where it was kept apart.", "reasoning_content", "thinking",
    ),
    "finish_reason": ("Why the answer ended.", "stop_reason"),
    "error": (
        "A failed call: its class, its message, or an object with both.",
        "exception", "error_type", "error_class",
    ),
    "error_message": ("The message of a failed call.", "error_str"),
    "status": ("`error` or `failure` says that the call failed.",),
    "prompt_tokens": ("Tokens sent.", "input_tokens"),
    "completion_tokens": ("Tokens received.", "output_tokens"),
    "cost": ("US dollars.",),
    "latency": ("Seconds from request to end.",),
    "ttft": ("Seconds from request to the first chunk.",),
    "created": (
        "When it was answered: ISO time, or seconds or milliseconds since 1970.",
        "created_at", "timestamp",
    ),
    "stream": ("True if the answer came as a stream.",),
    "cut": ("Whether the stream ended without a finish part.",),
    "endpoint_kind": ("`raw_completion` for a text that no chat template was around.",),
    "arguments_text": (
        "`lost` where the calls' arguments were kept as objects: strictness is not judged there.",
    ),
    "system_fingerprint": ("The server's own version mark.",),
    "raw_surrogates_json": ("In frames of this package: what `raw` could not hold.",),
    "metadata": ("An object of your own; so is every column `metadata_…`.",),
}  # fmt: skip
NAMES: Mapping[str, str] = {name: meaning for name, (meaning, *_) in _FIELDS.items()}
"""Name -> what a column of this name contains."""
GUESSES: Mapping[str, tuple[str, ...]] = {
    **{name: tuple(words) for name, (_, *words) in _FIELDS.items() if words},
    "metadata_category": ("category",),
}
"""Name -> words of other logs for it: the first that is there, where no column has the name."""
ANSWERS = (
    "raw or output (the model's text), response (a response object or its JSON), messages, or error"
)
CREDENTIAL = "?"
"""In place of a name: the column has the name of a credential, and is never looked at."""
LARGEST = 2**31  # what a database's integers hold
_REMEMBERED = 1000  # sets of columns; rows of JSONL may each have their own
# Together they are only in a trials frame of this package.
_OURS = frozenset({"trial_id", "parse_protocol", "policy", "completion_key"})
# Columns that can hold an answer.
_ANSWER_NAMES = frozenset({"raw", "output", "tool_calls", "response", "messages", "error"})
# From here on a time is in milliseconds: in seconds it would be the year 5138.
_MILLISECONDS = 10**11
_LONGEST_TIME = 40  # characters; ISO time has at most 32


class ColumnNames:
    """The names of one source's columns, looked up once for each set of them.

    source: the rows, which have columns of their own where they are a table. columns: column ->
    name, or None to leave it out. The caller's word goes before all others. others: the handling of
    columns that no one knows: 'metadata', 'drop' or 'error'. Raises BadOptions and BadCase for
    columns that are not there, or that cannot be told apart.
    """

    def __init__(self, source: RowSource, settings: Settings) -> None:
        self._source = source
        self._renaming = Renaming(tuple(NAMES), settings.columns or {}, settings.others)
        # The same columns were mostly looked up before: (column, name) of those taken over, and
        # the column of each name.
        self._of = lru_cache(_REMEMBERED)(lambda columns: tuple(self._look_up(columns)))
        self._keys = lru_cache(_REMEMBERED)(self._look_up_keys)
        self.awaited = frozenset(self._renaming.columns)
        """Columns that are mapped, of which it is not known yet that they are there."""
        if source.columns is None:
            return
        # A table has its columns before its first row.
        there = tuple(source.columns)
        missing = [c for c in self._renaming.columns if c not in there]
        if missing:
            raise source.bad(
                "there is no such column", column=missing[0], expected=", ".join(there)
            )
        self.awaited = frozenset()
        if not {name for _, name in self._of(there)} & _ANSWER_NAMES:
            raise source.bad(
                "no column holds the answers",
                got=", ".join(there),
                expected=ANSWERS,
                hint='say which one it is: columns={"my column": "raw"}',
            )

    def taken(self, row: Mapping[Any, Any]) -> tuple[tuple[Any, str], ...]:
        """Return (column, name) of a row's columns taken over, or `CREDENTIAL` for the name."""
        return self._of(tuple(row))

    def keys_of(self, row: Mapping[Any, Any]) -> dict[str, str]:
        """Return the row's own column of each name; a name that it lacks is its own."""
        return self._keys(tuple(row))

    def _look_up_keys(self, columns: tuple[str, ...]) -> dict[str, str]:
        own = {name: str(column) for column, name in self._of(columns)}
        return {**dict(zip(NAMES, NAMES, strict=True)), **own}

    def _look_up(self, columns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        # As mapped, by their own names, by guess, as others.
        mapped = self._renaming.columns
        names = {column: name for column, name in mapped.items() if column in columns}
        used = {name for name in names.values() if name}
        # `Finish-Reason` is `finish_reason`.
        words = {
            column: str(column).strip().casefold().replace("-", "_").replace(" ", "_")
            for column in columns
            if column not in mapped
        }
        for column, word in words.items():
            if word not in NAMES:
                continue
            if word in used:
                raise self._source.bad(
                    f"two columns are the {word}",
                    column=str(column),
                    hint=f"leave one out: columns={{{column!r}: None}}",
                )
            names[column] = word
            used.add(word)

        # Backwards, so that of two columns with one word the first is taken.
        free = {word: column for column, word in reversed(words.items()) if column not in names}
        for name, guesses in GUESSES.items():
            guess = next((guess for guess in guesses if guess in free), None)
            if guess is not None and name not in used:
                names[free.pop(guess)] = name

        # Only a trials frame of ours has columns that follow from the answer: results of parsing
        # and scoring it.
        ours = _OURS.issubset(words)
        derived = {column.name for column in columns_of("trials")} if ours else set()
        for column in columns:
            meaning = names.get(column)
            if column not in names and column not in derived:
                meaning = self._other(column)
            if meaning:
                yield column, meaning

    def _other(self, label: str) -> str | None:
        # None drops the column. A table may have names that are not strings. What the caller keeps
        # is metadata.
        column = str(label)
        if column.startswith("metadata_"):
            return label
        if self._renaming.others == "error":
            raise self._source.bad(
                "unknown column",
                column=column,
                expected=", ".join(NAMES),
                hint=f'say what it is: columns={{{column!r}: "metadata_{column}"}}, or None to '
                "leave it out",
            )
        if self._renaming.others == "drop":
            return None
        return CREDENTIAL if is_secret_name(column) else f"metadata_{column}"


@dataclass(frozen=True, slots=True)
class Place:
    """The row that is read. line: its number in the source, None if rows have none.

    shape: the name of its shape, if it has one. keys: where the row has each of our columns.
    """

    source: RowSource
    line: int | None
    shape: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)

    def bad(self, message: str, column: str | None = None, **more: Any) -> BadCase:
        """Return an error about this row. more: got, expected and hint.

        column: the name of the cell's column, None if the whole row is wrong.
        """
        if self.shape:
            message = f"{self.shape}: {message}"
        if column is not None:
            column = self.keys.get(column, column)
        return self.source.bad(message, self.line, column, **more)

    def json(self, x: Any, column: str) -> Any:
        """Return a cell as plain JSON, of whatever library it comes from. Raises BadCase."""
        return (
            x
            if self.source.from_json
            else json_value(x, self.source, self.line, self.keys.get(column, column))
        )

    def number(self, x: Any, kind: type, column: str) -> Any:
        """Return a cell, a number or its text, as an int or a float.

        Whole numbers must fit a database's integer. Raises BadCase for anything else.
        """
        whole = kind is int
        try:
            value = math.nan if isinstance(x, bool) else float(x)
        except (TypeError, ValueError, OverflowError):
            value = math.nan
        fits = math.isfinite(value)
        if not fits or (whole and not (value.is_integer() and abs(value) < LARGEST)):
            raise self.bad(f"this is no {'whole ' if whole else ''}number", column, got=x)
        return kind(value)

    def time(self, x: Any) -> str:
        """Return a cell as ISO time: seconds or milliseconds since 1970, or a text as it is.

        '' for none. A text is cut and not looked into.
        """
        if x is None:
            return ""
        is_number = isinstance(x, (int, float)) and not isinstance(x, bool)
        if is_number and 0 < x < _MILLISECONDS * 1000:
            seconds = x / 1000 if x >= _MILLISECONDS else x
            return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
        return str(self.json(x, "created"))[:_LONGEST_TIME]

    def mapping(self, x: Any, column: str) -> Mapping[str, Any] | None:
        """Return a cell as an object, or its `body` if it has one; None if there is none, or where
        it is someone's own words instead of JSON.

        x: a mapping, its JSON text, or an object of a library. Raises BadCase for another value.
        """
        if isinstance(x, str):
            x = json_or_text(x)
        if x is None or isinstance(x, str):
            return None
        x = self.json(x, column)
        if not isinstance(x, Mapping):
            raise self.bad(f"the {column} is no object", column, got=x)
        # Lines of batch interfaces put the request proper one level down.
        body = x.get("body")
        return body if isinstance(body, Mapping) else x


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
    """Return the value that a text is the JSON of, or the text itself if it is none.

    >>> json_or_text('{"a": 1}'), json_or_text("{a: 1}")
    ({'a': 1}, '{a: 1}')
    """
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return text


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
    function = choice.get("function")
    name = (function if isinstance(function, Mapping) else choice).get("name")
    return {"name": name} if isinstance(name, str) else "auto"
