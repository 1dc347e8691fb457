"""`auto`: every known format at once.

Each opener is read by the format whose opener it is.

Formats without delimiters compete only where the whole answer begins like one of them.
"""

# How it works. The heads of all formats together are the heads of `auto`. Where one begins, each
# format with that head is asked for its opening. Formats may share an opener; then the beginning of
# the body decides. The chosen format is the `owner` of the opening, and scanner and codec are its.
#
# Invariant: the owner depends on nothing but the text up to the head of the body, so that streaming
# and batch agree. So no format is chosen while another one that may still claim the opener, or the
# body, needs more text.
#
# Cost: formats whose heads are the same for any tools are in an index, `_Heads`, made once. An
# opener costs one match of a pattern and a question to each format that has this very head. The few
# others (elements named after tools) are asked at every opener.

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from ..core.errors import UnwritableCall
from ..core.toolspec import ToolSpec
from ..core.types import Span
from .base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    NeedMore,
    Opening,
    Protocol,
    Tools,
    make_opening,
)
from .registry import protocols
from .scan import Scanner, longest_of

# Words and the signs of prose, of which no format makes the head of a call or its arguments.
_PROSE = re.compile(r"[\w\s.,;!?'\"\-\u2010-\u2015\u2018-\u201d\u2026%$\u20ac\u00b0/+]*")


def may_hold_call(text: str) -> bool:
    """Return False for plain words, in which no format has a call. It costs a look, where to parse
    a text by every format costs what all of them know of the tools.

    >>> may_hold_call("It is sunny in Oslo, about 21°."), may_hold_call("<f>")
    (False, True)
    """
    return _PROSE.fullmatch(text) is None


_MOST_STARTS = 512  # characters whose formats are kept


_Candidate: TypeAlias = tuple[Protocol, Opening]


def _owner(opening: Opening) -> Protocol:
    if opening.owner is None:
        raise LookupError("an opening without its format")
    return opening.owner


class _OfTools:
    # heads: (place among the members, heads, length of the longest) of the formats whose heads
    # depend on the tools, None as yet. resuming: the formats of which an answer may begin with a
    # character, after its prompt.
    __slots__ = ("heads", "resuming", "tools")

    def __init__(self, tools: Tools) -> None:
        self.tools = tools
        self.heads: list[tuple[int, tuple[str, ...], int]] | None = None
        self.resuming: dict[str, tuple[Protocol, ...]] = {}


