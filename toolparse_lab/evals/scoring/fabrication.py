"""Does the text say every name and value of a call?

The parser's own claims are checked against `raw`.
"""

# How it works. Each leaf of the arguments has to be accounted for, in one of three ways, the
# cheapest first:
#
# 1. *Plainly*: the body is strict JSON as it is, or flat markup, and has this very leaf at this
#    very path. True of most leaves, and read without asking the parser anything.
# 2. *By its origin*: the parser says where the value is in `raw`, and the characters there,
#    with their escapes or entities read or their repairs applied, give the value.
# 3. *By its steps*: each step that changed the value is lossless, and the value that the first of
#    them began with is somewhere in the text.
#
# A parser of somebody else's says no places. Of its calls nothing can be asked but that each leaf
# is somewhere in the call's own text.
#
# Origins are of the arguments *after* coercion. A look at those before it, where a step has moved a
# value since, has no path to ask for: there the text that the step began with has to say the leaf.
#
# What characters mean is asked of a `Place`, in the notations of the formats; it knows no protocol.
# Its readings are made in steps, the cheapest first, each only where those before it were not
# enough: the characters as they are, trimmed, and with `_NOTATIONS` read on top of one another,
# since formats nest them; inside a JSON text in a JSON string, as the arguments of a provider's own
# calls, a second level of escapes, which elsewhere would accept a value that somebody unescaped
# once too often; as Python reads a literal, and as YAML reads a scalar in its style: its quote, or
# the header of the block, is right before the place.
#
# The first way is only a short cut: it never accepts a leaf that the others reject, which a
# property test holds it to (`tests/evals/test_fabrication.py`). Its cost is one strict reading of
# the body; that of the second is a table of all origins of the call.

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from functools import cached_property
from typing import Any

from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import view_of
from ...core.errors import NoSuchItem
from ...core.rules import RULES
from ...core.types import Edit, Origin, Span, Step, ToolCall
from ...core.values import Num, Value, leaves, read_strict, write_canonical
from ...formats.python.reader import unescape_python
from ...formats.yaml.reader import MappingReader
from .match import beginning_of

# Steps by which a name comes from more than the characters of its own span.
_NAME_RULES = frozenset({"read.alias-name", "read.function-wrapper"})
# One element with text alone in it. Its name holds nothing that a JSON Pointer would escape.
_FLAT_ELEMENT = re.compile(r"\s*<([A-Za-z_][\w.-]*)>([^<]*)</\1>")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_ABSENT: Any = object()
# What the OpenAI API takes as the name of a function, and others with it.
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?")
# The numbers of Python and YAML that are not decimal.
_BASED = re.compile(r"([+-]?)0([xXoObB])([0-9a-fA-F_]+)")
_BASES = {"x": 16, "o": 8, "b": 2}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "~": None}
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# The line before a block of YAML: what indents it, and its header with indentation and chomping.
_BLOCK = re.compile(r"(?:\A|\n)(?P<lead>[ -]*)[^\n]*?(?P<head>[|>])(?P<how>[-+1-9]{0,2})[ \t]*\n\Z")
_LOOK_BACK = 300  # characters before a place in which its quote or header is looked for


def find_fabrication(raw: str, call: ToolCall, *, coerced: bool = True, value: Value = None) -> str:
    """Return one sentence on the first name or leaf that the text does not say, or ''.

    A leaf is said where it has an exact origin in `raw`, the whole text, or comes from such an
    origin by lossless steps. coerced: False looks at the arguments before coercion. value: the
    arguments looked at, if they were read before.
    """
    if call.name and not _is_name_said(raw, call):
        return f"the text does not say the name {call.name}"

    text = call.arguments_json if coerced else call.source_json
    if not text:
        return ""
    if value is None:
        value = read_strict(text)

    look = _Look(raw, call, coerced)
    for path, leaf in leaves(value):
        if not look.says(path, leaf):
            shown = beginning_of(write_canonical(leaf))
            return f"the text does not say {path or 'the arguments'} = {shown}"
    return ""


