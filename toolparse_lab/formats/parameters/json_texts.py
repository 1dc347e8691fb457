"""Codec of tags whose texts are JSON strings: `<arg_value>"Oslo"</arg_value>` is the text Oslo.

All else is as in the family: a value without quotes is raw text, which the schema types.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...arguments.rjson.strict import read_if_strict
from ...core.toolspec import ToolSpec
from ...core.values import Value, escape_token, read_strict, write_canonical
from ..base import Codec, Decoded, Places, Reading

# How it works. The other codec reads a body, and checks its edits, with the quotes in the texts.
# They are taken off behind it, in strict and repaired bodies alike, so that an edited body reads
# to the same as the one that was repaired. A text that is not quoted as a whole is what it is.

# Possessive, as it is asked of every text.
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)


@dataclass(frozen=True, slots=True)
class JsonTexts(Codec):
    """Codec that takes the quotes off the texts that another codec reads."""

    tags: Codec

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return tuple(map(_unquoted, self.tags.read(body, reading)))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        arguments = read_strict(arguments_json)
        if isinstance(arguments, dict):
            quoted = {
                key: write_canonical(value)
                if isinstance(value, str) and _QUOTED.fullmatch(value)
                else value
                for key, value in arguments.items()
            }
            arguments_json = write_canonical(quoted)
        return self.tags.write(name, arguments_json, tool)

    def join(self, calls: Sequence[str]) -> str:
        return self.tags.join(calls)


def _unquoted(call: Decoded) -> Decoded:
    if not isinstance(call.arguments, dict) or not call.untyped:
        return call
    texts: dict[str, Value] = {}
    # Nothing but the arguments themselves: quotes inside a list are the list's own.
    for name, value in call.arguments.items():
        if isinstance(value, str) and _QUOTED.fullmatch(value):
            values = read_if_strict(value, 1)
            if values is not None and len(values) == 1:
                texts[name] = values[0]
    if not texts:
        return call
    return replace(
        call,
        arguments={**call.arguments, **texts},
        places=partial(_places, call, tuple(texts)),
        unescape=_offsets,
    )


def _places(call: Decoded, names: tuple[str, ...]) -> Places:
    places = dict(call.places())
    for name in names:
        path = f"/{escape_token(name)}"
        if path in places:
            # One mark at each end; escapes inside move nothing outside.
            start, end = places[path]
            places[path] = (start + 1, end - 1)
    return places


def _offsets(raw: str) -> list[int] | None:
    return None if "\\" in raw else list(range(len(raw) + 1))
