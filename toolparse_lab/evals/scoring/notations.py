"""The values that a piece of text can mean as a value, in the notations of the formats.

Nothing here knows a protocol: the characters at a place, and those around them, say which notations
they can be read by.
"""

# How it works. `Place` is a stretch of text inside a longer one. Its readings are made in steps,
# the cheapest first, and each is only made where the ones before it were not enough:
#
# 1. the characters as they stand, trimmed, and with the notations of `_NOTATIONS` read on top of
#    one another, since formats nest them: an entity may stand inside CDATA, an escape behind it;
# 2. inside a JSON text that stands in a JSON string itself, as the arguments of a provider's own
#    calls do, a second level of escapes. It is read there alone: elsewhere it would accept a value
#    that somebody unescaped once too often;
# 3. as Python reads a literal, and as YAML reads a scalar in its style: its quote, or the header of
#    the block, stands right before the place.

from __future__ import annotations

import html
import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from functools import cached_property

from ...arguments.rjson.damage import Refusal
from ...arguments.schema.view import view_of
from ...core.types import Span
from ...core.values import Num, Value
from ...formats.python.strings import unescape_python
from ...formats.yaml.reader import MappingReader

_NUMBER = re.compile(r"[+-]?(?:\d[\d_]*\.?[\d_]*|\.\d[\d_]*)(?:[eE][+-]?\d+)?")
# The numbers of Python and YAML that are not decimal.
_BASED = re.compile(r"([+-]?)0([xXoObB])([0-9a-fA-F_]+)")
_BASES = {"x": 16, "o": 8, "b": 2}
_CONSTANTS = {"true": True, "false": False, "null": None, "none": None, "~": None}
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# The line before a block of YAML: what indents it, and its header with indentation and chomping.
_BLOCK = re.compile(r"(?:\A|\n)(?P<lead>[ -]*)[^\n]*?(?P<head>[|>])(?P<how>[-+1-9]{0,2})[ \t]*\n\Z")
LOOK_BACK = 300
"""Characters before a place in which its quote or header is looked for."""


class Strings:
    """The JSON strings of a body, to tell which places lie in a string of a string."""

    def __init__(self, raw: str, body: Span) -> None:
        """Keep a body. Its strings are found when the first place is asked for."""
        self._raw = raw
        self._body = body

    @cached_property
    def _starts(self) -> list[int]:
        body = self._body.of(self._raw)
        # In markup a quote is a character like any other.
        if not body.lstrip().startswith(("{", "[")):
            return []
        offsets: list[int] = []
        for match in _STRING.finditer(body):
            offsets += (self._body.start + match.start(), self._body.start + match.end())
        return offsets

    def holds_nested(self, offset: int) -> bool:
        """Return True if a string begins earlier than right before the offset, and holds it.

        >>> strings = Strings('{"a": "{\\\\"b\\\\": 1}"}', Span(0, 19))
        >>> strings.holds_nested(7), strings.holds_nested(10), strings.holds_nested(1)
        (False, True, False)
        """
        index = bisect_right(self._starts, offset - 1)
        return index % 2 == 1 and self._starts[index - 1] < offset - 1


class Place:
    """A stretch of text that may mean a value.

    text: its characters, with repairs applied where there are some. before: the text right before
    it. nested: it stands in a JSON string that is the text of JSON itself.
    """

    def __init__(self, text: str, before: str = "", *, nested: bool = False) -> None:
        """Keep the characters. See the class."""
        self.text = text
        self.before = before[-LOOK_BACK:]
        self.nested = nested

    def readings(self) -> Iterator[str]:
        """Yield the readings of the place as a string, the likeliest first.

        Some of it twice.

        >>> sorted(set(Place(" a&lt;b ").readings()))
        [' a&lt;b ', ' a<b ', 'a&lt;b', 'a<b']
        """
        plain = _plain_readings(self.text)
        yield from plain
        if self.nested:
            for text in plain:
                yield from _unescaped(text)
        yield from _literal(self.text)
        yield from self._yaml()

    def means(self, leaf: Value) -> bool:
        """Return True if the place can mean a scalar.

        >>> Place("'7'").means(7), Place("a &amp; b").means("a & b"), Place("8").means(7)
        (True, True, False)
        """
        if isinstance(leaf, str):
            return any(leaf == text for text in self.readings())
        return _gives_scalar(self.text, leaf)

    def holds(self, word: str) -> bool:
        """Return True if a word stands in the text of the place."""
        return any(word in text for text in self.readings())

    def _yaml(self) -> Iterator[str]:
        scalar = _yaml_scalar(self.text, self.before)
        if not scalar:
            return
        try:
            value = MappingReader(f"x: {scalar}", 2).read(view_of({})).get("x")
        except Refusal:
            return
        if isinstance(value, str):
            yield value


