"""The usual answer, read in one look: at most plain words, then calls in their own format."""

# How it works
# ------------
# In a whole answer of nothing but plain words, openers, bodies that their scanner closes at once,
# and line breaks between them, `StreamParser` decides the same whatever it is asked, so the parts
# that wait, quote, hold back and recover need not be made. At the first thing that is not of this
# kind the answer is left to `StreamParser`. The laws that compare a parse with every way to stream
# it hold the two to one answer.

from __future__ import annotations

import re
from typing import Any

from ..core.types import ParseResult, Segment, Span, ToolCall
from ..core.types.spans import make_segment
from ..formats.base import Codec, Message, Opening
from ..formats.scan import Close
from .recognition.echoes import echoes_of
from .recognition.lost_calls import OF_SERVER
from .recognition.repeats import second_half
from .recognition.turns import find_turn_end
from .resolve import Body
from .state import SHORTEST, Setting

_LONGEST = 4000  # characters: a longer answer is read in blocks
# Words that nothing in any format begins with, and that quote nothing.
_WORDS = re.compile(r"[^\W\d][\w ,.!?\n]*\n", re.ASCII)


def read_whole(setting: Setting, raw: str, request: Any) -> ParseResult | None:
    """Return the result of a plain answer, None for one that has to be parsed."""
    if len(raw) > _LONGEST or not raw.isascii() or setting.options.reasoning == "prefilled":
        return None
    protocol, resolver, tools = setting.protocol, setting.resolver, setting.tools
    envelope = protocol.envelope
    at = _first_opener(setting, raw)
    if at is None or (at and not _is_plain(setting, raw[:at])):
        return None
    # Many an answer is not for this way, and its first opener says so at once.
    opening = envelope.open(raw, at, False, tools)
    if not isinstance(opening, Opening) or opening.kind != "call" or _is_odd(opening, setting):
        return None
    if setting.speculates and (
        envelope.speculates(raw) is not None or envelope.resumes(raw, tools) is not None
    ):
        return None
    echoes = None if request is None else echoes_of(request, setting.options, lambda s: s.of(raw))
    segments: list[Segment] = [make_segment("text", Span(0, at))] if at else []
    calls: list[ToolCall] = []
    size = len(raw)
    while True:
        start = at + opening.end
        rest = raw[start:]
        close = envelope.scanner(opening, tools).scan(rest, False)
        if (
            not isinstance(close, Close)
            or close.kind != "closer"
            or close.hidden is not None
            or close.reached > close.end
            or close.name is not None
        ):
            return None
        owner = opening.owner.id if opening.owner else ""
        body = Body(rest[: close.start], start, at, True, "closer", owner)
        reading = resolver.reading(opening, True)
        if close.value is not None:
            reading.strict_value = body.text, close.value[0]
        decoded = resolver.decode(body, reading)
        if type(decoded) is not tuple or isinstance(decoded, Message) or len(decoded) != 1:
            return None
        if decoded[0].edits:
            return None
        end = start + close.end
        segment = make_segment("call", Span(at, end), Span(start, start + close.start), True)
        found = resolver.calls(decoded, body, segment, len(segments), len(calls))
        if echoes is not None:
            found = echoes.judge(found)
        if calls and setting.list_head(found[0]):
            return None  # what another list says may be said already
        segments.append(segment)
        calls += found
        after = end + 1 if raw[end : end + 1] == "\n" else end
        if after == size:
            break
        if raw[after] != "<" or after == end:
            return None
        segments.append(make_segment("text", Span(end, after)))
        at = after
        opening = envelope.open(raw, at, False, tools)
        if not isinstance(opening, Opening) or opening.kind != "call" or _is_odd(opening, setting):
            return None
    if after > end:
        segments.append(make_segment("text", Span(end, after)))
    # Calls without arguments may be a server's, whose text says more.
    is_server = protocol.id == "auto" or protocol.id in OF_SERVER
    if is_server and any(call.arguments_json == "{}" for call in calls):
        return None
    if second_half(calls, segments[0].kind == "text"):
        return None
    return ParseResult(
        raw, protocol.id, setting.options, tuple(segments), tuple(calls), (), setting.specs
    )


def _first_opener(setting: Setting, raw: str) -> int | None:
    # Where the first thing is that means something and is no line break.
    search, starts = setting.tokens.search, setting.line_starts
    pos = 0
    while token := search(raw, pos):
        pos = token.end()
        if token.lastgroup == "head":
            at = token.start()
            return at if raw[at] == "<" else None
        if token.lastgroup != "line" or raw[pos : pos + 1] in starts:
            return None
    return None


def _is_plain(setting: Setting, words: str) -> bool:
    # What the engine asks of text before a call, for text in which nothing can be quoted.
    if words[0] in setting.line_starts or not _WORDS.fullmatch(words) or words[-2:-1] == " ":
        return False
    if find_turn_end(words, "", True, False) is not None:
        return False
    closers = setting.closers if len(words) >= SHORTEST else None
    return closers is None or closers.search(words) is None


def _is_odd(opening: Opening, setting: Setting) -> bool:
    if opening.name or opening.whole or opening.speculative or opening.lone or not opening.end:
        return True
    codec = (opening.owner or setting.protocol).codec
    return type(codec).plain_call is not Codec.plain_call  # read in a short way of its own
