"""unreadable Bodies as they stand, because a closer or a quote is missing: where else such a body
may have ended.

Each function proposes a place. Whether a call is read from it is for the codec to say.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from ..arguments.rjson.damage import Refusal
from ..core.types import ParseResult, Problem, Span, ToolCall
from ..formats.base import Decoded
from ..formats.scan import any_of, partial_start
from ..formats.turns import TURN_ENDS
from .setting import Setting

# Rules that a lost quote sets off: what they touched may be text that was read as a string.
_GUESSED_QUOTES = frozenset(("rjson.unescaped-quote", "rjson.missing-bracket"))
_LAST_CALLS = 8  # calls looked at behind open reasoning, so that the cost stays bounded
_WRONG_CLOSER = re.compile(
    rf"(?:</?[A-Za-z_|\uff5c][\w:|\uff5c.\-]{{0,40}}>?|{any_of(TURN_ENDS)})\s*\Z"
)
# What is left of a closer, or what was put into it: `tool_call>`, `</tool_call\\>`, `[/tool_call]`.
_DAMAGED_CLOSER = re.compile(
    r"[<\[]?[ \t]{0,4}[\\/|]{0,3}[ \t]{0,4}(?P<word>[a-z][a-z_: -]{2,40}?)"
    r"[ \t]{0,4}[\\/|]{0,2}[>\]]{0,2}\s*\Z",
    re.IGNORECASE,
)
_LAST = 160  # characters that hold any closer


def doubtful_end(text: str, decoded: tuple[Decoded, ...] | Refusal) -> int:
    """Behind the last character of a body's text that may not belong to it.

    -1 for a sound body.

    A body that was refused is doubtful to its end, one that was read only where repairs guessed at
    quotes.
    """
    if isinstance(decoded, Refusal):
        return len(text)
    return max(
        (e.span.end for d in decoded for e in d.edits if e.rule in _GUESSED_QUOTES), default=-1
    )


def restarts(
    text: str, start: int, before: int, heads: tuple[str, ...], opens: Callable[[int], bool]
) -> Iterator[int]:
    """Yield the places in a body, from `start` to `before`, where the model may have begun a call
    again.

    heads: the literals of openers. At most one place for each, its first that `opens` something.
    """
    for head in heads:
        at = text.find(head, start)
        while 0 <= at < before:
            if opens(at):
                yield at
                break
            at = text.find(head, at + 1)


class GivenUp:
    """Text that a call which was given up leaves behind: it may still be part of its last value.

    A call found in it is part of the value's quotation, until a closer says that the value is over.
    State: `_at`, up to where the text was looked through for closers (-1 = nothing was given up),
    and `_closers`. `_suspect` is a text that only looked like a call, from one offset to another,
    with the question if it breaks off inside a value. Calls inside it are its quotation.
    """

    __slots__ = ("_at", "_closers", "_suspect", "_text_of")

    def __init__(self, text_of: Callable[[Span], str]) -> None:
        """Begin with nothing given up. text_of: the characters of a span of raw."""
        self._text_of = text_of
        self._at = -1
        self._closers: tuple[str, ...] = ()
        self._suspect: tuple[int, int, Callable[[str], bool]] | None = None

    def begin(self, at: int, closers: tuple[str, ...]) -> None:
        """Note that a call was given up inside a value, at an offset in raw.

        closers: the literals that would have ended it.
        """
        if self._at < 0:
            self._closers = closers
        self._at = at

    def suspect(self, start: int, end: int, in_value: Callable[[str], bool]) -> None:
        """Note that raw[start:end] looked like a call and is text.

        in_value: whether it breaks off inside a value behind its beginning.
        """
        self._suspect = start, end, in_value

    def quotes(self, start: int, end: int) -> bool:
        """Return True if the call raw[start:end] stands inside a value of one that was given up.

        To be asked of each call in turn. The closers before it are looked for on the way.
        """
        if self._suspect is not None:
            begin, stop, in_value = self._suspect
            if start < stop and in_value(self._text_of(Span(begin, start))):
                return True
        if self._at < 0:
            return False
        before = self._text_of(Span(self._at, start))
        if any(closer in before for closer in self._closers):
            self._at = -1
            return False
        self._at = end
        return True


_INSIDE = "the call stands inside another call, or in what only shows it, which does not end before"


def as_draft(call: ToolCall, code: str = "call.inside-value", message: str = _INSIDE) -> ToolCall:
    """Return a call that is quoted, by default in another one: it is shown and never executed.

    code, message: of the problem that says so.
    """
    span = call.segment.span if call.segment else None
    problem = Problem("scan", code, "error", message, "", span)
    # One that could not be read keeps saying why.
    status = "draft" if call.status in ("ok", "unknown_tool") else call.status
    return replace(call, status=status, problems=(problem, *call.problems))


def partial_closer(text: str, closers: tuple[str, ...]) -> int:
    """Return the offset of the beginning of a closer at the end of a text that ended early.
    Len(text) when there is none.

    closers: the literals that close a body of this format. White space behind the beginning is
    ignored.
    """
    stripped = text.rstrip()
    at = partial_start(stripped, closers) if closers else len(stripped)
    return at if at < len(stripped) else len(text)


def wrong_closer(text: str, closers: tuple[str, ...]) -> int | None:
    """Return the offset of another format's closer, a turn's, or a damaged one at a body's end.

    None when there is none.

    Models mix formats: a body in one's delimiters is closed as another's would be. Such a closer
    counts behind JSON or tags, whose own end is in sight, one with the letters of the format's own
    behind any body.

    closers: of the format.
    """
    at = max(0, len(text) - _LAST)
    match = _DAMAGED_CLOSER.search(text, at)
    while match is not None and not _is_closer(match, closers):
        # Each word of a name is tried, the longest first.
        match = _DAMAGED_CLOSER.search(text, match.start() + 1)
    places = [match.start()] if match is not None else []
    if text.lstrip()[:1] in ("{", "[", "<"):
        other = _WRONG_CLOSER.search(text, at)
        places += [other.start()] if other is not None else []
    return min(places, default=None)


def _is_closer(match: re.Match[str], closers: tuple[str, ...]) -> bool:
    """Return True if text has the letters of a closer, and something of its signs."""
    if match[0].strip() == match["word"]:
        return False
    letters = _letters(match["word"])
    return any(letters == _letters(closer) for closer in closers)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()


def calls_at_end(
    text: str, setting: Setting, read_alone: Callable[[Setting, str], ParseResult]
) -> int | None:
    """Return the offset of the calls at the very end of reasoning that was never closed, or None
    when there are none.

    They must be good ones, with nothing behind them: reasoning also speaks about calls. An opener
    that begins no such text may stand inside a call, or close a section.

    `read_alone` parses a text of its own.
    """
    heads = [m.start() for m in setting.tokens.finditer(text) if m["head"] in setting.heads]
    options = replace(setting.options, recover=False, reasoning="none")
    alone = Setting(setting.protocol, setting.specs, options)
    first: int | None = None

    for start in reversed(heads[-_LAST_CALLS:]):
        result = read_alone(alone, text[start:])
        if result.calls and not result.text.strip() and all(c.valid for c in result.calls):
            first = start

    return first
