"""`morph_xml`: one element a call, named after the tool; its children are the parameters."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import chain, islice

from ...arguments.rjson.repair import read_damaged
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View, view_of
from ...core.toolspec import EMPTY_SCHEMA, ToolSpec
from ...core.types import Edit, Problem, Span, Step
from ...core.values import Value, escape_token, leaves, read_strict
from ..base import (
    NEED_MORE,
    Answer,
    Codec,
    DecodeContext,
    Decoded,
    Envelope,
    NeedMore,
    Opening,
    Protocol,
    Tools,
    make_opening,
    named_call,
)
from ..disambiguation import Calls, OneCall, call_is_doubtful, is_doubtful, names_below
from ..json.source import ONE_CALL, BodySource
from ..json.source import unescape_offsets as json_offsets
from ..prompt.wording import Wordings
from ..results import ElementResult
from ..rxml.element import (
    ATTRIBUTE,
    MARK,
    Element,
    Manner,
    pieces_between_children,
    unescape_offsets,
    walk,
)
from ..rxml.fast import read_flat
from ..rxml.reader import TEXT_KEY, ElementReader, attribute_text, text_params, wrapper_name
from ..rxml.shape import ListReader
from ..rxml.tree import read_tree
from ..rxml.writer import write_element
from ..scan import Close, LiteralBody, Scanner
from .grammar import XML_TYPE_RULES, element_grammar
from .scan import ElementBody, ends_in_element


def with_attributes(call: Decoded, view: View, opening: Opening) -> Decoded:
    """Return a call with its opener's attributes that name parameters as arguments; others become
    problems. Their offsets in the body are negative.
    """
    if not isinstance(call.arguments, dict):
        return call

    named: dict[str, Value] = {}
    spans: dict[str, tuple[int, int]] = {}
    problems: list[Problem] = []
    for match in ATTRIBUTE.finditer(opening.attributes.rstrip("/>")):
        # The opener ends where the body begins.
        name, span = match["name"], _place(match).shift(-len(opening.attributes))
        if name not in view.properties:
            message = f"the attribute {name!r} names no parameter, and was left out"
            problems.append(Problem("decode", "decode.attribute", "warning", message, "", span))
        elif name in named or call.arguments.get(name, _value(match)) != _value(match):
            raise Refusal("decode.duplicate-key", f"{name!r} appears twice", 0)
        else:
            named[name] = _value(match)
            spans["/" + escape_token(name)] = (span.start, span.end)

    call = replace(call, problems=(*call.problems, *problems))
    if not named:
        return call
    step = Step("read", "read.attributes", "", None, None, named)
    inner = call.places
    return replace(
        call,
        arguments={**named, **call.arguments},
        steps=(*call.steps, step),
        places=lambda: {**inner(), **spans},
    )


def with_own_attributes(call: Decoded, view: View, root: Element | None, body: str) -> Decoded:
    """Return a call with the attributes of its parameters' elements as members of those parameters.
    Raises Refusal for one that may be an argument.
    """
    arguments = call.arguments
    if root is None or not isinstance(arguments, dict):
        return call
    members: dict[str, dict[str, Value]] = {}
    spans: dict[str, tuple[int, int]] = {}
    problems: list[Problem] = []
    for element in walk(root):
        start, end = element.attributes
        for match in ATTRIBUTE.finditer(body[start:end].rstrip("/>")):
            name, place = match["name"], Span(*match.span()).shift(start)
            if _takes(element, root, arguments, name):
                members.setdefault(element.name, {})[name] = _value(match)
                span = _place(match).shift(start)
                path = f"/{escape_token(element.name)}/{escape_token(name)}"
                spans[path] = (span.start, span.end)
            elif _may_be_argument(element, view, arguments, match):
                message = f"the attribute {name!r} of <{element.name}> may be an argument"
                raise Refusal("decode.attribute", message, place.start)
            else:
                message = f"the attribute {name!r} of <{element.name}> was left out"
                problem = Problem("decode", "decode.attribute", "warning", message, "", place)
                problems.append(problem)
    if not members and not problems:
        return call
    if members:
        arguments = dict(arguments)
        for name, named in members.items():
            inside = arguments[name]
            arguments[name] = {**named, **(inside if isinstance(inside, dict) else {})}
    steps = tuple(
        Step("read", "read.attributes", "/" + escape_token(name), None, None, named)
        for name, named in members.items()
    )
    inner = call.places
    return replace(
        call,
        arguments=arguments,
        steps=(*call.steps, *steps),
        problems=(*call.problems, *problems),
        places=lambda: {**inner(), **spans},
    )


def _takes(element: Element, root: Element, arguments: dict[str, Value], name: str) -> bool:
    schema = element.view
    if element.parent is not root or root.counts.get(element.name) != 1 or schema is None:
        return False
    inside = arguments.get(element.name)
    if name not in schema.properties or not (inside == "" or isinstance(inside, dict)):
        return False
    return not isinstance(inside, dict) or name not in inside


def _may_be_argument(
    element: Element, view: View, arguments: dict[str, Value], match: re.Match[str]
) -> bool:
    name = match["name"]
    if element.view is not None and name in element.view.properties:
        inside = arguments.get(element.name)
        return not (isinstance(inside, dict) and inside.get(name) == _value(match))
    return name in view.properties and name not in arguments


def _place(match: re.Match[str]) -> Span:
    # An attribute without a value stands for itself.
    group = next((group for group in (2, 3, 4) if match[group] is not None), "name")
    return Span(*match.span(group))


def _value(match: re.Match[str]) -> str:
    text = next((group for group in match.groups()[1:] if group is not None), "")
    return attribute_text(text)


# How it works
#
# Such an answer begins with a parameter that a tool has. Its body reaches to the first closing tag
# of a tool, whose name the scanner hands on; the codec reads it as the body of that tool. The
# opening is speculative: whatever is no good call is text after all.
#
# Cost: one search for the closing tags, and one reading of the body.


_OPENING = Opening(0, speculative=True)
_MESSAGE = "the answer begins with this body; its opening tag may have stood in the prompt"


class NamedEnd(LiteralBody):
    """Ends at the first closing tag of one of some elements, and says which it is."""

    __slots__ = ()

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(tuple(f"</{name}>" for name in names))

    def scan(self, tail: str, final: bool) -> Close | int:
        settled = self._at
        answer = LiteralBody.scan(self, tail, final)
        if isinstance(answer, Close):
            start, end = answer.start + len("</"), answer.end - len(">")
            answer.name = tail[start - settled : end - settled], start
        return answer


def has_property(name: str, tools: Tools, *, partial: bool = False) -> bool:
    for tool in tools.values():
        properties = view_of(tool.schema_json).properties
        if name in properties or (partial and any(key.startswith(name) for key in properties)):
            return True
    return False


def headless(name: str, tools: Tools) -> Opening | None:
    return _OPENING if name not in tools and has_property(name, tools) else None


def checked(call: Decoded, body: str, context: DecodeContext) -> Decoded:
    """Return the call of a body without an opener, with a warning. Raises Refusal if it only speaks
    of calls.
    """
    tool = context.tools.get(call.name)
    properties = view_of(tool.schema_json).properties if tool else {}
    openers = "|".join(re.escape(name) for name in context.tools if name not in properties)
    if openers and re.search(rf"<(?:{openers})[\s/>]", body):
        raise Refusal("decode.ambiguous", "another call begins in this body", 0)
    arguments = call.arguments
    if not isinstance(arguments, dict) or any(key not in properties for key in arguments):
        raise Refusal("decode.ambiguous", "this body is none of the tool that is closed", 0)
    note = Problem("scan", "call.missing-opener", "warning", _MESSAGE, "", Span(0, len(body)))
    return replace(call, problems=(*call.problems, note))


_MOST_NAMES = 64
_PLAIN_TAG = re.compile(r"<(/?)([^\s<>/=\"'!?]++)>")


class ElementDisambiguation(OneCall):
    """One body of elements. Its alphabet: both tags of each name."""

    def read(self) -> Decoded:
        return self._without_loose_text(super().read())

    def is_doubtful(self, call: Decoded) -> bool:
        repaired = any(edit.rule != "rxml.loose-text" for edit in call.edits)
        return call_is_doubtful(call, self.parameters, self.body, repaired=repaired)

    def is_doubtful_once_edited(self, call: Decoded, text: str) -> bool:
        value = call.arguments
        if not isinstance(value, dict):
            return True
        if any(TEXT_KEY in path.split("/") for path, _ in leaves(value)):
            return True
        return super().is_doubtful_once_edited(call, text)

    def fitting(self, text: str) -> Calls | None:
        # Most candidates turn an opening tag into a closing one, or back, where another was wrong.
        return super().fitting(text) if _is_balanced(text, names_below(self.parameters)) else None

    def tags(self) -> list[str]:
        # Names of items are in no schema, but in the body.
        marks = islice(MARK.finditer(self.body), _MOST_NAMES)
        present = (mark["open"] or mark["closed"] for mark in marks)
        names = dict.fromkeys(chain(sorted(names_below(self.parameters)), filter(None, present)))
        # Both tags of each, since either may be the one that is wrong.
        return [tag for name in names for tag in (f"<{name}>", f"</{name}>")]

    # text next to the parameters

    def _without_loose_text(self, call: Decoded) -> Decoded:
        value = call.arguments
        if not isinstance(value, dict) or TEXT_KEY not in value:
            return call
        if TEXT_KEY in self.parameters.properties:
            return call

        text = str(value[TEXT_KEY])
        at = max(0, self.body.find(text[:1]))
        if not self.context.repair:
            raise Refusal("decode.xml", "text stands beside the parameters", at)
        # A bracket in it, or a repair next to it, may have made text of a tag.
        if call.edits or any(mark in text for mark in "<>"):
            message = "the text beside the parameters may be a damaged tag"
            raise Refusal("decode.ambiguous", message, at)

        # Whole words between sound elements: nothing else can have been meant by them.
        edits: list[Edit] = []
        root, _ = read_tree(self.body, self.parameters, Manner(repair=False, closed=True))
        for pieces, _child in pieces_between_children(root):
            for start, end, kind in pieces:
                inner = self.body[start:end]
                if kind != "comment" and inner.strip():
                    lead = len(inner) - len(inner.lstrip())
                    place = Span(start + lead, start + len(inner.rstrip()))
                    edits.append(Edit(place, "", "rxml.loose-text"))
        if not edits:  # it is inside a wrapper
            raise Refusal("decode.ambiguous", "text stands beside the parameters", at)
        span = Span(edits[0].span.start, edits[-1].span.end)
        message = f"text beside the parameters was left out: {text[:40]!r}"
        problem = Problem("decode", "decode.loose-text", "warning", message, "", span)
        arguments = {name: item for name, item in value.items() if name != TEXT_KEY}
        return replace(
            call,
            arguments=arguments,
            edits=tuple(edits),
            problems=(*call.problems, problem),
        )


def _is_balanced(text: str, names: Container[str]) -> bool:
    tags = _PLAIN_TAG.findall(text)
    if len(tags) != text.count("<"):
        return True
    balance: dict[str, int] = {}
    for slash, name in tags:
        if name in names:
            balance[name] = balance.get(name, 0) + (-1 if slash else 1)
    return not any(balance.values())


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
# are full of other tags. One compiled pattern reads an opener up to the character after the name
# and looks the name up; only tools whose names hold such characters themselves are tried one by
# one.
#
# A body is read by the first of four that fits: flat elements (nearly every body), one JSON object
# (the other dialect of models that were trained on JSON), plain text for a tool whose only
# parameter is a text, and elements of any shape by the tolerant reader.


def _view(tools: Tools, name: str) -> View:
    tool = tools.get(name)
    return view_of(tool.schema_json if tool else EMPTY_SCHEMA)


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


_decoded = partial(named_call, untyped=True, unescape=unescape_offsets)


@lru_cache(maxsize=2048)
def _opening(name: str) -> Opening:
    return Opening(len(name) + 2, name=name, name_span=Span(1, 1 + len(name)))


@dataclass(frozen=True, slots=True)
class ToolElements(Envelope):
    """Envelope: `<tool …>` … `</tool>` for every known tool. Comments hold no calls."""

    def heads(self, tools: Tools) -> tuple[str, ...]:
        # A comment is a head because an opener inside it opens nothing.
        return ("<!--", *_tags(tuple(tools))) if tools else ()

    def open(self, text: str, pos: int, final: bool, tools: Tools) -> Answer:
        if text.startswith("<!--", pos):
            # Markup: it holds no calls. One that is never closed, or too long to wait for, is text.
            end = text.find("-->", pos + 4, pos + _MAX_COMMENT)
            if end >= 0:
                return Opening(end + 3 - pos, "markup")
            return None if final or len(text) - pos >= _MAX_COMMENT else NEED_MORE
        if not tools:
            return None

        plain = _plain_opener(tuple(tools))
        match = plain.match(text, pos) if plain else None
        if match:
            name = match[1]
            if name not in tools:
                return None
            return _opening(name) if match[2] == ">" else _tag(text, pos, name, final)

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
        return ElementBody(opening.name, text_params(_view(tools, opening.name)), _tags(names))

    def in_value(self, opening: Opening, text: str, tools: Tools) -> bool:
        return ends_in_element(text)

    def opens_parameter(self, opening: Opening, inner: Opening, tools: Tools) -> bool:
        return inner.name in _view(tools, opening.name).properties

    def closers_in_text(self, tools: Tools) -> tuple[str, ...]:
        return (*self.closers, *(f"</{name}>" for name in tools))

    def resume_starts(self, tools: Tools) -> str | None:
        return "<"

    def resumes(self, text: str, tools: Tools) -> Answer:
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


def _tag(text: str, pos: int, name: str, final: bool) -> Answer:
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
    # The empty text is in every text: the tag is cut off right after the name.
    return NEED_MORE if text[end : end + 1] in " \t\r\n/" else None


@dataclass(frozen=True, slots=True)
class ElementCall(Codec):
    """Codec: parameters as child elements, read with the tool's schema at hand."""

    def read(self, body: str, context: DecodeContext) -> tuple[Decoded, ...]:
        # The closing tag is necessary, since without it the last parameter may go on.
        opening = context.opening
        view = _view(context.tools, opening.name)
        if not context.closed:
            raise Refusal("decode.truncated-value", f"</{opening.name}> is missing", len(body))

        # Nearly every body; what it leaves out is read by the tolerant reader, to the same values.
        flat = read_flat(body, view, TEXT_KEY)
        if flat is not None and not (
            "]" in body and is_doubtful(flat.value, view, body, flat.places, repaired=False)
        ):
            call = _decoded(opening, flat.value, flat.places)
        else:
            stripped, unusual = body.strip(), None
            if stripped[:1] == "{" and not view.properties.get(TEXT_KEY):
                unusual = self._json(body, context)
            if unusual is not None:
                call = unusual
            elif stripped and "<" not in stripped:
                call = self._text(body, view, context)
            else:
                reader = partial(self._shaped, view=view)
                call = ElementDisambiguation(body, view, context, reader).call()
        if opening.attributes:
            call = with_attributes(call, view, opening)
        # Without an opener it may as well be text that looks like a call.
        if opening.speculative and opening.end == 0:
            call = checked(call, body, context)
        return (call,)

    def _shaped(self, body: str, context: DecodeContext, view: View) -> Decoded:
        # A body that was put right is flat as a rule; as in `_call`, the result is the same.
        flat = None if context.repair else read_flat(body, view, TEXT_KEY)
        if flat is not None:
            return _decoded(context.opening, flat.value, flat.places)
        return self._elements(body, view, context)

    def _elements(self, body: str, view: View, context: DecodeContext) -> Decoded:
        # An element around all of them that no parameter is named after is taken off.
        repair, closed = context.repair, context.closed
        # `<f><parameters>…</parameters></f>`: it helps only if a parameter of the tool is inside.
        root = wrapper_name(body, view)
        if root is not None:
            below = ElementReader(body, view, repair=repair, closed=closed, wrapper=root)
            unwrapped = below.read_wrapped()
            if unwrapped is not None and any(key in view.properties for key in unwrapped):
                step = Step("read", "read.wrapper", "", None, {root: unwrapped}, unwrapped)
                call = _read_by(below, context, unwrapped, (step,), view)
                return with_own_attributes(call, view, below.tree, body)

        reader = ElementReader(body, view, repair=repair, closed=closed)
        value = reader.read()
        if list(value) == [TEXT_KEY]:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)
        call = _read_by(reader, context, value, (), view)
        return with_own_attributes(call, view, reader.tree, body)

    def _json(self, body: str, context: DecodeContext) -> Decoded | None:
        # Here a refusal is no answer: text that is not JSON may still be a text.
        edits: list[Edit] = []
        try:
            if context.repair:
                depth = context.max_depth
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
        lead = len(body) - len(body.lstrip())
        span = Span(lead, lead + len(body.strip()))
        step = Step("read", "read.json-body", "", span, None, values[0])
        places = BodySource(body, fixed, ONE_CALL).places_of(0, "", "")
        return named_call(context.opening, values[0], places, fixed, (step,), unescape=json_offsets)

    def _text(self, body: str, view: View, context: DecodeContext) -> Decoded:
        # With a second parameter nobody could tell which of them the text is.
        names = text_params(view)
        if len(view.properties) != 1 or len(names) != 1:
            raise Refusal("decode.xml", "the element holds text, but no parameters", 0)

        (name,) = names
        if re.search(rf"^\s*{re.escape(name)}\s*[:=]", body, re.MULTILINE):
            raise Refusal("decode.ambiguous", f"{name} is named in the text that is its value", 0)
        # A line is a call in words of its own: `action: delete` or `delete: {}`.
        if any(
            line["key" if line["open"] else "value"] in context.tools
            for line in _CALL_IN_WORDS.finditer(body)
        ):
            raise Refusal("decode.ambiguous", f"the text for {name} names a tool to call", 0)
        reader = ElementReader(body, view, repair=context.repair, closed=context.closed)
        value = {name: reader.raw_text(0, len(body), f"/{name}")}
        reader.places[""] = (0, len(body))
        step = Step("read", "read.text-body", "", Span(0, len(body)), None, value)
        return _read_by(reader, context, value, (step,))

    def write(self, name: str, arguments_json: str, tool: ToolSpec | None) -> str:
        return write_element(name, read_strict(arguments_json))


def _read_by(
    reader: ElementReader,
    context: DecodeContext,
    value: Value,
    steps: tuple[Step, ...],
    view: View | None = None,
) -> Decoded:
    places = reader.places
    if view is not None:
        lists = ListReader(places)
        value = lists.read(value, view)
        steps += tuple(lists.steps)
    return _decoded(context.opening, value, lambda: places, tuple(reader.edits), steps)


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
