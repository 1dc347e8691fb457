"""Calls whose delimiters are damaged by a character or two, so that nothing is read."""

# How it works
# ------------
# Runs at the end of an answer without a readable call. The text is looked at as one in which single
# characters of the format's own marks are wrong: left out, doubled, changed, or swapped with the
# next. Each mark put right is a candidate, and so are all of them together. A candidate counts if
# nothing but valid calls are read from it. If all that count say the same, they are the calls; if
# they differ, no one can tell.
#
# What was handed out as text stays text: the calls come last, with their places in raw.
#
# Cost: bounded by the length of the text and by the number of candidates.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from itertools import chain, islice, pairwise

from ...arguments.rjson.positions import EditMap, apply_edits
from ...core.errors import NoSuchItem, UnwritableCall
from ...core.toolspec import ToolSpec
from ...core.types import (
    Edit,
    Origin,
    OriginTable,
    ParseResult,
    Problem,
    Recovered,
    Segment,
    Span,
    ToolCall,
)
from ...core.values.affixes import common_prefix, common_suffix
from ...formats.disambiguation import RULE, near_edits
from ...formats.registry import protocols
from ...formats.scan import longest_of
from ..state import Log, Setting
from .lost_calls import Reader

CODE = "call.damaged-mark"
_LONGEST = 16_000  # characters of a text that is looked at
_MOST_CANDIDATES = 24
_MOST_OTHERS = 4
_SHORTEST_NAME = 3  # one of a character or two is near to any other
_MOST_TOOLS = 32  # whose names are put into marks
_MARK = re.compile(r"<[^<>\n]{1,60}>|\[/?[A-Z_]{4,30}\]")
_ANY_MARK = re.compile(r"[<>\[\]{]")
_ESCAPED = re.compile(r"(?:\\[ux][0-9a-fA-F]{2,4}|&#?\w{1,8};|%[0-9a-fA-F]{2}|\\|[^\W_])\Z")
_LONGEST_ESCAPE = 10
_GOES_ON = re.compile(r"[\w.:-]")
# On the line of a call: anything but a whole sentence, and the signs of quotes, code and comments.
_SIGN = re.compile("[\"'`#*+/\u2018-\u201e\u00ab\u00bb]")
_BESIDE = re.compile(
    rf"[^\s.!?\u2026\u3002\uff01\uff1f][ \t]*\Z|(?<!\w){_SIGN.pattern}|{_SIGN.pattern}(?!\w)"
)
_BEHIND = re.compile(rf"[ \t]+\w|[ \t]*(?:{_SIGN.pattern}|\|)")
_STAND_IN = "zqx"  # a tool's name in the marks of a format
_SEVERAL = ("decode.ambiguous", "decode.duplicate-key", "decode.duplicate-string-tag")
# Problems of a text in which nothing was found, and that the calls answer.
_ANSWERED = ("call.stray-closer", "call.quoted-example")


@lru_cache(maxsize=128)
def _marks_of(id: str) -> tuple[str, ...]:
    # The marks around the calls of a format, with a stand-in for the tool's name.
    if id == "auto":
        return tuple(dict.fromkeys(mark for each in protocols() for mark in _marks_of(each)))
    protocol = protocols().get(id)
    if protocol is None:
        return ()
    tool = ToolSpec.of({"name": _STAND_IN})
    envelope, tools = protocol.envelope, {_STAND_IN: tool}
    literals = [*envelope.heads(tools), *envelope.closers_in_text(tools), *envelope.closers]
    literals += [f"<{_STAND_IN}>"] if f"<{_STAND_IN}" in literals else []
    marks = [literal for literal in literals if _MARK.fullmatch(literal)]
    with suppress(UnwritableCall):
        marks += _MARK.findall(protocol.write_call(_STAND_IN, "{}", tool))
    return tuple(dict.fromkeys(mark for mark in marks if len(mark) > 3))


@cache
def _any_mark() -> re.Pattern[str]:
    return re.compile(longest_of(_marks_of("auto")))


