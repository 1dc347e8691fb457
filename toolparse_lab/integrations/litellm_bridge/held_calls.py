"""The chunks of a stream whose calls wait for its end, to be corrected there.

No input or output happens here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...middleware import Answer, CorrectedAnswer
from .chunks import ChunkReader
from .findings import FIELD, with_feedback

# How calls wait. Text goes on as it comes, and is final. The first chunk with a piece of a call,
# and every such chunk behind it, is kept until the stream is over: only a whole call can be held
# against its schema, and nothing that went out is taken back. Ends wait with them, because clients
# stop reading there. Then the calls that were corrected get their new arguments, in the chunk in
# which they were whole, and all go out in their order.


class HeldCalls:
    """A ChunkReader whose calls and ends come from `release` instead."""

    def __init__(self, reader: ChunkReader) -> None:
        self._reader = reader
        self._held: list[Any] = []
        self._corrected: dict[int, CorrectedAnswer] = {}
        self._ended = False

    def feed(self, chunk: Any) -> Sequence[Any]:
        """Take in a chunk. Return those to send on now."""
        return self._without_held(self._reader.feed(chunk))

    def close(self, *, cut: bool = False) -> Sequence[Any]:
        """End the stream. Return what else is to be sent before `release`."""
        return self._without_held(self._reader.close(cut=cut))

    @property
    def answers(self) -> dict[int, Answer]:
        """Index of a choice -> its answer, once the stream is over."""
        return self._reader.answers

    def settle(self, index: int, corrected: CorrectedAnswer) -> None:
        """Note the corrections of a choice's answer."""
        if corrected.calls:
            self._corrected[index] = corrected

    def release(self) -> list[Any]:
        """Return the chunks that were kept, with the corrected call.

        A second call gives none.
        """
        chunks, self._held = self._held, []
        return [self._with_corrections(chunk) for chunk in chunks]

    def _without_held(self, chunks: Sequence[Any]) -> Sequence[Any]:
        """Keep what waits. Return the rest."""
        passed = []
        for chunk in chunks:
            ends = any(choice.finish_reason is not None for choice in chunk.choices)
            self._ended = self._ended or ends
            if self._ended or any(choice.delta.tool_calls for choice in chunk.choices):
                self._held.append(chunk)
            else:
                passed.append(chunk)
        return passed

    def _with_corrections(self, chunk: Any) -> Any:
        """Return a chunk with everything corrected in its choice.

        Itself if nothing was.
        """
        if len(chunk.choices) != 1 or chunk.choices[0].index not in self._corrected:
            return chunk
        choice = chunk.choices[0]
        corrected = self._corrected[choice.index]
        delta = choice.delta
        changes: dict[str, Any] = {}
        if delta.tool_calls:
            changes["tool_calls"] = [_with_arguments(c, corrected.answer) for c in delta.tool_calls]
        if choice.finish_reason is not None:
            fields = getattr(delta, "provider_specific_fields", None) or {}
            ours = {FIELD: fields[FIELD]} if FIELD in fields else None
            changes["provider_specific_fields"] = {**fields, **with_feedback(ours, corrected)}
        new = choice.model_copy(update={"delta": delta.model_copy(update=changes)})
        return chunk.model_copy(update={"choices": [new]})


def _with_arguments(call: Any, answer: Answer) -> Any:
    """Return a call of the text with the arguments that it has in the answer.

    Any other itself.

    call: a delta. A call of the text is whole in one, and its id is that of the answer's.
    """
    for own in answer.tool_calls:
        if own["id"] == call.id:
            arguments = own["function"]["arguments"]
            function = call.function.model_copy(update={"arguments": arguments})
            return call.model_copy(update={"function": function})
    return call