class _Look:
    # `steps` led to the arguments looked at, `later` came after them.
    def __init__(self, raw: str, call: ToolCall, coerced: bool) -> None:
        self.raw = raw
        self.call = call
        self.steps: Sequence[Step] = call.steps
        self.later: Sequence[Step] = ()
        if not coerced:
            self.steps = [step for step in call.steps if step.stage != "coerce"]
            self.later = [step for step in call.steps if step.stage == "coerce"]

        # What a repair wrote is not in the body as recorded, so only an unedited body is plain.
        self.plain = None if call.edits else _read_plainly(raw, call)

    def says(self, path: str, leaf: Value) -> bool:
        # leaf: a scalar, or an empty object or array.
        # Most calls have no steps, and this is asked for every leaf.
        over = [s for s in self.steps if path == s.path or path.startswith(s.path + "/")]
        # The cheapest way first, which is enough for most leaves. A step that changed the leaf
        # makes a likeness with the body a chance.
        if self.plain is not None and not over and _is_plainly_said(self.plain, path, leaf):
            return True
        if isinstance(leaf, (dict, list)):
            # An empty object or array claims nothing of the text, unless a coercion dropped
            # something to make it.
            return all(step.lossless for step in over if step.stage == "coerce")
        # The step's own place in the text is at hand; an origin has to be looked up.
        if (
            over
            and all(step.lossless for step in over)
            and any(step.span is not None or self._origin(step.path) is not None for step in over)
        ):
            return True

        # An inexact place is that of something larger, which says more than the leaf.
        origin = self._origin(path)
        if origin is not None and origin.exact and self._is_said_at(origin.span, leaf):
            return True

        # A later step that changed a value around the leaf may have moved it, so that its own path
        # has no origin any more; the value at the step's own path has one to ask for.
        for step in self.later:
            if step.span is None or not path.startswith(step.path + "/"):
                continue
            word = leaf if isinstance(leaf, str) else write_canonical(leaf)
            if self._place(step.span).holds(word):
                return True

        # A parser that says no places gives the whole call as an inexact origin.
        span = self.call.segment.span
        if over or origin is None or origin.exact or origin.span != span:
            return False
        text = span.of(self.raw)
        if isinstance(leaf, str):
            return Place(text).holds(leaf)
        if leaf is None or isinstance(leaf, bool):
            return any(_is_constant(word, leaf) for word in re.findall(r"[a-z]+", text.lower()))
        return any(_is_number(match[0], leaf) for match in _NUMBER.finditer(text))

    def _origin(self, path: str) -> Origin | None:
        try:
            return self.call.origin(path)
        except NoSuchItem:
            return None

    def _is_said_at(self, span: Span, leaf: Value) -> bool:
        text = span.of(self.raw)
        # Most leaves are there as they are. Of the very type, since a bool is an int, too.
        if leaf == text or (type(leaf) is int and str(leaf) == text):
            return True
        if self._place(span).means(leaf):
            return True
        edits = self.call.edits
        if edits and self._place(span, _edited(self.raw, span, edits)).means(leaf):
            return True

        # An empty place holds no characters that a repair could have kept.
        if len(span) == 0:
            return False
        rules = [RULES.get(edit.rule) for edit in edits if span.covers(edit.span)]
        # An unknown rule may guess and drop.
        return bool(rules) and all(rule is not None and rule.lossless for rule in rules)

    def _place(self, span: Span, text: str | None = None) -> Place:
        before = self.raw[max(0, span.start - _LOOK_BACK) : span.start]
        # In a string of a string, if a string begins earlier than right before the place.
        ends = self._string_ends
        index = bisect_right(ends, span.start - 1)
        nested = index % 2 == 1 and ends[index - 1] < span.start - 1
        return Place(span.of(self.raw) if text is None else text, before, nested=nested)

    @cached_property
    def _string_ends(self) -> list[int]:
        # Where the JSON strings of the body begin and end, in turn.
        span = self.call.segment.body or self.call.segment.span
        body = span.of(self.raw)
        # In markup a quote is a character like any other.
        if not body.lstrip().startswith(("{", "[")):
            return []
        matches = _STRING.finditer(body)
        return [span.start + offset for match in matches for offset in match.span()]


