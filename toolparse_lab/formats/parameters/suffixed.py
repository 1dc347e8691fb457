"""Keys and values in tags that end in the name of a checkpoint: `<arg_key:opensource>`.

Every checkpoint has a suffix of its own, so the text itself says the names of the tags: the block's
opener has it, and the form for the rest follows from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Literal

from ...core.toolspec import ToolSpec
from ..base import (
    NEED_MORE,
    Codec,
    Decoded,
    Envelope,
    NeedMore,
    Opening,
    Reading,
    Tools,
    make_opening,
)
from ..scan import LiteralBody, Scanner
from .scan import ParameterScan
from .slots import SlotForm
from .tags import ParameterCall, ParameterTags

_SUFFIX = r"[\w-]{1,32}+"
_THINK = "think"


@lru_cache(maxsize=32)
def _form_of(maker: Callable[[str], SlotForm], suffix: str) -> SlotForm:
    return maker(suffix)


@lru_cache(maxsize=8)
def _openers(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    head = re.escape(word)
    return re.compile(rf"<{head}:(?P<suffix>{_SUFFIX})>"), re.compile(rf"<{head}:(?:{_SUFFIX})?\Z")


@dataclass(frozen=True, slots=True)
class SuffixedBlocks(Envelope):
    """Envelope of blocks whose opener ends in a suffix. word: of the opener. maker: its form."""

    word: str
    maker: Callable[[str], SlotForm]
    restarts: tuple[str, ...] = ()

    @property
    def heads_are_fixed(self) -> bool:
        return True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (f"<{self.word}:", f"<{_THINK}:")

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        is_thought = text.startswith(f"<{_THINK}:", pos)
        whole, partial = _openers(_THINK if is_thought else self.word)
        match = whole.match(text, pos)
        if match is not None:
            kind: Literal["reasoning", "call"] = "reasoning" if is_thought else "call"
            return make_opening(match.end() - pos, kind, attributes=f":{match['suffix']}")
        return NEED_MORE if not final and partial.match(text, pos) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        suffix = opening.attributes
        if opening.kind == "reasoning":
            return LiteralBody((f"</{_THINK}{suffix}>",))
        return ParameterScan(_form_of(self.maker, suffix), tools, wrapped=True)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        form = _form_of(self.maker, opening.attributes)
        scan = ParameterScan(form, tools, wrapped=True, whole=True)
        scan.scan(text, True)
        return scan.in_value


@dataclass(frozen=True)
class MaybeSuffixed(ParameterTags):
    """Envelope of blocks without a suffix, and, where the format is named, of those with one."""

    suffixed: SuffixedBlocks = field(kw_only=True)

    @cached_property
    def _own(self) -> ParameterTags:
        return ParameterTags(self.form, self.restarts)

    @property
    def among_others(self) -> Envelope:
        return self._own

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return (*super().heads(tools), *self.suffixed.heads(tools))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        if text.startswith(self.suffixed.heads(tools), pos):
            return self.suffixed.open(text, pos, final, tools)
        return super().open(text, pos, final, tools)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return self._envelope_of(opening).scanner(opening, tools)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return self._envelope_of(opening).in_value(opening, text, tools)

    def closer_of(self, opening: Opening) -> str | None:
        return self._envelope_of(opening).closer_of(opening)

    def _envelope_of(self, opening: Opening) -> Envelope:
        return self.suffixed if opening.attributes.startswith(":") else self._own


@dataclass(frozen=True, slots=True)
class SuffixedCall(Codec):
    """Codec of such blocks. suffix: the one that is written, with its colon, "" for none."""

    maker: Callable[[str], SlotForm]
    suffix: str

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        opened = reading.opening.attributes
        suffix = opened if opened.startswith(":") else self._suffix_in(body)
        return ParameterCall(_form_of(self.maker, suffix)).read(body, reading)

    def _suffix_in(self, body: str) -> str:
        tag = _form_of(self.maker, "").function_word.removesuffix(">")
        match = re.search(rf"{re.escape(tag)}(:{_SUFFIX})>", body)
        return match[1] if match else self.suffix

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        form = _form_of(self.maker, self.suffix)
        return ParameterCall(form).write(name, arguments_json, tool)
