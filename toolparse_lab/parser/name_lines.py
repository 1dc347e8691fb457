"""The head of a call that is a tool's name alone on a line, with its arguments on the next one."""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from functools import lru_cache

from ..formats.base import NEED_MORE, NeedMore
from ..formats.scan import longest_of

_BEHIND = r"[ \t]{0,16}+\r?\n[ \t]{0,16}+"
_BEHIND_SO_FAR = re.compile(r"[ \t]{0,16}+\r?(?:\n[ \t]{0,16}+)?\Z")


@dataclass(frozen=True, slots=True)
class NameHeads:
    """The heads of calls of some tools. starts: the characters that they begin with."""

    names: tuple[str, ...]
    pattern: re.Pattern[str]
    starts: frozenset[str]
    longest: int

    def match(self, text: str, at: int, final: bool) -> re.Match[str] | NeedMore | None:
        """Return the head at `text[at]`, whose group `name` is the tool's name.

        None for any other text, NEED_MORE where only more text can tell.
        """
        head = self.pattern.match(text, at)
        if head is not None or final or len(text) - at > self.longest:
            return head
        rest = text[at:]
        word = rest.split(None, 1)[0]
        place = bisect_left(self.names, word)
        if place >= len(self.names) or not self.names[place].startswith(word):
            return None
        is_whole = self.names[place] == word and _BEHIND_SO_FAR.match(rest, len(word))
        return NEED_MORE if word == rest or is_whole else None


@lru_cache(maxsize=64)
def name_heads(names: tuple[str, ...]) -> NameHeads:
    r"""Return the heads of calls of tools with these names.

    >>> heads = name_heads(("get_tide",))
    >>> heads.match('get_tide\n{"port": 1}', 0, True).end()
    9
    >>> heads.match("get_tide now", 0, True) is None
    True
    """
    words = tuple(sorted(name for name in names if name and not name[0].isspace()))
    pattern = re.compile(rf"(?P<name>{longest_of(words)}){_BEHIND}(?=\{{)")
    longest = max(map(len, words), default=0) + 36
    return NameHeads(words, pattern, frozenset(name[0] for name in words), longest)
