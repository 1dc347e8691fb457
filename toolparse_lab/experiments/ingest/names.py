"""The meaning of the columns of another's log.

A column is named by the caller, by its own name where that is one of `NAMES`, or by `GUESSES` if it
has a name that is common elsewhere.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ...evals.cases.row_files import RowSource
from ...evals.cases.rows import Others, Renaming
from ...evals.frames.columns import columns_of
from ...runner.exchange.redaction import is_secret_name

GUESSES: Mapping[str, tuple[str, ...]] = {
    "output": ("completion", "raw_output", "output_text", "generated_text", "generation",
               "model_output", "answer", "text", "content"),
    "response": ("raw_response", "response_body", "response_json", "result"),
    "request": ("request_body", "model_parameters"),
    "case_id": ("custom_id", "example_id", "sample_id", "question_id", "task_id", "id"),
    "trial": ("repetition", "epoch"),
    "model": ("model_name", "model_id", "engine"),
    "prompt_protocol": ("protocol",),
    "tools": ("tools_json", "functions", "available_tools"),
    "target": ("target_json", "expected_calls", "expected_tool_calls"),
    "input": ("prompt", "question", "query", "user_input"),
    "prompt_tokens": ("input_tokens",),
    "completion_tokens": ("output_tokens",),
    "created": ("created_at", "timestamp"),
    "reasoning": ("reasoning_content", "thinking"),
    "finish_reason": ("stop_reason",),
    "error_message": ("error_str",),
    "metadata_category": ("category",),
}  # fmt: skip
"""Name -> words of other logs for it: the first that is there, where no column has the name."""
NAMES: Mapping[str, str] = {
    "raw": "The model's text, character by character.",
    "output": "The answer as text; JSON of a response object or a message is read as one.",
    "response": "A response object, its JSON, its chunks, or the text of its event stream.",
    "tool_calls": "The provider's own calls, beside a text.",
    "messages": "The conversation as asked; where no other column holds the answer, its last "
    "message is it.",
    "input": "What was asked: a text, or messages.",
    "request": "The request as sent; its messages, tools and model count where no column says "
    "them.",
    "tools": "Tool definitions, or their JSON.",
    "target": "The calls that are right, as in a case.",
    "case_id": "The case that was asked.",
    "trial": "The repetition, from 0; counted in order where it is left out.",
    "model": "The model.",
    "prompt_protocol": "The format the model was told to write; `auto` where nobody knows.",
    "arm": "A name for what was varied, where the protocol is not all.",
    "tool_choice": "`auto`, `required`, `none`, or the tool that had to be called.",
    "reasoning": "What the model thought, where it was kept apart.",
    "finish_reason": "Why the answer ended.",
    "error": "A failed call: its class, its message, or an object with both.",
    "error_message": "The message of a failed call.",
    "status": "`error` or `failure` says that the call failed.",
    "prompt_tokens": "Tokens sent.",
    "completion_tokens": "Tokens received.",
    "cost": "US dollars.",
    "latency": "Seconds from request to end.",
    "ttft": "Seconds from request to the first chunk.",
    "created": "When it was answered: ISO time, or seconds or milliseconds since 1970.",
    "stream": "Whether it was a stream.",
    "cut": "Whether the stream ended without a finish part.",
    "endpoint_kind": "`raw_completion` for a text that no chat template was around.",
    "system_fingerprint": "The server's own version mark.",
    "raw_surrogates_json": "In frames of this package: what `raw` could not hold.",
    "metadata": "An object of your own; so is every column `metadata_…`.",
}
"""Name -> what a column of this name holds."""
_REMEMBERED = 1000  # sets of columns; rows of JSONL may each have their own
# Together they are only in a trials frame of this package.
_OURS = frozenset({"trial_id", "parse_protocol", "policy", "completion_key"})
ANSWERS = (
    "raw or output (the model's text), response (a response object or its JSON), messages, or error"
)
# Columns that can hold an answer.
_ANSWER_NAMES = frozenset({"raw", "output", "tool_calls", "response", "messages", "error"})


class ColumnNames:
    """The names of one source's columns, looked up once for each set of them.

    Raises BadOptions and BadCase for columns that are not there, or that cannot be told apart.
    """

    def __init__(
        self, source: RowSource, columns: Mapping[str, str | None] | None, others: Others
    ) -> None:
        """Read the mapping, and check it where the source has fixed columns.

        source: the rows, which have columns of their own where they are a table.
        columns: column -> name, or None to leave it out. The caller's word goes before all others.
        others: the handling of columns that no one knows: 'metadata', 'drop' or 'error'.
        """
        self.secrets: dict[str, int] = {}
        """columns that are left out because their names are those of credentials, with the rows
        that had one"""
        self._source = source
        self._renaming = Renaming(tuple(NAMES), columns or {}, others)
        self._names_of: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
        self._unseen = set(self._renaming.columns)
        if source.columns is not None:
            self._check(tuple(source.columns))

    def _check(self, columns: tuple[str, ...]) -> None:
        # A table has its columns before its first row.
        missing = [c for c in self._renaming.columns if c not in columns]
        if missing:
            raise self._source.bad(
                "there is no such column", column=missing[0], expected=", ".join(columns)
            )

        self._unseen.clear()
        names = {name for _, name in self.of(columns)}
        if not names & _ANSWER_NAMES:
            raise self._source.bad(
                "no column holds the answers",
                got=", ".join(columns),
                expected=ANSWERS,
                hint='say which one it is: columns={"my column": "raw"}',
            )

    @property
    def unseen(self) -> list[str]:
        """Columns that were mapped and that no row had so far.

        In a table there are none: its columns are checked at once.
        """
        return sorted(self._unseen)

    def taken(self, row: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
        """(name, value) of a row's columns taken over.

        row: column -> cell, of one row.

        Columns with the name of a credential are counted here, and their cells are never looked at.
        """
        if self._unseen:
            self._unseen.difference_update(row)

        for column, name in self.of(tuple(row)):
            if column in self.secrets:
                self.secrets[column] += 1
            else:
                yield name, row[column]

    def of(self, columns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """(column, name) of those taken over.

        columns: of one row, in order. The same ones were mostly looked up before.
        """
        names = self._names_of.get(columns)
        if names is None:
            names = tuple(self._look_up(columns))
            if len(self._names_of) < _REMEMBERED:
                self._names_of[columns] = names

        return names

    def _look_up(self, columns: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        # As mapped, by their own names, by guess, as others.
        mapped = self._renaming.columns
        words = _words_of(columns, mapped)
        names = {column: name for column, name in mapped.items() if column in columns}
        self._name_by_word(words, names)
        _name_by_guess(words, names)
        derived = _derived_columns(words)

        for column in columns:
            name = names.get(column)
            if column not in names and column not in derived:
                name = self._other(column)

            if name:
                yield column, name

    def _name_by_word(self, words: Mapping[str, str], names: dict[str, str | None]) -> None:
        # Adds to `names`. words: column -> its name as a plain word.
        used = _used_names(names)
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

    def _other(self, label: str) -> str | None:
        # None drops the column. A table may have names that are not strings. What the caller keeps
        # is metadata; a credential's name counts, so that it drops out of every row.
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

        if is_secret_name(column):
            self.secrets.setdefault(column, 0)

        return f"metadata_{column}"


def _words_of(columns: tuple[str, ...], mapped: Collection[str]) -> dict[str, str]:
    # Column -> plain word, for the columns that the caller did not map.
    return {column: _word(column) for column in columns if column not in mapped}


def _derived_columns(words: Collection[str]) -> set[str]:
    # Only a trials frame of ours has columns that follow from the answer: results of parsing and
    # scoring it.
    if not _OURS.issubset(words):
        return set()

    return {column.name for column in columns_of("trials")}


def _used_names(names: Mapping[str, str | None]) -> set[str]:
    # None is a column that the caller left out.
    return {name for name in names.values() if name}


def _free_words(words: Mapping[str, str], names: Mapping[str, Any]) -> dict[str, str]:
    # Word -> column, for the columns that have no name yet.
    # Backwards, so that of two columns with one word the first is taken.
    columns = reversed(list(words.items()))
    return {word: column for column, word in columns if column not in names}


def _word(column: Any) -> str:
    # `Finish-Reason` is `finish_reason`.
    return str(column).strip().casefold().replace("-", "_").replace(" ", "_")


def _name_by_guess(words: Mapping[str, str], names: dict[str, str | None]) -> None:
    # Words that other logs use, where no column has the name itself. Adds to `names`.
    used = _used_names(names)
    for name, guesses in GUESSES.items():
        if name in used:
            continue

        # The guesses stand in order of trust.
        free = _free_words(words, names)
        guess = next((guess for guess in guesses if guess in free), None)
        if guess is not None:
            names[free[guess]] = name
            used.add(name)
