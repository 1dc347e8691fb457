"""JSON between delimiters: where it begins, and where it ends, outside strings and comments."""

# How it works
#
# A body that is one strict JSON value with its closer after it is found by reading it, in one go;
# the value goes along with the `Close`, so that nobody reads it again. Everything else (damage, a
# second value, a stream) is walked over, outside of strings and inside of a string or a comment.
#
# State: `_inside` is what opened the string or comment, `_pos` where in the tail it goes on.
# `_strict` stays true until something was met that strict JSON forbids. `_hidden` is the first
# closer inside a string of a body that was strict so far, after which an opener or the end
# is: content most likely, and the place to close at if the rest proves the quotes out of step.
#
# Invariant: `_at` characters are settled, and a state never decides on a symbol that more text
# could turn into a delimiter, an escape or a comment; it settles what is before it.
#
# Cost: one forward pass. Each pattern finds the next character that matters in C, whole clean
# strings are skipped in one match, and a chunk in the middle of a string costs one search.

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from ...arguments.rjson.strict import read_one
from ...core.types import Span
from ..base import NEED_MORE, Answer, Envelope, Opening, Tools, make_opening
from ..scan import (
    NO_WAITS,
    BodyScanner,
    Close,
    FollowCheck,
    Scanner,
    any_of,
    cut_literals,
    line_end,
    partial_pattern,
    skip_space,
)

# The beginning of JSON, up to a place between its tokens. A string counts only with what JSON has
# after a string: anything else says that its quotes are out of step, and a text goes on. The last
# token is no string for the same reason.
_BETWEEN_TOKENS = re.compile(
    r"""\s*+(?:(?:[{}\[\],:]
    |"(?:[^"\\\x00-\x1f]|\\.)*+"(?=\s*+[,:}\]])
    |(?:-?[0-9][0-9.eE+-]*+|true|false|null)(?=[\s,}\]]))\s*+)*+\Z""",
    re.VERBOSE,
)


# The beginning of a call up to its first value: brackets, keys, and what names the call.
_NO_VALUE = re.compile(
    r"""\s*+(?:(?:[{\[,:]
    |"(?:name|tool|tool_name|function|type)"\s*+:\s*+"[\w.:-]*+"
    |"(?:[^"\\\x00-\x1f]|\\.)*+"(?=\s*+:))\s*+)*+\Z""",
    re.VERBOSE,
)
_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"|([{\[])|([}\]])')


def ends_in_value(text: str) -> bool:
    """Return True if JSON that breaks off after `text` may break off inside a value.

    The arguments are a value themselves, open until their own bracket and the call's are there. The
    name of a call is none, and a whole one is over.

    >>> ends_in_value('{"a": "b'), ends_in_value('{"a": "b"'), ends_in_value('{"a": {"b": 1}')
    (True, True, True)
    >>> ends_in_value('{"a": "b"}'), ends_in_value('{"name": "f", "arguments": {')
    (False, False)
    """
    if _NO_VALUE.match(text):
        return False
    if not _BETWEEN_TOKENS.match(text):
        return True
    depth = 0
    for token in _BRACKET.finditer(text):
        kind = token.lastindex
        depth += 0 if kind is None else 1 if kind == 1 else -1
    return depth > 0


# A name that is first and whole, as nearly every call has it: its place needs no reading.
_NAME_FIRST = re.compile(r'\s*(?:\[\s*)?\{\s*"name"\s*:\s*"([^"\\]*)"')


def name_first(body: str, name: str) -> Span | None:
    """Return where `name` is if it is the first member, named "name", of a body's object or of the
    first in its list, else None.
    """
    match = _NAME_FIRST.match(body)
    if match and match[1] == name:
        return Span(match.start(1), match.end(1))
    return None


