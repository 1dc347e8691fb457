"""Calls that another wrote: an answer's calls compared with the request it answers."""

# How it works
# ------------
# A model that quotes a mail quotes the tool calls in it too. So each call that could be executed
# is looked for in the texts of users, tools and documents, both sides folded (see `folding`). What
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

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ..core.errors import NoSuchItem
from ..core.types import Origin, ParseOptions, ParseResult, Problem, Source, Span, ToolCall
from ..core.values import Value, leaves, read_strict, write_canonical
from .folding import fold
from .request_texts import RequestText, request_texts

_PASSES = 1024
_MOST_SOURCES = 8  # places told of one value
_MOST_WORDS = 48  # of a value that does not stand anywhere as a whole
_SHORTEST_PART = 8  # characters, folded, of a part of a value that is told as copied
_MOST_VALUES = 256
_STRUCTURE = frozenset("(){}[]<=:")


class Echoes:
    """The judge of one answer's calls, by the request."""

    __slots__ = ("_allow", "_judged", "_left", "_raw_of", "_texts")

    def __init__(
        self,
        texts: tuple[RequestText, ...],
        options: ParseOptions,
        raw_of: Callable[[Span], str],
    ) -> None:
        """Begin an answer to the request of these texts.

        `raw_of` gives the text of a span.
        """
        self._texts = texts
        self._allow = options.echoes == "allow"
        self._raw_of = raw_of
        self._judged: dict[str, Source | None] = {}
        self._left = _PASSES * sum(len(t.text) for t in texts) + 1

    def judge(self, calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
        """Return the calls of one segment, those that are echoes marked as such."""
        if not self._texts:
            return calls
        return tuple(self._judge(call, len(calls) == 1) for call in calls)

    def _judge(self, call: ToolCall, alone: bool) -> ToolCall:
        """Return a call with its sources, and with its verdict where it could be executed.

        alone: it is the only one of its segment.
        """
        if not call.readable:
            return call
        own = fold(self._raw_of(_own_span(call, alone)))
        echo: Source | None = None
        spent = False
        if call.status in ("ok", "unknown_tool") and not _STRUCTURE.isdisjoint(own):
            echo, spent = self._find(own)

        raw_of, texts = self._raw_of, self._texts
        table = call.origins.with_sources(lambda: _sources_of(call, texts, raw_of, echo))
        if echo is None and not spent:
            return replace(call, origins=table)
        if echo is None:
            message = "so many calls cannot be compared with the request, so this one is refused"
        else:
            place = f"characters {echo.span.start} to {echo.span.end}"
            message = f"this call's own text stands in {echo} ({place}): somebody else wrote it"
        severity: Any = "warning" if self._allow else "error"
        problem = Problem("scan", "call.echoed", severity, message, "", call.segment.span)
        return replace(
            call,
            status=call.status if self._allow else "echoed",
            problems=(problem, *call.problems),
            origins=table,
        )

    def _find(self, own: str) -> tuple[Source | None, bool]:
        """Return the first place of a call's own text in the text of others.

        True if no one can tell.
        """
        if own in self._judged:
            return self._judged[own], False
        place: Source | None = None
        for text in self._texts:
            if not text.foreign:
                continue
            self._left -= len(text.text)
            if self._left < 0:
                return None, True
            span = text.folded.find(own)
            if span is not None:
                place = Source(text.role, text.message, span)
                break
        self._judged[own] = place
        return place, False


def echoes_of(request: Any, options: ParseOptions, raw_of: Callable[[Span], str]) -> Echoes | None:
    """Return the judge for an answer to a request, or None if nothing is known of it.

    Raises UnreadableInput for anything that is not a request.
    """
    texts = request if _are_texts(request) else request_texts(request)
    return Echoes(texts, options, raw_of) if texts else None


def _are_texts(request: Any) -> bool:
    """The request was read already."""
    return isinstance(request, tuple) and all(isinstance(t, RequestText) for t in request)


def judged(result: ParseResult, request: Any) -> ParseResult:
    """Return a finished result with its calls judged by the request it answers.

    For results that our parser did not make. Raises UnreadableInput for anything that is not a
    request.
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
    """Return the span in raw of a call's own text: its name and its arguments, as the format joins
    them.

    A call without arguments says little, so all of its segment is its text, delimiters included.
    """
    segment = call.segment.span
    root = _root_of(call)
    name = call.name_span
    bare = call.arguments_json in ("", "{}")
    if name is None or root is None or (alone and bare):
        return segment
    start, end = min(name.start, root.start), max(name.end, root.end)
    # A bracket of the call's own beside the hull tells `f(a=1)` from prose that only begins so.
    return Span(max(start - 1, segment.start), min(end + 1, segment.end))


def _root_of(call: ToolCall) -> Span | None:
    """Return the span of all arguments, or None if they have no place."""
    try:
        return call.origin("").span
    except NoSuchItem:
        return None


# where values are from


def _sources_of(
    call: ToolCall,
    texts: tuple[RequestText, ...],
    raw_of: Callable[[Span], str],
    echo: Source | None,
) -> dict[str, tuple[Source, ...]]:
    """Return JSON Pointer -> the places in the request where that leaf's value stands.

    '' has the place of the whole call, where it is an echo.
    """
    table: dict[str, tuple[Source, ...]] = {"": (echo,) if echo else ()}
    origins = call.origins.get()
    arguments = read_strict(call.arguments_json)
    for path, value in list(leaves(arguments))[:_MOST_VALUES]:
        if path and value not in ("", None) and not isinstance(value, (bool, dict, list)):
            table[path] = _places(_value_text(value, origins.get(path), raw_of), texts)
    return table


def _value_text(value: Value, origin: Origin | None, raw_of: Callable[[Span], str]) -> str:
    """Return the text to look for: a string itself, a number as the model wrote it."""
    if isinstance(value, str):
        return value
    if origin is not None and origin.exact:
        return raw_of(origin.span)
    return write_canonical(value)


def _places(value: str, texts: tuple[RequestText, ...]) -> tuple[Source, ...]:
    """Return the places of a value, or of its longest part that stands somewhere.

    Longest first.

    The text of others goes before the texts of application and model.
    """
    needle = fold(value)
    if not needle:
        return ()
    whole = [_place(text, needle) for text in texts]
    places = [p for p in whole if p is not None] or _parts(value, texts)
    foreign = {(t.role, t.message): t.foreign for t in texts}
    places.sort(key=lambda p: (-len(p.span), not foreign[p.role, p.message], p.message))
    return tuple(places[:_MOST_SOURCES])


def _place(text: RequestText, needle: str) -> Source | None:
    """Return the first place of a folded text in a message."""
    span = text.folded.find(needle)
    return None if span is None else Source(text.role, text.message, span)


def _parts(value: str, texts: tuple[RequestText, ...]) -> list[Source]:
    """Return the longest run of a value's words in each text that has one worth telling."""
    words = [fold(word) for word in value.split()[:_MOST_WORDS]]
    if len(words) < 2:
        return []
    return [p for text in texts if (p := _longest_part(words, text)) is not None]


def _longest_part(words: list[str], text: RequestText) -> Source | None:
    """Return the place of the longest run of words that stands in a text.

    None for a short one.

    Both ends of the run only move forward, so a text is searched twice a word at most.
    """
    best: Source | None = None
    longest = _SHORTEST_PART - 1
    start = 0
    for end in range(1, len(words) + 1):
        while start < end:
            run = "".join(words[start:end])
            place = _place(text, run) if run else None
            if place is not None:
                if len(run) > longest:
                    best, longest = place, len(run)
                break
            start += 1
    return best
