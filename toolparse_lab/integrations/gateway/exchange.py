"""One question and its answer on their way through the gateway, as they will be recorded."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from ...middleware import Turn
from ...runner.answer import Answer
from ...runner.complete import completion_of
from ...runner.exchange.types import Completion, Model, Request
from ..litellm_bridge.tapped import tapped_stream
from .question import Question

# Arguments of litellm that say how it asks, and are no parameters of the request.
_NO_PARAMETERS = frozenset(
    {"messages", "model", "api_base", "api_key", "max_retries", "timeout", "stream", "tools"}
)


class Exchange:
    """A tap of the bridge: takes the request as it is sent, and the answer before it is read.

    `failure` is the exception that ended it, None if it came to its end.
    """

    def __init__(self, question: Question, url: str) -> None:
        self.question = question
        self.failure: BaseException | None = None
        self._url = url
        self._turn: Turn | None = None
        self._answer = Answer(native=False, started=time.perf_counter())
        self._created = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._stream: Any = None
        self._ended = False

    def watched(self) -> AbstractContextManager[None]:
        """Return the context in which to ask and to read, so that a stream's end is seen."""
        return self._answer.body_end.watched()

    def sent(self, turn: Turn) -> Mapping[str, Any]:
        """Take the request as it is sent."""
        # As it is now: litellm's own arguments, callbacks among them, come to it later.
        self._turn = replace(turn, params=dict(turn.params))
        self._answer.native = bool(turn.params.get("tools"))
        self._answer.started = time.perf_counter()
        return {"logger_fn": self._answer.log}

    def received(self, litellm: Any, response: Any) -> Any:
        """Take a whole answer, or stand before a stream."""
        if isinstance(response, litellm.CustomStreamWrapper):
            self._stream = response
            return tapped_stream(litellm, response, self._answer.take_chunk)
        self._answer.read_response(response)
        return response

    def end(self) -> None:
        """Note that nothing more will come. A second call does nothing."""
        if self._ended:
            return
        self._ended = True
        self._answer.latency = round(time.perf_counter() - self._answer.started, 6)
        if self._stream is not None:
            self._answer.end_stream(self._stream)

    @property
    def cut(self) -> bool:
        """True for a stream that ended without a finish reason. Known after `end`."""
        return self._answer.cut

    def completion(self) -> Completion | None:
        """Return the record of it, as that of a run, or None if nothing was sent.

        Its request and response are without credentials. Raw and chunks are as they came.
        """
        if self._turn is None:
            return None
        params = self._turn.params
        rest = {k: v for k, v in params.items() if k not in _NO_PARAMETERS}
        rest.pop("logger_fn", None)
        request = Request(
            Model(
                f"openai/{self.question.model}",
                api_base=self._url,
                api_key=self.question.key,
            ),
            self.question.model,
            tuple(params["messages"]),
            params={**(rest.pop("extra_body", None) or {}), **rest},
            tools=tuple(params.get("tools") or ()),
            stream=self.question.stream,
        )
        return completion_of(request, self._answer, self._created, self.failure)
