"""Call sites: a tool's name next to the sign of a call, as an attempt or as a mention.

A call alone on its line, in a fence, between tags, or as the whole answer is an attempt, whatever
is wrong with it. A call inside a sentence, or with words after it on its line, is a mention; so is
one in code that a sentence contains, and a signature with types.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice

from ...formats.scan import longest_of

_MOST_SITES = 200  # a text with more says nothing new with them
_LINE = 2000  # characters of a line that are looked at on either side of a place
# What may stand in front of a call on its line.
_LEAD = re.compile(
    r"[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]++(?P<item>))?+"
    r"(?:<\|[^<>|\n]{1,40}\|>|<[^<>\n]{1,80}>|\[[A-Z_]{2,20}\]|[\[(\"'`*{,]"
    r"|(?:print|tool|call|invoke|functions?|tool_code|default_api|tools)\b[ \t]*[(:.]?"
    r"|await\b|return\b"
    r"|[A-Za-z_]\w{0,40}[ \t]*=(?=[ \t])|[ \t])*+"
)
_LABEL = re.compile(
    r"(?:^|[\s*>])[^\W\d_][\w -]{0,30}[*`]{0,2}\s*(?::|：|->|→|=>)[ \t*]*[`\[\"']{0,2}\Z"
)
# Elements that only show their text.
_SITE_SHOWING = r"(?:li|code|br|b|i|u|strong|em|td|th|tr|p|a|h[1-6]|span|div|pre|kbd|dt|dd)"
_CALL_WORDS = r"(?:call|use|tool|function|invoke|run|action)"
_TAG_END = re.compile(
    rf"<(?!/?{_SITE_SHOWING}\b)"
    r"[^<>\n]{1,80}>[ \t]*[\[\"'`]?\Z"
)
_TAIL = re.compile(
    r"(?:[ \t]*+(?:[\])}\"'`;,.!。|*]|</?[^<>\n]{0,80}>?|<\|[^<>\n]{0,40}))*+[ \t\r]*\Z"
)
_TYPES = r"(?:str|string|int|integer|float|number|bool|boolean|list|dict|array|object|any|None)"
_TYPED = re.compile(rf"\w[ \t]*:[ \t]*{_TYPES}\b", re.IGNORECASE)
_RETURNS = re.compile(r"[ \t]*->[ \t]*\w")
_VALUE = re.compile(r"[=:\"'\d{\[]")
_DEFINES = re.compile(r"(?:def|function|fn|func|class|import|from)\s+\Z")
_ANGLES = re.compile(r"<{1,3}[^<>\n]{0,400}>{1,3}")
_OPENS = frozenset("({[")
_BRACKETS = re.compile(r"[()\[\]{}]")
_FEW_WORDS = re.compile(r"(?:[^\s?]{1,20}[ \t]+){1,3}")
_ATTRIBUTE = re.compile(r"[ \t]+[\w:.-]{1,64}[ \t]*=|[ \t]*/>")
# A tag that a sentence goes on with: words, and nothing of an element.
_SENTENCE = re.compile(r">?[ \t]+[^\W\d_]+[ \t,][^<=]*\Z")


@dataclass(frozen=True, slots=True)
class CallSite:
    """A tool's name with a call's sign after it, and whether it is an attempt at a call."""

    name: str
    start: int
    end: int
    attempt: bool


@lru_cache(maxsize=128)
def _site_patterns(names: tuple[str, ...]) -> tuple[re.Pattern[str], ...]:
    # A name with a call's sign, in a tag, and after another call.
    word = longest_of(names).replace("_", r"\\?_")
    name = rf"(?:functions?\.|tools?\.|default_api\.)?(?P<name>{word})(?![\w-])"
    return (
        re.compile(
            rf"(?<![\w.-]){name}(?:\.\w{{1,20}})?[\"'`*]{{0,3}}[ \t]{{0,8}}"
            r"(?:\[[^\[\]\n]{0,80}\])?"
            r"(?:[({]|:?=[ \t]{0,8}[({\[\"']|=(?!=)"
            rf"|(?<=\w)<(?!/|[|｜]|{_SITE_SHOWING}\b)|[ \t]\|(?=[^|\n]{{0,200}}=))"
        ),
        re.compile(rf"<(?:\w{{1,20}}:|{_CALL_WORDS}[ \t])?(?P<name>{word})(?=[\s/>])"),
        re.compile(rf"[ \t]*[,;][ \t]*{name}\("),
    )


def call_sites(text: str, names: tuple[str, ...]) -> list[CallSite]:
    """Return the places of a text where one of these tools meets a sign of a call, in order.

    >>> [site.attempt for site in call_sites("f(a=1\\nI would call f(a).", ("f",))]
    [True, False]
    """
    call, tag, following = _site_patterns(names)
    sites: list[CallSite] = []
    listings: list[int] = []
    for match in islice(call.finditer(text), _MOST_SITES):
        attempt, values = _is_attempt(text, match, following)
        if attempt and not values:
            listings.append(len(sites))
        sites.append(CallSite(match["name"].replace("\\", ""), *match.span(), attempt))
    # One tool after the other, with nothing but the names of parameters: they are listed.
    if len({sites[at].name for at in listings}) > 1:
        for at in listings:
            sites[at] = replace(sites[at], attempt=False)
    closers = {name: text.rfind(f"</{name}>") for name in names}
    for match in islice(tag.finditer(text), _MOST_SITES):
        attempt = closers.get(match["name"], -1) >= match.end()
        if not attempt:
            before, after = _line_of(text, match)
            # At the beginning of its line it is one, unless a sentence goes on from it.
            attempt = _ATTRIBUTE.match(after, 1) is not None or (
                _LEAD.fullmatch(before) is not None and not _SENTENCE.match(after[1:])
            )
        sites.append(CallSite(match["name"], *match.span(), attempt))
    return sorted(sites, key=lambda site: site.start)


def _line_of(text: str, match: re.Match[str]) -> tuple[str, str]:
    # The line before a match, and from its last character on.
    start, last = match.start(), match.end() - 1
    begin = max(text.rfind("\n", 0, start) + 1, start - _LINE)
    end = text.find("\n", last)
    return text[begin:start], text[last : min(end if end >= 0 else len(text), last + _LINE)]


def _is_attempt(text: str, match: re.Match[str], following: re.Pattern[str]) -> tuple[bool, bool]:
    # Whether a name with a sign is an attempt, and whether it has values as arguments.
    before, after = _line_of(text, match)
    if after[0] == "=":
        return False, True  # an assignment of a word or a number
    behind, arguments = _after_bracket(after)
    values = bool(_VALUE.search(arguments)) or not arguments.strip() or behind is None
    if _DEFINES.search(before) or _TYPED.search(arguments) or _RETURNS.match(behind or ""):
        return False, values
    alone = behind is None or bool(_TAIL.match(behind) or following.match(behind))
    lead = _LEAD.fullmatch(before)
    if lead is not None:
        # An item of a list that names a tool's parameters describes it.
        return alone and (lead["item"] is None or values), values
    if _TAG_END.search(before):
        return True, values
    if not alone or behind is None or not _VALUE.search(arguments):
        return False, values
    return bool(_LABEL.search(before) or _FEW_WORDS.fullmatch(before)), values


def _after_bracket(after: str) -> tuple[str | None, str]:
    # What follows a call's closing bracket on its line (None: it does not close there), and what
    # is inside the brackets.
    if after[0] == "<":
        angle = _ANGLES.match(after)
        return (after[angle.end() :], angle[0]) if angle else (None, after[1:])
    if after[0] not in _OPENS:
        return "", after
    depth = 0
    for bracket in _BRACKETS.finditer(after):
        depth += 1 if bracket[0] in "([{" else -1
        if depth <= 0:
            return after[bracket.end() :], after[1 : bracket.start()]
    return None, after[1:]
