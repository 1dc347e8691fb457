"""Calls that are a tool's name on a line of its own, with one object of arguments on the next."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

from ...core.types import Span
from ...formats.base import NEED_MORE, NeedMore, Opening
from ...formats.json.forms import NamedJson
from ...formats.scan import longest_of
from ..resolve import Resolver
from .held import MOST_CUT, Candidate, Held

_ARGUMENTS_CODEC = NamedJson(lambda name, arguments: arguments)  # the name is known already
_AFTER_NAME = r"[ \t]{0,16}+\r?\n[ \t]{0,16}+"
_AFTER_NAME_SO_FAR = re.compile(r"[ \t]{0,16}+\r?(?:\n[ \t]{0,16}+)?\Z")


class NameHeads:
    r"""The heads of calls that are a tool's name on a line of its own, the arguments on the next.

    >>> heads = name_heads(("get_tide",))
    >>> heads.match('get_tide\n{"port": 1}', 0, True).end()
    9
    >>> heads.match("get_tide now", 0, True) is None
    True
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        words = tuple(sorted(name for name in names if name and not name[0].isspace()))
        self._names = words
        self._pattern = re.compile(rf"(?P<name>{longest_of(words)}){_AFTER_NAME}(?=\{{)")
        self._longest = max(map(len, words), default=0) + 36
        self.starts = frozenset(name[0] for name in words)

    def match(self, text: str, at: int, final: bool) -> re.Match[str] | NeedMore | None:
        head = self._pattern.match(text, at)
        if head is not None or final or len(text) - at > self._longest:
            return head
        rest = text[at:]
        word = rest.split(None, 1)[0]
        name = longer(self._names, word)
        is_whole = name == word and _AFTER_NAME_SO_FAR.match(rest, len(word))
        return NEED_MORE if name and (word == rest or is_whole) else None


name_heads = lru_cache(maxsize=64)(NameHeads)


def longer(names: tuple[str, ...], beginning: str) -> str:
    # The first of sorted names with this beginning, '' for none.
    place = bisect_left(names, beginning)
    return names[place] if place < len(names) and names[place].startswith(beginning) else ""


class NameLine(Candidate):
    """Recognises a known tool's name alone on a line, with one object on the next."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...], names: NameHeads) -> None:
        super().__init__(resolver, heads, '"')
        self._names = names

    def judge(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        head = self._names.match(text, 0, final)
        if not isinstance(head, re.Match):
            return head
        lead = head.end()
        if self._cut > MOST_CUT:
            return None
        if self._at != at:
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            self._cut += final
            return Held(1, lead=lead) if final else NEED_MORE
        close = self._line_end(text, end, final, first)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end, alone=False, lead=lead)
        # The tool takes the arguments, or they name nothing but its parameters.
        name, inner = head["name"], text[lead:end]
        opening = Opening(lead, name=name, name_span=Span(0, len(name)))
        read = _ARGUMENTS_CODEC.read
        decoded, calls = self._calls_in(read, inner, lead, close, at, opening)
        if not calls or not calls[0].ok:
            return Held(close, lead=lead)
        schema, arguments = self._resolver.tools[name].schema, calls[0].arguments
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not arguments or not properties or schema.get("additionalProperties"):
            suits = calls[0].valid
        else:
            suits = all(key in properties for key in arguments)
        if not suits:
            return Held(close, lead=lead)
        return Held(close, Span(at + lead, at + end), decoded, inner)
