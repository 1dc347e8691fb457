"""Bodies of nothing but flat elements, `<name>text</name>` one behind the other, read in one pass.

What is read is exactly what the tolerant reader gives. All else is left to it: unknown or repeated names, attributes,
markup inside an element, text beside the elements, and wherever the two might differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..schema.scalars import SPACE
from ..schema.view import View
from ..values import Value, escape_token
from .shape import item_view, kind_of, member_view, narrow
from .text import unescape
from .tree import NAME

_LONGEST = 8192  # a longer body takes its time to be searched, which the tolerant reader does as fast
_ELEMENTS = re.compile(r"<([^\s<>/=\"'!?]++)>([^<]*+)</\1>([ \t\r\n]*+)")
_TEXT, _TEXTS, _TRIMMED, _NESTED = range(4)  # a text, a list of texts, a scalar, what else holds elements


class FlatBody:
    """The parameters of a flat body, and where they stand."""

    __slots__ = ("_found", "_kinds", "_start", "value")

    def __init__(
        self, value: dict[str, Value], start: int, found: list[tuple[str, str, str]], kinds: Mapping[str, int]
    ) -> None:
        self.value = value
        self._start = start
        self._found = found
        self._kinds = kinds

    def places(self) -> dict[str, tuple[int, int]]:
        """JSON Pointer into `value` -> (start, end) in the body."""
        places = {"": (0, 0)}
        pos = self._start
        for name, text, gap in self._found:
            start = pos + len(name) + 2
            end = start + len(text)
            pos = end + len(name) + 3 + len(gap)
            if self._kinds[name] >= _TRIMMED:
                word = text.strip(SPACE)
                if word:
                    start += text.index(word[0])
                    end = start + len(word)
            places["/" + escape_token(name)] = (start, end)
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
    for name, text, gap in found:
        kind = kinds.get(name)
        if kind is None or name in out:
            return None
        size += 2 * len(name) + len(text) + len(gap) + 5
        if kind != _TEXT:
            if kind >= _TRIMMED:
                text = text.strip(SPACE)
            if kind != _TRIMMED and not text.strip():
                return None  # an empty list or object
        out[name] = unescape(text) if "&" in text else text
    # Where the lengths add up to the whole, nothing stands between the elements.
    return FlatBody(out, start, found, kinds) if out and size == len(body) else None


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
            if kind == "array":
                out[name] = _TEXTS if kind_of(item_view(member, 0)) == "text" else _NESTED
            else:
                out[name] = {"text": _TEXT, "object": _NESTED}.get(kind, _TRIMMED)
    return out
