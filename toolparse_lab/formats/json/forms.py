"""Codecs of JSON bodies whose calls stand in one list, or whose headers may name the tool."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ...core.toolspec import ToolSpec
from ...core.values import write_canonical
from ..base import Codec, Decoded, Message, Reading
from .call import JsonCall
from .named import NamedJson
from .source import name_first

_EMPTY = re.compile(r"\s*+(?:```(?:json)?\s*+)?\[\s*+\]\s*+(?:```)?\s*+")
_LONGEST_EMPTY = 64
_REPEATED = re.compile(r"""\s*\{\s*"name"\s*:\s*"[^"\\]*"\s*,\s*"arguments"\s*:\s*\{""")


@dataclass(frozen=True, slots=True)
class JsonList(JsonCall):
    """Codec: objects in one list, or lines, between delimiters that several calls share.

    between: stands between two calls.
    """

    between: str = ", "

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # an empty list between the delimiters says that there is nothing to call
        if self.opener and len(body) <= _LONGEST_EMPTY and _EMPTY.fullmatch(body):
            return Message((), ())
        return JsonCall.read(self, body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        if not self.name_is_key:
            return JsonCall.write(self, name, arguments_json, tool)
        return f"{self.opener}{{{write_canonical(name)}:{arguments_json}}}{self.closer}"

    def join(self, calls: Sequence[str]) -> str:
        begin, end = len(self.opener), len(self.closer)
        items = (call[begin : len(call) - end] for call in calls)
        return f"{self.opener}{self.between.join(items)}{self.closer}"


@dataclass(frozen=True, slots=True)
class JsonSection(NamedJson):
    """Codec: calls whose headers name the tool, in a section of which there is one an answer.

    opener, closer: of the section. between: stands between two calls.
    """

    opener: str = ""
    closer: str = ""
    between: str = ""

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return f"{self.opener}{self.frame(name, arguments_json)}{self.closer}"

    def join(self, calls: Sequence[str]) -> str:
        begin, end = len(self.opener), len(self.closer)
        items = (call[begin : len(call) - end] for call in calls)
        return f"{self.opener}{self.between.join(items)}{self.closer}"


@dataclass(frozen=True, slots=True)
class NamedOrObject(Codec):
    """Codec of a format with both forms: the header names the tool, or the body does.

    named, objects: read the two forms. writes_list: which one is written.
    """

    named: JsonSection
    objects: JsonList
    writes_list: bool = False

    def _reader(self, body: str, reading: Reading) -> Codec:
        # A list is one of calls whatever its header says; so is an object with the same name.
        name = reading.opening.name
        if not name or body.lstrip()[:1] == "[":
            return self.objects
        return self.objects if _REPEATED.match(body) and name_first(body, name) else self.named

    @property
    def _writer(self) -> Codec:
        return cast(Codec, self.objects if self.writes_list else self.named)

    def strict(self, body: str, reading: Reading) -> bool:
        return self._reader(body, reading).strict(body, reading)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return self._reader(body, reading).read(body, reading)

    def leading(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return self._reader(body, reading).leading(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return self._writer.write(name, arguments_json, tool)

    def join(self, calls: Sequence[str]) -> str:
        return self._writer.join(calls)
