"""Calls that are not the model's own, or not meant twice: echoes of the request, repeated sets."""

# How it works
# ------------
# A text is folded once: what quoting adds or takes away is dropped (white space, quotes, prefixes
# of lines, backslashes, characters without width), and one level of escaping is read (HTML, JSON,
# percent signs). Two texts are the same text, quoted differently, when they fold to the same.
#
# State: `text` is the folded text. `_folded` and `_starts` say where each kept run begins in it
# and in the text it was made from, so that a place found in one is a place in the other.
#
# Invariant: both sides are folded by the same rules, so that a character that is dropped though it
# meant something (the minus sign) makes two texts alike, but never two copies different.
#
# Cost: one regular expression over the text; a search is one `str.find`, and a few more where the
# place found is only a part of a longer word.
#
# How it works
# ------------
# A model that quotes a mail quotes the tool calls in it too. So each call that could be executed
# is looked for in the texts of users, tools and documents, both sides folded (see `Folded`). What
# is looked for is the call's own text: its name together with its arguments as the format writes
# them. Arguments that a user said in prose are not that text.
#
# State: the texts of the request, what each own text came to, and `_left`, the characters that
# may still be searched.
#
# Invariant: a call is judged once, when it is logged, and the judgement depends on the calls
# before it alone; so it is the same for every chunking.
#
# Cost: a text of the request is folded once, and a search is one pass over it. All searches
# together read at most _PASSES times the request. A call that comes when that is spent cannot be
# cleared, and is refused as well: no honest answer has so many different calls.
#
# How it works
# ------------
# Calls with nothing but white space, marks or numbers between them are one group: a call that is
# there twice is meant twice. Words or reasoning begin another group, and so does a blank line
# behind several calls that none parts. In it a call that an earlier group has is the same call once
# more, and a draft; what is new in it counts.
#
# Invariant: a decision looks back only, so that a stream, which has handed out the earlier calls,
# says the same as a parse.
#
# Cost: nothing up to the first call behind words. Then one comparison a call.

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from html import unescape
from typing import Any, TypeAlias

from ..core.errors import NoSuchItem, UnreadableInput
from ..core.types import ParseOptions, ParseResult, Problem, Segment, Source, Span, ToolCall
from ..core.values import leaves, read_strict, write_canonical

_WIDTHLESS = "\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
_DROPPED = (
    r"\s\"'`\u201c\u201d\u201e\u2018\u2019\u201a\u00ab\u00bb\u2039\u203a"
    rf">|*#+~\-\u2022{_WIDTHLESS}"
)
_FOLDED_TOKEN = re.compile(
    # Line breaks, with the sign of a comment behind them. All that is looked through is dropped in
    # one go, so that a long row of line breaks or backslashes is passed once.
    r"\\++[nrt](?:\s*+//)?|\n\s*+(?://)?"
    r"|\\++u(?P<unit>[0-9a-fA-F]{4})|\\++x(?P<byte>[0-9a-fA-F]{2})|\\++"
    r"|%(?P<percent>[2-7][0-9a-fA-F])"
    r"|(?P<entity>&(?:amp;)*(?:lt|gt|quot|apos|nbsp|amp|\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6});)"
    rf"|(?P<kept>[^\\&%{_DROPPED}]+|[&%])"
)
_DROPPED_CHARACTER = re.compile(rf"[\\{_DROPPED}]")
_TRIES = 64  # places looked at for one text that stands as a part of longer words
_MOST_TEXTS = 32


class Folded:
    """A text folded for comparison, with the way back to its own offsets."""

    def __init__(self, source: str) -> None:
        self.source = source
        self._folded: list[int] = []
        self._starts: list[int] = []
        runs: list[str] = []
        size = 0
        for match in _FOLDED_TOKEN.finditer(source):
            run = _kept(match)
            if run:
                self._folded.append(size)
                self._starts.append(match.start())
                runs.append(run)
                size += len(run)
        self.text = "".join(runs)

    def find(self, needle: str) -> Span | None:
        # The first place, as a span of `source`. One inside a longer word or number does not
        # count.
        at = -1
        for _ in range(_TRIES):
            at = self.text.find(needle, at + 1)
            if at < 0:
                return None
            if self._apart(at) and self._apart(at + len(needle)):
                return Span(self._offset(at), self._offset(at + len(needle) - 1) + 1)
        return None

    def _apart(self, at: int) -> bool:
        text = self.text
        if not 0 < at < len(text) or not (text[at - 1].isalnum() and text[at].isalnum()):
            return True
        run = bisect_right(self._folded, at) - 1
        return self._folded[run] == at

    def _offset(self, at: int) -> int:
        run = bisect_right(self._folded, at) - 1
        return self._starts[run] + at - self._folded[run]


