"""Plain calls: the text that a format itself writes for a call, as a pattern that reads it.

A format writes a call of a made-up tool. Its name and its arguments are holes in that text, and the
rest is literal, apart from white space that may be there. What the long way says of the made-up
text (segments, spans, ids, origins) is counted from the holes. A text that matches then says the
same with other names and values.
"""

# How it works
# ------------
# `learn` asks the codec for texts and finds the holes: a JSON object, the text of one in a JSON
# string, or parameters, each written as its kind of value is. At each place between two signs it
# tries whether the long way takes white space as well. The boundaries of what the long way found
# become groups of the pattern.
#
# Nothing is believed: each look reads several texts, other names and values among them, and what it
# reads otherwise than the long way it does not read at all.
#
# A value that could be more than a value (it holds an opener or a closer, it does not plainly fit
# its schema) is left to the long way, and so is a tool whose name is a word of the format.

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from json.decoder import scanstring  # type: ignore[attr-defined]
from json.encoder import encode_basestring
from typing import Any, NamedTuple, TypeAlias

from ..arguments.rjson.positions import find_places
from ..arguments.rjson.strict import read_next, too_deep
from ..arguments.schema.plain import fits, may_be_wrapped, parameter_names, read_texts
from ..arguments.schema.scalars import UNRECORDED, Record
from ..arguments.schema.view import view_of
from ..core.errors import ToolparseError
from ..core.toolspec import ToolSpec
from ..core.types import (
    Origin,
    OriginTable,
    ParseOptions,
    ParseResult,
    Problem,
    Segment,
    Span,
    Step,
    ToolCall,
)
from ..core.types.call import LateAccount, make_call, make_late_call
from ..core.types.spans import StepSpans, make_segment
from ..core.values import Value, write_canonical
from ..core.values.affixes import common_prefix, common_suffix
from ..formats.base import Decoded, Protocol
from ..formats.disambiguation import FORMAT_WORDS, names_below
from ..formats.json.header import NO_TOOL_WORDS
from ..formats.json.source import unescape_offsets
from ..formats.reasoning import MARKS
from ..formats.rxml.element import unescape
from .provenance import find_spans, trace_table
from .recognition.pages import may_be_page
from .recognition.repeats import second_half
from .resolve import Body
from .state import Setting

_NAME, _OTHER_NAME = "zq_look_up", "zq-other.tool"
_KEYS = ("zq_first", "zq_second", "zq_third")
_NAMES = (r"[A-Za-z_](?:[\w.-]{0,126}\w)?", r"[A-Za-z_]\w{0,127}")
# Roles, channels, tags of thoughts and the words of formats: no name that a pattern is sure of.
_NO_NAMES = frozenset(
    (
        *NO_TOOL_WORDS, *FORMAT_WORDS, *re.findall(r"<(\w+)>", " ".join(m.opener for m in MARKS)),
        "assistant", "commentary", "developer", "final", "system", "user",
    )
)  # fmt: skip
_SPACES = ("", " ", "\n", "\n  ")
_SPACE_RUN = r"[ \t\r\n]{0,40}+"
# Where white space may be tried: around JSON's punctuation, at both ends of JSON, between tags.
_PLACES = re.compile(
    r"""(?<=[{\[,:])(?=["{\[])|(?<=["}\]])(?=[,:}\]])|(?<=[^\s{\[,:"])(?=[{\[])"""
    r"""|(?<=[}\]])(?=[^\s}\],:"])|(?<=>)(?=<)|(?<=[}\]])\Z|\s+"""
)
_KEY = r"[A-Za-z_]\w{0,63}"
# Values that mean the same in each notation; of text without quotes only what nothing else is.
_NUMBERS = {
    "integer": r"(?:0|-?[1-9][0-9]{0,14})(?![\w.])",
    "number": r"-?(?:0|[1-9][0-9]{0,9})\.[0-9]{0,8}[1-9](?![\w.])",
}
_BARE_TEXT = (
    r"(?!(?i:true|false|null|none|nan|inf|infinity|yes|no|on|off|y|n)\b)[A-Za-z][\w./(),+-]*+"
    r"(?: [\w./()+-][\w./(),+-]*+)*"
)
_BARE_KEY = re.compile(r"[A-Za-z_]\w*(?=:)")
_NAMED = "&(?:amp|lt|gt|quot|apos|#[0-9]{1,5});"
_NEVER = re.compile("(?!)")
_FOLDED = {"i": "iI\u0130\u0131", "k": "kK\u212a", "s": "sS\u017f"}  # as (?i:…) takes them
_LEVELS_INSIDE = 3  # of lists and objects that have a notation of the format's own
_LEVELS_AROUND = 8  # at most, of what is written around the arguments
_WORDS_BEFORE = "Let me look that up.\n"
LongWay: TypeAlias = Callable[[Setting, str, bool], ParseResult]
"""Reads a text; the flag: as a part of another one, which is quicker where no call is in it."""


# The holes


class _Json(NamedTuple):
    # A JSON object, or a JSON string that holds the text of one. The hole of a string ends behind
    # its closing quote.
    nested: bool

    def read_text(self, raw: str, start: int) -> tuple[Value, int] | None:
        try:
            text, end = scanstring(raw, start, True)
        except ValueError:
            return None
        item = read_next(text, 0)
        return None if item is None or item[1] != len(text) else (item[0], end)


class _Unit(NamedTuple):
    # How a parameter of one kind of value is written, with NUL for its name; text: of its value.
    opener: str
    text: str
    closer: str

    def pattern(self, key: int, group: str) -> str:
        # key: the group of the name. group: how that of the text begins.
        begin, end = map(re.escape, self.opener.split("\0"))
        closer = re.escape(self.closer).replace(re.escape("\1"), rf"\{key}")
        return f"{begin}({_KEY}){end}{group}{self.text}){closer}"


class _Guard(NamedTuple):
    # What a text between two tags may hold: tags, but none of the format, which has these words, in
    # any spelling; white space at its ends; references to characters.
    words: frozenset[str]
    takes_tags: bool = False
    takes_space: bool = False
    takes_references: bool = False

    def passes(self, raw: str, name: str, begin: int, end: int, tool: ToolSpec | None) -> bool:
        """Return True if a text surely is the value of a parameter, False where that is unsure."""
        text = raw[begin:end]
        inner = text.strip()
        if not inner:
            return not text or self.takes_space
        first, last = inner[0], inner[-1]
        if first in ">]" or last in "<]" or text[0] == "\r" or text[-1] == "\r":
            return False
        # From the right, which takes a sixth of the time.
        if raw.rfind("]]>", begin, end) >= 0:
            return False
        if first == last == '"':  # some formats take such quotes off
            return False
        if raw.rfind("<", begin, end) >= 0 and (
            raw.rfind(f"{name}>", begin, end) >= 0
            or (not self.takes_tags and _TAG.search(raw, begin, end))
            or _own_tags(self.words, tool.schema_json if tool else "{}").search(raw, begin, end)
        ):
            return False
        if not self.takes_space and len(inner) < len(text):
            return False
        no_reference = self.takes_references or raw.find(";", begin, end) < 0
        return no_reference or not _REFERENCE.search(raw, begin, end)


