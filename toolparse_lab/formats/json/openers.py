"""Envelope family: JSON after headers of any form, with closers or without.

A row of `json/rows.py` is this envelope with the constants of one format.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from ..base import NEED_MORE, Answer, Envelope, Fit, NeedMore, Opening, Tools
from ..scan import Balanced, Close, LiteralBody, Scanner, ends_inside, skip_space
from .call import CALL_HEAD, CALL_HEAD_SO_FAR, behind_stray_brackets, next_call
from .header import NO_TOOL_WORDS, Header
from .scan import JsonBody, JsonEnvelope

_MOST_SPACE = 64
# A key right after a value, and what may become one. Both are shorter than `_MOST_SPACE`.
_MEMBER = re.compile(r"""(?:,\s{0,8}+)?"[^"\\\n]{1,40}+"\s{0,8}+:""")
_MEMBER_SO_FAR = re.compile(r"""(?:,\s{0,8}+)?(?:"[^"\\\n]{0,40}+(?:"\s{0,8}+)?)?\Z""")
_KEY = re.compile(r"\{\s{0,40}[\"']([a-z_]{1,20})[\"']\s{0,10}:")
_BARE = Opening(0, speculative=True)
_BEGINS = {"{": r"\{", "[": r"\[\s{0,40}\{"}  # first character of a body -> what it begins with


# How it works: brackets outside of strings are counted, see `Balanced`. After the bracket that
# closes the first one is the end of the body, unless a separator and another value follow. A closer
# that may follow belongs to the body's end. Kinds of brackets are not told apart: one too many ends
# a list early, and what follows it says so, another call or the bracket that the list began with.
#
# Invariant: no answer depends on text that is still to come: a literal that may be under way and
# white space after a value are held back. Cost: one pass; what is held back is bounded.


class ValueRun(Balanced):
    """Ends after the values of a body, and after a closer that may follow them."""

    __slots__ = ("_calls", "_separators", "_stray")

    def __init__(
        self,
        closers: tuple[str, ...] = (),
        stops: tuple[str, ...] = (),
        *,
        quotes: str = '"',
        separators: str = "",
        calls: bool = False,
    ) -> None:
        # closers: literals that may follow the values and belong to them. stops: those that begin
        # the next call. separators: characters of which one, or none, may be between two values, ""
        # if there is one value. calls: the values say which tool they call, so that another one may
        # follow although a bracket seemed to be the last.
        super().__init__(quotes, "{}[]", closers, stops)
        self._separators = separators
        self._calls = calls
        self._stray = False  # a list was closed too early, so that its own bracket is to come

    def _behind_value(self, tail: str, pos: int, final: bool) -> Close | int:
        self._stray = self._stray or (self._begin == "[" and self._last == "}")
        begin = next_call(tail, pos, final) if self._calls else None
        # Behind nothing but white space it is for recovery to say whether that is a call.
        if begin is not None and (begin < 0 or skip_space(tail, pos, _MOST_SPACE) != begin):
            self._stray = self._begin == "[" if begin >= 0 else self._stray
            return begin
        pos = behind_stray_brackets(tail, pos, final) if self._stray else pos
        return -1 if pos < 0 else self._end_at(tail, pos, final)

    def _end_at(self, tail: str, pos: int, final: bool) -> Close | int:
        # as `_behind_value`, for a value that is no call or the last one
        end = self._at + pos
        after = skip_space(tail, pos, _MOST_SPACE)
        rest = tail[after : after + _MOST_SPACE]
        if not rest:
            return Close(end, end, "end") if final or after - pos >= _MOST_SPACE else -1
        for closer in self._closers:
            if rest.startswith(closer):
                return Close(end, self._at + after + len(closer), "closer")
            if not final and closer.startswith(rest):
                return -1

        if not self._separators:
            if not final and _MEMBER_SO_FAR.match(rest):
                return -1
            # A key: the bracket was closed too early, and the text up to its own is one body.
            return after if _MEMBER.match(rest) else Close(end, end, "end")
        begin = after
        if rest[0] in self._separators:
            begin = skip_space(tail, after + 1, _MOST_SPACE)
            if begin >= len(tail) and not final and begin - after <= _MOST_SPACE:
                return -1
        return begin if tail.startswith("{", begin) else Close(end, end, "end")


