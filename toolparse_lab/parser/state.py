"""The state of a parse: `Setting` is shared by many texts, `Feed` is one text so far, `Log` is what
was settled of it.
"""

# How it works
# ------------
# The parts of raw, one after the other:
#
#     settled | tail | late | rest of the chunk
#             ^ base
#
# Feed: scanners see the `tail`, which begins at offset `base` of raw. `_late` waits while the tail
# is long. `chunk` is being read up to `_offset`, '' when it is finished. `_half` is a surrogate
# whose other half may come with the next chunk; it is not in raw yet. base + len(tail) + the size
# of `_late` + the rest of the chunk = characters fed. The pieces joined are raw. Going back only
# moves `base`.
#
# Log: `segments` partition raw from 0 to `text_start`, where open text or a body begins. Text
# becomes a segment only when something else begins, so two texts are never adjacent. The spans of
# all events, with each Retract honoured, cover the settled part of raw exactly once. A TextDelta is
# never retracted.
#
# Cost: cutting the settled beginning off the tail copies the rest. So a chunk is read in blocks,
# and a tail that stays long, because text is held back, is scanned again only when it has grown by
# a sixteenth. Both keep the work linear in the text. Events take more time than their use suggests,
# so a silent log makes none.

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any, TypeAlias

from ..core.errors import UnreadableInput
from ..core.toolspec import ToolSpec
from ..core.types import (
    CallDelta,
    CallEnd,
    CallStart,
    Event,
    Markup,
    ParseOptions,
    Problem,
    ReasoningDelta,
    Recovered,
    Retract,
    Segment,
    Span,
    TextDelta,
    ToolCall,
)
from ..core.types.spans import make_segment
from ..formats.base import Envelope, Protocol, Tools
from ..formats.reasoning import (
    END_PATTERN,
    END_SO_FAR,
    END_STARTS,
    LONE_ENDS,
    LONGEST_END,
    opens_nothing,
)
from ..formats.registry import protocols
from ..formats.scan import NO_WAITS, cut_literals, longest_of, partial_finder
from ..formats.turns import TURN_ENDS
from .recognition.bare_calls import name_heads
from .recognition.echoes import Echoes
from .recognition.python_calls import first_signs
from .recognition.quotes import LONG_RUN
from .recognition.repeats import Repeats, halved
from .resolve import Resolver, as_draft

_MOST_SETTINGS = 128
_IN_BRACKETS = re.compile(r"\[[^\W\d]")


