"""Calls outside their format: a JSON value or Python's calls that are alone on their lines or in
their code fence, or the arguments of the tool whose name is all of the line before.

Nothing is guessed: the name must be a known tool's. Text waits only while it may still turn out to
be such a call.
"""

# How it works
# ------------
# A candidate is a JSON value whose first key is one that calls have (`CALL_HEAD`), with nothing
# next to it on its lines: a line break, an opener, a stray closer or the end after a bare value,
# the closing fence after a fenced one. Or it begins with the head of a Python call of a known tool
# (`CallLines._head`), and ends after its bracket, or after that of the last call of a row. The tail
# is shown here again and again from the candidate on, while it is held back.
#
# State: `_at` is where the candidate begins in raw, and all other fields are about it; a text
# that begins elsewhere is a new candidate. `_scanned` is how far its brackets were counted.
#
# Invariant: an answer other than NEED_MORE is the same for every longer text, so that the result
# does not depend on the chunking. What is not a call is settled up to a place after which nothing
# was looked at, and never tried again.
#
# Cost: brackets are counted once, and white space after the value is passed once; what may still
# become a head is bounded. The body is decoded twice, to judge it and to number its calls.

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from ..arguments.rjson.damage import Refusal
from ..core.types import Problem, Segment, Span, ToolCall
from ..formats.base import NEED_MORE, Decoded, NeedMore, Opening, Reading
from ..formats.json.call import (
    ARGUMENT_KEYS,
    CALL_HEAD,
    CALL_HEAD_SO_FAR,
    JsonCall,
    behind_stray_brackets,
    next_call,
)
from ..formats.json.forms import JsonList, NamedJson
from ..formats.python.call import read_calls, read_quoted
from ..formats.python.reader import MODULES
from ..formats.scan import Balanced, Close, longest_of
from ..formats.turns import TURN_ENDS
from .resolve import Body, Resolver

_AFTER_NAME = r"[ \t]{0,16}+\r?\n[ \t]{0,16}+"
_AFTER_NAME_SO_FAR = re.compile(r"[ \t]{0,16}+\r?(?:\n[ \t]{0,16}+)?\Z")


class NameHeads:
    r"""The heads of calls that are a tool's name on a line of its own, the arguments on the next.

    >>> heads = name_heads(("get_tide",))
    >>> heads.match('get_tide\n{"port": 1}', 0, True).end()
    9
    >>> heads.match("get_tide now", 0, True) is None
    True
    """

    def __init__(self, names: tuple[str, ...]) -> None:
        words = tuple(sorted(name for name in names if name and not name[0].isspace()))
        self._names = words
        self._pattern = re.compile(rf"(?P<name>{longest_of(words)}){_AFTER_NAME}(?=\{{)")
        self._longest = max(map(len, words), default=0) + 36
        self.starts = frozenset(name[0] for name in words)

    def match(self, text: str, at: int, final: bool) -> re.Match[str] | NeedMore | None:
        head = self._pattern.match(text, at)
        if head is not None or final or len(text) - at > self._longest:
            return head
        rest = text[at:]
        word = rest.split(None, 1)[0]
        name = _longer(self._names, word)
        is_whole = name == word and _AFTER_NAME_SO_FAR.match(rest, len(word))
        return NEED_MORE if name and (word == rest or is_whole) else None


name_heads = lru_cache(maxsize=64)(NameHeads)


def _longer(names: tuple[str, ...], beginning: str) -> str:
    # The first of sorted names with this beginning, '' for none.
    place = bisect_left(names, beginning)
    return names[place] if place < len(names) and names[place].startswith(beginning) else ""


