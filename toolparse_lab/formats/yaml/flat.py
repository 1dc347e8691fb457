"""The mapping that most YAML bodies are: one plain line a key, and texts of several lines as block
literals.

What is not plainly of this kind answers None and is left to PyYAML, which takes a hundred times as
long. If both answer, they answer the same.
"""

# How it works: one pattern matches a line with its key, value and line break, and says by its last
# group which kind of value it is. Any line that it does not match ends the attempt, and so does
# what YAML would read differently here and there; nothing is repaired. Cost: one match a line.

from __future__ import annotations

import json
import re
from functools import lru_cache

from ...arguments.schema.view import View
from ...core.values import Value
from .scalar import resolve_plain

_LEAD = re.compile(r"(?: *\n)*+(?P<indent> {0,32})(?=[A-Za-z_])")
# What YAML does not print, its odd line breaks, and what is read as one character here and two
# there.
_ODD = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_PLAIN = r"(?:[^\s:#\[\]{}\-?,&*!|>'\"%@`]|-(?=\S))(?:[^\s:\[\]{}]|:(?=\S)| +(?=[^\s#]))*+"
_MAX_BRACKETS = 100  # more of them are counted as PyYAML must


@lru_cache(maxsize=64)
def _patterns(indent: int) -> tuple[re.Pattern[str], re.Pattern[str]]:
    # indent: that of the keys. The first matches the value, the line's end and blank lines after it
    # as well. Its last group is "key" for no value, "plain", "double", "single" or "block".
    double = r"\"(?P<double>(?:[^\"\\\n\t]|\\[\"\\/bfnrt])*+)\""
    single = r"'(?P<single>[^'\n\t]*+)'"
    line = (
        rf" {{{indent}}}(?P<key>[A-Za-z_][A-Za-z0-9_.$-]{{0,127}}):"
        rf"(?: +(?:(?P<plain>{_PLAIN})|{double}|{single}"
        r"|(?P<block>\|-?+)))?+ *(?:\n(?: *\n)*+(?: +\Z)?|\Z)"
    )
    block = rf"(?P<lead> {{{indent + 1},}})[^ \n][^\n]*+\n(?:\n|(?P=lead)[^\n]*+\n)*+"
    return re.compile(line), re.compile(block)


def read_flat(text: str, view: View) -> tuple[dict[str, Value], dict[str, tuple[int, int]]] | None:
    """Return the mapping, and the place of each value by its JSON Pointer.

    None if PyYAML has to look.

    text: the body, without the element's tags.
    view: the schema of the parameters, which decides the meaning of an unquoted value.
    """
    lead = _LEAD.match(text)
    if lead is None or _ODD.search(text):
        return None
    if text.count("[") + text.count("{") > _MAX_BRACKETS:
        return None

    indent = lead.end() - lead.start("indent")
    pattern, block = _patterns(indent)
    values: dict[str, Value] = {}
    places = {"": (lead.end(), len(text.rstrip()))}
    pos = lead.start("indent")
    while pos < len(text):
        line = pattern.match(text, pos)
        if line is None or line["key"] in values:
            return None

        key = line["key"]
        pos = line.end()
        if line.lastgroup == "block":
            literal = _block(text, line, block)
            if literal is None:
                return None
            value, place = literal
            pos = place[1]
            # White space at the end that is not even a line of the mapping belongs to nothing.
            if len(text) - pos <= indent and not text[pos:].strip(" "):
                pos = len(text)
        else:
            value, place = _on_line(line, view)

        values[key] = value
        places["/" + key] = place  # such keys hold nothing that a pointer escapes

    return values, places


def _block(
    text: str, line: re.Match[str], block: re.Pattern[str]
) -> tuple[str, tuple[int, int]] | None:
    # None if it is not a plain one. block: the pattern of a block literal's lines.
    # A header on the last line has nothing below it: then `find` returns -1, and this is 0.
    start = text.find("\n", line.end("block")) + 1
    lines = block.match(text, start) if start else None
    if lines is None:
        return None
    return _literal(lines[0], lines["lead"], line["block"]), (start, lines.end())


def _on_line(line: re.Match[str], view: View) -> tuple[Value, tuple[int, int]]:
    # Nothing there is null, or an empty text where the schema wants one. Its place is after the
    # colon.
    kind = line.lastgroup or "key"
    if kind == "key":
        end = line.end("key") + 1
        return resolve_plain("", view.child(line["key"])), (end, end)
    if kind == "plain":
        return resolve_plain(line["plain"], view.child(line["key"])), line.span("plain")

    text = line[kind]
    # The escapes that the pattern lets through are those of JSON.
    if kind == "double" and "\\" in text:
        text = json.loads(f'"{text}"')
    return text, line.span(kind)


def _literal(lines: str, lead: str, header: str) -> str:
    # lead: the indentation that all lines have. One line break at the end, or none with `|-`.
    text = lines[len(lead) :].replace("\n" + lead, "\n").rstrip("\n")
    return text if header == "|-" else text + "\n"
