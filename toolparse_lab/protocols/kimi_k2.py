"""`kimi_k2`: a section of calls, each with an id that holds the tool's name: `functions.NAME:INDEX`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..scan import JsonBody, Scanner
from ..types import Span
from .base import NEED_MORE, NeedMore, Opening, Protocol, Tools
from .named_json import NamedJson
from .results import TextResult

_SECTION = ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>")
_BEGIN = "<|tool_call_begin|>"
_ARGUMENTS = "<|tool_call_argument_begin|>"
_END = "<|tool_call_end|>"
_ID = re.compile(r"(?:functions?\.)?(?P<name>[^\s:<>]+?)(?::(?P<index>\d+))?\Z")
_MAX_ID = 512


@dataclass(frozen=True, slots=True)
class KimiSection:
    closers: tuple[str, ...] = (_END,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*_SECTION, _BEGIN)

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        for token in _SECTION:
            if text.startswith(token, pos):
                return Opening(len(token), "markup")
        start = pos + len(_BEGIN)
        at = text.find(_ARGUMENTS, start, start + _MAX_ID)
        if at < 0:
            return None if final or len(text) - start > _MAX_ID else NEED_MORE
        wire_id = text[start:at].strip()
        name, offset = _name_of(wire_id, tools)
        lead = start + len(text[start:at]) - len(text[start:at].lstrip())
        span = Span(lead + offset - pos, lead + offset + len(name) - pos)
        return Opening(at + len(_ARGUMENTS) - pos, name=name, name_span=span, wire_id=wire_id)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return JsonBody(self.closers, (_BEGIN, _SECTION[1]))

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return None


def _name_of(wire_id: str, tools: Tools) -> tuple[str, int]:
    """The tool's name in a call id, and its offset; damaged ids give it up only if a known name stands in them."""
    m = _ID.match(wire_id)
    if m and (not tools or m["name"] in tools):
        return m["name"], m.start("name")
    damaged = re.match(r"functions?[._]?(?P<name>.+?)[_:]?\d*\Z", wire_id)
    if damaged and damaged["name"] in tools:
        return damaged["name"], damaged.start("name")
    return (m["name"], m.start("name")) if m else (wire_id, 0)


def _frame(name: str, arguments_json: str) -> str:
    return f"{_SECTION[0]}{_BEGIN}functions.{name}:0{_ARGUMENTS}{arguments_json}{_END}{_SECTION[1]}"


def _result(name: str, call_id: str, content: str) -> str:
    return f"## Return of {call_id if call_id.startswith('functions.') else f'functions.{name}:0'}\n{content}"


KIMI_K2 = Protocol(
    id="kimi_k2",
    title="a section of calls with ids",
    envelope=KimiSection(),
    codec=NamedJson(_frame),
    tags=frozenset(("delimited", "section")),
    results=TextResult(_result, ("## Return of", _ARGUMENTS, "<|im_")),
)