def fold(text: str) -> str:
    """The folded form of a text.

    >>> fold('&gt; {\\\\"a\\\\": 1}') == fold('{"a": 1}')
    True
    """
    return "".join(filter(None, map(_kept, _FOLDED_TOKEN.finditer(text))))


@lru_cache(maxsize=_MOST_TEXTS)
def folded(source: str) -> Folded:
    # The last few are kept: conversations repeat the texts of their requests.
    return Folded(source)


def _kept(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return ""
    token = match[kind]
    if kind == "kept":
        return token
    if kind == "entity":
        character = unescape(token.replace("amp;", "") if token.count("amp;") > 1 else token)
        # `&amp;lt;` is a `<` that was escaped twice.
        while character.startswith("&") and character != (again := unescape(character)):
            character = again
    else:
        character = chr(int(token, 16))
    return _DROPPED_CHARACTER.sub("", character)


_OURS = frozenset(("system", "developer", "assistant", "model", "ai"))
"""roles whose text the application or the model itself wrote"""

NO_TEXT = ("image", "input_image", "audio", "input_audio", "video", "media")
_RESULTS = ("function_call_output", "tool_result", "custom_tool_call_output")
MOST_NESTED = 8  # levels of parts inside parts


@dataclass(frozen=True, slots=True)
class RequestText:
    """The text of one message. foreign: another than application and model wrote it."""

    role: str
    message: int
    text: str

    @property
    def foreign(self) -> bool:
        # A user, a tool or a document said it, so a call in it is not the model's.
        return self.role not in _OURS

    def find(self, needle: str) -> Source | None:
        span = folded(self.text).find(needle)
        return None if span is None else Source(self.role, self.message, span)


def request_texts(request: Any) -> tuple[RequestText, ...]:
    """Return the texts of the request, in the order of its messages, documents behind them.

    request: OpenAI messages, a mapping with `messages` (or `input`), or an object with the
    attribute `messages`, or None for nothing. Raises UnreadableInput for anything else.

    >>> [t.role for t in request_texts([{"role": "user", "content": "Hello"}])]
    ['user']
    """
    if request is None:
        return ()
    if isinstance(request, Mapping):
        messages = request.get("messages", request.get("input"))
        documents = request.get("documents") or ()
    else:
        messages = getattr(request, "messages", request)
        documents = ()
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if messages is None or not isinstance(messages, Iterable) or isinstance(messages, Mapping):
        raise UnreadableInput(
            "request is what was asked",
            got=type(request).__name__,
            expected="OpenAI messages, or a mapping with `messages`",
        )

    texts: list[RequestText] = []
    for i, message in enumerate(messages):
        # Shapes of chat completions and of the Responses API.
        if not isinstance(message, Mapping):
            dump = getattr(message, "model_dump", None)
            message = dump() if callable(dump) else {"role": "user", "content": message}
        role = message.get("role")
        if not isinstance(role, str):
            kind = message.get("type")
            # Items of the Responses API without a role are the model's, or results.
            role = "tool" if kind in _RESULTS else "user" if kind is None else "assistant"
        content = message.get("content", message.get("output"))
        texts.append(RequestText(role, i, "\n".join(_texts_in(content))))
    texts += [RequestText("document", i, "\n".join(_texts_in(d))) for i, d in enumerate(documents)]
    return tuple(t for t in texts if t.text)


def _texts_in(content: Any, depth: int = 0) -> Iterator[str]:
    # Images and similar parts have no text.
    if content is None or depth > MOST_NESTED:
        return
    if isinstance(content, str):
        yield content
        return
    if isinstance(content, Mapping):
        kind = content.get("type")
        if isinstance(kind, str) and kind.startswith(NO_TEXT):
            return
        parts = [content[k] for k in ("title", "text", "content", "output") if k in content]
        content = parts or dict(content)
        depth += 1
    if isinstance(content, (list, tuple)):
        for part in content:
            yield from _texts_in(part, depth + 1)
        return
    try:
        yield write_canonical(content)
    except (TypeError, ValueError, RecursionError):
        text = ""
        with suppress(Exception):  # objects of somebody else's may do anything
            text = str(content)
        yield text


_PASSES = 1024
_MOST_SOURCES = 8  # places told of one value
_MOST_WORDS = 48  # of a value that does not stand anywhere as a whole
_SHORTEST_PART = 8  # characters, folded, of a part of a value that is told as copied
_MOST_VALUES = 256
_STRUCTURE = frozenset("(){}[]<=:")
# A name that folds to itself: nothing before it can be the beginning of an escape that goes on.
_PLAIN_NAME = re.compile(r"[\s\"'>(\[{:=<|,]?([A-Za-z_][\w.]*)", re.ASCII)


class Echoes:
    """Compares one answer's calls with the texts of its request. raw_of: the text of a span."""

    def __init__(
        self,
        texts: tuple[RequestText, ...],
        options: ParseOptions,
        raw_of: Callable[[Span], str],
    ) -> None:
        self._texts = texts
        self._allow = options.echoes == "allow"
        self._raw_of = raw_of
        self._judged: dict[str, Source | None] = {}
        self._named: dict[str, bool] = {}
        self._left = _PASSES * sum(len(t.text) for t in texts) + 1

    def judge(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        return tuple(self._judge(call, len(calls) == 1) for call in calls)

    def _judge(self, call: ToolCall, alone: bool) -> ToolCall:
        # alone: the only call of its segment.
        if not call.readable:
            return call
        echo: Source | None = None
        spent = False
        if call.status in ("ok", "unknown_tool") and self._may_be_named(call):
            own = fold(self._raw_of(_own_span(call, alone)))
            if not _STRUCTURE.isdisjoint(own):
                echo, spent = self._find(own)

        raw_of, texts = self._raw_of, self._texts
        table = call.origins.with_sources(lambda: _sources_of(call, texts, raw_of, echo))
        if echo is None and not spent:
            return replace(call, origins=table)
        if echo is None:
            message = "so many calls cannot be compared with the request, so this one is refused"
        else:
            place = f"characters {echo.span.start} to {echo.span.end}"
            message = f"this call's own text is in {echo} ({place}): somebody else wrote it"
        severity: Any = "warning" if self._allow else "error"
        problem = Problem("scan", "call.echoed", severity, message, "", call.segment.span)
        return replace(
            call,
            status=call.status if self._allow else "echoed",
            problems=(problem, *call.problems),
            origins=table,
        )

    def _may_be_named(self, call: ToolCall) -> bool:
        # The own text has the name in it: where no one else wrote that, the call need not be
        # traced to its text, which costs more than all the rest here.
        at = call.name_span
        if at is None:
            return True
        before = self._raw_of(Span(max(0, at.start - 1), at.end))
        plain = _PLAIN_NAME.fullmatch(before)
        if plain is None:
            return True
        name = plain[1]
        if name not in self._named:
            self._left -= sum(len(text.text) for text in self._texts if text.foreign)
            self._named[name] = self._left < 0 or any(
                name in folded(text.text).text for text in self._texts if text.foreign
            )
        return self._named[name]

    def _find(self, own: str) -> tuple[Source | None, bool]:
        # The first place in the text of others; True if the budget is spent and no one can tell.
        if own in self._judged:
            return self._judged[own], False
        place: Source | None = None
        for text in self._texts:
            if not text.foreign:
                continue
            self._left -= len(text.text)
            if self._left < 0:
                return None, True
            place = text.find(own)
            if place is not None:
                break
        self._judged[own] = place
        return place, False


def echoes_of(request: Any, options: ParseOptions, raw_of: Callable[[Span], str]) -> Echoes | None:
    # request: texts that were read already, or a request as for `request_texts`, which may raise.
    is_read = isinstance(request, tuple) and all(isinstance(t, RequestText) for t in request)
    texts = request if is_read else request_texts(request)
    return Echoes(texts, options, raw_of) if texts else None


def judged(result: ParseResult, request: Any) -> ParseResult:
    """Return a result that our parser did not make with its calls judged by the request that it
    answers. Raises UnreadableInput for anything that is not a request.
    """
    raw = result.raw
    echoes = echoes_of(request, result.options, lambda span: span.of(raw)) if result.calls else None
    if echoes is None:
        return result
    segments = [c.segment_index for c in result.calls]
    calls = tuple(
        echoes._judge(call, segments.count(call.segment_index) == 1) for call in result.calls
    )
    return replace(result, calls=calls)


# the call's own text


def _own_span(call: ToolCall, alone: bool) -> Span:
    # The call's own text: name and arguments as the format joins them. Without arguments that
    # says little, and all of the segment counts, delimiters included.
    segment = call.segment.span
    name = call.name_span
    if name is None or (alone and call.arguments_json in ("", "{}")):
        return segment
    try:
        root = call.origin("").span
    except NoSuchItem:
        return segment
    start, end = min(name.start, root.start), max(name.end, root.end)
    # A bracket of the call's own beside the hull tells `f(a=1)` from prose that only begins so.
    return Span(max(start - 1, segment.start), min(end + 1, segment.end))


# where values are from


def _sources_of(
    call: ToolCall,
    texts: tuple[RequestText, ...],
    raw_of: Callable[[Span], str],
    echo: Source | None,
) -> dict[str, tuple[Source, ...]]:
    # JSON Pointer -> places of that leaf's value in the request; '' has the whole call's, for an
    # echo.
    table: dict[str, tuple[Source, ...]] = {"": (echo,) if echo else ()}
    origins = call.origins.get()
    arguments = read_strict(call.arguments_json)
    for path, value in list(leaves(arguments))[:_MOST_VALUES]:
        if not path or value in ("", None) or isinstance(value, (bool, dict, list)):
            continue
        origin = origins.get(path)
        if isinstance(value, str):
            text = value
        else:  # a number, as the model wrote it
            exact = origin is not None and origin.exact
            text = raw_of(origin.span) if origin and exact else write_canonical(value)
        table[path] = _places(text, texts)
    return table


def _places(value: str, texts: tuple[RequestText, ...]) -> tuple[Source, ...]:
    # Longest first; the text of others before that of application and model.
    needle = fold(value)
    if not needle:
        return ()
    places = [place for text in texts if (place := text.find(needle)) is not None]
    words = [] if places else [fold(word) for word in value.split()[:_MOST_WORDS]]
    if len(words) > 1:
        places = [p for text in texts if (p := _longest_part(words, text)) is not None]
    foreign = {(t.role, t.message): t.foreign for t in texts}
    places.sort(key=lambda p: (-len(p.span), not foreign[p.role, p.message], p.message))
    return tuple(places[:_MOST_SOURCES])


def _longest_part(words: list[str], text: RequestText) -> Source | None:
    # Both ends of the run only move forward, so a text is searched twice a word at most.
    best: Source | None = None
    longest = _SHORTEST_PART - 1
    start = 0
    for end in range(1, len(words) + 1):
        while start < end:
            run = "".join(words[start:end])
            place = text.find(run) if run else None
            if place is not None:
                if len(run) > longest:
                    best, longest = place, len(run)
                break
            start += 1
    return best


REPEATED = "call.repeated-set"
_REPEATED_MESSAGE = "the same call is executed already: the answer says it again"
_FENCE_LINE = re.compile(r"^[ \t]*`{3,}[^`\n]*$", re.MULTILINE)
_BLANK_LINE = re.compile(r"\n[ \t\r]*+\n")
_LETTER = re.compile(r"[^\W\d_]")
_Key: TypeAlias = tuple[str, str]


_INSIDE = "the call is inside another call, or in what only shows it, which does not end before"


def as_draft(call: ToolCall, code: str = "call.inside-value", message: str = _INSIDE) -> ToolCall:
    # A call that is quoted, by default in another one: it is shown and never executed.
    span = call.segment.span if call.segment else None
    problem = Problem("scan", code, "error", message, "", span)
    # One that could not be read keeps saying why.
    status = "draft" if call.status in ("ok", "unknown_tool") else call.status
    return replace(call, status=status, problems=(problem, *call.problems))


class Repeats:
    """Finds the repeated calls of one text. text_of: the characters of a span of raw."""

    def __init__(self, text_of: Callable[[Span], str]) -> None:
        self._text_of = text_of
        self.active = False  # a group was begun behind another one
        self._has_blank = False  # a blank line parts calls of the group
        self._size = 0  # calls of the group, of a group that is not the first
        self._total: Counter[_Key] = Counter()
        self._before: Counter[_Key] = Counter()
        self._group: Counter[_Key] = Counter()

    def forget(self) -> None:
        # All calls so far were in reasoning, and none of them is executed.
        self.active = False
        self._has_blank = False

    def judge(
        self,
        earlier: Iterable[ToolCall],
        count: int,
        texts: Sequence[Segment],
        calls: tuple[ToolCall, ...],
    ) -> tuple[ToolCall, ...]:
        # earlier: calls that may be executed so far. count: of all calls. texts: what was said
        # after the last. Repeated calls come back as drafts.
        is_blank = any(_BLANK_LINE.search(self._text_of(s.span)) for s in texts)
        size = self._size if self.active else count
        if any(map(self._parts, texts)) or (is_blank and size > 1 and not self._has_blank):
            if not self.active:
                self.active = True
                self._total = Counter(_key(call) for call in earlier if call.ok and call.valid)
            self._before, self._group = Counter(self._total), Counter()
            self._size, self._has_blank = 0, False
        else:
            self._has_blank = self._has_blank or is_blank
        if not self.active:
            return calls
        self._size += len(calls)
        return tuple(map(self._judged, calls))

    def _judged(self, call: ToolCall) -> ToolCall:
        if not (call.ok and call.valid):
            return call
        key = _key(call)
        self._group[key] += 1
        if self._group[key] <= self._before[key]:
            return as_draft(call, REPEATED, _REPEATED_MESSAGE)
        self._total[key] += 1
        return call

    def _parts(self, segment: Segment) -> bool:
        if segment.kind == "reasoning":
            return True
        text = self._text_of(segment.span)
        return _LETTER.search(_FENCE_LINE.sub("", text) if "```" in text else text) is not None


def _key(call: ToolCall) -> _Key:
    try:
        return call.name, json.dumps(call.arguments, sort_keys=True, default=str)
    except RecursionError:
        return call.name, call.arguments_json
