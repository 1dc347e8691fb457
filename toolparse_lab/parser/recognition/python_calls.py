"""Python's calls without delimiters, alone on a line or in a fence."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from ...core.types import Span
from ...formats.base import NEED_MORE, DecodeContext, Decoded, NeedMore
from ...formats.python.call import read_calls, read_quoted
from ...formats.python.reader import MODULES
from ..resolve import Resolver
from .bare_calls import longer
from .held import CALL_ENDS, FENCE_SO_FAR, MOST_CUT, Candidate, Held
from .quotes import run_length

_LIST = re.compile(r"\[\s{0,40}+")
_NAME = re.compile(r"(?:[\w.]|\\_){1,200}+")
# What an argument may begin with, or the bracket of a call without.
_ARGUMENT = re.compile(
    r"\(\s{0,40}+(?:[)\"'{\[\d-]|[^\W\d](?:\w|\\_){0,64}+\s{0,8}+=(?!=)\s{0,8}+\S|(?:True|False|None)\b)"
)
_ARGUMENT_SO_FAR = re.compile(
    r"(?:\(\s{0,40}+(?:[^\W\d](?:\w|\\_?){0,64}+\s{0,8}+(?:=\s{0,8}+)?)?)?\Z"
)
_BETWEEN = re.compile(r"\s{0,40}+[;,]\s{0,40}+|[ \t]{1,40}+|(?<=\])(?=\[)")
_AFTER_ROW = re.compile(r"[ \t\r]{0,64}+(?:[;,][ \t\r]{0,64}+)?")
_PYTHON_FENCE = re.compile(
    r"`{3,}+[ \t]{0,8}(?:python|py|python3|json|tool_code|tools?_calls?|function_calls?|tool|)"
    r"[ \t]{0,8}(?P<line>\r?\n\s{0,40})?",
    re.IGNORECASE,
)
# A comment or a new sentence behind the calls of an answer's first line. A verb goes on with the
# sentence that the call is a word of; words of doubt say that it is only shown.
_COMMENT = ("#", "//")
_WORD = re.compile(r"[^\W\d_]{1,40}")
_VERB = re.compile(r"(?!This\b|Das\b).*s\Z|Will\Z|Would\Z|Can\Z|Could\Z|Should\Z|May\Z|Might\Z")
_DOUBT = re.compile(r"\?|n[o'’]t\b|\b(?:if|would|could|should|might|example|instead|never)\b", re.I)
_MOST_WORDS = 400
_QUOTED_END = re.compile(r"[)\]]\s{0,8}[\"']\s{0,40}[^\s\"'\]),;]")
_LONGEST_CLOSER = 20  # of a fence, without its backticks


class PythonCalls(Candidate):
    """Recognises Python's calls alone on a line, in a fence, or in quotes around the answer."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...]) -> None:
        super().__init__(resolver, heads, "\"'")
        self._known, self._sorted = _spellings(tuple(resolver.tools))
        self._fenced = False

    def judge(
        self,
        text: str,
        final: bool,
        at: int,
        first: bool,
        *,
        in_list: bool = False,
        again: bool = False,
    ) -> Held | NeedMore | None:
        """Judge calls that go on to the end of their line, or (first, again) up to a closer.

        in_list: only a list of calls counts, because a sentence is before it. again: a call is.
        """
        if self._cut > MOST_CUT:
            return None
        if self._at != at or self._fenced:
            head = self._head(text, 0, final, in_list)
            if head is not True:
                return head
            self._fenced = False
            self._begin(at, 0)

        while True:
            end = self._value_end(text, final)
            if end is None:
                self._cut += final
                return Held(1) if final else NEED_MORE
            # A line break before the comma cannot be told from one behind the last call.
            between = _BETWEEN.match(text, end)
            head = self._head(text, between.end(), final, False) if between else None
            if isinstance(head, NeedMore):
                return NEED_MORE
            if head is None or between is None:
                break
            self._begin(at, between.end())

        close = self._line_close(text, end, final, first or again)
        if close is None and first:
            close = self._before_words(text, end, final)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end)
        closers = (c for c in self._closers if text.startswith(c, close))
        return self._call_or_text(text, 0, close, close + len(next(closers, "")), at, False)

    def judge_fence(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a code fence that may contain nothing but calls."""
        if self._cut > MOST_CUT:
            return None
        fence = _PYTHON_FENCE.match(text)
        if fence is None:
            return NEED_MORE if not final and FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if lead == len(text) and not final:
            return NEED_MORE
        if self._at != at or not self._fenced:
            head = self._head(text, lead, final, False)
            if head is not True:
                return head
            self._fenced = True
            self._begin(at, lead)

        # The closing fence stands on a line of its own, or ends the line of its opener. No call
        # goes on behind it.
        before = r"[ \t]{0,16}" if fence["line"] is None else r"\r?\n[ \t]{0,16}"
        run = run_length(text, 0)
        pattern = re.compile(rf"{before}`{{{run}}}")
        close = pattern.search(text, max(lead, self._scanned))
        if close is None:
            self._scanned = max(lead, len(text) - _LONGEST_CLOSER - run)
            self._cut += final
            return Held(lead) if final else NEED_MORE
        return self._call_or_text(text, lead, close.start(), close.end(), at, not first)

    def judge_quoted(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        """Judge an answer that may be one string, of which the text is a list of calls. A call in
        quotes without a list is a quotation.
        """
        if len(text) == 1 and not final:
            return NEED_MORE
        head = self._head(text, 1, final, True)
        if head is not True:
            return head
        if _QUOTED_END.search(text):
            return None
        if not final:
            return NEED_MORE
        end = len(text.rstrip())
        outcome = self._call_or_text(text, 0, end, end, at, True, read_quoted)
        return outcome if outcome.body is not None else None

    # the candidate

    def _head(
        self, text: str, start: int, final: bool, in_list: bool
    ) -> Literal[True] | NeedMore | None:
        begin = _LIST.match(text, start)
        at = begin.end() if begin else start
        if in_list and begin is None:
            return None
        # In a list a call, or the name alone, may stand in quotes.
        quote = text[at : at + 1] if begin else ""
        quote = quote if quote in ("'", '"') else ""
        at += len(quote)
        name = _NAME.match(text, at)
        if name is None:
            return NEED_MORE if not final and at >= len(text) else None
        spelling = name[0].replace("\\", "")
        end = name.end()
        # A backslash at the end of the chunk may escape an underscore of the name.
        if end < len(text) and text[end] == "\\" and not final and end + 1 == len(text):
            end += 1
        if end >= len(text):
            return NEED_MORE if not final and longer(self._sorted, spelling) else None
        if spelling not in self._known:
            return None
        if quote and text[end] == quote:
            end += 1
        if _ARGUMENT.match(text, end):
            return True
        return NEED_MORE if not final and _ARGUMENT_SO_FAR.match(text, end) else None

    def _line_close(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        # If nothing but its line's end, or a closer, is after the row.
        behind = _AFTER_ROW.match(text, end)
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
        # If a comment or a new sentence is after the row on its line.
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

    def _call_or_text(
        self,
        text: str,
        start: int,
        end: int,
        close: int,
        at: int,
        fenced: bool,
        reader: Callable[[str, DecodeContext], tuple[Decoded, ...]] = read_calls,
    ) -> Held:
        # Each must be readable and one of them a known tool's. In a fence after words, which may
        # hold code that is only shown, all have to be valid.
        inner = text[start:end].rstrip(" \t\r;,")
        decoded, calls = self._calls_in(reader, inner, start, close, at)
        wanted = (c.valid if fenced else c.status in ("ok", "unknown_tool") for c in calls)
        if not calls or not all(wanted):
            return Held(close)
        return Held(close, Span(at + start, at + start + len(inner)), decoded, inner)


@lru_cache(maxsize=64)
def _spellings(names: tuple[str, ...]) -> tuple[frozenset[str], tuple[str, ...]]:
    # As a set and sorted.
    plain = {*names, *(name.replace(".", "_") for name in names)}
    all_ways = plain | {module + name for module in MODULES for name in plain}
    return frozenset(all_ways), tuple(sorted(all_ways))


@lru_cache(maxsize=64)
def first_signs(names: tuple[str, ...]) -> frozenset[str]:
    # The characters that calls of these tools, or a list of them, may begin with.
    spellings, _ = _spellings(names)
    # A backslash may escape the underscore that a name begins with.
    return frozenset(name[:1] for name in spellings) | {"[", "\\"}