def _yaml_scalar(text: str, before: str) -> str:
    # The scalar with its quotes or its header around it again, '' where it needs no YAML.
    quote = before[-1:]
    if quote and quote in "\"'":
        return f"{quote}{text}{quote}" if "\\" in text or "\n" in text else ""
    if "\n" not in text:
        return ""

    block = _BLOCK.search(before)
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


def _plain_readings(text: str) -> set[str]:
    texts = {text, text.strip(), text.strip("\"'")}
    for sign, decode in _NOTATIONS:
        # Most texts hold no sign at all, so that nothing is read.
        if sign in text:
            texts.update(*[decode(t) for t in texts])
    return texts


def _without_entities(text: str) -> list[str]:
    return [html.unescape(text)]


def _without_cdata(text: str) -> list[str]:
    return [text.replace("<![CDATA[", "").replace("]]>", "")]


def _with_line_feeds(text: str) -> list[str]:
    # As XML reads line ends.
    return [text.replace("\r\n", "\n").replace("\r", "\n")]


def _with_single_quotes(text: str) -> list[str]:
    # YAML doubles them between single quotes.
    return [text.replace("''", "'")]


def _unescaped(text: str) -> list[str]:
    # As the inside of a JSON string, whichever quotes it stood in; [] for other escapes than
    # JSON's.
    with_apostrophes = text.replace("\\'", "'")  # JSON does not escape them
    with_quotes = text.replace('"', '\\"')  # between single quotes they stand bare
    texts = []
    for body in (text, with_apostrophes, with_quotes):
        try:
            texts.append(json.loads(f'"{body}"', strict=False))
        except ValueError:
            continue
    return texts


def _literal(text: str) -> list[str]:
    # As the inside of a Python literal.
    if "\\" not in text:
        return []
    try:
        return [unescape_python(text)]
    except ValueError:
        return []


# (a sign of the notation, how it is read), in the order in which formats nest them.
_NOTATIONS: tuple[tuple[str, Callable[[str], list[str]]], ...] = (
    ("&", _without_entities),
    ("<![CDATA[", _without_cdata),
    ("\\", _unescaped),
    ("\r", _with_line_feeds),
    ("''", _with_single_quotes),
)


def _gives_scalar(text: str, leaf: Value) -> bool:
    word = text.strip().strip("\"'").strip()
    if leaf is None or isinstance(leaf, bool):
        return is_constant(word, leaf)
    return is_number(word, leaf)


def is_constant(word: str, leaf: Value) -> bool:
    """Return True if a word is the constant that a leaf is.

    >>> is_constant("None", None), is_constant("x", None), is_constant("true", True)
    (True, False, True)
    """
    folded = word.lower()
    # By identity, since 0 would equal False; and None is also what an unknown word gives.
    return folded in _CONSTANTS and _CONSTANTS[folded] is leaf


def is_number(word: str, leaf: Value) -> bool:
    """Return True if a word is the number that a leaf is, whatever digits either has.

    >>> is_number("1e3", 1000), is_number("1.5", 1), is_number("0x10", 16), is_number("x", 1)
    (True, False, True, False)
    """
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


def numbers_in(text: str) -> Iterator[str]:
    """Yield the decimal numbers that stand in a text.

    >>> list(numbers_in("3 of 4.5"))
    ['3', '4.5']
    """
    return (match[0] for match in _NUMBER.finditer(text))
