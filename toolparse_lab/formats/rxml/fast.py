"""A quick reader of flat elements, with exactly the results of the tolerant one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from ...arguments.schema.scalars import SPACE
from ...arguments.schema.view import View
from ...core.values import Value, escape_token
from .element import NAME, Place, unescape
from .shape import item_view, kind_of, member_view, narrow

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
