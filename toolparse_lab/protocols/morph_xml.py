"""`morph_xml`: one element a call, named after the tool; its children are the parameters."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits, find_places
from ..rjson.repair import read_damaged
from ..rxml.flat import read_flat
from ..rxml.reader import TEXT_KEY, ElementReader, text_params, unescape_offsets, wrapper_name
from ..rxml.writer import write_element
from ..scan import Scanner
from ..schema.view import View, view_of
from ..toolspec import EMPTY_SCHEMA, ToolSpec
from ..types import Edit, Span, Step
from ..values import Value, read_strict
from .base import NEED_MORE, Decoded, NeedMore, Opening, Places, Protocol, Reading, Tools
from .element_scan import ElementBody
from .json_call import unescape_offsets as json_offsets
from .results import ElementResult

_ATTRIBUTES = re.compile(r"(?:[ \t\r\n](?:[^<>\"']|\"[^\"<]{0,512}\"|'[^'<]{0,512}'){0,512}?)?(?P<whole>/?)>")
_PLAIN_NAME = re.compile(r"[^ \t\r\n<>/]+")
_MAX_OPENER = 2048
_MAX_COMMENT = 4096  # a longer comment is text: waiting for its end would cost too much at each of many openers


def _view(tools: Tools, name: str) -> View:
    tool = tools.get(name)
    return view_of(tool.schema_json if tool else EMPTY_SCHEMA)


@lru_cache(maxsize=2048)
def _texts(view: View) -> frozenset[str]:
    return text_params(view)


@lru_cache(maxsize=512)
def _tags(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple("<" + name for name in names)


@lru_cache(maxsize=512)
def _plain_opener(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """What an opener begins with, up to the character behind the name; None where a name holds such a character, and
    so one opener may begin with several names."""
    if not all(_PLAIN_NAME.fullmatch(name) for name in names):
        return None
    return re.compile(rf"<({_PLAIN_NAME.pattern[:-1]}{{1,{max(map(len, names))}}}+)([ \t\r\n>/])")


@lru_cache(maxsize=2048)
def _opening(name: str) -> Opening:
    """`<name>`, as nearly every opener is."""
    return Opening(len(name) + 2, name=name, name_span=Span(1, 1 + len(name)))


@dataclass(frozen=True, slots=True)
class ToolElements:
    """Envelope: `<tool …>` … `</tool>` for every known tool; comments hold no calls."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        return ("<!--", *_tags(tuple(tools))) if tools else ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        if text.startswith("<!--", pos):
            end = text.find("-->", pos + 4, pos + _MAX_COMMENT)
            if end < 0:
                return None if final or len(text) - pos >= _MAX_COMMENT else NEED_MORE
            return Opening(end + 3 - pos, "markup")
        if not tools:
            return None
        plain = _plain_opener(tuple(tools))
        m = plain.match(text, pos) if plain else None
        if m:
            name = m[1]
            if name not in tools:
                return None
            return _opening(name) if m[2] == ">" else self._tag(text, pos, m.end(1), name, final)
        best: Opening | NeedMore | None = None
        for name in tools:
            if text.startswith("<" + name, pos):
                found = self._tag(text, pos, pos + 1 + len(name), name, final)
                if isinstance(found, Opening):
                    return found
                best = best or found
            elif not final and ("<" + name).startswith(text[pos:]):
                best = NEED_MORE
        return best

    def _tag(self, text: str, pos: int, end: int, name: str, final: bool) -> Opening | NeedMore | None:
        m = _ATTRIBUTES.match(text, end)
        if m:
            return Opening(m.end() - pos, name=name, name_span=Span(1, 1 + len(name)), whole=bool(m["whole"]))
        rest = text[end : end + 1]
        if not final and (rest == "" or rest in " \t\r\n/") and len(text) - pos < _MAX_OPENER and "<" not in text[end:]:
            return NEED_MORE
        return None

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        return ElementBody(opening.name, _texts(_view(tools, opening.name)), _tags(tuple(tools)))

    def closer_of(self, opening: Opening) -> str:
        return f"</{opening.name}>"

    def speculates(self, text: str) -> Opening | NeedMore | None:
        return None


