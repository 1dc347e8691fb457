"""The mapping that most YAML bodies are: one plain line a key, and texts of several lines as block literals.

What is not plainly of this kind answers None and is left to PyYAML, which takes a hundred times as long; where both
answer, they answer the same.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from ..schema.view import View
from ..values import Value, escape_token
from .yaml_scalar import resolve_plain

_LEAD = re.compile(r"(?: *\n)*+(?P<indent> {0,32})(?=[A-Za-z_])")
# What YAML does not print, its odd line breaks, and what is read as one character here and two there.
_ODD = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_PLAIN = r"(?:[^\s:#\[\]{}\-?,&*!|>'\"%@`]|-(?=\S))(?:[^\s:\[\]{}]|:(?=\S)| +(?=[^\s#]))*+"
_MAX_BRACKETS = 100  # more of them are counted as PyYAML must


@lru_cache(maxsize=64)
def _patterns(indent: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A key and its value, the line's end and blank lines behind it; and the lines of a block literal below a key."""
    line = (
        rf" {{{indent}}}(?P<key>[A-Za-z_][A-Za-z0-9_.$-]{{0,127}}):"
        rf"(?: +(?:(?P<plain>{_PLAIN})|\"(?P<double>(?:[^\"\\\n\t]|\\[\"\\/bfnrt])*+)\"|'(?P<single>[^'\n\t]*+)'"
        r"|(?P<block>\|-?+)))?+ *(?:\n(?: *\n)*+(?: +\Z)?|\Z)"
    )
    return re.compile(line), re.compile(rf"(?P<lead> {{{indent + 1},}})[^ \n][^\n]*+\n(?:\n|(?P=lead)[^\n]*+\n)*+")


def read_flat(text: str, view: View) -> tuple[dict[str, Value], dict[str, tuple[int, int]]] | None:
    """The mapping, and the place of each value by its JSON Pointer; None where PyYAML has to look."""
    m = _LEAD.match(text)
    if m is None or _ODD.search(text) or text.count("[") + text.count("{") > _MAX_BRACKETS:
        return None
    pos, size = m.end(), len(text)
    indent = pos - m.start("indent")
    line, block = _patterns(indent)
    values: dict[str, Value] = {}
    places = {"": (pos, len(text.rstrip()))}
    pos -= indent
    while pos < size:
        m = line.match(text, pos)
        if m is None or m["key"] in values:
            return None
        key, kind, pos = m["key"], m.lastgroup, m.end()
        value: Value
        if kind == "block":
            start = text.find("\n", m.end("block")) + 1
            lines = block.match(text, start) if start else None
            if lines is None:
                return None
            pos = lines.end()
            value = _literal(lines[0], lines["lead"], m["block"])
            place = (start, pos)
            if size - pos <= indent and not text[pos:].strip(" "):
                pos = size
        elif kind == "key":
            value, place = resolve_plain("", view.child(key)), (m.end("key") + 1, m.end("key") + 1)
        elif kind == "plain":
            value, place = resolve_plain(m["plain"], view.child(key)), m.span("plain")
        else:
            value, place = m[kind or 0], m.span(kind or 0)
            if kind == "double" and "\\" in value:
                value = json.loads(f'"{value}"')
        values[key] = value
        places[f"/{escape_token(key)}"] = place
    return values, places


def _literal(lines: str, lead: str, header: str) -> str:
    """What a block literal says: its lines without their indentation, with one line break at the end or none."""
    text = lines[len(lead) :].replace("\n" + lead, "\n").rstrip("\n")
    return text if header == "|-" else text + "\n"
