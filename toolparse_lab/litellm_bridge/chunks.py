"""The chunks of a stream with the calls that their texts hold as tool-call deltas. No input or output happens here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..middleware import AnswerStream, ToolCallMiddleware, Turn

_OTHER = ("function_call", "audio", "images", "annotations", "reasoning_content", "thinking_blocks", "reasoning_items")


class _Choice:
    """What one choice of a stream has said so far."""

    __slots__ = ("finish", "indices", "role", "sent", "stream")

    def __init__(self, stream: AnswerStream) -> None:
        self.stream = stream
        self.role: str | None = None  # of a chunk whose text was held back
        self.finish: Any = None  # the chunk that ended it
        self.sent = 0  # calls sent
        self.indices: dict[int, int] = {}  # the provider's own calls: their index -> the index they were sent with


class ChunkReader:
    """`feed(chunk)` for every chunk of litellm, then `close()`; both give the chunks to send on instead.

    A chunk whose text is plain text is passed on as it is. What ends a choice is sent last, when nothing can follow:
    litellm ends the first choice when any of them ends. After a failure, `close(cut=True)` gives what was held back.
    """

    def __init__(self, shapes: Any, middleware: ToolCallMiddleware, turn: Turn) -> None:
        self._shapes = shapes
        self._middleware = middleware
        self._turn = turn
        self._choices: dict[int, _Choice] = {}
        self._last: Any = None
        self._closed = False

    def feed(self, chunk: Any) -> Sequence[Any]:
        choices = chunk.choices
        if self._closed:
            return (chunk,)
        if not choices:  # the usage, or before the first text what a provider says of the prompt
            return (*self.close(), chunk) if self._ended else (chunk,)
        self._last = chunk
        if len(choices) == 1:
            return self._read(chunk, choices[0])
        # Chunks with several choices are sent on as several chunks, so that each may become more or fewer.
        return [
            made for choice in choices for made in self._read(chunk.model_copy(update={"choices": [choice]}), choice)
        ]

    def close(self, *, cut: bool = False) -> Sequence[Any]:
        if self._closed:
            return ()
        self._closed = True
        ends = [c.finish for c in self._choices.values() if c.finish is not None]
        made: list[Any] = []
        endings: list[Any] = []
        for index, state in sorted(self._choices.items()):
            end = state.finish if state.finish is not None else (ends[0] if ends and not cut else None)
            reason = None if end is None else end.choices[0].finish_reason
            deltas, answer = state.stream.close(reason, called=bool(state.indices))
            made += self._made(self._last, index, state, deltas)
            if end is None:
                continue
            if end is state.finish and answer.finish_reason == reason and not end.choices[0].delta.content:
                endings.append(end)
            else:
                endings.append(self._chunk(end, index, {"content": None}, answer.finish_reason))
        return made + endings

    @property
    def _ended(self) -> bool:
        return any(c.finish is not None for c in self._choices.values())

    def _read(self, chunk: Any, choice: Any) -> Sequence[Any]:
        delta = choice.delta
        text = delta.content
        index = choice.index
        state = self._choices.get(index)
        if state is None:
            state = self._choices[index] = _Choice(self._middleware.wrap_stream(self._turn))
        if choice.finish_reason is not None:
            state.finish = chunk
            made = self._made(chunk, index, state, state.stream.feed(text)) if text else ()
            return (*self._rest(chunk, index, state, choice), *made)
        if not text:
            if self._ended and getattr(chunk, "usage", None) is not None:
                return (*self.close(), chunk)
            return self._rest(chunk, index, state, choice) if delta.tool_calls else (chunk,)
        deltas = state.stream.feed(text)
        if len(deltas) == 1 and state.role is None and deltas[0].get("content") == text:
            return (chunk,)
        rest = self._rest(chunk, index, state, choice)
        if delta.role and not rest:
            state.role = delta.role
        return (*rest, *self._made(chunk, index, state, deltas))

    def _rest(self, chunk: Any, index: int, state: _Choice, choice: Any) -> Sequence[Any]:
        """A chunk of all that is not text, where there is any."""
        delta = choice.delta
        changes: dict[str, Any] = {"content": None}
        if delta.tool_calls:
            changes["tool_calls"] = [self._own_call(state, call) for call in delta.tool_calls]
        elif choice.logprobs is None and all(getattr(delta, name, None) is None for name in _OTHER):
            return ()
        rest = choice.model_copy(update={"delta": delta.model_copy(update=changes), "finish_reason": None})
        return (chunk.model_copy(update={"choices": [rest]}),)

    def _own_call(self, state: _Choice, call: Any) -> Any:
        """A call that the provider made itself, with an index that no other call of the choice has."""
        if call.index not in state.indices:
            state.indices[call.index] = state.sent
            state.sent += 1
        return call.model_copy(update={"index": state.indices[call.index]})

    def _made(self, chunk: Any, index: int, state: _Choice, deltas: Sequence[dict[str, Any]]) -> list[Any]:
        made = []
        for delta in deltas:
            if "tool_calls" in delta:
                calls = [{**call, "index": state.sent + i} for i, call in enumerate(delta["tool_calls"])]
                state.sent += len(calls)
                delta = {"tool_calls": calls}
            if state.role is not None:
                delta = {"role": state.role, **delta}
                state.role = None
            made.append(self._chunk(chunk, index, delta))
        return made

    def _chunk(self, like: Any, index: int, delta: dict[str, Any], finish_reason: str | None = None) -> Any:
        """A chunk with one delta, otherwise like `like`: the same id, model, time, hidden parameters."""
        choice = self._shapes.StreamingChoices(
            index=index, delta=self._shapes.Delta(**delta), finish_reason=finish_reason, logprobs=None
        )
        return like.model_copy(update={"choices": [choice]})
