"""The C-backed reader, for text that is well-formed XML. It gives what the tolerant reader gives, or None.

None means: not well-formed, or something in it that the two might see differently (CDATA, comments, declarations,
attributes, markup inside a string of the schema). Entities of a document type, files and the network are off.
"""

from __future__ import annotations

import re
from typing import Any

from ..schema.scalars import SPACE
from ..schema.view import View
from ..values import Value
from .element import Manner
from .shape import holds_items, is_text, item_view, kind_of, member_view, wants_one

# Sections; what lxml normalises; namespaces; references, which may be white space that is not to be trimmed.
_UNSURE = ("<!", "<?", "\r", "xmlns", "&#")
_DECLARATION = re.compile(r"<\?xml version=\"1\.[01]\"(?: encoding=\"[A-Za-z0-9._-]{1,40}\")? ?\?>")
_parser: Any = None


class _Unsure(Exception):
    """The tolerant reader must decide."""


def read_well_formed(text: str, view: View, text_key: str, manner: Manner) -> dict[str, Value] | None:
    """The members of the text under `view`, before coercion; None where the tolerant reader must read it."""
    declaration = _DECLARATION.match(text)
    if declaration:
        text = text[declaration.end() :]
    if any(mark in text for mark in _UNSURE):
        return None
    from lxml import etree

    global _parser
    if _parser is None:
        _parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(f"<r>{text}</r>", _parser)
        converter = _Converter(text_key, manner)
        first = root[0] if len(root) else None
        if first is not None and view.properties and view.child(first.tag) is None and len(root) == 1:
            beside = (root.text or "") + (first.tail or "")
            if beside.strip(SPACE) or not len(first) or first.tag in converter.odd:
                return None
            root = first
        return converter.members(root, view, 0, holds_items(view, 0, root[0].tag if len(root) else ""))
    except (etree.LxmlError, _Unsure, ValueError, RecursionError):
        return None


class _Converter:
    def __init__(self, text_key: str, manner: Manner) -> None:
        self.text_key = text_key
        self.odd = manner.void | {"script", "style"}
        self.kinds: dict[int, str] = {}

    def kind(self, view: View | None) -> str:
        found = self.kinds.get(id(view))
        if found is None:
            found = self.kinds[id(view)] = kind_of(view)
        return found

    def members(self, element: Any, view: View | None, index: int, lists: bool) -> dict[str, Value]:
        """The children of one element; recursion ends at the 256 levels that the parser allows."""
        out: dict[str, Value] = {}
        counts: dict[str, int] = {}
        words = [element.text]
        arrays: dict[str, Any] = {}
        for position, child in enumerate(element):
            name = child.tag
            words.append(child.tail)
            if not isinstance(name, str) or name[0] == "{" or child.attrib:
                raise _Unsure
            member = member_view(view, index, lists, name, position)
            if member is None and name in self.odd:
                raise _Unsure
            count = counts.get(name, 0)
            counts[name] = count + 1
            value = self.value(child, member, 0 if lists else count, lists)
            if count == 0:
                out[name] = value
                if not lists and self.kind(member) == "array":
                    arrays[name] = child
            elif not lists and member is not None and (is_text(member) or wants_one(member)):
                raise _Unsure
            elif count == 1:
                out[name] = [out[name], value]
            else:
                out[name].append(value)
        for name, child in arrays.items():
            if counts[name] == 1 and not len(child) and not (child.text or "").strip():
                out[name] = []
        if lists:
            out.update({name: [[]] for name, count in counts.items() if count == 1 and out[name] == []})
        text = " ".join(w for word in words if word and (w := word.strip(SPACE)))
        return {self.text_key: text, **out} if text else out

    def value(self, element: Any, view: View | None, index: int, in_list: bool) -> Value:
        kind = self.kind(view)
        many = len(element)
        if kind == "text":
            if many:
                raise _Unsure
            return element.text or ""
        level = view
        if kind == "array":
            item = item_view(view, index)
            if self.kind(item) == "text":
                if not many:
                    return element.text or ""
                if element[0].tag != "item" or (element.text and element.text.strip()):
                    raise _Unsure
            if not many and not in_list:
                level = item
        if many:
            return self.members(element, view, index, holds_items(view, index, element[0].tag))
        text = (element.text or "").strip(SPACE)
        if not text:
            return {"object": {}, "array": []}.get(self.kind(level), "")
        return text