class Setting:
    """A protocol, tools and options, with everything derived from them. Parsers share it."""

    def __init__(
        self, protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions
    ) -> None:
        self.protocol = protocol
        self.specs = tools
        self.options = options
        self.tools = {t.name: t for t in tools}
        self.resolver = Resolver(protocol, self.tools, options)
        # The literals that an opener may begin with.
        self.heads = protocol.envelope.heads(self.tools)
        self.longest_head = max(map(len, self.heads), default=0)
        self.reads_reasoning = options.reasoning != "none"
        # A call outside its format is recognised by its tool's name: without tools there is none.
        self.recovers = options.recover and bool(tools)
        names = tuple(self.tools) if self.recovers else ()
        # Calls that are a tool's name on a line of its own, none where no call is recovered.
        self.name_heads = name_heads(names)
        # What Python's calls outside their format may begin with, empty where they are not read.
        is_python = self.recovers and protocol.envelope.calls_are_python
        self.python_starts = first_signs(names) if is_python else frozenset()
        # What a line of nothing but calls outside their format may begin with: a value or a name.
        words = (c for c in self.python_starts if c.isalpha() or c == "_")
        self.value_starts = frozenset(("{", "[", *words)) if self.recovers else frozenset()
        self.line_starts = self.value_starts | self.name_heads.starts
        # Questions that most formats leave to the base class need not be asked.
        envelope = type(protocol.envelope)
        self.speculates = (
            envelope.speculates is not Envelope.speculates
            or envelope.resumes is not Envelope.resumes
        )
        # Tails that decide nothing, where nothing else than an opener begins with them.
        self.first_signs = signs = (
            protocol.envelope.first_signs(self.tools) if self.speculates else ""
        )
        self.waits = NO_WAITS if signs is None or "<" in signs else _waits_of(self.heads)
        self.repeats = protocol.envelope.repeats
        # Heads with which no reasoning begins, and in most formats no call without delimiters.
        self.call_heads = tuple(filter(opens_nothing, self.heads))
        self.continues = self.speculates or self.repeats
        # Heads that are a word in brackets, which begin no JSON: `[TOOL_CALLS]`.
        self.bracket_heads = () if is_python else tuple(filter(_IN_BRACKETS.match, self.heads))
        # What is known of plain calls, and for each look the literals that no value may hold.
        self.looks: Any = None
        self.marks: dict[Any, tuple[str, ...] | None] = {}
        thoughts = self.reads_reasoning
        lone = LONE_ENDS if thoughts else ()
        held = (END_SO_FAR, LONGEST_END) if thoughts else ("", 0)
        lists = bool(self.python_starts)
        self.partial_start: Callable[[str], int]
        # Exactly one group matches: `head`, `line`, `ticks`, `list` (a bracket that may begin a
        # list of calls), `end` (of a turn, and it begins nothing) or `thought` (its closer).
        self.tokens: _Pattern
        # Of the literals that close a body and mean nothing else, None without such.
        self.closers: _Pattern | None = None

        self._list_heads = {protocol.id: protocol.codec.list_head}
        fixed, own = _of_tools(protocol.envelope.heads, self.tools)
        if any(head.startswith(TURN_ENDS) for head in own):
            fixed, own = self.heads, ()
        ends = _ends_apart(fixed)
        # The end of a tail waits for these.
        self.literals = literals = (*self.heads, *ends)
        if not own:
            self.partial_start = partial_finder((*literals, *lone), *held)
            self.tokens = _text_tokens(literals, ends, lists, thoughts)
        else:
            first, second = partial_finder((*fixed, *ends, *lone), *held), partial_finder(own)
            self.partial_start = lambda tail: min(first(tail), second(tail))
            self.tokens = _Either(
                _text_tokens((*fixed, *ends), ends, lists, thoughts),
                own,
                lambda: _text_tokens(literals, ends, lists, thoughts),
            )

        fixed, own = _of_tools(protocol.envelope.closers_in_text, self.tools)
        common, others = _only_closers(fixed, self.heads), _only_closers(own, self.heads)
        if others and common:
            self.closers = _Either(
                _any_literal(common), others, lambda: _any_literal((*common, *others))
            )
        elif others or common:
            self.closers = _any_literal(common or others)

    def list_head(self, call: ToolCall) -> str:
        """Return the literal that a list begins with in the format of a call, "" if none does."""
        head = self._list_heads.get(call.protocol)
        if head is None:
            owner = protocols().get(call.protocol)
            head = self._list_heads[call.protocol] = owner.codec.list_head if owner else ""
        return head


_settings: dict[tuple[int, int, ParseOptions], Setting] = {}


def setting_of(protocol: Protocol, tools: tuple[ToolSpec, ...], options: ParseOptions) -> Setting:
    # Made once while it is among the last. By identity, since to hash a protocol takes as long as
    # to read a call. The setting keeps both objects alive, so that no other ones get their numbers.
    key = id(protocol), id(tools), options
    setting = _settings.get(key)
    if setting is None:
        setting = Setting(protocol, tools, options)
        # Emptied as a whole: nothing here is worth the order of a better rule. `clear` is a
        # single step, so that threads need no lock.
        if len(_settings) >= _MOST_SETTINGS:
            _settings.clear()
        _settings[key] = setting
    return setting


# Literals as patterns
#
# A setting needs several hundred literals as one pattern, and compiling it takes as long as reading
# a hundred short answers. Nearly all of them are the format's own, compiled once for all tools; a
# tool adds one or two. So two patterns are searched side by side, and compiled together after many
# searches. Logs often have other tools in every row.

_WORTH = 400  # searches that take about as long as to compile


