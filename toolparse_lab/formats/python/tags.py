"""The envelope of calls written as Python between delimiters."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..base import NEED_MORE, Envelope, NeedMore, Opening, Tools, make_opening
from ..scan import Scanner
from .scan import LoneCall, PythonBody

_SPACE = re.compile(r"\s*")
# What a body begins with: a call, or a list with one in it or nothing.
_NAME = r"(?:[^\W\d]|\\_)(?:[\w.]|\\_){0,200}"
_CALL = re.compile(rf"\[\s{{0,40}}\]|(?:\[\s{{0,40}})?['\"]?{_NAME}['\"]?\s{{0,40}}\(")
_CALL_SO_FAR = re.compile(rf"(?:\[\s{{0,40}})?(?:['\"]?(?:{_NAME}|\\)?\\?['\"]?\s{{0,40}})?\Z")
_FENCE = re.compile(r"```(?:python|py|tool_code|json)?[ \t]{0,8}\r?\n\s{0,40}")
_FENCE_SO_FAR = re.compile(r"`{1,3}[a-z_]{0,9}[ \t]{0,8}\r?\Z")
_LONGEST_LINE_END = 64


@dataclass(frozen=True, slots=True)
class PythonTags(Envelope):
    """Envelope of Python calls between delimiters.

    openers, closers: the literals. Any closer goes with any opener. line: the opener is a line of
    its own, as a code fence is. fenced: the body is a code fence, by which it is told from that of
    another format with the same opener. strict_head: the opener counts only in front of a call.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...] = ()
    line: bool = False
    fenced: bool = False
    strict_head: bool = False

    calls_are_python = True

    heads_are_fixed = True

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.openers

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        opener = next((o for o in self.openers if text.startswith(o, pos)), None)
        if opener is None:
            return None
        end = pos + len(opener)
        if self.line:
            while end < len(text) and text[end] in " \t\r" and end - pos < _LONGEST_LINE_END:
                end += 1
            if end >= len(text):
                return None if final else NEED_MORE
            if text[end] != "\n":
                return None
            end += 1
        if self.strict_head:
            begins = _begins_call(text, end, final, fenced=True)
            if begins is not True:
                return NEED_MORE if begins is None else None
        return make_opening(end - pos)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # Without a closer a call ends after its bracket.
        if not self.closers:
            return LoneCall()
        return PythonBody(self.closers, () if self.line else self.openers)

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        scan = PythonBody(())
        scan.scan(text, True)
        return scan.quote not in ("", "#") or "(" in text

    def closer_of(self, opening: Opening) -> str | None:
        return min(self.closers, key=len, default=None)

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore | None:
        match = _SPACE.match(text, at)
        at = match.end() if match else at
        if self.fenced:
            if text.startswith("```", at):
                return True
            return NEED_MORE if not final and "```".startswith(text[at : at + 3]) else False
        begins = _begins_call(text, at, final, fenced=self.strict_head)
        return NEED_MORE if begins is None else begins


def _begins_call(text: str, at: int, final: bool, *, fenced: bool) -> bool | None:
    # None if more text decides. fenced: a code fence may be around it.
    match = _SPACE.match(text, at)
    at = match.end() if match else at
    if fenced and text.startswith("`", at):
        fence = _FENCE.match(text, at)
        if fence is None:
            return None if not final and _FENCE_SO_FAR.match(text, at) else False
        at = fence.end()
    if _CALL.match(text, at):
        return True
    return None if not final and _CALL_SO_FAR.match(text, at) else False