class _Tagged(NamedTuple):
    # Parameters whose texts hold tags: what one begins with, what ends it, what is between two.
    head: re.Pattern[str]
    closer: str
    sep: str

    def texts(self, raw: str, start: int) -> list[tuple[str, int, int]]:
        """Return name, start and end of each text."""
        texts: list[tuple[str, int, int]] = []
        while head := self.head.match(raw, start):
            end = raw.find(self.closer, head.end())
            if end < 0:
                break
            texts.append((head[1], head.end(), end))
            start = end + len(self.closer)
            if not raw.startswith(self.sep, start):
                break
            start += len(self.sep)
        return texts


class _Notation(NamedTuple):
    # How a list or an object is written where texts have quotes. strings: the pattern of a text,
    # its inside in a group. words: those for JSON's. escapes: the inside of a text may have some.
    strings: re.Pattern[str]
    pattern: str  # of the whole
    words: tuple[tuple[str, str], ...]
    escapes: bool

    def read(self, text: str) -> Value:
        """Return the value, NO_VALUE if it is none."""
        structure: list[str] = []
        texts: list[str] = []
        at = 0
        for quoted in self.strings.finditer(text):
            structure.append(text[at : quoted.start()])
            at = quoted.end()
            inner = quoted[quoted.lastindex or 0]
            if self.escapes and "\\" in inner:
                inner = _unquoted(inner, quoted[0][0])
            texts.append(encode_basestring(inner))
        structure.append(text[at:])
        marked = "\0".join(structure)
        for word, json_word in self.words:
            marked = marked.replace(word, json_word)
        marked = _BARE_KEY.sub(r'"\g<0>"', marked)
        parts = [""] * (2 * len(texts) + 1)
        parts[::2], parts[1::2] = marked.split("\0"), texts
        return _json_value("".join(parts))


class _Parameters(NamedTuple):
    # Parameters, one after the other. kinds: by group of `units`; None for texts that the schema
    # gives a type. row: all of them.
    row: re.Pattern[str]
    unit: re.Pattern[str]
    constants: Mapping[int, Value]
    untyped: bool
    stops: str  # characters that no value holds, but for those that `guard` looks at
    tagged: _Tagged | None = None
    guard: _Guard | None = None
    notation: _Notation | None = None
    root: tuple[int, int] | None = None


class _Call(NamedTuple):
    # What the long way says of the call whatever its name and its values are. problems: with the
    # groups of their spans.
    protocol: str
    has_place: bool  # of its name
    confidence: float
    steps: tuple[Step, ...]
    problems: tuple[tuple[Problem, int, int], ...]


class _Part(NamedTuple):
    # A segment of the written text. start, end, body: groups of the pattern.
    kind: Any
    start: int
    end: int
    body: tuple[int, int] | None
    closed: bool
    escaped: bool
    is_call: bool


