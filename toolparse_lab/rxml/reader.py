"""Reads the inside of an element as parameters. Tolerant, with edits and places, and always with the schema at hand.

Text the schema calls a string is raw: markup in it is content, white space stays, entities are decoded once. All
other text is trimmed. Nothing is typed here: text stays text until it is coerced by schema.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from ..rjson.damage import Refusal
from ..rjson.positions import apply_edits
from ..schema.view import View
from ..types import Edit
from ..values import Value, escape_token
from .element import Element, Manner, walk
from .marks import ATTRIBUTE, MARK
from .shape import is_text, item_view, kind_of, may_be_object, wants_one
from .text import joined_text, unescape, unescape_offsets
from .text import raw_text as raw_text_of
from .tree import read_tree

__all__ = ["TEXT_KEY", "ElementReader", "text_params", "unescape", "unescape_offsets", "wrapper_name"]

TEXT_KEY = "#text"


class ElementReader:
    """One body under one schema. `read()` gives the members; `edits` and `places` fill while it reads.

    text_key: the key of text beside elements. attributes: keep those of objects, under `@_name`.
    first_wins(name, count): called where a string stands more than once, instead of refusing it.
    """

    def __init__(
        self,
        text: str,
        view: View,
        *,
        repair: bool = False,
        closed: bool = True,
        manner: Manner | None = None,
        text_key: str = TEXT_KEY,
        attributes: bool = False,
        comments: bool = False,
        trim: bool = True,
        first_wins: Callable[[str, int], None] | None = None,
        wrapper: str | None = None,
    ) -> None:
        self.text = text
        self.view = view
        self.manner = manner or Manner(repair=repair, closed=closed)
        self.text_key = text_key
        self.attributes = attributes
        self.comments = comments
        self.trim = trim
        self.first_wins = first_wins
        self.wrapper = wrapper
        self.edits: list[Edit] = []
        self.places: dict[str, tuple[int, int]] = {}
        self.repeated: list[tuple[str, View]] = []  # lists where the schema wants one value: path, view of an item
        self.tree: Element | None = None
        self._values: dict[int, Value] = {}
        self._texts: dict[int, tuple[int, int]] = {}  # where an element's own text stands

    def read(self) -> dict[str, Value]:
        """The parameters of the whole body; raises Refusal."""
        self.tree, self.edits = read_tree(self.text, self.view, self.manner, wrapper=self.wrapper)
        elements = list(walk(self.tree))
        for element in reversed(elements):
            self._values[id(element)] = self.value(element)
        out = self.members(self.tree)
        if self.edits and not self.reads_back(out):
            raise Refusal("decode.ambiguous", "a repair would change what other text means", self.edits[0].span.start)
        self.locate(self.tree, elements)
        return out

    def reads_back(self, value: dict[str, Value]) -> bool:
        """Whether the repaired text reads strictly to the same."""
        again = ElementReader(
            apply_edits(self.text, self.edits), self.view, manner=replace(self.manner, repair=False, closed=True),
            text_key=self.text_key, attributes=self.attributes, comments=self.comments, trim=self.trim,
            first_wins=None if self.first_wins is None else lambda name, count: None, wrapper=self.wrapper,
        )  # fmt: skip
        try:
            return again.read() == value
        except Refusal:
            return False

    def read_wrapped(self) -> dict[str, Value] | None:
        """The parameters inside the one element `wrapper` that holds them all; None where that is not so.

        Raises Refusal where it is so, and they cannot be read.
        """
        if self.wrapper is None:
            return None
        try:
            value = self.read().get(self.wrapper)
        except Refusal:
            if self.holds_all():
                raise
            return None
        if not self.holds_all() or not isinstance(value, dict):
            return None
        prefix = "/" + escape_token(self.wrapper)
        self.places = {p.removeprefix(prefix): span for p, span in self.places.items() if p}
        self.repeated = [(p.removeprefix(prefix), view) for p, view in self.repeated]
        return value

    def holds_all(self) -> bool:
        """Whether there is one element, and nothing beside it."""
        return self.tree is not None and len(self.tree.children) == 1 and not self.loose_text(self.tree)[0]

    def raw_text(self, start: int, end: int, path: str) -> str:
        """Text as it stands: CDATA unwrapped, entities decoded once."""
        text, self.places[path] = raw_text_of(self.text, start, end)
        return text

    # values, inside out

    def value(self, element: Element) -> Value:
        """The value of one element whose children are read: text, or its members."""
        if element.raw:
            if element.code:
                text, place = joined_text(self.text, [(element.start, element.end, "text")], trim=self.trim)
            else:
                text, place = raw_text_of(self.text, element.start, element.end)
            self._texts[id(element)] = place
            return text
        view, listed = element.view, element.lists
        if kind_of(view) == "array" and not listed and not (element.parent and element.parent.lists):
            view = item_view(view, element.index)  # it is one item of the list that its like make
        wraps = element.parent is self.tree and element.name == self.wrapper
        attributes = {} if listed or wraps or not may_be_object(view) else self.attributes_of(element)
        if element.children:
            return {**self.members(element), **attributes}
        text, place = joined_text(self.text, element.pieces, trim=self.trim, comments=self.comments)
        if not element.pieces:
            place = (element.start, element.start)
        self._texts[id(element)] = place if text else (element.start, element.end)
        if attributes:
            return {self.text_key: text, **attributes} if text else attributes
        if not text:
            return {"object": {}, "array": []}.get(kind_of(view), "")
        return text

    def members(self, element: Element) -> dict[str, Value]:
        """An element's children by their names, those of one name as a list, and the text beside them."""
        out: dict[str, Value] = {}
        for child in element.children:
            name, count = child.name, element.counts[child.name]
            value = self._values[id(child)]
            if count == 1:
                if kind_of(child.view) == "array" and not element.lists and self.blank(child):
                    value = []
                out[name] = [value] if element.lists and value == [] else value  # one item, itself an empty list
            elif not element.lists and child.view is not None and is_text(child.view):
                if self.first_wins is None:
                    again = [c for c in element.children if c.name == name][1]
                    raise Refusal(
                        "decode.duplicate-string-tag", f"the text parameter {name!r} stands twice", again.start
                    )
                if name not in out:
                    out[name] = value
                    self.first_wins(name, count)
            elif name in out:
                out[name].append(value)
            else:
                out[name] = [value]
        text, place = self.loose_text(element)
        if text:
            out = {self.text_key: text, **out}
            self._texts[id(element)] = place
        return out

    def blank(self, element: Element) -> bool:
        return not element.children and not self.text[element.start : element.end].strip()

    def attributes_of(self, element: Element) -> dict[str, Value]:
        """Attributes under `@_name`; one without a value is None."""
        start, end = element.attributes
        out: dict[str, Value] = {}
        if start == end or not self.attributes:
            return out
        for m in ATTRIBUTE.finditer(self.text, start, end):
            text = next((g for g in m.groups()[1:] if g is not None), None)
            out["@_" + m["name"]] = None if text is None else attribute_text(text)
        return out

    def loose_text(self, element: Element) -> tuple[str, tuple[int, int]]:
        """The text beside the children and where it stands (all of it, if in several places)."""
        words: list[str] = []
        spans: list[tuple[int, int]] = []
        pieces = element.pieces
        at = 0
        for child in [*element.children, None]:
            begin = at
            while at < len(pieces) and (child is None or pieces[at][0] < child.begin):
                at += 1
            if at > begin:
                word, span = joined_text(self.text, pieces[begin:at], comments=self.comments)
                if word:
                    words.append(word)
                    spans.append(span)
        if not spans:
            return "", (element.start, element.start)
        return " ".join(words), (spans[0][0], spans[-1][1])

    # places, outside in

    def locate(self, root: Element, elements: list[Element]) -> None:
        """Where each value stands, by its path before coercion."""
        places = self.places
        paths = {id(root): ""}
        seen: dict[tuple[int, str], int] = {}
        places[""] = (0, len(self.text))
        self.locate_text(root, "")
        for element in elements:
            parent = element.parent
            if parent is None or id(parent) not in paths:
                continue
            path = f"{paths[id(parent)]}/{escape_token(element.name)}"
            if parent.counts[element.name] > 1:
                index = seen.get((id(parent), element.name), 0)
                seen[id(parent), element.name] = index + 1
                if not parent.lists and element.view is not None and is_text(element.view):
                    if index:
                        continue
                else:
                    if index == 1 and not parent.lists and element.view is not None and wants_one(element.view):
                        self.repeated.append((path, element.view))
                    first = places.get(path, (element.start, element.end))[0]
                    places[path] = (first, element.end)
                    path = f"{path}/{index}"
            paths[id(element)] = path
            whole = bool(element.children)
            places[path] = (element.start, element.end) if whole else self._texts[id(element)]
            value = self._values[id(element)]
            if isinstance(value, dict) and value:
                places[path] = (element.start, element.end)
                self.locate_text(element, path)
                self.locate_attributes(element, value, path)

    def locate_text(self, element: Element, path: str) -> None:
        place = self._texts.get(id(element))
        if place is not None:
            self.places[f"{path}/{escape_token(self.text_key)}"] = place

    def locate_attributes(self, element: Element, value: dict[str, Value], path: str) -> None:
        if not self.attributes:
            return
        for m in ATTRIBUTE.finditer(self.text, *element.attributes):
            group = next((i for i in (2, 3, 4) if m[i] is not None), 1)
            key = "@_" + m["name"]
            if key in value:
                self.places[f"{path}/{escape_token(key)}"] = m.span(group)


def attribute_text(text: str) -> str:
    """The value of an attribute: white space is spaces, entities are decoded once."""
    return unescape(text.replace("\r\n", " ").translate(_TO_SPACES))


_TO_SPACES = {9: " ", 10: " ", 13: " "}


def wrapper_name(text: str, view: View, void: Collection[str] = ()) -> str | None:
    """The name of the first element, where the schema has parameters and does not know this one."""
    pos = 0
    while m := MARK.search(text, pos):
        if m["open"]:
            known = not view.properties or view.child(m["open"]) is not None or m["open"] in void
            return None if known else str(m["open"])
        if m["close"]:  # it closes nothing, and is left out or refused later
            pos = m.end()
            continue
        if m["skip"] == "<![CDATA[":
            return None
        end = text.find("-->" if m["skip"] == "<!--" else ">", m.end())
        if end < 0:
            return None
        pos = end
    return None


def text_params(view: View) -> frozenset[str]:
    """The names of the parameters whose text is raw."""
    return frozenset(name for name, member in view.properties.items() if is_text(member))
