"""The reading of answers: whole texts, pieces and forced choices, and naming the failure."""

from __future__ import annotations

from dataclasses import dataclass

from ..core.types import ParseResult
from ..formats.base import Protocol
from ..parser.content_parts import OnError
from ..parser.echoes import judged
from ..parser.foreign.protocol import ForeignProtocol
from .answer import was_cut
from .attempts import Attempts
from .compat import Ways
from .failures import tell_failures, tell_left_out
from .forced import parse_forced, parse_formatted, parse_like_seed
from .turn import Readers, Turn


@dataclass(frozen=True, slots=True)
class AnswerReading:
    """The part of a middleware that reads answers.

    Its fields are those of the middleware.
    """

    protocol: Protocol | ForeignProtocol
    ways: Ways
    on_error: OnError | None
    attempts: Attempts

    def readers(self, turn: Turn) -> Readers:
        """Return the readers of a turn's answer, from the preparation of its request where that
        fits.

        turn: one request. Its preparation is only used where it was made with the same tools,
        protocol and ways, because a turn may be made or changed by hand.
        """
        prepared = turn._prepared
        if (
            prepared is None
            or prepared.offer.tools is not turn.tools
            or prepared.protocol is not self.protocol
            or prepared.ways is not self.ways
        ):
            # A turn made by hand, or by another middleware.
            return Readers.of(self.protocol, turn.tools, self.ways)

        if prepared.readers is None:
            prepared.readers = Readers.of(self.protocol, turn.tools, self.ways)

        return prepared.readers

    def parse_whole(self, turn: Turn, text: str, finish_reason: str | None) -> ParseResult:
        """Return the parse of an answer that must be a call, or JSON of the caller's own form.

        turn: one request, with the tools that may be called. text: the whole answer.
        finish_reason: the words that the provider said. One that ended early has to close by
            itself.
        """
        cut, ways = was_cut(finish_reason), self.ways
        if turn.formatted:
            result = parse_formatted(text, self.protocol, turn.tools, ways.choice, cut=cut)
        elif ways.seed_choice:
            result = parse_like_seed(text, self.protocol.id, turn.tools, ways.choice, cut=cut)
        else:
            result = parse_forced(
                text,
                self.protocol,
                turn.tools,
                turn.allowed,
                ways.choice,
                cut=cut,
                many=turn.many,
            )
        return judged(result, turn.asked)

    def tell_failures(self, result: ParseResult, turn: Turn, *, streamed: bool = False) -> None:
        """Tell `on_error` the unreadable part, and which further calls drop out.

        result: the parse, finished. streamed: the answer came in pieces.
        """
        if self.on_error is None:
            return

        tell_failures(result, self.on_error, self.attempts, self.protocol, streamed=streamed)
        if turn.one_call:
            further = self.attempts.usable(result.calls)[1:]
            tell_left_out(further, result.raw, self.on_error)
