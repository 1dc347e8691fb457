"""Edits that put right a quote of a YAML line, or a bracket of the element's own tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from ...arguments.rjson.nearest import QUOTES
from ...core.types import Edit, Span
from ...core.values import Value
from ..disambiguation import RULE

_KEY_RULE = "yaml.near-key"
_MOST_LINES = 8
_BREAK = re.compile(r" \n(?= *[^ \n])|\n[:\"]")
# A line's value after its key or dash.
_LINE = re.compile(r"^[ \t]*+(?:- )*+(?:[\w.\-]++: )?(?P<value>[^\n]*?)[ \t]*$", re.MULTILINE)


def sign_edits(body: str) -> list[Edit]:
    """Return the edits that each put one sign of a body right, () if too many lines need one."""
    edits: list[Edit] = []
    # The second bracket of a tag that has it twice.
    if body.startswith(">"):
        edits.append(Edit(Span(0, 1), "", RULE))
    end = len(body.rstrip())
    if body[end - 1 : end] == "<":
        edits.append(Edit(Span(end - 1, end), "", RULE))

    # A line break that changed places with the first blank of its line's indent, or with a sign.
    breaks = list(islice(_BREAK.finditer(body), _MOST_LINES + 1))
    if len(breaks) <= _MOST_LINES:
        edits += [Edit(Span(*match.span()), match[0][::-1], _KEY_RULE) for match in breaks]

    lines = 0
    for match in _LINE.finditer(body):
        near = list(_quote_edits(match["value"], match.start("value")))
        edits += near
        lines += bool(near)
        if lines > _MOST_LINES:
            return []
    return edits


def _quote_edits(value: str, at: int) -> Iterator[Edit]:
    end = at + len(value)
    first, last = value[:1], value[-1:]
    if len(value) < 2:
        return
    if first == '"' and last != '"':
        if last in QUOTES:
            yield Edit(Span(end - 1, end), '"', _KEY_RULE)
        elif value[1:][-2:-1] == '"':
            yield Edit(Span(end - 2, end), last + '"', _KEY_RULE)
        else:
            yield Edit(Span(end, end), '"', _KEY_RULE)
    elif last == '"' and first != '"':
        if first in QUOTES:
            yield Edit(Span(at, at + 1), '"', _KEY_RULE)
        elif value[:-1][1:2] == '"':
            yield Edit(Span(at, at + 2), '"' + first, _KEY_RULE)
        else:
            yield Edit(Span(at, at), '"', _KEY_RULE)
    elif first == last == '"':
        if value.startswith('""'):
            yield Edit(Span(at, at + 1), "", _KEY_RULE)
        if value.endswith('""'):
            yield Edit(Span(end - 1, end), "", _KEY_RULE)


def is_half_quoted(value: Value, body: str) -> bool:
    """Return True if a text is bare in a body, with a quote at its end and not at its beginning."""
    stack: list[Value] = [value]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            stack.extend(node.values())
        elif isinstance(node, list):
            stack.extend(node)
        elif isinstance(node, str) and node[-1:] == '"' and "\n" not in node:
            is_pair = node.count('"') % 2 == 0 and node[1:2] != '"'
            if is_pair or node[:1] == '"' or (node[-2:-1].isdigit() and node[:1] not in QUOTES):
                continue
            if re.search(rf"[:\-] +{re.escape(node)}\s*(?:\n|\Z)", body):
                return True
    return False
