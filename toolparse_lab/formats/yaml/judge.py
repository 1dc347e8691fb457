"""Decides which reading of a YAML body counts, or that none does."""

from __future__ import annotations

from collections.abc import Sequence

from ...arguments.schema.view import View
from ...core.types import Edit
from ...core.values import Value
from ..base import Decoded
from ..disambiguation import OneCall, is_doubtful_name, names_below
from .signs import is_half_quoted, sign_edits

_INDENTS = ("\n  ", "\n    ", "\n  - ", "\n- ")


class MappingDisambiguation(OneCall):
    """One body. Its alphabet: a line break, the indentation, a key of the schema and its colon."""

    rule = "yaml.near-key"  # what is put right here is no tag
    doubt = "a key looks like a damaged one of the schema"

    def may_be_better(self, call: Decoded) -> bool:
        arguments = call.arguments
        return not isinstance(arguments, dict) or not arguments.keys() >= set(
            self.parameters.required
        )

    def is_doubtful(self, call: Decoded) -> bool:
        arguments = call.arguments
        return holds_unknown(arguments, self.parameters) or is_half_quoted(arguments, self.body)

    def is_doubtful_once_edited(self, call: Decoded, text: str) -> bool:
        value = call.arguments
        if not isinstance(value, dict) or not value.keys() <= self.parameters.properties.keys():
            return True
        # A value that begins with a colon has that of its key, or contains half a pair of quotes.
        return is_half_quoted(value, text) or any(
            isinstance(item, str) and item[:1] == ":" and item[1:2].isalnum()
            for item in value.values()
        )

    def tags(self) -> list[str]:
        # Members may be in a mapping, in a mapping of a list, or deeper by one level.
        properties = self.parameters.properties
        deeper = sorted(names_below(self.parameters) - set(properties))
        inner = [f"{indent}{name}:" for name in deeper for indent in _INDENTS]
        return [*(f"\n{name}:" for name in properties), *inner]

    def other_edits(self) -> Sequence[Edit]:
        return sign_edits(self.body)


def holds_unknown(value: Value, view: View) -> bool:
    """Return True if a key is near to a parameter's that is missing, or belongs further inside."""
    if not isinstance(value, dict) or not view.properties:
        return False
    unknown = [key for key in value if key not in view.properties]
    # A sign at the end of a name belongs to the YAML around it.
    return any(not str(key)[-1:].isalnum() and key[-1:] != "_" for key in unknown) or any(
        is_doubtful_name(key, value, view, repaired=False) for key in unknown
    )
