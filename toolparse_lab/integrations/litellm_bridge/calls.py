"""`completion` and `acompletion` with litellm's arguments and answers, and tool calls from any
model.
"""

from __future__ import annotations

import functools
from collections.abc import Generator, Mapping, Sequence
from typing import Any, Protocol, Unpack

from ...core.errors import BadMessage, BadOptions
from ...formats.like import ProtocolLike
from ...middleware import Answer, CorrectedAnswer, ToolCallMiddleware, Turn
from ...middleware.drive import adrive, drive
from ...middleware.flow.factors import LitellmArguments
from ...runner.litellm_door import litellm_module
from ...runner.litellm_faults import join_text_parts
from .options import KEYWORDS, BridgeArguments, middleware_for, take_options
from .response import AnswerIds, Asked, without_findings
from .stream import stream_of

MODEL_PARAMS = ("reasoning_effort", "thinking", "verbosity")
_ASKED = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
_WHOLE = ("complete_streaming_response", "async_complete_streaming_response")


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

    `protocol` ("hermes" unless said otherwise) is an id, with options after it as in a model
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
    keywords: dict[str, Any] = {"model": model, "messages": messages, **arguments}
    asked = _asked(middleware, keywords)
    add_callback(asked, keywords)
    with asked.refusals():
        response = asked.litellm.completion(**asked.turn.params)
    return drive(_read(asked, response), asked.corrected)


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
    """
    keywords: dict[str, Any] = {"model": model, "messages": messages, **arguments}
    asked = _asked(middleware, keywords)
    if tap is not None:
        asked.turn.params.update(tap.sent(asked.turn))
    add_callback(asked, keywords)
    with asked.refusals():
        response = await asked.litellm.acompletion(**asked.turn.params)
    if tap is not None:
        response = tap.received(asked.litellm, response)
    return await adrive(
        _read(asked, response), asked.corrected_later, apart=_is_long(asked, response)
    )


def _is_long(asked: Asked, response: Any) -> bool:
    # Whether other tasks of the loop would wait for this answer to be read.
    if not isinstance(response, asked.litellm.ModelResponse):
        return False
    texts = [getattr(choice.message, "content", None) for choice in response.choices]
    return sum(len(text) for text in texts if isinstance(text, str)) > _LONG


def _asked(middleware: ToolCallMiddleware, arguments: Mapping[str, Any]) -> Asked:
    """Return the request as it is sent, with the tools in its prompt. Raises BadToolSpec, and
    BadOptions for options, which the endpoint would get.
    """
    litellm = litellm_module()
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
        {**arguments, "messages": without_findings(messages)}, choice_schema="any_of_many"
    )
    let_pass(litellm, turn.params)
    join_text_parts(str(arguments.get("model")))
    return Asked(litellm, middleware, turn)


_LONG = 2**15  # characters that are read in some milliseconds


def _read(asked: Asked, response: Any) -> Generator[Answer, CorrectedAnswer, Any]:
    # What is handed on of a response. The answers that are yielded are to be corrected.
    # Without tools nothing was added to the prompt, and nothing is to be read from the answer.
    if not asked.turn.active:
        return response
    if isinstance(response, asked.litellm.ModelResponse):
        answers: list[CorrectedAnswer] | None = None
        if asked.corrects:
            answers = []
            for answer in asked.answers(response):
                answers.append((yield answer))
        return asked.read(response, answers)
    if isinstance(response, asked.litellm.CustomStreamWrapper):
        return stream_of(asked, response)
    return response


def _middleware(
    protocol: Any, middleware: ToolCallMiddleware | None, arguments: dict[str, Any]
) -> ToolCallMiddleware:
    """Return the middleware that was passed, or one of the protocol and of the options, which are
    taken out of the arguments. Raises BadOptions for both.
    """
    options = take_options(arguments)
    if middleware is None:
        return middleware_for("hermes" if protocol is None else protocol, options)
    if protocol is not None or options:
        raise _has_options({"protocol": protocol, **options})
    return middleware


def _has_options(options: Mapping[str, Any]) -> BadOptions:
    return BadOptions(
        "a middleware has its protocol and its options already",
        got=dict(options),
        hint="pass them to create_tool_middleware instead",
    )


def let_pass(litellm: Any, params: dict[str, Any]) -> None:
    """Move parameters of newer models, which litellm refuses where it does not know that a provider
    takes them, into `extra_body`: servers of open models take them, and one that does not says so.

    params: the arguments of the call. Only where OpenAI's protocol is spoken: another provider's
    parameters have other names. A request that says `drop_params` has them dropped, as litellm
    does.
    """
    names = [name for name in MODEL_PARAMS if params.get(name) is not None]
    if not names or params.get("drop_params") or litellm.drop_params:
        return
    try:
        model, provider, *_ = litellm.get_llm_provider(
            model=params["model"],
            custom_llm_provider=params.get("custom_llm_provider"),
            api_base=params.get("api_base"),
        )
        supported = litellm.get_supported_openai_params(model=model, custom_llm_provider=provider)
    except Exception:  # litellm says what is wrong with the model when it is asked
        return
    if provider != "openai" and provider not in litellm.openai_compatible_providers:
        return
    unknown = {name: params.pop(name) for name in names if name not in (supported or ())}
    if unknown:
        params["extra_body"] = {**unknown, **(params.get("extra_body") or {})}


# How callbacks work. litellm logs what it sent and what it was sent: a prompt without tools, a text
# without calls. Before it calls callbacks it lets each of them change what is logged. So a callback
# of ours goes along with the request, for this request alone and only where the host has callbacks
# at all; it puts the tools and the messages of the caller in their place, and reads the answer once
# more. It may run in another thread, before or after the caller gets the answer; so that both name
# a call by the same id, the ids are shared.


def add_callback(asked: Asked, arguments: Mapping[str, Any]) -> None:
    """Let callbacks see the call as the caller made it, with the ids of the answer's calls.

    arguments: of the caller. A request that is not logged, as the provider's inner one, has no
    callbacks.
    """
    litellm, params = asked.litellm, asked.turn.params
    watched = (
        litellm.callbacks
        or litellm.success_callback
        or litellm._async_success_callback
        or any(arguments.get(name) for name in ("success_callback", "callbacks"))
    )
    if not asked.turn.active or arguments.get("no-log") or not watched:
        return
    asked.ids = AnswerIds()
    ours = [kind(asked, arguments) for kind in _callback_classes(litellm)]
    params["success_callback"] = [*(params.get("success_callback") or ()), *ours]


@functools.lru_cache(maxsize=1)
def _callback_classes(litellm: Any) -> tuple[Any, Any]:
    # The callback for calls without async, and that for the others: litellm keeps two lists. Made
    # when first needed, because importing litellm takes seconds.

    class AsTheCallerSees(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc]
        """The callback of one request, which changes what is logged and logs nothing."""

        def __init__(self, asked: Asked, arguments: Mapping[str, Any]) -> None:
            super().__init__()
            self._request = asked
            self._arguments = arguments

        def logging_hook(
            self, kwargs: dict[str, Any], result: Any, call_type: str
        ) -> tuple[dict[str, Any], Any]:
            details = dict(kwargs)
            for name in _WHOLE:
                if details.get(name) is not None:
                    details[name] = self._answer(details[name])
            result = self._answer(result)
            details["optional_params"] = self._asked(details.get("optional_params") or {})
            # Messages that are not ours were made illegible on purpose.
            legible = details.get("messages") == self._request.turn.params["messages"]
            if legible:
                details["messages"] = self._arguments.get("messages")
            payload = details.get("standard_logging_object")
            if payload is not None:
                whole = next((details[name] for name in _WHOLE if details.get(name)), result)
                details["standard_logging_object"] = self._payload(payload, whole, legible)
            return details, result

        async def async_logging_hook(
            self, kwargs: dict[str, Any], result: Any, call_type: str
        ) -> tuple[dict[str, Any], Any]:
            return self.logging_hook(kwargs, result, call_type)

        def _answer(self, response: Any) -> Any:
            if not isinstance(response, litellm.ModelResponse) or not all(
                hasattr(choice, "message") for choice in response.choices
            ):
                return response
            return self._request.read(response)

        def _asked(self, params: Mapping[str, Any]) -> dict[str, Any]:
            # With the tools of the caller, and without the form asked for instead.
            others = {name: value for name, value in params.items() if name not in _ASKED}
            tools = {name: self._arguments.get(name) for name in _ASKED}
            return {**others, **{name: value for name, value in tools.items() if value is not None}}

        def _payload(self, payload: Mapping[str, Any], answer: Any, legible: bool) -> Any:
            # litellm's standard record of a call, likewise.
            changed: dict[str, Any] = dict(payload)
            changed["model_parameters"] = self._asked(payload.get("model_parameters") or {})
            if legible:
                changed["messages"] = self._arguments.get("messages")
                if isinstance(answer, litellm.ModelResponse):
                    changed["response"] = answer.model_dump()
            return changed

    class AsAsyncCallersSee(AsTheCallerSees):
        """litellm takes for async everything called as a coroutine."""

        async def __call__(self, *args: Any, **kw: Any) -> None:
            """Do nothing: the hook has changed what is logged."""

    return AsTheCallerSees, AsAsyncCallersSee
