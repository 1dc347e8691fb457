"""`auto`: every shipped format at once. Each opener is read by the format whose opener it is.

Which format that is depends on the text up to the opener's body alone, so that streaming and batch agree. Formats
without delimiters compete only where the whole answer begins like one of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from .errors import UnwritableCall
from .protocols.base import NEED_MORE, Decoded, NeedMore, Opening, Protocol, Reading, Tools
from .registry import protocols
from .scan import Scanner
from .toolspec import ToolSpec


def _owner(opening: Opening) -> Protocol:
    """The format that opened a body; every opening of `auto` has one."""
    if opening.owner is None:
        raise LookupError("an opening without its format")
    return opening.owner


class AnyEnvelope:
    """The envelopes of several protocols side by side."""

    @cached_property
    def members(self) -> tuple[Protocol, ...]:
        return tuple(protocols().values())

    @cached_property
    def closers(self) -> tuple[str, ...]:
        found = [c for p in self.members for c in getattr(p.envelope, "closers", ())]
        return tuple(dict.fromkeys(found))

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return tuple(dict.fromkeys(h for p in self.members for h in p.envelope.heads(tools)))

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        found: list[tuple[Protocol, Opening]] = []
        for p in self.members:
            heads = p.envelope.heads(tools)
            if not any(text.startswith(h, pos) for h in heads):
                # One format's head may be the beginning of another's.
                if not final and any(len(h) > len(text) - pos and h.startswith(text[pos:]) for h in heads):
                    return NEED_MORE
                continue
            opening = p.envelope.open(text, pos, final, tools)
            if isinstance(opening, NeedMore):
                return opening  # one that may still claim the opener would make the answer depend on the chunking
            if opening is not None:
                found.append((p, opening))
        return self._owned(found, text, pos, final, tools) if found else None

    def _owned(
        self, found: list[tuple[Protocol, Opening]], text: str, pos: int, final: bool, tools: Tools
    ) -> Opening | NeedMore:
        """Of several formats with one opener that which the body suits; else the first that takes any body."""
        for p, opening in found if len(found) > 1 else ():
            suits = getattr(p.envelope, "suits", None)
            fits = suits(opening, text, pos + opening.end, final, tools) if suits and not opening.whole else False
            if isinstance(fits, NeedMore):
                return fits
            if fits:
                return replace(opening, owner=p)
        p, opening = next((f for f in found if not hasattr(f[0].envelope, "suits")), found[0])
        return replace(opening, owner=p)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return _owner(opening).envelope.scanner(opening, tools)

    def speculates(self, text: str) -> Opening | NeedMore | None:
        more: NeedMore | None = None
        for p in self.members:
            found = p.envelope.speculates(text)
            if isinstance(found, NeedMore):
                more = found
            elif found is not None:
                return replace(found, owner=p)
        return more


@dataclass(frozen=True, slots=True)
class OwnersCodec:
    """Hands each body to the codec of the format that opened it."""

    def strict(self, body: str, reading: Reading) -> bool:
        return _owner(reading.opening).codec.strict(body, reading)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        return _owner(reading.opening).codec.read(body, reading)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        raise UnwritableCall("'auto' only reads", got=name, hint="write with the protocol the model was told of")


AUTO = Protocol(id="auto", title="whatever format the text is in", envelope=AnyEnvelope(), codec=OwnersCodec())
