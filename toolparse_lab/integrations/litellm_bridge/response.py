"""A finished answer of litellm with the calls that its text holds as tool calls."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ...middleware import Answer, CorrectedAnswer, ToolCallMiddleware, Turn
from ...middleware.attempts import CallIds
from .answer_ids import AnswerIds
from .findings import blame_of, findings_of, with_feedback


def with_tool_calls(
    litellm: Any,
    response: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    ids: AnswerIds | None = None,
) -> Any:
    """Return a ModelResponse like `response` (id, model, usage, headers, hidden parameters are the
    same objects), each of its choices read on its own. `response` itself if no choice changes.
    litellm's object is left as it came, because its logging and its cache still hold it.

    ids: of the calls, where they are shared.
    """
    answers = [CorrectedAnswer(a) for a in answers_of(response, middleware, turn, ids)]
    return with_answers(litellm, response, middleware, turn, answers)


def answers_of(
    response: Any, middleware: ToolCallMiddleware, turn: Turn, ids: AnswerIds | None = None
) -> list[Answer]:
    """Return the answers that the choices of a ModelResponse are, in their order."""
    return [
        _answer(choice, middleware, turn, ids.of(choice.index) if ids else None)
        for choice in response.choices
    ]


def with_answers(
    litellm: Any,
    response: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    answers: Sequence[CorrectedAnswer],
) -> Any:
    """`with_tool_calls` of answers read before, one for each choice."""
    choices = [
        _choice(litellm, old, middleware, turn, answer)
        for old, answer in zip(response.choices, answers, strict=True)
    ]
    changed = any(new is not old for new, old in zip(choices, response.choices, strict=True))
    return _copied(response, choices=choices) if changed else response


def _answer(
    choice: Any, middleware: ToolCallMiddleware, turn: Turn, call_ids: CallIds | None
) -> Answer:
    """Return the answer that a choice is."""
    message = choice.message
    own_calls = message.tool_calls or ()
    return middleware.wrap_generate(
        turn,
        message.content,
        # litellm deletes the attribute where there is no reasoning.
        reasoning=message.__dict__.get("reasoning_content"),
        finish_reason=choice.finish_reason,
        tool_calls=[call.model_dump() for call in own_calls] if own_calls else (),
        call_ids=call_ids,
    )


def _choice(
    litellm: Any,
    choice: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    corrected: CorrectedAnswer,
) -> Any:
    """Return a choice with the calls of its answer, or itself if nothing changes."""
    message, answer = choice.message, corrected.answer
    thought = message.__dict__.get("reasoning_content")
    own_calls = message.tool_calls or ()
    new = answer.message
    changes: dict[str, Any] = {}
    if new["content"] != message.content:
        changes["content"] = new["content"]
    if new.get("reasoning_content", thought) != thought:
        changes["reasoning_content"] = new["reasoning_content"]
    calls = _calls(litellm, new.get("tool_calls", ()), own_calls, answer.written_too)
    if calls is not None:
        changes["tool_calls"] = calls
    blame = ""
    if own_calls or getattr(choice, "logprobs", None) is not None:
        blame = blame_of(choice, middleware, turn)
    findings = findings_of(answer, turn, blame)
    if corrected.calls:
        findings = with_feedback(findings, corrected)
    if findings is not None:
        fields = getattr(message, "provider_specific_fields", None) or {}
        changes["provider_specific_fields"] = {**fields, **findings}
    if not changes and answer.finish_reason == choice.finish_reason:
        return choice
    return _copied(choice, message=_copied(message, **changes), finish_reason=answer.finish_reason)


def _calls(
    litellm: Any,
    calls: Sequence[dict[str, Any]],
    own_calls: Sequence[Any],
    written_too: frozenset[int],
) -> Any:
    """Return the calls of an answer as litellm's objects, None if there are none but the provider's
    own and these are as they were.

    calls: those of the text first, and after them the provider's own with their arguments coerced.
    written_too: the numbers of the provider's own that are among those of the text.
    """
    own_calls = [call for number, call in enumerate(own_calls) if number not in written_too]
    from_text = len(calls) - len(own_calls)
    new_calls = [_tool_call(litellm, call) for call in calls[:from_text]]
    if not own_calls:
        return new_calls or None

    pairs = zip(own_calls, calls[from_text:], strict=True)
    coerced = [_with_arguments(call, fixed) for call, fixed in pairs]
    unchanged = all(new is old for new, old in zip(coerced, own_calls, strict=True))
    return None if unchanged and not new_calls else new_calls + coerced


def _tool_call(litellm: Any, call: dict[str, Any]) -> Any:
    """Return a call in OpenAI's shape as litellm's object."""
    blank, function = _blank_call(litellm.types.utils)
    return _copied(blank, id=call["id"], function=_copied(function, **call["function"]))


def _with_arguments(call: Any, fixed: dict[str, Any]) -> Any:
    """Return a call that the provider made, with its arguments as they fit the schema.

    Itself if they did.
    """
    function = getattr(call, "function", None)  # a call of a custom tool has none
    if function is None:
        return call
    own = fixed["function"]
    changes = {k: own[k] for k in ("name", "arguments") if getattr(function, k) != own.get(k)}
    return _copied(call, function=_copied(function, **changes)) if changes else call


@functools.lru_cache(maxsize=1)
def _blank_call(shapes: Any) -> tuple[Any, Any]:
    """Return a tool call of litellm's and its function: building these again runs validators for
    everything known to be right.
    """
    blank = shapes.ChatCompletionMessageToolCall(
        id="", type="function", function={"name": "", "arguments": ""}
    )
    return blank, blank.function


def _copied(model: Any, **changes: Any) -> Any:
    """Return a pydantic object with other values.

    The result of `model_copy`, by a shorter way.
    """
    shape = type(model)
    copied = object.__new__(shape)
    values, extra, private = (
        dict(model.__dict__),
        model.__pydantic_extra__,
        model.__pydantic_private__,
    )
    extra = None if extra is None else dict(extra)
    declared = shape.__pydantic_fields__
    for name, value in changes.items():
        # Some of litellm's shapes declare no fields at all: what they hold is all extra.
        (values if extra is None or name in declared else extra)[name] = value
    _set(copied, "__dict__", values)
    _set(copied, "__pydantic_fields_set__", model.__pydantic_fields_set__ | changes.keys())
    _set(copied, "__pydantic_extra__", extra)
    _set(copied, "__pydantic_private__", None if private is None else dict(private))
    return copied


_set = object.__setattr__
