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

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from ..core.types import HeldBack, Problem, Segment, Span, ToolCall
from ..core.types.spans import Severity
from .recognition.attempts import JSON_NAME, find_attempt, iter_examples, parameter_names
from .recognition.call_sites import call_sites
from .recognition.damaged_marks import read_damaged_marks
from .recognition.lost_calls import OF_SERVER, Reader, doubt_empty_calls, lost_calls, make_drafts
from .recognition.shown import masked, merged
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
        log.problems += _look_alikes(log, raw, setting, read)
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


# Text that looks like a call and is none
#
# Problems for attempts, notes for mentions. An attempt is an error of the answer, since a call was
# meant and none was read. Next to an executable call of the same tool it is a warning, because
# models also speak of what they call.

_LOOK_ALIKE = "call.looks-like"
_MOST_MENTIONS = 20
_MOST_LOOKS = 50
_MOST_EXAMPLES = 20  # a text with more shows things, and is not looked at to its end
# What a text without any of them cannot be.
_ANY_SIGN = re.compile(r"[({\[<\"“=>&:\u2014|\uff1a-\uffee\u2329\u27e8\u3008\u2039-]")
_SIGN_AFTER = re.compile(
    r"[^\w,;.?!\n]{0,12}?[({=\[<|\"“>&]|:[ \t]*\S|\.\w|[ \t]+(?:--\w|->)"
    r"|[*`:]{0,3}\s{0,8}\n[ \t]*(?:[\"'`{]|[^\n:=]{1,40}[:=])"
    r"|[ \t]*(?:with|and)\b[^\n{]{0,40}\{"
)
# What a call under another name is written with. Each begins with a literal, which is found fast.
_CALLED = re.compile(r"\((?<=[\w\]]\()(?:\w{1,40}[ \t]?=[^=]|[\"'{])")
_MEMBER = re.compile(r"[\"']\s{0,8}:\s{0,8}[\"'{\[\d]")
_TAG = re.compile(r"<\W?(?:tool|function|invoke|call)", re.IGNORECASE)
_SIGN_BEFORE = re.compile(r"(?:[<\"“>;:=\[][ \t]?|<\w{1,8}[ \t])[*`]{0,3}\Z")
# Signs that look like those of a tag, each as long as the one that it stands for.
_SIGNS_ALIKE = (
    "\uff1c\u3008\u2039\u27e8\u2329\uff1e\u3009\u203a\u27e9\u232a\uff5c\u2502\u2016\uff1d"
)
_ALIKE = str.maketrans(_SIGNS_ALIKE, "<<<<<>>>>>|||=")
_LONGEST_SEARCHED = 2**18  # characters of a text, of which the first call in vain is told
_LONGEST_TRIED = 20_000  # characters of a text that is read by other formats for the hint


def _look_alikes(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    if not any(_ANY_SIGN.search(raw, text.span.start, text.span.end) for text in log.texts):
        return
    names = tuple(setting.tools)
    if not raw.isascii() and any(sign in raw for sign in _SIGNS_ALIKE):
        raw = raw.translate(_ALIKE)
    # A text is in two segments where a call was given back.
    texts = merged([(s.span.start, s.span.end) for s in log.texts if not s.escaped])
    texts = [(a, min(b, a + _LONGEST_SEARCHED)) for a, b in texts]
    texts = [(a, b) for a, b in texts if _may_call(raw[a:b], names)]
    if not texts:
        return
    called = {call.name for call in log.calls if call.ok}
    closers = setting.protocol.envelope.closers_in_text(setting.tools)
    examples = iter_examples(log.problems, raw, closers)
    shown = [(e.start, e.end) for e in islice(examples, _MOST_EXAMPLES)]
    if (one_more := next(examples, None)) is not None:
        shown.append((one_more.start, len(raw)))
    shown = merged(shown)
    for begin, end in texts:
        text = raw[begin:end]
        quoted = [(max(a, begin) - begin, min(b, end) - begin)
                  for a, b in shown if a < end and b > begin]  # fmt: skip
        attempt = find_attempt(text, names, quoted, parameter_names(setting.specs))
        sites = call_sites(text, names)
        if attempt is not None:
            at = attempt.start
            name = next((site.name for site in sites if site.start >= at), "")
            if not name or attempt.code not in ("code", "markup"):
                places = [(text.find(name, at), name) for name in names]
                name = min((p for p in places if p[0] >= 0), default=(0, ""))[1]
            claim = f"this looks like a call of {name}" if name else "this looks like a call"
            reader = "no format reads one as it is written"
            if setting.protocol.id != "auto" and len(text) <= _LONGEST_TRIED:
                calls = read(text, "auto").calls
                formats = dict.fromkeys(repr(call.protocol) for call in calls if call.ok)
                reader = f"protocol {' or '.join(formats)} reads one" if formats else reader
            message = f"{claim}, and no call was read here: {reader}"
            place = Span(begin + at, begin + at + len(attempt.text))
            severity: Severity = "warning" if name in called else "error"
            yield Problem("scan", _LOOK_ALIKE, severity, message, "", place)
        mentions = [(s.name, s.start, s.end) for s in sites[:_MOST_MENTIONS] if not s.attempt]
        if attempt is None and not mentions:
            # A call in inline code, or a tool's schema that is said again.
            members = islice(JSON_NAME.finditer(masked(text, quoted)), _MOST_MENTIONS)
            mentions = [(m[1], *m.span()) for m in members if m[1] in names]
        for name, start, end in mentions:
            message = f"{name} is mentioned here with the sign of a call, and not called"
            place = Span(begin + start, begin + end)
            yield Problem("scan", _LOOK_ALIKE, "info", message, "", place)


def _may_call(text: str, names: tuple[str, ...]) -> bool:
    # A tool's name is in the text with the sign of a call next to it, or any call's structure is.
    for name in names:
        for spelling in {name, name.replace("_", "\\_")}:
            at, looks = text.find(spelling), 0
            while at >= 0:
                end = at + len(spelling)
                looks += 1
                is_word = text[at - 1 : at].isalnum() or text[end : end + 1].isalnum()
                if looks > _MOST_LOOKS or (
                    not is_word
                    and (
                        _SIGN_AFTER.match(text, end)
                        or _SIGN_BEFORE.search(text, max(0, at - 12), at)
                    )
                ):
                    return True
                at = text.find(spelling, end)
    return bool(
        ("<" in text and ("</" in text or _TAG.search(text)))
        or ("(" in text and _CALLED.search(text))
        or (":" in text and _MEMBER.search(text))
        or "[TOOL_CALL" in text
        or "Action Input:" in text
    )
