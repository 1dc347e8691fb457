"""`parse` and `read`: the inside of an element as an object, brought to a schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypedDict, Unpack, cast

from ...arguments.rjson.positions import EditMap, apply_edits
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.coerce import Coerced, Walk, coerce
from ...arguments.schema.view import View, view_of
from ...core.errors import (
    BadOptions,
    BadToolSpec,
    RXMLCoercionError,
    RXMLDuplicateStringTagError,
    RXMLParseError,
)
from ...core.types import Edit, Span, Step
from ...core.values import Num, Value, plain_number, pointer_get
from .element import Manner
from .fast import read_well_formed
from .reader import TEXT_KEY, ElementReader, wrapper_name

# How it works. There are two readers with one answer. Well-formed text without anything odd goes
# through lxml (`fast`), which is quicker but knows no offsets; all other text, and every text of
# which places are asked for, goes through the tolerant reader. A body may come in one element more
# than the schema knows (`<tool><a>…</a></tool>`): that wrapper is taken off, before coercion.

VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
     "track", "wbr")
)  # fmt: skip
"""The elements that HTML never closes: without an inside, unless the schema names them."""

MAX_DEPTH = 1000

OnError = Callable[[str, Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True)
class ParsedXML:
    """The outcome of `read`.

    Attributes:
        value: as `parse` gives it.
        source: the same before coercion.
        steps: the changes of coercion.
        edits: repairs, in raw coordinates.
        places: JSON Pointer into `source` -> the span of raw it stands at.

    >>> from toolparse_lab import rxml
    >>> reading = rxml.read('<a><n>1</n></a>')
    >>> reading.value
    {'a': {'n': '1'}}
    """

    value: Any
    source: Value
    steps: tuple[Step, ...]
    edits: tuple[Edit, ...]
    places: Mapping[str, Span]


class NodeOptions(TypedDict, total=False):
    """Options for reading XML without a schema.

    no_child_nodes: the elements that have no inside: HTML's void elements unless given. Those the
    schema names always have one. keep_comments, keep_whitespace: leave them in text that is not a
    string of the schema (there they always stay). repair: close open parts instead of refusing
    the text.
    """

    no_child_nodes: Collection[str] | None
    keep_comments: bool
    keep_whitespace: bool
    repair: bool


class ReadOptions(NodeOptions, total=False):
    """Options for reading XML with a schema.

    text_node_name: the key of text next to elements or attributes.
    throw_on_duplicate_string_tags: if False, the first of several counts. on_error: called as
    `on_error(message, {"tag", "occurrences"})` where the first of several strings counts.
    """

    text_node_name: str
    throw_on_duplicate_string_tags: bool
    on_error: OnError | None


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one reading, with their defaults. BadOptions for those of a wrong type."""

    no_child_nodes: Collection[str] | None = None
    keep_comments: bool = False
    keep_whitespace: bool = False
    repair: bool = False
    text_node_name: str = TEXT_KEY
    throw_on_duplicate_string_tags: bool = True
    on_error: OnError | None = None

    def __post_init__(self) -> None:
        name, names = self.text_node_name, self.no_child_nodes
        if not isinstance(name, str) or not name:
            raise BadOptions("text_node_name is a key", got=name, expected="text that is not empty")
        if isinstance(names, str):
            raise BadOptions(
                "no_child_nodes is a list of names", got=names, expected="names of elements"
            )

    def manner(self, text: object) -> Manner:
        """Return the manner in which to read `text`. Raises BadOptions if it is none."""
        if not isinstance(text, str):
            raise BadOptions("XML is read from text", got=type(text).__name__, expected="str")
        void = VOID if self.no_child_nodes is None else frozenset(self.no_child_nodes)
        return Manner(repair=self.repair, void=void, code=True, loose=True, max_depth=MAX_DEPTH)


def parse(xml_inner: str, schema: Any = None, **options: Unpack[ReadOptions]) -> Any:
    """Return the elements of `xml_inner` as an object, coerced by ``middleware``.

    Args:
        schema: a JSON Schema (mapping, JSON text or bool). Without one, everything stays a string.
        options: see `ReadOptions`.

    Raises RXMLParseError (line, column, position), RXMLDuplicateStringTagError, RXMLCoercionError.
    BadOptions for arguments of a wrong type.

    >>> parse("<n>1</n><n>2</n><s> <b>x</b> </s>", {"properties": {"s": {"type": "string"}}})
    {'n': ['1', '2'], 's': ' <b>x</b> '}
    """
    given = Options(**options)
    manner = given.manner(xml_inner)
    view = _view(schema)
    if not given.keep_comments and not given.keep_whitespace:
        # None is the common answer to anything odd; the tolerant reader then starts anew.
        members = read_well_formed(xml_inner, view, given.text_node_name, manner)
        if members is not None:
            _refuse_bare_text(members, view, given.text_node_name, xml_inner)
            return _plain(_coerced(members, schema, view).value)

    return _plain(_read(xml_inner, schema, view, given).value)


def read(xml_inner: str, schema: Any = None, **options: Unpack[ReadOptions]) -> ParsedXML:
    """Read as `parse` does, and return the changes and all places as well.

    >>> schema = {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    >>> r = read("<n>1<s>x</s>", schema, repair=True)
    >>> r.value, r.edits[0].rule, r.places["/s"]
    ({'n': 1, 's': 'x'}, 'rxml.unclosed-tag', Span(start=7, end=8))
    """
    reading = _read(xml_inner, schema, _view(schema), Options(**options))
    return replace(reading, value=_plain(reading.value))


def _view(schema: Any) -> View:
    try:
        return view_of(schema)
    except (BadToolSpec, TypeError, ValueError, RecursionError) as error:
        raise RXMLCoercionError(f"the schema cannot be read: {error}", cause=error) from error


