"""The grammar of calls with one tag for the function and one for each parameter."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...core.errors import UnwritableCall
from ...core.toolspec import ToolSpec
from ..prompt.gbnf import literal
from ..prompt.grammar import MAX_DEPTH, object_schema
from ..prompt.shape import kind_of, resolve
from ..xml.grammar import ElementGrammar
from .shape import Form

# A name that survives the trimming of readers and cannot be taken for the end of its tag.
_TAG_NAME = re.compile(r"[^\s<>\"'=](?:[^<>\"'\r\n]{0,254}[^\s<>\"'])?")


@dataclass(frozen=True, slots=True)
class TagGrammar:
    """Writes the grammar of one call in the tags of a form."""

    form: Form

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        form, line = self.form, _line_break(self.form)
        end = form.function_closer
        # A form without a block around its functions has neither opener nor closer.
        if not form.opener:
            return _TagCalls(tools, form).grammar(f"call {literal(end)}")
        opener = literal(form.opener.strip() + line)
        closer = literal(end + line + form.closer.strip())
        return _TagCalls(tools, form).grammar(f"{opener} call {closer}")


def _line_break(form: Form) -> str:
    return "\n" if form.lines else ""


class _TagCalls(ElementGrammar):
    nested = False

    def __init__(self, tools: Sequence[ToolSpec], form: Form) -> None:
        self.form = form
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        children = self.children(object_schema(tool), MAX_DEPTH)
        # A tool that can never be called has no rule.
        if children is None:
            return None
        head = self.form.function_tag(_checked(tool.name)) + _line_break(self.form)
        return f"{literal(head)} {children}".rstrip()

    def field(self, name: str, schema: Any, depth: int) -> str | None:
        if depth < 0 or schema is False:
            return None
        # A list is JSON here: a tag that is repeated would be several parameters.
        node = resolve(schema, self.root_schema)
        content = self.content(node, depth)
        if content is None:
            return None

        tag = self.form.parameter_tag(_checked(name), kind_of(node))
        line = _line_break(self.form)
        # A line break beside the value is part of the value where the format does not trim it.
        inner = self.form.edge
        head = literal(tag + inner)
        tail = literal(f"{inner}{self.form.parameter_closer}{line}")
        return f"{head} {content} {tail}"


def _checked(name: str) -> str:
    if not _TAG_NAME.fullmatch(name):
        raise UnwritableCall("this name cannot stand in a tag", got=name)
    return name
