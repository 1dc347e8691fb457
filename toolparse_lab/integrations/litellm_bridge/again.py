"""Layer 3 behind litellm: the same model is asked again about calls that the schema refuses."""

from __future__ import annotations

from typing import Any

from ...middleware import (
    Answer,
    CorrectedAnswer,
    Reply,
    ToolCallMiddleware,
    Turn,
    acorrect_answer,
    correct_answer,
)


class Again:
    """Asks the model of one request again.

    turn: of the request, before a callback or a tap was added to it: a correction is a call of its
    own, which callbacks see as it is.
    """

    def __init__(self, litellm: Any, middleware: ToolCallMiddleware, turn: Turn) -> None:
        self._litellm = litellm
        self._middleware = middleware
        self._turn = turn
        self.wanted = middleware.feedback is not None and turn.active
        self._params = dict(turn.params) if self.wanted else {}

    def corrected(self, answer: Answer) -> CorrectedAnswer:
        """Return an answer with its calls corrected. What fails leaves it as it is."""

        def ask(params: dict[str, Any]) -> Reply:
            return self._reply(self._litellm.completion(**self._asked(params)))

        return correct_answer(self._middleware, self._turn, answer, ask)

    async def corrected_later(self, answer: Answer) -> CorrectedAnswer:
        """`corrected` by litellm's async completion."""

        async def ask(params: dict[str, Any]) -> Reply:
            return self._reply(await self._litellm.acompletion(**self._asked(params)))

        return await acorrect_answer(self._middleware, self._turn, answer, ask)

    def _asked(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of litellm for a correction."""
        # What was added to the request after it was made here is none of the caller's.
        return {name: value for name, value in params.items() if name in self._params} | {
            name: self._params[name] for name in ("success_callback",) if name in self._params
        }

    def _reply(self, response: Any) -> Reply:
        """Return the text of litellm's answer, with its tokens and what litellm says that they
        cost.
        """
        message = response.choices[0].message
        usage = getattr(response, "usage", None)
        tokens = getattr(usage, "total_tokens", 0) or 0
        cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost") or 0.0
        return Reply(message.content or "", tokens, float(cost))
