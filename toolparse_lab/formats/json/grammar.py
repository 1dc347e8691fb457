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
        """Return the GBNF of exactly one call of one of these tools."""
        # The braces of the call belong to the root, which all tools share.
        root = f"{literal(self.opener + '{')} call {literal('}' + self.closer)}"
        return _JsonCalls(tools, self).grammar(root)


class _JsonCalls(GrammarWriter):
    """Writes calls as the members of an object, first the name and then the arguments."""

    def __init__(self, tools: Sequence[ToolSpec], form: JsonGrammar) -> None:
        """Begin a grammar.

        tools: those that may be called. form: the delimiters and the two keys.
        """
        self.form = form  # before the base class, which writes the calls at once
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        """Return the rule of one tool's call, without the braces around it.

        None if the tool's schema admits no arguments.
        """
        arguments = self.json_value(object_schema(tool), MAX_DEPTH)
        if arguments is None:
            return None

        name_key = write_canonical(self.form.name_key)
        arguments_key = write_canonical(self.form.arguments_key)
        head = f"{name_key}: {write_canonical(tool.name)}, {arguments_key}: "
        return f"{literal(head)} {arguments}"
