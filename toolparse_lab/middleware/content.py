"""The content that a provider gives with an answer: a text, or parts of several kinds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..core.errors import UnreadableInput


@dataclass(frozen=True)
class Content:
    """The content of a message, by kind: its text, the reasoning among its parts, and images and
    the like.
    """

    text: str
    reasoning: str = ""
    media: tuple[Any, ...] = ()

    def beside(self, content: str | None) -> Any:
        """Return the content of the message: the text that remains, with anything that is not text.

        content: the text that is not a call, None if there is none.

        >>> Content("", media=({"type": "image"},)).beside("words")
        [{'type': 'text', 'text': 'words'}, {'type': 'image'}]
        """
        if not self.media:
            return content or None

        text = [{"type": "text", "text": content}] if content else []
        return [*text, *self.media]


ONLY_TEXT = Content("")
"""A content that is one text: nothing beside it."""


def read_content(content: Any) -> Content:
    """Sort the content of an assistant's message by kind.

    content: text, None or a list of parts. Raises UnreadableInput for anything else.

    >>> read_content(["a", {"type": "text", "text": "b"}]).text
    'ab'
    """
    if content is None or isinstance(content, str):
        return Content(content or "")
    if not isinstance(content, (list, tuple)):
        raise UnreadableInput(
            "this is no content", got=type(content).__name__, expected="text, None or parts"
        )

    texts: list[str] = []
    thoughts: list[str] = []
    media: list[Any] = []

    for part in content:
        kind = part.get("type") if isinstance(part, Mapping) else None
        if isinstance(part, str):
            texts.append(part)
        elif kind == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif kind in ("reasoning", "thinking"):
            thoughts.append(_thought(part))
        else:
            # Images, sounds and parts nobody knows yet go through as they are.
            media.append(part)

    return Content("".join(texts), "\n".join(t for t in thoughts if t), tuple(media))


def _thought(part: Mapping[str, Any]) -> str:
    """Return the text of a part of reasoning, which some providers nest as parts of its own.

    part: has its text under `text` or `thinking`, as a string or as a list of parts.
    """
    inner = part.get("text", part.get("thinking"))
    if isinstance(inner, str):
        return inner
    return read_content(inner if isinstance(inner, list) else None).text
