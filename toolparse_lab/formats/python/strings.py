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

# What may follow the quote that ends a string: a bracket, or a comma and what follows one.
_BEHIND = re.compile(
    r"\s{0,40}+(?:[)\]}:]|,\s{0,40}+(?:[\"'\[{(\])}\d-]|(?:True|False|None|true|false|null)\b"
    r"|[^\W\d][\w.]{0,200}+\s{0,8}+[=(]))"
)
# Words that Python has after a value; any other one is inside a string.
_PASTED = re.compile(r"(?!(?:if|else|for|in|is|and|or|not)\b)[\w/\\$~]")
# Behind it a quote begins a value: a quote or a comma was lost, and two readings fit.
_NAMED = re.compile(r"\w\s{0,4}[=:]\s{0,4}\Z")
_SEPARATED = re.compile(r"[,:]\s{1,8}\Z|[\[({]\s{0,8}\Z")
_MOST_INNER = 64


def late_end(text: str, pos: int, *, inside: bool = False) -> list[int] | None:
    """Return where quotes are in a string that goes on after `pos`; the last one ends it.

    pos: after a quote that ends the string as Python reads it. None where that is its end, as far
    as can be told: what follows it at once is no part of a word. A string goes on up to the
    first quote of its kind after which a value may end. Where it would take in another argument
    it does not go on.
    """
    if not _PASTED.match(text, pos) or _NAMED.search(text, max(0, pos - 12), pos - 1):
        return None
    if inside and _SEPARATED.search(text, max(0, pos - 12), pos - 1):
        return None
    quote = text[pos - 1]
    places: list[int] = []
    end = text.find(quote, pos)
    while end >= 0 and len(places) < _MOST_INNER:
        if text[end - 1] != "\\":
            if _NAMED.search(text, max(0, end - 12), end):
                return None
            places.append(end)
            if _BEHIND.match(text, end + 1):
                # One quote more after an empty string: its first quote was doubled.
                is_doubled = pos > 1 and text[pos - 2] == quote and len(places) == 1
                return None if is_doubled else places
        end = text.find(quote, end + 1)
    return None


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
    # "line" is a line break that is escaped, and so nothing
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
    code = int(text, 16)
    if code > 0x10FFFF:
        raise ValueError(f"no such character: {text}")
    return chr(code)
