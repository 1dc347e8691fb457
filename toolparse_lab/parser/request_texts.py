"""The texts of a request, message by message: where a call or a value of the answer may be from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import UnreadableInput
from ..core.values import write_canonical
from .folding import Folded, folded

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
        """A user, a tool or a document said it, so that a call in it is none of the model's."""
        return self.role not in _OURS

    @property
    def folded(self) -> Folded:
        """The text, folded for comparison."""
        return folded(self.text)


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

    texts = [_text_of_message(i, message) for i, message in enumerate(messages)]
    texts += [RequestText("document", i, _joined(d)) for i, d in enumerate(documents)]
    return tuple(t for t in texts if t.text)


def _text_of_message(index: int, message: Any) -> RequestText:
    """Return the text of a message in the shape of chat completions or of the Responses API."""
    if not isinstance(message, Mapping):
        dump = getattr(message, "model_dump", None)
        message = dump() if callable(dump) else {"role": "user", "content": message}
    role = message.get("role")
    if not isinstance(role, str):
        kind = message.get("type")
        # Of the items of the Responses API, those without a role are the model's, or results.
        role = "tool" if kind in _RESULTS else "user" if kind is None else "assistant"
    content = message.get("content", message.get("output"))
    return RequestText(role, index, _joined(content))


def _joined(content: Any) -> str:
    """Return the texts of a content, which is a text, parts, or a value of a tool's own."""
    texts: list[str] = []
    _collect(content, texts, 0)
    return "\n".join(texts)


def _collect(content: Any, texts: list[str], depth: int) -> None:
    """Add the texts of a content to `texts`. Images and the like have none."""
    if content is None or depth > MOST_NESTED:
        return
    if isinstance(content, str):
        texts.append(content)
    elif isinstance(content, (list, tuple)):
        for part in content:
            _collect(part, texts, depth + 1)
    elif isinstance(content, Mapping):
        kind = content.get("type")
        if isinstance(kind, str) and kind.startswith(NO_TEXT):
            return
        parts = [content[k] for k in ("title", "text", "content", "output") if k in content]
        if parts:
            _collect(parts, texts, depth + 1)
        else:
            texts.append(_value_text(dict(content)))
    else:
        texts.append(_value_text(content))


def _value_text(value: Any) -> str:
    """Return the JSON text of a value, or its text in Python where JSON has none."""
    try:
        return write_canonical(value)
    except (TypeError, ValueError, RecursionError):
        return _python_text(value)


def _python_text(value: Any) -> str:
    """Return the text of any object. '' where it has none, such as an integer of too many
    digits.
    """
    try:
        return str(value)
    except Exception:  # objects of somebody else's may do anything
        return ""
