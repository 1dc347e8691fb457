"""Codecs of JSON whose header names the tool, whose calls are in one list, or either."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import cast

from ...arguments.rjson.strict import Refusal, read_if_strict
from ...arguments.schema.view import view_of
from ...core.toolspec import ToolSpec
from ...core.types import Edit, Step
from ...core.types.spans import rule_of
from ...core.values import Value, write_canonical
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Message,
    Opening,
    Tools,
    named_call,
)
from .call import JsonCall, read_body_values
from .judge import WORDS, read_words, settle
from .openers import JsonHeaders
from .scan import name_first
from .source import ONE_CALL, BodySource, unescape_offsets

_EMPTY = re.compile(r"\s*+(?:```(?:json)?\s*+)?\[\s*+\]\s*+(?:```)?\s*+")
_LONGEST_EMPTY = 64
_REPEATED = re.compile(r"""\s*\{\s*"name"\s*:\s*"[^"\\]*"\s*,\s*"arguments"\s*:\s*\{""")
_PARAMETER = "command"  # of CWM


@dataclass(frozen=True, slots=True)
class NamedJson(Codec):
    """Codec for `opener(name)` + JSON arguments.

    frame: writes the whole call, from the name and the arguments as JSON text.
    """

    frame: Callable[[str, str], str]

    def strict(self, body: str, context: DecodeContext) -> bool:
        return not body.strip() or read_if_strict(body, context.max_depth) is not None

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # The header names the tool and the closer ends the call: nothing is left to be told.
        opening = context.opening
        if context.closed and not body.strip():
            step = Step("read", "read.empty-arguments", "", None, None, {})
            return (named_call(opening, {}, lambda: {"": (0, len(body))}, (), (step,)),)
        repaired: tuple[list[Value], list[Edit]] | Refusal
        try:
            repaired = values, edits = read_body_values(body, context)
            if not edits:
                return self._decode(body, values, edits, context)
            if not WORDS.isdisjoint(map(rule_of, edits)):
                read_words(body, values, edits, context)
        except Refusal as refusal:
            if read_if_strict(body, context.max_depth) is not None:
                raise
            repaired = refusal
        return settle(body, context, repaired, partial(self._decode, body, context=context))

    def _decode(
        self, body: str, values: list[Value], edits: list[Edit], context: DecodeContext
    ) -> tuple[Decoded, ...]:
        if len(values) != 1 or not isinstance(values[0], dict):
            raise Refusal("call.not-an-object", "the arguments are no single JSON object", 0)
        fixed = tuple(edits)
        places = BodySource(body, fixed, ONE_CALL).places_of(0, "", "")
        opening = context.opening
        return (named_call(opening, values[0], places, fixed, unescape=unescape_offsets),)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        # The name is the opener's business, so nothing but the frame can write it.
        return self.frame(name, arguments_json)


@dataclass(frozen=True, slots=True)
class JsonList(JsonCall):
    """Codec: objects in one list, or lines, between delimiters that several calls share.

    between: the text between two calls.
    """

    between: str = ", "

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # an empty list between the delimiters says that there is nothing to call
        if self.opener and len(body) <= _LONGEST_EMPTY and _EMPTY.fullmatch(body):
            return Message((), ())
        return JsonCall.read(self, body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        if not self.name_is_key:
            return JsonCall.write(self, name, arguments_json, tool)
        return f"{self.opener}{{{write_canonical(name)}:{arguments_json}}}{self.closer}"

    @property
    def edges(self) -> tuple[str, str]:
        return self.opener, self.closer


@dataclass(frozen=True, slots=True)
class JsonSection(NamedJson):
    """Codec: calls whose headers name the tool, in a section of which there is one an answer.

    opener, closer: of the section. between: the text between two calls.
    """

    opener: str = ""
    closer: str = ""
    between: str = ""

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return f"{self.opener}{self.frame(name, arguments_json)}{self.closer}"

    @property
    def edges(self) -> tuple[str, str]:
        return self.opener, self.closer


@dataclass(frozen=True, slots=True)
class NamedOrObject(Codec):
    """Codec of a format with both forms: the header names the tool, or the body does.

    named, objects: read the two forms. writes_list: which one is written.
    """

    named: JsonSection
    objects: JsonList
    writes_list: bool = False

    def _reader(self, body: str, context: DecodeContext) -> Codec:
        # A list is one of calls whatever its header says; so is an object with the same name.
        name = context.opening.name
        if not name or body.lstrip()[:1] == "[":
            return self.objects
        return self.objects if _REPEATED.match(body) and name_first(body, name) else self.named

    @property
    def _writer(self) -> Codec:
        return cast(Codec, self.objects if self.writes_list else self.named)

    def strict(self, body: str, context: DecodeContext) -> bool:
        return self._reader(body, context).strict(body, context)

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return self._reader(body, context).read(body, context)

    def leading(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return self._reader(body, context).leading(body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return self._writer.write(name, arguments_json, tool)

    @property
    def list_head(self) -> str:
        return self._writer.list_head

    def join(self, calls: Sequence[str]) -> str:
        return self._writer.join(calls)


@dataclass(frozen=True)
class CommandHeaders(JsonHeaders):
    """Envelope of such calls: where no JSON follows, the name has to be a known tool's.

    Words after a tag are prose otherwise. Where no tool is known, the name begins a line.
    """

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
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

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        text = body.strip()
        if text[:1] in ("", "{", "["):
            # By name: `super()` does not know a class that got slots.
            return JsonSection.read(self, body, context)
        if not context.closed:
            # More of the command may have come.
            message = "the text ends inside a command"
            raise Refusal("decode.truncated-value", message, len(body))
        opening = context.opening
        tool = context.tools.get(opening.name)
        if tool is not None and _PARAMETER not in view_of(tool.schema_json).properties:
            raise Refusal("decode.json", "neither JSON nor a command that the tool takes", 0)

        start = len(body) - len(body.lstrip())
        place = (start, start + len(text))
        call = named_call(
            opening,
            {_PARAMETER: text},
            lambda: {"": place, f"/{_PARAMETER}": place},
            unescape=lambda raw: list(range(len(raw) + 1)),
        )
        return (call,)

    def strict(self, body: str, context: DecodeContext) -> bool:
        return body.lstrip()[:1] not in ("{", "[") or JsonSection.strict(self, body, context)
