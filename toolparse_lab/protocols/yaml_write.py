"""Writes arguments as YAML 1.2 that every reader takes for the same: in doubt a text is quoted."""

from __future__ import annotations

import re

from ..errors import UnwritableCall
from ..values import Value, write_canonical

_MAX_DEPTH = 90
_MAX_KEY = 1000  # YAML readers look no further for the colon
_NAME = re.compile(r"[^\s<>/=\"'!?&]+")
_PLAIN = re.compile(r"[^\W\d_](?:[\w ./()+-]*[\w.)])?")
_WORDS = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))
# What YAML calls printable, without the line breaks of YAML 1.1.
_ODD = re.compile("[^\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def write_element(name: str, value: Value) -> str:
    """`<name>`, the arguments one key a line, `</name>`. Raises UnwritableCall.

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
    """The lines of a mapping or sequence that is not empty, without the indentation of the place they go to."""
    if depth > _MAX_DEPTH:
        raise UnwritableCall(f"the arguments nest deeper than {_MAX_DEPTH}")
    out: list[str] = []
    if isinstance(value, dict):
        for key, member in value.items():
            written = _key(key)
            if isinstance(member, (dict, list)) and member:
                out.append(f"{written}:")
                out.extend("  " + line if line else line for line in _lines(member, depth + 1))
            else:
                first, *rest = _scalar(member)
                out.append(f"{written}: {first}")
                out.extend(rest)
        return out
    for member in value:
        inner = _lines(member, depth + 1) if isinstance(member, (dict, list)) and member else _scalar(member)
        out.append("- " + inner[0])
        out.extend("  " + line if line else line for line in inner[1:])
    return out


def _key(key: str) -> str:
    written = key if _is_plain(key) else write_quoted(key)
    if len(written) > _MAX_KEY:
        raise UnwritableCall("a key is too long for YAML", got=key)
    return written


def _scalar(value: Value) -> list[str]:
    """A scalar, or an empty container; further lines are indented by two more than its place."""
    if not isinstance(value, str):
        return [write_canonical(value)]
    if _is_plain(value):
        return [value]
    if not _is_block(value):
        return [write_quoted(value)]
    body = value.rstrip("\n")
    ends = len(value) - len(body)
    header = ("|-", "|", "|+")[min(ends, 2)]
    return [header, *("  " + line if line else line for line in body.split("\n")), *[""] * (ends - 1)]


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _WORDS and not _ODD.search(text)


def _is_block(text: str) -> bool:
    """A text of several lines that a block literal can hold as it is."""
    if "\n" not in text or "</" in text or _ODD.search(text) or text[0] in " \t\n":
        return False
    return all(line.strip(" \t") or not line for line in text.split("\n"))


def write_quoted(text: str) -> str:
    """A JSON string is one of YAML; what YAML does not print, and what looks like a closing tag, is escaped."""
    return _ODD.sub(lambda m: f"\\u{ord(m[0]):04x}", write_canonical(text)).replace("</", "\\x3c/")
