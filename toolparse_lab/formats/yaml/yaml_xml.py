"""`yaml_xml`: one element a call, named after the tool.

Between its tags stands one YAML 1.2 mapping.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.schema.view import View, view_of
from ...core.toolspec import EMPTY_SCHEMA, ToolSpec
from ...core.types import Edit, Span, Step
from ...core.values import Value, read_strict
from ..base import NEED_MORE, Codec, Decoded, NeedMore, Opening, Places, Protocol, Reading, Tools
from ..json.mix import HERMES
from ..prompt.wording import Wordings
from ..results import YamlResult
from ..scan import Scanner
from ..xml.morph_xml import (
    ElementCall,
    NamedEnd,
    ToolElements,
    checked,
    has_property,
    headless,
    with_attributes,
)
from .flat import read_flat
from .grammar import yaml_grammar
from .judge import MappingDisambiguation, holds_unknown
from .reader import MAX_DEPTH, MappingReader, NoYaml
from .repair import raw_texts, wrapping
from .scan import YamlBody
from .type_rules import YAML_TYPE_RULES
from .write import write_element

_LOOK = 256  # white space before the first key that is looked past
_OPENER = "<tool_call>"  # around JSON it is a call of another format
_ELEMENTS = ElementCall()

_SPACE = re.compile(rf"\s{{0,{_LOOK}}}")
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
        """Return the beginnings of the tools' openers, and `<tool_call>`.

        Unless a tool has that name. Without tools nothing opens.

        tools: name -> tool, of all that may be called.
        """
        own = ToolElements.heads(self, tools)
        return (*own, _OPENER) if own and "tool_call" not in tools else own

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        """Return the opening of a tool's element, or of a call as `hermes` has it.

        The latter says who reads the body: its owner is HERMES. NEED_MORE while either may come.

        pos: where one of the heads stands in the text. final: no more text will come.
        """
        opening = ToolElements.open(self, text, pos, final, tools)
        if opening is not None or not tools:
            return opening

        # A tool of that name has been tried, and has its own elements.
        return None if "tool_call" in tools else _open_tool_call(text, pos, final)

    def closer_of(self, opening: Opening) -> str:
        """Return the literal that closes the body: of the element, or of `hermes`."""
        return self.closers[0] if opening.owner is HERMES else ToolElements.closer_of(self, opening)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        """Return the scanner of lines of YAML, or the one that `hermes` has.

        opening: the result of `open`. tools: their names open further calls.
        """
        if opening.owner is HERMES:
            return HERMES.envelope.scanner(opening, tools)
        if not opening.name:
            return NamedEnd(tools)
        return YamlBody(opening.name, tuple(tools))

    def resumes(self, text: str, tools: Tools) -> Opening | NeedMore | None:
        """Return an opening without a name, where the answer begins with a tool's parameter."""
        if not tools:
            return None
        key = _first_key(text, 0, False)
        if isinstance(key, NeedMore):
            part = text.strip("\"'").partition(":")[0].rstrip()
            return key if has_property(part, tools, partial=True) else None
        return headless(key, tools) if key is not None else None

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        """Return True if lines that were given up behind `text` may end inside a value.

        A text without quotes may go on in the next line, so only one word, and a value that closes
        itself, are over.
        """
        last = text.rstrip()
        return last != "" and _WHOLE_LINE.search(last) is None

    def suits(
        self, opening: Opening, text: str, at: int, final: bool, tools: Tools
    ) -> bool | NeedMore:
        """Return True if the body at `at` is of this format, where another has the same opener.

        Its first line is a parameter and a colon then. NEED_MORE while the text ends inside that
        line's beginning. White space in front of it is looked past as far as `_LOOK`.

        opening: of the element. final: no more text will come.
        """
        if opening.owner is HERMES or opening.whole:
            return False

        start = _behind_space(text, at)
        if start == len(text):
            return False if final else NEED_MORE
        if text[start] == "<":  # an element, as most bodies with such an opener begin
            return False

        key = _first_key(text, start, final)
        if not isinstance(key, str):
            return key or False
        on_new_line = "\n" in text[at:start]
        return self._may_be_parameter(opening.name, key, on_new_line, tools)

    def _may_be_parameter(self, name: str, key: str, on_new_line: bool, tools: Tools) -> bool:
        """Return True if a key is a parameter of the tool with that name, or may be one.

        on_new_line: it does not stand on the opener's own line.
        """
        properties = _properties(tools, name)
        # Of a tool without known parameters, a key on the opener's line may as well be a text.
        return key in properties if properties else on_new_line


