"""Codec of tags whose attributes escape quotes and ampersands: `tool="a&amp;b"` names `a&b`.

All else is as in the family: values are no attributes, and stay as they stand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...core.toolspec import ToolSpec
from ...core.values import Value, escape_token, read_strict, write_canonical
from ..base import Codec, Decoded, Places, Reading


def unescaped_name(text: str) -> str:
    # The ampersand last: its escape may stand before the letters of another one.
    return text.replace("&quot;", '"').replace("&amp;", "&")


def escaped_name(name: str) -> str:
    return name.replace("&", "&amp;").replace('"', "&quot;")


@dataclass(frozen=True, slots=True)
class EscapedNames(Codec):
    """Codec that takes the escapes out of the names that another codec reads."""

    tags: Codec

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        calls = self.tags.read(body, reading)
        return tuple(map(_unescaped, calls)) if "&" in body else calls

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if isinstance(arguments, dict):
            escaped = {escaped_name(key): value for key, value in arguments.items()}
            arguments_json = write_canonical(escaped)
        return self.tags.write(escaped_name(name), arguments_json, tool)

    def join(self, calls: Sequence[str]) -> str:
        return self.tags.join(calls)


def _unescaped(call: Decoded) -> Decoded:
    arguments = call.arguments
    if isinstance(arguments, dict) and any("&" in key for key in arguments):
        values: dict[str, Value] = {unescaped_name(key): v for key, v in arguments.items()}
        # Two keys that say one name are left as they stand: neither value is lost.
        if len(values) == len(arguments):
            call = replace(call, arguments=values, places=partial(_places, call, tuple(arguments)))
    # A name that was escaped has no place of its own letters in the text.
    name = unescaped_name(call.name)
    return call if name == call.name else replace(call, name=name, name_span=None)


def _places(call: Decoded, keys: tuple[str, ...]) -> Places:
    # keys: of the arguments as they are in the text.
    heads = {escape_token(key): escape_token(unescaped_name(key)) for key in keys}
    places: dict[str, tuple[int, int]] = {}
    for path, place in call.places().items():
        root, *steps = path.split("/")
        if steps:
            steps[0] = heads.get(steps[0], steps[0])
        places["/".join((root, *steps))] = place
    return places