@dataclass(frozen=True, slots=True)
class ElementCall:
    """Codec: parameters as child elements, read with the tool's schema at hand."""

    def strict(self, body: str, reading: Reading) -> bool:
        try:
            self.read(body, Reading(reading.opening, True, False, reading.max_depth, reading.tools))
        except Refusal:
            return False
        return True

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        opening = reading.opening
        view = _view(reading.tools, opening.name)
        if not reading.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))
        flat = read_flat(body, view, TEXT_KEY)
        if flat is not None:
            return (_decoded(opening, flat.value, flat.places, (), ()),)
        stripped = body.strip()
        if stripped[:1] == "{" and not view.properties.get(TEXT_KEY):
            found = self._json(body, reading)
            if found is not None:
                return (found,)
        if stripped and "<" not in stripped:
            return (self._text(body, view, reading),)
        return (self._elements(body, view, reading),)

    def _elements(self, body: str, view: View, reading: Reading) -> Decoded:
        repair, closed = reading.repair, reading.closed
        root = wrapper_name(body, view)
        if root is not None:
            below = ElementReader(body, view, repair=repair, closed=closed, wrapper=root)
            unwrapped = below.read_wrapped()
            if unwrapped is not None and any(k in view.properties for k in unwrapped):
                step = Step("read", "read.wrapper", "", None, {root: unwrapped}, unwrapped)
                return _read_by(below, reading, unwrapped, (step,))
        reader = ElementReader(body, view, repair=repair, closed=closed)
        value = reader.read()
        if list(value) == [TEXT_KEY]:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)
        return _read_by(reader, reading, value, ())

    def _json(self, body: str, reading: Reading) -> Decoded | None:
        """The body is one JSON object: the parameters, in the other dialect."""
        try:
            values, edits = (
                read_damaged(body, closed=True, numbers_end=True, prose=False, max_depth=reading.max_depth)
                if reading.repair
                else ([read_strict(body)], [])
            )
        except (Refusal, ValueError, RecursionError):
            return None
        if len(values) != 1 or not isinstance(values[0], dict):
            return None
        lead = len(body) - len(body.lstrip())
        fixed = tuple(edits)

        def places() -> dict[str, tuple[int, int]]:
            back = EditMap(fixed)
            edited = apply_edits(body, fixed)
            return {p: back.raw_span(a, b) for p, (a, b) in find_places(edited).values.items()}

        step = Step("read", "read.json-body", "", Span(lead, lead + len(body.strip())), None, values[0])
        return Decoded(
            reading.opening.name, values[0], name_span=_before(reading.opening), edits=fixed, steps=(step,),
            places=places, unescape=json_offsets,
        )  # fmt: skip

    def _text(self, body: str, view: View, reading: Reading) -> Decoded:
        """The body is plain text: the value of the tool's only parameter, if that is a text."""
        names = text_params(view)
        if len(view.properties) != 1 or len(names) != 1:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)
        reader = ElementReader(body, view, repair=reading.repair, closed=reading.closed)
        (name,) = names
        value = {name: reader.raw_text(0, len(body), f"/{name}")}
        reader.places[""] = (0, len(body))
        step = Step("read", "read.text-body", "", Span(0, len(body)), None, value)
        return _read_by(reader, reading, value, (step,))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return write_element(name, read_strict(arguments_json))


def _read_by(reader: ElementReader, reading: Reading, value: Value, steps: tuple[Step, ...]) -> Decoded:
    places = reader.places
    return _decoded(reading.opening, value, lambda: places, tuple(reader.edits), steps)


def _decoded(
    opening: Opening, value: Value, places: Callable[[], Places], edits: tuple[Edit, ...], steps: tuple[Step, ...]
) -> Decoded:
    return Decoded(
        opening.name, value, name_span=_before(opening), edits=edits, steps=steps, places=places,
        unescape=unescape_offsets, untyped=True,
    )  # fmt: skip


def _before(opening: Opening) -> Span | None:
    """The name's span, which stands in the opener, counted from the beginning of the body."""
    return opening.name_span.shift(-opening.end) if opening.name_span else None


def morph_xml_protocol() -> Protocol:
    """The protocol `morph_xml`: one element a call."""
    return MORPH_XML


MORPH_XML = Protocol(
    id="morph_xml",
    aliases=("xml", "morph-xml"),
    title="one element a call",
    envelope=ToolElements(),
    codec=ElementCall(),
    tags=frozenset(("delimited", "schema-typed")),
    results=ElementResult(),
)
