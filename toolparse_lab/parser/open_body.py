"""The body under way."""

from __future__ import annotations

from ..core.types import CallDelta, ReasoningDelta
from ..formats.base import Opening
from ..formats.scan import Scanner


class OpenBody:
    """A body under way. Offsets are in raw: of its opener, and of its first character.

    An opener may stand several times in a row. `opener` is then the first of them, and `head` the
    last, which `opening` is about. literal: its text, where that was asked for.
    """

    __slots__ = ("delta", "head", "literal", "opener", "opening", "pieces", "scanner", "start")

    def __init__(self, opening: Opening, opener: int, start: int, scanner: Scanner) -> None:
        """Begin a body of which nothing is final yet.

        opener, start: the offsets in raw where its opener and the body itself begin. scanner: finds
        its end.
        """
        self.opening = opening
        self.opener = opener
        self.head = opener
        self.literal: str | None = None
        self.start = start
        self.scanner = scanner
        self.delta: type[CallDelta | ReasoningDelta] = (
            CallDelta if opening.kind == "call" else ReasoningDelta
        )
        self.pieces: list[str] = []  # what its scanner has settled
