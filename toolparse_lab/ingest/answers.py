"""The answer that a row holds: a text, a response object or its JSON, a message, or an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..capture import Captured, capture
from ..errors import BadOptions, UnreadableInput
from ..evals.cases.row_files import RowSource
from ..evals.cases.rows import json_value, listed
from ..runner.types import ERROR_KINDS
from ..values import read_strict, write_canonical
from .names import ANSWERS
from .sources import is_chunk, is_response

_PRINTED = re.compile(
    r"(?:ModelResponse|TextCompletionResponse|ChatCompletion|Completion)\(id='.*choices=\[", re.DOTALL
)


def take_last_message(said: dict[str, Any]) -> None:
    """A conversation whose last message is the answer, as data for training keep it."""
    if "messages" not in said or said.keys() & {"raw", "output", "response", "error"}:
        return
    messages = said["messages"]
    if isinstance(messages, str):
        messages = json_or_text(messages)
    messages = messages.tolist() if hasattr(messages, "tolist") else messages
    if isinstance(messages, list) and len(messages) > 1 and is_response(messages[-1]):
        said["messages"], said["output"] = messages[:-1], messages[-1]


def captured_of(
    source: RowSource, line: int | None, said: Mapping[str, Any], error: tuple[str, str] | None, choice: int = 0
) -> Captured:
    """What a row says, by the names of its columns; raises BadCase where it holds no answer and no error."""
    found = None
    if "response" in said:
        found = _capture(source, line, said["response"], "response", choice)
    if "raw" in said or "output" in said:
        name = "raw" if "raw" in said else "output"
        text = _capture(source, line, said[name], name, choice)
        if isinstance(said.get("raw_surrogates_json"), str):
            text = replace(text, content=_restored(text.content, said["raw_surrogates_json"]))
        if said.get("endpoint_kind") == "raw_completion":
            text = replace(text, completion=True)
        if found is None:
            found = text
        elif not found.tool_calls and not text.stream:
            found = replace(found, content=text.content, chunks=())
    if "tool_calls" in said and not (found and found.tool_calls):
        calls = said["tool_calls"]
        calls = json_value(json_or_text(calls) if isinstance(calls, str) else calls, source, line, "tool_calls")
        message = _capture(source, line, {"role": "assistant", "tool_calls": listed(calls)}, "tool_calls", 0)
        found = message if found is None else replace(found, tool_calls=message.tool_calls)
    if found is None:
        if error is None:
            raise source.bad(
                "there is no answer in this row", line, got=", ".join(said) or "nothing", expected=ANSWERS,
                hint='an empty answer is "", a failed call has its message in a column error',
            )  # fmt: skip
        found = Captured(fidelity="replayed")
    changes: dict[str, Any] = {}
    if isinstance(said.get("reasoning"), str) and not found.reasoning:
        changes["reasoning"] = said["reasoning"]
    if said.get("finish_reason") is not None:
        changes["finish_reason"] = str(said["finish_reason"])
    if is_true(said.get("stream")):
        changes["stream"] = True
    if isinstance(said.get("system_fingerprint"), str):
        changes["system_fingerprint"] = said["system_fingerprint"]
    return replace(found, **changes) if changes else found


def _capture(source: RowSource, line: int | None, x: Any, column: str, choice: int) -> Captured:
    if isinstance(x, str):
        if _PRINTED.match(x):
            raise source.bad(
                "this is the printed form of a response object, which cannot be read back", line, column,
                got=x[:80], hint="log response.model_dump_json() instead of str(response)",
            )  # fmt: skip
        if column != "raw" and x[:1] in "{[":
            x = _json_response(x)
    elif source.table and (isinstance(x, Mapping) or hasattr(x, "tolist")):
        x = json_value(x, source, line, column)
    for inside in ("body", "message"):  # as lines of batch interfaces have it
        if (
            isinstance(x, Mapping)
            and isinstance(x.get(inside), Mapping)
            and not x.keys() & {"choices", "finish_reason"}
        ):
            x = x[inside]
    try:
        return capture(x, choice)
    except (UnreadableInput, BadOptions) as e:
        raise source.bad(e.message, line, column, got=e.got, expected=e.expected, hint=e.hint) from None


def error_of(source: RowSource, line: int | None, said: Mapping[str, Any]) -> tuple[str, str] | None:
    """(class, message) of a call that failed."""
    error, message = said.get("error"), said.get("error_message")
    if isinstance(error, str) and error[:1] == "{":
        error = json_or_text(error)
    if isinstance(error, Mapping):
        message = message or error.get("message") or write_canonical(json_value(error, source, line, "error"))
        error = error.get("type") or error.get("code") or "other"
    if not error or error in ("None", "null"):
        return ("other", str(message or "")) if said.get("status") in ("error", "failure") else None
    if str(error) in ERROR_KINDS:
        return str(error), str(message or "")
    return "other", str(message or ("" if error is True else error))


def _restored(text: str, offsets: str) -> str:
    """A text of a trials frame with the lone surrogates that no frame can hold."""
    from ..evals.frames.dtypes import restored

    return restored(text, read_strict(offsets))


def is_true(x: Any) -> bool:
    """Whether a cell says yes: true, its word, or NumPy's."""
    return x is True or (isinstance(x, str) and x.lower() == "true") or (hasattr(x, "item") and x.item() is True)


def json_or_text(text: str) -> Any:
    """What a text is the JSON of, itself where it is none."""
    try:
        return read_strict(text)
    except (ValueError, RecursionError):
        return text


def _json_response(text: str) -> Any:
    """A text as the response that it is the JSON of, or as the pieces of one; as itself where it is none."""
    if not any(word in text for word in ('"choices"', '"output"', '"content"', '"tool_calls"', '"error"')):
        return text
    found = json_or_text(text)
    if isinstance(found, list):
        return found if found and all(map(is_chunk, found)) else text
    return found if is_response(found) or (isinstance(found, Mapping) and set(found) == {"error"}) else text
