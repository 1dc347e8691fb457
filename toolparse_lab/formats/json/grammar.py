"""The grammar of calls that are JSON objects between delimiters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ..prompt.gbnf import literal
from ..prompt.grammar import MAX_DEPTH, GrammarWriter, object_schema


@dataclass(frozen=True, slots=True)
class JsonGrammar:
    """Writes the grammar of one call: opener, an object with name and arguments, closer.

    opener, closer: the delimiters with the line breaks that a model writes beside them.
    """

    opener: str
    closer: str
    name_key: str = "name"
    arguments_key: str = "arguments"

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        # The braces of the call belong to the root, which all tools share.
        root = f"{literal(self.opener + '{')} call {literal('}' + self.closer)}"
        return _JsonCalls(tools, self).grammar(root)


class _JsonCalls(GrammarWriter):
    def __init__(self, tools: Sequence[ToolSpec], form: JsonGrammar) -> None:
        self.form = form  # before the base class, which writes the calls at once
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        # without the braces around it, which all tools share
        arguments = self.json_value(object_schema(tool), MAX_DEPTH)
        if arguments is None:
            return None

        name_key = write_canonical(self.form.name_key)
        arguments_key = write_canonical(self.form.arguments_key)
        head = f"{name_key}: {write_canonical(tool.name)}, {arguments_key}: "
        return f"{literal(head)} {arguments}"
