"""Names that are none of the tools', and the tool that they mean or are near to."""

# How it works. A server that cuts a model's text into calls may leave a piece of the format at the
# name: a special token, a word of a header, a namespace. What is taken off is only what no tool's
# name can be, and what is left must be one of the tools. Any other name is never changed: it is at
# most said which tool is near.

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from .python.reader import MODULES

# A special token with the word that belongs to it, a tag, or a marker in brackets.
_MARK = (
    r"<[|｜](?:channel|constrain)[|｜]>\s{0,8}+(?:(?:commentary|analysis|final|json|code)\b)?"
    r"|<[|｜][^<>|｜\s]{1,40}+[|｜]?>|</?[A-Za-z][\w.-]{0,40}+>|\[/?[A-Z][A-Z_]{1,20}+\]|\s++"
)
_BEFORE = re.compile(
    rf"(?:{_MARK}|<(?:function|invoke\s++name|tool_call)=[\"']?"
    r"|(?:assistant|commentary|analysis|final)(?=[\s<])|to=|(?:call|tool_call):\s{0,8}+"
    r"|(?:functions?|tools|default_api|api)[.:])"
)
_AFTER = re.compile(rf"(?:{_MARK}|[\"']?>|:\d{{1,4}}(?!\d)|(?<=\s)json\b|```(?:json)?)")
_LONGEST = 200  # characters of a name that is looked at
_LEAST_ALIKE = 0.75
_MARGIN = 0.1  # one that is less alike by this is not near next to the nearest
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class OfferedName:
    """The tool that a name means. start: where its own name begins in that. rule: what was done."""

    name: str
    start: int
    rule: str


def offered_name(name: str, tools: Collection[str]) -> OfferedName | None:
    """Return the one tool that a name means which is no tool's, None if it means none or several.

    >>> offered_name("f<|channel|>commentary", ["f"])
    OfferedName(name='f', start=0, rule='read.leaked-mark')
    >>> offered_name("functions.f", ["f"]).rule, offered_name("g", ["f"])
    ('read.module-name', None)
    """
    if "\\_" in name:
        # Markdown escapes the underscores of a name.
        plain = name.replace("\\_", "_")
        return OfferedName(plain, 0, "read.escaped-name") if plain in tools else None
    respelt = [n for n in tools if name in (n.replace(".", "_"), f"{n}.{n}")]
    if len(respelt) == 1:
        (own,) = respelt
        doubled = len(name) > len(own)
        rule = "read.doubled-name" if doubled else "read.dotted-name"
        return OfferedName(own, len(name) - len(own), rule)
    if respelt:
        return None
    module = next((module for module in MODULES if name.startswith(module)), "")
    if module and name[len(module) :] in tools:
        return OfferedName(name[len(module) :], len(module), "read.module-name")
    if len(name) > _LONGEST:
        return None
    trimmed = name.strip()
    if trimmed in tools:
        return OfferedName(trimmed, name.index(trimmed), "read.trimmed-name")
    start = 0
    while match := _BEFORE.match(name, start):
        start = match.end()
    for own in tools:
        # Behind the tool's name are marks, and nothing else.
        if not own or not name.startswith(own, start):
            continue
        end = start + len(own)
        while end < len(name) and (match := _AFTER.match(name, end)):
            end = match.end()
        if end == len(name):
            return OfferedName(own, start, "read.leaked-mark")
    namespace, _, last = name.rpartition(":")
    if namespace and last in tools:
        return OfferedName(last, len(namespace) + 1, "read.module-name")
    return None


def near_tool(name: str, tools: Collection[str]) -> str | None:
    """Return the one tool whose name is near to a name that is no tool's.

    None if none is, or more than one: nobody could tell which was meant.

    >>> near_tool("FindBerth", ["find_berth", "clock"]), near_tool("f", ["g"])
    ('find_berth', None)
    """
    if len(name) > _LONGEST:
        return None
    plain = _plain(name)
    same = [own for own in tools if _plain(own) == plain]
    inside = [own for own in tools if len(own) > 3 and _plain(own) in plain]
    near = same or inside or _alike(name, tools)
    return near[0] if len(near) == 1 else None


@lru_cache(maxsize=4096)
def _plain(name: str) -> str:
    return _SEPARATORS.sub("", name).lower()


def _alike(name: str, tools: Collection[str]) -> list[str]:
    import difflib  # only a name that is no tool's needs it

    # To compare takes long, and most names have nothing in common.
    most = max(2, len(name) // 4)
    ends = [own for own in tools if own[:2] == name[:2] or own[-3:] == name[-3:]]
    close = [own for own in ends if abs(len(own) - len(name)) <= most]
    ratios = {own: difflib.SequenceMatcher(None, own, name).ratio() for own in close}
    nearest = max(ratios.values(), default=0.0)
    return [own for own, r in ratios.items() if r >= _LEAST_ALIKE and r > nearest - _MARGIN]
