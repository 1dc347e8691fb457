"""Calls written as Python outside their format: on a line of their own, in a list behind a
sentence, or in a code fence.

Nothing is guessed: the first name must be a known tool's, and everything on the line or in the
fence must be calls.
"""

# How it works
# ------------
# As in `recovery`, whose answers it gives: a candidate begins with the head of a call of a known
# tool (`_head`), and ends behind its bracket, or behind that of the last call of a row. The tail is
# shown here again and again from the candidate on, while it is held back.
#
# State: `_at` is where the candidate begins in raw, and all other fields are about it.
#
# Invariant: an answer other than NEED_MORE is the same for every longer text.
#
# Cost: brackets are counted once. What may still become a head is bounded.

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from functools import lru_cache

from ..arguments.rjson.damage import Refusal
from ..core.types import Segment, Span, ToolCall
from ..formats.base import NEED_MORE, Decoded, NeedMore, Opening, Protocol, Reading
from ..formats.python.call import read_calls, read_quoted
from ..formats.python.reader import MODULES
from ..formats.scan import Balanced, Close
from .recovery import CALL_ENDS, Held
from .resolve import Body, Resolver

_LIST = re.compile(r"\[\s{0,40}+")
_NAME = re.compile(r"(?:[\w.]|\\_){1,200}+")
# What an argument may begin with, or the bracket of a call without.
_ARGUMENT = re.compile(
    r"\(\s{0,40}+(?:[)\"'{\[\d-]|[^\W\d]\w{0,64}+\s{0,8}+=(?!=)\s{0,8}+\S|(?:True|False|None)\b)"
)
_ARGUMENT_SO_FAR = re.compile(r"(?:\(\s{0,40}+(?:[^\W\d]\w{0,64}+\s{0,8}+(?:=\s{0,8}+)?)?)?\Z")
_BETWEEN = re.compile(r"\s{0,40}+[;,]\s{0,40}+|[ \t]{1,40}+")
_BEHIND = re.compile(r"[ \t\r]{0,64}+(?:[;,][ \t\r]{0,64}+)?")
_FENCE = re.compile(
    r"`{3,}+[ \t]{0,8}(?:python|py|python3|json|tool_code|tool_call|tool_calls|tool|)"
    r"[ \t]{0,8}(?P<line>\r?\n\s{0,40})?",
    re.IGNORECASE,
)
_FENCE_SO_FAR = re.compile(r"`{3,}+[ \t]{0,8}[a-zA-Z0-9_]{0,12}[ \t]{0,8}\r?(?:\n\s{0,40})?\Z")
# A comment or a new sentence behind the calls of an answer's first line. A verb goes on with the
# sentence that the call is a word of; words of doubt say that it is only shown.
_COMMENT = ("#", "//")
_WORD = re.compile(r"[^\W\d_]{1,40}")
_VERB = re.compile(r"(?!This\b|Das\b).*s\Z|Will\Z|Would\Z|Can\Z|Could\Z|Should\Z|May\Z|Might\Z")
_DOUBT = re.compile(r"\?|n[o'’]t\b|\b(?:if|would|could|should|might|example|instead|never)\b", re.I)
_MOST_WORDS = 400
_QUOTED_END = re.compile(r"[)\]]\s{0,8}[\"']\s{0,40}[^\s\"'\]),;]")
# Each candidate that is never closed costs a look at all that follows, at the end of the text.
_MOST_CUT = 16
_LONGEST_CLOSER = 20  # of a fence, without its backticks


