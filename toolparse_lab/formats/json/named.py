"""Body family: the opener names the tool, the body is nothing but its arguments as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.strict import read_if_strict
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Span, Step
from ...core.values import Value
from ..base import Codec, Decoded, Opening, Reading
from .call import read_body_values
from .judge import settle
from .source import ONE_CALL, BodySource, unescape_offsets
from .words import read_words


@dataclass(frozen=True, slots=True)
class NamedJson(Codec):
    """Codec for `opener(name)` + JSON arguments.

    frame: writes the whole call, from the name and the arguments as JSON text.
    """

    frame: Callable[[str, str], str]

    def strict(self, body: str, reading: Reading) -> bool:
        return not body.strip() or read_if_strict(body, reading.max_depth) is not None

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # The header names the tool and the closer ends the call: nothing is left to be told.
        if reading.closed and not body.strip():
            return (_without_arguments(body, reading.opening),)
        repaired: tuple[list[Value], list[Edit]] | Refusal
        try:
            repaired = values, edits = read_body_values(body, reading)
            if not edits:
                return self._decode(body, values, edits, reading)
            read_words(body, values, edits, reading)
        except Refusal as refusal:
            if read_if_strict(body, reading.max_depth) is not None:
                raise
            repaired = refusal
        return settle(body, reading, repaired, partial(self._decode, body, reading=reading))

    def _decode(
        self, body: str, values: list[Value], edits: list[Edit], reading: Reading
    ) -> tuple[Decoded, ...]:
        opening = reading.opening
        if len(values) != 1 or not isinstance(values[0], dict):
            raise Refusal("call.not-an-object", "the arguments are no single JSON object", 0)
        source = BodySource(body, tuple(edits), ONE_CALL)

        call = Decoded(
            opening.name,
            values[0],
            name_span=_name_span(opening),
            wire_id=opening.wire_id,
            edits=tuple(edits),
            places=source.places_of(0, "", ""),
            unescape=unescape_offsets,
        )
        return (call,)

    # The name is the opener's business, so nothing but the frame can write it.

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return self.frame(name, arguments_json)


def _without_arguments(body: str, opening: Opening) -> Decoded:
    return Decoded(
        opening.name,
        {},
        name_span=_name_span(opening),
        wire_id=opening.wire_id,
        steps=(Step("read", "read.empty-arguments", "", None, None, {}),),
        places=lambda: {"": (0, len(body))},
    )


def _name_span(opening: Opening) -> Span | None:
    # The name is in the opener, so its offsets are negative.
    return opening.name_span.shift(-opening.end) if opening.name_span else None