class AnyEnvelope(Envelope):
    """The envelopes of several protocols side by side."""

    calls_are_python = True

    @cached_property
    def members(self) -> tuple[Protocol, ...]:
        """The formats. Of several that suit, the first one goes before the others."""
        # Of formats with one envelope, which differ in what they write, the first always wins.
        members: list[Protocol] = []
        for protocol in protocols().values():
            member = protocol.among_others
            envelope = member.envelope
            if envelope.in_auto and envelope not in [m.envelope for m in members]:
                members.append(member)
        return tuple(members)

    @cached_property
    def _heads(self) -> _Heads:
        return _Heads(self.members)

    @cached_property
    def _last(self) -> list[_OfTools]:
        # What is known of the tools that were asked about last.
        return [_OfTools({})]

    def _of(self, tools: Tools) -> _OfTools:
        # A text has the same tools at all of its openers. One look and one assignment, so that
        # another thread's tools are never mixed in.
        last = self._last[0]
        if last.tools is not tools:
            last = _OfTools(tools)
            self._last[:] = [last]
        return last

    @cached_property
    def _varying(self) -> tuple[tuple[int, Protocol], ...]:
        # (place among the members, format) of those whose heads depend on the tools
        fixed = enumerate(self.members)
        return tuple((i, m) for i, m in fixed if not m.envelope.heads_are_fixed)

    def _varying_heads(self, tools: Tools) -> list[tuple[int, tuple[str, ...], int]]:
        last = self._of(tools)
        if last.heads is None:
            own = [(place, tuple(m.envelope.heads(tools))) for place, m in self._varying]
            last.heads = [(i, heads, max(map(len, heads), default=0)) for i, heads in own]
        return last.heads

    @cached_property
    def _resuming(self) -> tuple[Protocol, ...]:
        return tuple(m for m in self.members if m.envelope.may_resume)

    def _resuming_at(self, char: str, tools: Tools) -> tuple[Protocol, ...]:
        known = self._of(tools).resuming
        members = known.get(char)
        if members is None:
            starts = ((member, member.envelope.resume_starts(tools)) for member in self._resuming)
            members = tuple(member for member, own in starts if own is None or char in own)
            # A text may begin with any of a million characters.
            if len(known) < _MOST_STARTS:
                known[char] = members
        return members

    @cached_property
    def _speculating(self) -> tuple[tuple[str | None, Protocol], ...]:
        # (the characters that an answer begins with, None for any; the format)
        base = Envelope.speculates
        members = (m for m in self.members if type(m.envelope).speculates is not base)
        return tuple((m.envelope.speculation_starts, m) for m in members)

    @cached_property
    def closers(self) -> tuple[str, ...]:
        closers = [closer for member in self.members for closer in member.envelope.closers]
        return tuple(dict.fromkeys(closers))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        heads = [head for _, member in self._varying for head in member.envelope.heads(tools)]
        return tuple(dict.fromkeys((*self._heads.literals, *heads)))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        index = self._heads
        match = index.pattern.match(text, pos)
        head = match[0] if match else ""
        sure = index.tokens.get(head) or index.sure(head, text, pos)
        # A tool may be called `function`, and have an element of that name.
        if sure is not None and not head[1:].isalpha():
            return sure
        varying = self._varying_heads(tools)
        if sure is not None and not any(text.startswith(heads, pos) for _, heads, _ in varying):
            return sure

        # The places of the members with such a head, in their order. One format's head may be the
        # beginning of another's: NEED_MORE where the text ends inside one that is longer.
        rest = len(text) - pos
        if not final and rest < index.longest and text[pos:] in index.beginnings:
            return NEED_MORE
        places = index.places.get(head, ())
        for place, heads, longest in varying:
            if text.startswith(heads, pos):
                places = tuple(sorted((*places, place)))
            # Lengths first: the rest of a text may be long, and a head is short.
            elif (
                not final
                and rest < longest
                and any(len(head) > rest and head.startswith(text[pos:]) for head in heads)
            ):
                return NEED_MORE

        candidates: list[_Candidate] = []
        for place in places:
            member = self.members[place]
            opening = member.envelope.open(text, pos, final, tools)
            if isinstance(opening, NeedMore):
                # A format that may still claim the opener would make the answer depend on the
                # chunking.
                return opening
            if opening is not None:
                candidates.append((member, opening))
        if not candidates:
            return None

        # If the body suits none: the first format that takes any body, else the first of all.
        fallback: _Candidate | None = None
        # A single candidate needs no look at the body.
        for member, opening in candidates if len(candidates) > 1 else ():
            fits = member.envelope.suits(opening, text, pos + opening.end, final, tools)
            if isinstance(fits, NeedMore):
                return fits
            if fits:
                return _owned_by(opening, member)
            if fits is None and fallback is None:
                fallback = member, opening

        member, opening = fallback or candidates[0]
        return _owned_by(opening, member)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return _owner(opening).envelope.scanner(opening, tools)

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        varying = [c for _, m in self._varying for c in m.envelope.closers_in_text(tools)]
        return tuple(dict.fromkeys((*self._heads.closers, *varying)))

    def resumes(self, text: str, tools: Tools) -> Answer:
        members = self._resuming_at(text[0], tools)
        return _first((member, member.envelope.resumes(text, tools)) for member in members)

    repeats = True

    def resumes_again(self, text: str, tools: Tools) -> Answer:
        members = self._resuming_at(text[0], tools)
        return _first((member, member.envelope.resumes_again(text, tools)) for member in members)

    def speculates(self, text: str) -> Answer:
        # NEED_MORE where none does yet, but one may with more text.
        members = [m for starts, m in self._speculating if starts is None or text[:1] in starts]
        return _first((m, m.envelope.speculates(text)) for m in members) if members else None


def _first(
    answers: Iterable[tuple[Protocol, Opening | NeedMore | None]],
) -> Answer:
    # Else NEED_MORE if one of them needs more text.
    more: NeedMore | None = None
    for member, opening in answers:
        if isinstance(opening, NeedMore):
            more = opening
        elif opening is not None:
            return _owned_by(opening, member)
    return more


