"""What a Python string literal says, read without Python's own parser, which refuses NUL and lone surrogates."""

from __future__ import annotations

import re
import unicodedata

_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r?\n|\r)|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|N\{(?P<name>[^{}\n]{1,128})\}|(?P<one>[\\'\"abfnrtv])|(?P<bad>[xuUN]))"
)
_ONE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def unescape_python(text: str) -> str:
    r"""The text between a literal's quotes, decoded once; an unknown escape keeps its backslash, as Python reads it.

    A surrogate pair written as two escapes is one character, as in JSON. Raises ValueError for a broken escape.

    >>> unescape_python(r"C:\dir\x41\N{BULLET}")
    'C:\\dirA•'
    """
    if "\\" not in text:
        return text
    value = _ESCAPE.sub(_decode, text)
    if _PAIR.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


def _decode(m: re.Match[str]) -> str:
    kind, found = str(m.lastgroup), str(m[m.lastgroup or 0])
    if kind == "line":
        return ""
    if kind == "one":
        return _ONE.get(found, found)
    if kind == "octal":
        return chr(int(found, 8))
    if kind == "name":
        try:
            return unicodedata.lookup(found)
        except KeyError:
            raise ValueError(f"no character is named {found!r}") from None
    if kind == "bad":
        raise ValueError(f"a broken escape \\{found}")
    code = int(found, 16)
    if code > 0x10FFFF:
        raise ValueError(f"no such character: {found}")
    return chr(code)
