"""`completion` and `acompletion` with litellm's arguments and answers, and tool calls from any
model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from ..errors import BadOptions
from ..middleware import ToolCallMiddleware, Turn
from ..runner.litellm_door import litellm_module
from .again import Again
from .answer_ids import AnswerIds
from .callbacks import add_callback
from .findings import without_findings
from .model_params import let_pass
from .options import KEYWORDS, middleware_for, take_options
from .refusal import refusal
from .response import answers_of, with_answers, with_tool_calls
from .stream import stream_of


class Tap(Protocol):
    """Sees what passes between the bridge and a model; see `acompletion_with`."""

    def sent(self, turn: Turn) -> Mapping[str, Any]:
        """Take the request as it is sent; the arguments of litellm that this needs come back."""

    def received(self, litellm: Any, response: Any) -> Any:
        """Take litellm's answer; the answer to read comes back, whole or a stream of the same
        class."""


def completion(
    model: str,
    messages: Sequence[Any] = (),
    *,
    protocol: Any = None,
    middleware: ToolCallMiddleware | None = None,
    **arguments: Any,
) -> Any:
    """`litellm.completion` for a model that has no tool calling: the tools are described in the
    prompt and the calls are read from the text.

    `protocol` ("hermes" unless said otherwise) is an id, with options behind it as in a model
    string, or a protocol object. Options by keyword are those of `create_tool_middleware`, and
    `wording` and `policy`: `tool_choice_by="prompt"` asks for a forced call in the system prompt,
    for providers that reject response_format; `broken_calls="call"` and `unknown_tools="call"` hand
    on calls that failed; `feedback="production"` asks the same model again about calls that the
    schema refuses. `middleware` replaces all of them. Everything else goes to litellm. Gives
    litellm's ModelResponse, or with `stream=True` its stream: an iterator of ModelResponseStream.
    Without `tools` the answer is litellm's own.

    Raises what litellm raises; ResponseFormatRejected (also a litellm.BadRequestError) where the
    provider refuses the response_format of a forced tool choice; BadToolSpec, BadOptions,
    UnknownProtocol for what cannot be sent.
    """
    by = _middleware(protocol, middleware, arguments)
    return completion_with(by, model=model, messages=messages, **arguments)


async def acompletion(
    model: str,
    messages: Sequence[Any] = (),
    *,
    protocol: Any = None,
    middleware: ToolCallMiddleware | None = None,
    **arguments: Any,
) -> Any:
    """`litellm.acompletion` for a model that has no tool calling; see `completion`. With
    `stream=True` it gives an async iterator; a task that is cancelled while it waits for a chunk
    closes the provider's connection."""
    by = _middleware(protocol, middleware, arguments)
    return await acompletion_with(by, model=model, messages=messages, **arguments)


def completion_with(middleware: ToolCallMiddleware, **arguments: Any) -> Any:
    """`completion` with a middleware that was made before."""
    litellm = litellm_module()
    turn = _turn(litellm, middleware, arguments)
    again = Again(litellm, middleware, turn)
    ids = add_callback(litellm, middleware, turn, arguments)
    try:
        response = litellm.completion(**turn.params)
    except Exception as e:
        rejection = refusal(e, turn)
        if rejection is None:
            raise
        raise rejection from e
    if again.wanted and isinstance(response, litellm.ModelResponse):
        plain = answers_of(response, middleware, turn, ids)
        answers = [again.corrected(answer) for answer in plain]
        return with_answers(litellm, response, middleware, turn, answers)
    return _answer(litellm, response, middleware, turn, ids, again)


async def acompletion_with(
    middleware: ToolCallMiddleware, *, tap: Tap | None = None, **arguments: Any
) -> Any:
    """`acompletion` with a middleware that was made before.

    tap: is shown the request as it is sent, and litellm's answer before it is read.
    """
    litellm = litellm_module()
    turn = _turn(litellm, middleware, arguments)
    again = Again(litellm, middleware, turn)
    if tap is not None:
        turn.params.update(tap.sent(turn))
    ids = add_callback(litellm, middleware, turn, arguments)
    try:
        response = await litellm.acompletion(**turn.params)
    except Exception as e:
        rejection = refusal(e, turn)
        if rejection is None:
            raise
        raise rejection from e
    if tap is not None:
        response = tap.received(litellm, response)
    if again.wanted and isinstance(response, litellm.ModelResponse):
        plain = answers_of(response, middleware, turn, ids)
        answers = [await again.corrected_later(answer) for answer in plain]
        return with_answers(litellm, response, middleware, turn, answers)
    return _answer(litellm, response, middleware, turn, ids, again)


def _turn(litellm: Any, middleware: ToolCallMiddleware, arguments: Mapping[str, Any]) -> Turn:
    """The request as it is sent, with the tools in its prompt. Raises BadToolSpec, and BadOptions
    for options, which the endpoint would get."""
    if not arguments.keys().isdisjoint(KEYWORDS):
        raise _has_options({name: arguments[name] for name in KEYWORDS if name in arguments})
    turn = middleware.transform_params(
        {**arguments, "messages": without_findings(arguments.get("messages") or ())},
        choice_schema="any_of_many",
    )
    let_pass(litellm, turn.params)
    return turn


def _answer(
    litellm: Any,
    response: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    ids: AnswerIds | None,
    again: Again,
) -> Any:
    """litellm's answer, whole or a stream, with the calls of its text; a stream has them corrected
    at its end."""
    # Without tools nothing was added to the prompt, and nothing is to be read from the answer.
    if not turn.active:
        return response
    if isinstance(response, litellm.ModelResponse):
        return with_tool_calls(litellm, response, middleware, turn, ids)
    if isinstance(response, litellm.CustomStreamWrapper):
        return stream_of(litellm, response, middleware, turn, ids, again if again.wanted else None)
    return response


def _middleware(
    protocol: Any, middleware: ToolCallMiddleware | None, arguments: dict[str, Any]
) -> ToolCallMiddleware:
    """The middleware that was passed, or one of the protocol; the options are taken out of the
    arguments. Raises BadOptions for both."""
    options = take_options(arguments)
    if middleware is None:
        return middleware_for("hermes" if protocol is None else protocol, options)
    if protocol is not None or options:
        raise _has_options({"protocol": protocol, **options})
    return middleware


def _has_options(options: Mapping[str, Any]) -> BadOptions:
    """The error of options beside a middleware."""
    return BadOptions(
        "a middleware has its protocol and its options already",
        got=dict(options),
        hint="pass them to create_tool_middleware instead",
    )
