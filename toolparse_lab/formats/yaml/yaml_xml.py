"""`yaml_xml`: one element a call, named after the tool, with a YAML 1.2 mapping in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits
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
from ..scan import Scanner, skip_space
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
from .scan import YamlBody
from .write import write_element

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

    def strict(self, body: str, context: DecodeContext) -> bool:
        if context.opening.owner is HERMES:
            return HERMES.codec.strict(body, context)
        # Not super(): dataclasses with slots are made anew, and super() looks for the first one.
        return Codec.strict(self, body, context)

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
