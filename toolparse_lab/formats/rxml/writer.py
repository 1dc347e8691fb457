"""Writes values as elements: for our own reader, and for any reader of XML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, TypeAlias

from ...core.errors import RXMLStringifyError, UnwritableCall
from ...core.values import BigNum, Value, write_canonical
from ...core.values.canonical import write_scalar
from .reader import TEXT_KEY

# How it works. What is written must read back the same under the same schema, whatever the reader's
# rules for lists are. A list of two or more plain items is written as its element again and again;
# where that would not come back as a list, its items are wrapped in <item>. A name that could not
# be an element's makes the call unwritable; there is no escape for names in XML.

_NAME = re.compile(r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?&]+\Z")
# The ampersand comes first, for the others bring more of them.
SPECIAL = (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&apos;"))

_Todo: TypeAlias = str | tuple[str, Value, bool]
"""A piece of text to write, or (name, value, repeats) to take apart."""


def escape(text: str, entities: tuple[tuple[str, str], ...] = SPECIAL) -> str:
    # `&` must come first among the entities.
    for character, entity in entities:
        if character in text:  # replacing one by one is many times faster than str.translate
            text = text.replace(character, entity)

    return text


def write_element(name: str, value: Value) -> str:
    """Return `<name>…</name>`, nested values as nested elements.

    An empty object is `<name/>`. Raises UnwritableCall.

    A list repeats its element. If that would not read back (one item, none, lists in lists), its
    items are <item> elements.

    >>> write_element("f", {"a": [1, 2], "b": ["x"], "c": {}})
    '<f><a>1</a><a>2</a><b><item>x</item></b><c/></f>'
    """
    out: list[str] = []
    stack: list[_Todo] = [(name, value, False)]  # a stack, so that depth costs no recursion
    while stack:
        # A string is ready to be written; everything else is taken apart once more.
        top = stack.pop()
        if isinstance(top, str):
            out.append(top)
            continue
        key, node, repeats = top
        if not _NAME.match(key):
            raise UnwritableCall("this name cannot be an element's", got=key)
        # One element alone reads as the value itself, a list in a list as more of the outer one.
        repeats = repeats and isinstance(node, list) and len(node) > 1
        if repeats and not any(isinstance(item, list) for item in node):
            stack.extend((key, item, False) for item in reversed(node))
        elif isinstance(node, dict) and not node:
            stack.append(f"<{key}/>")
        else:
            # In reverse: what goes on the stack last is written first.
            stack.append(f"</{key}>")
            if isinstance(node, dict):
                stack.extend((name, member, True) for name, member in reversed(node.items()))
            elif isinstance(node, list):
                stack.extend(("item", item, False) for item in reversed(node))
            else:
                stack.append(escape(node) if isinstance(node, str) else write_canonical(node))
            stack.append(f"<{key}>")

    return "".join(out)


# How it works. Unlike `write_element`, which writes for our own reader, this writes what any XML
# reader takes: names are held to the standard, characters that XML cannot carry are refused, and
# those that would be normalised on reading are written as references. An object's keys may mean
# attributes or its own text, by the conventions under which `parse` gives them.

# XML 1.0, section 2.3: NameStartChar, and what may follow it.
_START = r":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d"
_START += r"\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd"
_START += r"\U00010000-\U000effff"
_XML_NAME = re.compile(rf"[{_START}][{_START}\-.0-9\xb7\u0300-\u036f\u203f\u2040]*\Z")
_UNCARRIED = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# A carriage return would come back as a line feed.
_RETURN = (("\r", "&#13;"),)
_TEXT = SPECIAL + _RETURN
_TEXT_MINIMAL = (("&", "&amp;"), ("<", "&lt;"), *_RETURN)
_IN_ATTRIBUTE = (("\n", "&#10;"), ("\t", "&#9;"))  # they would come back as spaces
_ATTRIBUTE = _TEXT + _IN_ATTRIBUTE
_ATTRIBUTE_MINIMAL = _TEXT_MINIMAL + _IN_ATTRIBUTE
_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'
_MAX_DEPTH = 1000
_ATTRIBUTE_SIGNS = ("@", "_")  # the first characters of keys that may mean attributes


def stringify(
    root: str,
    value: object,
    *,
    format: bool = True,
    suppress_empty_node: bool = False,
    minimal_escaping: bool = False,
    strict_boolean_attributes: bool = False,
    text_node_name: str = TEXT_KEY,
) -> str:
    """`value` as an element named `root`.

    A list repeats its element, an empty one drops out.

    Args:
        format: with the XML declaration, each element on its own line, indented by two spaces, and
            a final line feed. None and an object without content are `<k/>`, empty text is
            `<k></k>`. suppress_empty_node leaves all three out. In an object `@name`, `@_name` (as
            `parse` gives them) and `_attributes`, an object, are attributes, and `text_node_name`
            (or `_text`) is its text. An attribute that is None stands without a value, or with
            strict_boolean_attributes as `name="name"`.
        minimal_escaping: only `&`, `<` and the end of the text or the attribute are escaped.

    Raises RXMLStringifyError for values that XML cannot carry: names that are none, control
    characters, lone surrogates, numbers that are not finite, objects as attributes or text, other
    types, and values nested deeper than 1,000.

    >>> stringify("r", {"@id": 1, "a": [1, None], "b": "x<y"}, format=False)
    '<r id="1"><a>1</a><a/><b>x&lt;y</b></r>'
    """
    writer = _Writer(
        format, suppress_empty_node, minimal_escaping, strict_boolean_attributes, text_node_name
    )
    return (_DECLARATION if format else "") + writer.write(root, value)


class _Writer:
    # A stack of strings to write, and of (name, value, depth, level) to take apart. depth: of
    # elements, for the indent. level: of containers, lists included.

    def __init__(
        self, format: bool, suppress: bool, minimal: bool, strict: bool, text_key: str
    ) -> None:
        self._format = format
        self._suppress = suppress
        self._minimal = minimal
        self._strict = strict
        self._text_keys = (text_key, "_text")
        self._line = "\n" if format else ""
        self._out: list[str] = []
        self._stack: list[str | tuple[str, Any, int, int]] = []

    def write(self, root: str, value: Any) -> str:
        self._stack.append((root, value, 0, 0))
        while self._stack:
            top = self._stack.pop()
            if isinstance(top, str):
                self._out.append(top)
                continue

            name, node, depth, level = top
            # A value that contains itself has no end, and this is how it is found out.
            if level > _MAX_DEPTH:
                message = f"the value nests deeper than {_MAX_DEPTH}, or contains itself"
                raise RXMLStringifyError(message)
            # A list has no tag of its own: each item is an element of the list's name.
            if isinstance(node, (list, tuple)):
                self._stack.extend((name, item, depth, level + 1) for item in reversed(node))
            else:
                self._element(name, node, depth, level)

        return "".join(self._out)

    def _element(self, name: str, node: Any, depth: int, level: int) -> None:
        tag = _name(name)
        indent = "  " * depth if self._format else ""
        if isinstance(node, Mapping):
            self._mapping(node, tag, depth, level, indent)
        elif node is None:
            self._empty(f"{indent}<{tag}")
        else:
            text = write_text(_scalar(node), self._minimal)
            if text or not self._suppress:
                self._out.append(f"{indent}<{tag}>{text}</{tag}>{self._line}")

    def _empty(self, opener: str) -> None:
        # Left out only where the caller asks for it: no reader can tell that it was there.
        if not self._suppress:
            self._out.append(f"{opener}/>{self._line}")

    def _mapping(
        self, node: Mapping[Any, Any], tag: str, depth: int, level: int, indent: str
    ) -> None:
        attributes, members, text = self._parts(node)
        # Attributes and text first: they belong to the tag, wherever their keys are.
        opener = f"{indent}<{tag}"
        # Most objects have neither, and asking costs less than writing nothing.
        if attributes:
            opener += write_attributes(attributes, self._minimal, self._strict)
        if not members and not text:
            self._empty(opener)
            return

        escaped = write_text(text, self._minimal) if text else ""
        if not members:
            self._out.append(f"{opener}>{escaped}</{tag}>{self._line}")
            return

        # Text next to members gets a line of its own.
        gap = f"{self._line}{indent}  " if self._format and text else ""
        self._out.append(f"{opener}>{gap}{escaped}{self._line}")
        self._stack.append(f"{indent}</{tag}>{self._line}")
        self._stack.extend((k, v, depth + 1, level + 1) for k, v in reversed(members))

    def _parts(self, node: Mapping[Any, Any]) -> tuple[dict[str, Any], list[tuple[str, Any]], str]:
        attributes: dict[str, Any] = {}
        members: list[tuple[str, Any]] = []
        text = ""
        for key, value in node.items():
            if not isinstance(key, str):
                raise RXMLStringifyError(f"a key is text, not {type(key).__name__}")
            if key in self._text_keys:
                text = "" if value is None else _scalar(value)
            elif key[:1] not in _ATTRIBUTE_SIGNS or not _add_attributes(attributes, key, value):
                members.append((key, value))

        return attributes, members, text


def _add_attributes(attributes: dict[str, Any], key: str, value: Any) -> bool:
    # False for the key of a member.
    if key == "_attributes" and isinstance(value, Mapping):
        attributes.update(value)
        return True
    # A key that merely begins with `_` is a member's.
    if not key.startswith("@"):
        return False

    # `@_` alone is an attribute that is called `_`.
    prefix = "@_" if key.startswith("@_") and len(key) > len("@_") else "@"
    attributes[key.removeprefix(prefix)] = value
    return True


def write_attributes(attributes: Mapping[str, Any], minimal: bool, strict: bool) -> str:
    out: list[str] = []
    for name, value in attributes.items():
        _name(name)
        if value is None:
            out.append(f' {name}="{name}"' if strict else f" {name}")
        else:
            text = _carried(_scalar(value))
            # In the quotes that the text has not, so that fewer need escaping.
            quote = "'" if '"' in text else '"'
            escaped = escape(text, _ATTRIBUTE_MINIMAL if minimal else _ATTRIBUTE)
            if minimal:
                escaped = escaped.replace(quote, "&apos;" if quote == "'" else "&quot;")
            out.append(f" {name}={quote}{escaped}{quote}")

    return "".join(out)


def write_text(text: str, minimal: bool) -> str:
    _carried(text)
    if minimal:
        # The standard forbids these three characters in a row outside a section.
        return escape(text, _TEXT_MINIMAL).replace("]]>", "]]&gt;")

    return escape(text, _TEXT)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _XML_NAME.match(name):
        message = f"this cannot be the name of an element or attribute: {str(name)[:80]!r}"
        raise RXMLStringifyError(message)
    return name


def _carried(text: str) -> str:
    match = _UNCARRIED.search(text)
    if match:
        raise RXMLStringifyError(f"XML has no way to write the character U+{ord(match[0]):04X}")

    return text


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is not None:
        try:
            return write_scalar(Decimal(value) if isinstance(value, BigNum) else value)
        except TypeError:
            pass
    raise RXMLStringifyError(f"XML cannot carry this: {type(value).__name__}")
