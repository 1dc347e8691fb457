"""`completion` and `acompletion` with litellm's arguments and answers, and tool calls from any
model."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

from ..errors import BadOptions
from ..middleware import ToolCallMiddleware, Turn, create_tool_middleware
from ..runner.litellm_door import litellm_module
from .refusal import refusal
from .response import with_tool_calls
from .stream import stream_of


class Tap(Protocol):
    """Sees what passes between the bridge and a model; see `acompletion_with`."""

    def sent(self, turn: Turn) -> Mapping[str, Any]:
        """Take the request as it is sent; the arguments of litellm that this needs come back."""

    def received(self, litellm: Any, response: Any) -> Any:
        """Take litellm's answer; the answer to read comes back, whole or a stream of the same
        class."""


ChoiceBy: TypeAlias = Literal["response_format", "prompt"]


def completion(
    model: str,
    messages: Sequence[Any] = (),
    *,
    protocol: Any = None,
    middleware: ToolCallMiddleware | None = None,
    tool_choice_by: ChoiceBy | None = None,
    **arguments: Any,
) -> Any:
    """`litellm.completion` for a model that has no tool calling: the tools are described in the
    prompt and the calls are read from the text.

    `protocol` ("hermes" unless said otherwise) is an id or protocol object;
    `tool_choice_by="prompt"` asks for a forced call in the system prompt, for providers that reject
    response_format; `middleware` replaces both. Everything else goes to litellm. Gives litellm's
    ModelResponse, or with `stream=True` its stream: an iterator of ModelResponseStream. Without
    `tools` the answer is litellm's own.

    Raises what litellm raises; ResponseFormatRejected (also a litellm.BadRequestError) where the
    provider refuses the response_format of a forced tool choice; BadToolSpec, BadOptions,
    UnknownProtocol for what cannot be sent.
    """
    by = _middleware(protocol, middleware, tool_choice_by)
    return completion_with(by, model=model, messages=messages, **arguments)


async def acompletion(
    model: str,
    messages: Sequence[Any] = (),
    *,
    protocol: Any = None,
    middleware: ToolCallMiddleware | None = None,
    tool_choice_by: ChoiceBy | None = None,
    **arguments: Any,
) -> Any:
    """`litellm.acompletion` for a model that has no tool calling; see `completion`. With
    `stream=True` it gives an async iterator; a task that is cancelled while it waits for a chunk
    closes the provider's connection."""
    by = _middleware(protocol, middleware, tool_choice_by)
    return await acompletion_with(by, model=model, messages=messages, **arguments)


def completion_with(middleware: ToolCallMiddleware, **arguments: Any) -> Any:
    """`completion` with a middleware that was made before."""
    litellm = litellm_module()
    turn = _turn(middleware, arguments)
    try:
        response = litellm.completion(**turn.params)
    except Exception as e:
        rejection = refusal(e, turn)
        if rejection is None:
            raise
        raise rejection from e
    return _answer(litellm, response, middleware, turn)


async def acompletion_with(
    middleware: ToolCallMiddleware, *, tap: Tap | None = None, **arguments: Any
) -> Any:
    """`acompletion` with a middleware that was made before.

    tap: is shown the request as it is sent, and litellm's answer before it is read.
    """
    litellm = litellm_module()
    turn = _turn(middleware, arguments)
    if tap is not None:
        turn.params.update(tap.sent(turn))
    try:
        response = await litellm.acompletion(**turn.params)
    except Exception as e:
        rejection = refusal(e, turn)
        if rejection is None:
            raise
        raise rejection from e
    if tap is not None:
        response = tap.received(litellm, response)
    return _answer(litellm, response, middleware, turn)


def _turn(middleware: ToolCallMiddleware, arguments: Mapping[str, Any]) -> Turn:
    """The request as it is sent, with the tools in its prompt. Raises BadToolSpec, BadOptions."""
    return middleware.transform_params(
        {**arguments, "messages": list(arguments.get("messages") or ())}
    )


def _answer(litellm: Any, response: Any, middleware: ToolCallMiddleware, turn: Turn) -> Any:
    """litellm's answer, whole or a stream, with the calls of its text."""
    # Without tools nothing was added to the prompt, and nothing is to be read from the answer.
    if not turn.active:
        return response
    if isinstance(response, litellm.ModelResponse):
        return with_tool_calls(litellm, response, middleware, turn)
    if isinstance(response, litellm.CustomStreamWrapper):
        return stream_of(litellm, response, middleware, turn)
    return response


def _middleware(
    protocol: Any, middleware: ToolCallMiddleware | None, tool_choice_by: ChoiceBy | None
) -> ToolCallMiddleware:
    """The middleware that was passed, or one of the protocol. Raises BadOptions for both."""
    if middleware is not None:
        if protocol is not None or tool_choice_by is not None:
            raise BadOptions(
                "a middleware has its protocol and its tool_choice_by already",
                got={"protocol": protocol, "tool_choice_by": tool_choice_by},
                hint="pass them to create_tool_middleware instead",
            )
        return middleware

    by: ChoiceBy = tool_choice_by or "response_format"
    if protocol is None:
        protocol = "hermes"
    # A protocol object may not be hashable, and may change: only ids are remembered.
    if isinstance(protocol, str):
        return middleware_for(protocol, by)
    return _new_middleware(protocol, by)


def _new_middleware(protocol: Any, tool_choice_by: ChoiceBy) -> ToolCallMiddleware:
    return create_tool_middleware(protocol, tool_choice_by=tool_choice_by)


middleware_for = functools.lru_cache(maxsize=64)(_new_middleware)
"""The middleware of a protocol id and a `tool_choice_by`, made once. Raises UnknownProtocol."""