def _first_key(text: str, start: int, final: bool) -> str | NeedMore | None:
    """Return the key that a line of a mapping begins with at `start`, without its quotes.

    None if it is no such line. NEED_MORE if it may become one.

    start: behind white space. final: no more text will come.

    >>> _first_key('"a b": 1', 0, True), _first_key("text", 0, True)
    ('a b', None)
    """
    match = _KEY.match(text, start)
    if match is None:
        may_come = not final and _KEY_SO_FAR.match(text, start) is not None
        return NEED_MORE if may_come else None

    # White space has to follow the colon, or the end: `a:b` is a text.
    if not match["after"] and not final:
        return NEED_MORE
    return match["quoted"] or match["plain"]


def _properties(tools: Tools, name: str) -> Collection[str]:
    """Return the parameters of a tool, nothing for one that no one knows.

    name: of a tool, as the opener has it.
    """
    tool = tools.get(name)
    return view_of(tool.schema_json).properties if tool else ()


def _behind_space(text: str, pos: int) -> int:
    """Return the offset behind white space, as far as it is looked past.

    The bound keeps the tail of a stream short, whatever a hostile text holds.

    >>> _behind_space("a  b", 1)
    3
    """
    match = _SPACE.match(text, pos)
    return match.end() if match else pos


def _open_tool_call(text: str, pos: int, final: bool) -> Opening | NeedMore | None:
    """Return the opening of `<tool_call>` around JSON, if it stands at `pos`.

    final: no more text will come.
    """
    if text.startswith(_OPENER, pos):
        return _open_json(text, pos + len(_OPENER), final)

    # Half of `<tool_call>` may be all that is here.
    cut = not final and _OPENER.startswith(text[pos : pos + len(_OPENER)])
    return NEED_MORE if cut else None


def _open_json(text: str, end: int, final: bool) -> Opening | NeedMore | None:
    """Return the opening of `<tool_call>`, which ends at `end`, if a brace follows.

    None otherwise: it is text then, or the opener of another format.

    final: no more text will come. NEED_MORE while nothing but white space follows.
    """
    at = _behind_space(text, end)
    if at == len(text):
        return None if final else NEED_MORE
    return Opening(len(_OPENER), owner=HERMES) if text[at] == "{" else None


