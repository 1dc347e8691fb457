"""`stringify`: a value as XML, for showing results to a model and for what reads XML."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from ..errors import RXMLStringifyError
from ..values import Num
from .reader import TEXT_KEY
from .writer import SPECIAL, escape

_START = r":A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
_START += r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_NAME = re.compile(rf"[{_START}][{_START}\-.0-9\xb7\u0300-\u036f\u203f\u2040]*\Z")
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


def stringify(
    root: str,
    value: Any,
    *,
    format: bool = True,
    suppress_empty_node: bool = False,
    minimal_escaping: bool = False,
    strict_boolean_attributes: bool = False,
    text_node_name: str = TEXT_KEY,
) -> str:
    """`value` as an element named `root`; a list repeats its element, an empty one is left out.

    format: with the XML declaration, each element on its own line, indented by two spaces, and a final line feed.
    None and an object without content are `<k/>`, empty text is `<k></k>`; suppress_empty_node leaves all three out.
    In an object `@name`, `@_name` (as `parse` gives them) and `_attributes`, an object, are attributes, and
    `text_node_name` (or `_text`) is its text; an attribute that is None stands without a value, or with
    strict_boolean_attributes as `name="name"`.
    minimal_escaping: only `&`, `<` and what ends the text or the attribute are escaped.

    Raises RXMLStringifyError for what XML cannot carry: names that are none, control characters, lone surrogates,
    numbers that are not finite, objects as attributes or text, other types, and values nested deeper than 1,000.

    >>> stringify("r", {"@id": 1, "a": [1, None], "b": "x<y"}, format=False)
    '<r id="1"><a>1</a><a/><b>x&lt;y</b></r>'
    """
    writer = _Writer(format, suppress_empty_node, minimal_escaping, strict_boolean_attributes, text_node_name)
    return (_DECLARATION if format else "") + writer.write(root, value)


class _Writer:
    def __init__(self, format: bool, suppress: bool, minimal: bool, strict: bool, text_key: str) -> None:
        self.format = format
        self.suppress = suppress
        self.minimal = minimal
        self.strict = strict
        self.text_key = text_key

    def write(self, root: str, value: Any) -> str:
        """A stack instead of recursion: pieces of text to write, or (name, value, depth) to take apart."""
        out: list[str] = []
        stack: list[str | tuple[str, Any, int, int]] = [(root, value, 0, 0)]
        line = "\n" if self.format else ""
        while stack:
            top = stack.pop()
            if isinstance(top, str):
                out.append(top)
                continue
            name, node, depth, level = top
            if level > _MAX_DEPTH:
                raise RXMLStringifyError(f"the value nests deeper than {_MAX_DEPTH}, or contains itself")
            if isinstance(node, (list, tuple)):
                stack.extend((name, v, depth, level + 1) for v in reversed(node))
                continue
            tag = _name(name)
            indent = "  " * depth if self.format else ""
            if isinstance(node, Mapping):
                self.open(node, tag, depth, level, out, stack)
            elif node is None:
                if not self.suppress:
                    out.append(f"{indent}<{tag}/>{line}")
            else:
                text = write_text(_scalar(node), self.minimal)
                if text or not self.suppress:
                    out.append(f"{indent}<{tag}>{text}</{tag}>{line}")
        return "".join(out)

    def open(self, node: Mapping[Any, Any], tag: str, depth: int, level: int, out: list[str], stack: list[Any]) -> None:
        """Writes an object's opening tag and puts what it holds on the stack."""
        attributes: dict[str, Any] = {}
        members: list[tuple[str, Any]] = []
        text = ""
        for key, value in node.items():
            if not isinstance(key, str):
                raise RXMLStringifyError(f"a key is text, not {type(key).__name__}")
            if key in (self.text_key, "_text"):
                text = "" if value is None else _scalar(value)
            elif key == "_attributes" and isinstance(value, Mapping):
                attributes.update(value)
            elif key.startswith("@"):
                attributes[key[2:] if key.startswith("@_") and len(key) > 2 else key[1:]] = value
            else:
                members.append((key, value))
        line = "\n" if self.format else ""
        indent = "  " * depth if self.format else ""
        opener = f"{indent}<{tag}{write_attributes(attributes, self.minimal, self.strict)}"
        if not members and not text:
            if not self.suppress:
                out.append(f"{opener}/>{line}")
            return
        written = write_text(text, self.minimal)
        if not members:
            out.append(f"{opener}>{written}</{tag}>{line}")
            return
        out.append(f"{opener}>{line + indent + '  ' if self.format and text else ''}{written}{line}")
        stack.append(f"{indent}</{tag}>{line}")
        stack.extend((k, v, depth + 1, level + 1) for k, v in reversed(members))


def write_attributes(attributes: Mapping[str, Any], minimal: bool, strict: bool) -> str:
    """Attributes as they stand behind a tag's name, each with a space before it."""
    out: list[str] = []
    for name, value in attributes.items():
        _name(name)
        if value is None:
            out.append(f' {name}="{name}"' if strict else f" {name}")
            continue
        text = _carried(_scalar(value))
        quote = "'" if '"' in text else '"'
        if minimal:
            entity = "&apos;" if quote == "'" else "&quot;"
            escaped = escape(text, _ATTRIBUTE_MINIMAL).replace(quote, entity)
        else:
            escaped = escape(text, _ATTRIBUTE)
        out.append(f" {name}={quote}{escaped}{quote}")
    return "".join(out)


def write_text(text: str, minimal: bool) -> str:
    """Text between tags. Raises RXMLStringifyError for characters that XML cannot carry."""
    _carried(text)
    if minimal:
        return escape(text, _TEXT_MINIMAL).replace("]]>", "]]&gt;")
    return escape(text, _TEXT)


def _name(name: Any) -> str:
    if not isinstance(name, str) or not _NAME.match(name):
        raise RXMLStringifyError(f"this cannot be the name of an element or attribute: {str(name)[:80]!r}")
    return name


def _carried(text: str) -> str:
    found = _UNCARRIED.search(text)
    if found:
        raise RXMLStringifyError(f"XML has no way to write the character U+{ord(found[0]):04X}")
    return text


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Num):
        return value.text
    if isinstance(value, int):  # more than 4,300 digits are refused by int itself
        return int.__repr__(value) if value.bit_length() < 13_000 else format(Decimal(value), "f")
    if isinstance(value, float) and math.isfinite(value):
        return float.__repr__(value)
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    raise RXMLStringifyError(f"XML cannot carry this: {type(value).__name__}")
