"""`yaml_xml`: one element a call, named after the tool, with a YAML 1.2 mapping in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View, view_of
from ...core.toolspec import EMPTY_SCHEMA, ToolSpec
from ...core.types import Edit, Span
from ...core.values import read_strict
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    NeedMore,
    Opening,
    Protocol,
    Tools,
    moved_places,
    named_call,
    with_step,
)
from ..json.mix import HERMES
from ..prompt.grammar import IN_YAML, literal
from ..prompt.type_rules import make_rules
from ..prompt.wording import Wordings
from ..results import YamlResult
from ..scan import BodyScanner, Close, FollowCheck, Scanner, skip_space
from ..xml.grammar import XML_NAME, ElementGrammar
from ..xml.morph_xml import (
    ElementCall,
    NamedEnd,
    ToolElements,
    checked,
    has_property,
    headless,
    with_attributes,
)
from .damage import MappingDisambiguation, holds_unknown, raw_texts, wrapping
from .reader import MAX_DEPTH, MappingReader, NoYaml, read_flat
from .write import write_element

# How it works
#
# YAML escapes no `<`, so a closing tag may be part of a text, and only its place tells. What counts
# is the indentation: a tag on a line of its own, no deeper than the first line, is the element's.
#
# State: `_first`, the indentation of the first line with a word on it; `_indent` and `_line`, those
# of the line that is being read; and on the opener's own line (`_inline`), where nothing is
# indented, the number of double quotes so far. So there are three phases, each with a pattern for
# what can matter in it: before the first word, on the opener's line after a word, on later lines.
# `_hidden` is the first closing tag that text follows on its line.
#
# Invariant: a line's indentation is settled once its first character is there; until then its line
# break stays in the tail. A tag is decided on once it is whole and, where that matters, followed.
#
# Cost: one forward pass. On later lines the pattern looks for tags only, and the line a tag is on
# is found by one search backwards from it, bounded by what was read since the last tag.


_DEEPER = 64  # a line that is indented more is deeper than any first line
_BEFORE, _INLINE, _LATER = range(3)


class YamlBody(BodyScanner):
    """Finds the closing tag of an element that holds lines of YAML.

    It counts on a line of its own that is indented no deeper than the first. Behind a line that is
    not deeper, if nothing but white space and an opener, or the end, follows. And on the opener's
    own line, outside double quotes. Anywhere else it is part of a text. An opener on a line of its
    own that is not deeper is a call begun again.
    """

    __slots__ = ("_first", "_follow", "_indent", "_inline", "_line", "_patterns", "_quotes")

    def __init__(self, name: str, tools: tuple[str, ...]) -> None:
        # name: of the element, which is the tool's. tools: the names of all tools, which open
        # calls.
        self._at, self._hidden = 0, None
        self._patterns = _patterns(name, tools or (name,))
        self._follow = FollowCheck(tuple("<" + tool for tool in tools))
        self._first = -1  # indentation of the first line with a word on it; -1 = there was none yet
        self._inline = False  # still on the opener's line, with a word on it
        self._indent = 0  # indentation of this line
        self._line = 0  # where the words of this line begin
        self._quotes = 0  # double quotes on the opener's line

    def scan(self, tail: str, final: bool) -> Close | int:
        pos = 0
        while True:
            phase = _BEFORE if self._first < 0 else _INLINE if self._inline else _LATER
            match = self._patterns[phase].search(tail, pos)
            if phase == _LATER:
                stop = match.start() if match else len(tail)
                unsettled = self._take_lines(tail, pos, stop, final)
                if unsettled is not None:
                    return self._settle(unsettled)

            if match is None:
                return self._settle(len(tail))

            kind = match.lastgroup
            if kind in ("cut", "start"):  # a tag or an indentation that is not complete yet
                return self._settle(len(tail) if final else match.start())

            pos = match.end()
            answer: Close | int | None = None
            if kind == "line":
                self._inline = False
                self._indent = len(match[0]) - 1
                self._line = self._at + pos
            elif kind == "word":
                if self._first < 0:
                    self._first = self._indent
                    self._inline = self._line == 0
                # Only counted: an odd number of quotes means that one is open.
                self._quotes += match["word"] == '"'
            elif kind == "open":
                # It ends the body where no text can be: at the beginning of a line that is not
                # deeper than the first. On the opener's own line, whose words begin at 0, it would
                # be a call inside a text. After a hidden closing tag any opener shows that the call
                # had ended there.
                start = self._at + match.start()
                shallow = self._indent <= max(self._first, 0)
                if self._hidden:
                    answer = Close(*self._hidden, "rescued")
                elif self._line and start == self._line and shallow:
                    answer = Close(start, start, "implicit")
            else:
                answer = self._closer(tail, match, final)

            if answer is not None:
                return answer

    def _take_lines(self, tail: str, pos: int, end: int, final: bool) -> int | None:
        # Takes note of the last line that begins in [pos, end). Where it begins, if its indentation
        # may still grow: so far the tail is final.
        line = tail.rfind("\n", pos, end)
        if line < 0:
            return None

        stop = line + 1
        deepest = min(stop + _DEEPER + 1, len(tail))
        while stop < deepest and tail[stop] in " \t":
            stop += 1

        self._indent = stop - line - 1
        self._line = self._at + stop
        if stop == len(tail) and self._indent <= _DEEPER and not final:
            return line
        return None

    def _closer(self, tail: str, match: re.Match[str], final: bool) -> Close | int | None:
        # None: it is part of a text. On a line of its own its indentation decides. After words of a
        # shallow line, the next call or the end has to follow. On a deeper line it is part of a
        # block of text.
        start, end = self._at + match.start(), self._at + match.end()
        close = Close(start, end, "closer")
        # The three easy answers first; only the last needs what follows the tag.
        if self._first < 0:  # there is nothing it could be a part of
            return close

        shallow = self._indent <= self._first
        if start == self._line or not shallow:
            return close if shallow else None
        if self._inline and self._quotes % 2 == 0:
            return close
        follows = self._follow.check(tail, match.end(), self._at, final)
        if follows is None:
            return self._settle(match.start())
        # The first such tag is remembered, in case no other comes.
        if not follows and self._hidden is None:
            self._hidden = (start, end)
        return close if follows else None


@lru_cache(maxsize=512)
def _patterns(name: str, tools: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    # For each phase. Groups: close, open, cut (a tag that is not complete), line (the beginning of
    # one), start (one whose indentation may still grow), word.
    openers = "|".join(re.escape(tool) for tool in sorted(tools, key=len, reverse=True))
    longest = max(map(len, (name, *tools))) + 40
    tags = (
        rf"<(?:(?P<close>/[ \t]{{0,16}}{re.escape(name)}[ \t\r\n]{{0,16}}>)"
        rf"|(?P<open>(?:{openers})(?=[\s/>]))"
        rf"|(?P<cut>[^<>]{{0,{longest}}}\Z))"
    )
    line = (
        rf"(?P<line>\n[ \t]{{0,{_DEEPER}}}(?=[^ \t])|\n[ \t]{{{_DEEPER + 1}}})"
        rf"|(?P<start>\n[ \t]{{0,{_DEEPER}}}\Z)"
    )
    before = rf"{tags}|{line}|(?P<word>\S)"
    inline = rf"{tags}|{line}|(?P<word>\")"
    return tuple(re.compile(source) for source in (before, inline, tags))


_LOOK = 256  # white space before the first key that is looked past
_OPENER = "<tool_call>"  # around JSON it is a call of another format
_ELEMENTS = ElementCall()

_KEY = re.compile(
    r"(?:(?P<q>[\"'])(?P<quoted>[^\"'\\\n]{1,128})(?P=q)|(?P<plain>[\w.$-]{1,128}))"
    r"[ \t]{0,8}:(?P<after>\s|\Z)"
)
_KEY_SO_FAR = re.compile(r"(?:[\"'][^\"'\\\n]{0,128}[\"']?|[\w.$-]{0,128})[ \t]{0,8}\Z")


# The last line of a mapping whose value nothing goes on with: one word, or what has its own end.
_WHOLE_LINE = re.compile(
    r"""(?:\A|\n)[ ]*[\w.$-]{1,128}[ ]*:[ ]+"""
    r"""(?:[\w.+-]+|"[^"\\\n]*"|'[^'\n]*'|\[[^\]\n]*\]|\{[^}\n]*\})[ \r]*\Z"""
)