def _marks(setting: Setting) -> Iterator[str]:
    for mark in _marks_of(setting.protocol.id):
        if _STAND_IN in mark:
            for name in list(setting.tools)[:_MOST_TOOLS]:
                if len(name) >= _SHORTEST_NAME:
                    yield mark.replace(_STAND_IN, name)
        else:
            yield mark


def read_damaged_marks(log: Log, raw: str, setting: Setting, read: Reader) -> bool:
    """Add the calls of a text whose marks are damaged. Return True if there are some."""
    if not (setting.recovers and setting.options.repair) or len(raw) > _LONGEST:
        return False
    if any(call.readable or call.readings or _has_several(call) for call in log.calls):
        return False
    # What is shown keeps its frame only as it was written.
    if log.turn_end is not None or log.shown or not _ANY_MARK.search(raw):
        return False
    if not log.calls and not any(name in raw for name in setting.tools):
        return False
    hidden = [s.span for s in log.segments if s.kind == "reasoning"]
    edits = [
        edit
        for edit in _damages(raw, tuple(_marks(setting)), tuple(setting.tools))
        if not any(span.start < edit.span.end and edit.span.start < span.end for span in hidden)
    ]
    others = list(_other_damage(raw, log, setting))
    candidates = [*others, *_candidates(edits)]
    if not candidates:
        return False
    # Reasoning was read already, and no call in it counts.
    text = raw
    for span in hidden:
        text = text[: span.start] + " " * len(span) + text[span.end :]
    found: dict[tuple[tuple[str, str], ...], tuple[ParseResult, tuple[Edit, ...]]] = {}
    tried = False
    for candidate in candidates:
        result = read(apply_edits(text, candidate), setting.protocol.id)
        tried = tried or bool(result.calls)
        is_good = result.calls and all(call.valid and call.ok for call in result.calls)
        if is_good and candidate not in others:
            # Its mark is right now, so it is in its format.
            is_good = not any(p.code == "call.recovered" for c in result.calls for p in c.problems)
        if is_good and _stands_apart(result):
            key = tuple((call.name, call.arguments_json) for call in result.calls)
            found.setdefault(key, (result, candidate))
    if len(found) == 1:
        ((result, candidate),) = found.values()
        return _add(log, raw, result, candidate)
    if tried and not log.calls:
        several = len(found) > 1
        what = "can be put right in several ways" if several else "are damaged"
        message = f"this looks like a call whose delimiters {what}, and no call was read here"
        log.problems.append(Problem("scan", CODE, "error", message, "", candidates[0][0].span))
    return False


def _stands_apart(result: ParseResult) -> bool:
    # In a sentence, between quotes, in code or in a comment it is shown as likely as called.
    spans = [call.segment.span for call in result.calls]
    raw, start, end = result.raw, min(s.start for s in spans), max(s.end for s in spans)
    before = raw[raw.rfind("\n", 0, start) + 1 : start]
    after = raw[end:].partition("\n")[0]
    return not (_BESIDE.search(_MARK.sub("", before)) or _BEHIND.match(_MARK.sub("", after)))


def _has_several(call: ToolCall) -> bool:
    return any(problem.code in _SEVERAL for problem in call.problems)


def _damages(raw: str, marks: tuple[str, ...], names: tuple[str, ...]) -> tuple[Edit, ...]:
    sound = re.compile(longest_of(marks))
    # A mark of any format is sound, so that no format reads the calls of another.
    own_marks = sound.finditer(raw)
    whole = {match.span() for match in chain(own_marks, _any_mark().finditer(raw))}
    edits = near_edits(raw, marks)
    own = {mark.lower(): mark for mark in reversed(marks)}
    for match in re.compile(sound.pattern, re.IGNORECASE).finditer(raw):
        edits.append(Edit(Span(*match.span()), own[match[0].lower()], RULE))
    damaged = (e for e in edits if (e.span.start, e.span.end) not in whole)
    return _in_order(
        dict.fromkeys(_smallest(raw, e) for e in damaged if not _is_no_mark(raw, e, names))
    )


