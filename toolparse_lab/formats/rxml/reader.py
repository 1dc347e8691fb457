"""Reads the inside of an element as parameters: tolerant, with edits and places."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from functools import lru_cache

from ...arguments.rjson.positions import apply_edits
from ...arguments.rjson.strict import Refusal
from ...arguments.schema.view import View
from ...core.types import Edit
from ...core.values import Value, escape_token
from .element import (
    ATTRIBUTE,
    MARK,
    Element,
    Manner,
    Place,
    joined_text,
    pieces_between_children,
    unescape,
    walk,
)
from .element import raw_text as raw_text_of
from .shape import is_text, item_view, kind_of, may_be_object, wants_one
from .tree import read_tree

# How it works. The text becomes a tree (`read_tree`), and the tree values: children before their
# parents, so that each element finds the values of its children ready. Elements of one name are a
# list, unless the schema wants one text of them.
#
# A path is known only from the outside in: how many elements share a name decides if it has an
# index. So places are found in a second pass, over the same elements, parents first.
#
# A repair is a guess about what was meant, and it is held to one law: the repaired text, read
# strictly, gives the very same value. Where it does not, the text is refused.

TEXT_KEY = "#text"
_TO_SPACES = {9: " ", 10: " ", 13: " "}


@dataclass(eq=False)
class ElementReader:
    """One body under one schema.

    `read()` gives the members. `edits` and `places` fill while it reads.

    Args:
        text_key: the key of text next to elements.
        attributes: keep those of objects, under `@_name`.
        comments, trim: comments count as text. White space around text goes. first_wins(name,
            count): called where a string stands more than once, instead of refusing it.
        wrapper: see `read_tree`. repeated: lists where the schema wants one value, as (path, view
            of an item).

    >>> from toolparse_lab.formats.rxml import ElementReader
    >>> from toolparse_lab.arguments.schema.view import view_of
    >>> schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    >>> ElementReader("<city>Oslo</city>", view_of(schema)).read()
    {'city': 'Oslo'}
    """

    text: str
    view: View
    _: KW_ONLY
    repair: InitVar[bool] = False
    closed: InitVar[bool] = True
    manner: InitVar[Manner | None] = None
    text_key: str = TEXT_KEY
    attributes: bool = False
    comments: bool = False
    trim: bool = True
    first_wins: Callable[[str, int], None] | None = None
    wrapper: str | None = None
    edits: list[Edit] = field(default_factory=list, init=False)
    places: dict[str, Place] = field(default_factory=dict, init=False)
    repeated: list[tuple[str, View]] = field(default_factory=list, init=False)
    tree: Element | None = field(default=None, init=False)
    _values: dict[int, Value] = field(default_factory=dict, init=False)  # of elements, by identity
    _texts: dict[int, Place] = field(default_factory=dict, init=False)  # an element's own text
    # Parent and name -> elements so far.
    _counts: dict[tuple[int, str], int] = field(default_factory=dict, init=False)

    def __post_init__(self, repair: bool, closed: bool, manner: Manner | None) -> None:
        self._manner = manner or Manner(repair=repair, closed=closed)

    def read(self) -> dict[str, Value]:
        """Return the parameters of the whole body. Raises Refusal."""
        # Kept even if the rest is refused: `holds_all` asks about it.
        self.tree, self.edits = read_tree(self.text, self.view, self._manner, wrapper=self.wrapper)
        elements = list(walk(self.tree))
        for element in reversed(elements):
            self._values[id(element)] = self._value(element)

        members = self._members(self.tree)

        # Costs a second reading, of damaged text only.
        if self.edits and not self._reads_back(members):
            message = "a repair would change what other text means"
            raise Refusal("decode.ambiguous", message, self.edits[0].span.start)

        self._locate(self.tree, elements)
        return members

    def _reads_back(self, members: dict[str, Value]) -> bool:
        # With the same options, and no reports: that was done once.
        again = replace(
            self,
            text=apply_edits(self.text, self.edits),
            manner=replace(self._manner, repair=False, closed=True),
            first_wins=None if self.first_wins is None else lambda name, count: None,
        )
        try:
            return again.read() == members
        except Refusal:
            return False

    def read_wrapped(self) -> dict[str, Value] | None:
        """Return the parameters inside the one element `wrapper` that holds them.

        None if no single element holds them all.

        Raises Refusal if it is so, and they cannot be read.
        """
        if self.wrapper is None:
            return None

        members: Value = None
        try:
            members = self.read().get(self.wrapper)
        except Refusal:
            # A body that the wrapper does not hold is no reason to refuse.
            if self.holds_all():
                raise
        if not self.holds_all() or not isinstance(members, dict):
            return None

        # All paths move up by that of the wrapper, which is not a member.
        prefix = "/" + escape_token(self.wrapper)
        self.places = {path.removeprefix(prefix): self.places[path] for path in self.places if path}
        self.repeated = [(path.removeprefix(prefix), view) for path, view in self.repeated]
        return members

    def holds_all(self) -> bool:
        """Return True if there is one element, and nothing next to it."""
        if self.tree is None or len(self.tree.children) != 1:
            return False
        return not self._loose_text(self.tree)[0]

    def raw_text(self, start: int, end: int, path: str) -> str:
        """Return the text of [start, end), and note its place under `path`.

        CDATA is unwrapped, and entities are decoded once.
        """
        text, self.places[path] = raw_text_of(self.text, start, end)
        return text

    # values, inside out

    def _value(self, element: Element) -> Value:
        if element.raw:
            inside = element.start, element.end
            if element.code:
                text, place = joined_text(self.text, [(*inside, "text")], trim=self.trim)
            else:
                text, place = raw_text_of(self.text, *inside)
            self._texts[id(element)] = place
            return text

        # The view decides what no text at all means, and if attributes have a place. In
        # `<tag>a</tag><tag>b</tag>`, a list of two, the list's own view says nothing of each.
        view = element.view
        in_list = element.lists or (element.parent is not None and element.parent.lists)
        if kind_of(view) == "array" and not in_list:
            view = item_view(view, element.index)
        attributes = self._attributes_of(element, view) if self.attributes else {}
        if element.children:
            return {**self._members(element), **attributes}

        text, place = joined_text(self.text, element.pieces, trim=self.trim, comments=self.comments)
        if not element.pieces:
            place = (element.start, element.start)

        self._texts[id(element)] = place if text else (element.start, element.end)
        if attributes:
            return {self.text_key: text, **attributes} if text else attributes

        if text:
            return text
        kind = kind_of(view)
        return {} if kind == "object" else [] if kind == "array" else ""

    def _members(self, element: Element) -> dict[str, Value]:
        out: dict[str, Value] = {}
        for child in element.children:
            name = child.name
            value = self._values[id(child)]
            if element.counts[name] == 1:
                if element.lists:
                    # The only item of a list may itself be an empty list.
                    value = [value] if value == [] else value
                # A list without an inside holds nothing, not an empty item. A comment is something:
                # who writes one did not leave the element empty.
                elif (
                    kind_of(child.view) == "array"
                    and not child.children
                    and not self.text[child.start : child.end].strip()
                ):
                    value = []
                out[name] = value
            elif not element.lists and child.view is not None and is_text(child.view):
                if name in out:
                    continue
                if self.first_wins is None:
                    again = [other for other in element.children if other.name == name][1]
                    message = f"the text parameter {name!r} appears twice"
                    raise Refusal("decode.duplicate-string-tag", message, again.start)
                self.first_wins(name, element.counts[name])
                out[name] = value
            elif name in out:
                out[name].append(value)
            else:
                out[name] = [value]

        text, place = self._loose_text(element)
        if text:
            out = {self.text_key: text, **out}
            self._texts[id(element)] = place
        return out

    def _attributes_of(self, element: Element, view: View | None) -> dict[str, Value]:
        start, end = element.attributes
        # Only an object of its own has a place for them. A wrapper comes off with its attributes.
        is_wrapper = element.parent is self.tree and element.name == self.wrapper
        if start == end or element.lists or is_wrapper or not may_be_object(view):
            return {}

        out: dict[str, Value] = {}
        for match in ATTRIBUTE.finditer(self.text, start, end):
            # The value is in one of three groups, by its quotes; in none where there is no value.
            text = next((text for text in match.groups()[1:] if text is not None), None)
            out["@_" + match["name"]] = None if text is None else attribute_text(text)
        return out

    def _loose_text(self, element: Element) -> tuple[str, Place]:
        if not element.pieces:
            return "", (element.start, element.start)

        words: list[str] = []
        places: list[Place] = []
        for pieces, _ in pieces_between_children(element):
            if not pieces:
                continue

            word, place = joined_text(self.text, pieces, comments=self.comments)
            if word:
                words.append(word)
                places.append(place)

        if not places:
            return "", (element.start, element.start)
        # In several places at once, it runs from the first to the last.
        return " ".join(words), (places[0][0], places[-1][1])

    # places, outside in

    def _locate(self, root: Element, elements: list[Element]) -> None:
        paths = {id(root): ""}
        self.places[""] = (0, len(self.text))
        self._locate_text(root, "")

        for element in elements:
            parent = element.parent
            if parent is None or id(parent) not in paths:
                continue  # the value that held it is not the one that counts

            path: str | None = f"{paths[id(parent)]}/{escape_token(element.name)}"
            if parent.counts[element.name] > 1:
                path = self._repeated_path(element, parent, str(path))
            if path is None:
                continue
            paths[id(element)] = path
            inside = element.start, element.end
            self.places[path] = inside if element.children else self._texts[id(element)]
            # An object has keys of its own, to which text and attributes belong.
            value = self._values[id(element)]
            if not isinstance(value, dict) or not value:
                continue
            self.places[path] = inside
            self._locate_text(element, path)
            spans = ATTRIBUTE.finditer(self.text, *element.attributes) if self.attributes else ()
            for match in spans:
                key = "@_" + match["name"]
                if key in value:
                    # Its value, in whatever quotes; its name where it has none.
                    group = next((i for i in (2, 3, 4) if match[i] is not None), 1)
                    self.places[f"{path}/{escape_token(key)}"] = match.span(group)

    def _repeated_path(self, element: Element, parent: Element, path: str) -> str | None:
        # Counted anew for each parent: the index is that in its own list.
        key = id(parent), element.name
        index = self._counts.get(key, 0)
        self._counts[key] = index + 1
        if not parent.lists and element.view is not None:
            if is_text(element.view):
                return None if index else path  # the first of several texts wins
            if index == 1 and wants_one(element.view):  # once is enough, however many follow
                self.repeated.append((path, element.view))

        # The list itself runs from its first element to the last one so far, and what is between
        # them counts too.
        first = self.places.get(path, (element.start, element.end))[0]
        self.places[path] = (first, element.end)
        return f"{path}/{index}"

    def _locate_text(self, element: Element, path: str) -> None:
        # Only an element that has text next to its children is in `_texts` at this point.
        place = self._texts.get(id(element))
        if place is not None:
            self.places[f"{path}/{escape_token(self.text_key)}"] = place


def attribute_text(text: str) -> str:
    # White space is spaces, entities are decoded once.
    return unescape(text.replace("\r\n", " ").translate(_TO_SPACES))


def wrapper_name(text: str, view: View, void: Collection[str] = ()) -> str | None:
    """Return the name of the first element, where the schema has parameters but not this one."""
    pos = 0
    while mark := MARK.search(text, pos):
        if mark["open"]:
            name = str(mark["open"])
            known = not view.properties or name in void or view.child(name) is not None
            return None if known else name

        pos = mark.end()
        if mark["skip"] == "<![CDATA[":
            return None  # a section of text means that the body is text, not elements
        if not mark["close"]:  # a closing tag closes nothing, and is left out or refused later
            pos = text.find("-->" if mark["skip"] == "<!--" else ">", pos)
            if pos < 0:
                return None

    return None


@lru_cache(maxsize=2048)
def text_params(view: View) -> frozenset[str]:
    """Return the names of the parameters whose text is raw."""
    return frozenset(name for name, member in view.properties.items() if is_text(member))