class _Heads:
    # literals: the heads. closers: those of `closers_in_text`. Each once. tokens: a head that
    # always opens the same -> its opening. places: a head -> the formats that have one that it
    # begins with. beginnings: what may become a longer head.
    def __init__(self, members: tuple[Protocol, ...]) -> None:
        self._members = members
        fixed = [(i, m.envelope) for i, m in enumerate(members) if m.envelope.heads_are_fixed]
        heads = {i: envelope.heads({}) for i, envelope in fixed}
        self.literals = tuple(dict.fromkeys(head for own in heads.values() for head in own))
        self.closers = tuple(dict.fromkeys(c for _, e in fixed for c in e.closers_in_text({})))
        self.longest = max(map(len, self.literals), default=0)
        self.beginnings = {head[:n] for head in self.literals for n in range(len(head))}
        self.pattern = re.compile(longest_of(self.literals))
        # The pattern matches the longest head; every other one that is there begins it. Another
        # format's head may begin like theirs, and go on otherwise.
        self.places = {
            longest: tuple(
                i
                for i, own in heads.items()
                if longest.startswith(own) and members[i].envelope.may_open(longest)
            )
            for longest in self.literals
        }
        # Head -> (pattern of a sure body, opening), in the order of the formats.
        self._sure = {literal: list(self._sure_bodies(literal)) for literal in self.literals}
        # A head that begins another one may still become that.
        whole = (head for head in self.literals if head not in self.beginnings)
        tokens = {head: self._token(head) for head in whole}
        self.tokens = {head: token for head, token in tokens.items() if token is not None}

    def _sure_bodies(self, literal: str) -> Iterator[tuple[re.Pattern[str], Opening]]:
        for member in (self._members[i] for i in self.places[literal]):
            envelope = member.envelope
            # What is a part of the body may be longer than the head that it was found by.
            if envelope.opener_is_body or literal in envelope.heads({}):
                end = 0 if envelope.opener_is_body else len(literal)
                for body in envelope.sure_bodies(literal):
                    yield body, Opening(end, owner=member)

    def _token(self, head: str) -> Opening | None:
        # The first member owns it, which says nothing of markup: no scanner reads on there.
        owners = [self._members[i] for i in self.places[head]]
        first, *others = (owner.envelope.token(head) for owner in owners)
        if first is None or any(other != first for other in others):
            return None
        is_markup = first.kind == "markup" and not first.text
        return _owned_by(first, owners[0]) if is_markup or not others else None

    def sure(self, head: str, text: str, pos: int) -> Opening | None:
        # None: only asking tells. Then a head that ends earlier may be there too.
        end = pos + len(head)
        for body, opening in self._sure.get(head, ()):
            match = body.match(text, end)
            if match is None:
                continue
            # One that is a part of its body, and one that is a literal, are always the same.
            if opening.end in (0, match.end() - pos):
                return opening
            words = match.groupdict()
            name = words.get("name")
            start = match.start("name") - pos if name else 0
            return make_opening(
                match.end() - pos,
                name=name or "",
                name_span=Span(start, start + len(name)) if name else None,
                wire_id=words.get("id"),
                owner=opening.owner,
            )
        return None


def _owned_by(opening: Opening, owner: Protocol) -> Opening:
    # `dataclasses.replace` takes several times as long.
    return make_opening(
        opening.end,
        opening.kind,
        opening.name,
        opening.name_span,
        opening.wire_id,
        opening.whole,
        opening.speculative,
        owner,
        opening.attributes,
        opening.text,
        opening.lone,
    )


@dataclass(frozen=True, slots=True)
class OwnersCodec(Codec):
    """Hands each body to the codec of the format that opened it."""

    def strict(self, body: str, context: DecodeContext) -> bool:
        return _owner(context.opening).codec.strict(body, context)

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return _owner(context.opening).codec.read(body, context)

    def leading(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        return _owner(context.opening).codec.leading(body, context)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        raise UnwritableCall(
            "'auto' only reads", got=name, hint="write with the protocol the model was told of"
        )


AUTO = Protocol(
    id="auto", title="whatever format the text is in", envelope=AnyEnvelope(), codec=OwnersCodec()
)
