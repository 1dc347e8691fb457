"""Truncated calls: open heads in text, damaged closers, and values that may still be open."""

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
from collections.abc import Callable, Container
from typing import NamedTuple

from ...core.types import Span
from ...formats.scan import any_of, partial_start
from ...formats.turns import TURN_ENDS
from .shown import Examples

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
_BOXES = frozenset(("pre", "code", "samp", "blockquote", "quote", "q", "example", "document"))
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


class OpenHead(NamedTuple):
    """The beginning of a call in text. end: after it. closers: the literals that would end it."""

    end: int
    closers: tuple[str, ...]


def open_head(text: str, tools: Container[str]) -> OpenHead | None:
    """Return the first beginning of a known tool's call that nothing in the text ends, or None.

    >>> open_head("<function=note>please ", {"note"}).closers[0]
    '</function>'
    >>> open_head("<function=note>please</function> ", {"note"}) is None
    True
    """
    # Plain words, which nearly every text is, are passed without the pattern.
    may_call = "<" in text or ">" in text or ("(" in text and "=" in text)
    if not may_call and "![" not in text and "~~~" not in text and "\\begin{" not in text:
        return None
    # The tag of a tool without its first bracket, which may begin a line.
    for tag in _BARE_TAG.finditer(text) if ">" in text else ():
        if tag["name"] in tools and f"</{tag['name']}>" not in text:
            return OpenHead(len(text), (f"</{tag['name']}>",))
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
            closer = re.compile(any_of(closers)).search(text, pos)
            if closer is None:
                return OpenHead(pos, closers)
            # The token that ends one value may begin the next.
            pos = closer.start() if closers is _TOKENS else closer.end()
        match = _HEAD.search(text, pos)
    return None


def _box_closers(text: str, head: re.Match[str], tools: Container[str]) -> tuple[str, ...]:
    # The literal that would end text that only shows its content. A fence at the very beginning
    # of a text is not a sign.
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
    # Whether the tag of a tool's name is more than a word of prose.
    if _ATTRIBUTE.match(text, end) or _INSIDE.match(text, end):
        return True
    before = text[max(0, start - _LONGEST_INDENT) : start].rstrip(" \t\r")
    return before.endswith("\n") or (not before and start <= _LONGEST_INDENT)


_WRONG_CLOSER = re.compile(
    rf"(?:</?[A-Za-z_|\uff5c][\w:|\uff5c.\-]{{0,40}}>?|{any_of(TURN_ENDS)})\s*\Z"
)
# What is left of a closer, or what was put into it: `tool_call>`, `</tool_call\\>`, `[/tool_call]`.
_DAMAGED_CLOSER = re.compile(
    r"[<\[]?[ \t]{0,4}[\\/|]{0,3}[ \t]{0,4}(?P<word>[a-z][a-z_: -]{2,40}?)"
    r"[ \t]{0,4}[\\/|]{0,2}[>\]]{0,2}\s*\Z",
    re.IGNORECASE,
)
_LAST = 160  # characters that hold any closer


class GivenUp:
    """Text after a call that was given up. It may still be part of the call's last value, so calls
    in it are quoted, until a closer ends the value.
    """

    def __init__(self, text_of: Callable[[Span], str]) -> None:
        self._text_of = text_of
        self._at = -1  # up to where it was looked through for closers, -1: nothing was given up
        self._closers: tuple[str, ...] = ()
        # A text that only looked like a call, from one offset to another, and whether it breaks off
        # inside a value: calls inside it are its quotation.
        self.suspect: tuple[int, int, Callable[[str], bool]] | None = None

    def begin(self, at: int, closers: tuple[str, ...]) -> None:
        # A call was given up inside a value, at an offset in raw.
        if self._at < 0:
            self._closers = closers
        self._at = at

    def quotes(self, start: int, end: int) -> bool:
        # Whether raw[start:end] is inside a value of a call that was given up. Asked of each call
        # in turn: the closers before it are looked for on the way.
        if self.suspect is not None:
            begin, stop, in_value = self.suspect
            if start < stop and in_value(self._text_of(Span(begin, start))):
                return True
        if self._at < 0:
            return False
        before = self._text_of(Span(self._at, start))
        if any(closer in before for closer in self._closers):
            self._at = -1
            return False
        self._at = end
        return True


def partial_closer(text: str, closers: tuple[str, ...]) -> int:
    # Where the beginning of a closer starts that a text ends in, len(text) for none.
    stripped = text.rstrip()
    at = partial_start(stripped, closers) if closers else len(stripped)
    return at if at < len(stripped) else len(text)


def wrong_closer(text: str, closers: tuple[str, ...]) -> int | None:
    """Return the offset of another format's closer, a turn's, or a damaged one at a body's end, or
    None. closers: of the format.
    """
    # Models mix formats: a body in one's delimiters is closed as another's would be. Such a closer
    # counts behind JSON or tags, whose own end is in sight, one with the letters of the format's
    # own behind any body.
    at = max(0, len(text) - _LAST)
    own = {_letters(closer) for closer in closers}
    match = _DAMAGED_CLOSER.search(text, at)
    while match is not None and (
        match[0].strip() == match["word"] or _letters(match["word"]) not in own
    ):
        # Each word of a name is tried, the longest first.
        match = _DAMAGED_CLOSER.search(text, match.start() + 1)
    places = [match.start()] if match is not None else []
    if text.lstrip()[:1] in ("{", "[", "<"):
        other = _WRONG_CLOSER.search(text, at)
        places += [other.start()] if other is not None else []
    return min(places, default=None)


def _letters(text: str) -> str:
    return "".join(filter(str.isalpha, text)).lower()