class _Either:
    # Two patterns as one: the match that begins first wins, then the longer one. own: literals
    # missing from the first pattern. whole: compiles the pattern of both.
    def __init__(
        self, fixed: re.Pattern[str], own: tuple[str, ...], whole: Callable[[], re.Pattern[str]]
    ) -> None:
        self._fixed = fixed
        self._own = re.compile(f"(?P<head>{longest_of(own)})")
        self._longest = max(map(len, own))
        self._whole = whole
        self._left = _WORTH
        self.search: Callable[..., re.Match[str] | None] = self._search

    def _search(self, text: str, pos: int = 0, end: int = sys.maxsize) -> re.Match[str] | None:
        # To search a long text in vain costs as much as many short ones.
        self._left -= 1 + (len(text) - pos) // _BLOCK
        if self._left < 0:
            self.search = self._whole().search
            return self.search(text, pos, end)
        match = self._fixed.search(text, pos, end)
        if match is None:
            return self._own.search(text, pos, end)
        # No further, so that a text of many tokens is not looked through again for each.
        start = match.start()
        own = self._own.search(text, pos, min(end, start + self._longest))
        if own is None or own.start() > start:
            return match
        if own.start() == start:
            kind = match.lastgroup
            if kind == "end" or (kind in ("head", None) and match.end() > own.end()):
                return match
        return own

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        match = self.search(text)
        while match is not None:
            yield match
            match = self.search(text, match.end())

    def sub(self, replacement: str, text: str) -> str:
        pieces: list[str] = []
        end = 0
        for match in self.finditer(text):
            pieces += text[end : match.start()], replacement
            end = match.end()
        return "".join((*pieces, text[end:]))


_Pattern: TypeAlias = "re.Pattern[str] | _Either"


