"""If the values of a body stand, by their paths before coercion."""

from __future__ import annotations

from collections.abc import Mapping

from ...arguments.schema.view import View
from ...core.values import Value, escape_token
from .element import Element
from .marks import ATTRIBUTE
from .shape import is_text, wants_one
from .text import Place

# How it works. Values are made from the inside out, but a path is known only from the outside in:
# how many elements share a name decides if a path has an index. So places are found in a second
# pass, over the same elements, parents first.


class Locator:
    """The places of the values of one tree.

    text_key: the key of text beside elements. attributes: they stay, under `@_name`. values: of
    elements, by identity. texts: where their own texts stand. places: JSON Pointer -> [start, end).
    repeated: lists where the schema wants one value, as (path, view of an item).
    """

    def __init__(
        self,
        text: str,
        text_key: str,
        attributes: bool,
        values: Mapping[int, Value],
        texts: Mapping[int, Place],
    ) -> None:
        self.places: dict[str, Place] = {}
        self.repeated: list[tuple[str, View]] = []
        self._text = text
        self._text_key = text_key
        self._attributes = attributes
        self._values = values
        self._texts = texts
        self._paths: dict[int, str] = {}  # element -> the path of its value
        self._counts: dict[tuple[int, str], int] = {}  # parent and name -> elements so far

    def locate(self, root: Element, elements: list[Element]) -> None:
        self._paths[id(root)] = ""
        self.places[""] = (0, len(self._text))
        self._locate_text(root, "")

        for element in elements:
            parent = element.parent
            if parent is None or id(parent) not in self._paths:
                continue  # the value that held it is not the one that counts

            name = element.name
            path: str | None = f"{self._paths[id(parent)]}/{escape_token(name)}"
            if parent.counts[name] > 1:
                path = self._repeated_path(element, parent, str(path))
            if path is not None:
                self._paths[id(element)] = path
                self._locate_value(element, path)

    def _repeated_path(self, element: Element, parent: Element, path: str) -> str | None:
        # Counted anew for each parent: the index is that in its own list.
        key = id(parent), element.name
        index = self._counts.get(key, 0)
        self._counts[key] = index + 1
        if not parent.lists and element.view is not None:
            if is_text(element.view):
                return None if index else path  # the first of several texts wins
            if index == 1:  # once is enough, however many follow
                self._note_repeated(path, element.view)

        # The list itself runs from its first element to the last one so far.
        # Elements of one name need not follow one another: what is between them counts too.
        first = self.places.get(path, (element.start, element.end))[0]
        self.places[path] = (first, element.end)
        return f"{path}/{index}"

    def _note_repeated(self, path: str, view: View) -> None:
        if wants_one(view):
            self.repeated.append((path, view))

    def _locate_value(self, element: Element, path: str) -> None:
        inside = element.start, element.end
        self.places[path] = inside if element.children else self._texts[id(element)]
        # An object has keys of its own, to which text and attributes belong.
        value = self._values[id(element)]
        if isinstance(value, dict) and value:
            self.places[path] = inside
            self._locate_text(element, path)
            self._locate_attributes(element, value, path)

    def _locate_text(self, element: Element, path: str) -> None:
        # Only an element that has text next to its children is in `texts` at this point.
        place = self._texts.get(id(element))
        if place is not None:
            self.places[f"{path}/{escape_token(self._text_key)}"] = place

    def _locate_attributes(self, element: Element, value: dict[str, Value], path: str) -> None:
        if not self._attributes:
            return
        for match in ATTRIBUTE.finditer(self._text, *element.attributes):
            key = "@_" + match["name"]
            if key in value:
                # Its value, in whatever quotes; its name where it has none.
                group = next((i for i in (2, 3, 4) if match[i] is not None), 1)
                self.places[f"{path}/{escape_token(key)}"] = match.span(group)
