"""`morph_xml`: one element a call, named after the tool.

Its children are the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from ...arguments.rjson.damage import Refusal
from ...arguments.rjson.positions import EditMap, apply_edits, find_places
from ...arguments.rjson.repair import read_damaged
from ...arguments.schema.view import View, view_of
from ...core.toolspec import EMPTY_SCHEMA, ToolSpec
from ...core.types import Edit, Span, Step
from ...core.values import Value, read_strict
from ..base import (
    NEED_MORE,
    Codec,
    Decoded,
    Envelope,
    NeedMore,
    Opening,
    Places,
    PlainCall,
    Protocol,
    Reading,
    Tools,
    make_opening,
)
from ..json.source import unescape_offsets as json_offsets
from ..prompt.wording import Wordings
from ..results import ElementResult
from ..rxml.doubt import is_doubtful
from ..rxml.flat import FlatBody, read_flat
from ..rxml.lists import ListReader
from ..rxml.reader import TEXT_KEY, ElementReader, text_params, unescape_offsets, wrapper_name
from ..rxml.writer import write_element
from ..scan import Scanner
from .attributes import with_attributes, with_own_attributes
from .grammar import element_grammar
from .headless import NamedEnd, checked, has_property, headless
from .judge import ElementJudge
from .scan import ElementBody, ends_in_element, plain_body, plain_texts
from .type_rules import XML_TYPE_RULES

_ATTRIBUTES = re.compile(
    r"(?:[ \t\r\n](?:[^<>\"']|\"[^\"<]{0,512}\"|'[^'<]{0,512}'){0,512}?)?(?P<whole>/?)>"
)
_PLAIN_NAME = re.compile(r"[^ \t\r\n<>/]+")
# A line of a text that says a call: a tool before its arguments, or the word for a tool before one.
_CALL_IN_WORDS = re.compile(
    r"""^[ \t]*+["'`]?(?:(?P<key>[\w.-]{1,128}+)["'`]?[ \t]*+[:=]?[ \t]*+(?P<open>[{(])"""
    r"""|(?:action|function|tool|tool_name|name)["'`]?[ \t]*+[:=][ \t]*+["'`]?"""
    r"""(?P<value>[\w.-]{1,128}+)["'`]?[ \t\r]*+$)""",
    re.MULTILINE | re.IGNORECASE,
)
_MAX_OPENER = 2048
_NO_ATTRIBUTES = len("/>")
# a longer comment is text: waiting for its end would cost too much at each of many openers
_MAX_COMMENT = 4096


# A child at the beginning of an answer, which may be cut off.
_FIRST_CHILD = re.compile(r"<(?P<name>(?:[^\W\d][\w.:-]{0,127})?+)(?:(?P<end>>)|\Z)")


# How it works
#
# The opener of a call is the tool's own name, so that only known tools open anything: most answers
# are full of other tags. One compiled pattern reads an opener up to the character behind the name
# and looks the name up; only tools whose names hold such characters themselves are tried one by
# one.
#
# A body is read by the first of four that fits: flat elements (nearly every body), one JSON object
# (the other dialect of models that were trained on JSON), plain text for a tool whose only
# parameter is a text, and elements of any shape by the tolerant reader.


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
    # None if a name contains such a character: then one opener may begin with several names.
    if not all(_PLAIN_NAME.fullmatch(name) for name in names):
        return None

    # Possessive and no longer than the longest name: other tags cost one bounded match.
    longest = max(map(len, names))
    return re.compile(rf"<({_PLAIN_NAME.pattern[:-1]}{{1,{longest}}}+)([ \t\r\n>/])")


@lru_cache(maxsize=2048)
def _opening(name: str) -> Opening:
    return Opening(len(name) + 2, name=name, name_span=Span(1, 1 + len(name)))


