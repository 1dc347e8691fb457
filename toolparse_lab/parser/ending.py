"""What only the end of a text can tell: reasoning begun in the prompt, closers that close nothing,
calls that were lost on their way, and text that looks like a call."""

# How it works
# ------------
# Looked for once, when a text is over, and only in an answer without a call, or with text next to
# it; an answer of nothing but calls costs three comparisons (`StreamParser.close`). Nothing here
# makes a call: what does not go together gets a problem that says so, or a call becomes a draft.
#
# Reasoning: an answer whose prompt ended with a think tag begins with reasoning that nothing marks,
# and a call quoted there looks like any other until the closing tag comes. Before the first lone
# closing tag text becomes reasoning and calls become drafts. Spans and events stay, since text that
# was handed out is final: a stream that has to know from the beginning is read with
# reasoning="prefilled".
#
# Look-alikes: only in text that a tool's name is part of. An attempt is an error of the answer,
# since a call was meant and none was read; next to an executable call of the same tool it is a
# warning, because models also speak of what they call. A mention is told as well, as information.

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import TypeAlias

from ..core.toolspec import ToolSpec
from ..core.types import ParseResult, Problem, Segment, Span, ToolCall, Withdrawn
from ..core.types.server import BESIDE_TEXT, ESCAPED, IN_CONTENT, NO_CALL, ONLY_REASONED
from ..core.types.spans import Severity
from ..formats.registry import protocols
from .attempt import (
    Attempt,
    CallSite,
    call_sites,
    find_attempt,
    iter_examples,
    merged,
    parameter_names,
)
from .echoes import as_draft
from .state import Log, Setting

Reader: TypeAlias = Callable[[str, str], ParseResult]  # (text, id of its protocol) -> result
_IN_REASONING = "the call stands in reasoning that the answer closes behind it"


def finish(log: Log, raw: str, setting: Setting, read: Reader | None) -> None:
    """Look through a finished text. read: reads a text by the protocol of an id; None for a part of
    another text, in which no other calls are looked for.
    """
    if log.thought_end is not None:
        _withdraw(log, log.thought_end)
        _tell_reasoning(log, log.thought_end)
    if setting.closers is not None:
        for segment in log.texts:
            problem = _stray_closer(setting, setting.closers, raw, segment.span)
            if problem:
                log.problems.append(problem)
    if read is None:
        return
    tools, protocol = setting.specs, setting.protocol.id
    if log.calls:
        if protocol == "auto" or protocol in _OF_SERVER:
            _doubt_empty_calls(log, raw, tools, read)
    else:
        if "&lt;" in raw or "&quot;" in raw:
            _find_escaped(log, raw, tools, protocol, read)
        if protocol in _OF_SERVER:
            _find_in_content(log, raw, tools, read)
        if len(log.segments) > 1 or (log.segments and log.segments[0].kind != "text"):
            _find_in_reasoning(log, raw, tools, protocol, read)
    if log.texts and setting.recovers:
        log.problems += _find_look_alikes(log, raw, setting, read)


def _withdraw(log: Log, end: int) -> None:
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
    # Text after reasoning with tags of its own stays an answer: that was not begun in the prompt.
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
    match = closers.search(raw, span.start, span.end)
    # Behind an opener in the same text both are part of an example.
    if match is None or any(head in raw[span.start : match.start()] for head in setting.heads):
        return None
    message = "a closer stands here, and no call that it closes"
    return Problem("scan", "call.stray-closer", "warning", message, "", Span(*match.span()))


# Finish reasons, in the words of providers, of an answer that ends with a call.
CALL_ENDS = frozenset({"tool_calls", "tool-calls", "tool_call", "tool_use", "function_call"})
_CUT_ENDS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "max_length", "incomplete"}
)
# Formats whose calls a server has read.
_OF_SERVER = frozenset({"openai_json", "openai_strict"})


def lost_by_response(
    result: ParseResult, finish_reason: str | None, reasoning: str, reader: Reader
) -> list[Problem]:
    """Return what the words of a provider next to an answer without calls say of a lost one."""
    reason = (finish_reason or "").lower()
    problems: list[Problem] = []
    if reason in CALL_ENDS:
        message = f"the response ends with {reason} and holds no call"
        problems.append(Problem("read", NO_CALL, "error", message))
    silent = bool(reasoning.strip()) and reason not in _CUT_ENDS and not result.text.strip()
    if silent and _written_calls(reasoning, result.tools, result.protocol, reader):
        problems.append(_only_reasoned(None))
    return problems


