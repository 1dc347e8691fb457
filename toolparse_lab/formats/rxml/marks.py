"""The patterns of tags, by which text is taken apart into elements."""

from __future__ import annotations

import re
from functools import lru_cache

from ...arguments.schema.scalars import SPACE

# How it works. `MARK` finds whatever may be markup: the beginning of a section, a closing tag, an
# opening tag with its attributes. A `<` that fits none of these is text. All repeats are
# possessive, so that a `<` followed by much text costs one look and no backtracking.

# What begins with a sign is no name: `a <- b`, `x <(y)` are prose and code.
NAME = r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?]++"
# The value is quoted, bare, or missing.
_ATTRIBUTE = (
    r"[^\s<>/=\"'&;|+*(){}\[\],]++(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]*[^\s\"'<>=/]))?"
)
MARK = re.compile(
    rf"(?P<skip><!\[CDATA\[|<!--|<\?|<![A-Za-z])"
    rf"|<(?P<close>/)(?P<gap>[ \t\r\n]*+)(?P<closed>{NAME})[ \t\r\n]*+>"
    rf"|<(?P<open>{NAME})(?P<attributes>(?:\s++{_ATTRIBUTE})*+)\s*+(?P<empty>/?)>"
)
ATTRIBUTE = re.compile(
    r"\s+(?P<name>[^\s=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]*[^\s\"'<>=/])))?"
)
CLOSER = re.compile(rf"</[ \t\r\n]*+({NAME})")
# The end of a closing tag that a tag or the end of the text follows.
CLOSE_TAIL = re.compile(rf"[ \t\r\n]*+>(?=[{SPACE}]*+(?:<|\Z))")
# Before a closing tag: it may not be the one that is meant.
DOUBT = re.compile(r"<(?:/[ \t\r\n]|!\[CDATA\[)")
# A declaration with its internal subset, in which a quote may hide what looks like its end.
DOCTYPE = re.compile(
    r"<![A-Za-z](?:[^<>\[\]\"']|\"[^\"]*\"|'[^']*')*+"
    r"(?:\[(?:[^\]\"']|\"[^\"]*\"|'[^']*')*+\]\s*+)?>"
)
BLANK = re.compile(rf"[{SPACE}]*+")
# What people and writers call the items of a list: item, or their numbers.
ITEM = re.compile(r"\s*+<(?:item|[0-9]+)(?=[\s/>])")


@lru_cache(maxsize=512)
def own_tags(name: str) -> re.Pattern[str]:
    own = re.escape(name)
    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)[ \t\r\n]*+{own}[ \t\r\n]*+>"
        rf"|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>"
    )


@lru_cache(maxsize=512)
def raw_tags(name: str, parent: str) -> re.Pattern[str]:
    own = re.escape(name)
    over = "|(?P<over>(?!))"  # a group that never matches, so that it can always be asked for
    if parent and parent != name:
        over = rf"|(?P<over></{re.escape(parent)}[ \t\r\n]*+>)"

    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)(?P<gap>[ \t\r\n]*+){own}[ \t\r\n]*+>"
        rf"|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>{over}"
    )
