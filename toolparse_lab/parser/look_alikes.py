"""Text outside all calls that looks like a call of a tool on offer, and what would read it."""

# How it works
# ------------
# Looked for once a text is over, and only in text that a tool's name is part of: most answers have
# none, and one look says so. An attempt is an error of the answer, since a call was meant and none
# was read; next to an executable call of the same tool it is a warning, because models also speak
# of what they call. A remark is told as well, as information.

from __future__ import annotations

import re
from collections.abc import Iterator

from ..core.types import Problem, Segment, Span
from ..core.types.spans import Severity
from .attempt import Attempt, find_attempt, iter_examples, parameter_names
from .call_sites import CallSite, call_sites
from .examples import merged
from .log import Log
from .lost_calls import Reader
from .setting import Setting

_CODE = "call.looks-like"
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


def find_look_alikes(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
    """Yield a problem for each text that looks like a call, and for each remark about a tool.

    read: reads a text by the protocol of an id, for the hint at one that reads it.
    """
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
    """Return the spans of texts, those of one as one: it is in two where a call was given back."""
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
    """Return True if one of the names is in a text with the sign of a call next to it."""
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
        yield Problem("scan", _CODE, severity, message, "", span)
    for site in sites[:_MOST_REMARKS]:
        if not site.attempt:
            message = f"{site.name} is mentioned here with the sign of a call, and not called"
            span = Span(begin + site.start, begin + site.end)
            yield Problem("scan", _CODE, "info", message, "", span)


def _name_of(attempt: Attempt, text: str, sites: list[CallSite], names: tuple[str, ...]) -> str:
    site = next((s for s in sites if s.start >= attempt.start), None)
    if site is not None and attempt.code in ("code", "markup"):
        return site.name
    places = [(at, name) for name in names if (at := text.find(name, attempt.start)) >= 0]
    return min(places, default=(0, ""))[1]


def _reader(text: str, setting: Setting, read: Reader) -> str:
    """Return a hint at the format that reads a text, or that none does."""
    if setting.protocol.id != "auto" and len(text) <= _LONGEST_TRIED:
        result = read(text, "auto")
        formats = dict.fromkeys(call.protocol for call in result.calls if call.ok)
        if formats:
            return f"protocol {' or '.join(map(repr, formats))} reads one"
    return "no format reads one as it is written"