class _Delimiters:
    def __init__(self, closers: tuple[str, ...], openers: tuple[str, ...]) -> None:
        # closers, openers: literals. An empty one is none.
        # The longest first: one delimiter may begin with another, as `<<end>>` does with `<<`.
        closers = tuple(sorted(filter(None, closers), key=len, reverse=True))
        openers = tuple(filter(None, openers))
        self.closers = closers
        self.openers = openers
        self.literals = closers + openers
        self.firsts = {literal[0] for literal in self.literals}
        self.longest = max(map(len, self.literals), default=0)
        self.partial = partial_pattern(self.literals)
        # One contains another before its last character, so it may go on after it.
        self.nested = any(
            short in literal[:-1] for literal in self.literals for short in self.literals
        )
        close = f"(?P<close>{any_of(closers)})"
        self.outside = re.compile(rf"""{close}|(?P<open>{any_of(openers)})|["']|//|/\*""")
        # What is plainly neither string damage nor delimiter is skipped in one match, whole clean
        # strings included.
        firsts = re.escape("".join(self.firsts))
        self.clean = re.compile(rf"""(?:[^"'/{firsts}]++|"[^"\\\x00-\x1f{firsts}]*+")*+""")
        # Control characters matter only while the body may still be strict JSON.
        self.strict = re.compile(rf"{close}|[\"\\\x00-\x1f]")
        # Clean JSON that may end inside a clean string, from outside a string or inside of one.
        text = rf'[^"\\\x00-\x1f{firsts}]*+'
        outside = rf"""(?:[^"'/{firsts}]++|"{text}")*+(?:"{text})?+"""
        self.quick = {"": re.compile(outside), '"': re.compile(rf'{text}(?:"{outside})?+')}
        self.waits = NO_WAITS if self.nested else cut_literals(self.closers)[0] - {""}
        signs = {'"': r'["\\]', "'": r"['\\]", "//": r"\n", "/*": r"\*/"}
        self.inside = {kind: re.compile(f"{close}|{sign}") for kind, sign in signs.items()}


_delimiters = lru_cache(maxsize=512)(_Delimiters)  # a stream of calls needs them once
_ENDS = {'"': '"', "'": "'", "//": "\n", "/*": "*/"}