_FENCE_LINE = (
    r"`{3,}+[ \t]{0,8}(?i:json|json5|jsonc|tool_call|tool_calls|tool|)[ \t]{0,8}\r?\n\s{0,40}"
)
_FENCE_HEAD = (
    r"`{3,}+[ \t]{0,8}(?i:json|json5|jsonc|tool_call|tool_calls|tool|)[ \t]{0,8}"
    r"(?:\r?\n\s{0,40}|(?=[{\[]))"
)
# Some models put the fence that they were taught into one more.
_FENCE = re.compile(rf"(?P<outer>{_FENCE_LINE}(?=```))?(?P<inner>{_FENCE_HEAD})")
_FENCE_SO_FAR = re.compile(r"`{3,}+[ \t]{0,8}[a-zA-Z0-9_]{0,12}[ \t]{0,8}\r?(?:\n\s{0,40})?\Z")
_INNER_SO_FAR = re.compile(
    rf"{_FENCE_LINE}`{{1,}}+[ \t]{{0,8}}[a-zA-Z0-9_]{{0,12}}[ \t]{{0,8}}\r?\Z"
)
_OUTER_END = re.compile(r"\s{0,16}+(?P<ticks>`*+)")
_ARGUMENTS = re.compile(rf"""["'](?:{"|".join(ARGUMENT_KEYS)})["']\s*:\s*(?:[{{"']|null\b)""")
_SPACE = re.compile(r"\s*")
_BLANK_LINE = re.compile(r"\n[ \t\r]{0,40}+\n")
_LINE_END = re.compile(r"[ \t\r]{0,40}\n")
# Tokens that end a call: of a turn's end, and the head of a turn, which some models write where a
# closer should be.
CALL_ENDS = (*TURN_ENDS, "<|im_start|>")
_CODEC = JsonCall("", "")  # calls as objects, without delimiters
_NAMED_CODEC = JsonList("[", "]", name_is_key=True)  # objects of which each key is a tool's name
_ARGUMENTS_CODEC = NamedJson(lambda name, arguments: arguments)  # the name is known already
# Each head whose value is never closed costs a look at all that follows, at the end of the text.
_MOST_CUT = 16
_NAMED_HEAD = re.compile(
    r"""(?:\[\s{0,40})?\{\s{0,40}(["'])(?P<name>[^"'\\\s]{1,256})\1\s{0,10}:\s{0,10}\{"""
)
_NAMED_SO_FAR = re.compile(
    r"""(?:\[\s{0,40})?(?:\{\s{0,40}"""
    r"""(?:(["'])(?P<name>[^"'\\\s]{0,256})(?:\1\s{0,10}(?::\s{0,10})?)?)?)?\Z"""
)
_MARKS_AROUND = "`\"'"  # of a span of code or a string that may be the whole answer
_BARE = Opening(0)
CONFIDENCE = 0.8  # of a recovered call; one in its own format has 1.0


def _ticks(text: str) -> int:
    return len(text) - len(text.lstrip("`"))


def _ends_answer(text: str, run: int) -> bool | None:
    # Nothing is after a run of backticks but a token that ends the turn. False where such a token
    # is not whole yet, None for any other text.
    if len(text) < run and not text.strip("`"):
        return False
    rest = text.removeprefix("`" * run).lstrip()
    if rest in ("", *TURN_ENDS):
        return not text.startswith("`" * (run + 1))
    return False if any(token.startswith(rest) for token in TURN_ENDS) else None


@dataclass(frozen=True, slots=True)
class Held:
    """The end of holding text back: at `end` characters, with a call's body, or (None) plain text.

    body: its span in raw. decoded, text: everything read in it, and from which characters. closed:
    its closing fence was there. alone: nothing but what may stand behind a call is there, so that a
    text is one by its contents. lead: the characters of plain text before its JSON.
    """

    end: int
    body: Span | None = None
    decoded: tuple[Decoded, ...] = ()
    text: str = ""
    closed: bool = True
    alone: bool = True
    lead: int = 0


