"""The mapping that most YAML bodies are: one plain line a key, and texts of several lines as block
literals. And the meaning of unquoted scalars, by YAML 1.2's core schema and the tool's in doubt.

What is not plainly of this kind answers None and is left to PyYAML, which takes a hundred times as
long. If both answer, they answer the same.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from ...arguments.schema.view import View
from ...core.values import Value, number
from ...core.values.numbers import Number

_MAX_DIGITS = 3000  # of a hexadecimal or octal integer, so that it can still be written in decimal
_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_BOOLEAN = {w: w[0] in "tT" for w in ("true", "True", "TRUE", "false", "False", "FALSE")}
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_FLOAT = re.compile(r"([-+]?)(0|[1-9][0-9]*)?(?:(\.)([0-9]*))?([eE][-+]?[0-9]+)?")
_ZEROS = re.compile(r"([-+]?)0+([0-9]+)")
_NUMBER_STARTS = frozenset("+-.0123456789")
_RADIX = {"0x": (16, re.compile(r"0x[0-9a-fA-F]+")), "0o": (8, re.compile(r"0o[0-7]+"))}


def resolve_plain(text: str, view: View | None = None) -> Value:
    """Return the meaning of an unquoted scalar in YAML 1.2's core schema.

    No yes and no, no dates, no base 60. If the schema wants text and another spelling would lose
    characters (`007`, `0x1F`, `+5`), it stays text. Leading zeros are a number only where the
    schema wants one. Not-a-number and infinity are text: JSON has neither.

    view: the schema of the value, None if nothing is known of it.

    >>> [resolve_plain(text) for text in ("3", "1.50", "True", "~", "no", "2024-01-15")]
    [3, 1.5, True, None, 'no', '2024-01-15']
    >>> [resolve_plain(text) for text in ("007", "0x1F", "1_000")]
    ['007', 31, '1_000']
    """
    # The text of a string among the schema's own values is that string.
    if view is not None and view.enum and any(type(m) is str and m == text for m in view.enum):
        return text
    if text in _NULL:
        return None
    if text in _BOOLEAN:
        # In JSON's own spelling it is a boolean, whatever the schema wants.
        odd = text not in ("true", "false") and _wants_text(view, "boolean")
        return text if odd else _BOOLEAN[text]

    # Most scalars are words, and most others are JSON's own numbers: these two checks come first.
    if _JSON_NUMBER.fullmatch(text):
        return _number(text)
    if text[0] not in _NUMBER_STARTS:
        return text

    zeros = _ZEROS.fullmatch(text)
    if zeros:
        # An identifier such as 007 may well begin with zeros: only a schema makes it a number.
        types = view.types or () if view is not None else ()
        if "string" in types or not {"integer", "number"}.intersection(types):
            return text
        return _number(zeros[1].replace("+", "") + zeros[2])
    value = _odd_number(text)
    if value is None:
        return text
    # As text it keeps all its characters, so it stays one where the schema has a place for texts
    # and none for this kind of number.
    kind = "integer" if isinstance(value, int) else "number"
    return text if _wants_text(view, kind) else value


def _odd_number(text: str) -> Number | str | None:
    # A number as YAML writes it and JSON does not. None if it is no number, the text itself if its
    # exponent is beyond every number.
    radix = _RADIX.get(text[:2])
    if radix:
        base, pattern = radix
        # One that is too long could not be written in decimal again.
        is_number = len(text) <= _MAX_DIGITS and pattern.fullmatch(text)
        return int(text[2:], base) if is_number else None

    match = _FLOAT.fullmatch(text)
    if match is None:
        return None
    sign, whole, point, fraction, exponent = match.groups(default="")
    if not whole and not fraction:
        return None
    # Brought to JSON's spelling: no plus, a digit on each side of the point.
    point += (fraction or "0") if point else ""
    return _number(("-" if sign == "-" else "") + (whole or "0") + point + exponent)


def _number(text: str) -> Number | str:
    # the text where the exponent is beyond every number
    try:
        return number(text)
    except ValueError:
        return text


def _wants_text(view: View | None, kind: str) -> bool:
    # The schema admits text, and not this kind of value. An integer is also a number.
    if view is None or view.types is None or "string" not in view.types:
        return False
    return kind not in view.types and not (kind == "integer" and "number" in view.types)


# How it works: one pattern matches a line with its key, value and line break, and says by its last
# group which kind of value it is. Any line that it does not match ends the attempt, and so does
# what YAML would read differently here and there; nothing is repaired. Cost: one match a line.


_LEAD = re.compile(r"(?: *\n)*+(?P<indent> {0,32})(?=[A-Za-z_])")
# What YAML does not print, its odd line breaks, and what is read as one character here and two
# there.
_ODD = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_ODD_ASCII = tuple(chr(code) for code in (*range(9), 11, 12, *range(13, 32), 127))
_LONG = 2_000  # characters from which on thirty searches for one character are faster than a set
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


def _is_odd(text: str) -> bool:
    if len(text) > _LONG and text.isascii():
        return any(map(text.__contains__, _ODD_ASCII))
    return _ODD.search(text) is not None


def read_flat(text: str, view: View) -> tuple[dict[str, Value], dict[str, tuple[int, int]]] | None:
    """Return the mapping, and the place of each value by its JSON Pointer.

    None if PyYAML has to look.

    text: the body, without the element's tags.
    view: the schema of the parameters, which decides the meaning of an unquoted value.
    """
    lead = _LEAD.match(text)
    if lead is None or _is_odd(text):
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
        kind = line.lastgroup or "key"
        value: Value
        if kind == "block":
            # A header on the last line has nothing below it: then `find` returns -1.
            start = text.find("\n", line.end("block")) + 1
            lines = block.match(text, start) if start else None
            if lines is None:
                return None
            # One line break at the end, or none with `|-`.
            lead_in = lines["lead"]
            value = lines[0][len(lead_in) :].replace("\n" + lead_in, "\n").rstrip("\n")
            value += "" if line["block"] == "|-" else "\n"
            pos = lines.end()
            place = start, pos
            # White space at the end that is not even a line of the mapping belongs to nothing.
            if len(text) - pos <= indent and not text[pos:].strip(" "):
                pos = len(text)
        elif kind == "key":
            # Nothing there is null, or an empty text where the schema wants one. Its place is after
            # the colon.
            end = line.end("key") + 1
            value, place = resolve_plain("", view.child(key)), (end, end)
        elif kind == "plain":
            value, place = resolve_plain(line["plain"], view.child(key)), line.span("plain")
        else:
            value, place = line[kind], line.span(kind)
            # The escapes that the pattern lets through are those of JSON.
            if kind == "double" and "\\" in value:
                value = json.loads(f'"{value}"')

        values[key] = value
        places["/" + key] = place  # such keys hold nothing that a pointer escapes

    return values, places
