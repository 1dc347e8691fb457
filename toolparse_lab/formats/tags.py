"""Envelope family: a literal opener, a body, a literal closer.

The reasoning tags are here as well: they may be in an answer of any format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .base import NEED_MORE, Envelope, NeedMore, Opening, Tools, make_opening
from .json.scan import JsonBody, ends_in_value
from .scan import LiteralBody, Scanner

THINK_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<|thinking|>": "<|/thinking|>",
    "<|thought_start|>": "<|thought_end|>",
    "<seed:think>": "</seed:think>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "<think:opensource>": "</think:opensource>",
    "<ifm|think>": "</ifm|think>",
    "<ifm|think_fast>": "</ifm|think_fast>",
    "<ifm|think_faster>": "</ifm|think_faster>",
    "<longcat_think>": "</longcat_think>",
    "<mm:think>": "</mm:think>",
    "<|channel>thought": "<channel|>",
    "[THINK]": "[/THINK]",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|plamo:begin_think:plamo|>": "<|plamo:end_think:plamo|>",
}
THINK_ENDS = tuple(THINK_TAGS.values())


# Some models write the head of a turn where the closer should be.
_TURN = "<|im_start|>"
# An opener of a code fence may be followed by blanks, but not by a whole line of them.
_MAX_LINE_END = 64


def open_reasoning(text: str, pos: int) -> Opening | None:
    for tag in THINK_TAGS:
        if text.startswith(tag, pos):
            return Opening(len(tag), "reasoning")
    return None


def reasoning_scanner(opener: str) -> Scanner:
    """Return the scanner of reasoning after that tag, "" for reasoning without an opener."""
    return LiteralBody((THINK_TAGS.get(opener, "</think>"),))


_OBJECT = re.compile(r"""(?=\s{0,64}\{\s{0,40}"name"\s{0,10}:)""")

# Openings are frozen, so equal ones can be shared: making one costs more than the look-up.
_opening = lru_cache(maxsize=256)(Opening)


@dataclass(frozen=True, slots=True)
class JsonTags(Envelope):
    """Envelope of JSON between delimiters.

    openers, closers: the literals, of which any opener goes with any closer. line: the opener is a
    line of its own, as a code fence is.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...] = ()
    line: bool = False

    def sure_bodies(self, head: str) -> tuple[re.Pattern[str], ...]:
        # a fence's opener is more than a literal
        return () if self.line else (_OBJECT,)

    heads_are_fixed = True

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
        # end: after the opener itself. None if anything else is on the line.
        while end < len(text) and text[end] in " \t\r":
            end += 1
            if end - pos > _MAX_LINE_END:
                return None

        # The line break may be in the next chunk.
        if end >= len(text):
            return None if final else NEED_MORE
        return make_opening(end + 1 - pos) if text[end] == "\n" else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # In a body that was never closed, an opener begins the next call. Not so for a fence: its
        # opener begins with its closer, so that the closer is found there already.
        return JsonBody(self.closers, () if self.line else (*self.openers, _TURN))

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return ends_in_value(text)

    def closer_of(self, opening: Opening) -> str:
        # The shortest is the closer without white space, which all others contain.
        return min(self.closers, key=len)
