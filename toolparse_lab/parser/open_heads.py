"""Beginnings in text that nothing ends: of calls without a body, and of text that only shows
things.

A model mixes formats, and forgets a block's opener. Then the beginning of its call is text for the
protocol at hand. The text behind it, up to its closer, is a value of that call all the same.
"""

# How it works
# ------------
# Each text between two other segments is looked through once, when something that is no text ends
# it. A head is the beginning of a call in any format that names its tool in a tag or before a
# bracket, if the tool is known. A head is open if no closer of its kind follows in the text.
#
# A tag that only has a tool's name is common in prose ("the <search> tool"). So it counts where a
# call would write it: at the beginning of a line, or in front of an attribute, a parameter's
# element or a comment. Heads in inline code or a fence are examples.
#
# What a page or a prompt shows things in counts as well: comments, CDATA, elements such as `<pre>`,
# the text of an image, fences of tildes.
#
# Cost: one search for heads, each look around one bounded, and one for the closers of a head; what
# they skip is not looked at again, and without a closer the search is over. Linear in the text.

from __future__ import annotations

import re
import string
from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache

_NAME = r"[^\s<>()\"'=/`]{1,256}+"
_HEAD = re.compile(
    rf"<(?:[|｜]{{1,2}}\w{{1,20}}[|｜]{{1,2}} ?)?(?:function[ \t]*(?:=|[ \t]name[ \t]*=)"
    rf"|invoke[ \t]+name[ \t]*="
    rf"|tool_call[ \t]+name[ \t]*=)[ \t]*[\"']?(?P<function>{_NAME})"
    rf"|<[|｜](?![^<>|｜\s]{{0,64}}end)(?P<slot>[^<>|｜\s]{{0,32}}"
    rf"(?:arg|param|value)[^<>|｜\s]{{0,32}})[|｜]>"
    rf"|<\|open\|>(?P<argument>argument)[^<>]{{0,200}}<\|sep\|>"
    rf"|<(?P<mark>!--|!\[CDATA\[)|(?P<image>!\[)|\\begin\{{(?P<block>verbatim|lstlisting)\}}"
    rf"|(?P<fence>~~~)"
    rf"|<(?P<element>{_NAME})(?=[\s>/<])"
    rf"|\((?=\s{{0,64}}[A-Za-z_]\w{{0,255}}\s{{0,64}}=\s{{0,64}}[\"'])"
    rf"|(?P<object>\{{)(?=\s{{0,64}}[A-Za-z_]\w{{0,255}}\s{{0,64}}:)"
)
# Elements that show what they hold, in pages and in prompts, and other things that do.
_BOXES = frozenset(
    ("pre", "code", "samp", "blockquote", "quote", "q", "example", "document", "details")
)
_RESULTS = frozenset(("tool_response", "tool_result"))
# Elements that hold the value of a parameter, in whatever format.
_VALUES = frozenset(("arg_value", "param_value", "parameter", "param", "arg", "argument"))
_SHOWING = _BOXES | _RESULTS | _VALUES
_ENDS = {"!--": "-->", "![CDATA[": "]]>"}
_NAME_CHARACTERS = string.ascii_letters + string.digits + "_.-"
_LONGEST_NAME = 256
_LONGEST_INDENT = 64
_LONGEST_CALL = 4096  # a tag or arguments that are longer count as open
# Behind a tag's name: an attribute whose value may hold markup, or what only a call has inside.
_ATTRIBUTE = re.compile(r"\s{1,64}[\w:.\-]{1,256}\s{0,64}=\s{0,64}[\"']")
_INSIDE = re.compile(r">\s{0,64}<(?:!--|!\[CDATA\[|[A-Za-z_])")
_EMPTY = re.compile(r"(?:[^<>\"'/]|/(?!>)|\"[^\"]*\"|'[^']*')*+/>")
_ARGUMENTS = re.compile(
    r"""\((?:[^"'()]|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|\([^()"']*\))*+\)""", re.DOTALL
)
_BARE_TAG = re.compile(r"^[ \t]{0,8}(?P<name>[\w.-]{1,64}+)>(?=\s{0,8}(?:<|\Z))", re.MULTILINE)
_NOTHING = re.compile(r"[\s>]*+\Z")
_QUOTE_MARK = re.compile(r"(?:^|\n)(?P<fence>[ \t]{0,3}```)?|`")
_FUNCTION_CLOSERS = (
    "</function>", "</invoke>", "</tool_call>", "</function_calls>", "|invoke>", "｜invoke>",
    "| invoke>", "｜ invoke>",
)  # fmt: skip
_TOKENS = ("<|", "<｜")  # any other token ends the value of one such as `<|tool_arg:value|>`
_OBJECT_CLOSERS = ("}<", "}\n", "}|")
_CALL_CLOSERS = ('")', "')")


@dataclass(frozen=True, slots=True)
class OpenHead:
    """The beginning of a call in text. end: behind it. closers: the texts that would end
    that call.
    """

    end: int
    closers: tuple[str, ...]


