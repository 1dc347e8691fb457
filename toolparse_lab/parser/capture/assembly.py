"""One answer while it is put together, from a whole response or piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from ...core.types.call_pieces import CallPieces, joined, name_and_arguments
from ...core.types.call_pieces import member as get
from ...core.values import write_canonical
from .tokens import Tokens

# How an answer is put together. Every reader of a shape (whole answers, chunks, content parts)
# calls the same few methods of one Assembly: say, think, refuse, call, finish. It keeps pieces in
# lists and joins them once, so that the cost is linear in the text. Calls are found by an index of
# the reader's own choice, which need only be the same for all pieces of one call.

_IDS = ("id", "model", "system_fingerprint")


class Assembly:
    """The parts that were received so far of the answer number `choice` (from 0)."""

    def __init__(self, choice: int = 0, *, streamed: bool = False) -> None:
        self.choice = choice
        self.streamed = streamed
        self.chunks: list[tuple[Literal["content", "reasoning"], str]] = []
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.ids: dict[str, str] = {}
        self.error: str | None = None
        self.choices = 0
        # The raw-completion endpoint: text, no messages.
        self.completion = False
        self.tokens = Tokens()
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls = CallPieces()

    @property
    def content(self) -> str:
        """The text of the answer."""
        return joined(self._content)

    @property
    def reasoning(self) -> str:
        """The reasoning that a server or client split off the text."""
        return joined(self._reasoning)

    @property
    def refusal(self) -> str:
        """A refusal that stood apart from the text."""
        return joined(self._refusal)

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """In OpenAI's shape, in the order in which they were begun.

        Arguments are the text as it came, whole or broken, or the object that a server sent in its
        place.
        """
        return tuple(self._calls.to_list())

    @property
    def called(self) -> bool:
        """True if the answer makes a call.

        A call counts from its first piece on, also where neither name nor arguments came.
        """
        return bool(self._calls)

    def say(self, text: Any) -> None:
        """Add a piece of the text.

        Anything but a text does not count, as in all that follow.

        An empty text is none, so that no empty chunk is recorded.
        """
        if isinstance(text, str) and text:
            self._content.append(text)
            self._chunk("content", text)

    def think(self, text: Any) -> None:
        """Add a piece of the reasoning.

        It is kept apart: reasoning is no part of the text that is parsed.
        """
        if isinstance(text, str) and text:
            self._reasoning.append(text)
            self._chunk("reasoning", text)

    def refuse(self, text: Any) -> None:
        """Add a piece of a refusal.

        Among the chunks it is content: the model wrote it.

        It is kept apart from the text, and takes its place if there is no text.
        """
        if isinstance(text, str) and text:
            self._refusal.append(text)
            self._chunk("content", text)

    def identify(self, response: Any, **names: str) -> None:
        """Take over ids and token counts.

        The first id counts, the last usage.

        `names` maps an id to the member that holds it, where that has another name.

        Usage is merged member by member: some servers send the tokens of the prompt with the first
        chunk and those of the answer with the last.
        """
        for name in _IDS:
            value = get(response, names.get(name, name))
            if isinstance(value, str) and value:
                self.ids.setdefault(name, value)
        # Merged, since the tokens of prompt and answer may come in different chunks.
        usage = plain(get(response, "usage"))
        if isinstance(usage, Mapping) and usage:
            self.usage = {**(self.usage or {}), **usage}

    def finish(self, reason: Any) -> None:
        """Take over a finish reason, in the provider's own word.

        The last one counts, but "stop" does not take back one that says more. Chunks before the
        last one have None there, and some servers an empty text.
        """
        if not isinstance(reason, str) or not reason:
            return
        if reason != "stop" or self.finish_reason is None:
            self.finish_reason = reason

    def fail(self, error: Any) -> None:
        """Note an error that stands in the answer's place, or behind its beginning.

        `error` is a message, or an object that holds one. Of any other object its JSON is the
        message, so that nothing a server said disappears.
        """
        message = error if isinstance(error, str) else get(error, "message")
        if not isinstance(message, str) or not message:
            message = write_canonical(plain(error))
        self.error = message

    def call(self, index: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """Add a call or a piece of one, see `CallPieces.take`.

        Raises nothing: a piece of the wrong type does not count.
        """
        self._calls.take(index, id, name, arguments)
        self._call_chunk(name, arguments)

    def call_list(self, calls: Sequence[Any], *, whole: bool) -> None:
        """Add the `tool_calls` of a message, or of the delta of one, see `CallPieces.take_list`."""
        self._calls.take_list(calls, whole=whole)
        for call in calls:
            self._call_chunk(*name_and_arguments(call))

    def _call_chunk(self, name: Any, arguments: Any) -> None:
        """Note the characters of a call's piece, as they came."""
        piece = "".join([text for text in (name, arguments) if isinstance(text, str)])
        if piece:
            self._chunk("content", piece)

    def _chunk(self, kind: Literal["content", "reasoning"], text: str) -> None:
        """Note a piece of a stream. Whole answers have none."""
        if self.streamed:
            self.chunks.append((kind, text))


def items(obj: Any) -> list[Any]:
    """Return the items of a list, none for everything else.

    A text is not a list here, although Python could iterate over it.
    """
    return list(obj) if isinstance(obj, (list, tuple)) else []


_DEEPEST = 200  # levels; Python's own limit on recursion is 1,000 calls


def plain(obj: Any, depth: int = 0) -> Any:
    """Objects of clients as JSON without their empty members.

    Values nested too deep for that stay as they are.

    `depth` counts the levels above. Objects with `model_dump` (pydantic) and objects with plain
    attributes are taken apart. A value of any other class stays as it is.
    """
    if depth > _DEEPEST:
        return obj
    obj = _dumped(obj)
    if isinstance(obj, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in obj.items() if v is not None}
    if isinstance(obj, (list, tuple)):
        return [plain(v, depth + 1) for v in obj]
    return obj


def _dumped(obj: Any) -> Any:
    """Return the members of a client's object as a dict.

    Everything else as it is.

    Classes, functions and mappings are left alone: their `__dict__` says nothing about an answer.
    """
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        return dump()
    plain_object = hasattr(obj, "__dict__") and not callable(obj)
    if plain_object and not isinstance(obj, (type, Mapping)):
        return vars(obj)
    return obj