@dataclass(frozen=True, slots=True)
class YamlElements(ToolElements):
    """Envelope: `<tool>` … `</tool>` around lines of YAML, whose scanner finds by itself if a body
    began again.

    `<tool_call>` around JSON opens as well: models fall back to it, whatever the prompt says.
    `hermes` reads it.
    """

    restarts: tuple[str, ...] = ()
    closers: tuple[str, ...] = ("</tool_call>",)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        # unless a tool has that name; without tools nothing opens
        own = ToolElements.heads(self, tools)
        return (*own, _OPENER) if own and "tool_call" not in tools else own

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        # A call as `hermes` has it says who reads the body: its owner is HERMES.
        opening = ToolElements.open(self, text, pos, final, tools)
        if opening is not None or not tools:
            return opening

        # A tool of that name has been tried, and has its own elements.
        if "tool_call" in tools:
            return None
        if not text.startswith(_OPENER, pos):  # half of it may be all that is here
            cut = not final and _OPENER.startswith(text[pos : pos + len(_OPENER)])
            return NEED_MORE if cut else None
        # A brace has to follow: it is text otherwise, or the opener of another format.
        at = skip_space(text, pos + len(_OPENER), _LOOK)
        if at == len(text):
            return None if final else NEED_MORE
        return Opening(len(_OPENER), owner=HERMES) if text[at] == "{" else None

    def closer_of(self, opening: Opening) -> str:
        return self.closers[0] if opening.owner is HERMES else ToolElements.closer_of(self, opening)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.owner is HERMES:
            return HERMES.envelope.scanner(opening, tools)
        if not opening.name:
            return NamedEnd(tools)
        return YamlBody(opening.name, tuple(tools))

    def resumes(self, text: str, tools: Tools) -> Answer:
        # an opening without a name, where the answer begins with a tool's parameter
        if not tools:
            return None
        key = _first_key(text, 0, False)
        if isinstance(key, NeedMore):
            part = text.strip("\"'").partition(":")[0].rstrip()
            return key if has_property(part, tools, partial=True) else None
        return headless(key, tools) if key is not None else None

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        # A text without quotes may go on in the next line, so only one word, and a value that
        # closes itself, are over.
        last = text.rstrip()
        return last != "" and _WHOLE_LINE.search(last) is None

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore:
        # Its first line is a parameter and a colon where another format has the same opener.
        if opening.owner is HERMES or opening.whole:
            return False

        start = skip_space(text, at, _LOOK)
        if start == len(text):
            return False if final else NEED_MORE
        if text[start] == "<":  # an element, as most bodies with such an opener begin
            return False

        key = _first_key(text, start, final)
        if not isinstance(key, str):
            return key or False
        tool = tools.get(opening.name)
        properties = view_of(tool.schema_json).properties if tool else ()
        # Of a tool without known parameters, a key on the opener's line may as well be a text.
        return key in properties if properties else "\n" in text[at:start]