def _is_no_mark(raw: str, edit: Edit, names: tuple[str, ...]) -> bool:
    # The first sign is missing, and something that stands for it, or a word, is before, or a sign
    # of what is only shown is there. Or the last sign is, and the word goes on with anything but a
    # tool's name.
    start = edit.span.start
    before = max(0, start - _LONGEST_ESCAPE)
    is_other = raw[start] != edit.text[0]
    if is_other and (_SIGN.match(raw, start) or _ESCAPED.search(raw, before, start)):
        return True
    end = start + len(edit.text) - 1
    if not raw.startswith(edit.text[:-1], start) or raw.startswith(names, end):
        return False
    return _GOES_ON.match(raw, end) is not None


def _smallest(raw: str, edit: Edit) -> Edit:
    # Without what stays as it is, so that places next to it stay exact.
    old, new = edit.span.of(raw), edit.text
    head = common_prefix(old, new)
    tail = common_suffix(old[head:], new[head:])
    span = Span(edit.span.start + head, edit.span.end - tail)
    return Edit(span, new[head : len(new) - tail], edit.rule)


def _candidates(edits: Sequence[Edit]) -> Iterator[tuple[Edit, ...]]:
    yield from ((edit,) for edit in edits[:_MOST_CANDIDATES])
    # All damages at once, each put right in the first way that lets the others be.
    apart: list[Edit] = []
    for edit in edits:
        if not apart or edit.span.start >= apart[-1].span.end:
            apart.append(edit)
    if len(apart) > 1:
        yield tuple(apart)
        yield from pairwise(apart)


# Damage that is no single character: each is one candidate.
_LOST_COLON = re.compile(r"""(["'])(name|tool|tool_name|function)\s?=\s?(?=\1)""")
_WRAPPED = re.compile(
    r"""\s*\{\s*(?:"role"\s*:\s*"assistant"\s*,\s*)?"(?:content|text|message|response|output)"\s*:"""
    r"""\s*("(?:[^"\\]|\\.)*+")\s*\}\s*"""
)
_STRINGS = re.compile(r'\s*\[\s*"[^"\\]*+"(?:\s*,\s*"[^"\\]*+")*+\s*\]\s*')
_PYTHON_FENCE = re.compile(r"^`{3,}[ \t]*(?P<word>python|py)(?=[ \t]*\n\s*\[\s*\{)", re.MULTILINE)
_LAST_CLOSER = re.compile(r"\s*(?P<closer></[\w:]{1,40}>)\s*\Z")
_ELEMENTS = re.compile(
    r"^(?P<head>[*`]{0,2}(?P<name>[\w.-]{1,128})[*`]{0,2}):?\s*"
    r"(?:<(?P<key>[\w.-]{1,64})>[^<]*+</(?P=key)>(?P<end>)\s*+)+\Z",
    re.MULTILINE,
)


def _other_damage(raw: str, log: Log, setting: Setting) -> Iterator[tuple[Edit, ...]]:
    for match in islice(_LOST_COLON.finditer(raw), _MOST_OTHERS):
        yield (Edit(Span(*match.span()), f"{match[1]}{match[2]}{match[1]}: ", RULE),)
    if wrapped := _WRAPPED.fullmatch(raw):
        inner = _text_of_json(wrapped[1])
        if inner is not None:
            start, end = wrapped.start(1) + 1, wrapped.end(1) - 1
            ends = Edit(Span(0, start), "", RULE), Edit(Span(end, len(raw)), "", RULE)
            yield ends[0], Edit(Span(start, end), inner, RULE), ends[1]
    if "(" in raw and _STRINGS.fullmatch(raw):
        yield tuple(Edit(Span(*m.span()), "", RULE) for m in re.finditer('"', raw))
    for match in islice(_PYTHON_FENCE.finditer(raw), _MOST_OTHERS):
        yield (Edit(Span(*match.span("word")), "json", RULE),)
    elements = _ELEMENTS.search(raw)
    if elements and elements["name"] in setting.tools:
        name, end = elements["name"], elements.end("end")
        opener = Edit(Span(*elements.span("head")), f"<{name}>", RULE)
        yield opener, Edit(Span(end, end), f"</{name}>", RULE)
    last = log.calls[-1] if log.calls else None
    if last is not None and last.name_span is not None and last.protocol in protocols():
        closer = _LAST_CLOSER.match(raw, last.name_span.end)
        own = [mark for mark in reversed(_marks_of(last.protocol)) if mark.startswith("</")]
        if closer and own:
            yield (Edit(Span(*closer.span("closer")), own[0], RULE),)


