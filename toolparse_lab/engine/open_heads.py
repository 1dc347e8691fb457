"""Beginnings of calls that stand in text: a call that never got a body, and is still open.

A model mixes formats, and forgets a block's opener; then the beginning of its call is text for the
protocol at hand. What stands behind it, up to its closer, is a value of that call all the same.
"""

# How it works
# ------------
# Each text between two other segments is looked through once, when something that is no text ends
# it. A head is the beginning of a call in any format that names its tool in a tag or before a
# bracket, if the tool is known. The last head of the text that no closer follows is open.
#
# A tag that only has a tool's name is common in prose ("the <search> tool"). So it counts where a
# call would write it: at the beginning of a line, or in front of an attribute, a parameter's
# element or a comment. Heads in inline code or a fence are examples.
#
# Cost: one search for `<` or `(`, each bounded, and one for the closers of each head's kind, which
# is repeated only behind the closer that it found; linear in the text.

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass

_NAME = r"[^\s<>()\"'=/`]{1,256}+"
_HEAD = re.compile(
    rf"<(?:function[ \t]*(?:=|[ \t]name[ \t]*=)|invoke[ \t]+name[ \t]*="
    rf"|tool_call[ \t]+name[ \t]*=)[ \t]*[\"']?(?P<function>{_NAME})"
    rf"|<(?P<element>{_NAME})(?=[\s>/])"
    rf"|\((?=\s{{0,64}}[A-Za-z_]\w{{0,255}}\s{{0,64}}=\s{{0,64}}[\"'])"
)
_BEFORE_BRACKET = re.compile(r"(?:[A-Za-z_][\w.\-]{0,255})\Z")
_LONGEST_NAME = 256
# Behind a tag's name: an attribute whose value may hold markup, or what only a call has inside.
_ATTRIBUTE = re.compile(r"\s{1,64}[\w:.\-]{1,256}\s{0,64}=\s{0,64}[\"']")
_INSIDE = re.compile(r">\s{0,64}<(?:!--|!\[CDATA\[|[A-Za-z_])")
_ATTRIBUTES = r"(?:[^<>\"']|\"[^\"]*\"|'[^']*')*+"
_EMPTY = re.compile(rf"{_ATTRIBUTES}/>")
_ARGUMENTS = re.compile(
    r"""\((?:[^"'()]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\([^()"']*\))*+\)""", re.S
)
_FUNCTION_CLOSERS = ("</function>", "</invoke>", "</tool_call>", "</function_calls>")
_CALL_CLOSERS = ('")', "')")
_FENCE = re.compile(r"^[ \t]{0,3}```", re.M)


@dataclass(frozen=True, slots=True)
class OpenHead:
    """The beginning of a call in text. end: behind it; closers: what would end that call."""

    end: int
    closers: tuple[str, ...]


def open_head(text: str, tools: Container[str]) -> OpenHead | None:
    """The last beginning of a known tool's call in a text that the text does not end; else None.

    >>> open_head("<function=note>please ", {"note"})
    OpenHead(end=14, closers=('</function>', '</invoke>', '</tool_call>', '</function_calls>'))
    >>> open_head("<function=note>please</function> ", {"note"}) is None
    True
    """
    if "<" not in text and "(" not in text:
        return None
    pos = 0
    while match := _HEAD.search(text, pos):
        pos = match.end()
        closers = _closers(text, match, tools)
        if not closers or not text[pos:].strip(" \t\r\n>") or _is_example(text, match.start()):
            continue
        ends = [at + len(c) for c in closers if (at := text.find(c, pos)) >= 0]
        if not ends:
            return OpenHead(pos, closers)
        pos = min(ends)
    return None


def _closers(text: str, head: re.Match[str], tools: Container[str]) -> tuple[str, ...]:
    """The literals that would end the call of a head; () where it begins none.

    head: a match of `_HEAD` in the text.
    """
    start, end = head.span()
    if head["function"]:
        return _FUNCTION_CLOSERS if head["function"] in tools else ()
    name = head["element"]
    if name:
        known = name in tools and _begins_call(text, start, end)
        return (f"</{name}>",) if known and not _EMPTY.match(text, end) else ()
    before = _BEFORE_BRACKET.search(text[max(0, start - _LONGEST_NAME) : start])
    if before is None or before[0].removeprefix("functions.") not in tools:
        return ()
    return () if _ARGUMENTS.match(text, start) else _CALL_CLOSERS


def _begins_call(text: str, start: int, end: int) -> bool:
    """Return whether the tag of a tool's name at text[start:end] is more than a word of prose."""
    if _ATTRIBUTE.match(text, end) or _INSIDE.match(text, end):
        return True
    line = text.rfind("\n", 0, start) + 1
    return not text[line:start].strip()


def _is_example(text: str, at: int) -> bool:
    """Return whether a place in a text is inside inline code or a fence, as far as it tells."""
    line = text.rfind("\n", 0, at) + 1
    return text.count("`", line, at) % 2 == 1 or len(_FENCE.findall(text, 0, at)) % 2 == 1