@dataclass(frozen=True, slots=True)
class ToolElements(Envelope):
    """Envelope: `<tool …>` … `</tool>` for every known tool. Comments hold no calls."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        # A comment is a head because an opener inside it opens nothing.
        return ("<!--", *_tags(tuple(tools))) if tools else ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Opening | NeedMore | None:
        if text.startswith("<!--", pos):
            return _comment(text, pos, final)
        if not tools:
            return None

        plain = _plain_opener(tuple(tools))
        match = plain.match(text, pos) if plain else None
        if match:
            name = match[1]
            if name not in tools:
                return None
            return _opening(name) if match[2] == ">" else _tag(text, pos, name, final)

        return self._open_any(text, pos, final, tools)

    def _open_any(
        self, text: str, pos: int, final: bool, tools: Tools
    ) -> Opening | NeedMore | None:
        # The first tool whose tag is complete wins, even if a longer name could still come.
        undecided: NeedMore | None = None
        for name in tools:
            if text.startswith("<" + name, pos):
                answer = _tag(text, pos, name, final)
                if isinstance(answer, Opening):
                    return answer
                undecided = undecided or answer
            elif not final and ("<" + name).startswith(text[pos:]):
                undecided = NEED_MORE

        return undecided

    def scanner(self, opening: Opening, tools: Tools) -> Scanner:
        # Without a name, the body ends with the closing tag of some tool.
        names = tuple(tools)
        if not opening.name:
            return NamedEnd(names)
        return ElementBody(opening.name, _texts(_view(tools, opening.name)), _tags(names))

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return ends_in_element(text)

    def opens_parameter(self, opening: Opening, inner: Opening, tools: Tools) -> bool:
        return inner.name in _view(tools, opening.name).properties

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        return (*self.closers, *(f"</{name}>" for name in tools))

    def resume_starts(self, tools: Tools) -> str | None:
        return "<"

    def resumes(self, text: str, tools: Tools) -> Opening | NeedMore | None:
        # Most answers begin with words, or with a tool's own tag.
        match = _FIRST_CHILD.match(text) if text[0] == "<" else None
        if match is None or match["name"] in tools:
            return None
        name = match["name"]
        if not match["end"]:
            return NEED_MORE if has_property(name, tools, partial=True) else None
        return headless(name, tools)

    def closer_of(self, opening: Opening) -> str:
        return f"</{opening.name}>"


def _comment(text: str, pos: int, final: bool) -> Opening | NeedMore | None:
    # None for one that is never closed, or too long to wait for.
    end = text.find("-->", pos + 4, pos + _MAX_COMMENT)
    if end >= 0:
        return Opening(end + 3 - pos, "markup")
    return None if final or len(text) - pos >= _MAX_COMMENT else NEED_MORE


def _tag(text: str, pos: int, name: str, final: bool) -> Opening | NeedMore | None:
    # The opening of a tag with its attributes. None if the name goes on.
    end = pos + 1 + len(name)
    match = _ATTRIBUTES.match(text, end, pos + _MAX_OPENER)
    if match:
        span = Span(1, 1 + len(name))
        attributes = text[end : match.end()] if match.end() - end > _NO_ATTRIBUTES else ""
        return make_opening(
            match.end() - pos,
            name=name,
            name_span=span,
            whole=bool(match["whole"]),
            attributes=attributes,
        )
    if final or len(text) - pos >= _MAX_OPENER or "<" in text[end:]:
        return None
    # The empty text is in every text: the tag is cut off right behind the name.
    return NEED_MORE if text[end : end + 1] in " \t\r\n/" else None


@dataclass(frozen=True, slots=True)
class ElementCall(Codec):
    """Codec: parameters as child elements, read with the tool's schema at hand."""

    def read(self, body: str, reading: Reading) -> tuple[Decoded, ...]:
        # The closing tag is necessary, since without it the last parameter may go on.
        opening = reading.opening
        view = _view(reading.tools, opening.name)
        if not reading.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))

        call = self._call(body, view, reading)
        # Without an opener it may as well be text that looks like a call.
        if opening.speculative and opening.end == 0:
            call = checked(call, body, reading)
        return (call,)

    def plain_call(self, opening: Opening, text: str, start: int, tools: Tools) -> PlainCall | None:
        name = opening.name
        if name not in tools or opening.attributes or opening.name_span is None:
            return None
        match = plain_body(name).match(text, start)
        if match is None:
            return None
        closer, end = match.span(2)
        texts = plain_texts(text, start, closer)
        return PlainCall(name, start - opening.end + opening.name_span.start, texts, closer, end)

    def _call(self, body: str, view: View, reading: Reading) -> Decoded:
        opening = reading.opening
        # Nearly every body; what it leaves out is read by the tolerant reader, to the same values.
        flat = read_flat(body, view, TEXT_KEY)
        if flat is not None and not _ends_oddly(flat, view, body):
            call = _decoded(opening, flat.value, flat.places, (), ())
        else:
            call = self._unusual(body, view, reading)
        return with_attributes(call, view, opening) if opening.attributes else call

    def _unusual(self, body: str, view: View, reading: Reading) -> Decoded:
        stripped = body.strip()
        if stripped[:1] == "{" and not view.properties.get(TEXT_KEY):
            call = self._json(body, reading)
            if call is not None:
                return call

        if stripped and "<" not in stripped:
            return self._text(body, view, reading)
        tool = reading.tools.get(reading.opening.name)
        judge = ElementJudge(body, view, tool.schema_json if tool else None, reading)
        return judge.settle(lambda text, manner: self._shaped(text, view, manner))

    def _shaped(self, body: str, view: View, reading: Reading) -> Decoded:
        # A body that was put right is flat as a rule; as in `_call`, the result is the same.
        flat = None if reading.repair else read_flat(body, view, TEXT_KEY)
        if flat is not None:
            return _decoded(reading.opening, flat.value, flat.places, (), ())
        return self._elements(body, view, reading)

    def _elements(self, body: str, view: View, reading: Reading) -> Decoded:
        # An element around all of them that no parameter is named after is taken off.
        repair, closed = reading.repair, reading.closed
        # `<f><parameters>…</parameters></f>`: it helps only if a parameter of the tool is inside.
        root = wrapper_name(body, view)
        if root is not None:
            below = ElementReader(body, view, repair=repair, closed=closed, wrapper=root)
            unwrapped = below.read_wrapped()
            if unwrapped is not None and any(key in view.properties for key in unwrapped):
                step = Step("read", "read.wrapper", "", None, {root: unwrapped}, unwrapped)
                call = _read_by(below, reading, unwrapped, (step,), view)
                return with_own_attributes(call, view, below.tree, body)

        reader = ElementReader(body, view, repair=repair, closed=closed)
        value = reader.read()
        if list(value) == [TEXT_KEY]:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)
        call = _read_by(reader, reading, value, (), view)
        return with_own_attributes(call, view, reader.tree, body)

    def _json(self, body: str, reading: Reading) -> Decoded | None:
        # Here a refusal is no answer: text that is not JSON may still be a text.
        edits: list[Edit] = []
        try:
            if reading.repair:
                depth = reading.max_depth
                values, edits = read_damaged(
                    body, closed=True, numbers_end=True, prose=False, max_depth=depth
                )
            else:
                values = [read_strict(body)]
        except (Refusal, ValueError, RecursionError):
            return None

        if len(values) != 1 or not isinstance(values[0], dict):
            return None

        fixed = tuple(edits)

        def places() -> dict[str, tuple[int, int]]:
            back = EditMap(fixed)
            edited = apply_edits(body, fixed)
            return {p: back.raw_span(a, b) for p, (a, b) in find_places(edited).values.items()}

        lead = len(body) - len(body.lstrip())
        span = Span(lead, lead + len(body.strip()))
        return Decoded(
            reading.opening.name,
            values[0],
            name_span=_before(reading.opening),
            edits=fixed,
            steps=(Step("read", "read.json-body", "", span, None, values[0]),),
            places=places,
            unescape=json_offsets,
        )

    def _text(self, body: str, view: View, reading: Reading) -> Decoded:
        # With a second parameter nobody could tell which of them the text is.
        names = text_params(view)
        if len(view.properties) != 1 or len(names) != 1:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)

        (name,) = names
        if re.search(rf"^\s*{re.escape(name)}\s*[:=]", body, re.MULTILINE):
            raise Refusal("decode.ambiguous", f"{name} is named in the text that is its value", 0)
        if _names_call(body, reading.tools):
            raise Refusal("decode.ambiguous", f"the text for {name} names a tool to call", 0)
        reader = ElementReader(body, view, repair=reading.repair, closed=reading.closed)
        value = {name: reader.raw_text(0, len(body), f"/{name}")}
        reader.places[""] = (0, len(body))
        step = Step("read", "read.text-body", "", Span(0, len(body)), None, value)
        return _read_by(reader, reading, value, (step,))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return write_element(name, read_strict(arguments_json))


