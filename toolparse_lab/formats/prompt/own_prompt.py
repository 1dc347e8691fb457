"""A prompt of the caller's own: a template, or a function that builds it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...core.errors import BadOptions

_NAME = re.compile(r"[\w.:+-]{1,60}")
_PLACE = "{{"


@dataclass(frozen=True, slots=True)
class OwnPrompt:
    """A prompt of the caller's own.

    name: by which plans and frames show it. template: text with the placeholders of a wording, ""
    for a builder. builder: see `messages.PromptBuilder`, or None for a template, and where a
    recorded run had one that is not at hand.
    """

    name: str
    template: str = ""
    builder: Callable[..., Any] | None = field(default=None, repr=False)

    @property
    def is_lost(self) -> bool:
        """True if it was code that is not at hand."""
        return not self.template and self.builder is None

    def record(self) -> dict[str, str]:
        """Return the prompt as it is recorded: a template whole, of a builder only that there was
        one.
        """
        return {"template": self.template} if self.template else {"builder": self.name}

    @classmethod
    def of(cls, value: Any, name: str = "") -> OwnPrompt:
        """Return the prompt that a template or a builder is.

        Raises BadOptions for anything else.

        name: for want of one a builder has that of its function, and a template a short hash.

        >>> OwnPrompt.of("Tools: {{tools_json}}").name
        'template-32f08a'
        """
        if isinstance(value, cls):
            return value
        if isinstance(value, str) and _PLACE in value:
            digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
            return cls(_checked(name or f"template-{digest[:6]}"), value)
        if callable(value):
            own = getattr(value, "__name__", type(value).__name__)
            return cls(_checked(name or own.strip("<>")), builder=value)
        raise BadOptions(
            "a prompt of your own is a template with a {{place}}, or a function that builds it",
            got=value,
        )


def is_own_prompt(value: Any) -> bool:
    """Return True for the inputs of `OwnPrompt.of`, and no protocol has as the name of a
    wording.
    """
    return (
        isinstance(value, OwnPrompt)
        or (isinstance(value, str) and _PLACE in value)
        or (callable(value) and not isinstance(value, str))
    )


def _checked(name: str) -> str:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadOptions(
            "a prompt's name is one short word", got=name, expected="letters, digits, _ . : + -"
        )
    return name