@dataclass(slots=True, eq=False)
class Look:
    """One form in which a format writes a call. See the head of this module."""

    owner: Protocol
    hole: _Json | _Parameters
    start: str  # the character that a text of it begins with
    before: re.Pattern[str]
    after: re.Pattern[str]
    name_group: int
    id_group: int
    again_group: int
    call: _Call
    parts: tuple[_Part, ...]
    row: str  # the hole as it was written
    long_way: LongWay
    words: frozenset[str]  # of its literals: no tool may be called so
    bars: tuple[str, ...] = ()  # other literals that no value may hold
    takes_empty: bool = True
    takes_misfits: bool = False
    takes_words: bool = False
    takes_line: bool = False
    between: tuple[str, ...] = ()  # what may be between two calls
    fixed_marks: tuple[str, ...] | None = None

    def marks(self, setting: Setting) -> tuple[str, ...] | None:
        """Return the literals that no value may hold, None if a tool is called like a word here."""
        if not self.words.isdisjoint(setting.tools):
            return None
        if self.fixed_marks is not None:
            return self.fixed_marks
        envelope = self.owner.envelope
        literals = (
            *envelope.heads(setting.tools), *envelope.closers,
            *envelope.closers_in_text(setting.tools),
        )  # fmt: skip
        stops = self.hole.stops if isinstance(self.hole, _Parameters) else ""
        values = (
            t
            for t in literals
            if len(t.strip('{}[]",: \n')) > 1 and t not in self.row and not set(stops) & set(t)
        )
        marks = (*self.bars, *dict.fromkeys(values))
        if envelope.heads_are_fixed:
            self.fixed_marks = marks
        return marks

    def read(
        self, setting: Setting, marks: tuple[str, ...], raw: str, at: int
    ) -> tuple[list[Segment], list[ToolCall]] | None:
        """Return the segments and the calls of a text whose first opener is at `at`."""
        segments = [make_segment("text", Span(0, at))] if at else []
        if at and not self.takes_words:
            return None
        calls = self.read_row(setting, marks, raw, at, segments)
        if not calls:
            return None
        end = segments[-1].span.end
        if end < len(raw):
            if not self.takes_line or raw[end:] != "\n":
                return None
            segments.append(make_segment("text", Span(end, len(raw))))
        again = second_half(calls, segments[0].kind == "text") if len(calls) > 3 else ()
        return None if again else (segments, calls)

    def read_row(
        self, setting: Setting, marks: tuple[str, ...], raw: str, at: int,
        segments: list[Segment], before: int = 0, number: int = 0,
    ) -> list[ToolCall]:  # fmt: skip
        """Return the calls that are written at `at`, one after the other.

        segments: get those of the calls. before: segments of the text that are not in that list.
        number: of the first call.
        """
        calls: list[ToolCall] = []
        gap = ""
        while True:
            size = len(segments)
            found = self._call(setting, marks, raw, at, segments, before, number + len(calls))
            if found is None:
                del segments[size - len(gap) :]
                return calls
            call, at = found
            calls.append(call)
            gap = "\n" if raw.startswith("\n", at) else ""
            if at + len(gap) >= len(raw) or gap not in self.between:
                return calls
            if gap:
                segments.append(make_segment("text", Span(at, at + 1)))
                at += 1

    @property
    def is_closed(self) -> bool:
        """True if it is one segment, whose end is written."""
        part = self.parts[0]
        closer = part.body and part.body[1] != part.end
        return bool(len(self.parts) == 1 and part.closed and closer and not self.call.problems)

    def _call(
        self, setting: Setting, marks: tuple[str, ...], raw: str, at: int,
        segments: list[Segment], before: int, number: int,
    ) -> tuple[ToolCall, int] | None:  # fmt: skip
        # The call that is written at `at`, and where it ends. before: as above.
        head = self.before.match(raw, at)
        if head is None:
            return None
        name = head[self.name_group]
        tool = setting.tools.get(name)
        if tool is None and (setting.tools or name in self.words):
            return None
        start, hole = head.end(), self.hole
        if type(hole) is _Json:
            item = hole.read_text(raw, start) if hole.nested else read_next(raw, start)
            if item is None or type(item[0]) is not dict or "properties" in item[0]:
                return None
            end = item[1]
            value: Any = item[0]
        else:
            end = hole.row.match(raw, start).end()  # type: ignore[union-attr]
        tail = self.after.match(raw, end)
        tagged: list[tuple[str, int, int]] = []
        if tail is None and tool and type(hole) is _Parameters and hole.tagged:
            tagged, guard = hole.tagged.texts(raw, start), hole.guard
            if not tagged or not guard:
                return None
            for key, a, b in tagged:
                if not guard.passes(raw, key, a, b, tool):
                    return None
            end = tagged[-1][2] + len(hole.tagged.closer)
            tail = self.after.match(raw, end)
        if tail is None:
            return None
        for mark in marks:
            if raw.rfind(mark, start, end) >= 0:  # quicker where nothing is found
                return None
        regs = (*head.regs, *tail.regs)
        if self.again_group:
            again = regs[self.again_group]
            if raw[again[0] : again[1]] != name:
                return None
        index, stop = 0, at
        for kind, first, last, inner, closed, escaped, is_call in self.parts:
            begin, stop = regs[first][0], regs[last][0]
            if begin == stop:
                continue
            body = None if inner is None else Span(regs[inner[0]][0], regs[inner[1]][0])
            if is_call:
                index = len(segments)
            segments.append(make_segment(kind, Span(begin, stop), body, closed, escaped))
        name_span = Span(*regs[self.name_group]) if self.call.has_place else None
        wire_id = head[self.id_group] if self.id_group else None
        problems: tuple[Problem, ...] = ()
        if self.call.problems:
            problems = tuple(
                replace(p, span=Span(regs[a][0], regs[b][0])) for p, a, b in self.call.problems
            )
        facts = (number, before + index, name, name_span, wire_id, problems, segments[index])
        if type(hole) is _Json:
            call = self._json_call(setting, raw, start, end, value, tool, facts)
        else:
            call = self._parameter_call(setting, raw, start, end, tool, facts, regs, tagged)
        return None if call is None else (call, stop)

    def _json_call(
        self, setting: Setting, raw: str, start: int, end: int, value: Any, tool: ToolSpec | None,
        facts: tuple[Any, ...],
    ) -> ToolCall | None:  # fmt: skip
        options = setting.options
        if (not value and not self.takes_empty) or may_be_page(facts[2], value):
            return None
        limit = options.max_depth - _LEVELS_AROUND
        if end - start > limit and too_deep(raw, [value], limit):
            return None
        number, index, name, name_span, wire_id, problems, segment = facts
        protocol, _, confidence, steps, _ = self.call
        places = _nested_places if self.hole.nested else _places  # type: ignore[union-attr]
        if _plainly_fits(value, tool, options):
            text = write_canonical(value)
            return make_call(
                number, index, name, name_span, wire_id, protocol, "ok", confidence, text, text, (),
                steps, problems, segment, OriginTable(partial(places, raw, start, end)),
            )  # fmt: skip
        if not self.takes_misfits:
            return None
        begin = (segment.body or segment.span).start
        decoded = Decoded(
            name, value, name_span and name_span.shift(-begin), wire_id,
            places=partial(_body_places, places, raw, start, end, begin),
            unescape=unescape_offsets,
        )  # fmt: skip
        body = Body(raw[begin:end], begin, segment.span.start, True, "closer", protocol)
        (call,) = setting.resolver.calls((decoded,), body, segment, index, number)
        return None if call.problems else call

    def _parameter_call(
        self, setting: Setting, raw: str, start: int, end: int, tool: ToolSpec | None,
        facts: tuple[Any, ...], regs: tuple[tuple[int, int], ...],
        tagged: list[tuple[str, int, int]],
    ) -> ToolCall | None:  # fmt: skip
        hole: Any = self.hole
        number, index, name, name_span, wire_id, problems, segment = facts
        protocol, _, confidence, steps, _ = self.call
        if hole.untyped:
            if tagged:
                texts = [(key, raw[a:b]) for key, a, b in tagged]
            else:
                texts = hole.unit.findall(raw, start, end)  # of one kind, so with two groups
            if (
                tool is None
                or setting.options.coerce != "safe"
                or (not texts and not self.takes_empty)
            ):
                return None
            arguments_json = read_texts(texts, tool.schema_json, UNRECORDED)
            if arguments_json is None:
                return None
            account = LateAccount(_text_account, hole, raw, start, end, regs, texts, tool)
            if wire_id is None and not problems:
                return make_late_call(
                    number, index, name, name_span, protocol, arguments_json, segment, account
                )
            return None
        value: dict[str, Value] = {}
        count = 0
        is_deep = False
        for unit in hole.unit.finditer(raw, start, end):
            last = unit.lastindex
            count += 1
            kind = hole.constants.get(last, _TEXT)
            item: Any = unit[last]
            if kind is _QUOTED:
                if "\\" in item:
                    item = _unquoted(item, raw[unit.start(last) - 1])
            elif kind is _NUMBER:
                item = float(item) if "." in item else int(item)
            elif kind is _REFERENCED:
                if "&" in item:
                    item = unescape(item)
            elif kind is _RAW:
                begin, stop = unit.span(last)
                guard = hole.guard
                if guard is None or not guard.passes(raw, unit[last - 1], begin, stop, tool):
                    return None
            elif kind is _JSON or kind is _JSON_REFERENCED or kind is _NOTATION:
                if kind is _NOTATION:
                    item = hole.notation.read(item)
                elif kind is _JSON:
                    # a tag of the format is looked for in its texts, too
                    item = _NO_VALUE if hole.guard and "<" in item else _json_value(item)
                else:
                    item = _json_value(unescape(item))
                if item is _NO_VALUE:
                    return None
                is_deep = True
            elif kind is not _TEXT:
                item = kind
            value[unit[last - 1]] = item
        if len(value) != count or "properties" in value or (not value and not self.takes_empty):
            return None
        if may_be_page(name, value) or not _plainly_fits(value, tool, setting.options):
            return None
        text = write_canonical(value)
        return make_call(
            number, index, name, name_span, wire_id, protocol, "ok", confidence, text, text, (),
            steps, problems, segment,
            OriginTable(
                partial(_places_inside, self.long_way, setting, raw, self._span(regs))
                if is_deep
                else partial(_unit_places, hole, raw, start, end, regs)
            ),
        )  # fmt: skip

    def _span(self, regs: tuple[tuple[int, int], ...]) -> Span:
        return Span(regs[self.parts[0].start][0], regs[self.parts[-1].end][0])


