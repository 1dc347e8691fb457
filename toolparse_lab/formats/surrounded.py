"""The part that a derived format adds to a family: tokens around its calls, and reasoning of its
own tags.

Envelope and codec here wrap those of a family, whose reading stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..core.toolspec import ToolSpec
from ..core.types import Span
from .base import (
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
from .json.header import Header
from .scan import LiteralBody, Scanner


@dataclass(frozen=True, slots=True)
class SurroundedCalls(Envelope):
    """Envelope of a family, with tokens that are markup and tags that enclose reasoning.

    markup: literals that are neither text nor calls. thought: opener and closer of reasoning, two
    empty texts for none but those that every format has. lost: templates of headers, as in
    `json/header.py`, of calls that lost their opener, or whose special tokens were stripped. They
    open a call where they name a tool on offer and JSON follows. whole: the text that such a header
    matches is the beginning of the body itself.
    """

    inner: Envelope
    markup: tuple[str, ...] = ()
    thought: tuple[str, str] = ("", "")
    lost: tuple[str, ...] = ()
    whole: bool = False

    @property
    def closers(self) -> tuple[str, ...]:
        return self.inner.closers

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        return self.inner.closers_in_text(tools)

    @property
    def restarts(self) -> tuple[str, ...] | None:
        return self.inner.restarts

    @property
    def heads_are_fixed(self) -> bool:
        return bool(getattr(self.inner, "heads_are_fixed", False))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        lost = [Header.of(template).head for template in self.lost if _has_token(template)]
        return tuple(dict.fromkeys((*self._tokens, *self.inner.heads(tools), *lost)))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        # A longer head of the family may begin like a token.
        opening = self.inner.open(text, pos, final, tools)
        if opening is not None:
            return opening
        for token in self._tokens:
            if text.startswith(token, pos):
                return make_opening(
                    len(token), "reasoning" if token == self.thought[0] else "markup"
                )
            # The rest of a longer token may still come, whatever shorter one is there already.
            if not final and len(text) - pos < len(token) and token.startswith(text[pos:]):
                return NEED_MORE
        return self._open_lost(text, pos, final, tools)

    def _open_lost(
        self, text: str, pos: int, final: bool, tools: Tools, *, tokens: bool = True
    ) -> Opening | NeedMore | None:
        # tokens: only headers that begin with a special token, else only the others
        waits = False
        for template in self.lost:
            if _has_token(template) != tokens:
                continue
            opening = _open_header(template, text, pos, final, tools)
            if isinstance(opening, NeedMore):
                waits = True
            elif opening is not None:
                return _before_body(opening, text, pos) if self.whole else opening
        return NEED_MORE if waits else None

    @property
    def _tokens(self) -> tuple[str, ...]:
        # the longest first
        tokens = {*self.markup, *self.thought} - {""}
        return tuple(sorted(tokens, key=lambda token: (-len(token), token)))

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning" and self.thought[0]:
            return LiteralBody((self.thought[1],))
        return self.inner.scanner(opening, tools)

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return self.inner.speculates(text)

    def resumes(self, text: str, tools: Tools) -> Opening | NeedMore | None:
        opening = self.inner.resumes(text, tools)
        if opening is not None:
            return opening
        # Without a token a name is an opener at the beginning of the answer alone.
        return self._open_lost(text, 0, False, tools, tokens=False)

    def closer_of(self, opening: Opening) -> str | None:
        return self.thought[1] if opening.kind == "reasoning" else self.inner.closer_of(opening)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return self.inner.in_value(opening, text, tools)

    def opens_parameter(self, opening: Opening, inner: Opening, tools: Tools) -> bool:
        return self.inner.opens_parameter(opening, inner, tools)

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        return self.inner.suits(opening, text, at, final, tools)


# Behind a name that goes on with one of these, only the names on offer tell where it ends.
_JOINED = re.compile(r"\{name\}(?:[\w./:@+-]|\{id\}|\{any\})|\{id\}\{name\}")
_BRACKET = re.compile(r"[{\[]")
_WORD = re.compile(r"[\w-]{1,256}")
_SPACE = re.compile(r"\s{0,64}")
_NAME = "{name}"
_LONGEST_NAME = 256


def _has_token(template: str) -> bool:
    return template.startswith("<") or (template.startswith("[") and template[1:2].isalpha())


def _open_header(
    template: str, text: str, pos: int, final: bool, tools: Tools
) -> Opening | NeedMore | None:
    if _JOINED.search(template):
        return _open_joined(template, text, pos, final, tools)
    opening = Header.of(template).match(text, pos, final)
    if opening is None or isinstance(opening, NeedMore):
        return opening
    return _before_json(template, opening, text, pos, final) if opening.name in tools else None


def _before_body(opening: Opening, text: str, pos: int) -> Opening:
    # the JSON that a header's match begins or ends with
    match = _BRACKET.search(text, pos, pos + opening.end)
    return make_opening(match.start() - pos if match else 0, speculative=True)


def _open_joined(
    template: str, text: str, pos: int, final: bool, tools: Tools
) -> Opening | NeedMore | None:
    # Letters follow the name, so only the names on offer tell where it ends.
    before, _, behind = template.partition(_NAME)
    if before == "{id}":
        return _open_behind_id(template, text, pos, final, tools)
    rest = text[pos : pos + len(before) + _LONGEST_NAME]
    if not rest.startswith(before):
        return NEED_MORE if not final and before.startswith(rest) else None
    waits = False
    # The longest name first: another one may begin like it.
    for name in sorted(tools, key=len, reverse=True):
        if not rest.startswith(name, len(before)):
            waits = waits or (not final and (before + name).startswith(rest))
            continue
        if waits:
            break
        at = len(before)
        opening = Header.of(before + name + behind).match(text, pos, final)
        if isinstance(opening, Opening):
            opening = replace(opening, name=name, name_span=Span(at, at + len(name)))
            return _before_json(template, opening, text, pos, final)
        if opening is not None:
            return opening
    return NEED_MORE if waits else None


def _open_behind_id(
    template: str, text: str, pos: int, final: bool, tools: Tools
) -> Opening | NeedMore | None:
    # an id and a name with nothing between them
    word = _WORD.match(text, pos)
    if word is None:
        return None
    if word.end() >= len(text) and not final and len(word[0]) < _LONGEST_NAME:
        return NEED_MORE
    for name in sorted(tools, key=len, reverse=True):
        if word[0].endswith(name):
            end = word.end() - pos
            space = _SPACE.match(text, word.end())
            opening = make_opening(
                end + (len(space[0]) if space else 0),
                name=name,
                name_span=Span(end - len(name), end),
                wire_id=word[0][: -len(name)] or None,
            )
            return _before_json(template, opening, text, pos, final)
    return None


def _before_json(
    template: str, opening: Opening, text: str, pos: int, final: bool
) -> Opening | NeedMore | None:
    # One in JSON (the template ends in a quote) has it before it.
    at = pos + opening.end
    if template.endswith('"'):
        return replace(opening, speculative=True)
    if at >= len(text):
        return None if final else NEED_MORE
    return replace(opening, speculative=True) if text[at] == "{" else None


@dataclass(frozen=True, slots=True)
class SurroundedCodec(Codec):
    """Codec of a family that writes a section around calls.

    section: the text before the first call and after the last. between: the text between two
    calls.
    """

    inner: Codec
    section: tuple[str, str] = ("", "")
    between: str = "\n"

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return self.inner.read(body, reading)

    def leading(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return self.inner.leading(body, reading)

    def strict(self, body: str, reading: Reading) -> bool:
        return self.inner.strict(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        opener, closer = self.section
        return f"{opener}{self.inner.write(name, arguments_json, tool)}{closer}"

    def join(self, calls: Sequence[str]) -> str:
        opener, closer = self.section
        bodies = [call[len(opener) : len(call) - len(closer)] for call in calls]
        return f"{opener}{self.between.join(bodies)}{closer}"
