"""Calls outside their format: a JSON object that stands alone in its text or code fence and is
plainly a call, or the arguments of the tool whose name is all of the line before.

Nothing is guessed: the name must be a known tool's, with the arguments under a key of their own or
valid. Text waits only while it may still turn out to be such a call.
"""

# How it works
# ------------
# A candidate is a JSON value whose first key is one that calls have (`CALL_HEAD`), with nothing
# beside it on its lines: a line break, an opener, a stray closer or the end behind a bare value,
# the closing fence behind a fenced one. The tail is shown here again and again from the candidate
# on, while it is held back.
#
# State: `_at` is where the candidate begins in raw, and all other fields are about it; a text
# that begins elsewhere is a new candidate. `_scanned` is how far its brackets were counted.
#
# Invariant: an answer other than NEED_MORE is the same for every longer text, so that the result
# does not depend on the chunking. What is not a call is settled up to a place behind which nothing
# was looked at, and never tried again.
#
# Cost: brackets are counted once, and white space behind the value is passed once. The body is
# decoded twice, to judge it and to number its calls.

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from ..arguments.rjson.damage import Refusal
from ..core.toolspec import ToolSpec
from ..core.types import Problem, Segment, Span, ToolCall
from ..formats.base import NEED_MORE, Decoded, NeedMore, Opening, Protocol
from ..formats.json.call import (
    ARGUMENT_KEYS,
    CALL_HEAD,
    CALL_HEAD_SO_FAR,
    JsonCall,
    behind_stray_brackets,
    next_call,
)
from ..formats.json.forms import JsonList, NamedJson
from ..formats.scan import Balanced, Close
from ..formats.turns import TURN_ENDS
from .name_lines import name_heads
from .resolve import Body, Resolver

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
_TICKS = re.compile(r"`*+")
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
CONFIDENCE = 0.8  # of a recovered call; one in its own format has 1.0


def _run_of(text: str) -> str:
    """Return the backticks that a text begins with."""
    match = _TICKS.match(text)
    return match[0] if match else ""


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