@dataclass(frozen=True)
class JsonHeaders(JsonEnvelope):
    """Envelope of JSON after a header.

    templates: of the headers, see `json/header.py`. The first one that is complete counts. lone:
    templates that count at the beginning of an answer, where the prompt may hold the text before
    them. Those with a name need a known tool's. closers: literals that end a body. markup: literals
    around calls, such as the tokens of a section. thoughts: opener and closer of reasoning. texts:
    markup before a message that is text, and the literals of which one ends it.
    first: the characters of which a body begins with one, `[` standing for a list of objects, or ""
    for any.
    alone: templates of headers that are openers only where this format is named, since another one
    has them too; the body then begins as `first` says.
    sure: a header is an opener whatever its body begins with. Then `first` only tells formats with
    the same opener apart. runs: a body ends after its values, and a closer may be missing.
    separators, quotes: see `ValueRun`. speculative: a body that holds no good call is text after
    all, and `auto` leaves such text to the recovery of calls outside their format.
    """

    templates: tuple[str, ...]
    closers: tuple[str, ...] = ()
    lone: tuple[str, ...] = ()
    markup: tuple[str, ...] = ()
    thoughts: tuple[tuple[str, str], ...] = ()
    texts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    alone: tuple[str, ...] = ()
    first: str = ""
    sure: bool = True
    runs: bool = False
    separators: str = ""
    quotes: str = '"'
    speculative: bool = False

    @cached_property
    def _headers(self) -> tuple[Header, ...]:
        return tuple(map(Header.of, (*self.templates, *self.alone)))

    @property
    def among_others(self) -> Envelope:
        return replace(self, alone=()) if self.alone else self

    @cached_property
    def _heads(self) -> tuple[str, ...]:
        openers = (header.head for header in self._headers)
        tokens = (*self.markup, *dict(self.texts), *dict(self.thoughts))
        return tuple(dict.fromkeys((*tokens, *openers)))

    @cached_property
    def _tokens(self) -> tuple[tuple[str, Opening], ...]:
        markup = [(token, Opening(len(token), "markup")) for token in self.markup]
        thoughts = [(token, Opening(len(token), "reasoning")) for token, _ in self.thoughts]
        texts = [(token, Opening(len(token), "markup", text=ends)) for token, ends in self.texts]
        return (*markup, *texts, *thoughts)

    @cached_property
    def _long(self) -> tuple[str, ...]:
        # heads that begin with another head, and may still come where that one is
        heads = self._heads
        return tuple(h for h in heads if any(h != k and h.startswith(k) for k in heads))

    @cached_property
    def _stops(self) -> tuple[str, ...]:
        # what begins the text after a body without a closer
        # A fence's opener begins with its closer, which is found there already.
        return tuple(h for h in self._heads if not h.startswith(self.closers or ("\0",)))

    def sure_bodies(self, head: str) -> tuple[re.Pattern[str], ...]:
        # The rest of each header with that head, and the beginning of its body. Empty where markup
        # begins like it, and where nothing is said of the body.
        tokens = (*self.markup, *dict(self.texts), *dict(self.thoughts))
        if not self.first or self.speculative or head.startswith(tokens):
            return ()
        begin = "|".join(_BEGINS.get(sign, "(?!)") for sign in self.first)
        begin = rf"\s{{0,64}}(?:{begin})\s{{0,40}}"
        headers = [header for header in self._headers if header.head == head]
        if [header.parts for header in headers] == [(head,)]:
            # The body of a header that names no tool has to name it.
            return (re.compile(rf"""(?={begin}"name"\s{{0,10}}:)"""),)

        patterns: list[re.Pattern[str]] = []
        earlier = ""
        for header in headers:
            patterns.append(re.compile(rf"""{earlier}{header.rest()}(?={begin}["}}])"""))
            # The first header that is complete counts, whatever its body.
            earlier += f"(?!{header.rest(grouped=False)})"
        return tuple(patterns)

    def token(self, head: str) -> Opening | None:
        return next((opening for token, opening in self._tokens if head.startswith(token)), None)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return self._heads

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        if self._long and not final and ends_inside(text, pos, self._long):
            return NEED_MORE
        for token, opening in self._tokens:
            if text.startswith(token, pos):
                return opening
        for i, header in enumerate(self._headers):
            call = header.match(text, pos, final)
            if isinstance(call, NeedMore):
                return call
            # `Action: None` calls nothing.
            if call is not None and (call.name not in NO_TOOL_WORDS or call.name in tools):
                sure = self.sure and i < len(self.templates)
                sure = sure and not (self.first and header.ends_in_name)
                fits: bool | NeedMore = True
                if not sure:
                    fits = self._begins(text, pos + call.end, final)
                elif self.first and not call.name:
                    # Words are a sentence about the token before them.
                    begin = skip_space(text, pos + call.end, _MOST_SPACE)
                    if begin < len(text):
                        fits = not text[begin].isalnum()
                    elif not final:
                        return NEED_MORE
                if isinstance(fits, NeedMore):
                    return fits
                if fits:
                    return replace(call, speculative=True) if self.speculative else call
        return None

    @property
    def may_resume(self) -> bool:
        return bool(self.lone)

    @property
    def repeats(self) -> bool:
        return bool(self.lone) and all(t.startswith("{name}") for t in self.lone)

    @property
    def in_auto(self) -> bool:
        return not self.speculative

    def resumes(self, text: str, tools: Tools) -> Answer:
        # A name has to be a known tool's, since nothing else says that this is a call.
        more: NeedMore | None = None
        for template in self.lone:
            opening = Header.of(template).match(text, 0, False)
            if isinstance(opening, Opening):
                if opening.name and opening.name not in tools:
                    continue
                fits = self._begins(text, opening.end, False)
                if fits is True:
                    return replace(opening, speculative=True)
                opening = fits if isinstance(fits, NeedMore) else None
            more = opening or more
        return more

    def resume_starts(self, tools: Tools) -> str | None:
        heads = [Header.of(template).head for template in self.lone]
        if any(head.startswith("{") and head != "{name}" for head in heads):
            return None
        names = "".join(name[:1] for name in tools)
        return "".join(names if head == "{name}" else head[0] for head in heads)

    def _begins(self, text: str, at: int, final: bool) -> bool | NeedMore:
        begin = skip_space(text, at, _MOST_SPACE)
        if begin >= len(text):
            return False if final else NEED_MORE
        if text[begin] not in self.first or text[begin] != "[":
            return text[begin] in self.first
        # A list of calls, and not the one of a Python format or of any text in brackets.
        item = skip_space(text, begin + 1, _MOST_SPACE)
        if item >= len(text):
            return False if final else NEED_MORE
        return text[item] == "{"

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> Fit:
        if opening.kind == "markup":
            # A call of this format is after it. None for anything else.
            begin = skip_space(text, at, _MOST_SPACE)
            if begin >= len(text):
                return None if final else NEED_MORE
            call = self.open(text, begin, final, tools)
            if isinstance(call, NeedMore):
                return call
            if call is None and not final and ends_inside(text, begin, self._heads):
                return NEED_MORE
            return True if call is not None and call.kind == "call" else None
        if opening.kind != "call" or not self.first:
            return None
        return self._begins(text, at, final)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.kind == "reasoning":
            # Special tokens, which no model writes in its thought: the next message's end it too.
            ends = tuple(dict.fromkeys(dict(self.thoughts).values()))
            return LiteralBody(ends, tuple(head for head in self._heads if head not in ends))
        if self.runs:
            return ValueRun(
                self.closers,
                self._stops,
                quotes=self.quotes,
                separators=self.separators,
                calls=not opening.name,
            )
        return JsonBody(self.closers, self._stops)

    def closer_of(self, opening: Opening) -> str | None:
        if opening.kind != "call" or self.runs or not self.closers:
            return None
        shortest = min(self.closers, key=len)
        return shortest if all(shortest in closer for closer in self.closers) else None


@dataclass(frozen=True, slots=True)
class BareJson(JsonEnvelope):
    """Envelope of objects, or one list of objects, whose first key is one that calls have.

    ends: special tokens that may follow. separators: see `ValueRun`. wrapper: the only key of an
    object around a list of calls, "" for none.
    """

    ends: tuple[str, ...] = ()
    separators: str = ""
    wrapper: str = ""

    # The text they read is what `auto` recovers, with a warning.
    in_auto = False

    @property
    def among_others(self) -> Envelope:
        # an object around a list is a message of OpenAI's
        return replace(self, wrapper="") if self.wrapper else self

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ("{", "[")

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        key = _KEY.match(text, pos) if self.wrapper else None
        if CALL_HEAD.match(text, pos) or (key is not None and key[1] == self.wrapper):
            return _BARE
        return NEED_MORE if not final and CALL_HEAD_SO_FAR.match(text, pos) else None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return ValueRun(self.ends, separators=self.separators, calls=True)
