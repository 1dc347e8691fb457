"""Grammars and frames of calls that are JSON between delimiters, or after a header."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ..prompt.gbnf import literal
from ..prompt.grammar import MAX_DEPTH, GrammarWriter, object_schema
from .header import Header


@dataclass(frozen=True, slots=True)
class JsonGrammar:
    """Writes the grammar of one call: opener, an object with name and arguments, closer.

    opener, closer: the delimiters with the line breaks that a model writes next to them.
    """

    opener: str
    closer: str
    name_key: str = "name"
    arguments_key: str = "arguments"

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        before, after = f"{write_canonical(self.name_key)}: ", write_canonical(self.arguments_key)
        calls = _Calls(tools, lambda name: f"{before}{write_canonical(name)}, {after}: ", "")
        # The braces of the call belong to the root, which all tools share.
        return calls.grammar(f"{literal(self.opener + '{')} call {literal('}' + self.closer)}")


@dataclass(frozen=True, slots=True)
class Frame:
    """The text around a call's name and arguments where the format writes them apart.

    template: a header, see `json/header.py`, with the text before it. closer: after the arguments.

    >>> Frame("<call {name}>", "</call>")("f", "{}")
    '<call f>{}</call>'
    """

    template: str
    closer: str = ""

    def __call__(self, name: str, arguments_json: str) -> str:
        return f"{Header.of(self.template).write(name)}{arguments_json}{self.closer}"


@dataclass(frozen=True, slots=True)
class FramedGrammar:
    """Writes the grammar of one call in a frame: the name in its header, then the arguments."""

    frame: Frame

    def __call__(self, tools: Sequence[ToolSpec]) -> str:
        header = Header.of(self.frame.template)
        return _Calls(tools, header.write, self.frame.closer).grammar("call")


class _Calls(GrammarWriter):
    def __init__(self, tools: Sequence[ToolSpec], head: Callable[[str], str], closer: str) -> None:
        self.head = head  # of a name; before the base class, which writes the calls at once
        self.closer = f" {literal(closer)}" if closer else ""
        super().__init__(tools)

    def call(self, tool: ToolSpec) -> str | None:
        arguments = self.json_value(object_schema(tool), MAX_DEPTH)
        if arguments is None:
            return None
        return f"{literal(self.head(tool.name))} {arguments}{self.closer}"
