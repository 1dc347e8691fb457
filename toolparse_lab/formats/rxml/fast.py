"""Two quick readers of plain elements, with exactly the results of the tolerant one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from ...arguments.schema.scalars import SPACE
from ...arguments.schema.view import View
from ...core.values import Value, escape_token
from .element import NAME, Manner, Place, unescape
from .shape import holds_items, is_text, item_view, kind_of, member_view, narrow, wants_one

# How it works. One regular expression finds all elements at once; what it left out is noticed by
# adding up the lengths of what it found. How the text of a parameter is read depends on its schema
# alone, so that it is worked out once a tool. Nothing here ever decides that a body is wrong: it
# gives None, and the tolerant reader has the last word.

# A longer body takes its time to be searched, which the tolerant reader does as fast.
_LONGEST = 8192
_OPENER_MARKS, _CLOSER_MARKS = len("<>"), len("</>")
_MARKS = _OPENER_MARKS + _CLOSER_MARKS
_ELEMENTS = re.compile(r"<([^\s<>/=\"'!?]++)>([^<]*+)</\1>([ \t\r\n]*+)")
_TEXT, _TEXTS, _LIST, _OBJECT, _SCALAR = range(5)  # the first two are raw, the others trimmed
_OTHER_KINDS = {"text": _TEXT, "object": _OBJECT}


@dataclass(slots=True)
class FlatBody:
    """The parameters of a flat body. Their places are worked out only when asked for."""

    value: dict[str, Value]
    start: int  # of the first element
    elements: list[tuple[str, str, str]]  # name, text, and the space after it
    kinds: Mapping[str, int]
    lists: set[str]  # the names that are there more than once

    def places(self) -> dict[str, Place]:
        """Return JSON Pointer into `value` -> (start, end) in the body."""
        places = {"": (0, 0)}
        counts: dict[str, int] = {}
        pos = self.start

        for name, text, gap in self.elements:
            start = pos + len(name) + _OPENER_MARKS
            end = start + len(text)
            pos = end + len(name) + _CLOSER_MARKS + len(gap)

            path = "/" + escape_token(name)
            if name in self.lists:
                count = counts[name] = counts.get(name, -1) + 1
                # The list itself runs from its first item to its last.
                places[path] = (places[path][0] if count else start, end)
                path = f"{path}/{count}"

            if self.kinds[name] >= _LIST:
                # A value that is trimmed begins at its first character, not at the element's.
                word = text.strip(SPACE)
                if word:
                    start += text.index(word[0])
                    end = start + len(word)
            places[path] = (start, end)

        places[""] = (0, pos)
        return places


def read_flat(body: str, view: View, text_key: str) -> FlatBody | None:
    """Return a flat body's parameters, None if the tolerant reader must read it."""
    if len(body) > _LONGEST:
        return None

    kinds = _kinds(view, text_key)
    size = start = len(body) - len(body.lstrip(" \t\r\n"))
    elements = _ELEMENTS.findall(body)
    out: dict[str, Value] = {}
    lists: set[str] = set()

    for name, text, gap in elements:
        kind = kinds.get(name)
        if kind is None or text[:1] == ">":  # the bracket of its tag may be there twice
            return None

        size += 2 * len(name) + len(text) + len(gap) + _MARKS
        if kind != _TEXT:
            if kind >= _LIST:
                text = text.strip(SPACE)
            if kind != _SCALAR and not text.strip():
                return None  # an empty list or object

        value = unescape(text) if "&" in text else text
        if name not in out:
            out[name] = value
        elif kind != _TEXTS and kind != _LIST:
            return None
        elif name in lists:
            out[name].append(value)
        else:
            out[name] = [out[name], value]
            lists.add(name)

    # Where the lengths add up to the whole, nothing is between the elements.
    return FlatBody(out, start, elements, kinds, lists) if out and size == len(body) else None


@lru_cache(maxsize=2048)
def _kinds(view: View, text_key: str) -> Mapping[str, int]:
    # A tool whose parameters are a list, or one branch of a union, is left to the tolerant reader.
    if narrow(view) is not view or kind_of(view) == "array":
        return {}

    kinds: dict[str, int] = {}
    for name in view.properties:
        if name == text_key or not re.fullmatch(NAME, name):
            continue

        member = member_view(view, 0, False, name, 0)
        kind = kind_of(member)
        if kind != "array":
            kinds[name] = _OTHER_KINDS.get(kind, _SCALAR)
        elif (item := item_view(member, 0)) is item_view(member, 1):  # else a tuple
            kinds[name] = _TEXTS if kind_of(item) == "text" else _LIST
    return kinds


# How it works. lxml builds its tree in C, and the converter goes down it once, with the schema at
# hand, by the same rules as the tolerant reader. lxml has no offsets and normalises some things
# silently, so whatever might come out differently makes the converter give up (`_Unsure`), and the
# tolerant reader decides. A property test holds the two to one answer.

