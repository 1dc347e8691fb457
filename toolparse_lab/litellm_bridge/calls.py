"""`completion` and `acompletion` with litellm's arguments and answers, and tool calls from any model."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

from ..errors import BadOptions
from ..middleware import ToolCallMiddleware, Turn, create_tool_middleware
from ..runner.litellm_door import litellm_module
from .refusal import refusal
from .response import with_tool_calls
from .stream import stream_of

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
    """`litellm.completion` for a model that has no tool calling: the tools are described in the prompt and the calls
    are read from the text.

    `protocol` ("hermes" unless said otherwise) is an id or protocol object; `tool_choice_by="prompt"` asks for a
    forced call in the system prompt, for providers that reject response_format; `middleware` replaces both.
    Everything else goes to litellm. Gives litellm's ModelResponse, or with `stream=True` its stream: an iterator of
    ModelResponseStream. Without `tools` the answer is litellm's own.

    Raises what litellm raises; ResponseFormatRejected (also a litellm.BadRequestError) where the provider refuses the
    response_format of a forced tool choice; BadToolSpec, BadOptions, UnknownProtocol for what cannot be sent.
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
    """`litellm.acompletion` for a model that has no tool calling; see `completion`. With `stream=True` it gives an
    async iterator; a task that is cancelled while it waits for a chunk closes the provider's connection."""
    by = _middleware(protocol, middleware, tool_choice_by)
    return await acompletion_with(by, model=model, messages=messages, **arguments)


def completion_with(middleware: ToolCallMiddleware, **arguments: Any) -> Any:
    """`completion` with a middleware that was made before."""
    litellm = litellm_module()
    turn = _turn(middleware, arguments)
    try:
        response = litellm.completion(**turn.params)
    except Exception as e:
        refused = refusal(e, turn)
        if refused is None:
            raise
        raise refused from e
    return _read(litellm, response, middleware, turn)


async def acompletion_with(middleware: ToolCallMiddleware, **arguments: Any) -> Any:
    """`acompletion` with a middleware that was made before."""
    litellm = litellm_module()
    turn = _turn(middleware, arguments)
    try:
        response = await litellm.acompletion(**turn.params)
    except Exception as e:
        refused = refusal(e, turn)
        if refused is None:
            raise
        raise refused from e
    return _read(litellm, response, middleware, turn)


def _turn(middleware: ToolCallMiddleware, arguments: Mapping[str, Any]) -> Turn:
    return middleware.transform_params({**arguments, "messages": list(arguments.get("messages") or ())})


def _read(litellm: Any, response: Any, middleware: ToolCallMiddleware, turn: Turn) -> Any:
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
    if middleware is None:
        by: ChoiceBy = tool_choice_by or "response_format"
        protocol = "hermes" if protocol is None else protocol
        return middleware_for(protocol, by) if isinstance(protocol, str) else _made(protocol, by)
    if protocol is not None or tool_choice_by is not None:
        raise BadOptions(
            "a middleware has its protocol and its tool_choice_by already",
            got={"protocol": protocol, "tool_choice_by": tool_choice_by},
            hint="pass them to create_tool_middleware instead",
        )
    return middleware


def _made(protocol: Any, tool_choice_by: ChoiceBy) -> ToolCallMiddleware:
    return create_tool_middleware(protocol, tool_choice_by=tool_choice_by)


middleware_for = functools.lru_cache(maxsize=64)(_made)
"""The middleware of a protocol id and a `tool_choice_by`, made once. Raises UnknownProtocol."""
