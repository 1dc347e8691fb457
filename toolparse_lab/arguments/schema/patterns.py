"""A schema's patterns: ECMA's regular expressions, read by the package `regex` with a limit."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

# How it works. JSON Schema takes the pattern language of ECMA-262. `regex` reads nearly all of it;
# what means something else there is rewritten, one token at a time: `\d` is ASCII alone, `$` is the
# very end, `[^]` is any character. What only Python has (`\A`, `(?P<name>`) is left as it is, since
# its author can have meant nothing else. A literal of JavaScript with its slashes (`/^a$/i`), which
# as a pattern matches nothing, is read as what is between them.

LIMIT = 0.2  # seconds for one search
_SPACE = r"\t-\r\x20\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_NO_SPACE = (
    r"\x00-\x08\x0e-\x1f\x21-\x9f\xa1-\u167f\u1681-\u1fff\u200b-\u2027\u202a-\u202e\u2030-\u205e"
    r"\u2060-\u2fff\u3001-\ufefe\uff00-\U0010ffff"
)
_CLASSES = {
    "d": "0-9",
    "D": r"\x00-/:-\U0010ffff",
    "w": "0-9A-Za-z_",
    "W": r"\x00-/:-@\[-\^`{-\U0010ffff",
    "s": _SPACE,
    "S": _NO_SPACE,
}
_W = "[0-9A-Za-z_]"
_OUTSIDE = {
    ".": r"[^\n\r\u2028\u2029]",
    "$": r"\Z",
    r"\b": rf"(?:(?<!{_W})(?={_W})|(?<={_W})(?!{_W}))",
    r"\B": rf"(?:(?<={_W})(?={_W})|(?<!{_W})(?!{_W}))",
    r"\z": r"\Z",
}
_TOKEN = re.compile(
    r"""
      \\u\{(?P<point>[0-9A-Fa-f]{1,6})\}
    | \\u(?P<high>[Dd][89ABab][0-9A-Fa-f]{2})\\u(?P<low>[Dd][C-Fc-f][0-9A-Fa-f]{2})
    | \\c(?P<control>[A-Za-z])
    | \\(?P<class>[dDwWsS])
    | \\k<(?P<back>[^>]+)>
    | (?P<property>\\[pP]\{[^}]*\})
    | (?P<empty>\[\^?\])
    | (?P<posix>\[:\^?[a-z]+:\])
    | (?P<times>\{[0-9]*,?[0-9]*\})
    | (?P<plain>\\.|.)
    """,
    re.VERBOSE | re.DOTALL,
)


_LITERAL = re.compile(r"/(\^.*\$)/([dgimsuvy]{0,8})", re.DOTALL)


class TooSlow(Exception):
    """A pattern took longer than `LIMIT` on a text."""


def translate(pattern: str) -> str:
    """Return a pattern of ECMA-262 as `regex` reads it.

    >>> translate("^\\\\d{4}$")
    '^[0-9]{4}\\\\Z'
    """
    out: list[str] = []
    in_class = ends_set = False  # ends_set: the last token was a set of characters in a class
    for token in _TOKEN.finditer(pattern):
        text, kind = token[0], token.lastgroup
        was_set, ends_set = ends_set, False
        if kind == "point":
            text = _literal(int(token["point"], 16))
        elif kind == "low":
            high, low = int(token["high"], 16), int(token["low"], 16)
            text = _literal(0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF))
        elif kind == "control":
            text = f"\\x{ord(token['control']) % 32:02x}"
        elif kind == "class" or (kind == "property" and in_class):
            # Next to a set, a hyphen stands for itself.
            if in_class and out[-1] == "-":
                out[-1] = r"\-"
            if kind == "class":
                text = _CLASSES[token["class"]]
                text = text if in_class else f"[{text}]"
            ends_set = in_class
        elif kind == "back" and not in_class:
            text = f"(?P={token['back']})"
        elif in_class:
            if kind == "empty" or text in ("[", "]"):
                # Only the last bracket of `[]` and `[^]` closes a class.
                in_class = not text.endswith("]")
                text = "\\" + text if text != "]" else text
            elif text == "-" and was_set:
                text = r"\-"
        elif kind == "empty":
            text = "(?!)" if text == "[]" else "(?s:.)"
        elif kind == "posix" or text == "[":
            out.append("[")
            text, in_class = text[1:], True
            in_class = not text.endswith("]")
        elif text == "{" or text in ("{}", "{,}"):
            text = "\\" + text
        else:
            text = _OUTSIDE.get(text, text)
        out.append(text)
    return "".join(out)


def _literal(point: int) -> str:
    return f"\\U{point:08x}"


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> Any:
    """Return a compiled pattern. Raises regex.error for a broken one."""
    # Late: few schemas have patterns, and the package is slow to load.
    import regex

    literal = _LITERAL.fullmatch(pattern)
    flags = regex.IGNORECASE if literal and "i" in literal[2] else 0
    return regex.compile(translate(literal[1] if literal else pattern), flags)


def matches(pattern: str, text: str) -> bool:
    """Return True if the pattern matches somewhere in the text. Raises TooSlow."""
    try:
        return compiled(pattern).search(text, timeout=LIMIT) is not None
    except TimeoutError:
        raise TooSlow(f"the pattern {pattern[:60]!r} takes too long on this text") from None