class _Candidate:
    """Text that is held back while its brackets are counted. quotes: they begin and end strings."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...], quotes: str) -> None:
        self._resolver = resolver
        self._heads = heads  # the beginnings of the protocol's own openers
        closers = resolver.protocol.envelope.closers
        self._closers = tuple(filter(None, map(str.strip, closers)))
        self._quotes = quotes
        self._cut = 0  # candidates that the end of the text cut off
        self._begin(-1, 0)

    def _begin(self, at: int, lead: int) -> None:
        self._at = at  # where the candidate begins in raw
        self._lead = lead  # what is before the value: a fence, a name, the calls of its row
        self._scanned = lead  # characters of the held text that the scanner has settled
        self._scan = Balanced(self._quotes)
        self._end: int | None = None  # after the value

    def _value_end(self, text: str, final: bool) -> int | None:
        # None while its brackets are open. Only text that came since the last look is scanned.
        if self._end is None:
            step = self._scan.scan(text[self._scanned :], final)
            if isinstance(step, Close):
                # A Close counts from where the scanner began.
                self._end = self._lead + step.end
            else:
                self._scanned += step
        return self._end

    def _calls_in(
        self,
        read: Callable[[str, Reading], tuple[Decoded, ...]],
        inner: str,
        start: int,
        close: int,
        at: int,
        opening: Opening = _BARE,
    ) -> tuple[tuple[Decoded, ...], tuple[ToolCall, ...]]:
        # What a body is, if it begins at `start` of the held text, which ends at `close`.
        try:
            decoded = read(inner, self._resolver.reading(opening, True))
        except Refusal:
            return (), ()
        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        return decoded, self._resolver.calls(decoded, body, segment, 0, 0)


class Recovery(_Candidate):
    """Holds text back for one parser and decides its meaning.

    Answers are a Held, NEED_MORE (hold it back), or None (there is no candidate here).
    """

    def __init__(
        self,
        resolver: Resolver,
        heads: tuple[str, ...],
        names: NameHeads,
        python_starts: frozenset[str],
    ) -> None:
        super().__init__(resolver, heads, '"')
        self._names = names
        self._python_starts = python_starts
        self.python = CallLines(resolver, heads)
        self._is_named = False  # the candidate's first key is a tool's name
        self._space = 0  # after the white space that was passed

    def alone(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a line that may be a value of JSON, a tool's name alone, or Python's calls.

        text: the tail from the line on. at: its offset in raw. first: the answer begins with it.
        """
        char = text[0]
        if first and char in _MARKS_AROUND:
            return self._in_marks(text, final, at)
        if char in ("{", "["):
            outcome = self.bare(text, final, at, first)
            # Where the format is bare JSON, words after a value leave it to the format itself.
            if char in self._heads and isinstance(outcome, Held) and not outcome.alone:
                return None
            if outcome is not None:
                return outcome
        # No name of a tool begins like most texts, and one look says so.
        if char in self._names.starts:
            outcome = self.named(text, final, at, first)
            if outcome is not None:
                return outcome
        if char not in self._python_starts:
            return None
        return self.python.line(text, final, at, False, first)

    def fenced(
        self, text: str, run: int, final: bool, at: int, first: bool
    ) -> Held | NeedMore | None:
        """Judge a code fence, of `run` backticks, that may contain nothing but a known tool's call.
        The arguments are those of `alone`.
        """
        outcome = self._fenced_value(text, run, final, at)
        if outcome is None and self._python_starts:
            outcome = self.python.fenced(text, run, final, at, first)
        return outcome

    def _in_marks(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
        # An answer that is one span of code, or one string, as a whole.
        if text[0] != "`":
            return self.python.quoted(text, final, at)
        run = _ticks(text)
        if run > 2 or run == len(text):
            return NEED_MORE if run <= 2 and not final else None
        end = text.find("`", run)
        inner = text[run:] if end < 0 else text[run:end]
        if not inner or inner[0] in _MARKS_AROUND:
            return None
        if end < 0:
            return None if final or self.alone(inner, False, at + run, True) is None else NEED_MORE
        ends = _ends_answer(text[end:].rstrip(), run)
        if ends is None or not final:
            return None if ends is None else NEED_MORE
        outcome = self.alone(inner, True, at + run, True) if ends else None
        if not isinstance(outcome, Held) or outcome.body is None or outcome.end < len(inner):
            return None
        return replace(outcome, end=end + run)

    def bare(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a JSON value, or several in a row as one, with no other text on its lines. It may
        end at an opener or a stray closer. The arguments are those of `alone`.

        first: its opener may be in the prompt. Elsewhere a stray closer says that something is
        wrong, and there is no call. What is no call is text up to `Held.end`.
        """
        if self._at != at:
            head = self._head(text, 0, final)
            if head is not True:
                return head
            self._begin(at, 0)

        end = self._value_end(text, final)
        # Another value that looks like a call may follow: Llama's semicolon, a comma or a line
        # break stand between them, or brackets too many.
        while end is not None and (begin := next_call(text, end, final)) is not None:
            if begin < 0:
                return NEED_MORE
            # After a blank line a list is a set of calls of its own.
            if text[begin] == "[" and _BLANK_LINE.search(text, end, begin):
                break
            space = self._space  # what `_begin` forgets, and was passed all the same
            self._begin(at, begin)
            self._space = space
            end = self._value_end(text, final)
        if end is None:
            # Cut off: one character is text, and what is behind it may be something else.
            return Held(1) if final else NEED_MORE
        # Brackets too many are a part of the value, for the codec to judge.
        end = behind_stray_brackets(text, end, final)
        if end < 0:
            return NEED_MORE
        close = self._bare_close(text, end, final, first)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end, alone=False)
        return self._judge(text, 0, end, close, at)

    def named(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a known tool's name alone on a line, with one object on the next."""
        head = self._names.match(text, 0, final)
        if not isinstance(head, re.Match):
            return head
        lead = head.end()
        if self._cut > _MOST_CUT:
            return None
        if self._at != at:
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            self._cut += final
            return Held(1, lead=lead) if final else NEED_MORE
        close = self._bare_close(text, end, final, first)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end, alone=False, lead=lead)
        # The tool takes the arguments, or they name nothing but its parameters.
        name, inner = head["name"], text[lead:end]
        opening = Opening(lead, name=name, name_span=Span(0, len(name)))
        read = _ARGUMENTS_CODEC.read
        decoded, calls = self._calls_in(read, inner, lead, close, at, opening)
        if not calls or not calls[0].ok:
            return Held(close, lead=lead)
        schema, arguments = self._resolver.tools[name].schema, calls[0].arguments
        properties = schema.get("properties") if isinstance(schema, dict) else None
        if not arguments or not properties or schema.get("additionalProperties"):
            suits = calls[0].valid
        else:
            suits = all(key in properties for key in arguments)
        if not suits:
            return Held(close, lead=lead)
        return Held(close, Span(at + lead, at + end), decoded, inner)

    def _fenced_value(self, text: str, run: int, final: bool, at: int) -> Held | NeedMore | None:
        # A value that is alone in a code fence. At the end of the text a fence that stays open, or
        # not entirely, still has a call.
        if not final and _INNER_SO_FAR.match(text):
            return NEED_MORE
        fence = _FENCE.match(text)
        if not fence:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text) else None
        lead = fence.end()
        if self._at != at:
            head = self._head(text, lead, final)
            if head is not True:
                return head
            self._begin(at, lead)

        end = self._value_end(text, final)
        if end is None:
            return Held(lead) if final else NEED_MORE
        after = self._pass_space(text, end)
        if not fence["outer"]:
            ticks = text[after : after + run]
            if ticks.strip("`"):
                return Held(end)
            if len(ticks) == run:
                return self._judge(text, lead, end, after + run, at)
            if not final:
                return NEED_MORE
            return replace(self._judge(text, lead, end, after + len(ticks), at), closed=False)
        # The inner fence has to close, the outer one may stay open.
        inner = _ticks(fence["inner"])
        if _ticks(text[after : after + inner]) < inner:
            is_cut = not final and after + inner > len(text) and not text[after:].strip("`")
            return NEED_MORE if is_cut else Held(end)
        close = _OUTER_END.match(text, after + inner)
        outer = _ticks(fence["outer"])
        if close is None or len(close["ticks"]) < outer:
            if not final and close is not None and close.end() == len(text):
                return NEED_MORE
            return self._judge(text, lead, end, after + inner, at)
        return self._judge(text, lead, end, close.start("ticks") + outer, at)

    def calls(
        self, outcome: Held, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        if outcome.body is None:
            return ()
        body = Body(outcome.text, outcome.body.start, segment.span.start, outcome.closed, "end")
        calls = self._resolver.calls(outcome.decoded, body, segment, segment_index, index)
        message = "the call stood outside its format"
        note = Problem("scan", "call.recovered", "warning", message, "", segment.span)
        return tuple(replace(c, confidence=CONFIDENCE, problems=(note, *c.problems)) for c in calls)

    # the candidate

    def _head(self, text: str, pos: int, final: bool) -> Literal[True] | NeedMore | None:
        tools = self._resolver.tools
        self._is_named = False
        if CALL_HEAD.match(text, pos):
            return True
        named = _NAMED_HEAD.match(text, pos)
        self._is_named = named is not None and named["name"] in tools
        if self._is_named:
            return True
        if final:
            return None
        so_far = _NAMED_SO_FAR.match(text, pos)
        key = so_far["name"] or "" if so_far else ""
        may_be = so_far is not None and any(name.startswith(key) for name in tools)
        return NEED_MORE if may_be or CALL_HEAD_SO_FAR.match(text, pos) else None

    def _begin(self, at: int, lead: int) -> None:
        super()._begin(at, lead)
        self._space = 0

    def _pass_space(self, text: str, end: int) -> int:
        # Remembered, so that white space that comes bit by bit is passed once.
        match = _SPACE.match(text, max(end, self._space))
        self._space = match.end() if match else end
        return self._space

    def _bare_close(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        # After the value or a stray closer; None if something else follows, so that the value is
        # not alone.
        after = self._pass_space(text, end)
        if after >= len(text):
            return end if final else NEED_MORE
        rest = text[after:]

        if rest.startswith(CALL_ENDS):
            return end
        if not final and any(token.startswith(rest) for token in CALL_ENDS):
            return NEED_MORE
        for closer in self._closers:
            if rest.startswith(closer):
                return after + len(closer) if first else None
            if not final and closer.startswith(rest):
                return NEED_MORE
        if rest.startswith(self._heads):
            return end
        if not final and any(head.startswith(rest) for head in self._heads):
            return NEED_MORE
        return end if _LINE_END.match(text, end) else None

    def _judge(self, text: str, start: int, end: int, close: int, at: int) -> Held:
        # `close` is where the held text ends. It is a call if a codec of plain JSON calls reads
        # it, and every call in it is of a known tool with its arguments under a key of their own:
        # faults that the schema reports are problems of the call. Without such a key they have to
        # be valid, and more than a name.
        inner = text[start:end]
        codec = _NAMED_CODEC if self._is_named else _CODEC
        decoded, calls = self._calls_in(codec.read, inner, start, close, at)
        has_key = _ARGUMENTS.search(inner) is not None
        if not calls or not all((c.valid and c.arguments) or (c.ok and has_key) for c in calls):
            return Held(close)
        return Held(close, Span(at + start, at + end), decoded, inner)


_LIST = re.compile(r"\[\s{0,40}+")
_NAME = re.compile(r"(?:[\w.]|\\_){1,200}+")
# What an argument may begin with, or the bracket of a call without.
_ARGUMENT = re.compile(
    r"\(\s{0,40}+(?:[)\"'{\[\d-]|[^\W\d]\w{0,64}+\s{0,8}+=(?!=)\s{0,8}+\S|(?:True|False|None)\b)"
)
_ARGUMENT_SO_FAR = re.compile(r"(?:\(\s{0,40}+(?:[^\W\d]\w{0,64}+\s{0,8}+(?:=\s{0,8}+)?)?)?\Z")
_BETWEEN = re.compile(r"\s{0,40}+[;,]\s{0,40}+|[ \t]{1,40}+")
_AFTER_ROW = re.compile(r"[ \t\r]{0,64}+(?:[;,][ \t\r]{0,64}+)?")
_PYTHON_FENCE = re.compile(
    r"`{3,}+[ \t]{0,8}(?:python|py|python3|json|tool_code|tool_call|tool_calls|tool|)"
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


class CallLines(_Candidate):
    """As `Recovery`, for calls of Python."""

    def __init__(self, resolver: Resolver, heads: tuple[str, ...]) -> None:
        super().__init__(resolver, heads, "\"'")
        self._known, self._sorted = _spellings(tuple(resolver.tools))
        self._fenced = False

    def line(
        self, text: str, final: bool, at: int, in_list: bool, first: bool = False
    ) -> Held | NeedMore | None:
        """Judge calls that go on to the end of their line. The arguments are those of `alone`.

        in_list: only a list of calls counts, because a sentence is before it. first: their opener
        may be in the prompt, and their closer after them.
        """
        if self._cut > _MOST_CUT:
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

        close = self._line_close(text, end, final, first)
        if close is None and first:
            close = self._before_words(text, end, final)
        if isinstance(close, NeedMore):
            return NEED_MORE
        if close is None:
            return Held(end)
        closers = (c for c in self._closers if first and text.startswith(c, close))
        return self._judge(text, 0, close, close + len(next(closers, "")), at, False)

    def fenced(
        self, text: str, run: int, final: bool, at: int, first: bool
    ) -> Held | NeedMore | None:
        """Judge a code fence, of `run` backticks, that may contain nothing but calls.

        first: the answer begins with it, so that it is not an example.
        """
        if self._cut > _MOST_CUT:
            return None
        fence = _PYTHON_FENCE.match(text)
        if fence is None:
            return NEED_MORE if not final and _FENCE_SO_FAR.match(text) else None
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
        pattern = re.compile(rf"{before}`{{{run}}}")
        close = pattern.search(text, max(lead, self._scanned))
        if close is None:
            self._scanned = max(lead, len(text) - _LONGEST_CLOSER - run)
            self._cut += final
            return Held(lead) if final else NEED_MORE
        return self._judge(text, lead, close.start(), close.end(), at, not first)

    def quoted(self, text: str, final: bool, at: int) -> Held | NeedMore | None:
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
        outcome = self._judge(text, 0, end, end, at, True, read_quoted)
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
            return NEED_MORE if not final and _longer(self._sorted, spelling) else None
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
