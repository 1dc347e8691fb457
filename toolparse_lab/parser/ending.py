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
from collections.abc import Callable, Iterator, Sequence
from html import unescape
from itertools import islice
from typing import TypeAlias

from ..core.toolspec import ToolSpec
from ..core.types import ParseResult, Problem, Segment, Span, ToolCall, Withdrawn
from ..core.types.server import BESIDE_TEXT, ESCAPED, IN_CONTENT, NO_CALL, ONLY_REASONED
from ..core.types.spans import Severity
from ..formats.registry import protocols
from .attempt import call_sites, find_attempt, iter_examples, merged, parameter_names
from .echoes import as_draft
from .state import Log, Setting

Reader: TypeAlias = Callable[[str, str], ParseResult]  # (text, id of its protocol) -> result
# Finish reasons, in the words of providers, of an answer that ends with a call.
CALL_ENDS = frozenset({"tool_calls", "tool-calls", "tool_call", "tool_use", "function_call"})
_CUT_ENDS = frozenset(
    {"length", "max_tokens", "max_output_tokens", "model_length", "max_length", "incomplete"}
)
# Formats whose calls a server has read.
OF_SERVER = frozenset({"openai_json", "openai_strict"})
_IN_REASONING = "the call is inside reasoning that the answer closes after it"
_BESIDE = "the call has no arguments, and the text beside it holds one that has"
_ONLY_REASONED = "the only call is in the reasoning, and nothing follows it"
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
_MEMBER = re.compile(r"\"\s{0,8}:\s{0,8}[\"{\[\d]")
_TAG = re.compile(r"<\W?(?:tool|function|invoke|call)", re.IGNORECASE)
_SIGN_BEFORE = re.compile(r"(?:[<\"“>;:=\[][ \t]?|<\w{1,8}[ \t])[*`]{0,3}\Z")
# Signs that look like those of a tag, each as long as the one that it stands for.
_SIGNS_ALIKE = (
    "\uff1c\u3008\u2039\u27e8\u2329\uff1e\u3009\u203a\u27e9\u232a\uff5c\u2502\u2016\uff1d"
)
_ALIKE = str.maketrans(_SIGNS_ALIKE, "<<<<<>>>>>|||=")
_LONGEST_TRIED = 20_000  # characters of a text that is read by other formats for the hint


def finish(log: Log, raw: str, setting: Setting, read: Reader | None) -> None:
    """Look through a finished text. read: reads a text by the protocol of an id; None for a part of
    another text, in which no other calls are looked for.
    """
    if log.thought_end is not None:
        _end_thought(log, log.thought_end)
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
        log.problems += _lost_calls(log, raw, setting, read)
    elif setting.protocol.id == "auto" or setting.protocol.id in OF_SERVER:
        _doubt_empty_calls(log, raw, setting.specs, read)
    if log.texts and setting.recovers:
        log.problems += _look_alikes(log, raw, setting, read)


def _end_thought(log: Log, end: int) -> None:
    # Calls before the lone closing think tag are drafts, and text is reasoning.
    n_before = sum(c.segment is not None and c.segment.span.end <= end for c in log.calls)
    _make_drafts(log, range(n_before), end, "call.in-reasoning", _IN_REASONING)
    thought = [segment for segment in log.segments if segment.span.end <= end]
    # Text after reasoning with tags of its own stays an answer: that was not begun in the
    # prompt.
    if not any(segment.kind == "reasoning" for segment in thought):
        log.segments[: len(thought)] = [
            Segment("reasoning", s.span, s.span) if s.kind == "text" else s for s in thought
        ]
        log.texts = [text for text in log.texts if text.span.end > end]


def _doubt_empty_calls(log: Log, raw: str, tools: tuple[ToolSpec, ...], read: Reader) -> None:
    # A server's calls without arguments are drafts where the text next to them has them.
    empty = [
        i
        for i, c in enumerate(log.calls)
        if c.ok and c.arguments_json == "{}" and c.protocol in OF_SERVER
    ]
    text = _text_in(log, raw) if empty else ""
    if text.strip():
        others = _written_calls(text, tools, "auto", read)
        names = {c.name for c in others if c.arguments_json != "{}"}
        doubted = [i for i in empty if log.calls[i].name in names]
        _make_drafts(log, doubted, len(raw), BESIDE_TEXT, _BESIDE)


def _make_drafts(log: Log, places: Sequence[int], at: int, code: str, message: str) -> None:
    for i in places:
        log.calls[i] = as_draft(log.calls[i], code, message)
    if places and not log.silent:
        log.events.append(Withdrawn(Span(at, at), tuple([log.calls[i] for i in places])))


# calls that were lost


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
        problems.append(Problem("read", ONLY_REASONED, "error", _ONLY_REASONED))
    return problems


def _lost_calls(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    tools, protocol = setting.specs, setting.protocol.id
    if "&lt;" in raw or "&quot;" in raw:
        for segment in log.texts:
            text = segment.said(raw)
            calls = _written_calls(unescape(text), tools, protocol, read) if "&" in text else ()
            if any(call.readable for call in calls):
                message = "the text holds a call whose marks are escaped"
                yield Problem("scan", ESCAPED, "error", message, "", segment.span)
    if protocol not in OF_SERVER and all(s.kind == "text" for s in log.segments):
        return
    text = _text_in(log, raw)
    if text.strip():
        # In the content of a server's message, whose list has none.
        calls = _written_calls(text, tools, "auto", read) if protocol in OF_SERVER else ()
        if any(call.readable for call in calls):
            message = "the message has no calls, and its content holds one"
            yield Problem("read", IN_CONTENT, "error", message)
        return
    for thought in log.segments:
        # In closed reasoning that nothing follows.
        if thought.kind == "reasoning" and thought.closed:
            calls = _written_calls(thought.said(raw), tools, protocol, read)
            if calls:
                inside = thought.body or thought.span
                span = inside if thought.escaped else calls[0].segment.span.shift(inside.start)
                yield Problem("read", ONLY_REASONED, "error", _ONLY_REASONED, "", span)
                return


def _text_in(log: Log, raw: str) -> str:
    return "".join([s.said(raw) for s in log.segments if s.kind == "text"])


def _written_calls(
    text: str, tools: tuple[ToolSpec, ...], protocol: str, reader: Reader
) -> tuple[ToolCall, ...]:
    # In the text's own format or any other, prose about a call aside.
    names = {tool.name for tool in tools}
    for name in dict.fromkeys(("auto", protocol)):
        if name in OF_SERVER or (name != "auto" and name not in protocols()):
            continue
        calls = [c for c in reader(text, name).calls if c.readable or c.name in names]
        if calls:
            return tuple(calls)
    return ()


# text that looks like a call


def _look_alikes(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    if not any(_ANY_SIGN.search(raw, text.span.start, text.span.end) for text in log.texts):
        return
    names = tuple(setting.tools)
    if not raw.isascii() and any(sign in raw for sign in _SIGNS_ALIKE):
        raw = raw.translate(_ALIKE)
    # A text is in two segments where a call was given back.
    texts = merged([(s.span.start, s.span.end) for s in log.texts if not s.escaped])
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
        for site in sites[:_MOST_MENTIONS]:
            if not site.attempt:
                message = f"{site.name} is mentioned here with the sign of a call, and not called"
                place = Span(begin + site.start, begin + site.end)
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
        or ('"' in text and _MEMBER.search(text))
        or "[TOOL_CALL" in text
        or "Action Input:" in text
    )
