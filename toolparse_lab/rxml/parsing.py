"""`parse` and `read`: the inside of an element as an object, brought to a schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import BadOptions, RXMLCoercionError, RXMLDuplicateStringTagError, RXMLParseError
from ..rjson.damage import Refusal
from ..rjson.positions import EditMap, apply_edits
from ..schema.coerce import Coerced, coerce
from ..schema.view import View, view_of
from ..schema.walk import Walk
from ..types import Edit, Span, Step
from ..values import Num, Value, plain_number, pointer_get
from .element import Manner
from .fast import read_well_formed
from .reader import TEXT_KEY, ElementReader, wrapper_name

VOID = frozenset(
    ("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr")
)
"""What HTML never closes: without an inside, unless the schema names it."""

MAX_DEPTH = 1000

OnError = Callable[[str, Mapping[str, Any]], object]


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read, and how.

    value: as `parse` gives it. source: the same before coercion. steps: what coercion did. edits: repairs, in raw
    coordinates. places: JSON Pointer into `source` -> the span of raw it stands at.
    """

    value: Any
    source: Value
    steps: tuple[Step, ...]
    edits: tuple[Edit, ...]
    places: Mapping[str, Span]


@dataclass(frozen=True, slots=True)
class _Options:
    text_node_name: str
    throw_on_duplicate_string_tags: bool
    keep_comments: bool
    keep_whitespace: bool
    on_error: OnError | None
    manner: Manner


def parse(
    xml_inner: str,
    schema: Any = None,
    *,
    text_node_name: str = TEXT_KEY,
    throw_on_duplicate_string_tags: bool = True,
    no_child_nodes: Collection[str] | None = None,
    keep_comments: bool = False,
    keep_whitespace: bool = False,
    on_error: OnError | None = None,
    repair: bool = False,
) -> Any:
    """The elements of `xml_inner` as an object, brought to `schema` by the policy ``middleware``.

    schema: a JSON Schema (mapping, JSON text or bool); without one, everything stays text. text_node_name: the key of
    text beside elements or attributes. throw_on_duplicate_string_tags=False: the first of several wins, and
    `on_error(message, {"tag", "occurrences"})` hears of it. no_child_nodes: the elements that have no inside; HTML's
    void elements unless given; those the schema names always have one. keep_comments, keep_whitespace: leave them in
    text that is no string of the schema (there they always stay). repair: close what is open instead of refusing it.

    Raises RXMLParseError (line, column, position), RXMLDuplicateStringTagError, RXMLCoercionError; BadOptions for
    arguments of a wrong type.

    >>> parse("<n>1</n><n>2</n><s> <b>x</b> </s>", {"properties": {"s": {"type": "string"}}})
    {'n': ['1', '2'], 's': ' <b>x</b> '}
    """
    options = _options(
        xml_inner, text_node_name, throw_on_duplicate_string_tags, no_child_nodes, keep_comments, keep_whitespace,
        on_error, repair,
    )  # fmt: skip
    view = _view(schema)
    plain = not keep_comments and not keep_whitespace
    if plain and (found := read_well_formed(xml_inner, view, text_node_name, options.manner)) is not None:
        return _plain(_coerced(found, schema, view).value)
    return _plain(_read(xml_inner, schema, view, options).value)


def read(
    xml_inner: str,
    schema: Any = None,
    *,
    text_node_name: str = TEXT_KEY,
    throw_on_duplicate_string_tags: bool = True,
    no_child_nodes: Collection[str] | None = None,
    keep_comments: bool = False,
    keep_whitespace: bool = False,
    on_error: OnError | None = None,
    repair: bool = False,
) -> Reading:
    """As `parse`, with what was done and where everything stands.

    >>> r = read("<n>1<s>x</s>", {"properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}, repair=True)
    >>> r.value, r.edits[0].rule, r.places["/s"]
    ({'n': 1, 's': 'x'}, 'rxml.unclosed-tag', Span(start=7, end=8))
    """
    options = _options(
        xml_inner, text_node_name, throw_on_duplicate_string_tags, no_child_nodes, keep_comments, keep_whitespace,
        on_error, repair,
    )  # fmt: skip
    found = _read(xml_inner, schema, _view(schema), options)
    return Reading(_plain(found.value), found.source, found.steps, found.edits, found.places)


def _options(
    text: Any,
    text_node_name: str,
    throw: bool,
    no_child_nodes: Collection[str] | None,
    comments: bool,
    whitespace: bool,
    on_error: OnError | None,
    repair: bool,
) -> _Options:
    if not isinstance(text, str):
        raise BadOptions("XML is read from text", got=type(text).__name__, expected="str")
    if not isinstance(text_node_name, str) or not text_node_name:
        raise BadOptions("text_node_name is a key", got=text_node_name, expected="text that is not empty")
    if isinstance(no_child_nodes, str):
        raise BadOptions("no_child_nodes is a list of names", got=no_child_nodes, expected="names of elements")
    void = VOID if no_child_nodes is None else frozenset(no_child_nodes)
    manner = Manner(repair=repair, void=void, code=True, loose=True, max_depth=MAX_DEPTH)
    return _Options(text_node_name, throw, comments, whitespace, on_error, manner)