# Kinds of values that are no constants: how their text is read.
_TEXT, _RAW, _QUOTED, _REFERENCED, _NUMBER = (object() for _ in range(5))
_JSON, _JSON_REFERENCED, _NOTATION = (object() for _ in range(3))  # of lists and objects
_NO_VALUE: Any = object()


def _json_value(text: str) -> Value:
    item = read_next(text, 0)
    return _NO_VALUE if item is None or item[1] != len(text) else item[0]


def _unquoted(text: str, quote: str) -> str:
    value: str = literal_eval(f"{quote}{text}{quote}")
    return value


def _plainly_fits(value: dict[str, Value], tool: ToolSpec | None, options: ParseOptions) -> bool:
    # As `Resolver` asks, where it then changes nothing.
    if tool is None:
        return True
    schema_json = tool.schema_json
    known = parameter_names(schema_json)
    is_known = known is None or known[1] or value.keys() <= known[0]  # `auto` asks in any case
    return is_known and not may_be_wrapped(value) and fits(value, schema_json, options.coerce)


# Origins


def _places(raw: str, start: int, end: int) -> dict[str, Origin]:
    places = sorted(find_places(raw[start:end]).values.items(), key=_start)
    return {path: Origin(Span(start + a, start + b)) for path, (a, b) in places}


def _nested_places(raw: str, start: int, end: int) -> dict[str, Origin]:
    offsets = unescape_offsets(raw[start : end - 1])
    places = sorted(find_places(scanstring(raw, start, True)[0]).values.items(), key=_start)
    return {path: Origin(Span(start + offsets[a], start + offsets[b])) for path, (a, b) in places}


def _start(item: tuple[str, tuple[int, int]]) -> int:
    return item[1][0]  # of a value, after that of what it is in


def _body_places(
    places: Callable[[str, int, int], dict[str, Origin]], raw: str, start: int, end: int, begin: int
) -> dict[str, tuple[int, int]]:
    # as the resolver counts them, from the beginning of the body
    found = places(raw, start, end)
    return {path: (o.span.start - begin, o.span.end - begin) for path, o in found.items()}


def _unit_places(
    hole: _Parameters, raw: str, start: int, end: int, regs: tuple[tuple[int, int], ...]
) -> dict[str, Origin]:
    table: dict[str, Origin] = {}
    if hole.root is not None:
        first, last = hole.root
        table[""] = Origin(Span(regs[first][0], regs[last][0]))
    if hole.tagged and hole.row.match(raw, start).end() != end:  # type: ignore[union-attr]
        for key, first, last in hole.tagged.texts(raw, start):
            table[f"/{key}"] = Origin(Span(first, last))
        return table
    for unit in hole.unit.finditer(raw, start, end):
        last = unit.lastindex or 0
        table[f"/{unit[last - 1]}"] = Origin(Span(*unit.span(last)))
    return table


def _places_inside(long_way: LongWay, setting: Setting, raw: str, span: Span) -> dict[str, Origin]:
    # Of the values in lists and objects: the codec knows.
    (call,) = long_way(setting, span.of(raw), True).calls
    return {
        path: replace(origin, span=origin.span.shift(span.start))
        for path, origin in call.origins.get().items()
    }


def _text_account(
    hole: _Parameters, raw: str, start: int, end: int, regs: tuple[tuple[int, int], ...],
    texts: list[tuple[str, str]], tool: ToolSpec,
) -> tuple[str, Any, OriginTable]:  # fmt: skip
    record = Record("safe")
    read_texts(texts, tool.schema_json, record)
    steps = tuple(record.steps)
    origins = _unit_places(hole, raw, start, end, regs)
    places = {path: (o.span.start, o.span.end) for path, o in origins.items()}
    decoded = Decoded(tool.name, dict(texts), untyped=True, places=lambda: places)
    if steps:
        StepSpans(steps, partial(find_spans, decoded, steps, 0, raw))
    table = OriginTable(partial(trace_table, decoded, steps, 0, raw))
    return write_canonical(dict(texts)), steps, table


# Learning


@dataclass(slots=True)
class _Token:
    # A part of the written text. kind: literal, space, name, id or hole. choices: white space.
    kind: str
    text: str
    choices: list[str] = field(default_factory=list)

    def fixed(self, *, only_written: bool) -> _Token:
        """Return the same part; white space as it is written, or only where some is written."""
        if self.kind != "space" or (only_written and not self.text):
            return self
        return replace(self, choices=[self.text])

    def pattern(self, names: str) -> str:
        if self.kind == "name":
            return f"(?P<name>{names})"
        if self.kind == "again":
            return "(?P<again>\\w[\\w.-]*)"
        if self.kind == "id":
            return f"(?P<id>{_id_pattern(self.text, names)})"
        if self.kind == "space":
            if set(self.choices) >= set(_SPACES):
                return _SPACE_RUN
            return f"(?:{'|'.join(re.escape(c) for c in sorted(self.choices, key=len)[::-1])})"
        return re.escape(self.text)


def _id_pattern(text: str, names: str) -> str:
    if _NAME not in text:
        return r"[A-Za-z0-9_-]{1,64}"
    before, after = text.split(_NAME, 1)
    return (
        rf"{re.escape(before)}(?P<name>{names}){re.sub(r'[0-9]+', '[0-9]{1,4}', re.escape(after))}"
    )


_TOOL = {
    "type": "object",
    "properties": {_KEYS[0]: {"type": "string"}, _KEYS[1]: {"type": "integer"}, _KEYS[2]: {}},
}
_ARGUMENTS: dict[str, Value] = {_KEYS[0]: "Zqa one", _KEYS[1]: 70707}
_TRIALS: tuple[dict[str, Value], ...] = (
    {_KEYS[0]: "x, [y] {z} : (q) = 'r'"},
    {_KEYS[0]: "a.b - c; d/e", _KEYS[1]: -3},
    {_KEYS[1]: 0, _KEYS[0]: "\u00e9 \u65e5"},
    {_KEYS[0]: "two\nlines"},
    {_KEYS[0]: "", _KEYS[1]: 12},
    {_KEYS[0]: "true"},
    {_KEYS[0]: "42"},
    {_KEYS[0]: '"q"'},
    {_KEYS[2]: True, _KEYS[0]: "q"},
    {_KEYS[2]: 1.5},
    {_KEYS[2]: None},
    {_KEYS[2]: {"a": [1, {"b": None}], "c": -2.25e3}},
    {_KEYS[2]: [[], {}, True]},
)
# Texts with tags of others, with white space at an end, with references to characters.
_NO_TAGS = ("if x < y && y > z:",)
_TAGS = (
    "<b>x</b> & [y]<br/>", "<!-- x -->\n<p class='q'>y</p>", '<a href="u">x</a>', 'x<br> <a b="u">',
)  # fmt: skip
_TAG = re.compile(r"<[^\s=<\d]")
_SPACED = ("\n x", "x\n", " x ", "x\n\n")
_REFERENCES = ("&lt;b&gt; x &amp; &#65;y",)
_REFERENCE = re.compile(r"&#?\w{1,32};")
_PROBE = "a<b & 'c' \"d\" \\e >f"
_BOXES: tuple[tuple[Value, Value], ...] = (
    (["Zqa one", 7], ["Zqb two", 8]), ({"zq_in": "Zqa one"}, {"zq_in": "Zqb two"}),
)  # fmt: skip
_BARS = ("null", '>"')  # what some formats read as more than a text
_ESCAPED = "a'b\"c\\d\ne\tf"
_MISFIT: dict[str, Value] = {_KEYS[1]: "70"}


