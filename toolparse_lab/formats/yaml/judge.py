"""Decides which reading of a YAML body counts, or that none does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.schema.view import View
from ...core.values import Value
from ..base import Decoded, Places, Reading
from ..rxml.doubt import is_doubtful_name, names_below
from ..rxml.nearest import nearest_reading
from ..xml.judge import fits_schema
from .signs import is_half_quoted, sign_edits

# How it works. As for elements, with the beginnings of lines in place of tags: a line break, the
# indentation, a key of the schema and its colon. One wrong character in one of these is put right
# where a single reading fits the schema.

_INDENTS = ("\n", "\n  ", "\n    ", "\n  - ", "\n- ")
_Read = Callable[[str, Reading], Decoded]


class MappingJudge:
    """Settles the reading of one body."""

    def __init__(self, body: str, view: View, schema: str | None, reading: Reading) -> None:
        """Make a judge for one body.

        view: the schema of the parameters. schema: the same as JSON, None for a tool that no one
        knows. reading: the options.
        """
        self._body = body
        self._view = view
        self._schema = schema
        self._reading = reading

    def settle(self, reader: _Read) -> Decoded:
        """Return the reading that counts.

        Raises Refusal if none does.

        reader: the reader of a text, under given circumstances.
        """
        refusal = Refusal("decode.ambiguous", "a key looks like a damaged one of the schema", 0)
        call: Decoded | None = None
        try:
            call = reader(self._body, self._reading)
        except Refusal as reason:
            refusal = reason

        if call is not None and not self._is_doubtful(call):
            return call
        # A key that is missing, or nearly one of the schema's: look for the one that was meant.
        nearest = self._nearest(reader) if self._reading.repair else None
        if nearest is not None:
            return nearest
        if call is not None and not self._is_damaged(call):
            return call
        raise refusal

    def _is_doubtful(self, call: Decoded) -> bool:
        """Return True if a key may be a damaged one, or a required one is missing."""
        if self._is_damaged(call):
            return True
        arguments = call.arguments
        return not isinstance(arguments, dict) or any(
            name not in arguments for name in self._view.required
        )

    def _is_damaged(self, call: Decoded) -> bool:
        """Return True if a key may be a damaged one, or a text lacks one of its quotes."""
        if holds_unknown(call.arguments, self._view):
            return True
        return is_half_quoted(call.arguments, self._body)

    def _nearest(self, reader: _Read) -> Decoded | None:
        """Return the one reading that is a character away.

        Raises Refusal if there are several.

        Only a schema that lists its parameters can tell which keys were meant.
        """
        if self._schema is None or not self._view.properties:
            return None

        strict = replace(self._reading, repair=False)
        # What is put right here is no tag.
        edit = nearest_reading(
            self._body,
            self._keys(),
            lambda text: self._fitting(reader, text),
            "yaml.near-key",
            sign_edits(self._body),
        )
        if edit is None:
            return None
        call = reader(apply_edits(self._body, [edit]), strict)
        inner = call.places

        def places() -> Places:
            back = EditMap((edit,))
            return {path: back.raw_span(a, b) for path, (a, b) in inner().items()}

        return replace(call, edits=(edit,), places=places)

    def _fitting(self, reader: _Read, text: str) -> Value | None:
        """Return the arguments of a text that reads strictly and fits the schema, else None."""
        try:
            value = reader(text, replace(self._reading, repair=False)).arguments
        except Refusal:
            return None
        if not isinstance(value, dict) or any(key not in self._view.properties for key in value):
            return None
        # A value that begins with a colon has that of its key, or holds half a pair of quotes.
        if _begins_with_colon(value) or is_half_quoted(value, text):
            return None
        return value if fits_schema(value, self._schema) else None

    def _keys(self) -> list[str]:
        """Return the beginnings of the lines that the body may hold."""
        # Members may stand in a mapping, in a mapping of a list, or deeper by one level.
        root = [f"\n{name}:" for name in self._view.properties]
        deeper = names_below(self._view) - set(self._view.properties)
        inner = [f"{indent}{name}:" for name in sorted(deeper) for indent in _INDENTS[1:]]
        return [*root, *inner]


def _begins_with_colon(arguments: dict[str, Value]) -> bool:
    """Return True if a text among the arguments begins with a colon and a word."""
    texts = (value for value in arguments.values() if isinstance(value, str))
    return any(text[:1] == ":" and text[1:2].isalnum() for text in texts)


def holds_unknown(value: Value, view: View) -> bool:
    """Return True if a key is near to a parameter's that is missing, or belongs further inside."""
    if not isinstance(value, dict) or value.keys() <= view.properties.keys():
        return False
    if not view.properties:
        return False
    # A sign at the end of a name belongs to the YAML around it.
    if any(
        not str(key)[-1:].isalnum() and key[-1:] != "_" and key not in view.properties
        for key in value
    ):
        return True
    return any(
        key not in view.properties and is_doubtful_name(key, value, view, repaired=False)
        for key in value
    )
