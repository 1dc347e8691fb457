"""JSON objects written the way a format writes them, to the last blank."""

from __future__ import annotations

import json
from dataclasses import dataclass

from ...core.toolspec import ToolSpec
from .call import JsonCall

NAME, ARGUMENTS, TEXT, ID = "{name}", "{arguments}", "{text}", "{id}"


@dataclass(frozen=True, slots=True)
class ShapedJson(JsonCall):
    """Codec of `JsonCall` that writes a call in a shape.

    shape: the text of a call in parts, of which `{name}` stands for the name as the inside of a
    JSON string, `{arguments}` for the arguments, `{text}` for their text as a JSON string, `{id}`
    for an id.
    """

    shape: tuple[str, ...] = ()

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        values = {
            NAME: json.dumps(name, ensure_ascii=False)[1:-1],
            ARGUMENTS: arguments_json,
            TEXT: json.dumps(arguments_json, ensure_ascii=False),
            ID: "call00000",
        }
        body = "".join(values.get(part, part) for part in self.shape)
        return f"{self.opener}{body}{self.closer}"
