"""Calls as a JSON value that is alone in a code fence."""

from __future__ import annotations

import re
from dataclasses import replace

from ...formats.base import NEED_MORE, NeedMore
from .bare_calls import JsonValue
from .held import FENCE_SO_FAR, Held, count_ticks
from .quotes import run_length

_OPENING = r"`{3,}+[ \t]{0,8}(?i:json|json5|jsonc|tools?_calls?|function_calls?|tool|)[ \t]{0,8}"
_FENCE_LINE = rf"{_OPENING}\r?\n\s{{0,40}}"
_FENCE_HEAD = rf"{_OPENING}(?:\r?\n\s{{0,40}}|(?=[{{\[]))"
# Some models put the fence that they were taught into one more.
_FENCE = re.compile(rf"(?P<outer>{_FENCE_LINE}(?=```))?(?P<inner>{_FENCE_HEAD})")
_INNER_SO_FAR = re.compile(
    rf"{_FENCE_LINE}`{{1,}}+[ \t]{{0,8}}[a-zA-Z0-9_]{{0,12}}[ \t]{{0,8}}\r?\Z"
)
_OUTER_END = re.compile(r"\s{0,16}+(?P<ticks>`*+)")


class FencedCalls(JsonValue):
    """Recognises a JSON value that is alone in a code fence, or in a fence inside a fence."""

    def judge(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        # At the end of the text a fence that stays open, or not entirely, still has a call.
        if not final and _INNER_SO_FAR.match(text):
            return NEED_MORE
        fence = _FENCE.match(text)
        if not fence:
            return NEED_MORE if not final and FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if self._at != at:
            head = self._head(text, lead, final)
            if head is not True:
                return head
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            return Held(lead) if final else NEED_MORE
        after = self._pass_space(text, end)
        if not fence["outer"]:
            run = run_length(text, 0)
            ticks = text[after : after + run]
            if ticks.strip("`"):
                return Held(end)
            if len(ticks) == run:
                return self._call_or_text(text, lead, end, after + run, at)
            if not final:
                return NEED_MORE
            return replace(
                self._call_or_text(text, lead, end, after + len(ticks), at), closed=False
            )
        # The inner fence has to close, the outer one may stay open.
        inner = count_ticks(fence["inner"])
        if count_ticks(text[after : after + inner]) < inner:
            is_cut = not final and after + inner > len(text) and not text[after:].strip("`")
            return NEED_MORE if is_cut else Held(end)
        close = _OUTER_END.match(text, after + inner)
        outer = count_ticks(fence["outer"])
        if close is None or len(close["ticks"]) < outer:
            if not final and close is not None and close.end() == len(text):
                return NEED_MORE
            return self._call_or_text(text, lead, end, after + inner, at)
        return self._call_or_text(text, lead, end, close.start("ticks") + outer, at)
