"""Calls that an answer says a second time."""

# How it works
# ------------
# Calls with nothing but white space, marks or numbers between them are one group: a call that is
# there twice is meant twice. Words or reasoning begin another group, and so does a blank line
# behind several calls that none parts, or another list in a format that has one for all calls. In
# it a call that an earlier group has is the same call once
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
REPEATED_MESSAGE = "the same call is executed already: the answer says it again"
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
        again: bool,
    ) -> tuple[ToolCall, ...]:
        # earlier: calls that may be executed so far. count: of all calls. texts: what was said
        # after the last. again: they begin another list. Repeated calls come back as drafts.
        is_blank = any(_BLANK_LINE.search(self._text_of(s.span)) for s in texts)
        size = self._size if self.active else count
        if again or any(map(self._parts, texts)) or (is_blank and size > 1 and not self._has_blank):
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
            return as_draft(call, REPEATED, REPEATED_MESSAGE)
        self._total[key] += 1
        return call

    def _parts(self, segment: Segment) -> bool:
        if segment.kind == "reasoning":
            return True
        text = self._text_of(segment.span)
        return _LETTER.search(_FENCE_LINE.sub("", text) if "```" in text else text) is not None


def second_half(calls: Sequence[ToolCall], words: bool) -> range:
    """Return the places of the calls that say all calls before them once more, in their order.

    Only the end tells. words: there is text beside the calls.
    """
    half = len(calls) // 2
    if words or half < 2 or len(calls) % 2 or calls[0].name != calls[half].name:
        return range(0)
    # The members of two equal objects may stand in another order, which has the same length.
    if len(calls[0].arguments_json) != len(calls[half].arguments_json):
        return range(0)
    if len({(call.name, call.arguments_json) for call in calls[:half]}) == 1:
        return range(0)
    if not all(call.valid for call in calls):
        return range(0)
    parted = calls[half].segment_index != calls[half - 1].segment_index
    if not parted or any(a.wire_id != b.wire_id for a, b in zip(calls, calls[half:], strict=False)):
        return range(0)
    if any(_key(a) != _key(b) for a, b in zip(calls, calls[half:], strict=False)):
        return range(0)
    return range(half, len(calls)) if len(set(map(_key, calls[:half]))) > 1 else range(0)


def halved(calls: tuple[ToolCall, ...], text: str) -> tuple[ToolCall, ...]:
    """Return the calls of one body, those of its second half as drafts if it is the first again: a
    list behind the same list, or several objects on a line behind the same line.
    """
    text = text.strip()
    size, half = len(text), len(calls) // 2
    at = text.rfind(text[-1:], 0, size // 2 + 1) + 1  # where the first half ends
    if len(calls) % 2 or not at or text[:at] != text[size - at :]:
        return calls
    gap = text[at : size - at]
    if gap.strip(" \t\r\n,;") or not (text[0] == "[" or (half > 1 and "\n" in gap)):
        return calls
    return (
        *calls[:half],
        *(as_draft(c, REPEATED, REPEATED_MESSAGE) if c.ok else c for c in calls[half:]),
    )


def _key(call: ToolCall) -> _Key:
    try:
        return call.name, json.dumps(call.arguments, sort_keys=True, default=str)
    except RecursionError:
        return call.name, call.arguments_json
