"""Body family: the opener names the tool, the body is nothing but its arguments as one JSON object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..rjson.damage import Refusal
from ..rjson.strict import read_if_strict
from ..toolspec import ToolSpec
from ..types import Span
from .base import Decoded, Reading
from .json_call import _Source, unescape_offsets
from .json_call import read_body_values as read_values


@dataclass(frozen=True, slots=True)
class NamedJson:
    """Codec for `opener(name)` + JSON arguments. `frame` writes the whole call around the arguments."""

    frame: Callable[[str, str], str]

    def strict(self, body: str, reading: Reading) -> bool:
        return read_if_strict(body, reading.max_depth) is not None

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        opening = reading.opening
        values, edits = read_values(body, reading)
        if len(values) != 1 or not isinstance(values[0], dict):
            raise Refusal("call.not-an-object", "the arguments are no single JSON object", 0)
        source = _Source(body, tuple(edits), [(0, "")])
        span = opening.name_span.shift(-opening.end) if opening.name_span else Span(0, 0)
        return (
            Decoded(
                opening.name, values[0], name_span=span, wire_id=opening.wire_id, edits=tuple(edits),
                places=source.places_of(0, "", ""), unescape=unescape_offsets,
            ),
        )  # fmt: skip

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return self.frame(name, arguments_json)