class _Unlearned(Exception):
    """A format does not write a call in a form that can be looked at."""


def learn(
    owner: Protocol, protocol: Protocol, options: ParseOptions, has_tools: bool, long_way: LongWay
) -> Iterator[Look]:
    """Yield looks of calls as `owner` writes them, in texts that `protocol` reads."""
    settings = [
        Setting(
            protocol,
            tuple(ToolSpec.of({"name": n, "parameters": schema}) for n in (_NAME, _OTHER_NAME))
            if has_tools
            else (),
            options,
        )
        for schema in (_TOOL, {})
    ]
    learner = _Learner(owner, settings[0], settings[1], long_way)
    try:
        for text in dict.fromkeys(learner.texts()):
            with suppress(_Unlearned, ToolparseError, ValueError):
                yield learner.look(text)
    except Exception:  # a format of somebody else's that does not write is read the long way
        return


class _Learner:
    def __init__(
        self, owner: Protocol, setting: Setting, untyped: Setting, long_way: LongWay
    ) -> None:
        self._owner = owner
        self._setting = setting
        self._untyped = untyped  # the same, and no value breaks a schema
        self._long_way = long_way
        self._holes: tuple[_Parameters, ...] | None = None
        self._row = ""

    def write(self, arguments: dict[str, Value], name: str = _NAME) -> str:
        text = self._owner.codec.write(name, write_canonical(arguments), None)
        return self._owner.codec.join([text])

    def read(self, text: str) -> ParseResult | None:
        """Return what the long way says of a text that is one good call to it."""
        result = self._long_way(self._setting, text, True)
        if len(result.calls) != 1 or result.problems:
            return None
        call = result.calls[0]
        good = call.ok and call.valid and not call.edits
        good = good and (
            call.protocol == self._owner.id or self._setting.protocol is not self._owner
        )
        return result if good and call.arguments == _ARGUMENTS else None

    def only_call(self, text: str) -> ToolCall:
        """Return the call of a text that is one good call to the long way."""
        found = self.read(text)
        if found is None:
            raise _Unlearned
        return found.calls[0]

    def texts(self) -> Iterator[str]:
        # The call as it is written, and without what may stand around it.
        text = self.write(_ARGUMENTS)
        segment = self.only_call(text).segment.span
        yield text
        heads = self._owner.envelope.heads(self._setting.tools)
        begins = {at for head in heads if len(head) > 1 if (at := text.find(head, 1)) > 0}
        for begin in sorted({segment.start, *begins}):
            end = segment.end if begin == segment.start else len(text)
            part = text[begin:end]
            if begin <= text.index(_NAME) and part != text and self.read(part) is not None:
                yield part

    # holes

    def hole(self, text: str) -> list[tuple[_Json | _Parameters, int, int]]:
        inner = write_canonical(_ARGUMENTS)
        if text.count(inner) == 1:
            at = text.index(inner)
            return [(_Json(False), at, at + len(inner))]
        inner = json.dumps(inner)[1:]
        if text.count(inner) == 1:
            at = text.index(inner)
            return [(_Json(True), at, at + len(inner))]
        if self._holes is None:
            self._holes = tuple(self._parameters())
        if text.count(self._row) != 1:
            raise _Unlearned
        at = text.index(self._row)
        return [(hole, at, at + len(self._row)) for hole in self._holes]

    def _parameters(self) -> Iterator[_Parameters]:
        call = self.only_call(self.write(_ARGUMENTS))
        untyped = json.loads(call.source_json) != _ARGUMENTS
        head, string, sep, tail = self._unit("Zqa one", "Zqb two")
        around = head, sep, tail
        if untyped and not string.closer.strip():
            raise _Unlearned
        units: list[tuple[_Unit, Any]] = []
        words: list[tuple[str, str]] = []
        self._row = self._written(string, "Zqa one", _KEYS[0]) + sep
        if untyped:
            self._row += self._written(string, "70707", _KEYS[1])
        kinds: tuple[tuple[Any, Value, Value], ...] = (
            ("integer", 70707, 80808), ("number", 1.5, 2.5), (True, True, True),
            (False, False, False), (None, None, None),
        )  # fmt: skip
        for value, first, second in () if untyped else kinds:
            unit = self._like(around, first, second)
            if unit is None:
                continue
            if value == "integer":
                self._row += self._written(unit, "70707", _KEYS[1])
            if isinstance(value, str):
                units.append((unit._replace(text=_NUMBERS[value]), _NUMBER))
            else:
                units.append((unit._replace(text=re.escape(unit.text)), value))
                words.append((unit.text, json.dumps(value)))
        boxes = [] if untyped else [(self._like(around, *pair), pair[0]) for pair in _BOXES]
        guard = _guard(string, head + tail)
        for text, kind in self._texts(string, guard, untyped):
            strings = [string._replace(text=text)]
            if string.closer == "'" and not untyped:
                double = _Unit(string.opener.replace("'", '"'), _inside('"', kind is _QUOTED), '"')
                strings = [*strings, double]
            hole = _Parameters(_NEVER, _NEVER, {}, untyped, "", None, guard)
            if string.closer.lstrip()[:1] in ("<", "]") and (guard or kind is not _TEXT):
                hole = hole._replace(stops="<" if kind is _RAW or untyped else "<&")
            if untyped and guard:
                hole = hole._replace(tagged=_tagged(string, sep))
            for own in (strings, strings[:1]) if len(strings) > 1 else (strings,):
                hole = hole._replace(notation=_notation(own, words, kind))
                rows = [*((unit, kind) for unit in own), *units]
                for box, value in boxes:
                    found = box and _box_kind(box, value, kind, hole.notation)
                    if box and found:
                        pattern = rf"[\[{{]{text}"
                        if found is _NOTATION and hole.notation:
                            pattern = hole.notation.pattern
                        rows.append((box._replace(text=pattern), found))
                for loose in (True, False) if sep != sep.rstrip() and sep.strip() else (False,):
                    yield _with_units(hole, rows, sep, loose)

    def _like(self, around: tuple[str, str, str], first: Value, second: Value) -> _Unit | None:
        # A parameter of another kind of value, if nothing else is written otherwise.
        try:
            head, unit, sep, tail = self._unit(first, second)
        except (_Unlearned, ToolparseError, ValueError):
            return None
        return unit if (head, sep, tail) == around else None

    def _texts(
        self, string: _Unit, guard: _Guard | None, untyped: bool
    ) -> Iterator[tuple[str, Any]]:
        # Patterns of a text, the freest first, and how it is read.
        closer = string.closer
        edge = "".join({closer[:1], string.opener[-1:]} - {"\n", " ", "\0", ">"})
        marks = re.escape(edge + "\\" * (not untyped))
        try:
            written = self._unit(_PROBE, _PROBE)[1].text
        except (_Unlearned, ToolparseError, ValueError):
            written = ""
        refers = written != _PROBE and unescape(written) == _PROBE
        signs = "<&>" if "&gt;" in written else "<&"
        if not closer.strip():
            yield _BARE_TEXT, _TEXT
        elif closer.lstrip()[0] in "<]":
            if written == _PROBE and not untyped:
                # up to its closer, whatever it holds
                first, rest = re.escape(closer[0]), re.escape(closer[1:])
                yield rf"[^{first}]*(?:{first}(?!{rest})[^{first}]*)*", _RAW if guard else _TEXT
            if refers:
                text = rf"[^{signs}]*(?:{_NAMED}[^{signs}]*)*"
                yield text, _REFERENCED
                yield rf"(?:(?!\s){text}(?<!\s))?", _REFERENCED
            # A bracket at an end may be one of the tag beside it.
            yield rf"(?:[^<>{marks}&\s](?:[^<{marks}&]*[^<>{marks}&\s])?)?", _TEXT
        else:
            if refers:
                signs += re.escape(edge)
                yield rf"[^{signs}]*(?:{_NAMED}[^{signs}]*)*", _REFERENCED
            # A quoted text may have escapes, if they are Python's.
            if closer[:1] in ("'", '"') and self._has_escapes(closer[0]):
                yield _inside(closer[0], True), _QUOTED
            tag = "<" * ("<" in string.opener)  # an attribute
            yield rf"[^{marks}&{tag}\x00-\x1f]*", _TEXT

    def _has_escapes(self, quote: str) -> bool:
        try:
            text = self._unit(_ESCAPED, _ESCAPED)[1].text
            return _unquoted(text, quote) == _ESCAPED
        except (_Unlearned, ToolparseError, ValueError, SyntaxError):
            return False

    def _written(self, unit: _Unit, text: str, key: str) -> str:
        return unit.opener.replace("\0", key) + text + unit.closer.replace("\1", key)

    def _unit(self, first: Value, second: Value) -> tuple[str, _Unit, str, str]:
        # (text before, the parameter, text between two, text after)
        k, m = _KEYS[0], _KEYS[1]
        one, two = self.write({k: first}), self.write({k: first, m: second})
        a, b = self._located(one, k)
        c, d = self._located(two, k)
        e, _ = self._located(two, m)
        if one[:a] != two[:c]:
            raise _Unlearned
        before, after = one[:a].replace(k, "\0"), one[b:].replace(k, "\1")
        between = two[d:e].replace(k, "\1").replace(m, "\0")
        alike = common_suffix(before, between)
        opener = before[len(before) - alike :].lstrip("> \t\r\n")
        if opener.count("\0") != 1 or "\1" in opener:
            raise _Unlearned
        rest = between[: len(between) - len(opener)]
        closer = rest[: common_prefix(rest, after)].rstrip()
        head, sep, tail = (
            before[: len(before) - len(opener)],
            rest[len(closer) :],
            after[len(closer) :],
        )
        return head, _Unit(opener, one[a:b], closer), sep, tail

    def _located(self, text: str, key: str) -> tuple[int, int]:
        (call,) = self._long_way(self._untyped, text, True).calls
        span = call.origin(f"/{key}").span
        return span.start, span.end

    # patterns

    def look(self, text: str) -> Look:
        for hole, begin, end in self.hole(text):
            tokens = self._tokens(text, begin, end)
            # With less and less freedom: white space anywhere, where none is written, nowhere.
            for fixed in (None, True, False):
                free = [t if fixed is None else t.fixed(only_written=fixed) for t in tokens]
                for names in _NAMES:
                    try:
                        return self._proved(self._made(free, hole, names), free)
                    except _Unlearned:
                        continue
        raise _Unlearned

    def _tokens(self, text: str, begin: int, end: int) -> list[_Token]:
        wire_id = self.only_call(text).wire_id
        names = re.escape(_NAME)
        if wire_id and text.count(wire_id) == 1 and text.index(wire_id) < begin:
            names = f"{re.escape(wire_id)}|{names}"
        fixed = [(begin, end, "hole")]
        for match in re.finditer(names, text):
            if not begin <= match.start() < end:
                kind = "name" if match[0] == _NAME else "id"
                fixed.append((*match.span(), kind if match.start() < begin else "again"))
        fixed.sort()
        places = [
            m.span()
            for m in _PLACES.finditer(text)
            if not any(a < at < b for a, b, _ in fixed for at in range(m.start(), m.end() + 1))
            and not any(a <= m.start() < m.end() <= b for a, b, _ in fixed)
        ]
        cuts = sorted([*fixed, *((a, b, "space") for a, b in places)])
        tokens: list[_Token] = []
        at = 0
        for a, b, kind in cuts:
            if a > at:
                tokens.append(_Token("literal", text[at:a]))
            tokens.append(_Token(kind, text[a:b], [text[a:b]]))
            at = b
        if at < len(text):
            tokens.append(_Token("literal", text[at:]))
        for i, token in enumerate(tokens):
            if token.kind == "space" and i:
                for space in _SPACES:
                    trial = [space if other is token else other.text for other in tokens]
                    if space != token.text and self.read("".join(trial)) is not None:
                        token.choices.append(space)
        return [token for token in tokens if token.kind != "space" or token.choices != [""]]

    def _made(self, tokens: list[_Token], hole: _Json | _Parameters, names: str) -> Look:
        filled = [
            replace(t, text=_sign_of(t.choices) or t.text) if t.kind == "space" else t
            for t in tokens
        ]
        text = "".join(t.text for t in filled)
        found = self.read(text)
        if found is None:
            raise _Unlearned
        (call,) = found.calls
        root = call.origin("").span
        spans = [span for s in found.segments for span in (s.span, s.body) if span is not None]
        spans += [problem.span for problem in call.problems if problem.span is not None]
        is_row = type(hole) is _Parameters
        cuts = {
            at for span in (*spans, *([root] if is_row else [])) for at in (span.start, span.end)
        }
        groups: dict[int, int] = {}
        patterns = ["", ""]
        at = count = side = name_group = id_group = again_group = 0
        marked: set[str] = set()
        for token in filled:
            stop = at + len(token.text)
            if token.kind == "hole":
                if any(at < cut < stop for cut in cuts):
                    raise _Unlearned
                if at in cuts:
                    patterns[0] += "()"
                    count += 1
                    groups[at] = count
                side = 1
                count += 1  # the whole match of the second pattern
                at = stop
                continue
            inner = sorted(cut for cut in cuts if at <= cut < stop) if stop > at else []
            if token.kind != "literal" and any(cut != at for cut in inner):
                raise _Unlearned
            last = at
            for cut in inner:
                patterns[side] += re.escape(text[last:cut]) + "()"
                count += 1
                groups[cut] = count
                last = cut
            if token.kind == "literal":
                patterns[side] += re.escape(text[last:stop])
            elif token.kind in marked:
                patterns[side] += f"(?P={token.kind})"
            else:
                patterns[side] += token.pattern(names)
                if token.kind in ("name", "id", "again"):
                    marked.add(token.kind)
                    count += 1
                if token.kind == "id":
                    id_group = count
                if token.kind == "again":
                    again_group = count
                if token.kind == "name" or (token.kind == "id" and _NAME in token.text):
                    count += token.kind == "id"
                    marked.add("name")
                    name_group = count
            at = stop
        if at in cuts:
            patterns[1] += "()"
            count += 1
            groups[at] = count
        parts = []
        for i, s in enumerate(found.segments):
            body = s.body and (groups[s.body.start], groups[s.body.end])
            is_call = i == call.segment_index
            first, last = groups[s.span.start], groups[s.span.end]
            parts.append(_Part(s.kind, first, last, body or None, s.closed, s.escaped, is_call))
        if isinstance(hole, _Parameters):
            hole = hole._replace(root=(groups[root.start], groups[root.end]))
        steps = () if is_row else call.steps
        if any(step.span is not None for step in steps):
            raise _Unlearned
        problems = [(p, groups[p.span.start], groups[p.span.end]) for p in call.problems if p.span]
        template = _Call(
            call.protocol, call.name_span is not None, call.confidence, steps, tuple(problems)
        )
        row = next(t.text for t in tokens if t.kind == "hole")
        start = "" if filled[0].kind == "name" else text[0]
        bars: tuple[str, ...] = ()
        if isinstance(hole, _Parameters) and hole.stops:
            bars = ("[/",)  # a closing tag
        elif isinstance(hole, _Parameters) and self._owner is not self._setting.protocol:
            bars = tuple(
                f"<{word}" for word in _first_words(FORMAT_WORDS)
            )  # for its opener's others
        literals = " ".join(t.text for t in tokens if t.kind == "literal")
        words = frozenset((*re.findall(r"\w+", literals), *_NO_NAMES))
        return Look(
            self._owner, hole, start, re.compile(patterns[0]), re.compile(patterns[1]),
            name_group, id_group, again_group, template, tuple(parts), row, self._long_way, words,
            bars,
        )  # fmt: skip

    # proof

    def _proved(self, look: Look, tokens: list[_Token]) -> Look:
        has_space = any(len(t.choices) > 1 for t in tokens)
        base = "".join(t.text for t in tokens)
        if self._agrees(look, base) is not True:
            raise _Unlearned
        texts: list[str] = []
        at = next(i for i, t in enumerate(tokens) if t.kind == "hole")
        for n, arguments in enumerate(_TRIALS):
            if isinstance(look.hole, _Json):
                holes = [
                    write_canonical(arguments), json.dumps(arguments),
                    json.dumps(arguments, indent=2, ensure_ascii=False),
                ]  # fmt: skip
                if look.hole.nested:
                    holes = [json.dumps(text)[1:] for text in holes]
                for m, inner in enumerate(holes):
                    parts = [
                        t.choices[(n + m + i) % len(t.choices)] if t.choices else t.text
                        for i, t in enumerate(tokens)
                    ]
                    parts[at] = inner
                    texts.append("".join(parts))
            else:
                try:
                    text = self.write(arguments)
                except ToolparseError:
                    continue
                texts += (text, text.replace("'", '"'), text.replace(", ", ","))
        for shift in range(4 if has_space else 0):
            texts.append(
                "".join(
                    t.choices[(i + shift) % len(t.choices)] if t.kind == "space" else t.text
                    for i, t in enumerate(tokens)
                )
            )
        if isinstance(look.hole, _Parameters):
            texts.append(base.replace("Zqa one", " Zqa one\n"))
        if look.before.pattern.count(_NAMES[0]):
            texts += [text.replace(_NAME, _OTHER_NAME) for text in (base, texts[0])]
        for text in texts:
            if self._agrees(look, text) is False:
                bar = next((bar for bar in _BARS if bar in text and bar not in look.bars), None)
                if bar is None:
                    raise _Unlearned
                look.bars, look.fixed_marks = (*look.bars, bar), None
        # What not every format takes.
        empty = self._with(tokens, {})
        if empty is None or self._agrees(look, empty) is not True:
            look.takes_empty = False
        look.takes_words = True
        if self.read(_WORDS_BEFORE + base) is None:
            look.takes_words = False
        agree = [self._agrees(look, _WORDS_BEFORE + text) for text in (base, *texts[:3])]
        # What is said before a call in a fence or outside its format tells if it is only shown.
        outside = look.start == "`" or bool(look.call.problems)
        look.takes_words = agree[0] is True and False not in agree and not outside
        look.takes_line = True
        other = self._with(tokens, {_KEYS[1]: 7})
        if other is not None and not look.call.problems and not self._owner.codec.list_head:
            for gap in ("\n", ""):
                look.between += (gap,)
                if self._agrees(look, gap.join((base, other, base))) is not True:
                    look.between = look.between[:-1]
        look.takes_line = self._agrees(look, base + "\n") is True and (
            not look.takes_words or self._agrees(look, f"{_WORDS_BEFORE}{base}\n") is True
        )
        if isinstance(look.hole, _Parameters) and look.hole.guard:
            self._loosen(look, look.hole, look.hole.guard)
        if isinstance(look.hole, _Json) and look.parts and self._setting.tools:
            misfit = self._with(tokens, _MISFIT)
            look.takes_misfits = True
            look.takes_misfits = misfit is not None and self._agrees(look, misfit) is True
        return look

    def _loosen(self, look: Look, hole: _Parameters, guard: _Guard) -> None:
        # What a text between tags may hold in this format.
        def takes(guard: _Guard, texts: tuple[str, ...]) -> bool:
            look.hole = hole._replace(guard=guard)
            written = (self.write({_KEYS[0]: text}) for text in texts)
            return all(self._agrees(look, text) is True for text in written)

        if not takes(guard, _NO_TAGS):
            if not hole.untyped:
                raise _Unlearned
            look.hole = hole._replace(guard=None, tagged=None)
            return
        for flag, texts in (
            ("takes_tags", _TAGS), ("takes_space", _SPACED), ("takes_references", _REFERENCES),
        ):  # fmt: skip
            free = guard._replace(**{flag: True})  # type: ignore[arg-type]
            guard = free if takes(free, texts) else guard
        look.hole = hole._replace(guard=guard)

    def _with(self, tokens: list[_Token], arguments: dict[str, Value]) -> str | None:
        try:
            written, base = self.write(arguments), self.write(_ARGUMENTS)
        except ToolparseError:
            return None
        # in the same form, which may be a part of what is written
        text = "".join(t.text for t in tokens)
        begin = base.find(text)
        if begin < 0:
            return None
        end = len(written) - (len(base) - begin - len(text))
        return written[begin:end]

    def _agrees(self, look: Look, text: str) -> bool | None:
        # None where the look leaves the text to the long way.
        setting = self._setting
        marks = look.marks(setting)
        at = len(_WORDS_BEFORE) if text.startswith(_WORDS_BEFORE) else 0
        found = None if marks is None else look.read(setting, marks, text, at)
        if found is None:
            return None
        short = result_of(setting, text, *found)
        long = self._long_way(setting, text, False)
        return short == long and all(
            list(a.origins.get().items()) == list(b.origins.get().items())
            and [step.span for step in a.steps] == [step.span for step in b.steps]
            for a, b in zip(short.calls, long.calls, strict=True)
        )


