"""A call of a list that holds something else than literals, beside others that can be read."""

# How it works: the call is left out from its bracket to the one that closes it. That is only sure
# where no quote is out of step, so each string on the way has to begin where a value may, and to
# end in front of a separator: an apostrophe in loose words does neither. Cost: one pass over the
# call, and a bounded look at each character of its strings.

from __future__ import annotations

import re

from ...arguments.rjson.damage import Refusal
from ...core.types import Problem, Span
from ..base import Decoded

_PIECE = re.compile(
    r"(?P<open>[(\[{])|(?P<close>[)\]}])"
    r"|(?:(?<=[=,:(\[{])|(?<=[=,:(\[{][ ])|(?<=[=,:(\[{]\n))[bBrRfFuU]{0,2}+"
    r"(?:'(?:[^'\\\n]|\\.)*+'|\"(?:[^\"\\\n]|\\.)*+\")(?=\s{0,64}[,)\]}:])"
    r"|[^()\[\]{}'\"]"
)
_HEAD = re.compile(r"[^\W\d]\w{0,200}(?:\.[^\W\d]\w{0,200}){0,8}(?=[ \t]{0,8}\()")


class NoLiteral(Refusal):
    """A value that is an expression of Python, which nobody evaluates here."""


def left_out(text: str, start: int, refusal: Refusal) -> tuple[Decoded, int]:
    """Return the call at an offset as an unreadable one, and where it ends."""
    head = _HEAD.match(text, start)
    end = _end(text, head.end()) if head and isinstance(refusal, NoLiteral) else -1
    if head is None or end < 0:
        raise refusal
    span = Span(*head.span())
    problem = Problem("decode", refusal.code, "error", refusal.message, "", span)
    return Decoded(head[0], None, name_span=span, problems=(problem,), readable=False), end


def _end(text: str, at: int) -> int:
    # -1 if that is not sure
    level = 0
    while (piece := _PIECE.match(text, at)) is not None:
        at = piece.end()
        level += bool(piece["open"]) - bool(piece["close"])
        if level <= 0 and piece["close"]:
            return at
    return -1
