"""The texts of a request, and who wrote them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ...core.errors import UnreadableInput
from ...core.types import Source
from ...core.values import write_canonical
from .folding import forms_of

_OURS = frozenset(("system", "developer", "assistant", "model", "ai"))
"""roles whose text the application or the model itself wrote"""

NO_TEXT = ("image", "input_image", "audio", "input_audio", "video", "media")
_RESULTS = ("function_call_output", "tool_result", "custom_tool_call_output")
MOST_NESTED = 8  # levels of parts inside parts


@dataclass(frozen=True, slots=True)
class RequestText:
    """The text of one message. foreign: another than application and model wrote it."""

    role: str
    message: int
    text: str

    @property
    def foreign(self) -> bool:
        # A user, a tool or a document said it, so a call in it is not the model's.
        return self.role not in _OURS

    def find(self, needle: str) -> Source | None:
        for form in forms_of(self.text):
            span = form.find(needle)
            if span is not None:
                return Source(self.role, self.message, span)
        return None


def request_texts(request: Any) -> tuple[RequestText, ...]:
    """Return the texts of the request, in the order of its messages, documents behind them.

    request: OpenAI messages, a mapping with `messages` (or `input`), or an object with the
    attribute `messages`, or None for nothing. Raises UnreadableInput for anything else.

    >>> [t.role for t in request_texts([{"role": "user", "content": "Hello"}])]
    ['user']
    """
    if request is None:
        return ()
    if isinstance(request, Mapping):
        messages = request.get("messages", request.get("input"))
        documents = request.get("documents") or ()
    else:
        messages = getattr(request, "messages", request)
        documents = ()
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if messages is None or not isinstance(messages, Iterable) or isinstance(messages, Mapping):
        raise UnreadableInput(
            "request is what was asked",
            got=type(request).__name__,
            expected="OpenAI messages, or a mapping with `messages`",
        )

    texts: list[RequestText] = []
    for i, message in enumerate(messages):
        # Shapes of chat completions and of the Responses API.
        if not isinstance(message, Mapping):
            dump = getattr(message, "model_dump", None)
            message = dump() if callable(dump) else {"role": "user", "content": message}
        role = message.get("role")
        if not isinstance(role, str):
            kind = message.get("type")
            # Items of the Responses API without a role are the model's, or results.
            role = "tool" if kind in _RESULTS else "user" if kind is None else "assistant"
        content = message.get("content", message.get("output"))
        texts.append(RequestText(role, i, "\n".join(_texts_in(content))))
    texts += [RequestText("document", i, "\n".join(_texts_in(d))) for i, d in enumerate(documents)]
    return tuple(t for t in texts if t.text)


def _texts_in(content: Any, depth: int = 0) -> Iterator[str]:
    # Images and similar parts have no text.
    if content is None or depth > MOST_NESTED:
        return
    if isinstance(content, str):
        yield content
        return
    if isinstance(content, Mapping):
        kind = content.get("type")
        if isinstance(kind, str) and kind.startswith(NO_TEXT):
            return
        parts = [content[k] for k in ("title", "text", "content", "output") if k in content]
        content = parts or dict(content)
        depth += 1
    if isinstance(content, (list, tuple)):
        for part in content:
            yield from _texts_in(part, depth + 1)
        return
    try:
        yield write_canonical(content)
    except (TypeError, ValueError, RecursionError):
        text = ""
        with suppress(Exception):  # objects of somebody else's may do anything
            text = str(content)
        yield text
