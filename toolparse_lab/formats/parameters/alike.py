"""Blocks whose tags begin with a special token that is spelt with other bars: `<|DSML|invoke …>`.

Servers and fonts write the bar of such a token in many ways, twice, with spaces, or not at all. The
opener says how, and the form for the rest follows from that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from ...core.types import Step
from ..base import NEED_MORE, Decoded, Envelope, NeedMore, Opening, Reading, Tools
from ..scan import Scanner
from .shape import Form
from .tags import ParameterCall, ParameterTags

BARS = "|｜│┃‖║¦∣￨❘⏐ǀ"
"""Characters that look like the bar of a special token."""
_ALIKE = ":alike:"  # in an opening: the token and the block's word follow
_BLOCKS = ("tool_calls", "function_calls", "tool_call", "function_call", "toolcalls", "calls")
_WORDS = (*_BLOCKS, "invoke")


@lru_cache(maxsize=8)
def _openers(word: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    bars = rf"[{re.escape(BARS)}]{{0,2}}"
    token = rf"{bars}\x20?{word}\x20?{bars}\x20?"
    letters = "".join(f"(?:{c}" for c in word) + ")?" * len(word)
    so_far = rf"<{bars}(?:\x20?(?:{letters}|{word}\x20?{bars}(?:\x20?[a-z_]{{0,16}})))\Z"
    words = "|".join(_WORDS)
    return (
        re.compile(rf"<(?P<token>{token})(?P<word>{words})(?=[\s>])", re.IGNORECASE),
        re.compile(so_far, re.IGNORECASE),
    )


@lru_cache(maxsize=8)
def _functions(word: str) -> re.Pattern[str]:
    bars = rf"[{re.escape(BARS)}]{{0,2}}"
    return re.compile(
        rf"<(?P<token>{bars}\x20?{word}\x20?{bars}\x20?)invoke(?=[\s>])", re.IGNORECASE
    )


@lru_cache(maxsize=64)
def _form_of(maker: Callable[[str, str], Form], token: str, block: str) -> Form:
    return maker(token, block)


@dataclass(frozen=True)
class AlikeBlocks(Envelope):
    """Envelope of blocks with other spellings of a token.

    word: of the token, without its bars. own: the token as the format writes it. block: the word of
    its block. maker: makes the form of a token and a block's word. of_others: tokens and words of
    blocks that are other formats' own, where several are read at once.
    """

    word: str
    own: str
    block: str
    maker: Callable[[str, str], Form]
    of_others: frozenset[tuple[str, str]] = frozenset()

    @property
    def heads_are_fixed(self) -> bool:
        return True

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        heads = [f"<{self.word}"]
        for bar in BARS:
            heads += [f"<{bar}{self.word}", f"<{bar}{bar}{self.word}", f"<{bar} {self.word}"]
        # The token's word is a name, which a model may write small.
        return tuple(dict.fromkeys((*heads, *map(str.lower, heads))))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self._heads

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        whole, partial = _openers(self.word)
        match = whole.match(text, pos)
        if match is None:
            return NEED_MORE if not final and partial.match(text, pos) else None
        block = self.block if match["word"].lower() == "invoke" else match["word"]
        if match["token"] == self.own:
            return None  # whatever the block's word, its functions are the format's own
        if (match["token"], match["word"]) in self.of_others:
            return None
        form = _form_of(self.maker, match["token"], block)
        opening = ParameterTags(form).open(text, pos, final, tools)
        if not isinstance(opening, Opening):
            return opening
        return replace(opening, attributes=f"{_ALIKE}{match['token']}:{block}")

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return self._tags(opening).scanner(replace(opening, attributes=""), tools)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return self._tags(opening).in_value(opening, text, tools)

    def closer_of(self, opening: Opening) -> str | None:
        return self._tags(opening).closer_of(opening)

    def _tags(self, opening: Opening) -> ParameterTags:
        return ParameterTags(_form_of(self.maker, *_spelling(opening)))

    def is_spelt_so(self, body: str) -> bool:
        match = _functions(self.word).search(body)
        return match is not None and match["token"] != self.own

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the calls of a body, with a step that says how they were written."""
        match = _functions(self.word).search(body)
        token = match["token"] if match is not None else self.own
        form = _form_of(self.maker, token, self.block)
        calls: list[Decoded] = []
        for call in ParameterCall(form).read(body, reading):
            step = Step("read", "read.look-alike", "", None, f"<{token}", call.arguments)
            calls.append(replace(call, steps=(step, *call.steps)) if call.readable else call)
        return tuple(calls)


def is_alike(opening: Opening) -> bool:
    return opening.attributes.startswith(_ALIKE)


def _spelling(opening: Opening) -> tuple[str, str]:
    token, _, block = opening.attributes.removeprefix(_ALIKE).rpartition(":")
    return token, block
