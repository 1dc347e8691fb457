"""`pythonic`: a list of Python calls that is the whole answer. It has no delimiters at all."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..scan import Balanced, Scanner
from .base import NEED_MORE, NeedMore, Opening, Protocol, Tools
from .python_call import HEAD, PythonCalls

_SO_FAR = re.compile(r"\[\s{0,40}(?:[^\W\d][\w.]{0,200}\s{0,40})?\Z")


@dataclass(frozen=True, slots=True)
class WholeList:
    """Envelope: nothing opens a call but the beginning of the answer, `[name(`."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        return None

    def speculates(self, text: str) -> Opening | NeedMore | None:
        if HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return Balanced("\"'")


PYTHONIC = Protocol(
    id="pythonic",
    title="a list of Python calls, no delimiters",
    envelope=WholeList(),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
)
