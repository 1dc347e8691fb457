"""The answer that a row contains: a text, a response object or its JSON, a message, or an error.

How it works: a row may hold an answer in three kinds of columns at once. The response object says
most (calls, usage, why it ended), a text next to it is the raw text taken from it, and calls next
to it are the provider's own. `captured_of` takes them in this order, each completing the one there,
and then the cells that say something about the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...core.errors import BadOptions, ToolparseError, UnreadableInput
from ...core.toolspec import ToolSpec
from ...core.types.call import is_held_back
from ...core.types.call_pieces import member as get
from ...core.values import read_strict, write_canonical
from ...entry.capture import Captured, capture
from ...entry.parse import parse_text
from ...evals.cases.rows import listed
from ...runner.exchange.types import ERROR_KINDS
from ...runner.failures import kind_of_message, reported_kind
from ...runner.routes import count_tokens
from .columns import ANSWERS, LARGEST, Place, is_true, json_or_text
from .shapes import nearest
from .shapes.parts import first
from .sources import is_response, kind_of

# The printed form of a response object of litellm or OpenAI's client, which nobody can read back.
_PRINTED = re.compile(
    r"(?:ModelResponse|TextCompletionResponse|ChatCompletion|Completion)\(id='.*choices=\[",
    re.DOTALL,
)
# Columns beside an error's message that have its class.
_CLASSES = ("error_type", "error_class", "exception", "exception_type")
_ANSWER_COLUMNS = {"raw", "output", "response", "error"}
# One of these is in the JSON of every response; a text without them is not worth reading.
_RESPONSE_WORDS = (
    '"choices"', '"output"', '"content"', '"tool_calls"', '"error"', '"candidates"', '"parts"',
    '"message"', '"toolCalls"', '"type"', '"body"',
)  # fmt: skip


def take_last_message(cells: dict[str, Any]) -> None:
    """Move the last message of a conversation into `output`, as training data keep the answer.

    cells: a row by the names of its columns. It is changed. Nothing happens where another column
    holds the answer, or where the last message is none.
    """
    if "messages" not in cells or cells.keys() & _ANSWER_COLUMNS:
        return
    messages = cells["messages"]
    if isinstance(messages, str):
        messages = json_or_text(messages)
    # A frame that was read from Parquet has lists as arrays.
    if hasattr(messages, "tolist"):
        messages = messages.tolist()
    if isinstance(messages, list) and len(messages) > 1 and is_response(messages[-1]):
        cells["messages"], cells["output"] = messages[:-1], messages[-1]


def captured_of(
    place: Place, cells: Mapping[str, Any], error: tuple[str, str] | None, choice: int = 0
) -> Captured:
    """Return the answer of a row.

    place: the row, for errors. cells: the row by the names of its columns. error: the failure that
    the row tells of. choice: which of the response's choices. Raises BadCase if the row holds no
    answer and no error.
    """
    answer: Captured | None = None
    if "response" in cells:
        answer = _capture(place, cells["response"], "response", choice)
    if "raw" in cells or "output" in cells:
        text = _text_of(place, cells, choice)
        if answer is None:
            answer = text
        elif not answer.tool_calls and not text.stream:
            # Otherwise both stay: the calls of a response would be lost with its content, and a
            # stream has its own pieces.
            answer = replace(answer, content=text.content, chunks=())
    if "tool_calls" in cells and not (answer and answer.tool_calls):
        # A list, one call alone, or the JSON of either.
        calls = cells["tool_calls"]
        calls = place.json(json_or_text(calls) if isinstance(calls, str) else calls, "tool_calls")
        body = {"role": "assistant", "tool_calls": listed(calls)}
        message = _capture(place, body, "tool_calls", 0)
        answer = message if answer is None else replace(answer, tool_calls=message.tool_calls)
    if answer is None:
        if error is None:
            keys = [str(place.keys.get(name, name)).removeprefix("metadata_") for name in cells]
            near = nearest(keys)
            hint = 'an empty answer is "", a failed call has its message in a column error'
            raise place.bad(
                "there is no answer in this row",
                got=", ".join(keys) or "nothing",
                expected=ANSWERS,
                hint=f"of the known shapes {near} is nearest; {hint}" if near else hint,
            )
        answer = Captured(fidelity="replayed")

    # Columns go before the response, but for reasoning.
    changes: dict[str, Any] = {}
    if isinstance(cells.get("reasoning"), str) and not answer.reasoning:
        changes["reasoning"] = cells["reasoning"]
    if cells.get("finish_reason") is not None:
        changes["finish_reason"] = str(cells["finish_reason"])
    if is_true(cells.get("stream")):
        changes["stream"] = True
    if isinstance(cells.get("system_fingerprint"), str):
        changes["system_fingerprint"] = cells["system_fingerprint"]
    return replace(answer, **changes) if changes else answer


def with_argument_texts(cells: Mapping[str, Any], captured: Captured) -> tuple[Captured, bool]:
    """Return an answer whose calls have the text of their arguments, and True where a log kept
    objects: these were made of the text that the model wrote, and say nothing of it.

    A chat completion whose server sent an object in place of the text stays as it is.
    """
    calls = [call["function"] for call in captured.tool_calls]
    is_object = [isinstance(call["arguments"], Mapping) for call in calls]
    if not any(is_object) or any(map(_has_choices, map(cells.get, ("response", "output")))):
        return captured, False
    texts = [
        {**call, "function": {**function, "arguments": write_canonical(function["arguments"])}}
        if had_object
        else call
        for call, function, had_object in zip(captured.tool_calls, calls, is_object, strict=True)
    ]
    return replace(captured, tool_calls=tuple(texts)), True


def _has_choices(x: Any) -> bool:
    if isinstance(x, str):
        return '"choices"' in x
    return any(get(body, "choices") is not None for body in (x, get(x, "body")))


def answer_to_offer(captured: Captured, tools: tuple[ToolSpec, ...]) -> tuple[Captured, bool]:
    """Return an answer to a request that offered tools: by the provider's own calls, or, with True,
    as it is where a call, or a broken one, is in its text alone.

    Local servers do so whose parser is not set, or is another model's. Such a text says more than
    the empty list beside it. What the model wrote token by token says more than either.
    """
    if captured.token_text:
        return captured, False
    if captured.tool_calls or not captured.content.strip():
        return captured.as_native(), False
    try:
        calls = parse_text(captured.content, "auto", tools).calls
        unlifted = not all(map(is_held_back, calls))
    except ToolparseError:
        unlifted = False
    return (captured, True) if unlifted else (captured.as_native(), False)


def facts_of(captured: Captured, *, unlifted: bool) -> dict[str, Any]:
    """Return what is recorded with an answer beside its text, None for anything not known.

    unlifted: as `answer_to_offer` says.
    """
    # Worth keeping only next to what the model wrote: elsewhere `raw` holds these calls, or none.
    server = captured.server() if captured.token_text or unlifted else None
    return {
        "id": captured.id,
        "model": captured.model,
        "provider": captured.provider,
        "usage": dict(captured.usage) if captured.usage is not None else None,
        "tokens_estimate": _estimate(captured),
        "server": None if server is None else server.to_dict(),
        "tokens": None if captured.tokens is None else captured.tokens.to_dict(),
        "unread": list(captured.unread) or None,
        "shares_an_index": captured.shares_an_index or None,
    }


def counts_of(captured: Captured) -> dict[str, Any]:
    """Return the tokens that an answer counts, in the words of either OpenAI interface.

    What is not an integer, or larger than a store can hold, drops out.
    """
    usage = captured.usage or {}
    counts = {
        "prompt_tokens": usage.get("prompt_tokens", usage.get("input_tokens")),
        "completion_tokens": usage.get("completion_tokens", usage.get("output_tokens")),
    }
    least = 1 if _has_text(captured) else 0  # zeros beside an answer count nothing
    return {k: v for k, v in counts.items() if type(v) is int and least <= v < LARGEST}


def _has_text(captured: Captured) -> bool:
    return bool(captured.content or captured.tool_calls or captured.reasoning)


def _estimate(captured: Captured) -> int | None:
    # Where the answer has a text, and its usage says that it has no tokens.
    usage = captured.usage or {}
    count = usage.get("completion_tokens", usage.get("output_tokens"))
    if count != 0 or isinstance(count, bool) or not _has_text(captured):
        return None
    return count_tokens(captured.raw + captured.reasoning)


def _text_of(place: Place, cells: Mapping[str, Any], choice: int) -> Captured:
    # `raw` goes before `output`. choice: where the text is the JSON of a response.
    name = "raw" if "raw" in cells else "output"
    text = _capture(place, cells[name], name, choice)
    surrogates = cells.get("raw_surrogates_json")
    if isinstance(surrogates, str):
        # No frame can contain lone surrogates: this says which one was where.
        from ...evals.frames.dtypes import restored  # pandas: 0.5 s, and few logs are such frames

        text = replace(text, content=restored(text.content, read_strict(surrogates)))
    if cells.get("endpoint_kind") == "raw_completion":
        text = replace(text, completion=True)
    return text


def _capture(place: Place, x: Any, column: str, choice: int) -> Captured:
    # x: a string, an object of a client, a mapping, or a list of pieces.
    if isinstance(x, str):
        if _PRINTED.match(x):
            raise place.bad(
                "this is the printed form of a response object, which cannot be read back",
                column,
                got=x[:80],
                hint="log response.model_dump_json() instead of str(response)",
            )
        # A string may be the JSON of a response; `raw` is always the text itself.
        if column != "raw" and x[:1] in ("{", "[") and any(word in x for word in _RESPONSE_WORDS):
            value = json_or_text(x)
            x = value if _is_answer(value) else x
    elif place.source.table and (isinstance(x, Mapping) or hasattr(x, "tolist")):
        x = place.json(x, column)

    # A line of a batch interface has the response inside, and a body may hold a message in turn, so
    # both are looked at, in this order.
    for member in ("body", "message"):
        is_inside = isinstance(x, Mapping) and isinstance(x.get(member), Mapping)
        # Ollama's answer says more than the message in it.
        if is_inside and not x.keys() & {"choices", "finish_reason", "done"}:
            x = x[member]
    try:
        return capture(x, choice)
    except (UnreadableInput, BadOptions) as e:
        raise place.bad(e.message, column, got=e.got, expected=e.expected, hint=e.hint) from None


def _is_answer(value: Any) -> bool:
    is_error = isinstance(value, Mapping) and set(value) == {"error"}
    return is_error or kind_of(value) in ("response", "chunk", "stream")


def error_of(place: Place, cells: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return (class, message) of a call that failed, None for one that did not.

    The class is one of `ERROR_KINDS`, 'other' where nothing is known of it.
    """
    error, message = cells.get("error"), cells.get("error_message")
    if isinstance(error, str) and error[:1] == "{":
        error = json_or_text(error)
    # Anthropic's stands in an object that only says that it is one.
    while isinstance(error, Mapping) and isinstance(error.get("error"), Mapping):
        error = error["error"]
    if isinstance(error, Mapping):
        # A message of a column of its own goes before that of the object. An object without one is
        # the message itself.
        message = message or error.get("message")
        if not message:
            message = write_canonical(place.json(error, "error"))
        error = reported_kind(error) or error.get("type") or error.get("code") or "other"
    if not error or error in ("None", "null"):
        failed = cells.get("status") in ("error", "failure")
        return (kind_of_message(str(message or "")), str(message or "")) if failed else None
    # "timeout" is a class; "too slow" is the message of "other".
    if str(error) in ERROR_KINDS:
        return str(error), str(message or "")
    # A text that is no class is a message, or a class of Python's; a bare True says nothing.
    words = "" if error is True else str(error)
    kind = kind_of_message(words)
    if kind == "other" and (name := first(*(cells.get(f"metadata_{n}") for n in _CLASSES))):
        kind = kind_of_message(str(name))
    if message:
        return kind if kind != "other" else kind_of_message(str(message)), str(message)
    return kind, words
