"""What tags look like: the patterns by which text is taken apart into elements."""

from __future__ import annotations

import re
from functools import lru_cache

from ..schema.scalars import SPACE

NAME = r"(?![-.,:;&|+*(){}\[\]])[^\s<>/=\"'!?]++"
_ATTRIBUTE = (
    r"[^\s<>/=\"'&;|+*(){}\[\],]++(?:\s*=\s*(?:\"[^\"]*\"|'[^']*'|[^\s\"'<>=]*[^\s\"'<>=/]))?"  # quoted or bare
)
MARK = re.compile(
    rf"(?P<skip><!\[CDATA\[|<!--|<\?|<![A-Za-z])"
    rf"|<(?P<close>/)(?P<gap>[ \t\r\n]*+)(?P<closed>{NAME})[ \t\r\n]*+>"
    rf"|<(?P<open>{NAME})(?P<attributes>(?:\s++{_ATTRIBUTE})*+)\s*+(?P<empty>/?)>"
)
ATTRIBUTE = re.compile(r"\s+(?P<name>[^\s=]+)(?:\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'<>=]*[^\s\"'<>=/])))?")
CLOSER = re.compile(rf"</[ \t\r\n]*+({NAME})")
CLOSE_TAIL = re.compile(rf"[ \t\r\n]*+>(?=[{SPACE}]*+(?:<|\Z))")  # and a tag or the end follows
DOUBT = re.compile(r"<(?:/[ \t\r\n]|!\[CDATA\[)")  # before a closing tag: it may not be the one that is meant
DOCTYPE = re.compile(r"<![A-Za-z](?:[^<>\[\]\"']|\"[^\"]*\"|'[^']*')*+(?:\[(?:[^\]\"']|\"[^\"]*\"|'[^']*')*+\]\s*+)?>")
BLANK = re.compile(rf"[{SPACE}]*+")
ITEM = re.compile(r"\s*+<(?:item|[0-9]+)(?=[\s/>])")


@lru_cache(maxsize=512)
def own_tags(name: str) -> re.Pattern[str]:
    """An element's own tags, and what hides them."""
    own = re.escape(name)
    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)[ \t\r\n]*+{own}[ \t\r\n]*+>|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>"
    )


@lru_cache(maxsize=512)
def raw_tags(name: str, parent: str) -> re.Pattern[str]:
    """What matters in raw text: its own tags, its parent's closing tag, and CDATA, which hides them."""
    own = re.escape(name)
    over = rf"|(?P<over></{re.escape(parent)}[ \t\r\n]*+>)" if parent and parent != name else "|(?P<over>(?!))"
    return re.compile(
        rf"(?P<skip><!\[CDATA\[)|<(?P<close>/)(?P<gap>[ \t\r\n]*+){own}[ \t\r\n]*+>"
        rf"|<{own}(?:\s[^<>]*?)?(?P<empty>/?)>{over}"
    )
