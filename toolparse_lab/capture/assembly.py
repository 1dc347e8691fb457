"""One answer while it is put together, from a whole response or piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..values import write_canonical
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
        self._calls: dict[Any, _Call] = {}
        # An index -> the key in `_calls` of the call that its pieces belong to now.
        self._latest: dict[Any, Any] = {}

    @property
    def content(self) -> str:
        """The text of the answer."""
        return _joined(self._content)

    @property
    def reasoning(self) -> str:
        """The reasoning that a server or client split off the text."""
        return _joined(self._reasoning)

    @property
    def refusal(self) -> str:
        """A refusal that stood apart from the text."""
        return _joined(self._refusal)

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """In OpenAI's shape, in the order in which they were begun.

        Arguments are the text as it came, whole or broken, or the object that a server sent in its
        place.
        """
        return tuple(call.to_dict() for call in self._calls.values())

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

        The last one counts.

        Chunks before the last one have None there, and some servers an empty text.
        """
        if isinstance(reason, str) and reason:
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
        """Add a call or a piece of one.

        A new id and name under a known index begin a call of their own: some servers give all
        parallel calls the index 0. `arguments` is a piece of their text, or the whole object.

        Raises nothing: a piece of the wrong type does not count.
        """
        call = self._calls.get(self._latest.get(index, index))
        if call is None or (name and call.is_another(id)):
            call = self._new_call(index)
        if isinstance(id, str) and id:
            call.id = id

        piece = name if isinstance(name, str) else ""
        call.name += piece
        if isinstance(arguments, str):
            call.texts.append(arguments)
            piece += arguments
        elif arguments is not None:
            call.value = plain(arguments)
        if piece:
            self._chunk("content", piece)

    def _new_call(self, index: Any) -> _Call:
        """Return a new call, to which the pieces of that index belong from now on.

        `index` may be taken already, by a call that is finished. The new one is then filed under a
        key that no reader can choose.
        """
        key = index if index not in self._calls else (index, len(self._calls))
        self._latest[index] = key
        call = self._calls[key] = _Call()
        return call

    def _chunk(self, kind: Literal["content", "reasoning"], text: str) -> None:
        """Note a piece of a stream. Whole answers have none."""
        if self.streamed:
            self.chunks.append((kind, text))


class _Call:
    """A call whose pieces are still coming.

    Some servers send an object where the text of one belongs.
    """

    __slots__ = ("id", "name", "texts", "value")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.texts: list[str] = []
        self.value: Any = None

    def is_another(self, id: Any) -> bool:
        """Return True for the id of another call than this one.

        A call without an id, or a piece without one, is never another: pieces of one call carry its
        id once, in the first piece.
        """
        return bool(id and self.id and id != self.id)

    def to_dict(self) -> dict[str, Any]:
        """Return the call in OpenAI's shape.

        Arguments as they came, text or object.

        An object is used only where no text came, since text is the model's own text.
        """
        # A server that sends an object sends no text, or an empty one.
        arguments = self.value
        if arguments is None or any(self.texts):
            arguments = _joined(self.texts)
        return {
            "id": self.id,
            "type": "function",
            "function": {"name": self.name, "arguments": arguments},
        }


def get(obj: Any, name: str) -> Any:
    """Return a member of a dict or an attribute of an object, None if there is none.

    Clients differ in nothing more than in this, and every reader here uses it alone.
    """
    return obj.get(name) if isinstance(obj, Mapping) else getattr(obj, name, None)


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


def _joined(pieces: list[str]) -> str:
    """Return the pieces as one text.

    A surrogate pair split over two of them is one character again.

    A lone surrogate stays one: it is the model's own text, and parsers take it.
    """
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
