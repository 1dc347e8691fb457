"""Which column of somebody else's log is what.

Names are taken as they are where they are ours, by `GUESSES` where they are common elsewhere, and as the caller says.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..evals.cases.row_files import RowSource
from ..evals.cases.rows import Others, Renaming
from ..evals.frames.columns import columns_of
from ..runner.redaction import is_secret_name

GUESSES: Mapping[str, tuple[str, ...]] = {
    "output": ("completion", "raw_output", "output_text", "generated_text", "generation", "model_output",
               "answer", "text", "content"),
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
"""What a column is taken for where no column has the name itself: the first that is there."""
NAMES: Mapping[str, str] = {
    "raw": "The model's text, character by character.",
    "output": "The answer as text; JSON of a response object or a message is read as one.",
    "response": "A response object, its JSON, its chunks, or the text of its event stream.",
    "tool_calls": "The provider's own calls, beside a text.",
    "messages": "The conversation as asked; where no other column holds the answer, its last message is it.",
    "input": "What was asked: a text, or messages.",
    "request": "The request as sent; its messages, tools and model count where no column says them.",
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
"""What a column may be, and what it then holds."""
_REMEMBERED = 1000  # sets of columns; rows of JSONL may each have their own
_OURS = frozenset(
    {"trial_id", "parse_protocol", "policy", "completion_key"}
)  # together, a trials frame of this package
ANSWERS = "raw or output (the model's text), response (a response object or its JSON), messages, or error"
_HOLDING = frozenset({"raw", "output", "tool_calls", "response", "messages", "error"})


class ColumnNames:
    """The names of one source's columns, found once for each set of them. Raises BadCase and BadOptions."""

    def __init__(self, source: RowSource, columns: Mapping[str, str | None] | None, others: Others) -> None:
        self.secrets: dict[str, int] = {}
        """columns that are left out because their names are those of credentials, with the rows that had one"""
        self._source = source
        self._renaming = Renaming(tuple(NAMES), columns or {}, others)
        self._named: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
        self._unseen = set(self._renaming.columns)
        if source.columns is None:
            return
        if gone := [c for c in self._renaming.columns if c not in source.columns]:
            raise source.bad("there is no such column", column=gone[0], expected=", ".join(source.columns))
        self._unseen.clear()
        if not {name for _, name in self.of(tuple(source.columns))} & _HOLDING:
            raise source.bad(
                "no column holds the answers", got=", ".join(source.columns), expected=ANSWERS,
                hint='say which one it is: columns={"my column": "raw"}',
            )  # fmt: skip

    @property
    def unseen(self) -> list[str]:
        """Columns that were mapped and that no row had so far."""
        return sorted(self._unseen)

    def taken(self, row: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
        """(name, value) of a row's columns that are taken over."""
        if self._unseen:
            self._unseen.difference_update(row)
        for column, name in self.of(tuple(row)):
            if column in self.secrets:
                self.secrets[column] += 1
            else:
                yield name, row[column]

    def of(self, columns: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        """(column, name) of those that are taken over."""
        known = self._named.get(columns)
        if known is None:
            known = tuple(self._guessed(columns))
            if len(self._named) < _REMEMBERED:
                self._named[columns] = known
        return known

    def _guessed(self, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        mapped = self._renaming.columns
        plain = {k: str(k).strip().casefold().replace("-", "_").replace(" ", "_") for k in keys if k not in mapped}
        names: dict[str, str | None] = {key: name for key, name in mapped.items() if key in keys}
        taken = {name for name in names.values() if name}
        for key, word in plain.items():
            if word in NAMES:
                if word in taken:
                    raise self._source.bad(
                        f"two columns are the {word}", column=str(key), hint=f"leave one out: columns={{{key!r}: None}}"
                    )
                names[key] = word
                taken.add(word)
        for name, words in GUESSES.items():
            for word in words:
                found = next((k for k, w in plain.items() if w == word and k not in names), None)
                if name not in taken and found is not None:
                    names[found] = name
                    taken.add(name)
        ours = plain.keys() >= _OURS
        declared = {c.name for c in columns_of("trials")} if ours else set()
        for key in keys:
            taken_as = names.get(key)
            if key not in names and key not in declared:
                taken_as = key if str(key).startswith("metadata_") else self._other(str(key))
            if taken_as:
                yield key, taken_as

    def _other(self, key: str) -> str | None:
        if self._renaming.others == "error":
            raise self._source.bad(
                "unknown column", column=key, expected=", ".join(NAMES),
                hint=f'say what it is: columns={{{key!r}: "metadata_{key}"}}, or None to leave it out',
            )  # fmt: skip
        if self._renaming.others == "drop":
            return None
        if is_secret_name(key):
            self.secrets.setdefault(key, 0)
        return f"metadata_{key}"
