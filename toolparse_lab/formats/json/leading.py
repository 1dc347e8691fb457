"""The whole calls in front of the damage of a list, or of lines of JSON, that no one can read."""

from __future__ import annotations

import re

from ...arguments.rjson.strict import read_next
from ...core.values import Value

# Only another object, begun as one, makes what stands before it an item of its own.
_BETWEEN = re.compile(r"\s*(?:,\s*)?(?=\{)")
_BEGIN = re.compile(r"\s*(\[?)\s*(?=\{)")


def leading_part(body: str) -> tuple[str, list[Value]] | None:
    """Return the beginning of a body up to its damage, as JSON, and its values.

    A list is closed, so that every offset is one of the body too. None if the body does not begin
    with whole objects, or nothing that may be another call follows them.

    >>> leading_part('[{"a": 1}, {"b": }]')
    ('[{"a": 1}]', [[{'a': 1}]])
    """
    begin = _BEGIN.match(body)
    if begin is None:
        return None
    objects: list[Value] = []
    end, at = 0, begin.end()
    while (item := read_next(body, at)) is not None and isinstance(item[0], dict):
        following = _BETWEEN.match(body, item[1])
        if following is None:
            return None
        objects.append(item[0])
        end, at = item[1], following.end()
    if not objects:
        return None
    is_list = begin[1] != ""
    return body[:end] + "]" * is_list, [objects] if is_list else objects