def _ends_oddly(flat: FlatBody, view: View, body: str) -> bool:
    return "]" in body and is_doubtful(flat.value, view, body, flat.places, repaired=False)


def _read_by(
    reader: ElementReader,
    reading: Reading,
    value: Value,
    steps: tuple[Step, ...],
    view: View | None = None,
) -> Decoded:
    places = reader.places
    if view is not None:
        lists = ListReader(places)
        value = lists.read(value, view)
        steps += tuple(lists.steps)
    return _decoded(reading.opening, value, lambda: places, tuple(reader.edits), steps)


def _decoded(
    opening: Opening,
    value: Value,
    places: Callable[[], Places],
    edits: tuple[Edit, ...],
    steps: tuple[Step, ...],
) -> Decoded:
    return Decoded(
        opening.name,
        value,
        name_span=_before(opening),
        edits=edits,
        steps=steps,
        places=places,
        unescape=unescape_offsets,
        untyped=True,
    )


def _names_call(text: str, tools: Tools) -> bool:
    # A line is a call in words of its own: `action: delete` or `delete: {}`.
    return any(
        line["key"] in tools if line["open"] else line["value"] in tools
        for line in _CALL_IN_WORDS.finditer(text)
    )


def _before(opening: Opening) -> Span | None:
    # Counted from the beginning of the body: the offsets are negative.
    return opening.name_span.shift(-opening.end) if opening.name_span else None


def morph_xml_protocol() -> Protocol:
    """Return the protocol `morph_xml`: one element a call.

    >>> import toolparse_lab as tp
    >>> tp.morph_xml_protocol().id
    'morph_xml'
    """
    return MORPH_XML


MORPH_XML = Protocol(
    id="morph_xml",
    aliases=("xml", "morph-xml"),
    title="one element a call",
    envelope=ToolElements(),
    codec=ElementCall(),
    tags=frozenset(("delimited", "schema-typed")),
    results=ElementResult(),
    grammar=element_grammar,
    type_rules=XML_TYPE_RULES,
    wordings=Wordings("morph_xml"),
    failure="Could not process XML tool call, keeping original text: {text}",
)
