"""What only the end of a text can tell of it: reasoning whose opener stood in the prompt, and
closers that close nothing.
"""

# How it works
# ------------
# An answer whose prompt ended with a think tag begins with reasoning that nothing marks, and a call
# quoted there looks like any other until the closing tag comes.
#
# Invariant: before the first lone closing tag text becomes reasoning and calls become drafts. Spans
# and events stay, since text that was handed out is final: a stream that has to know from the
# beginning is read with reasoning="prefilled".

from __future__ import annotations

import re

from ..core.types import Problem, Segment, Span, ToolCall, Withdrawn
from .log import Log
from .setting import Setting
from .unclosed import as_draft

_IN_REASONING = "the call stands in reasoning that the answer closes behind it"


def finish(setting: Setting, log: Log, raw: str) -> None:
    """Look through a finished text: calls before a lone think tag, and closers without opener."""
    if log.thought_end is not None:
        _withdraw(log, log.thought_end)
        _tell_reasoning(log, log.thought_end)
    if setting.closers is not None:
        for segment in log.texts:
            problem = _stray_closer(setting, setting.closers, raw, segment.span)
            if problem:
                log.problems.append(problem)


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


def _tell_reasoning(log: Log, end: int) -> None:
    """Make reasoning of the text before an offset.

    Text behind reasoning with tags of its own stays an answer: that was not begun in the prompt.
    """
    before = [segment for segment in log.segments if segment.span.end <= end]
    if any(segment.kind == "reasoning" for segment in before):
        return
    log.segments[: len(before)] = [
        Segment("reasoning", segment.span, segment.span) if segment.kind == "text" else segment
        for segment in before
    ]
    log.texts = [text for text in log.texts if text.span.end > end]


def _stray_closer(
    setting: Setting, closers: re.Pattern[str], raw: str, span: Span
) -> Problem | None:
    """Return the problem of a text in which a closer stands without an opener before it."""
    match = closers.search(raw, span.start, span.end)
    # Behind an opener in the same text both are part of an example.
    if match is None or any(head in raw[span.start : match.start()] for head in setting.heads):
        return None
    message = "a closer stands here, and no call that it closes"
    return Problem("scan", "call.stray-closer", "warning", message, "", Span(*match.span()))
