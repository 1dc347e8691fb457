"""Text that looks like a call and is none: problems for attempts, notes for mentions.

An attempt is an error of the answer, since a call was meant and none was read. Next to an
executable call of the same tool it is a warning, because models also speak of what they call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ...core.types import Problem, Span
from ...core.types.spans import Severity
from ..state import Log, Setting
from .attempts import JSON_NAME, find_attempt, iter_examples, parameter_names
from .call_sites import call_sites
from .lost_calls import Reader
from .shown import masked, merged

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


def look_alikes(log: Log, raw: str, setting: Setting, read: Reader) -> Iterator[Problem]:
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