class JsonBody(BodyScanner):
    """Finds the closer of a JSON body, knowing strings and comments.

    A closer inside a string is content. But a string that strict JSON could not hold (a raw line
    break in it) may be one whose quote is missing: then a closer followed by nothing but white
    space and an opener, or the end, closes the body.
    """

    __slots__ = ("_by", "_follow", "_inside", "_pos", "_previous", "_strict", "waits")

    def __init__(self, closers: tuple[str, ...], openers: tuple[str, ...] = ()) -> None:
        self._at, self._hidden = 0, None
        self._by = by = _delimiters(closers, openers)
        self.waits = by.waits
        # Most bodies never meet a closer in a string, so this is made when the first one does.
        self._follow: FollowCheck | None = None
        self._pos = 0  # where in the tail the state begins to read
        self._inside = ""  # what opened the string or comment, "" outside of both
        self._strict = True  # nothing yet that strict JSON forbids
        self._previous = ""  # the last character of the settled text that is no white space

    def scan(self, tail: str, final: bool) -> Close | int:
        """Walk once over the tail. See the head of this module."""
        if self._at == 0:
            whole = self._whole_body(tail, final)
            if whole is not None:
                return whole
        elif (
            self._strict
            and self._hidden is None
            and tail
            and (quick := self._by.quick.get(self._inside))
            and quick.fullmatch(tail)
        ):
            # Most chunks of a stream.
            if tail.count('"') % 2:
                self._inside = "" if self._inside else '"'
            return self._settle_at(tail, len(tail))

        self._pos = 0
        while True:
            if self._inside:
                answer = self._read_inside(tail, final)
            else:
                answer = self._read_outside(tail, final)
            if answer is not None:
                return answer

    def _whole_body(self, tail: str, final: bool) -> Close | None:
        # None as well if a delimiter is inside the value: then the machine has to decide.
        # In C, and so faster than any search for the end could be.
        try:
            value, end = read_one(tail)
        except (StopIteration, ValueError, RecursionError):
            return None

        for closer in self._by.closers:
            if tail.startswith(closer, end):
                if self._by.nested and self._longer_from(tail, 0, end, final) >= 0:
                    return None
                for literal in self._by.literals:
                    # A literal that begins in the value and ends in the closer counts as well.
                    if tail.rfind(literal, 0, end + len(literal) - 1) >= 0:
                        return None
                return Close(end, end + len(closer), "closer", value=(value,))

        return None

    def _read_outside(self, tail: str, final: bool) -> Close | int | None:
        # A delimiter here is as it seems: nothing in JSON outside of strings can contain it. None
        # in the state of the string or comment that begins.
        by = self._by
        pos = self._pos
        while True:
            # Behind a hidden closer every string has to be looked at one by one: what follows it
            # tells if the quotes are in step.
            if self._hidden is None:
                skipped = by.clean.match(tail, pos)
                if skipped:
                    pos = skipped.end()

            match = by.outside.search(tail, pos)
            if match is None:
                return self._settle_rest(tail, pos, final, comment_char="/*")

            start = match.start()
            if match.lastgroup is not None:
                longer = self._longer_from(tail, pos, start, final) if by.nested else -1
                if longer >= 0:
                    return self._settle_at(tail, longer)
                offset = self._at + start
                if match.lastgroup == "close":
                    return Close(offset, self._at + match.end(), "closer", self._hidden)
                return Close(offset, offset, "implicit", self._hidden)

            if tail[start] in by.firsts and self._is_cut(tail, start, final):
                return self._settle_at(tail, start)

            pos = match.end()
            symbol = match[0]
            # An apostrophe that no value can begin at is one of bare text: `{a: it's}`.
            if symbol != "'" or self._before(tail, start) in "{[,:(":
                self._pos = pos
                self._inside = symbol
                self._strict = self._strict and symbol == '"'
                return None

    def _read_inside(self, tail: str, final: bool) -> Close | int | None:
        # While the body is strict so far, control characters are looked for as well: JSON has none
        # in strings, so one of them is the first evidence of a quote that is missing or one too
        # many. None where the string or comment is over.
        by, kind, pos = self._by, self._inside, self._pos
        pattern = by.strict if kind == '"' and self._strict else by.inside[kind]
        while True:
            match = pattern.search(tail, pos)
            if match is None:
                return self._settle_rest(tail, pos, final, "/*" if kind == "/*" else "")

            start, pos = match.span()
            symbol = match[0]
            if match.lastgroup is not None:
                answer = self._closer_inside(tail, start, pos, final)
                if answer is not None:
                    return answer
            elif symbol in by.firsts and self._is_cut(tail, start, final):
                return self._settle_at(tail, start)
            elif symbol == "\\":
                if pos >= len(tail):  # what it escapes is not here yet
                    return self._settle_at(tail, len(tail) if final else start)
                pos += 1
            elif symbol == _ENDS[kind]:
                # A strict string is followed by a comma, colon or bracket. After a hidden closer
                # anything else says that the quotes are out of step.
                if self._hidden and kind == '"':
                    after = skip_space(tail, pos)
                    if after < len(tail):
                        if tail[after] not in ",:}]":
                            return self._rescue(pos)
                    elif not final:
                        return self._settle_at(tail, start)
                self._pos = pos
                self._inside = ""
                return None
            else:
                # A raw control character: no strict JSON, and so the quotes may be out of step.
                if self._hidden:
                    return self._rescue(pos)
                self._strict = False
                pattern = by.inside[kind]

    # What the states share

    def _closer_inside(self, tail: str, start: int, end: int, final: bool) -> Close | int | None:
        # None: it is content, read on after it. In a body that was strict so far it is content, and
        # remembered. In a damaged one it closes the body if an opener or the end follows.
        longer = self._longer_from(tail, 0, start, final) if self._by.nested else -1
        if longer >= 0:
            return self._settle_at(tail, longer)
        if self._follow is None:
            self._follow = FollowCheck(self._by.openers)

        # What follows is evidence, and may not be here yet: then the closer stays in the tail.
        follows = self._follow.check(tail, end, self._at, final)
        if follows is None:
            return self._settle_at(tail, start)
        if follows and not self._strict:
            return Close(self._at + start, self._at + end, "rescued")
        if follows and self._hidden is None:
            self._hidden = (self._at + start, self._at + end)
        return None

    def _rescue(self, end: int) -> Close:
        # end: how far the tail was looked at. The engine has to pay for going back from there, and
        # refuses when a text makes it do so too often.
        start, stop = self._hidden or (0, 0)
        return Close(start, stop, "rescued", reached=self._at + end)

    def _settle_rest(self, tail: str, pos: int, final: bool, comment_char: str = "") -> int:
        # All but the beginning of a delimiter. Up to pos everything is decided. comment_char: the
        # characters with which a comment's two may begin or end, held back too.
        size = len(tail)
        if final:
            return self._settle_at(tail, size)

        by = self._by
        # The end of the tail, no longer than the longest delimiter, may begin one.
        match = by.partial.search(tail, max(0, size - by.longest + 1))
        if match:
            settled = max(pos, match.start())
        elif comment_char and size > pos and tail[-1] in comment_char:
            settled = size - 1
        else:
            settled = size

        return self._settle_at(tail, settled)

    def _settle_at(self, tail: str, settled: int) -> int:
        # The last character that is not white space tells later if an apostrophe can begin a
        # string.
        if settled:
            # Most chunks end in a character that counts; only white space needs a longer look.
            last = tail[settled - 1]
            if last.isspace():
                stripped = tail[:settled].rstrip()
                last = stripped[-1] if stripped else self._previous
            self._previous = last
            self._at += settled

        return settled

    def _longer_from(self, tail: str, begin: int, start: int, final: bool) -> int:
        # Where a delimiter begins that goes on after the tail, and over one at `start`: one may
        # begin with another, or contain it after white space. Then the longer one counts. -1 for
        # none. Before `begin` all is decided.
        longest = self._by.longest
        size = len(tail)
        if final or size - start >= longest:
            return -1
        match = self._by.partial.search(tail, max(begin, size - longest + 1))
        return match.start() if match and match.start() <= start else -1

    def _is_cut(self, tail: str, pos: int, final: bool) -> bool:
        # The delimiter that may begin at `pos` may go on after the tail: then nothing can be
        # decided. A tail that is long enough for every delimiter would have been matched.
        by = self._by
        if final or len(tail) - pos >= by.longest:
            return False

        rest = tail[pos:]
        return any(lit.startswith(rest) for lit in by.literals)

    def _before(self, tail: str, pos: int) -> str:
        # It may have been final with an earlier tail. At the beginning of the body it is `{`, since
        # an object that lost its brace begins with a key.
        while pos > 0:
            pos -= 1
            if not tail[pos].isspace():
                return tail[pos]
        return self._previous or "{"


