"""`yaml_xml`: one element a call, named after the tool; between its tags stands one YAML 1.2 mapping."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits
from ..scan import Scanner
from ..schema.view import View, view_of
from ..toolspec import EMPTY_SCHEMA, ToolSpec
from ..types import Edit, Span, Step
from ..values import Value, read_strict
from .base import NEED_MORE, Decoded, NeedMore, Opening, Places, Protocol, Reading, Tools
from .json_mix import HERMES
from .morph_xml import ElementCall, ToolElements
from .results import YamlResult
from .yaml_flat import read_flat
from .yaml_reader import MAX_DEPTH, MappingReader, NoYaml
from .yaml_repair import raw_texts, wrapping
from .yaml_scan import YamlBody
from .yaml_write import write_element

_LOOK = 256  # white space before the first key that is looked past
_OPENER = "<tool_call>"  # around JSON it is a call of another format
_ELEMENTS = ElementCall()

_SPACE = re.compile(rf"\s{{0,{_LOOK}}}")
_KEY = re.compile(
    r"(?:(?P<q>[\"'])(?P<quoted>[^\"'\\\n]{1,128})(?P=q)|(?P<plain>[\w.$-]{1,128}))[ \t]{0,8}:(?P<after>\s|\Z)"
)
_KEY_SO_FAR = re.compile(r"(?:[\"'][^\"'\\\n]{0,128}[\"']?|[\w.$-]{0,128})[ \t]{0,8}\Z")


@dataclass(frozen=True, slots=True)
class YamlElements(ToolElements):
    """Envelope: `<tool>` … `</tool>` around lines of YAML, whose scanner finds by itself where a body began anew.

    `<tool_call>` around JSON opens as well: models fall back to it, whatever they were told. `hermes` reads it.
    """

    restarts: tuple[str, ...] = ()
    closers: tuple[str, ...] = ("</tool_call>",)

    def heads(self, tools: Tools) -> tuple[str, ...]:
        own = ToolElements.heads(self, tools)
        return (*own, _OPENER) if own and "tool_call" not in tools else own

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        found = ToolElements.open(self, text, pos, final, tools)
        if found is not None or not tools or "tool_call" in tools:
            return found
        if not text.startswith(_OPENER, pos):
            return NEED_MORE if not final and _OPENER.startswith(text[pos : pos + len(_OPENER)]) else None
        end = pos + len(_OPENER)
        m = _SPACE.match(text, end)
        at = m.end() if m else end
        if at == len(text):
            return None if final or at - end >= _LOOK else NEED_MORE
        return Opening(len(_OPENER), owner=HERMES) if text[at] == "{" else None

    def closer_of(self, opening: Opening) -> str:
        return self.closers[0] if opening.owner is HERMES else ToolElements.closer_of(self, opening)

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        if opening.owner is HERMES:
            return HERMES.envelope.scanner(opening, tools)
        return YamlBody(opening.name, tuple(tools))

    def suits(self, opening: Opening, text: str, at: int, final: bool, tools: Tools) -> bool | NeedMore:
        """Where another format has the same opener: the first line of the body is a parameter and a colon."""
        if opening.owner is HERMES:
            return False
        m = _SPACE.match(text, at)
        start = m.end() if m else at
        if start == len(text):
            return False if final or start - at >= _LOOK else NEED_MORE
        key = _KEY.match(text, start)
        if key is None:
            return NEED_MORE if not final and _KEY_SO_FAR.match(text, start) else False
        if not key["after"] and not final:
            return NEED_MORE
        tool = tools.get(opening.name)
        properties = view_of(tool.schema_json).properties if tool else {}
        if not properties:
            return "\n" in text[at:start]  # on the opener's line it may as well be a text
        return (key["quoted"] or key["plain"]) in properties


@dataclass(frozen=True, slots=True)
class YamlCall:
    """Codec: the parameters as the keys of one YAML mapping."""

    def strict(self, body: str, reading: Reading) -> bool:
        if reading.opening.owner is HERMES:
            return HERMES.codec.strict(body, reading)
        try:
            self.read(body, replace(reading, closed=True, repair=False))
        except Refusal:
            return False
        return True

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        opening = reading.opening
        if opening.owner is HERMES:
            return HERMES.codec.read(body, reading)
        if not reading.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))
        tool = reading.tools.get(opening.name)
        view = view_of(tool.schema_json if tool else EMPTY_SCHEMA)
        flat = read_flat(body, view) if reading.max_depth > 0 else None
        if flat is not None:
            value, where = flat
            return (_decoded(opening, value, lambda: where),)
        if body.lstrip()[:1] == "<":
            found = _elements(body, view, reading)
            if found is not None:
                return (found,)
        return (self._mapping(body, view, reading),)

    def _mapping(self, body: str, view: View, reading: Reading) -> Decoded:
        depth = min(reading.max_depth, MAX_DEPTH)
        edits: tuple[Edit, ...] = ()
        reader = MappingReader(body, depth)
        try:
            value = reader.read(view)
        except Refusal as no:
            if reading.repair:
                edits = wrapping(body) or (raw_texts(body, view, depth) if isinstance(no, NoYaml) else ())
            if not edits:
                raise
            reader = MappingReader(apply_edits(body, edits), depth)
            value = reader.read(view)
        places = reader.places

        def find() -> Places:
            back = EditMap(edits)
            return {p: back.raw_span(a, b) for p, (a, b) in places.items()}

        return _decoded(reading.opening, value, find, edits, tuple(reader.steps))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return write_element(name, read_strict(arguments_json))


def _elements(body: str, view: View, reading: Reading) -> Decoded | None:
    """The parameters as elements, where each is one that the tool knows."""
    try:
        (found,) = _ELEMENTS.read(body, reading)
    except Refusal:
        return None
    value = found.arguments
    if not value or any(name not in view.properties for name in value):
        return None
    start = len(body) - len(body.lstrip())
    step = Step("read", "read.element-parameters", "", Span(start, len(body.rstrip())), None, value)
    return replace(found, steps=(step, *found.steps))


def _decoded(
    opening: Opening, value: Value, places: Callable[[], Places], edits: tuple[Edit, ...] = (),
    steps: tuple[Step, ...] = (),
) -> Decoded:  # fmt: skip
    name_span = opening.name_span.shift(-opening.end) if opening.name_span else None
    return Decoded(
        opening.name, value, name_span=name_span, edits=edits, steps=steps, places=places, unescape=_unescape_offsets
    )


def _unescape_offsets(raw: str) -> list[int] | None:
    """A text that YAML folds, indents or escapes keeps no simple place for each character."""
    return None if re.search(r"[\n\r\\']", raw) else list(range(len(raw) + 1))


YAML_XML = Protocol(
    id="yaml_xml",
    aliases=("yaml-xml",),
    title="one element a call, YAML inside",
    envelope=YamlElements(),
    codec=YamlCall(),
    tags=frozenset(("delimited", "schema-typed")),
    results=YamlResult(),
)