# Sections; what lxml normalises; namespaces; references, which may be white space that is not to be
# trimmed.
_UNSURE = ("<!", "<?", "\r", "xmlns", "&#")
_DECLARATION = re.compile(r"<\?xml version=\"1\.[01]\"(?: encoding=\"[A-Za-z0-9._-]{1,40}\")? ?\?>")
_CODE = frozenset(("script", "style"))


class _Unsure(Exception):
    # The tolerant reader must decide.
    pass


@cache
def _etree() -> tuple[Any, Any]:
    # Late: loading lxml takes longer than reading most bodies without it.
    from lxml import etree

    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
    )
    return etree, parser


def read_well_formed(
    text: str, view: View, text_key: str, manner: Manner
) -> dict[str, Value] | None:
    """Return the members of a text, before coercion; None if the tolerant reader must read it."""
    declaration = _DECLARATION.match(text)
    if declaration:
        text = text[declaration.end() :]
    if any(mark in text for mark in _UNSURE):
        return None

    etree, parser = _etree()
    converter = _Converter(text_key, manner)
    try:
        root = etree.fromstring(f"<r>{text}</r>", parser)
        top = converter.without_wrapper(root, view)
        lists = holds_items(view, 0, top[0].tag if len(top) else "")
        return converter.members(top, view, 0, lists)
    except (etree.LxmlError, _Unsure, ValueError, RecursionError):
        return None


class _Converter:
    # From lxml's elements to values. Every method raises _Unsure.

    def __init__(self, text_key: str, manner: Manner) -> None:
        self._text_key = text_key
        self._odd = manner.void | _CODE  # elements that the tolerant reader reads by other rules
        self._kinds: dict[int, str] = {}  # by a view's identity

    def without_wrapper(self, root: Any, view: View) -> Any:
        # Where the tolerant reader might not take the wrapper off, this one gives up.
        if len(root) != 1 or not view.properties:
            return root
        first = root[0]
        if view.child(first.tag) is not None:
            return root

        # Text next to it makes it a member like any other.
        beside = (root.text or "") + (first.tail or "")
        if beside.strip(SPACE) or first.tag in self._odd or not len(first):
            raise _Unsure
        return first

    def members(self, element: Any, view: View | None, index: int, lists: bool) -> dict[str, Value]:
        # Recursion ends at the 256 levels that the parser allows.
        out: dict[str, Value] = {}
        counts: dict[str, int] = {}
        words: list[str | None] = [element.text]
        arrays: dict[str, Any] = {}  # name -> the first of the elements that make a list

        for position, child in enumerate(element):
            name = child.tag
            # lxml gives comments and instructions a function for a name. Attributes and namespaces
            # are the other reader's.
            if not isinstance(name, str) or name[0] == "{" or child.attrib:
                raise _Unsure
            words.append(child.tail)
            member = member_view(view, index, lists, name, position)
            # A script or a void element has rules of its own in the tolerant reader.
            if member is None and name in self._odd:
                raise _Unsure

            count = counts.get(name, 0)
            counts[name] = count + 1
            value = self._value(child, member, 0 if lists else count, lists)
            if count:
                # The tolerant reader refuses some of these and reports others.
                if not lists and member is not None and (is_text(member) or wants_one(member)):
                    raise _Unsure
                if count == 1:
                    out[name] = [out[name]]
                out[name].append(value)
                continue

            out[name] = value
            if not lists and self._kind(member) == "array":
                arrays[name] = child

        # The only item of a list would read as the list itself, where it is an empty one.
        for name, count in counts.items() if lists else ():
            if count == 1 and out[name] == []:
                out[name] = [[]]
        # A list that is one element without an inside is empty. Two blank elements are two items.
        for name, child in arrays.items():
            if counts[name] == 1 and not len(child) and not (child.text or "").strip():
                out[name] = []
        # The text next to elements comes first among the members, as the tolerant reader has it.
        text = " ".join(filter(None, (word.strip(SPACE) for word in words if word)))
        return {self._text_key: text, **out} if text else out

    def _value(self, element: Any, view: View | None, index: int, in_list: bool) -> Value:
        kind = self._kind(view)
        has_children = len(element) > 0
        if kind == "array" and self._kind(item_view(view, index)) == "text":
            # Text of one item, which is raw, or elements that are an item each.
            if not has_children:
                kind = "text"
            # Only <item> elements with no text before them are the items of a list for sure.
            elif element[0].tag != "item" or (element.text and element.text.strip()):
                raise _Unsure

        if kind == "text":
            if has_children:
                raise _Unsure  # markup that is content, or is not
            return element.text or ""
        if has_children:
            lists = holds_items(view, index, element[0].tag)
            return self.members(element, view, index, lists)
        # An element without children is one item of the list that its like make.
        level = item_view(view, index) if kind == "array" and not in_list else view
        text = (element.text or "").strip(SPACE)
        if text:
            return text
        kind = self._kind(level)
        return {} if kind == "object" else [] if kind == "array" else ""

    def _kind(self, view: View | None) -> str:
        # `kind_of` has a cache of its own, but a look into a dict by identity costs half as much.
        kind = self._kinds.get(id(view))
        if kind is None:
            kind = self._kinds[id(view)] = kind_of(view)

        return kind