def result_of(
    setting: Setting, raw: str, segments: list[Segment], calls: list[ToolCall]
) -> ParseResult:
    """Return the result of a text of plain calls."""
    return ParseResult(
        raw, setting.protocol.id, setting.options, tuple(segments), tuple(calls), (), setting.specs
    )


def _sign_of(spaces: list[str]) -> str:
    # One character, so that no boundary is inside.
    return min(filter(None, spaces), key=len, default="")


def _with_units(
    hole: _Parameters, units: list[tuple[_Unit, Any]], sep: str, loose: bool
) -> _Parameters:
    # Each kind has two groups: of the name and of the text.
    kinds = [unit.pattern(2 * n + 1, "(") for n, (unit, _) in enumerate(units)]
    between = re.escape(sep.rstrip()) + " ?" if loose else re.escape(sep)
    return hole._replace(
        row=re.compile(_row([unit for unit, _ in units], between)),
        unit=re.compile("|".join(kinds)),
        constants={2 * n + 2: kind for n, (_, kind) in enumerate(units)},
    )


def _inside(quote: str, escapes: bool) -> str:
    plain = rf"[^{quote}\\\x00-\x1f]*"
    return rf"{plain}(?:\\[\\'\"nrt]{plain})*" if escapes else plain


def _guard(string: _Unit, around: str) -> _Guard | None:
    # None where a text ends with what it begins with, as in quotes.
    before, after = string.opener.split("\0")
    if string.closer.lstrip()[:1] not in ("<", "]") or string.opener.endswith(string.closer):
        return None
    words = re.findall(r"[A-Za-z]\w+", f"{before} {after} {string.closer} {around}")
    return _Guard(frozenset(words) - {_NAME} | FORMAT_WORDS)


