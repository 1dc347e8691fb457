"""`pythonic`: a list of Python calls at the beginning of an answer, alone on its last line.

It has no delimiters.
"""

# How it works: the list ends behind the bracket that closes it, which `Balanced` finds. The rest of
# that line decides if it was a list of calls at all: `[a(b)](c)` is a link in Markdown. So the scan
# goes on for at most 64 blanks and two characters behind the bracket, and if text stands there the
# body is made to reach over it, so that the codec refuses it and the text stays text.

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import NEED_MORE, Envelope, NeedMore, Opening, Protocol, Tools
from ..scan import Balanced, Close, Scanner
from .call import HEAD, PythonCalls
from .type_rules import PYTHON_TYPE_RULES

# What may become the beginning of a call when more text comes.
_SO_FAR = re.compile(r"\[\s{0,40}(?:[^\W\d][\w.]{0,200}\s{0,40})?\Z")
# What stands behind the list on its line, not far away: a special token that was not stripped, or
# any character.
_BEHIND = re.compile(r"[ \t]{0,64}+(?P<char><\||\S|\s)")


class _LoneList:
    """Ends behind the closing bracket.

    If something else stands on that line, the body reaches past the bracket, so that it cannot be
    read. A special token that was not stripped may stand there.
    """

    __slots__ = ("_at", "_balanced", "_end")

    def __init__(self) -> None:
        self._balanced = Balanced("\"'")
        self._end: int | None = None  # behind the bracket, from the body's beginning
        self._at = 0

    def finish(self) -> Close | None:
        """Return None: a list that is not closed is truncated."""
        return None

    def scan(self, tail: str, final: bool) -> Close | int:
        """Look for the closing bracket, and then at what is behind it.

        Returns the close, or how many characters are settled; the bracket is settled while the rest
        of its line is awaited.
        """
        if self._end is None:
            answer = self._balanced.scan(tail, final)
            if not isinstance(answer, Close):
                self._at += answer
                return answer
            self._end = answer.end

        # The bracket may have come with an earlier chunk.
        end = self._end
        behind = _BEHIND.match(tail, end - self._at)
        if not final and self._is_open(behind, len(tail)):
            settled = end - self._at
            self._at = end
            return settled

        if behind is None or behind["char"] == "<|" or behind["char"].isspace():
            return Close(end, end, "end")

        past = self._at + behind.end()
        return Close(past, past, "end")

    def _is_open(self, behind: re.Match[str] | None, size: int) -> bool:
        """Return if more text could still change what is behind the bracket.

        behind: the match there, or None if nothing is there yet. size: of the tail. A `<` at its
        end may become a special token.
        """
        return behind is None or (behind["char"] == "<" and behind.end() == size)


@dataclass(frozen=True, slots=True)
class WholeList(Envelope):
    """Envelope: nothing opens a call but the beginning of the answer, `[name(`."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """Return nothing: no text inside an answer opens a call."""
        return ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """Return None, as nothing opens a call but the beginning of the answer."""
        return None

    def speculates(self, text: str) -> Opening | NeedMore | None:
        """Return the opening, if the answer begins with a list and the head of a call.

        It is speculative: if the body is no list of calls, the text is text.
        """
        if HEAD.match(text):
            return Opening(0, speculative=True)
        return NEED_MORE if _SO_FAR.match(text) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return the scanner that ends behind the list."""
        return _LoneList()


PYTHONIC = Protocol(
    id="pythonic",
    title="a list of Python calls, no delimiters",
    envelope=WholeList(),
    codec=PythonCalls(),
    tags=frozenset(("undelimited",)),
    type_rules=PYTHON_TYPE_RULES,
)