class CallLines:
    """Holds text back for one parser and decides whether it is calls.

    Answers are a Held, NEED_MORE (hold it back), or None (there is no candidate here).
    """

    __slots__ = (
        "_at",
        "_closers",
        "_cut",
        "_fenced",
        "_heads",
        "_known",
        "_lead",
        "_resolver",
        "_scan",
        "_scanned",
        "_sorted",
    )

    def __init__(self, protocol: Protocol, resolver: Resolver, heads: tuple[str, ...]) -> None:
        """Begin with nothing held.

        `heads` are the beginnings of the protocol's own openers.
        """
        self._resolver = resolver
        self._heads = heads
        self._closers = tuple(filter(None, map(str.strip, protocol.envelope.closers)))
        self._known, self._sorted = _spellings(tuple(resolver.tools))
        self._at = -1
        self._fenced = False
        self._cut = 0  # candidates that the end of the text cut off
        self._lead = 0
        self._scanned = 0
        self._scan = Balanced("\"'")

    def line(
        self, text: str, final: bool, at: int, in_list: bool, first: bool = False
    ) -> Held | NeedMore | None:
        """Judge calls that go on to the end of their line.

        text: the tail from the first of them on. at: its offset in raw. final: no more text will
        come. in_list: only a list of calls counts, because a sentence stands before it. first: the
        answer begins with them, so that their opener may have stood in the prompt. Then their
        closer may stand behind them.
        """
        if self._cut > _MOST_CUT:
            return None
        if self._at != at or self._fenced:
            head = self._head(text, 0, final, in_list)
            if head is not True:
                return NEED_MORE if head is None else None
            self._fenced = False
            self._begin(at, 0)

        while True:
            end = self._value_end(text, final)
            if end is None:
                self._cut += final
                return Held(1) if final else NEED_MORE
            next_call = self._next_call(text, end, final)
            if next_call is None:
                return NEED_MORE
            if next_call == 0:
                break
            self._begin(at, next_call)

        close = self._line_close(text, end, final, first)
        if close is None and first:
            close = self._before_words(text, end, final)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end)
        return self._judge(text, 0, close, self._behind_closer(text, close, first), at, False)

    def fenced(
        self, text: str, run: int, final: bool, at: int, first: bool
    ) -> Held | NeedMore | None:
        """Judge a code fence that may hold nothing but calls.

        text: the tail from the fence on, which is a run of `run` backticks. at: its offset in raw.
        final: no more text will come. first: the answer begins with it, so that it is no example.
        """
        if self._cut > _MOST_CUT:
            return None
        fence = _FENCE.match(text)
        if fence is None:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if lead == len(text) and not final:
            return NEED_MORE
        if self._at != at or not self._fenced:
            head = self._head(text, lead, final, False)
            if head is not True:
                return NEED_MORE if head is None else None
            self._fenced = True
            self._begin(at, lead)

        # The closing fence stands on a line of its own, or ends the line of its opener. No call
        # goes on behind it.
        pattern = _fence_end(run, one_line=fence["line"] is None)
        close = pattern.search(text, max(lead, self._scanned))
        if close is None:
            self._scanned = max(lead, len(text) - _LONGEST_CLOSER - run)
            self._cut += final
            return Held(lead) if final else NEED_MORE
        return self._judge(text, lead, close.start(), close.end(), at, not first)

    def quoted(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        """Judge an answer that may be one string, of which the text is a list of calls.

        The arguments are those of `line`. A call in quotes without a list is a quotation.
        """
        if len(text) == 1 and not final:
            return NEED_MORE
        head = self._head(text, 1, final, True)
        if head is not True:
            return NEED_MORE if head is None else None
        if _QUOTED_END.search(text):
            return None
        if not final:
            return NEED_MORE
        end = len(text.rstrip())
        outcome = self._judge(text, 0, end, end, at, True, read_quoted)
        return outcome if outcome.body is not None else None

    # the candidate

    def _begin(self, at: int, lead: int) -> None:
        """Begin a candidate, or its next call, behind `lead` characters."""
        self._at = at
        self._lead = self._scanned = lead
        self._scan = Balanced("\"'")

    def _value_end(self, text: str, final: bool) -> int | None:
        """Return the offset behind the bracket that closes the call or list.

        None while open.
        """
        step = self._scan.scan(text[self._scanned :], final)
        if isinstance(step, Close):
            # Counted from where the scanner began; asked again, it begins anew.
            end = self._lead + step.end
            self._begin(self._at, self._lead)
            return end
        self._scanned += step
        return None

    def _head(self, text: str, start: int, final: bool, in_list: bool) -> bool | None:
        """Return True if a known tool's call begins at an offset.

        None if more text decides.
        """
        begin = _LIST.match(text, start)
        at = begin.end() if begin else start
        if in_list and begin is None:
            return False
        # In a list a call, or the name alone, may stand in quotes.
        quote = text[at : at + 1] if begin else ""
        quote = quote if quote in ("'", '"') else ""
        at += len(quote)
        end = self._name_end(text, at, final)
        if end is None or end < 0:
            return None if end is None else False
        if quote and text[end] == quote:
            end += 1
        if _ARGUMENT.match(text, end):
            return True
        return None if not final and _ARGUMENT_SO_FAR.match(text, end) else False

    def _name_end(self, text: str, at: int, final: bool) -> int | None:
        """Return the end of a known tool's name at an offset, -1 for none.

        None if more text decides.
        """
        name = _NAME.match(text, at)
        if name is None:
            return None if not final and at >= len(text) else -1
        spelling = name[0].replace("\\", "")
        end = name.end()
        # A backslash at the end of the chunk may escape an underscore of the name.
        if end < len(text) and text[end] == "\\" and not final and end + 1 == len(text):
            end += 1
        if end >= len(text):
            return None if not final and self._may_become_name(spelling) else -1
        return end if spelling in self._known else -1

    def _may_become_name(self, spelling: str) -> bool:
        """Return True if a name of a tool begins so."""
        place = bisect_left(self._sorted, spelling)
        return place < len(self._sorted) and self._sorted[place].startswith(spelling)

    def _next_call(self, text: str, end: int, final: bool) -> int | None:
        """Return where another call of the row begins, 0 for none.

        None if more text decides.
        """
        between = _BETWEEN.match(text, end)
        if between is None:
            # A line break before the comma cannot be told from one behind the last call.
            return 0
        head = self._head(text, between.end(), final, False)
        if head is None:
            return None
        return between.end() if head else 0

    def _line_close(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        """Return where the row ends, if nothing but its line's end, or a closer, is behind it."""
        behind = _BEHIND.match(text, end)
        after = behind.end() if behind else end
        if after >= len(text):
            return after if final else NEED_MORE
        if text[after] == "\n":
            return after
        ends = (*self._heads, *CALL_ENDS, *(self._closers if first else ()))
        if text.startswith(ends, after):
            return after
        rest = text[after : after + max(map(len, ends))]
        if not final and any(literal.startswith(rest) for literal in ends):
            return NEED_MORE
        return None

    def _before_words(self, text: str, end: int, final: bool) -> int | NeedMore | None:
        """Return where the row ends, if a comment or a new sentence is behind it on its line."""
        at = end
        while at < len(text) and at - end < _MOST_WORDS and text[at] in " \t":
            at += 1
        stop = text.find("\n", at, at + _MOST_WORDS)
        if stop < 0 and len(text) - at < _MOST_WORDS:
            if not final:
                return NEED_MORE
            stop = len(text)
        if at == end or stop < 0 or _DOUBT.search(text, at, stop):
            return None
        word = _WORD.match(text, at)
        if text.startswith(_COMMENT, at):
            return at
        if word is None or not word[0][0].isupper():
            return None
        return at if text[end - 1] == "]" or not _VERB.match(word[0]) else None

    def _behind_closer(self, text: str, close: int, first: bool) -> int:
        """Return the offset behind the closer at `close`, which counts where `first`."""
        closers = self._closers if first else ()
        return next((close + len(c) for c in closers if text.startswith(c, close)), close)

    def _judge(
        self,
        text: str,
        start: int,
        end: int,
        close: int,
        at: int,
        fenced: bool,
        reader: Callable[[str, Reading], tuple[Decoded, ...]] = read_calls,
    ) -> Held:
        """Decide whether text[start:end] is calls.

        `close` is where the held text ends.

        They are if each is readable and one of them a known tool's. In a fence behind words, which
        may hold code that is only shown, all have to be valid.
        """
        inner = text[start:end].rstrip(" \t\r;,")
        try:
            decoded = reader(inner, self._resolver.reading(Opening(0), True))
        except Refusal:
            return Held(close)

        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        calls = self._resolver.calls(decoded, body, segment, 0, 0)
        if not calls or not all(_counts(call, fenced) for call in calls):
            return Held(close)
        return Held(close, Span(at + start, at + start + len(inner)), decoded, inner)


def _counts(call: ToolCall, fenced: bool) -> bool:
    """Return True if a call counts outside its format."""
    return call.valid if fenced else call.status in ("ok", "unknown_tool")


@lru_cache(maxsize=32)
def _fence_end(run: int, *, one_line: bool) -> re.Pattern[str]:
    """Return the pattern of the closer of a fence of `run` backticks."""
    before = r"[ \t]{0,16}" if one_line else r"\r?\n[ \t]{0,16}"
    return re.compile(rf"{before}`{{{run}}}")


@lru_cache(maxsize=64)
def _spellings(names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the ways in which a text may name these tools, as a set and sorted."""
    plain = {*names, *(name.replace(".", "_") for name in names)}
    all_ways = plain | {module + name for module in MODULES for name in plain}
    return frozenset(all_ways), tuple(sorted(all_ways))


@lru_cache(maxsize=64)
def first_signs(names: tuple[str, ...]) -> frozenset[str]:
    """Return the characters that calls of these tools, or a list of them, may begin with."""
    spellings, _ = _spellings(names)
    # A backslash may escape the underscore that a name begins with.
    return frozenset(name[:1] for name in spellings) | {"[", "\\"}