def _read(text: str, schema: Any, view: View, options: Options) -> ParsedXML:
    wrapper = wrapper_name(text, view, options.manner(text).void)
    reading = _attempt(text, schema, view, options, wrapper) if wrapper is not None else None
    if reading is not None:
        return reading
    reading = _attempt(text, schema, view, options, None)
    if reading is None or wrapper is None or not reading.edits:
        return cast(ParsedXML, reading)  # only an attempt with a wrapper gives None
    # The wrapper may only be whole once the text is repaired, and read as if written so.
    edits = reading.edits
    repaired = _attempt(apply_edits(text, edits), schema, view, options, wrapper)
    if repaired is None or repaired.edits:
        return reading
    back = EditMap(edits)
    places = {p: Span(*back.raw_span(s.start, s.end)) for p, s in repaired.places.items()}
    return replace(repaired, edits=edits, places=places)


def _attempt(
    text: str, schema: Any, view: View, options: Options, wrapper: str | None
) -> ParsedXML | None:
    # With a wrapper, inside that element: None if it does not hold everything. Such an attempt
    # must not report: what it finds may not be what counts.
    quiet = replace(options, on_error=None) if wrapper is not None else options
    reader = _reader(text, view, quiet, wrapper)
    try:
        value = reader.read() if wrapper is None else reader.read_wrapped()
    except Refusal as refusal:
        raise error_of(refusal, text) from refusal

    if value is None:
        return None
    reports = not options.throw_on_duplicate_string_tags and options.on_error is not None
    if wrapper is not None and reports:
        _reader(text, view, options, wrapper).read()
    return _reading(value, reader, schema, view)


def _reader(text: str, view: View, options: Options, wrapper: str | None) -> ElementReader:
    def first_wins(name: str, count: int) -> None:
        if options.on_error is not None:
            options.on_error(
                f"RXML: Duplicate string tags for <{name}> detected; using first occurrence.",
                {"tag": name, "occurrences": count},
            )

    return ElementReader(
        text,
        view,
        manner=options.manner(text),
        text_key=options.text_node_name,
        attributes=True,
        comments=options.keep_comments,
        trim=not options.keep_whitespace,
        first_wins=None if options.throw_on_duplicate_string_tags else first_wins,
        wrapper=wrapper,
    )


def _reading(value: Value, reader: ElementReader, schema: Any, view: View) -> ParsedXML:
    _refuse_bare_text(value, view, reader.text_key, reader.text)
    steps: list[Step] = []
    coerced_items = value
    if reader.repeated:
        # There is no typed answer where one value is wanted and there are several; each is at least
        # brought to its type. A copy: the value itself is the reading's source.
        coerced_items = _plain(value)
        for path, member in reader.repeated:
            items = pointer_get(coerced_items, path)
            for i, item in enumerate(items):
                walk = Walk("middleware")
                items[i] = walk.value(item, member, f"{path}/{i}", 0)
                steps.extend(walk.steps)

    coerced = _coerced(coerced_items, schema, view)
    places = {path: Span(start, end) for path, (start, end) in reader.places.items()}
    return ParsedXML(coerced.value, value, (*steps, *coerced.steps), tuple(reader.edits), places)


def _refuse_bare_text(value: Value, view: View, text_key: str, text: str) -> None:
    if not isinstance(value, dict) or list(value) != [text_key] or text_key in view.properties:
        return
    by_members = view.types is None and view.enum is None and not view.any_of
    if by_members or (view.types is not None and set(view.types) <= {"object", "array"}):
        message = "there is text, but no element"
        raise error_of(Refusal("decode.xml", message, len(text) - len(text.lstrip())), text)


def _coerced(value: Value, schema: Any, view: View) -> Coerced:
    # No schema, or an empty one: coercion would still read text as numbers.
    if view.open and not view.fixed and not view.any_of and view.enum is None:
        return Coerced(value, ())
    try:
        return coerce(value, schema, "middleware")
    except Exception as error:
        # Whatever a schema does to coercion is the schema's fault, and has one name.
        message = f"Failed to coerce by schema: {type(error).__name__}: {error}"
        raise RXMLCoercionError(message, cause=error) from error


def _plain(value: Value) -> Any:
    # Numbers lose the lexeme they carry. A copy, without recursion.
    root = [value]
    stack: list[Any] = [root]
    while stack:
        box = stack.pop()
        for key, node in list(box.items() if isinstance(box, dict) else enumerate(box)):
            if isinstance(node, Num):
                box[key] = plain_number(node)
            elif isinstance(node, (dict, list)):
                box[key] = copy = node.copy()
                stack.append(copy)

    return root[0]


def error_of(
    refusal: Refusal, text: str, before: tuple[int, int, int] = (0, 0, 0)
) -> RXMLParseError | RXMLDuplicateStringTagError:
    """Return a refusal as the error it is, with line and column.

    before: characters, lines, and characters of the last line that came before `text`.
    """
    if refusal.code == "decode.duplicate-string-tag":
        name = refusal.message.split("'")[1]
        message = f"Duplicate string tags for <{name}> detected"
        return RXMLDuplicateStringTagError(message, cause=refusal)

    # A refusal at the end of the text is after its last character.
    position = min(refusal.position, len(text))
    line = before[1] + text.count("\n", 0, position) + 1
    newline = text.rfind("\n", 0, position)
    column = position - newline if newline >= 0 else before[2] + position + 1
    return RXMLParseError(
        f"Failed to parse XML: {refusal.message} (line {line}, column {column})",
        cause=refusal,
        position=before[0] + position,
        line=line,
        column=column,
    )
