"""Prompt texts: templates by wording, Markdown files in `templates` or a caller's own texts.

A template holds `{{name}}` placeholders and `{{#name}} ... {{/name}}` sections that vanish when the
value is empty. A protocol without texts of its own uses those in `generic`, which show the form of
a call by one that the protocol writes.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from ...core.errors import BadOptions, near

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


PLACEHOLDERS = (
    *("tools_json", "tools_lines", "tools_signatures", "tools_xml"),
    *("type_rules", "examples", "form"),
)

_SECTION = re.compile(r"\{\{#(\w+)\}\}\n?(.*?)\{\{/\1\}\}\n?", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, slots=True)
class Wordings:
    """The wordings in which a protocol can be explained to a model.

    folder: the folder of `templates` with its texts. texts: (wording, template) pairs of a caller's
    own. One of the same name replaces the text of the folder.

    >>> Wordings("hermes").names
    ('brief', 'chat_template', 'plain', 'strict', 'upstream')
    """

    folder: str = "generic"
    texts: tuple[tuple[str, str], ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all wordings, sorted."""
        return tuple(sorted({*_shipped_names(self.folder), *dict(self.texts)}))

    def template(self, wording: str) -> str:
        """Return the template of one wording.

        Raises BadOptions, listing those there are, for an unknown one.
        """
        own = dict(self.texts)
        if wording in own:
            return own[wording]
        if wording not in self.names:
            raise BadOptions(
                "this protocol has no prompt of that wording",
                got=wording,
                expected=", ".join(self.names),
                hint=near(wording, self.names),
            )
        return _read_shipped(self.folder, wording)


GENERIC = Wordings()
"""For a format without texts of its own: a written call shows the form."""


@lru_cache(maxsize=64)
def _shipped_names(folder: str) -> tuple[str, ...]:
    from importlib import resources  # a tenth of the time to import us

    directory = resources.files(__package__).joinpath("templates", folder)
    if not directory.is_dir():
        return ()
    names = sorted(file.name for file in directory.iterdir())
    return tuple(name.removesuffix(".md") for name in names if name.endswith(".md"))


@lru_cache(maxsize=256)
def _read_shipped(folder: str, wording: str) -> str:
    from importlib import resources  # as above

    file = resources.files(__package__).joinpath("templates", folder, f"{wording}.md")
    return file.read_text(encoding="utf-8")


def asks_for(template: str, name: str) -> bool:
    """Return True if the template has a place for that value.

    >>> asks_for("Tools: {{tools_json}}", "tools_json"), asks_for("", "examples")
    (True, False)
    """
    return f"{{{{{name}}}}}" in template


def fill(template: str, values: Mapping[str, Callable[[], str]]) -> str:
    """Return the template with its placeholders replaced.

    values: placeholder -> a function that returns its text. Only those that the template asks for
    are called, each once. Raises BadOptions for a placeholder that `values` lacks.
    """
    computed: dict[str, str] = {}

    def value(name: str) -> str:
        if name not in values:
            raise BadOptions(
                "a prompt template has an unknown placeholder",
                got=name,
                expected=", ".join(values),
                hint=near(name, values),
            )
        if name not in computed:
            computed[name] = values[name]()
        return computed[name]

    # One pass each, so that braces inside a value are never taken for a placeholder.
    text = _SECTION.sub(lambda match: match[2] if value(match[1]) else "", template)
    return _PLACEHOLDER.sub(lambda match: value(match[1]), text).strip()