def _of_tools(
    literals_of: Callable[[Tools], tuple[str, ...]], tools: Tools
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    # The literals that a format has whatever the tools are, and those that they add.
    every, fixed = literals_of(tools), literals_of({})
    known = set(fixed)
    if not known.issubset(every):
        return every, ()
    return fixed, tuple(literal for literal in every if literal not in known)


@lru_cache(maxsize=512)
def _ends_apart(heads: tuple[str, ...]) -> tuple[str, ...]:
    # A format's own opener may be, or begin with, what ends the turns of another family.
    return tuple(end for end in TURN_ENDS if not any(head.startswith(end) for head in heads))


@lru_cache(maxsize=512)
def _waits_of(heads: tuple[str, ...]) -> frozenset[str]:
    # The beginnings of openers, but those in which another one is whole, or which a turn begins or
    # ends with.
    others = (*heads, *TURN_ENDS, "<|im_start|>")
    alone = (
        h for h in heads if h[0] == "<" and not any(h != o and h.startswith(o) for o in others)
    )
    return cut_literals(tuple(alone))[0] - {""}


def _only_closers(literals: tuple[str, ...], heads: tuple[str, ...]) -> tuple[str, ...]:
    others = {*heads, *TURN_ENDS}
    return tuple(c for c in literals if c[0] not in "`\r\n ]" and c not in others)


@lru_cache(maxsize=512)
def _any_literal(literals: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(longest_of(literals))


@lru_cache(maxsize=512)
def _text_tokens(
    literals: tuple[str, ...], ends: tuple[str, ...], lists: bool, thoughts: bool
) -> re.Pattern[str]:
    bracket = r"\[" if lists else "(?!)"
    first = {literal[0] for literal in literals} | {"\n", "`"} | ({"["} if lists else set())
    first |= set(END_STARTS) if thoughts else set()
    # Nearly every character begins nothing, and one look at a set says so; an alternation of all
    # heads would be tried at each.
    look = f"(?=[{re.escape(''.join(sorted(first)))}])"
    heads = longest_of(literal for literal in literals if literal not in ends)
    return re.compile(
        f"{look}(?:(?P<end>{longest_of(ends)})|(?P<head>{heads})|(?P<line>\n)"
        f"|(?P<ticks>`{{1,{LONG_RUN}}})|(?P<thought>{END_PATTERN if thoughts else '(?!)'})"
        f"|(?P<list>{bracket}))"
    )


# A longer chunk is read in blocks, so that taking the settled part off the tail stays cheap.
_BLOCK = 4096
_LONG_TAIL = 2 * _BLOCK
_GROWTH = 16  # a long tail is looked at when what waits is at least this part of it
_HIGH_AT_END = re.compile("[\ud800-\udbff]\\Z")
_ANY_HALF = re.compile("[\ud800-\udfff]")
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def not_a_chunk(x: object) -> UnreadableInput:
    return UnreadableInput(
        "a chunk is text",
        got=f"{type(x).__name__} {x!r}",
        expected="a str, or None for an empty delta",
        hint="pass the delta's content: parser.feed(chunk.choices[0].delta.content)",
    )


class Feed:
    """The text of one parser so far, and the tail of it that is not final yet."""

    def __init__(self) -> None:
        self.tail = ""
        self.base = 0  # offset in raw of the tail's first character
        self.chunk = ""  # the chunk that is being read in blocks
        self._offset = 0  # how much of it was read
        self.pieces: list[str] = []  # joined, they are raw
        self._ends: list[int] = []  # the offset after each piece, by which a place is found
        self._size = 0  # characters in the pieces
        self._half = ""  # a surrogate whose other half may come
        self._late: list[str] = []  # blocks that wait because the tail is long
        self._late_size = 0
        self._closers: dict[str, int] = {}  # a closer -> its next offset in the chunk

    def add(self, chunk: str) -> bool:
        """Take in a chunk. Return True when the tail has grown and is to be scanned."""
        if self._half or not chunk.isascii():
            chunk = self._join_surrogates(chunk)
        size = len(chunk)
        if not size:
            return False
        self.pieces.append(chunk)
        self._size += size
        self._ends.append(self._size)
        # The usual chunk is a few characters: it goes straight into the tail.
        if size <= _BLOCK and len(self.tail) <= _LONG_TAIL:
            self.tail += chunk
            return True
        self.chunk = chunk
        self._offset = 0
        return self.next_block()

    def next_block(self) -> bool:
        """Move the next block of the chunk into the tail. False: none is to be scanned now."""
        while self.chunk:
            block = self.chunk[self._offset : self._offset + _BLOCK]
            self._pass_chunk(self._offset + _BLOCK)
            if len(self.tail) <= _LONG_TAIL:
                self.tail += block
                return True
            self._late.append(block)
            self._late_size += len(block)
            if self._late_size * _GROWTH >= len(self.tail):
                self._join_late()
                return True

        return False

    def _pass_chunk(self, offset: int) -> None:
        self._offset = offset
        if offset >= len(self.chunk):
            self.chunk = ""
            self._closers.clear()

    def end(self) -> None:
        """Bring all that waits into the tail, once, before the last scan."""
        if self._half:
            self.pieces.append(self._half)
            self._size += 1
            self._ends.append(self._size)
            self._late.append(self._half)
            self._half = ""
        if self._late:
            self._join_late()

    def fetch_closer(self, closer: str) -> None:
        """Bring a whole body into the tail if its closer is in the chunk: one scan is faster.

        The body begins where the tail does, and every closer of it contains this literal.
        """
        chunk = self.chunk
        begin = max(0, self._offset - len(self.tail))
        # Kept until it is passed, so that many bodies look through a long chunk only once.
        at = self._closers.get(closer, -1)
        if at < begin:
            at = chunk.find(closer, begin)
            if at < 0:
                at = len(chunk)
            self._closers[closer] = at

        end = at + len(closer)
        if self._offset < end <= len(chunk):
            if len(self.tail) <= self._offset and not self._late:
                self.tail = chunk[begin:end]  # one copy of what may be long
            else:
                self.tail += chunk[self._offset : end]
            self._pass_chunk(end)

    def take(self, n: int) -> None:
        """Cut `n` settled characters off the tail; the rest of it is copied."""
        if n:
            self.tail = self.tail[n:]
            self.base += n

    def skip_to(self, end: int) -> None:
        """Settle all up to an offset, where the text is one chunk."""
        (text,) = self.pieces
        read = self._offset if self.chunk else len(text)
        self.tail, self.base = text[end:read], end
        self._late.clear()
        self._late_size = 0
        if end > read:
            self._pass_chunk(end)

    def text_of(self, span: Span) -> str:
        """Return the characters of a span of the text fed so far, at the cost of those alone."""
        begin, end = span.start, span.end
        if len(self.pieces) == 1:
            return self.pieces[0][begin:end]
        at = bisect_right(self._ends, begin)
        parts: list[str] = []
        for i in range(at, len(self.pieces)):
            piece = self.pieces[i]
            start = self._ends[i] - len(piece)
            if start >= end:
                break
            parts.append(piece[max(0, begin - start) : end - start])

        return "".join(parts)

    def _join_surrogates(self, chunk: str) -> str:
        # A pair comes apart where a client cuts a text by UTF-16 units, as JavaScript does. A half
        # at the end stays back.
        if not self._half and _ANY_HALF.search(chunk) is None:
            return chunk
        chunk, self._half = self._half + chunk, ""
        if _PAIR.search(chunk):
            chunk = chunk.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        if _HIGH_AT_END.search(chunk):
            chunk, self._half = chunk[:-1], chunk[-1]
        return chunk

    def _join_late(self) -> None:
        self.tail += "".join(self._late)
        self._late.clear()
        self._late_size = 0


_LONGEST_HEAD = 96  # characters in which what begins a list stands
_LIST = re.compile(r"(?:`{3,}\w*)?\[(?![A-Z_]{3,}\])")
_AFTER_TURN = "the call is after the end of the model's own turn"
_IN_OPEN_THOUGHT = "the call ends reasoning that was never closed"
SHORTEST = 3  # characters of a text that may hold words; white space between calls is less


@cache
def _list_heads() -> tuple[str, ...]:
    # Of formats with delimiters: those that share an envelope differ in them.
    heads = (protocol.codec.list_head for protocol in protocols().values())
    return tuple(dict.fromkeys(head for head in heads if head[:1] in ("<", "`")))


class Log:
    """The segments, calls, problems and events of one text. silent: it makes no events."""

    def __init__(self, silent: bool, feed: Feed) -> None:
        self.silent = silent
        self._feed = feed
        self.echoes: Echoes | None = None  # None if no request is known
        self.repeats: Repeats | None = None
        self.said: list[Segment] = []  # text and reasoning since the last call
        self.segments: list[Segment] = []
        self.texts: list[Segment] = []  # those of them that may hold words
        self.calls: list[ToolCall] = []  # in the order of their segments
        self.problems: list[Problem] = []
        self.events: list[Event] = []  # since the last flush
        self.refused = 0  # bodies
        self.shown: list[tuple[Span, str]] = []  # calls that are only shown, and the evidence
        self.text_start = 0  # where the segments end, and open text begins
        # Where the first closing think tag is that no tag opened.
        self.thought_end: int | None = None
        # Where calls end reasoning that nothing closed: they may be a part of it.
        self.open_thought: int | None = None
        # Where the turn of the assistant ended: no call after it is the model's own.
        self.turn_end: int | None = None
        # The last token that ends a message of some format: what follows may go on with the turn.
        self.message_end: tuple[int, str] | None = None

    def delta(
        self, kind: type[TextDelta | ReasoningDelta | CallDelta], start: int, end: int
    ) -> None:
        """Report characters of text, reasoning or a call's body. Their segment comes later."""
        if not self.silent:
            self.events.append(kind(Span(start, end)))

    def retract(self, start: int) -> None:
        """Take back the deltas of a body from `start` on: it ends earlier."""
        if not self.silent:
            self.events.append(Retract(start))

    def warn(self, code: str, message: str, span: Span) -> None:
        self.problems.append(Problem("scan", code, "warning", message, "", span))

    def add(self, segment: Segment) -> None:
        self.segments.append(segment)
        self.text_start = segment.span.end

    def end_text(self, at: int) -> None:
        """Make the open text up to `at` a segment, if there is any."""
        start = self.text_start
        if at > start:
            segment = make_segment("text", Span(start, at))
            self.segments.append(segment)
            self.text_start = at
            if at - start >= SHORTEST:
                self.texts.append(segment)
            if at - start > 1:
                self.said.append(segment)

    def markup(self, start: int, end: int) -> None:
        """Add characters that are neither text nor call, if there are any."""
        if end > start:
            span = Span(start, end)
            if not self.silent:
                self.events.append(Markup(span))
            self.add(Segment("markup", span))

    def reasoning(self, start: int, end: int, closed: bool) -> None:
        """Add reasoning whose deltas were reported before, if there is any."""
        if end > start:
            span = Span(start, end)
            segment = Segment("reasoning", span, span, closed)
            self.said.append(segment)
            self.add(segment)

    def call(
        self,
        segment: Segment,
        closer: int | None,
        calls: tuple[ToolCall, ...],
        list_head: str = "",
    ) -> None:
        """Add a call's segment and the calls of its body.

        closer: where its closer begins, None for text that was held back, and so made no events.
        list_head: what a list of calls begins with in this format.
        """
        if len(calls) > 1:
            calls = halved(calls, self._feed.text_of(segment.span))
        again = bool(list_head and self.calls) and self._begins_list(segment, list_head)
        self.segments.append(segment)
        self.text_start = end = segment.span.end
        if (
            self.echoes is not None
            or self.turn_end is not None
            or self.open_thought is not None
            or (self.calls and (self.said or again or self.repeats is not None))
        ):
            calls = self._doubted(calls, again)
        self.said.clear()
        self.calls.extend(calls)
        if not self.silent:
            self.events.append(
                Recovered(segment.span, calls)
                if closer is None
                else CallEnd(Span(closer, end), calls)
            )

    def _begins_list(self, segment: Segment, head: str) -> bool:
        # Another list or section begins here. One of calls with delimiters of their own begins
        # with markup.
        start = segment.span.start
        text = "".join(self._feed.text_of(Span(start, start + _LONGEST_HEAD)).split())
        if text.startswith((head, *_list_heads())) or _LIST.match(text):
            return True
        for before in reversed(self.segments):
            if before.kind != "text":
                return before.kind == "markup"
        return False

    def _doubted(self, calls: tuple[ToolCall, ...], again: bool) -> tuple[ToolCall, ...]:
        # Adds reasons not to execute them: an echo, the end of the turn, a repetition. again: they
        # begin another list.
        if self.echoes is not None:
            calls = self.echoes.judge(calls)
        if self.open_thought is not None:
            code, message = "call.after-open-reasoning", _IN_OPEN_THOUGHT
            calls = tuple(as_draft(call, code, message) for call in calls)
        end = self.turn_end
        if end is not None:
            # A body may have several calls, and the end of the turn between two of them.
            calls = tuple(
                as_draft(call, "call.after-turn", _AFTER_TURN)
                if (call.name_span or call.segment.span).start >= end
                else call
                for call in calls
            )
        if self.calls and (self.said or again or self.repeats is not None):
            if self.repeats is None:
                self.repeats = Repeats(self._feed.text_of)
            # Those before a lone closing think tag are taken back.
            start = self.thought_end or 0
            meant = (c for c in self.calls if c.segment is None or c.segment.span.start >= start)
            calls = self.repeats.judge(meant, len(self.calls), self.said, calls, again)
        return calls

    # the parts of a body that is a whole message: it has the delimiters, its calls have none

    def message_call(self, segment: Segment, calls: tuple[ToolCall, ...]) -> None:
        span = segment.span
        if not self.silent:
            self.events += (CallStart(Span(span.start, span.start)), CallDelta(span))
        self.call(segment, span.end, calls)

    def message_words(self, span: Span, is_text: bool) -> None:
        # Text or reasoning inside a JSON string.
        if is_text:
            segment = Segment("text", span, escaped=True)
            if len(span) >= SHORTEST:
                self.texts.append(segment)
                self.said.append(segment)
        else:
            segment = Segment("reasoning", span, span, escaped=True)
        self.add(segment)
        if not self.silent:
            kind = TextDelta if is_text else ReasoningDelta
            self.events.append(kind(span, escaped=True))
