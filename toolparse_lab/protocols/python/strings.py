"""The text that a Python string literal means, read without Python's own parser.

That one refuses NUL and lone surrogates, which a model may well write.
"""

from __future__ import annotations

import re
import unicodedata

# A backslash that none of these follow stays as it is, so it is not matched at all.
_ESCAPE = re.compile(
    r"\\(?:(?P<line>\r?\n|\r)|(?P<octal>[0-7]{1,3})|x(?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|N\{(?P<name>[^{}\n]{1,128})\}"
    r"|(?P<one>[\\'\"abfnrtv])|(?P<bad>[xuUN]))"
)
_ONE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def unescape_python(text: str) -> str:
    r"""Return the text between a literal's quotes, decoded once.

    An unknown escape keeps its backslash, as Python reads it. A surrogate pair written as two
    escapes is one character, as in JSON. Raises ValueError for a broken escape.

    >>> unescape_python(r"C:\dir\x41\N{BULLET}")
    'C:\\dirA•'
    """
    if "\\" not in text:
        return text

    value = _ESCAPE.sub(_decode, text)
    # Two escapes may have made a pair; UTF-16 joins it and passes a lone half on.
    if _PAIR.search(value):
        value = value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return value


def _decode(match: re.Match[str]) -> str:
    """Return the characters of one escape; raises ValueError for a broken one.

    The group that matched is its kind: "line" is a line break that is escaped, and so nothing.
    """
    kind = str(match.lastgroup)
    text = str(match[kind])
    if kind == "line":
        return ""
    if kind == "one":
        return _ONE.get(text, text)
    if kind == "octal":
        return chr(int(text, 8))
    if kind == "name":
        try:
            return unicodedata.lookup(text)
        except KeyError:
            raise ValueError(f"no character is named {text!r}") from None

    if kind == "bad":
        raise ValueError(f"a broken escape \\{text}")
    return _character(text)


def _character(digits: str) -> str:
    """Return the character with this hexadecimal code; raises ValueError if there is none."""
    code = int(digits, 16)
    if code > 0x10FFFF:
        raise ValueError(f"no such character: {digits}")
    return chr(code)
