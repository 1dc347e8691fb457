"""The prompt texts in `templates`: one Markdown file a protocol and wording, shipped in the package and read once.

A template holds `{{name}}` placeholders and `{{#name}} ... {{/name}}` sections that vanish when the value is empty.
A protocol without a folder of its own uses `generic`, which shows the form by a call the protocol's writer made.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import resources

from ..errors import BadOptions

GENERIC = "generic"
PLACEHOLDERS = ("tools_json", "tools_signatures", "tools_xml", "type_rules", "examples", "form")

_SECTION = re.compile(r"\{\{#(\w+)\}\}\n?(.*?)\{\{/\1\}\}\n?", re.DOTALL)
_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")


@lru_cache(maxsize=1)
def _index() -> Mapping[str, tuple[str, ...]]:
    root = resources.files(__package__).joinpath("templates")
    return {
        folder.name: tuple(sorted(f.name[:-3] for f in folder.iterdir() if f.name.endswith(".md")))
        for folder in sorted(root.iterdir(), key=lambda f: f.name)
        if folder.is_dir() and not folder.name.startswith("_")
    }


def list_wordings(protocol_id: str) -> tuple[str, ...]:
    """The wordings this protocol can be explained in, sorted.

    >>> list_wordings("hermes")
    ('brief', 'plain', 'strict')
    """
    index = _index()
    return index.get(protocol_id, index[GENERIC])


@lru_cache(maxsize=256)
def read_template(protocol_id: str, wording: str) -> str:
    """The text of a template; raises BadOptions, listing the wordings there are, for one that does not exist."""
    wordings = list_wordings(protocol_id)
    if wording not in wordings:
        raise BadOptions(
            f"protocol {protocol_id!r} has no prompt of that wording",
            got=wording,
            expected=", ".join(wordings),
            hint=f"use one of: {', '.join(wordings)}",
        )
    folder = protocol_id if protocol_id in _index() else GENERIC
    return resources.files(__package__).joinpath("templates", folder, f"{wording}.md").read_text(encoding="utf-8")


def asks_for(template: str, name: str) -> bool:
    """Whether the template has a place for that value."""
    return f"{{{{{name}}}}}" in template


def fill(template: str, values: Mapping[str, Callable[[], str]]) -> str:
    """The template with its placeholders replaced in one pass, so that braces inside a value stay what they are.

    Only values the template asks for are computed. Raises BadOptions for a placeholder that `values` lacks.
    """
    computed: dict[str, str] = {}

    def value(name: str) -> str:
        if name not in values:
            raise BadOptions("a prompt template has an unknown placeholder", got=name, expected=", ".join(values))
        if name not in computed:
            computed[name] = values[name]()
        return computed[name]

    kept = _SECTION.sub(lambda m: m[2] if value(m[1]) else "", template)
    return _PLACEHOLDER.sub(lambda m: value(m[1]), kept).strip()