def open_head(text: str, tools: Container[str]) -> OpenHead | None:
    """Return the first beginning of a known tool's call in a text that nothing in it ends, else
    None.

    >>> open_head("<function=note>please ", {"note"}).closers[0]
    '</function>'
    >>> open_head("<function=note>please</function> ", {"note"}) is None
    True
    """
    # Plain words, which nearly every text is, are passed without the pattern.
    may_call = "<" in text or ">" in text or ("(" in text and "=" in text)
    if not may_call and "![" not in text and "~~~" not in text and "\\begin{" not in text:
        return None
    lost = _lost_bracket(text, tools)
    if lost is not None:
        return OpenHead(len(text), (f"</{lost}>",))
    match = _HEAD.search(text)
    examples = Examples(text)
    while match is not None:
        pos = match.end()
        closers = _box_closers(text, match, tools)
        # An opener of another format right before a call is one that was written twice; an element
        # is the beginning of a value.
        if not closers and (match["element"] or not _NOTHING.match(text, pos)):
            closers = _closers(text, match, tools)
        if closers and not examples.holds(match.start()):
            closer = _any_of(closers).search(text, pos)
            if closer is None:
                return OpenHead(pos, closers)
            # The token that ends one value may begin the next.
            pos = closer.start() if closers is _TOKENS else closer.end()
        match = _HEAD.search(text, pos)
    return None


def _lost_bracket(text: str, tools: Container[str]) -> str | None:
    """Return the tool whose tag, without its first bracket, begins a line and is not closed."""
    for tag in _BARE_TAG.finditer(text) if ">" in text else ():
        if tag["name"] in tools and f"</{tag['name']}>" not in text:
            return tag["name"]
    return None


@lru_cache(maxsize=512)
def _any_of(closers: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of any of some literals."""
    return re.compile("|".join(map(re.escape, closers)))


def _box_closers(text: str, head: re.Match[str], tools: Container[str]) -> tuple[str, ...]:
    """Return the literal that would end text that only shows its content.

    () where a head begins nothing such.

    head: a match of `_HEAD` in the text. A fence at the very beginning of a text is not a sign.
    """
    if head["mark"]:
        return (_ENDS[head["mark"]],)
    if head["slot"] or head["argument"]:
        return _TOKENS
    if head["image"]:
        return ("](",)
    if head["block"]:
        return (f"\\end{{{head['block']}}}",)
    if head["fence"]:
        line = text[max(0, head.start() - _LONGEST_INDENT) : head.start()].rstrip(" ")
        spoken = text[: min(head.start(), _LONGEST_NAME)].strip()
        return ("\n~~~",) if spoken and line.endswith("\n") else ()
    name = head["element"]
    words = re.split(r"[:|｜]", name.lower()) if name else []
    if not name or name in tools or not _SHOWING.intersection(words):
        return ()
    shows = _NOTHING.match(text, head.end()) or _begins_call(text, *head.span())
    return (f"</{name}>",) if shows else ()


def _closers(text: str, head: re.Match[str], tools: Container[str]) -> tuple[str, ...]:
    """Return the literals that would end the call of a head.

    () where it begins none.

    head: a match of `_HEAD` in the text.
    """
    start, end = head.span()
    if head["function"]:
        return _FUNCTION_CLOSERS if head["function"] in tools else ()
    name = head["element"]
    if head[0] not in ("(", "{"):
        if name not in tools or not _begins_call(text, start, end):
            return ()
        return () if _EMPTY.match(text, end, end + _LONGEST_CALL) else (f"</{name}>",)
    before = text[max(0, start - _LONGEST_NAME) : start]
    name = before[len(before.rstrip(_NAME_CHARACTERS)) :]
    if name.removeprefix("functions.") not in tools:
        return ()
    if head["object"]:
        return _OBJECT_CLOSERS
    return () if _ARGUMENTS.match(text, start, start + _LONGEST_CALL) else _CALL_CLOSERS


def _begins_call(text: str, start: int, end: int) -> bool:
    """Return True if the tag of a tool's name at text[start:end] is more than a word of prose."""
    if _ATTRIBUTE.match(text, end) or _INSIDE.match(text, end):
        return True
    before = text[max(0, start - _LONGEST_INDENT) : start].rstrip(" \t\r")
    return before.endswith("\n") or (not before and start <= _LONGEST_INDENT)


class Examples:
    """The inline code and the fences of one text, asked for places in their order.

    State: everything before `_at` was looked through. `_fence` and `_ticks` hold the openers there.
    """

    __slots__ = ("_at", "_fence", "_text", "_ticks")

    def __init__(self, text: str) -> None:
        """Begin at the first character of a text."""
        self._text = text
        self._at = 0
        self._fence = False
        self._ticks = False

    def holds(self, place: int) -> bool:
        """Return True if a place is inside inline code or a fence, as far as the text tells."""
        for mark in _QUOTE_MARK.finditer(self._text, self._at, place):
            if mark[0] == "`":
                self._ticks = not self._ticks
                continue
            self._ticks = False
            if mark["fence"]:
                self._fence = not self._fence
        self._at = place
        return self._fence or self._ticks