def _first_key(text: str, start: int, final: bool) -> str | NeedMore | None:
    # without its quotes
    match = _KEY.match(text, start)
    if match is None:
        may_come = not final and _KEY_SO_FAR.match(text, start) is not None
        return NEED_MORE if may_come else None

    # White space has to follow the colon, or the end: `a:b` is a text.
    if not match["after"] and not final:
        return NEED_MORE
    return match["quoted"] or match["plain"]


@dataclass(frozen=True, slots=True)
class YamlCall(Codec):
    """Codec: the parameters as the keys of one YAML mapping."""

    # How it works: the flat reader knows most bodies. Elements in place of YAML are read by the
    # codec of elements, if the tool knows every one of them. Else PyYAML reads the text; where it
    # refuses, one repair is tried: what is wrapped around the mapping, or else quotes around texts
    # that are no YAML. So a body is read twice at most.

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # The closing tag is necessary, since without it the last text may go on. A tool that no one
        # knows has a schema that admits everything.
        opening = context.opening
        if opening.owner is HERMES:
            return HERMES.codec.read(body, context)
        if not context.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))

        tool = context.tools.get(opening.name)
        view = view_of(tool.schema_json if tool else EMPTY_SCHEMA)
        flat = read_flat(body, view) if context.max_depth > 0 else None
        if flat is not None and not holds_unknown(flat[0], view):
            values, flat_places = flat
            call = _decoded(opening, values, lambda: flat_places)
            if opening.attributes:
                call = with_attributes(call, view, opening)
        else:
            # No mapping begins with `<`.
            elements = _elements(body, view, context) if body.lstrip()[:1] == "<" else None
            reader = partial(self._mapping, view=view)
            call = elements or MappingDisambiguation(body, view, context, reader).call()
            if elements is None and opening.attributes:
                call = with_attributes(call, view, opening)
        # Without an opener it may as well be text that looks like a call.
        if opening.speculative and opening.end == 0:
            call = checked(call, body, context)
        return (call,)

    def _mapping(self, body: str, context: DecodeContext, view: View) -> Decoded:
        # As PyYAML reads it, repaired once if need be. The refusal is that of the body as it came,
        # if there is nothing to repair.
        depth = min(context.max_depth, MAX_DEPTH)
        edits: tuple[Edit, ...] = ()
        reader = MappingReader(body, depth)
        try:
            value = reader.read(view)
        except Refusal as refusal:
            if context.repair:
                edits = wrapping(body)
                # Quotes around texts can only help where it is not YAML.
                if not edits and isinstance(refusal, NoYaml):
                    edits = raw_texts(body, view, depth)
            if not edits:
                raise
            reader = MappingReader(apply_edits(body, edits), depth)
            value = reader.read(view)

        places = moved_places(lambda: reader.places, EditMap(edits).raw_span)
        return _decoded(context.opening, value, places, edits, tuple(reader.steps))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return write_element(name, read_strict(arguments_json))


