"""The grammar of calls that are elements with lines of YAML whose values are JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.toolspec import ToolSpec
from ..prompt.gbnf import IN_YAML, literal
from ..xml.grammar import XML_NAME, ElementGrammar


def yaml_grammar(tools: Sequence[ToolSpec]) -> str:
    """Return the grammar of one call.

    Raises UnwritableCall for a name no element can have.
    """
    return _YamlCalls(tools).grammar("call")


class _YamlCalls(ElementGrammar):
    def field(self, name: str, schema: Any, depth: int) -> str | None:
        # A key and a value in JSON, which is YAML as well.
        value = self.json_value(schema, depth, IN_YAML)
        if value is None:
            return None
        # A key that is no plain word needs quotes: it may hold a colon, or look like a number.
        key = name if XML_NAME.fullmatch(name) else self.json_text(name, IN_YAML)
        return f"{literal(f'{key}: ')} {value} {literal(chr(10))}"