def _text_of_json(literal: str) -> str | None:
    try:
        return str(json.loads(literal))
    except ValueError:
        return None


def _add(log: Log, raw: str, result: ParseResult, edits: tuple[Edit, ...]) -> bool:
    back = EditMap(edits)

    def span_in(span: Span) -> Span:
        return Span(*back.raw_span(span.start, span.end))

    calls: list[ToolCall] = []
    for index, call in enumerate(result.calls):
        own = replace(call, segment=Segment("call", span_in(call.segment.span)))
        own = replace(
            own,
            index=index,
            name_span=_name_in(raw, call, span_in),
            edits=tuple(replace(e, span=span_in(e.span)) for e in call.edits),
            steps=tuple(replace(s, span=s.span and span_in(s.span)) for s in call.steps),
            problems=tuple(replace(p, span=p.span and span_in(p.span)) for p in call.problems),
            origins=_origins_in(call, back),
        )
        if log.echoes is not None:
            (own,) = log.echoes.judge((own,))
        home = _home(own, log.segments)
        if home is None:
            return False
        if log.segments[home].body is not None:  # of a call that could not be read
            span = log.segments[home].span
            log.segments[home] = Segment("recovered", span)
        message = "a mark of the call, or what is around it, is damaged, and was put right"
        note = Problem("scan", CODE, "warning", message, "", edits[0].span)
        calls.append(
            replace(
                own,
                segment_index=home,
                segment=log.segments[home],
                problems=(note, *own.problems),
                edits=_in_order((*own.edits, *(edits if index == 0 else ()))),
            )
        )
    log.calls[:] = calls
    log.problems[:] = [p for p in log.problems if p.code not in _ANSWERED]
    log.problems += [
        replace(p, span=p.span and span_in(p.span)) for p in result.problems if p.span is not None
    ]
    log.shown.clear()
    if not log.silent:
        log.events.append(Recovered(Span(len(raw), len(raw)), tuple(calls)))
    return True


def _name_in(raw: str, call: ToolCall, span_in: Callable[[Span], Span]) -> Span | None:
    # None where a damaged mark is in it.
    span = span_in(call.name_span) if call.name_span else None
    text = span.of(raw) if span else ""
    is_exact = text in (call.name, call.name.replace(".", "_")) or "\\" in text or "&" in text
    return span if is_exact else None


def _in_order(edits: Iterable[Edit]) -> tuple[Edit, ...]:
    return tuple(sorted(edits, key=lambda edit: (edit.span.start, edit.span.end)))


def _origins_in(call: ToolCall, back: EditMap) -> OriginTable:
    def table() -> dict[str, Origin]:
        return {
            path: replace(o, span=Span(*back.raw_span(o.span.start, o.span.end)))
            for path, o in call.origins.get().items()
        }

    return OriginTable(table)


def _home(call: ToolCall, segments: list[Segment]) -> int | None:
    # The segment that holds the call's name and arguments.
    try:
        root = call.origin("").span
    except NoSuchItem:
        root = call.segment.span
    start = min(root.start, call.name_span.start if call.name_span else root.start)
    for i, segment in enumerate(segments):
        if segment.span.start <= start and root.end <= segment.span.end:
            return i
    return None
