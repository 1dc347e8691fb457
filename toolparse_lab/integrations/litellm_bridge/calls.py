"""`completion` and `acompletion` with litellm's arguments and answers, and tool calls from any
model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Unpack

from ...core.errors import BadMessage, BadOptions
from ...formats.like import ProtocolLike
from ...middleware import ToolCallMiddleware, Turn
from ...middleware.flow.factors import LitellmArguments
from ...runner.litellm_door import litellm_module
from ...runner.litellm_faults import join_text_parts
from .again import Again
from .answer_ids import AnswerIds
from .arguments import BridgeArguments
from .callbacks import add_callback
from .findings import without_findings
from .model_params import let_pass
from .options import KEYWORDS, middleware_for, take_options
from .refusal import refusal
from .response import answers_of, with_answers, with_tool_calls
from .stream import stream_of


class Tap(Protocol):
    """Sees what passes between the bridge and a model. See `acompletion_with`."""

    def sent(self, turn: Turn) -> Mapping[str, Any]:
        """Take the request as it is sent.

        The arguments of litellm that this needs come back.
        """

    def received(self, litellm: Any, response: Any) -> Any:
        """Take litellm's answer.

        The answer to read comes back, whole or a stream of the same class.
        """


def completion(
    model: str,
    messages: Sequence[Any] | None = None,
    *,
    protocol: ProtocolLike | None = None,
    middleware: ToolCallMiddleware | None = None,
    **arguments: Unpack[BridgeArguments],
) -> Any:
    """Ask as `litellm.completion` does, for a model without tool calling.

    The prompt describes the tools, and the parser reads the calls from the text.

    `protocol` ("hermes" unless said otherwise) is an id, with options behind it as in a model
    string, or a protocol object. Options by keyword are those of `create_tool_middleware`, and
    `wording` and `policy`: `tool_choice_by="prompt"` asks for a forced call in the system prompt,
    for providers that reject response_format. `broken_calls="call"` and `unknown_tools="call"` hand
    on calls that failed. `feedback="production"` asks the same model again about calls that the
    schema refuses. `middleware` replaces all of them. Everything else goes to litellm. Gives
    litellm's ModelResponse, or with `stream=True` its stream: an iterator of ModelResponseStream.
    Without `tools` the answer is litellm's own.

    Raises the errors of litellm. ResponseFormatRejected (also a litellm.BadRequestError) where the
    provider refuses the response_format of a forced tool choice. BadToolSpec, BadOptions,
    UnknownProtocol for what cannot be sent.

    >>> from toolparse_lab.integrations.litellm_bridge import completion
    >>> tools = [{"type": "function", "function": {"name": "now"}}]
    >>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    >>> question = [{"role": "user", "content": "What time is it?"}]
    >>> answer = completion("openai/m", question, tools=tools, mock_response=text)
    >>> answer.choices[0].message.tool_calls[0].function.name
    'now'
    """
    others: dict[str, Any] = {**arguments}
    by = _middleware(protocol, middleware, others)
    return completion_with(by, model=model, messages=messages, **others)


async def acompletion(
    model: str,
    messages: Sequence[Any] | None = None,
    *,
    protocol: ProtocolLike | None = None,
    middleware: ToolCallMiddleware | None = None,
    **arguments: Unpack[BridgeArguments],
) -> Any:
    """`litellm.acompletion` for a model that has no tool calling.

    See `completion`. With `stream=True` it gives an async iterator. A task that is cancelled while
    it waits for a chunk closes the provider's connection.

    >>> import asyncio
    >>> from toolparse_lab.integrations.litellm_bridge import acompletion
    >>> tools = [{"type": "function", "function": {"name": "now"}}]
    >>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    >>> question = [{"role": "user", "content": "What time is it?"}]
    >>> later = acompletion("openai/m", question, tools=tools, mock_response=text)
    >>> asyncio.run(later).choices[0].message.tool_calls[0].function.name
    'now'
    """
    others: dict[str, Any] = {**arguments}
    by = _middleware(protocol, middleware, others)
    return await acompletion_with(by, model=model, messages=messages, **others)


def completion_with(
    middleware: ToolCallMiddleware,
    *,
    model: str,
    messages: Sequence[Any] | None = None,
    **arguments: Unpack[LitellmArguments],
) -> Any:
    """`completion` with a middleware made before.

    >>> import toolparse_lab as tp
    >>> from toolparse_lab.integrations.litellm_bridge import completion_with
    >>> tools = [{"type": "function", "function": {"name": "now"}}]
    >>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    >>> question = [{"role": "user", "content": "What time is it?"}]
    >>> middleware = tp.create_tool_middleware("hermes")
    >>> asked = {"model": "openai/m", "messages": question, "tools": tools}
    >>> answer = completion_with(middleware, **asked, mock_response=text)
    >>> answer.choices[0].finish_reason
    'tool_calls'
    """
    litellm = litellm_module()
    keywords: dict[str, Any] = {"model": model, "messages": messages, **arguments}
    turn = _turn(litellm, middleware, keywords)
    again = Again(litellm, middleware, turn)
    ids = add_callback(litellm, middleware, turn, keywords)
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
    middleware: ToolCallMiddleware,
    *,
    model: str,
    messages: Sequence[Any] | None = None,
    tap: Tap | None = None,
    **arguments: Unpack[LitellmArguments],
) -> Any:
    """`acompletion` with a middleware made before.

    Args:
        tap: is shown the request as it is sent, and litellm's answer before it is read.

    >>> import asyncio
    >>> import toolparse_lab as tp
    >>> from toolparse_lab.integrations.litellm_bridge import acompletion_with
    >>> tools = [{"type": "function", "function": {"name": "now"}}]
    >>> text = '<tool_call>{"name": "now", "arguments": {}}</tool_call>'
    >>> question = [{"role": "user", "content": "What time is it?"}]
    >>> middleware = tp.create_tool_middleware("hermes")
    >>> asked = {"model": "openai/m", "messages": question, "tools": tools}
    >>> later = acompletion_with(middleware, **asked, mock_response=text)
    >>> asyncio.run(later).choices[0].finish_reason
    'tool_calls'
    """
    litellm = litellm_module()
    keywords: dict[str, Any] = {"model": model, "messages": messages, **arguments}
    turn = _turn(litellm, middleware, keywords)
    again = Again(litellm, middleware, turn)
    if tap is not None:
        turn.params.update(tap.sent(turn))
    ids = add_callback(litellm, middleware, turn, keywords)
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
    """Return the request as it is sent, with the tools in its prompt.

    Raises BadToolSpec, and BadOptions for options, which the endpoint would get.
    """
    if not arguments.keys().isdisjoint(KEYWORDS):
        raise _has_options({name: arguments[name] for name in KEYWORDS if name in arguments})
    messages = arguments.get("messages")
    if messages is None or isinstance(messages, (str, bytes, Mapping)):
        raise BadMessage(
            "a completion needs messages",
            got="none" if messages is None else messages,
            expected="a list of {role, content}",
            hint='messages=[{"role": "user", "content": "…"}]',
        )
    turn = middleware.transform_params(
        {**arguments, "messages": without_findings(messages)},
        choice_schema="any_of_many",
    )
    let_pass(litellm, turn.params)
    join_text_parts(str(arguments.get("model")))
    return turn


def _answer(
    litellm: Any,
    response: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    ids: AnswerIds | None,
    again: Again,
) -> Any:
    """litellm's answer, whole or a stream, with the calls of its text.

    A stream has them corrected at its end.
    """
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
    """Return the middleware that was passed, or one of the protocol.

    The options are taken out of the arguments. Raises BadOptions for both.
    """
    options = take_options(arguments)
    if middleware is None:
        return middleware_for("hermes" if protocol is None else protocol, options)
    if protocol is not None or options:
        raise _has_options({"protocol": protocol, **options})
    return middleware


def _has_options(options: Mapping[str, Any]) -> BadOptions:
    """Return the error of options beside a middleware."""
    return BadOptions(
        "a middleware has its protocol and its options already",
        got=dict(options),
        hint="pass them to create_tool_middleware instead",
    )