# Some models write the head of a turn where the closer should be.
_TURN = "<|im_start|>"
# An opener of a code fence may be followed by blanks, but not by a whole line of them.
_MAX_LINE_END = 64
_OBJECT = re.compile(r"""(?=\s{0,64}\{\s{0,40}"name"\s{0,10}:)""")

# Openings are frozen, so equal ones can be shared: making one costs more than the look-up.
_opening = lru_cache(maxsize=256)(Opening)


class JsonEnvelope(Envelope):
    """Envelope of bodies that are JSON."""

    __slots__ = ()

    heads_are_fixed = True

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return ends_in_value(text)


@dataclass(frozen=True, slots=True)
class JsonTags(JsonEnvelope):
    """Envelope of JSON between delimiters.

    openers, closers: the literals, of which any opener goes with any closer. line: the opener is a
    line of its own, as a code fence is.
    """

    openers: tuple[str, ...]
    closers: tuple[str, ...] = ()
    line: bool = False

    def sure_bodies(self, head: str) -> tuple[re.Pattern[str], ...]:
        # a fence's opener is more than a literal
        return () if self.line else (_OBJECT,)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self.openers

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        for opener in self.openers:
            if not text.startswith(opener, pos):
                continue
            end = pos + len(opener)
            if not self.line:
                return _opening(len(opener))
            end = line_end(text, end, _MAX_LINE_END + 1 - len(opener))
            if end - pos > _MAX_LINE_END:
                return None
            # The line break may be in the next chunk. Nothing else can be on the line.
            if end >= len(text):
                return None if final else NEED_MORE
            return make_opening(end + 1 - pos) if text[end] == "\n" else None
        return None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # In a body that was never closed, an opener begins the next call. Not so for a fence: its
        # opener begins with its closer, so that the closer is found there already.
        return JsonBody(self.closers, () if self.line else (*self.openers, _TURN))

    def closer_of(self, opening: Opening) -> str:
        # The shortest is the closer without white space, which all others contain.
        return min(self.closers, key=len)
