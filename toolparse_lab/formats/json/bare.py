"""Envelope family: JSON that is a call by its keys alone, without any delimiter.

`auto` does not ask these formats: the text they read is what it recovers, with a warning.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..base import NEED_MORE, Envelope, NeedMore, Opening, Tools
from ..scan import Scanner
from .call import CALL_HEAD, CALL_HEAD_SO_FAR
from .run import ValueRun
from .scan import ends_in_value

_KEY = re.compile(r"\{\s{0,40}[\"']([a-z_]{1,20})[\"']\s{0,10}:")
_OPENING = Opening(0, speculative=True)


@dataclass(frozen=True, slots=True)
class BareJson(Envelope):
    """Envelope of objects, or one list of objects, whose first key is one that calls have.

    ends: special tokens that may follow. separators: see `ValueRun`. wrapper: the only key of an
    object around a list of calls, "" for none.
    """

    ends: tuple[str, ...] = ()
    separators: str = ""
    wrapper: str = ""

    heads_are_fixed = True

    in_auto = False  # see the head of this module

    @property
    def among_others(self) -> Envelope:
        # an object around a list is a message of OpenAI's
        return replace(self, wrapper="") if self.wrapper else self

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ("{", "[")

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        if CALL_HEAD.match(text, pos) or (self.wrapper and self._wraps(text, pos)):
            return _OPENING
        return NEED_MORE if not final and CALL_HEAD_SO_FAR.match(text, pos) else None

    def _wraps(self, text: str, pos: int) -> bool:
        key = _KEY.match(text, pos)
        return key is not None and key[1] == self.wrapper

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return ValueRun(self.ends, separators=self.separators, calls=True)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return ends_in_value(text)