def _find_in_content(log: Log, raw: str, tools: tuple[ToolSpec, ...], reader: Reader) -> None:
    text = _text_of(log.segments, raw)
    calls = _written_calls(text, tools, "auto", reader) if text.strip() else ()
    if any(call.readable for call in calls):
        message = "the message has no calls, and its content holds one"
        log.problems.append(Problem("read", IN_CONTENT, "error", message))


def _find_in_reasoning(
    log: Log, raw: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> None:
    # Closed reasoning that nothing follows.
    thoughts = [s for s in log.segments if s.kind == "reasoning" and s.closed]
    if not thoughts or _text_of(log.segments, raw).strip():
        return
    for thought in thoughts:
        inside = thought.body or thought.span
        calls = _written_calls(thought.said(raw), tools, protocol, reader)
        if calls:
            span = calls[0].segment.span.shift(inside.start)
            log.problems.append(_only_reasoned(inside if thought.escaped else span))
            return


def _find_escaped(
    log: Log, raw: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> None:
    for segment in log.texts:
        text = segment.said(raw)
        calls = _written_calls(unescape(text), tools, protocol, reader) if "&" in text else ()
        if any(call.readable for call in calls):
            message = "the text holds a call whose marks are escaped"
            log.problems.append(Problem("scan", ESCAPED, "error", message, "", segment.span))


def _only_reasoned(span: Span | None) -> Problem:
    message = "the only call stands in the reasoning, and nothing follows it"
    return Problem("read", ONLY_REASONED, "error", message, "", span)


def _doubt_empty_calls(log: Log, raw: str, tools: tuple[ToolSpec, ...], reader: Reader) -> None:
    empty = [i for i, c in enumerate(log.calls) if _is_empty(c)]
    text = _text_of(log.segments, raw) if empty else ""
    if not text.strip():
        return
    others = _written_calls(text, tools, "auto", reader)
    names = {c.name for c in others if c.arguments_json != "{}"}
    withdrawn: list[ToolCall] = []
    for i in empty:
        call = log.calls[i]
        if call.name in names:
            message = "the call has no arguments, and the text beside it holds one that has"
            log.calls[i] = as_draft(call, BESIDE_TEXT, message)
            withdrawn.append(log.calls[i])
    if withdrawn and not log.silent:
        log.events.append(Withdrawn(Span(len(raw), len(raw)), tuple(withdrawn)))


def _is_empty(call: ToolCall) -> bool:
    return call.ok and call.arguments_json == "{}" and call.protocol in _OF_SERVER


def _text_of(segments: list[Segment], raw: str) -> str:
    return "".join([s.said(raw) for s in segments if s.kind == "text"])


def _written_calls(
    text: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> tuple[ToolCall, ...]:
    # In the text's own format or any other, prose about a call aside.
    names = {tool.name for tool in tools}
    for name in dict.fromkeys(("auto", protocol)):
        if name in _OF_SERVER or (name != "auto" and name not in protocols()):
            continue
        calls = [c for c in reader(text, name).calls if c.readable or c.name in names]
        if calls:
            return tuple(calls)
    return ()


_LOOK_ALIKE = "call.looks-like"
_MOST_REMARKS = 20
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
_MEMBER = re.compile(r"\"\s{0,8}:\s{0,8}[\"{\[\d]")
_TAG = re.compile(r"<\W?(?:tool|function|invoke|call)", re.IGNORECASE)
_SIGN_BEFORE = re.compile(r"(?:[<\"“>;:=\[][ \t]?|<\w{1,8}[ \t])[*`]{0,3}\Z")
# Signs that look like those of a tag, each as long as the one that it stands for.
_SIGNS_ALIKE = (
    "\uff1c\u3008\u2039\u27e8\u2329\uff1e\u3009\u203a\u27e9\u232a\uff5c\u2502\u2016\uff1d"
)
_ALIKE = str.maketrans(_SIGNS_ALIKE, "<<<<<>>>>>|||=")
_LONGEST_TRIED = 20_000  # characters of a text that is read by other formats for the hint


def _find_look_alikes(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    # read: reads a text by the protocol of an id, for the hint at one that reads it.
    for text in log.texts:
        if _ANY_SIGN.search(raw, text.span.start, text.span.end):
            break
    else:
        return
    names = tuple(setting.tools)
    if not raw.isascii() and any(sign in raw for sign in _SIGNS_ALIKE):
        raw = raw.translate(_ALIKE)
    texts = [span for span in _whole_texts(log.texts) if _may_call(span.of(raw), names)]
    if not texts:
        return
    called = {call.name for call in log.calls if call.ok}
    examples = _examples(setting, log, raw)
    for span in texts:
        yield from _problems(setting, span, raw, called, examples, read)


def _whole_texts(segments: list[Segment]) -> list[Span]:
    # A text is in two segments where a call was given back.
    spans: list[Span] = []
    for segment in segments:
        if segment.escaped:
            continue
        if spans and spans[-1].end == segment.span.start:
            spans[-1] = Span(spans[-1].start, segment.span.end)
        else:
            spans.append(segment.span)
    return spans


def _may_call(text: str, names: tuple[str, ...]) -> bool:
    for name in names:
        for spelling in {name, name.replace("_", "\\_")}:
            at, looks = text.find(spelling), 0
            while at >= 0:
                end = at + len(spelling)
                looks += 1
                if looks > _MOST_LOOKS or _is_near_sign(text, at, end):
                    return True
                at = text.find(spelling, end)
    return _is_structured(text)


def _is_structured(text: str) -> bool:
    if "<" in text and ("</" in text or _TAG.search(text)):
        return True
    if ("(" in text and _CALLED.search(text)) or ('"' in text and _MEMBER.search(text)):
        return True
    return "[TOOL_CALL" in text or "Action Input:" in text


def _is_near_sign(text: str, start: int, end: int) -> bool:
    if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
        return False
    return bool(
        _SIGN_AFTER.match(text, end) or _SIGN_BEFORE.search(text, max(0, start - 12), start)
    )


def _examples(setting: Setting, log: Log, raw: str) -> list[tuple[int, int]]:
    closers = setting.protocol.envelope.closers_in_text(setting.tools)
    quoted: list[tuple[int, int]] = []
    for example in iter_examples(log.problems, raw, closers):
        if len(quoted) >= _MOST_EXAMPLES:
            quoted.append((example.start, len(raw)))
            break
        quoted.append((example.start, example.end))
    return merged(quoted)


def _problems(
    setting: Setting,
    place: Span,
    raw: str,
    called: set[str],
    examples: list[tuple[int, int]],
    read: Reader,
) -> Iterator[Problem]:
    begin, end = place.start, place.end
    text = place.of(raw)
    names = tuple(setting.tools)
    quoted = [
        (max(a, begin) - begin, min(b, end) - begin) for a, b in examples if a < end and b > begin
    ]
    attempt = find_attempt(text, names, quoted, parameter_names(setting.specs))
    sites = call_sites(text, names)
    if attempt is not None:
        name = _name_of(attempt, text, sites, names)
        severity: Severity = "warning" if name in called else "error"
        span = Span(begin + attempt.start, begin + attempt.start + len(attempt.text))
        claim = f"this looks like a call of {name}" if name else "this looks like a call"
        reader = _reader(text, setting, read)
        message = f"{claim}, and no call was read here: {reader}"
        yield Problem("scan", _LOOK_ALIKE, severity, message, "", span)
    for site in sites[:_MOST_REMARKS]:
        if not site.attempt:
            message = f"{site.name} is mentioned here with the sign of a call, and not called"
            span = Span(begin + site.start, begin + site.end)
            yield Problem("scan", _LOOK_ALIKE, "info", message, "", span)


def _name_of(attempt: Attempt, text: str, sites: list[CallSite], names: tuple[str, ...]) -> str:
    site = next((s for s in sites if s.start >= attempt.start), None)
    if site is not None and attempt.code in ("code", "markup"):
        return site.name
    places = [(at, name) for name in names if (at := text.find(name, attempt.start)) >= 0]
    return min(places, default=(0, ""))[1]


def _reader(text: str, setting: Setting, read: Reader) -> str:
    if setting.protocol.id != "auto" and len(text) <= _LONGEST_TRIED:
        result = read(text, "auto")
        formats = dict.fromkeys(call.protocol for call in result.calls if call.ok)
        if formats:
            return f"protocol {' or '.join(map(repr, formats))} reads one"
    return "no format reads one as it is written"