def _elements(body: str, view: View, context: DecodeContext) -> Decoded | None:
    # Models fall back to elements, since the call itself is one. The tool has to know each.
    try:
        (call,) = _ELEMENTS.read(body, context)
    except Refusal:
        return None

    # One element that is no parameter may as well be a text that begins with markup.
    value = call.arguments
    if not value or any(name not in view.properties for name in value):
        return None

    start = len(body) - len(body.lstrip())
    span = Span(start, len(body.rstrip()))
    return with_step(call, "read.element-parameters", span=span)


# No offsets for a text that YAML folds, indents or escapes: it keeps no simple place for each.
_decoded = partial(
    named_call,
    unescape=lambda raw: None if re.search(r"[\n\r\\']", raw) else list(range(len(raw) + 1)),
)


def yaml_grammar(tools: Sequence[ToolSpec]) -> str:
    """Return the grammar of one call.

    Raises UnwritableCall for a name no element can have.
    """
    return _YamlCalls(tools).grammar("call")


class _YamlCalls(ElementGrammar):
    def field(self, name: str, schema: Any, depth: int) -> str | None:
        # A key and a value in JSON, which is YAML as well.
        value = self.json_value(schema, depth, IN_YAML)
        if value is None:
            return None
        # A key that is no plain word needs quotes: it may hold a colon, or look like a number.
        key = name if XML_NAME.fullmatch(name) else self.json_text(name, IN_YAML)
        return f"{literal(f'{key}: ')} {value} {literal(chr(10))}"


# The wrong boolean is `yes`: YAML 1.1 read it as true, version 1.2 reads it as text.
YAML_TYPE_RULES = make_rules(
    "{name}: {value}",
    ("boolean", "enabled", "true", "yes", "A boolean is the bare word true or false."),
    (
        *("string", "code", '"0042"', "0042"),
        "A string is plain text; one that looks like a number or a boolean stands in quotes.",
    ),
    (
        *("array", "tags", "[red, blue]", "red, blue"),
        "An array is a list in square brackets, or one line with a dash for each item.",
    ),
    (
        *("object", "size", "{w: 3, h: 4}", '"w: 3, h: 4"'),
        "An object is a mapping of its own, not a string that holds one.",
    ),
)

YAML_XML = Protocol(
    id="yaml_xml",
    aliases=("yaml-xml",),
    title="one element a call, YAML inside",
    envelope=YamlElements(),
    codec=YamlCall(),
    tags=frozenset(("delimited", "schema-typed")),
    results=YamlResult(),
    grammar=yaml_grammar,
    type_rules=YAML_TYPE_RULES,
    wordings=Wordings("yaml_xml"),
    failure="Could not process YAML tool call, keeping original text.",
)
