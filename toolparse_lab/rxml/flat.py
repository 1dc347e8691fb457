"""Bodies of nothing but flat elements, `<name>text</name>` one behind the other, read in one pass.

What is read is exactly what the tolerant reader gives. All else is left to it: unknown names, attributes, markup inside
an element, text beside the elements, and wherever the two might differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..schema.scalars import SPACE
from ..schema.view import View
from ..values import Value, escape_token
from .marks import NAME
from .shape import item_view, kind_of, member_view, narrow
from .text import unescape

_LONGEST = 8192  # a longer body takes its time to be searched, which the tolerant reader does as fast
_ELEMENTS = re.compile(r"<([^\s<>/=\"'!?]++)>([^<]*+)</\1>([ \t\r\n]*+)")
_TEXT, _TEXTS, _LIST, _OBJECT, _SCALAR = range(5)  # the first two are raw, the others trimmed


class FlatBody:
    """The parameters of a flat body, and where they stand."""

    __slots__ = ("_found", "_kinds", "_lists", "_start", "value")

    def __init__(
        self,
        value: dict[str, Value],
        start: int,
        found: list[tuple[str, str, str]],
        kinds: Mapping[str, int],
        lists: set[str],
    ) -> None:
        self.value = value
        self._start = start
        self._found = found
        self._kinds = kinds
        self._lists = lists

    def places(self) -> dict[str, tuple[int, int]]:
        """JSON Pointer into `value` -> (start, end) in the body."""
        places = {"": (0, 0)}
        counts: dict[str, int] = {}
        pos = self._start
        for name, text, gap in self._found:
            start = pos + len(name) + 2
            end = start + len(text)
            pos = end + len(name) + 3 + len(gap)
            path = "/" + escape_token(name)
            if name in self._lists:
                count = counts[name] = counts.get(name, -1) + 1
                places[path] = (places[path][0] if count else start, end)
                path = f"{path}/{count}"
            if self._kinds[name] >= _LIST:
                word = text.strip(SPACE)
                if word:
                    start += text.index(word[0])
                    end = start + len(word)
            places[path] = (start, end)
        places[""] = (0, pos)
        return places


def read_flat(body: str, view: View, text_key: str) -> FlatBody | None:
    """A flat body's parameters under `view`; None where the tolerant reader must read it."""
    if len(body) > _LONGEST:
        return None
    kinds = _kinds(view, text_key)
    size = start = len(body) - len(body.lstrip(" \t\r\n"))
    found = _ELEMENTS.findall(body)
    out: dict[str, Value] = {}
    lists: set[str] = set()
    for name, text, gap in found:
        kind = kinds.get(name)
        if kind is None:
            return None
        size += 2 * len(name) + len(text) + len(gap) + 5
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
    # Where the lengths add up to the whole, nothing stands between the elements.
    return FlatBody(out, start, found, kinds, lists) if out and size == len(body) else None


@lru_cache(maxsize=2048)
def _kinds(view: View, text_key: str) -> Mapping[str, int]:
    """How the text of each parameter is read; those that need the tolerant reader are not there."""
    if narrow(view) is not view or kind_of(view) == "array":
        return {}
    out: dict[str, int] = {}
    for name in view.properties:
        if name != text_key and re.fullmatch(NAME, name):
            member = member_view(view, 0, False, name, 0)
            kind = kind_of(member)
            if kind != "array":
                out[name] = {"text": _TEXT, "object": _OBJECT}.get(kind, _SCALAR)
            elif item_view(member, 0) is item_view(member, 1):  # not a tuple, whose items differ
                out[name] = _TEXTS if kind_of(item_view(member, 0)) == "text" else _LIST
    return out
