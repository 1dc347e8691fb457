"""Bodies that cannot be read as they stand, because a closer or a quote is missing: where else such
a body may have ended.

Each function proposes a place; whether a call is read from it is for the codec to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..protocols.base import Decoded
from ..protocols.scan import partial_start
from ..rjson.damage import Refusal
from ..types import ParseResult
from .setting import Setting

# Rules that a lost quote sets off: what they touched may be text that was read as a string.
_GUESSED_QUOTES = frozenset(("rjson.unescaped-quote", "rjson.missing-bracket"))
_LAST_CALLS = 8  # calls looked at behind open reasoning, so that the cost stays bounded
_WRONG_CLOSER = re.compile(r"</?[A-Za-z_][\w:|.\-]{0,40}>?\s*\Z")


def doubtful_end(text: str, decoded: tuple[Decoded, ...] | Refusal) -> int:
    """Behind the last character of a body's text that may not belong to it; -1 for a sound body.

    A body that was refused is doubtful to its end, one that was read only where repairs guessed at
    quotes.
    """
    if isinstance(decoded, Refusal):
        return len(text)
    return max(
        (e.span.end for d in decoded for e in d.edits if e.rule in _GUESSED_QUOTES), default=-1
    )


def restarts(text: str, before: int, heads: tuple[str, ...]) -> Iterator[int]:
    """The places in a body before an offset where the model may have begun a call anew.

    heads: the literals of openers; at most one place for each, its first.
    """
    for head in heads:
        at = text.find(head)
        if 0 <= at < before:
            yield at


def partial_closer(text: str, closers: tuple[str, ...]) -> int:
    """The offset of the beginning of a closer at the end of a text that was cut off; len(text) when
    there is none.

    closers: the literals that close a body of this format; white space behind the beginning is
    ignored.
    """
    stripped = text.rstrip()
    at = partial_start(stripped, closers) if closers else len(stripped)
    return at if at < len(stripped) else len(text)


def wrong_closer(text: str) -> int | None:
    """The offset of another format's closer at the end of a JSON body; None when there is none.

    Models mix formats: a body in one's delimiters is closed as another's would be.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    match = _WRONG_CLOSER.search(text)
    return match.start() if match else None


def calls_at_end(
    text: str, setting: Setting, read_alone: Callable[[Setting, str], ParseResult]
) -> int | None:
    """The offset of the calls at the very end of reasoning that was never closed; None when there
    are none.

    They must be good ones, with nothing behind them: reasoning also speaks about calls.
    `read_alone` parses a text of its own.
    """
    heads = [m.start() for m in setting.tokens.finditer(text) if m["head"] in setting.heads]
    options = replace(setting.options, recover=False, reasoning="none")
    alone = Setting(setting.protocol, setting.specs, options)
    first: int | None = None

    for start in reversed(heads[-_LAST_CALLS:]):
        result = read_alone(alone, text[start:])
        if not result.calls or result.text.strip() or not all(c.valid for c in result.calls):
            break
        first = start

    return first
