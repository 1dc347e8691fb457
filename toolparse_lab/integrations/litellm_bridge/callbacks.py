"""litellm's callbacks at a drop-in call: they see the request and the answer as the caller does."""

# How it works. litellm logs what it sent and what it was sent: a prompt without tools, a text
# without calls. Before it calls callbacks it lets each of them change what is logged. So a callback
# of ours goes along with the request, for this request alone and only where the host has callbacks
# at all; it puts the tools and the messages of the caller in their place, and reads the answer once
# more. It may run in another thread, before or after the caller gets the answer; so that both name
# a call by the same id, the ids are shared.

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from ...middleware import ToolCallMiddleware, Turn
from .answer_ids import AnswerIds
from .response import with_tool_calls

_ASKED = ("tools", "tool_choice", "parallel_tool_calls", "response_format")
_WHOLE = ("complete_streaming_response", "async_complete_streaming_response")
_PARAMS = ("success_callback", "callbacks")


def add_callback(
    litellm: Any,
    middleware: ToolCallMiddleware,
    turn: Turn,
    arguments: Mapping[str, Any],
) -> AnswerIds | None:
    """Let callbacks see the call as the caller made it.

    Returns the ids that the answer's calls get in both places, None if there is no callback.

    turn: the request, whose `params` are added to. arguments: of the caller. A request that is not
    logged, as the provider's inner one, has no callbacks.
    """
    if not turn.active or arguments.get("no-log") or not _has_callbacks(litellm, arguments):
        return None
    ids = AnswerIds()
    ours = [kind(litellm, middleware, turn, arguments, ids) for kind in _callback_classes(litellm)]
    own = turn.params.get("success_callback") or ()
    turn.params["success_callback"] = [*own, *ours]
    return ids


def _has_callbacks(litellm: Any, arguments: Mapping[str, Any]) -> bool:
    """Return True if someone looks at what is logged."""
    return bool(
        litellm.callbacks
        or litellm.success_callback
        or litellm._async_success_callback
        or any(arguments.get(name) for name in _PARAMS)
    )


@functools.lru_cache(maxsize=1)
def _callback_classes(litellm: Any) -> tuple[Any, Any]:
    """Return the callback for calls without async, and that for the others: litellm keeps two
    lists. Made when first needed, because importing litellm takes seconds.
    """

    class AsTheCallerSees(litellm.integrations.custom_logger.CustomLogger):  # type: ignore[misc]
        """The callback of one request, which changes what is logged and logs nothing."""

        def __init__(
            self,
            litellm: Any,
            middleware: ToolCallMiddleware,
            turn: Turn,
            arguments: Mapping[str, Any],
            ids: AnswerIds,
        ) -> None:
            super().__init__()
            self._litellm = litellm
            self._middleware = middleware
            self._turn = turn
            self._arguments = arguments
            self._ids = ids

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
            legible = details.get("messages") == self._turn.params["messages"]
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
            """Return an answer of litellm's with the calls of its text.

            Anything else as it is.
            """
            if not isinstance(response, self._litellm.ModelResponse):
                return response
            if not all(hasattr(choice, "message") for choice in response.choices):
                return response
            return with_tool_calls(self._litellm, response, self._middleware, self._turn, self._ids)

        def _asked(self, params: Mapping[str, Any]) -> dict[str, Any]:
            """Parameters with the tools of the caller, and without the form asked for instead."""
            others = {name: value for name, value in params.items() if name not in _ASKED}
            tools = {name: self._arguments.get(name) for name in _ASKED}
            return {**others, **{name: value for name, value in tools.items() if value is not None}}

        def _payload(self, payload: Mapping[str, Any], answer: Any, legible: bool) -> Any:
            """litellm's standard record of a call, likewise."""
            changed: dict[str, Any] = dict(payload)
            changed["model_parameters"] = self._asked(payload.get("model_parameters") or {})
            if legible:
                changed["messages"] = self._arguments.get("messages")
                if isinstance(answer, self._litellm.ModelResponse):
                    changed["response"] = answer.model_dump()
            return changed

    class AsAsyncCallersSee(AsTheCallerSees):
        """litellm takes for async everything called as a coroutine."""

        async def __call__(self, *args: Any, **kw: Any) -> None:
            """Do nothing: the hook has changed what is logged."""

    return AsTheCallerSees, AsAsyncCallersSee
