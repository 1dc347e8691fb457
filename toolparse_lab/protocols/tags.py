"""Envelope family: a literal opener, a body, a literal closer; and the reasoning tags that every format may meet."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from ..scan import JsonBody, LiteralBody, Scanner
from .base import NEED_MORE, NeedMore, Opening, Tools

THINK_TAGS = {"<think>": "</think>", "<thinking>": "</thinking>", "<|thinking|>": "<|/thinking|>"}


def open_reasoning(text: str, pos: int) -> Opening | None:
    for tag in THINK_TAGS:
        if text.startswith(tag, pos):
            return Opening(len(tag), "reasoning")
    return None


def reasoning_scanner(opener: str) -> Scanner:
    return LiteralBody((THINK_TAGS.get(opener, "</think>"),))


_opening = lru_cache(maxsize=256)(Opening)


@dataclass(frozen=True, slots=True)
class JsonTags:
    """Envelope: JSON between delimiters. `line` = the opener is a line of its own, as a code fence is."""

    openers: tuple[str, ...]
    closers: tuple[str, ...]
    line: bool = False

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.openers

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        for opener in self.openers:
            if not text.startswith(opener, pos):
                continue
            if not self.line:
                return _opening(len(opener))
            return self._open_line(text, pos, pos + len(opener), final)
        return None

    def _open_line(self, text: str, pos: int, end: int, final: bool) -> Opening | NeedMore | None:
        """The opener with the white space and line break that end its line."""
        while end < len(text) and text[end] in " \t\r":
            end += 1
            if end - pos > 64:
                return None
        if end >= len(text):
            return None if final else NEED_MORE
        return Opening(end + 1 - pos) if text[end] == "\n" else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return JsonBody(self.closers, () if self.line else self.openers)

    def closer_of(self, opening: Opening) -> str:
        return min(self.closers, key=len)

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return None