def _tagged(unit: _Unit, sep: str) -> _Tagged | None:
    before, after = unit.opener.split("\0")
    if "\1" in unit.closer:
        return None
    head = re.compile(f"{re.escape(before)}({_KEY}){re.escape(after)}")
    return _Tagged(head, unit.closer, sep)


def _notation(strings: list[_Unit], words: list[tuple[str, str]], kind: Any) -> _Notation | None:
    # strings: in the quotes that a text may have
    quotes = [(re.escape(unit.closer), unit.text) for unit in strings]
    if not all(unit.closer and unit.opener.endswith(unit.closer) for unit in strings):
        return None
    item = "|".join((
        *(f"{quote}(?:{text}){quote}" for quote, text in quotes), *_NUMBERS.values(),
        *(re.escape(word) for word, _ in words), _BARE_KEY.pattern, "[,:] ?",
    ))  # fmt: skip
    pattern = rf"[\[{{](?:{item})*[\]}}]"
    for _ in range(_LEVELS_INSIDE):
        pattern = rf"[\[{{](?:{item}|{pattern})*[\]}}]"
    inside = re.compile("|".join(f"{quote}({text}){quote}" for quote, text in quotes))
    return _Notation(inside, pattern, tuple(words), kind is _QUOTED)


def _box_kind(box: _Unit, value: Value, kind: Any, notation: _Notation | None) -> Any:
    # How a list or an object is read that is written so, None if in no known way.
    for found, text in ((_JSON, box.text), (_JSON_REFERENCED, unescape(box.text))):
        if _json_value(text) == value and (found is _JSON) == (kind is not _REFERENCED):
            return found
    return _NOTATION if notation and notation.read(box.text) == value else None


