"""Calls that an answer says a second time."""

# How it works
# ------------
# Calls with nothing but white space, marks or numbers between them are one group: a call that is
# there twice is meant twice. Words or reasoning begin another group, and so does a blank line
# behind several calls that none parts. In it a call that an earlier group has is the same call once
# more, and a draft; what is new in it counts.
#
# Invariant: a decision looks back only, so that a stream, which has handed out the earlier calls,
# says the same as a parse.
#
# Cost: nothing up to the first call behind words. Then one comparison a call.

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

from ...core.types import Segment, Span, ToolCall
from ..resolve import as_draft

REPEATED = "call.repeated-set"
_REPEATED_MESSAGE = "the same call is executed already: the answer says it again"
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[^`\n]*$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_LETTER = re.compile(r"[^\W\d_]")
_Key: TypeAlias = tuple[str, str]


class Repeats:
    """Finds the repeated calls of one text. text_of: the characters of a span of raw."""

    def __init__(self, text_of: Callable[[Span], str]) -> None:
        self._text_of = text_of
        self.active = False  # a group was begun behind another one
        self._has_blank = False  # a blank line parts calls of the group
        self._size = 0  # calls of the group, of a group that is not the first
        self._total: Counter[_Key] = Counter()
        self._before: Counter[_Key] = Counter()
        self._group: Counter[_Key] = Counter()

    def forget(self) -> None:
        # All calls so far were in reasoning, and none of them is executed.
        self.active = False
        self._has_blank = False

    def judge(
        self,
        earlier: Iterable[ToolCall],
        count: int,
        texts: Sequence[Segment],
        calls: tuple[ToolCall, ...],
    ) -> tuple[ToolCall, ...]:
        # earlier: calls that may be executed so far. count: of all calls. texts: what was said
        # after the last. Repeated calls come back as drafts.
        is_blank = any(_BLANK_LINE.search(self._text_of(s.span)) for s in texts)
        size = self._size if self.active else count
        if any(map(self._parts, texts)) or (is_blank and size > 1 and not self._has_blank):
            if not self.active:
                self.active = True
                self._total = Counter(_key(call) for call in earlier if call.ok and call.valid)
            self._before, self._group = Counter(self._total), Counter()
            self._size, self._has_blank = 0, False
        else:
            self._has_blank = self._has_blank or is_blank
        if not self.active:
            return calls
        self._size += len(calls)
        return tuple(map(self._judged, calls))

    def _judged(self, call: ToolCall) -> ToolCall:
        if not (call.ok and call.valid):
            return call
        key = _key(call)
        self._group[key] += 1
        if self._group[key] <= self._before[key]:
            return as_draft(call, REPEATED, _REPEATED_MESSAGE)
        self._total[key] += 1
        return call

    def _parts(self, segment: Segment) -> bool:
        if segment.kind == "reasoning":
            return True
        text = self._text_of(segment.span)
        return _LETTER.search(_FENCE_LINE.sub("", text) if "```" in text else text) is not None


def _key(call: ToolCall) -> _Key:
    try:
        return call.name, json.dumps(call.arguments, sort_keys=True, default=str)
    except RecursionError:
        return call.name, call.arguments_json
