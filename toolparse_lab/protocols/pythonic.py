"""`pythonic`: a list of Python calls at the beginning of an answer, alone on its last line. It has no delimiters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..scan import Balanced, Close, Scanner
from .base import NEED_MORE, NeedMore, Opening, Protocol, Tools
from .python_call import HEAD, PythonCalls

_SO_FAR = re.compile(r"\[\s{0,40}(?:[^\W\d][\w.]{0,200}\s{0,40})?\Z")


_BEHIND = re.compile(r"[ \t]{0,64}+(?P<ch><\||\S|\s)")  # what stands behind the list on its line, not far away


class _LoneList:
    """Ends behind the closing bracket. What else stands on that line makes the whole no list of calls.

    Then the body reaches past the bracket, so that it cannot be read: `[a(b)](c)` is a link. A special token that was
    not stripped may stand there.
    """

    __slots__ = ("_at", "_balanced", "_end")

    def __init__(self) -> None:
        self._balanced = Balanced("\"'")
        self._end: int | None = None
        self._at = 0

    def finish(self) -> Close | None:
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        if self._end is None:
            found = self._balanced.scan(tail, final)
            if not isinstance(found, Close):
                self._at += found
                return found
            self._end = found.end
        end = self._end
        m = _BEHIND.match(tail, end - self._at)
        if not final and (m is None or (m["ch"] == "<" and m.end() == len(tail))):
            self._at, settled = end, end - self._at
            return settled
        past = self._at + m.end() if m and m["ch"] != "<|" and not m["ch"].isspace() else end
        return Close(past, past, "end")


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
        return _LoneList()


PYTHONIC = Protocol(
    id="pythonic",
    title="a list of Python calls, no delimiters",
    envelope=WholeList(),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
)
