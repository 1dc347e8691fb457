"""`auto`: every known format at once. Each opener is read by the format whose opener it is.

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
# Cost: a look at each format's heads for each opener, not for each character.

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from ..errors import UnwritableCall
from ..toolspec import ToolSpec
from .base import NEED_MORE, Codec, Decoded, Envelope, NeedMore, Opening, Protocol, Reading, Tools
from .registry import protocols
from .scan import Scanner


def _owner(opening: Opening) -> Protocol:
    """Return the format that opened a body; every opening of `auto` has one."""
    if opening.owner is None:
        raise LookupError("an opening without its format")
    return opening.owner


_Candidate: TypeAlias = tuple[Protocol, Opening]


class AnyEnvelope(Envelope):
    """The envelopes of several protocols side by side."""

    @cached_property
    def members(self) -> tuple[Protocol, ...]:
        """The formats, the first of which goes before the others where several suit."""
        return tuple(protocols().values())

    @cached_property
    def _resuming(self) -> tuple[Protocol, ...]:
        """The formats whose bodies tell by themselves that an opener may have stood before them."""
        return tuple(m for m in self.members if type(m.envelope).resumes is not Envelope.resumes)

    @cached_property
    def closers(self) -> tuple[str, ...]:
        """The closers of all formats, each once."""
        closers = [closer for member in self.members for closer in member.envelope.closers]
        return tuple(dict.fromkeys(closers))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        """Return the heads of all formats, each once."""
        heads = [head for member in self.members for head in member.envelope.heads(tools)]
        return tuple(dict.fromkeys(heads))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """Return the opening at `text[pos]` with its owner; see `Envelope.open`."""
        candidates: list[_Candidate] = []
        for member in self.members:
            heads = member.envelope.heads(tools)
            if not text.startswith(tuple(heads), pos):
                # One format's head may be the beginning of another's.
                if not final and _may_become(heads, text, pos):
                    return NEED_MORE
                continue

            opening = member.envelope.open(text, pos, final, tools)
            if isinstance(opening, NeedMore):
                # A format that may still claim the opener would make the answer depend on the
                # chunking.
                return opening
            if opening is not None:
                candidates.append((member, opening))
        return self._owned(candidates, text, pos, final, tools) if candidates else None

    def _owned(
        self, candidates: list[_Candidate], text: str, pos: int, final: bool, tools: Tools
    ) -> Opening | NeedMore:
        """Return the opening of the format that the body suits, with its owner.

        If it suits none, this is the first format that takes any body, or else the first of all.
        """
        fallback: _Candidate | None = None
        # A single candidate needs no look at the body.
        for member, opening in candidates if len(candidates) > 1 else ():
            fits = member.envelope.suits(opening, text, pos + opening.end, final, tools)
            if isinstance(fits, NeedMore):
                return fits
            if fits:
                return replace(opening, owner=member)
            if fits is None and fallback is None:
                fallback = member, opening

        member, opening = fallback or candidates[0]
        return replace(opening, owner=member)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return the scanner of the format that opened the body."""
        return _owner(opening).envelope.scanner(opening, tools)

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        """Return those of all formats, each once."""
        closers = [c for member in self.members for c in member.envelope.closers_in_text(tools)]
        return tuple(dict.fromkeys(closers))

    def resumes(self, text: str, tools: Tools) -> Opening | NeedMore | None:
        """Return the opening of the first format whose body the answer may begin with."""
        more: NeedMore | None = None
        for member in self._resuming:
            opening = member.envelope.resumes(text, tools)
            if isinstance(opening, NeedMore):
                more = opening
            elif opening is not None:
                return replace(opening, owner=member)
        return more

    def speculates(self, text: str) -> Opening | NeedMore | None:
        """Return the opening of the first format that takes the answer for a call as a whole.

        text: the answer so far. NEED_MORE where none does yet, but one may with more text.
        """
        more: NeedMore | None = None
        for member in self.members:
            opening = member.envelope.speculates(text)
            if isinstance(opening, NeedMore):
                more = opening
            elif opening is not None:
                return replace(opening, owner=member)
        return more


def _may_become(heads: Iterable[str], text: str, pos: int) -> bool:
    """Return whether the text from `pos` to its end is the beginning of one of these heads."""
    length = len(text) - pos
    # Lengths first: the rest of a text may be long, and a head is short.
    return any(len(head) > length and head.startswith(text[pos:]) for head in heads)


@dataclass(frozen=True, slots=True)
class OwnersCodec(Codec):
    """Hands each body to the codec of the format that opened it."""

    def strict(self, body: str, reading: Reading) -> bool:
        """Return whether the format that opened the body reads it without any repair."""
        return _owner(reading.opening).codec.strict(body, reading)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the calls that the format that opened the body reads in it."""
        return _owner(reading.opening).codec.read(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Raise UnwritableCall: there is no format to write in."""
        raise UnwritableCall(
            "'auto' only reads", got=name, hint="write with the protocol the model was told of"
        )


AUTO = Protocol(
    id="auto", title="whatever format the text is in", envelope=AnyEnvelope(), codec=OwnersCodec()
)