@dataclass(frozen=True, slots=True)
class YamlCall(Codec):
    """Codec: the parameters as the keys of one YAML mapping."""

    # How it works: the flat reader knows most bodies. Elements in place of YAML are read by the
    # codec of elements, if the tool knows every one of them. Else PyYAML reads the text; where it
    # refuses, one repair is tried: what is wrapped around the mapping, or else quotes around texts
    # that are no YAML. So a body is read twice at most.

    def strict(self, body: str, reading: Reading) -> bool:
        """Return True if the body reads without any repair, by the format that opened it."""
        if reading.opening.owner is HERMES:
            return HERMES.codec.strict(body, reading)
        # Not super(): dataclasses with slots are made anew, and super() looks for the first one.
        return Codec.strict(self, body, reading)

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        """Return the one call of a body.

        Raises Refusal if it is not a mapping of parameters.

        The closing tag is necessary, since without it the last text may go on. A tool that no one
        knows has a schema that admits everything.

        body: the text between the tags. reading: the opening, the tools, and the options.
        """
        opening = reading.opening
        if opening.owner is HERMES:
            return HERMES.codec.read(body, reading)
        if not reading.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))

        tool = reading.tools.get(opening.name)
        view = view_of(tool.schema_json if tool else EMPTY_SCHEMA)
        flat = read_flat(body, view) if reading.max_depth > 0 else None
        if flat is not None and not holds_unknown(flat[0], view):
            values, flat_places = flat
            call = _decoded(opening, values, lambda: flat_places)
            if opening.attributes:
                call = with_attributes(call, view, opening)
        else:
            call = self._unusual(body, view, reading)
        # Without an opener it may as well be text that looks like a call.
        if opening.speculative and opening.end == 0:
            call = checked(call, body, reading)
        return (call,)

    def _unusual(self, body: str, view: View, reading: Reading) -> Decoded:
        """Return the call of a body that is not a flat mapping.

        Raises Refusal.

        view: the schema of the parameters.
        """
        # No mapping begins with `<`.
        call = _elements(body, view, reading) if body.lstrip()[:1] == "<" else None
        if call is not None:
            return call
        call = MappingDisambiguation(
            body, view, reading, lambda text, manner: self._mapping(text, view, manner)
        ).call()
        opening = reading.opening
        return with_attributes(call, view, opening) if opening.attributes else call

    def _mapping(self, body: str, view: View, reading: Reading) -> Decoded:
        """Return the call as PyYAML reads it, repaired once if need be.

        Raises Refusal.

        The refusal is that of the body as it came, if there is nothing to repair.

        view: the schema of the parameters. Places are told of the body as it came.
        """
        depth = min(reading.max_depth, MAX_DEPTH)
        edits: tuple[Edit, ...] = ()
        reader = MappingReader(body, depth)
        try:
            value = reader.read(view)
        except Refusal as refusal:
            if reading.repair:
                edits = self._repairs(body, view, depth, refusal)
            if not edits:
                raise
            reader = MappingReader(apply_edits(body, edits), depth)
            value = reader.read(view)

        def places() -> Places:
            back = EditMap(edits)
            return {path: back.raw_span(a, b) for path, (a, b) in reader.places.items()}

        return _decoded(reading.opening, value, places, edits, tuple(reader.steps))

    def _repairs(self, body: str, view: View, depth: int, refusal: Refusal) -> tuple[Edit, ...]:
        """Return the edits that may make YAML of a body.

        None if nothing is known to help.

        refusal: of the body as it came. Quotes around texts can only help where it is not YAML.
        """
        edits = wrapping(body)
        if edits or not isinstance(refusal, NoYaml):
            return edits
        return raw_texts(body, view, depth)

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        """Return the call as an element.

        Raises UnwritableCall for values that YAML cannot carry.

        arguments_json: strict JSON. tool: is superfluous, since YAML says all by itself.
        """
        return write_element(name, read_strict(arguments_json))


def _elements(body: str, view: View, reading: Reading) -> Decoded | None:
    """Return the call whose parameters are elements, where the tool knows each, else None.

    Models fall back to it, since the call itself is an element.

    view: the schema of the tool's parameters.
    """
    try:
        (call,) = _ELEMENTS.read(body, reading)
    except Refusal:
        return None

    # One element that is no parameter may as well be a text that begins with markup.
    value = call.arguments
    if not value or any(name not in view.properties for name in value):
        return None

    start = len(body) - len(body.lstrip())
    span = Span(start, len(body.rstrip()))
    step = Step("read", "read.element-parameters", "", span, None, value)
    return replace(call, steps=(step, *call.steps))


def _decoded(
    opening: Opening,
    value: Value,
    places: Callable[[], Places],
    edits: tuple[Edit, ...] = (),
    steps: tuple[Step, ...] = (),
) -> Decoded:
    """Return a call.

    The name is in its opener, before the beginning of the body.

    value: the mapping. places: a function, since they are only worked out when asked for.
    edits, steps: the changes of repair and reading to the body.
    """
    name_span = opening.name_span.shift(-opening.end) if opening.name_span else None
    return Decoded(
        opening.name,
        value,
        name_span=name_span,
        edits=edits,
        steps=steps,
        places=places,
        unescape=_unescape_offsets,
    )


def _unescape_offsets(raw: str) -> list[int] | None:
    """Return where each character of a text begins in `raw`.

    None for one that YAML folds, indents or escapes: it keeps no simple place for each.

    >>> _unescape_offsets("ab"), _unescape_offsets("a\\nb")
    ([0, 1, 2], None)
    """
    return None if re.search(r"[\n\r\\']", raw) else list(range(len(raw) + 1))


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
