"""Echoes: calls that are copied from the request, where a user, a tool or a document wrote them."""

# How it works
# ------------
# A model that quotes a mail quotes the tool calls in it too. So each executable call is searched in
# the texts of users, tools and documents, both sides folded (see `folding`). The needle is the
# call's own text: its name and arguments as the format writes them. Arguments that a user said in
# prose are not that text.
#
# State: the texts of the request, the verdict on each own text, and `_left`, the characters that
# may still be searched.
#
# Invariant: a call is judged once, when it is logged, and the judgement depends on the calls
# before it alone; so it is the same for every chunking.
#
# Cost: a text of the request is folded once, and a search is one pass over it. All searches
# together read at most _PASSES times the request. A call that comes when that is spent cannot be
# cleared, and is refused as well: no honest answer has so many different calls.

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from ...core.errors import NoSuchItem
from ...core.types import ParseOptions, ParseResult, Problem, Source, Span, ToolCall
from ...core.values import leaves, read_strict, write_canonical
from .folding import fold, holds
from .quotation import asks_for_example
from .request import RequestText, request_texts

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

    @cached_property
    def _last_words(self) -> str:
        said = [text.text for text in self._texts if text.role == "user"]
        return said[-1] if said else ""

    @property
    def asked(self) -> str:
        """The last words of the user, "" where they ask for an example of a call."""
        return "" if self.asks_for_example else self._last_words

    @cached_property
    def asks_for_example(self) -> bool:
        """Whether the last words of the user ask for an example of a call."""
        return asks_for_example(self._last_words)

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
                holds(text.text, name) for text in self._texts if text.foreign
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