def _read_plainly(raw: str, call: ToolCall) -> dict[str, Value] | None:
    # The arguments as a reader who knows no protocol finds them, in `{"name": …, "arguments": {…}}`
    # of strict JSON or in flat elements `<key>text</key>` with only white space between them.
    body = call.segment.body.of(raw).strip() if call.segment.body is not None else ""
    if body.startswith("{"):
        # As providers give it, the call is in a member `function`, and its arguments are JSON in a
        # string.
        try:
            message = read_strict(body)
            if isinstance(message, dict) and isinstance(message.get("function"), dict):
                message = message["function"]
            arguments = message.get("arguments") if isinstance(message, dict) else None
            if isinstance(arguments, str):
                arguments = read_strict(arguments)
        except ValueError:
            return None
        return arguments if isinstance(arguments, dict) else None

    elements: dict[str, Value] = {}
    end = 0
    while end < len(body):
        element = _FLAT_ELEMENT.match(body, end)
        # A name that comes twice makes a list of its texts, and they have other paths.
        if element is None or element[1] in elements:
            return None
        elements[element[1]] = element[2]
        end = element.end()
    return elements or None


def _is_plainly_said(plain: dict[str, Value], path: str, leaf: Value) -> bool:
    # The path counts: two objects may both have an `id`, and the one's value is not the other's.
    if "~" in path:
        return False  # an escaped key, rare enough to be left to the origins

    node: Value = plain
    for token in path.split("/")[1:]:
        if isinstance(node, dict):
            node = node.get(token, _ABSENT)
        elif isinstance(node, list) and _INDEX.fullmatch(token) and int(token) < len(node):
            node = node[int(token)]
        else:
            return False

    # By type first: in Python, True equals 1.
    if type(node) is not type(leaf) or isinstance(leaf, (dict, list)):
        return False
    if isinstance(leaf, Num):
        # By its digits, since 1.0 and 1.00 are not the same writing.
        return isinstance(node, Num) and node.text == leaf.text
    return bool(node == leaf)


def provider_name(name: str) -> str:
    """Return a tool's name as providers with the strictest rules take it.

    >>> provider_name("maps.find_place"), provider_name("get-time")
    ('maps_find_place', 'get-time')
    """
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


def _is_name_said(raw: str, call: ToolCall) -> bool:
    # By the characters at the name's own place, or by a reading rule that made it of others.
    if any(step.rule in _NAME_RULES for step in call.steps):
        return True
    span = call.name_span
    if span is None:
        return False

    text = span.of(raw)
    # Most names are there as they are.
    return (
        text in (call.name, provider_name(call.name))
        or Place(text).means(call.name)
        or Place(_edited(raw, span, call.edits)).means(call.name)
    )


def _edited(raw: str, span: Span, edits: tuple[Edit, ...]) -> str:
    # An edit that crosses the span's ends, or overlaps the one before it, drops out.
    parts: list[str] = []
    end = span.start
    for edit in edits:
        is_inside = end <= edit.span.start and edit.span.end <= span.end
        if not is_inside:
            continue
        parts += (raw[end : edit.span.start], edit.text)
        end = edit.span.end

    parts.append(raw[end : span.end])
    return "".join(parts)


# what characters can mean