class Recovery:
    """Holds text back for one parser and decides its meaning.

    Answers are a Held, NEED_MORE (hold it back), or None (there is no candidate here).
    """

    __slots__ = (
        "_at",
        "_closers",
        "_cut",
        "_end",
        "_heads",
        "_is_named",
        "_lead",
        "_names",
        "_resolver",
        "_scan",
        "_scanned",
        "_space",
    )

    def __init__(self, protocol: Protocol, resolver: Resolver, heads: tuple[str, ...]) -> None:
        """Begin with nothing held.

        `heads` are the beginnings of the protocol's own openers.
        """
        self._resolver = resolver
        self._heads = heads
        self._closers = tuple(filter(None, map(str.strip, protocol.envelope.closers)))
        self._names = name_heads(tuple(resolver.tools))
        self._cut = 0  # heads whose value the end of the text cut off
        self._is_named = False  # the candidate's first key is a tool's name
        self._at = -1  # where the candidate begins in raw
        self._scan = Balanced()
        self._lead = 0  # what stands before the JSON value: the fence
        self._scanned = 0  # characters of the held text that the scanner has settled
        self._end: int | None = None  # behind the JSON value
        self._space = 0  # behind the white space that was passed

    def bare(self, text: str, final: bool, at: int, first: bool) -> Held | NeedMore | None:
        """Judge a value that stands alone on its lines, up to their end, an opener or a stray
        closer. Several values in a row are judged as one.

        text: the tail from the value on. at: its offset in raw. final: no more text will come.
        first: the answer begins with it, so that its opener may have stood in the prompt. Elsewhere
        a stray closer says that something is wrong, and there is no call.

        What is no call is text up to `Held.end`.
        """
        if self._at != at:
            head = self._head(text, 0, final)
            if head is not True:
                return head
            self._begin(at, 0)

        end = self._value_end(text, final)
        while end is not None:
            step = self._goes_on(text, end, final)
            if isinstance(step, NeedMore):
                return NEED_MORE
            if not step:
                break
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
        """Judge a known tool's name alone on a line, with one object behind it on the next.

        The arguments are as those of `bare`.
        """
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
        return self._judge_named(text, head["name"], Span(lead, end), close, at)

    def fenced(self, text: str, run: int, final: bool, at: int) -> Held | NeedMore | None:
        """Judge a value that stands alone in a code fence.

        text: the tail from the fence on, which is a run of `run` backticks. at: its offset in raw.

        final: no more text will come. Then a fence that stays open, or not entirely, still holds a
        call.
        """
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
        if fence["outer"]:
            return self._judge_inner(text, fence, Span(after, end), final, at)
        ticks = text[after : after + run]
        if ticks.strip("`"):
            return Held(end)
        if len(ticks) == run:
            return self._judge(text, lead, end, after + run, at)
        if not final:
            return NEED_MORE
        return replace(self._judge(text, lead, end, after + len(ticks), at), closed=False)

    def _judge_inner(
        self, text: str, fence: re.Match[str], ends: Span, final: bool, at: int
    ) -> Held | NeedMore:
        """Judge a value in a fence inside a fence, of which the outer one may stay open.

        ends: of the white space behind the value, and of the value.
        """
        after, end = ends.start, ends.end
        inner = len(_run_of(fence["inner"]))
        if len(_run_of(text[after : after + inner])) < inner:
            is_cut = not final and after + inner > len(text) and not text[after:].strip("`")
            return NEED_MORE if is_cut else Held(end)
        close = _OUTER_END.match(text, after + inner)
        outer = len(_run_of(fence["outer"]))
        if close is None or len(close["ticks"]) < outer:
            if not final and close is not None and close.end() == len(text):
                return NEED_MORE
            return self._judge(text, fence.end(), end, after + inner, at)
        return self._judge(text, fence.end(), end, close.start("ticks") + outer, at)

    def calls(
        self, outcome: Held, segment: Segment, segment_index: int, index: int
    ) -> tuple[ToolCall, ...]:
        """Return the calls that were judged good, numbered from `index`."""
        if outcome.body is None:
            return ()
        body = Body(outcome.text, outcome.body.start, segment.span.start, outcome.closed, "end")
        calls = self._resolver.calls(outcome.decoded, body, segment, segment_index, index)
        message = "the call stood outside its format"
        note = Problem("scan", "call.recovered", "warning", message, "", segment.span)
        return tuple(replace(c, confidence=CONFIDENCE, problems=(note, *c.problems)) for c in calls)

    # the candidate

    def _head(self, text: str, pos: int, final: bool) -> Literal[True] | NeedMore | None:
        """Return True if the value at `text[pos]` begins as calls do, None if it does not."""
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
        """Begin a candidate whose JSON value stands behind `lead` characters."""
        self._at = at
        self._lead = self._scanned = lead
        self._end = None
        self._space = 0
        self._scan = Balanced()

    def _value_end(self, text: str, final: bool) -> int | None:
        """Return the offset behind the JSON value.

        None while its brackets are open.

        text: the held text. Only text that came since the last look is scanned.
        """
        if self._end is None:
            step = self._scan.scan(text[self._scanned :], final)
            if isinstance(step, Close):
                # A Close counts from where the scanner began.
                self._end = self._lead + step.start
            else:
                self._scanned += step
        return self._end

    def _goes_on(self, text: str, end: int, final: bool) -> bool | NeedMore:
        """Return True if another value that looks like a call follows the one that ends here.

        Then the scan goes on behind it.
        """
        # Llama's semicolon, a comma or a line break stand between them, or brackets too many.
        begin = next_call(text, end, final)
        if begin is None:
            return False
        if begin < 0:
            return NEED_MORE
        # After a blank line a list is a set of calls of its own.
        if text[begin] == "[" and _BLANK_LINE.search(text, end, begin):
            return False
        self._lead = self._scanned = begin
        self._end = None
        self._scan = Balanced()
        return True

    def _pass_space(self, text: str, end: int) -> int:
        """Return the offset behind the white space at `end`, where the value ends.

        Remembered, so that white space that comes bit by bit is passed once.
        """
        match = _SPACE.match(text, max(end, self._space))
        self._space = match.end() if match else end
        return self._space

    def _bare_close(self, text: str, end: int, final: bool, first: bool) -> int | NeedMore | None:
        """Return the offset where a bare call ends: behind the value or behind a stray closer.

        None if something else stands behind the value, so that it is not alone.
        """
        after = self._pass_space(text, end)
        if after >= len(text):
            return end if final else NEED_MORE
        rest = text[after:]

        if rest.startswith(CALL_ENDS):
            return end
        if not final and any(token.startswith(rest) for token in CALL_ENDS):
            return NEED_MORE
        closer = self._closer_at(rest, final)
        if isinstance(closer, NeedMore):
            return NEED_MORE
        if closer:
            return after + len(closer) if first else None

        if rest.startswith(self._heads):
            return end
        if not final and any(head.startswith(rest) for head in self._heads):
            return NEED_MORE
        return end if _LINE_END.match(text, end) else None

    def _closer_at(self, rest: str, final: bool) -> str | NeedMore:
        """Return the stray closer that a text begins with, "" for none."""
        for closer in self._closers:
            if rest.startswith(closer):
                return closer
            if not final and closer.startswith(rest):
                return NEED_MORE
        return ""

    def _judge(self, text: str, start: int, end: int, close: int, at: int) -> Held:
        """Decide whether text[start:end] is a call.

        `close` is where the held text ends.

        It is one if a codec of plain JSON calls reads it, and every call in it is of a known tool
        and has its arguments under a key of their own. The faults that their schema reports are
        problems of the call. Without such a key they have to be valid, and more than a name.
        """
        inner = text[start:end]
        try:
            codec = _NAMED_CODEC if self._is_named else _CODEC
            decoded = codec.read(inner, self._resolver.reading(Opening(0), True))
        except Refusal:
            return Held(close)

        body = Body(inner, at + start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        calls = self._resolver.calls(decoded, body, segment, 0, 0)
        if not calls or not all((c.valid and c.arguments) or _is_plain(c, inner) for c in calls):
            return Held(close)
        return Held(close, Span(at + start, at + end), decoded, inner)

    def _judge_named(self, text: str, name: str, value: Span, close: int, at: int) -> Held:
        """Decide whether a value is the arguments of the tool whose name stands before it.

        It is if the tool takes it, or if it names nothing but the tool's parameters.
        """
        inner = value.of(text)
        opening = Opening(value.start, name=name, name_span=Span(0, len(name)))
        try:
            decoded = _ARGUMENTS_CODEC.read(inner, self._resolver.reading(opening, True))
        except Refusal:
            return Held(close, lead=value.start)

        body = Body(inner, at + value.start, at, True, "end")
        segment = Segment("recovered", Span(at, at + close))
        (call,) = self._resolver.calls(decoded, body, segment, 0, 0)
        if not call.ok or not _suits(call, self._resolver.tools[name]):
            return Held(close, lead=value.start)
        return Held(close, value.shift(at), decoded, inner)


def _suits(call: ToolCall, tool: ToolSpec) -> bool:
    """Return True if arguments are plainly meant for a tool, and no other data under its name."""
    schema, arguments = tool.schema, call.arguments
    properties = schema.get("properties") if isinstance(schema, dict) else None
    if not arguments or not properties or schema.get("additionalProperties"):
        return call.valid
    return all(key in properties for key in arguments)


def _is_plain(call: ToolCall, text: str) -> bool:
    """Return True if a call is one of a known tool, in a text that is plainly call-shaped."""
    return call.ok and _ARGUMENTS.search(text) is not None