def _view(schema: Any) -> View:
    try:
        return view_of(schema)
    except (TypeError, ValueError, RecursionError) as e:
        raise RXMLCoercionError(f"the schema cannot be read: {e}", cause=e) from e


def _read(text: str, schema: Any, view: View, options: _Options) -> Reading:
    found = None
    wrapper = wrapper_name(text, view, options.manner.void)
    if wrapper is not None:
        found = _unwrapped(text, schema, view, options, wrapper)
    if found is None:
        reader = _reader(text, view, options, None)
        try:
            value = reader.read()
        except Refusal as no:
            raise error_of(no, text) from no
        found = _reading(value, reader, schema, view)
        if wrapper is not None and found.edits:
            found = _unwrapped_after_repair(text, schema, view, options, wrapper, found) or found
    return found


def _unwrapped_after_repair(
    text: str, schema: Any, view: View, options: _Options, wrapper: str, found: Reading
) -> Reading | None:
    """Repaired text is read as it would be if it had been written so: a wrapper that the repair closed comes off."""
    again = _unwrapped(apply_edits(text, found.edits), schema, view, options, wrapper)
    if again is None or again.edits:
        return None
    back = EditMap(found.edits)
    places = {path: Span(*back.raw_span(span.start, span.end)) for path, span in again.places.items()}
    return replace(again, edits=found.edits, places=places)


def _unwrapped(text: str, schema: Any, view: View, options: _Options, wrapper: str) -> Reading | None:
    """The one element that holds everything, and is no member of the schema, is taken off."""
    quiet = replace(options, on_error=None)
    reader = _reader(text, view, quiet, wrapper)
    try:
        value = reader.read_wrapped()
    except Refusal as no:
        raise error_of(no, text) from no
    if value is not None:
        if not options.throw_on_duplicate_string_tags and options.on_error is not None:
            _reader(text, view, options, wrapper).read()
        return _reading(value, reader, schema, view)
    return None


def _reader(text: str, view: View, options: _Options, wrapper: str | None) -> ElementReader:
    def first_wins(name: str, count: int) -> None:
        if options.on_error is not None:
            options.on_error(
                f"RXML: Duplicate string tags for <{name}> detected; using first occurrence.",
                {"tag": name, "occurrences": count},
            )

    return ElementReader(
        text, view, manner=options.manner, text_key=options.text_node_name, attributes=True,
        comments=options.keep_comments, trim=not options.keep_whitespace,
        first_wins=None if options.throw_on_duplicate_string_tags else first_wins, wrapper=wrapper,
    )  # fmt: skip


def _reading(value: Value, reader: ElementReader, schema: Any, view: View) -> Reading:
    steps: list[Step] = []
    source = value
    if reader.repeated:
        # There is no typed answer where one value is wanted and several stand; each is at least brought to its type.
        value = _plain(value)
        for path, member in reader.repeated:
            items = pointer_get(value, path)
            for i, item in enumerate(items):
                one = Walk("middleware")
                items[i] = one.value(item, member, f"{path}/{i}", 0)
                steps.extend(one.steps)
    done = _coerced(value, schema, view)
    places = {path: Span(a, b) for path, (a, b) in reader.places.items()}
    return Reading(done.value, source, (*steps, *done.steps), tuple(reader.edits), places)


def _coerced(value: Value, schema: Any, view: View) -> Coerced:
    if view.open and not view.fixed and not view.any_of and view.enum is None:
        return Coerced(value, ())
    try:
        return coerce(value, schema, "middleware")
    except Exception as e:  # whatever a schema does to coercion is the schema's fault, and has one name
        raise RXMLCoercionError(f"Failed to coerce by schema: {type(e).__name__}: {e}", cause=e) from e


def _plain(value: Value) -> Any:
    """Ordinary Python values: numbers lose the lexeme they carry."""
    root = [value]
    stack: list[Any] = [root]
    while stack:
        box = stack.pop()
        for key, node in list(box.items() if isinstance(box, dict) else enumerate(box)):
            if isinstance(node, Num):
                box[key] = plain_number(node)
            elif isinstance(node, dict):
                box[key] = copy = dict(node)
                stack.append(copy)
            elif isinstance(node, list):
                box[key] = items = list(node)
                stack.append(items)
    return root[0]


def error_of(no: Refusal, text: str) -> RXMLParseError | RXMLDuplicateStringTagError:
    """A refusal as the error it is, with line and column."""
    position = min(no.position, len(text))
    if no.code == "decode.duplicate-string-tag":
        name = no.message.split("'")[1]
        return RXMLDuplicateStringTagError(f"Duplicate string tags for <{name}> detected", cause=no)
    line = text.count("\n", 0, position) + 1
    column = position - (text.rfind("\n", 0, position) + 1) + 1
    return RXMLParseError(
        f"Failed to parse XML: {no.message} (line {line}, column {column})",
        cause=no, position=position, line=line, column=column,
    )  # fmt: skip
