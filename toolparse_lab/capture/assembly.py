"""One answer while it is put together, from a whole response or piece by piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ..values import write_canonical

_IDS = ("id", "model", "system_fingerprint")


class Assembly:
    """What was received so far of the answer number `choice`."""

    def __init__(self, choice: int = 0, *, streamed: bool = False) -> None:
        self.choice = choice
        self.streamed = streamed
        self.chunks: list[tuple[Literal["content", "reasoning"], str]] = []
        self.finish_reason: str | None = None
        self.usage: Mapping[str, Any] | None = None
        self.ids: dict[str, str] = {}
        self.error: str | None = None
        self.choices = 0
        self.completion = False  # the raw-completion endpoint: text, no messages
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[Any, _Call] = {}
        self._latest: dict[Any, Any] = {}  # index as sent -> the call that its pieces belong to

    @property
    def content(self) -> str:
        return _joined(self._content)

    @property
    def reasoning(self) -> str:
        return _joined(self._reasoning)

    @property
    def refusal(self) -> str:
        return _joined(self._refusal)

    @property
    def tool_calls(self) -> tuple[Mapping[str, Any], ...]:
        """In OpenAI's shape, in the order in which they were begun."""
        return tuple(call.to_dict() for call in self._calls.values())

    @property
    def called(self) -> bool:
        return bool(self._calls)

    def say(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._content.append(text)
            self._chunk("content", text)

    def think(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._reasoning.append(text)
            self._chunk("reasoning", text)

    def refuse(self, text: Any) -> None:
        if isinstance(text, str) and text:
            self._refusal.append(text)
            self._chunk("content", text)

    def identify(self, response: Any, **names: str) -> None:
        """Takes over ids and token counts; the first id counts, the last usage."""
        for name in _IDS:
            value = get(response, names.get(name, name))
            if isinstance(value, str) and value:
                self.ids.setdefault(name, value)
        usage = plain(get(response, "usage"))
        if isinstance(usage, Mapping) and usage:
            self.usage = {**(self.usage or {}), **usage}

    def finish(self, reason: Any) -> None:
        if isinstance(reason, str) and reason:
            self.finish_reason = reason

    def fail(self, error: Any) -> None:
        """An error that stands in the answer's place, or behind its beginning."""
        message = get(error, "message") if not isinstance(error, str) else error
        self.error = message if isinstance(message, str) and message else write_canonical(plain(error))

    def call(self, index: Any, *, id: Any = None, name: Any = None, arguments: Any = None) -> None:
        """A call or a piece of one. A new id and name under a known index begin a call of their own: some servers
        give all parallel calls the index 0."""
        known = self._calls.get(self._latest.get(index, index))
        if known is None or (id and known.id and id != known.id and name):
            place = index if index not in self._calls else (index, len(self._calls))
            self._latest[index] = place
            known = self._calls[place] = _Call()
        if isinstance(id, str) and id:
            known.id = id
        piece = name if isinstance(name, str) else ""
        known.name += piece
        if isinstance(arguments, str):
            known.texts.append(arguments)
            piece += arguments
        elif arguments is not None:
            known.value = plain(arguments)
        if piece:
            self._chunk("content", piece)

    def _chunk(self, kind: Literal["content", "reasoning"], text: str) -> None:
        if self.streamed:
            self.chunks.append((kind, text))


class _Call:
    """A call whose pieces are still coming. Some servers send an object where the text of one belongs."""

    __slots__ = ("id", "name", "texts", "value")

    def __init__(self) -> None:
        self.id: str | None = None
        self.name = ""
        self.texts: list[str] = []
        self.value: Any = None

    def to_dict(self) -> dict[str, Any]:
        arguments = self.value if self.value is not None and not any(self.texts) else _joined(self.texts)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


def get(obj: Any, name: str) -> Any:
    """A member of a dict or an attribute of an object, None where there is none."""
    return obj.get(name) if isinstance(obj, Mapping) else getattr(obj, name, None)


def items(obj: Any) -> list[Any]:
    """The items of a list, none for everything else."""
    return list(obj) if isinstance(obj, (list, tuple)) else []


_DEEPEST = 200


def plain(obj: Any, depth: int = 0) -> Any:
    """Objects of clients as JSON without their empty members; values nested too deep for that stay as they are."""
    if depth > _DEEPEST:
        return obj
    dump = getattr(obj, "model_dump", None)
    if callable(dump):
        obj = dump()
    elif hasattr(obj, "__dict__") and not isinstance(obj, (type, Mapping)) and not callable(obj):
        obj = vars(obj)
    if isinstance(obj, Mapping):
        return {str(k): plain(v, depth + 1) for k, v in obj.items() if v is not None}
    if isinstance(obj, (list, tuple)):
        return [plain(v, depth + 1) for v in obj]
    return obj


def _joined(pieces: list[str]) -> str:
    """The pieces as one text; a surrogate pair that was split over two of them is one character again."""
    text = "".join(pieces)
    if text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