class Place:
    """A stretch of text that may mean a value.

    text: its characters, repairs applied. before: the text right before it. nested: it is in a JSON
    string that is the text of JSON itself.
    """

    def __init__(self, text: str, before: str = "", *, nested: bool = False) -> None:
        self.text = text
        self.before = before[-_LOOK_BACK:]
        self.nested = nested

    def readings(self) -> Iterator[str]:
        """Yield the readings of the place as a string, the likeliest first, some of them twice.

        >>> sorted(set(Place(" a&lt;b ").readings()))
        [' a&lt;b ', ' a<b ', 'a&lt;b', 'a<b']
        """
        plain = {self.text, self.text.strip(), self.text.strip("\"'")}
        for sign, decode in _NOTATIONS:
            # Most texts hold no sign at all, so that nothing is read.
            if sign in self.text:
                plain.update(*[decode(text) for text in plain])
        yield from plain
        if self.nested:
            for text in plain:
                yield from _unescaped(text)
        if "\\" in self.text:
            with suppress(ValueError):
                yield unescape_python(self.text)
        if scalar := self._yaml_scalar():
            with suppress(Refusal):
                value = MappingReader(f"x: {scalar}", 2).read(view_of({})).get("x")
                if isinstance(value, str):
                    yield value

    def means(self, leaf: Value) -> bool:
        """Return True if the place can mean a scalar.

        >>> Place("'7'").means(7), Place("a &amp; b").means("a & b"), Place("8").means(7)
        (True, True, False)
        """
        if isinstance(leaf, str):
            return any(leaf == text for text in self.readings())
        word = self.text.strip().strip("\"'").strip()
        if leaf is None or isinstance(leaf, bool):
            return _is_constant(word, leaf)
        return _is_number(word, leaf)

    def holds(self, word: str) -> bool:
        """Return True if a word is in the text of the place."""
        return any(word in text for text in self.readings())

    def _yaml_scalar(self) -> str:
        # The scalar with its quotes or its header around it again, '' where it needs no YAML.
        text, quote = self.text, self.before[-1:]
        if quote and quote in "\"'":
            return f"{quote}{text}{quote}" if "\\" in text or "\n" in text else ""
        if "\n" not in text:
            return ""
        block = _BLOCK.search(self.before)
        if block is None:
            return text
        signs = block["how"]
        digits = [c for c in signs if c.isdigit()]
        if not digits:
            return f"{block['head']}{signs}\n{text}"
        # Said in steps from the line around it, which begins further left here.
        indent = int(digits[0]) + len(block["lead"])
        chomping = signs.replace(digits[0], "")
        return f"{block['head']}{chomping}{indent}\n{text}" if indent < 10 else ""


def _unescaped(text: str) -> list[str]:
    # As the inside of a JSON string, whichever quotes it stood in; [] for other escapes than
    # JSON's.
    with_apostrophes = text.replace("\\'", "'")  # JSON does not escape them
    with_quotes = text.replace('"', '\\"')  # between single quotes they are bare
    texts = []
    for body in (text, with_apostrophes, with_quotes):
        with suppress(ValueError):
            texts.append(json.loads(f'"{body}"', strict=False))
    return texts


# (a sign of the notation, how it is read), in the order in which formats nest them.
_NOTATIONS: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("&", lambda text: [html.unescape(text)]),
    ("<![CDATA[", lambda text: [text.replace("<![CDATA[", "").replace("]]>", "")]),
    ("\\", _unescaped),
    # As XML reads line ends.
    ("\r", lambda text: [text.replace("\r\n", "\n").replace("\r", "\n")]),
    # YAML doubles them between single quotes.
    ("''", lambda text: [text.replace("''", "'")]),
)


def _is_constant(word: str, leaf: Value) -> bool:
    folded = word.lower()
    # By identity, since 0 would equal False; and None is also what an unknown word gives.
    return folded in _CONSTANTS and _CONSTANTS[folded] is leaf


def _is_number(word: str, leaf: Value) -> bool:
    # Whatever digits either has: "1e3" is 1000, "0x10" is 16.
    lexeme = leaf.text if isinstance(leaf, Num) else str(leaf)
    if word == lexeme:
        return True
    based = _BASED.fullmatch(word)
    try:
        if based is not None:
            sign, letter, digits = based.groups()
            return int(sign + digits, _BASES[letter.lower()]) == Decimal(lexeme)
        return _NUMBER.fullmatch(word) is not None and Decimal(word) == Decimal(lexeme)
    except (InvalidOperation, ValueError):
        return False
