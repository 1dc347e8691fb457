"""Codec of CWM: a name and JSON, or a name and a command as it would be typed."""

from __future__ import annotations

from dataclasses import dataclass

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import view_of
from ..base import NEED_MORE, Decoded, NeedMore, Opening, Reading, Tools
from .forms import JsonSection
from .openers import JsonHeaders

_PARAMETER = "command"


@dataclass(frozen=True)
class CommandHeaders(JsonHeaders):
    """Envelope of such calls: where no JSON follows, the name has to be a known tool's.

    Words behind a tag are prose otherwise. Where no tool is known, the name begins a line.
    """

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        opening = JsonHeaders.open(self, text, pos, final, tools)
        if not isinstance(opening, Opening) or opening.name in tools:
            return opening
        begin = pos + opening.end
        if begin >= len(text):
            return None if final else NEED_MORE
        if text[begin] == "{":
            return opening
        begins_line = opening.name_span is not None and (
            text[pos + opening.name_span.start - 1] == "\n"
        )
        return opening if begins_line and not tools else None


@dataclass(frozen=True, slots=True)
class JsonOrCommand(JsonSection):
    """Codec: a body that begins with no brace is the text of the parameter `command`.

    Only a tool that has such a parameter, or of which nothing is known, takes it.
    """

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        text = body.strip()
        if text[:1] in ("", "{", "["):
            # By name: `super()` does not know a class that got slots.
            return JsonSection.read(self, body, reading)
        if not reading.closed:
            # More of the command may have come.
            message = "the text ends inside a command"
            raise Refusal("decode.truncated-value", message, len(body))
        opening = reading.opening
        tool = reading.tools.get(opening.name)
        if tool is not None and _PARAMETER not in view_of(tool.schema_json).properties:
            raise Refusal("decode.json", "neither JSON nor a command that the tool takes", 0)

        start = len(body) - len(body.lstrip())
        place = (start, start + len(text))
        span = opening.name_span.shift(-opening.end) if opening.name_span else None
        call = Decoded(
            opening.name,
            {_PARAMETER: text},
            name_span=span,
            places=lambda: {"": place, f"/{_PARAMETER}": place},
            unescape=lambda raw: list(range(len(raw) + 1)),
        )
        return (call,)

    def strict(self, body: str, reading: Reading) -> bool:
        return body.lstrip()[:1] not in ("{", "[") or JsonSection.strict(self, body, reading)
