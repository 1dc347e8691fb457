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
from collections.abc import Iterator
from typing import Any

from ..core.types import ParseOptions, ParseResult, Segment, Span, ToolCall
from ..core.types.spans import make_segment
from ..formats.base import Codec, Message, Opening
from ..formats.registry import protocols
from ..formats.scan import Close
from .engine import StreamParser
from .recognition.echoes import echoes_of
from .recognition.lost_calls import OF_SERVER
from .recognition.quotation import has_placeholder
from .recognition.repeats import second_half
from .recognition.turns import find_turn_end
from .resolve import Body
from .state import SHORTEST, Setting
from .written import Look, learn

_LONGEST = 4000  # characters: a longer answer is read in blocks
# Words that nothing in any format begins with, and that quote nothing.
_WORDS = re.compile(r"[^\W\d][\w ,.!?\n]*\n", re.ASCII)


def read_whole(setting: Setting, raw: str, request: Any) -> ParseResult | None:
    """Return the result of a plain answer, None for one that has to be parsed."""
    looks = setting.looks
    if looks is None:
        looks = setting.looks = _looks_of(setting)
    result = _read_look(setting, looks, raw, request) if looks.by_start else None
    if result is None:
        result = _read_row(setting, raw, request)
        if result is not None:
            note(setting, result)
    return result


def note(setting: Setting, result: ParseResult) -> None:
    """Learn how plain calls like that of a result are written, once there are several of them."""
    if len(result.calls) == 1 and result.calls[0].ok and not result.calls[0].edits:
        setting.looks.note(result.calls[0].protocol)


class _Looks:
    # The looks of a protocol under some options, by the character that a text begins with. They
    # are learned one after the other, as long as plain calls come that no look reads.
    def __init__(self, setting: Setting) -> None:
        self._protocol = setting.protocol
        self._options = setting.options
        self._has_tools = bool(setting.tools)
        self.by_start: dict[str, list[Look]] = {}
        self._lessons: dict[str, Iterator[Look] | None] = {}  # by id of the format

    def note(self, owner: str) -> None:
        if owner not in self._lessons:
            self._lessons[owner] = None  # one call is not worth a lesson
            return
        lesson = self._lessons[owner]
        if lesson is None:
            lesson = self._lessons[owner] = self._lesson(owner)
        for look in lesson:
            self.by_start[look.start] = [*self.by_start.get(look.start, ()), look]
            break

    def _lesson(self, owner: str) -> Iterator[Look]:
        own = self._protocol
        formats = [own]
        if owner != own.id and owner in protocols():
            # Others may have its opener, and calls that are read as its own.
            heads = protocols()[owner].envelope.heads({})
            formats = [protocols()[owner]]
            formats += [
                p
                for p in protocols().values()
                if p is not formats[0] and not set(heads).isdisjoint(p.envelope.heads({}))
            ]
        elif owner == own.id == "auto":
            # A call outside its format is of one that `auto` does not ask.
            formats = [p for p in protocols().values() if not p.envelope.in_auto]
        for protocol in formats:
            yield from learn(protocol, own, self._options, self._has_tools, _read_alone)

    def prefer(self, look: Look) -> None:
        # The next answer is probably written alike.
        others = self.by_start[look.start]
        self.by_start[look.start] = [look, *(other for other in others if other is not look)]


_looks: dict[tuple[int, ParseOptions, bool], _Looks] = {}
_MOST_LOOKS = 512


def _looks_of(setting: Setting) -> _Looks:
    # By identity, as settings are. They keep the protocol alive, so that no other gets its number.
    key = id(setting.protocol), setting.options, bool(setting.tools)
    looks = _looks.get(key)
    if looks is None:
        if len(_looks) >= _MOST_LOOKS:
            _looks.clear()
        looks = _looks[key] = _Looks(setting)
    return looks


def _read_alone(setting: Setting, text: str, inner: bool) -> ParseResult:
    parser = StreamParser(setting, silent=True, inner=inner)
    parser.feed(text)
    return parser.close()


def _read_look(setting: Setting, looks: _Looks, raw: str, request: Any) -> ParseResult | None:
    options = setting.options
    if options.reasoning == "prefilled" or "\ufffd" in raw:
        return None
    if not raw.isascii():
        try:
            raw.encode()  # a pair of surrogates is one character
        except UnicodeEncodeError:
            return None
    at = 0
    fitting = looks.by_start.get(raw[:1]) or looks.by_start.get("")
    if fitting is None:
        first = _first_opener(setting, raw)
        if not first or not _is_plain(setting, raw[:first]):
            return None
        at = first
        fitting = looks.by_start.get(raw[at])
        if fitting is None:
            return None
        envelope = setting.protocol.envelope
        if setting.speculates and (
            envelope.speculates(raw) is not None or envelope.resumes(raw, setting.tools) is not None
        ):
            return None
    marks_of = setting.marks
    for look in fitting:
        marks = marks_of.get(look, ())
        if marks == ():
            marks = marks_of[look] = look.marks(setting)
        found = None if marks is None else look.read(setting, marks, raw, at)
        if found is not None and look.call.problems and (request or has_placeholder(raw)):
            return None  # outside its format it may be only shown
        if found is not None:
            segments, call = found
            if look is not fitting[0]:
                looks.prefer(look)
            if request is not None:
                echoes = echoes_of(request, options, lambda s: s.of(raw))
                if echoes is not None:
                    (call,) = echoes.judge((call,))
            return ParseResult(
                raw, setting.protocol.id, options, tuple(segments), (call,), (), setting.specs
            )
    return None


def _read_row(setting: Setting, raw: str, request: Any) -> ParseResult | None:
    if len(raw) > _LONGEST or not raw.isascii() or setting.options.reasoning == "prefilled":
        return None
    protocol, resolver, tools = setting.protocol, setting.resolver, setting.tools
    envelope = protocol.envelope
    at = _first_opener(setting, raw)
    if at is None or raw[at] != "<" or (at and not _is_plain(setting, raw[:at])):
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
        if decoded[0].edits or not decoded[0].readable:
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
            return token.start()
        if token.lastgroup != "line":
            return None
        if raw[pos : pos + 1] in starts:
            # Such a line may be a call outside its format, unless it is an opener.
            token = search(raw, pos)
            return pos if token and token.start() == pos and token.lastgroup == "head" else None
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
