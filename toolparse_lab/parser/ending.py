"""What only the end of a text can tell: reasoning begun in the prompt, closers that close nothing,
lost calls, and text that looks like a call."""

# How it works
# ------------
# Runs once, when a text is over, and only for an answer without a call or with text next to it; an
# answer of nothing but calls costs three comparisons (`StreamParser.close`). Nothing here makes a
# call: it adds problems, or turns a call into a draft.
#
# Reasoning: an answer whose prompt ended with a think tag begins with reasoning that nothing marks,
# and a call quoted there looks like any other until the closing tag comes. Before the first lone
# closing tag text becomes reasoning and calls become drafts. Spans and events stay, since text that
# was handed out is final: a stream that has to know from the beginning is read with
# reasoning="prefilled".

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ..core.types import HeldBack, Problem, Segment, Span, ToolCall
from .recognition.damaged_marks import read_damaged_marks
from .recognition.look_alikes import look_alikes
from .recognition.lost_calls import OF_SERVER, Reader, doubt_empty_calls, lost_calls, make_drafts
from .recognition.surroundings import shown_at_end
from .state import Log, Setting

_MOST_SHOWN = 20  # calls of a text that are read though they are only shown
_LONGEST_SHOWN = 8_000  # characters of such a call, or of several together
_IN_REASONING = "the call is inside reasoning that the answer closes after it"


def finish(log: Log, raw: str, setting: Setting, read: Reader | None) -> None:
    """Look through a finished text. read: reads a text by the protocol of an id; None for a part of
    another text, in which no other calls are looked for.
    """
    if log.thought_end is not None:
        _end_thought(log, log.thought_end)
    if read is not None and read_damaged_marks(log, raw, setting, read):
        return
    closers = setting.closers
    for segment in log.texts if closers else ():
        start, end = segment.span.start, segment.span.end
        closer = closers.search(raw, start, end) if closers else None
        # After an opener in the same text both are part of an example.
        if closer and not any(head in raw[start : closer.start()] for head in setting.heads):
            message = "a closer stands here, and no call that it closes"
            log.warn("call.stray-closer", message, Span(*closer.span()))
    if read is None:
        return
    if not log.calls:
        log.problems += lost_calls(log, raw, setting, read)
    elif setting.protocol.id == "auto" or setting.protocol.id in OF_SERVER:
        doubt_empty_calls(log, raw, setting.specs, read)
    cut = raw.find("\ufffd")
    if cut >= 0 and any(s.kind == "call" and "\ufffd" in s.said(raw) for s in log.segments):
        message = "a replacement character is in the arguments: something cut a character in two"
        log.problems.append(
            Problem("scan", "call.replacement-character", "info", message, "", Span(cut, cut + 1))
        )
    if log.texts and setting.recovers:
        log.problems += look_alikes(log, raw, setting, read)
    if log.calls and log.texts:
        for_example = log.echoes is not None and log.echoes.asks_for_example
        asked = log.echoes.asked if log.echoes is not None else ""
        for places, message in shown_at_end(
            log.calls,
            log.segments,
            raw,
            asked=asked,
            asks_for_example=for_example,
            among_shown=bool(log.shown),
        ):
            _hold_back(log, places, message, len(raw), setting)
    if log.shown:
        drafts = tuple(_drafts(log, raw, setting, read))
        log.calls += drafts
        if drafts and not log.silent:
            log.events.append(HeldBack(Span(len(raw), len(raw)), drafts))


def _hold_back(log: Log, places: list[int], message: str, at: int, setting: Setting) -> None:
    if setting.options.quotes == "allow":
        if not any(problem.code == "call.quoted-example" for problem in log.problems):
            log.warn("call.quoted-example", message, log.calls[places[0]].segment.span)
        return
    make_drafts(log, places, at, "call.held-back", message, "warning")


def _drafts(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[ToolCall]:
    # Calls that are only shown, each as a draft in its text. They are read as they stand, behind
    # white space in place of the text before, so that all places are those of raw.
    index, end = len(log.calls), 0
    texts = [(i, s) for i, s in enumerate(log.segments) if s.kind == "text" and not s.escaped]
    for place, message in log.shown[:_MOST_SHOWN]:
        start = place.start
        home = next(((i, s) for i, s in texts if s.span.start <= start < s.span.end), None)
        if start < end or home is None:
            continue
        at, segment = home
        stop = min(segment.span.end, max(place.end, start + _LONGEST_SHOWN))
        lead = " " * (start - 1) + "\n" if start else ""
        calls = read(lead + raw[start:stop], setting.protocol.id).calls
        for call in calls:
            if call.segment_index != calls[0].segment_index or call.segment is None:
                break
            end = max(end, call.segment.span.end)
            if call.ok:
                note = Problem("scan", "call.held-back", "warning", message, "", call.segment.span)
                yield replace(
                    call,
                    index=index,
                    segment_index=at,
                    segment=segment,
                    status="draft",
                    problems=(note, *call.problems),
                )
                index += 1


def _end_thought(log: Log, end: int) -> None:
    # Calls before the lone closing think tag are drafts, and text is reasoning.
    n_before = sum(c.segment is not None and c.segment.span.end <= end for c in log.calls)
    make_drafts(log, range(n_before), end, "call.in-reasoning", _IN_REASONING)
    thought = [segment for segment in log.segments if segment.span.end <= end]
    # Text after reasoning with tags of its own stays an answer: that was not begun in the
    # prompt.
    if not any(segment.kind == "reasoning" for segment in thought):
        log.segments[: len(thought)] = [
            Segment("reasoning", s.span, s.span) if s.kind == "text" else s for s in thought
        ]
        log.texts = [text for text in log.texts if text.span.end > end]