def _first_words(words: frozenset[str]) -> list[str]:
    # those with which the others begin
    return [w for w in words if not any(w != other and w.startswith(other) for other in words)]


@lru_cache(maxsize=512)
def _own_tags(words: frozenset[str], schema_json: str) -> re.Pattern[str]:
    # A word of the format or the name of a parameter where it may be in a tag, in any spelling.
    names = [f"{re.escape(name)}(?![\\w-])" for name in names_below(view_of(schema_json))]
    # Under (?i:…) alone, each word would be begun at each tag.
    word = "|".join(
        f"[{_FOLDED.get(w[0].lower(), w[0].lower() + w[0].upper())}](?i:{w[1:]})"
        if w[:1].isascii() and w[:1].isalpha()
        else f"(?i:{w})"
        for w in (*map(re.escape, _first_words(words)), *names)
    )
    return re.compile(rf"<[\s/|\uff5c]*+(?:{word}|[\w.-]++[:|\uff5c](?:{word})|!\[CDATA\[)")


def _row(units: list[_Unit], between: str) -> str:
    # The names of parameters in closers refer to the groups of their own kind, so the second copy
    # of the units counts on.
    first, more = (
        "|".join(unit.pattern(n, "(?:") for n, unit in enumerate(units, start))
        for start in (1, 1 + len(units))
    )
    if not between:
        return f"(?:{first})*"
    return f"(?:(?:{first})(?:{between}(?:{more}))*)?"  # not possessive: a fault of Python 3.11
