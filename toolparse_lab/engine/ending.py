"""What only the end of a text can tell of it: reasoning whose opener stood in the prompt, and
closers that close nothing."""

# How it works
# ------------
# An answer whose prompt ended with a think tag begins with reasoning that nothing marks, and a call
# quoted there looks like any other until the closing tag comes. So the finished text is looked
# through once more, by substring searches that most texts end at once.
#
# Invariant: the calls before the first lone closing tag become drafts; segments and spans stay.

from __future__ import annotations

import re

from ..protocols.tags import THINK_TAGS
from ..types import Problem, Segment, Span, ToolCall, Withdrawn
from .log import Log
from .setting import Setting
from .unclosed import as_draft

_THINK_ENDS = {closer: opener for opener, closer in THINK_TAGS.items()}
# Not between backticks, where it is spoken about.
_THINK_END = re.compile(rf"(?<!`)(?:{'|'.join(map(re.escape, _THINK_ENDS))})(?!`)")
_IN_REASONING = "the call stands in reasoning that the answer closes behind it"


def finish(setting: Setting, log: Log, raw: str) -> None:
    """Look through a finished text: calls before a lone think tag, and closers without opener."""
    if log.calls and setting.reads_reasoning:
        end = _reasoning_end(raw, log.texts)
        if end:
            _withdraw(log, end)
    if setting.closers is None:
        return
    for segment in log.texts:
        problem = _stray_closer(setting, setting.closers, raw, segment.span)
        if problem:
            log.problems.append(problem)


def _reasoning_end(raw: str, texts: list[Segment]) -> int:
    """The offset of the first closing think tag in text that no tag opens; 0 where there is none.

    raw: the whole text. texts: its segments that may hold words.
    """
    for segment in texts:
        start, end = segment.span.start, segment.span.end
        # Part of each closing think tag, so that nearly every text is done with one look.
        if segment.escaped or raw.find("/think", start, end) < 0:
            continue
        text = raw[start:end]
        for match in _THINK_END.finditer(text):
            if _THINK_ENDS[match[0]] not in text[: match.start()]:
                return segment.span.start + match.start()
    return 0


def _withdraw(log: Log, end: int) -> None:
    """Make drafts of the calls before an offset, and say so to those who saw them."""
    withdrawn: list[ToolCall] = []
    for i, call in enumerate(log.calls):
        segment = call.segment
        if segment is None or segment.span.end > end:
            break
        log.calls[i] = as_draft(call, "call.in-reasoning", _IN_REASONING)
        withdrawn.append(log.calls[i])
    if withdrawn and not log.silent:
        log.events.append(Withdrawn(Span(end, end), tuple(withdrawn)))


def _stray_closer(
    setting: Setting, closers: re.Pattern[str], raw: str, span: Span
) -> Problem | None:
    """The problem of a text in which a closer stands without an opener before it."""
    match = closers.search(raw, span.start, span.end)
    # Behind an opener in the same text both are part of an example.
    if match is None or any(head in raw[span.start : match.start()] for head in setting.heads):
        return None
    message = "a closer stands here, and no call that it closes"
    return Problem("scan", "call.stray-closer", "warning", message, "", Span(*match.span()))
