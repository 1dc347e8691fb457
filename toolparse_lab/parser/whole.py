"""The usual answer, read in one look: at most plain words, then calls in their own format."""

# How it works
# ------------
# In an answer of nothing but plain words, calls as their format writes them, and line breaks
# between them, `StreamParser` decides the same whatever it is asked, so the parts that wait, quote,
# hold back and recover need not be made. How a format writes a call is learned when the second one
# comes (`written`). At the first thing that is not of this kind the answer is left to
# `StreamParser`. The laws that compare a parse with every way to stream it hold the two to one
# answer.

from __future__ import annotations

import re
from collections.abc import Iterator
from threading import Lock
from typing import Any

from ..core.types import ParseOptions, ParseResult, ToolCall
from ..formats.registry import protocols
from .engine import read_alone
from .recognition.echoes import echoes_of
from .recognition.quotation import has_placeholder
from .recognition.surroundings import is_meant, shown_at_end
from .recognition.turns import find_turn_end
from .state import SHORTEST, Setting
from .written import Look, learn, result_of

# Words that nothing in any format begins with, and that quote nothing.
_WORDS = re.compile(r"[^\W\d](?:[\w ,.!?\n]|(?<=\w)['\u2019](?=\w))*(?:\n|[.!?] )", re.ASCII)


def read_whole(setting: Setting, raw: str, request: Any) -> ParseResult | None:
    """Return the result of a plain answer, None for one that has to be parsed."""
    looks = setting.looks
    if looks is None:
        looks = setting.looks = _looks_of(setting)
    return _read_look(setting, looks, raw, request) if looks.by_start else None


def note(setting: Setting, calls: tuple[ToolCall, ...]) -> None:
    """Learn how plain calls like some of an answer are written, once there are several of them."""
    if all(call.status == "ok" and not call.edits for call in calls):
        setting.looks.note(calls[0].protocol)


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
        if not _learning.acquire(blocking=False):
            return
        try:
            lesson = self._lessons[owner]
            if lesson is None:
                lesson = self._lessons[owner] = self._lesson(owner)
            look = next(lesson, None)
            if look is not None:
                self.by_start[look.start] = [*self.by_start.get(look.start, ()), look]
        finally:
            _learning.release()

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
            yield from learn(protocol, own, self._options, self._has_tools, read_alone)

    def calls_at(
        self, setting: Setting, raw: str, at: int, index: int, number: int
    ) -> list[ToolCall]:
        """Return the plain calls with closers that are written in a row at a place of a text.

        index, number: of the first one's segment, and its own.
        """
        for look in self.by_start.get(raw[at], ()):
            marks = _marks(setting, look) if look.is_closed else None
            calls = (
                [] if marks is None else look.read_row(setting, marks, raw, at, [], index, number)
            )
            if calls:
                return calls
        return []

    def prefer(self, look: Look) -> None:
        # The next answer is probably written alike.
        others = self.by_start[look.start]
        self.by_start[look.start] = [look, *(other for other in others if other is not look)]


_learning = Lock()
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
        envelope, signs = setting.protocol.envelope, setting.first_signs
        if (signs is None or raw[0] in signs) and (
            envelope.speculates(raw) is not None or envelope.resumes(raw, setting.tools) is not None
        ):
            return None
    for look in fitting:
        marks = _marks(setting, look)
        found = None if marks is None else look.read(setting, marks, raw, at)
        if found is not None and look.call.problems and (request or has_placeholder(raw)):
            return None  # outside its format it may be only shown
        if found is not None:
            segments, calls = found
            if look is not fitting[0]:
                looks.prefer(look)
            if request is not None:
                echoes = echoes_of(request, options, lambda s: s.of(raw))
                if echoes is not None and echoes.asks_for_example:
                    return None
                if echoes is not None:
                    calls = [call for c in calls for call in echoes.judge((c,))]
            if (
                at
                and not is_meant(raw[:at], segments[1].kind != "call", calls)
                and any(shown_at_end(calls, segments, raw))
            ):
                return None
            return result_of(setting, raw, segments, calls)
    return None


def _marks(setting: Setting, look: Look) -> tuple[str, ...] | None:
    marks_of = setting.marks
    if look not in marks_of:
        marks_of[look] = look.marks(setting)
    return marks_of[look]


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
    if words[0] in setting.line_starts or not _WORDS.fullmatch(words) or words[-2:-1] in (" ", ","):
        return False
    if find_turn_end(words, "", True, False) is not None:
        return False
    closers = setting.closers if len(words) >= SHORTEST else None
    return closers is None or closers.search(words) is None
