"""Writes arguments as YAML 1.2 that every reader takes for the same: in doubt a text is quoted."""

from __future__ import annotations

import re

from ...core.errors import UnwritableCall
from ...core.values import Value, write_canonical

_MAX_DEPTH = 90
_MAX_KEY = 1000  # YAML readers look no further for the colon
_NAME = re.compile(r"[^\s<>/=\"'!?&]+")
_PLAIN = re.compile(r"[^\W\d_](?:[\w ./()+-]*[\w.)])?")
# Words that YAML 1.1, or a reader that follows it, takes for something else.
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# What YAML does not print, the line breaks of YAML 1.1, and what is read as one character here and
# two there.
ODD = re.compile(
    "[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)


def write_element(name: str, value: Value) -> str:
    """Return `<name>`, the arguments one key a line, `</name>`.

    Raises UnwritableCall for a name that is not an element's, and for anything that is not a
    mapping or too deep.

    >>> print(write_element("f", {"a": 1, "b": "two\\nlines\\n", "c": ["x"]}))
    <f>
    a: 1
    b: |
      two
      lines
    c:
      - x
    </f>
    """
    if not _NAME.fullmatch(name):
        raise UnwritableCall("this name cannot be an element's", got=name)
    if not isinstance(value, dict):
        raise UnwritableCall("only an object is written as a mapping", got=write_canonical(value))

    lines = _lines(value, 0) if value else ["{}"]
    return "\n".join([f"<{name}>", *lines, f"</{name}>"])


def _lines(value: Value, depth: int) -> list[str]:
    # Of a mapping or sequence that is not empty, without the indentation of the place they go to.
    if depth > _MAX_DEPTH:
        raise UnwritableCall(f"the arguments nest deeper than {_MAX_DEPTH}")
    lines: list[str] = []
    is_mapping = isinstance(value, dict)
    for key, member in value.items() if is_mapping else (("", item) for item in value):
        is_nested = isinstance(member, (dict, list)) and bool(member)
        inner = _lines(member, depth + 1) if is_nested else _scalar(member)
        if not is_mapping:
            # The first line is next to the dash, the others below it.
            lines += [f"- {inner[0]}", *_indented(inner[1:])]
        elif is_nested:
            lines += [f"{_key(key)}:", *_indented(inner)]
        else:
            # The lines of a block literal are indented already, from the key's own place.
            lines += [f"{_key(key)}: {inner[0]}", *inner[1:]]
    return lines


def _indented(lines: list[str]) -> list[str]:
    return ["  " + line if line else line for line in lines]


def _key(key: str) -> str:
    text = key if _is_plain(key) else write_quoted(key)
    if len(text) > _MAX_KEY:
        raise UnwritableCall("a key is too long for YAML", got=key)
    return text


def _scalar(value: Value) -> list[str]:
    # Or an empty container. Further lines are indented by two more than its place.
    if not isinstance(value, str):
        return [write_canonical(value)]
    if _is_plain(value):
        return [value]
    # In a block, lines of blanks alone lose them, and a closing tag would end the element. The
    # first line gives the indentation, so it can begin with no white space.
    is_block = "\n" in value and "</" not in value and not ODD.search(value)
    is_block = is_block and value[0] not in " \t\n"
    if not is_block or any(line and not line.strip(" \t") for line in value.split("\n")):
        return [write_quoted(value)]

    body = value.rstrip("\n")
    breaks = len(value) - len(body)
    # Line breaks at the end: none of them, the one that is usual, all of them.
    header = ("|-", "|", "|+")[min(breaks, 2)]
    return [header, *_indented(body.split("\n")), *[""] * (breaks - 1)]


def _is_plain(text: str) -> bool:
    # It begins with a letter, contains nothing that YAML could read, and is no word of its own.
    return bool(_PLAIN.fullmatch(text)) and text.lower() not in _WORDS and not ODD.search(text)


def write_quoted(text: str) -> str:
    """Return the text as a JSON string that is YAML: odd characters and `</` are escaped."""
    escaped = ODD.sub(lambda match: f"\\u{ord(match[0]):04x}", write_canonical(text))
    return escaped.replace("</", "\\x3c/")
