"""A parameter that stands several times: items of one list, or several whole lists."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...arguments.rjson.strict import read_if_strict
from ...arguments.schema.view import View
from ...core.values import Value

# How it works: the schema of the items decides. Where it names the kind of the JSON, coercion reads
# each text as an item. Where it names texts alone, an object may be meant as text, such as a row of
# a log; a list may not, since the parameter is one itself and models write it as one JSON list.

_MAX_DEPTH = 200
_TEXTS = re.compile(r"\[\s*(['\"]).*\1\s*,?\s*\]", re.DOTALL)  # JSON, or as Python writes them


def holds_json_unread(texts: Sequence[Value], member: View | None) -> bool:
    # Under a list of texts, `["a"]` and `["b"]` may be one list in two parts, or the second
    # list in place of the first; engines differ. Objects may be texts where the schema says so.
    kinds = {kind for text in texts if (kind := _container_in(text))}
    return any(not _takes(kind, member) for kind in kinds)


def may_be_list(member: View | None) -> bool:
    # A schema without a type says nothing.
    if member is None:
        return False
    views = (member, *member.alternatives)
    return any("array" in (view.types or ()) or view.items is not None for view in views)


def _container_in(text: Value) -> str:
    if not isinstance(text, str) or text.lstrip()[:1] not in ("[", "{"):
        return ""
    text = text.strip()
    if _TEXTS.fullmatch(text):
        return "array"
    values = read_if_strict(text, _MAX_DEPTH)
    if values is None or len(values) != 1:
        return ""
    return "array" if isinstance(values[0], list) else "object"


def _takes(kind: str, member: View | None) -> bool:
    lists = member.alternatives if member is not None else ()
    items = [view.items for view in lists if view.items is not None]
    types = {name for item in items for view in item.alternatives for name in view.types or ()}
    if kind in types:
        # A text that may stay text is never read as JSON.
        return not any(item.admits_string() for item in items)
    return kind == "object" and "string" in types
