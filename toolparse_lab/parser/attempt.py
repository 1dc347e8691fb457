"""Signs in the text alone that a call was tried, or that the model wrote a tool's result itself.

No parser is involved: a call that a parser failed to read must not pass for the model's silence."""

# How it works
# ------------
# A sign is one of two kinds. A format's own: the openers and marks that protocols say themselves,
# and whatever is shaped like a delimiter and speaks of a call (`<|tool_call|>`, `[TOOL_CALLS]`),
# with the head of a body after it, so that prose about a format is no attempt. Or a structure: the
# name of a tool on offer next to anything that is shaped like a call: JSON, a tag, parentheses,
# keys of the tool. A structure needs no format to be known, so that a new one is no silence. Of all
# signs the first in the text wins.
#
# Call sites: a tool's name with `(`, `{`, `<`, `|` or `=` after it. Where it is decides: a call
# alone on its line, in a fence, between tags, or as the whole answer is an attempt, whatever is
# wrong with it. A call inside a sentence, or with words after it on its line, is a mention of the
# tool; so is one in code that a sentence contains, and a signature with types.
#
# What only shows something is blanked out before, with its length kept so that offsets stay true:
# lines that begin with `>`, code spans (any number of backticks, with text around them), and blocks
# of code, fenced or indented, whose introduction says that they are an example. The words and marks
# of quotation are those of the engine, which passes such calls over; here more words count, because
# nothing is executed by what is told here. A sign in quotation marks is passed over (`is_shown`).
#
# Cost: patterns depend on the tools' names, so they are compiled once for a set of tools.
# An answer may be long, so repetitions are bounded wherever a line break does not end them, only so
# many quoted signs are passed over, and a place looks at a window before it.

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import TypeAlias

from ..core.toolspec import ToolSpec
from ..core.types import ParseResult, Problem, Span
from ..formats.base import Signs
from ..formats.registry import protocols
from ..formats.scan import longest_of
from .quoting import LINE_HEAD, WINDOW, is_example, is_indented, sign_of

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


Ranges: TypeAlias = list[tuple[int, int]]
"""(start, end) of places in a text, in order."""

_QUOTED_LINES = re.compile(r"^[ \t]{0,3}>(?!>>\w)[^\n]*(?:\n[ \t]{0,3}>[^\n]*)*", re.MULTILINE)
_TICKS = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_FENCE = re.compile(r"^[ \t]{0,3}(?P<ticks>`{3,}|~{3,})[^\n`]*$", re.MULTILINE)
# Words of an introduction that tells how something would be done. Those of the engine come first.
_EXPLAINS = re.compile(
    r"\b(?:you|one|users?|developers?|someone|anyone)\s+(?:can|could|would|might|may|should|need|"
    r"must|have to|use|call|write)\b"
    r"|\b(?:would|could|might)\s+(?:be|look|have|call|use|write|need|send|take)\b"
    r"|\b(?:the|its|this) (?:call )?format\b[^\n]{0,40}\bis\b"
    r"|\b(?:how to|syntax|template|signature|definition|schema|placeholders?|documentation|usage|"
    r"hypothetical\w*|in general|generally|demonstrat\w+|explain\w*|if (?:i|we|you) (?:had|were))\b"
    r"|\b(?:man (?:kann|könnte|würde)|(?:du|sie) (?:kannst|könntest|können|könnten)|etwa so"
    r"|würde|könnte|sähe|zum beispiel|z\.\s?b\.)"
    r"|\b(?:on (?:peut|pourrait)|vous (?:pouvez|pourriez)|serait|comme ceci|ainsi)\b"
    r"|\b(?:podr[ií]as?|se puede|puedes|ser[ií]a|pode(?:ria)?|así|assim)\b"
    r"|\b(?:si può|potresti|sarebbe|così|zou|można)\b"
    "|\\b(?:\u043c\u043e\u0436\u043d\u043e|\u043c\u043e\u0436\u0435\u0442\u0435)\\b"
    r"|比如|可以这样|格式|のように|場合は",
    re.IGNORECASE,
)
_DEFINES_TARGET = re.compile(
    r"^\s*(?:async\s+)?(?:def|function|fn|func|class|interface)\s+\w", re.MULTILINE
)
_WORD = re.compile(r"[\w.-]+")
_INTRODUCTION = 400  # characters before a block in which its introduction is looked for


def shown_ranges(text: str) -> Ranges:
    """Return the places of a text that only show something, sorted and apart.

    >>> shown_ranges("a `f(x)` c")
    [(2, 8)]
    >>> shown_ranges("For example:\\n```\\nf(x=1)\\n```\\nI do not call it.")
    [(13, 27)]
    """
    fences = list(_fences(text))
    ranges: Ranges = []
    for start, end in fences:
        # One introduction may be of several blocks.
        follows = bool(ranges) and not text[ranges[-1][1] : start].strip()
        if follows or _is_introduced(text, start) or _DEFINES_TARGET.search(text, start, end):
            ranges.append((start, end))
    ranges += [match.span() for match in _QUOTED_LINES.finditer(text)]
    ranges += _code_spans(text, fences)
    ranges += _indented_blocks(text)
    return merged(ranges)


def merged(ranges: Ranges) -> Ranges:
    """Return ranges sorted, those that overlap as one.

    >>> merged([(4, 6), (0, 2), (1, 3)])
    [(0, 3), (4, 6)]
    """
    together: Ranges = []
    for start, end in sorted(ranges):
        if together and start <= together[-1][1]:
            together[-1] = (together[-1][0], max(end, together[-1][1]))
        else:
            together.append((start, end))
    return together


def is_shown(text: str, offset: int) -> bool:
    """Return True if the text that begins at an offset stands in quotation marks.

    >>> is_shown('He wrote “f(x=1)”.', 10), is_shown("Now f(x=1).", 4)
    (True, False)
    """
    before = text[max(0, offset - WINDOW) : offset]
    line = text.rfind("\n", 0, offset) + 1
    return bool(sign_of(before, text[line : min(offset, line + LINE_HEAD)]))


def example_end(text: str, start: int, closers: Sequence[str] = ()) -> int:
    """Return where an example ends whose opener is at an offset: with the place that shows it, if
    there is one, else with the nearest of the format's own closers, or with the paragraph.

    >>> example_end("See <c>{}</c>, but f(x=1)", 4, ["</c>"])
    13
    """
    for begin, end in shown_ranges(text):
        if begin <= start < end:
            return end
    ends = [at + len(c) for c in closers if (at := text.find(c, start)) >= 0]
    if ends:
        return min(ends)
    blank = text.find("\n\n", start)
    return len(text) if blank < 0 else blank


def _fences(text: str) -> Iterator[tuple[int, int]]:
    # One without an end goes to the text's.
    opener: re.Match[str] | None = None
    for match in _FENCE.finditer(text):
        ticks = match["ticks"]
        if opener is None:
            opener = match
        elif ticks.startswith(opener["ticks"]) and match[0].strip() == ticks:
            # With a word behind it, it would be a line of the block.
            yield opener.start(), match.end()
            opener = None
    if opener is not None:
        yield opener.start(), len(text)


def _is_introduced(text: str, start: int) -> bool:
    before = text[max(0, start - _INTRODUCTION) : start].rstrip()
    line = before.rpartition("\n")[2]
    return is_example(before) or _EXPLAINS.search(line) is not None


def _code_spans(text: str, fences: Ranges) -> Ranges:
    # Ticks, code and as many ticks, within one paragraph. A text that is nothing but one span is
    # not an example: there is nothing around it.
    starts = [start for start, _ in fences]
    runs = []
    for match in _TICKS.finditer(text):
        index = bisect_right(starts, match.start()) - 1
        if index < 0 or match.start() >= fences[index][1]:
            runs.append(match.span())
    blanks = [match.start() for match in _BLANK_LINE.finditer(text)]

    # From the right, so that each run knows the next one of its length.
    following: dict[int, int] = {}
    partners: dict[int, int] = {}
    for i in range(len(runs) - 1, -1, -1):
        size = runs[i][1] - runs[i][0]
        if size in following:
            partners[i] = following[size]
        following[size] = i

    spans: Ranges = []
    end = 0
    for i, j in sorted(partners.items()):
        (start, inner), (inner_end, after) = runs[i], runs[j]
        if i < end or bisect_right(blanks, start) != bisect_right(blanks, inner_end):
            continue
        end = j + 1
        # A word alone names something; what it names may be called right behind it.
        if not _WORD.fullmatch(text, inner, inner_end):
            spans.append((start, after))
    if len(spans) == 1 and text.strip() == text[spans[0][0] : spans[0][1]]:
        return []
    return spans


def _indented_blocks(text: str) -> Ranges:
    ranges: Ranges = []
    is_open = False
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.strip():
            was_open, is_open = is_open, is_indented(line)
            if is_open:
                start = ranges.pop()[0] if was_open else offset
                ranges.append((start, offset + len(line.rstrip())))
        offset += len(line)
    return [(start, end) for start, end in ranges if _is_introduced(text, start)]


# What is shaped like a delimiter and speaks of a call, in tags, brackets or special tokens. Closers
# and results speak of calls, too, so that a word of them excludes it.
_CALL_WORD = (
    r"(?:tool|function|func|api|plugin)[_▁\s:-]?(?:calls?|uses?|requests?|invocations?)"
    r"|calls?|invoke|actions?|function(?==|\s+name=|>|[_▁](?:start|begin))|python_(?:tag|start)"
)
_NO_CALL_WORD = r"(?<![^\W_])(?:end|results?|responses?|outputs?|observations?)(?![^\W_])"
_DELIMITER = Signs(
    openers=(
        rf"<(?!/)(?![^<>\s=]{{0,80}}{_NO_CALL_WORD})(?:[^<>\n]{{0,40}}[\W_▁])?(?:{_CALL_WORD})"
        r"(?![^\W_])[^<>\n]{0,200}>+",
        r"\[(?:(?:TOOL|FUNCTION|API)_(?:CALLS?|REQUEST|USE)|CALLS?)\]",
        # Openers that have no shape of their own.
        r"functools(?=\[)",
        r"✿FUNCTION✿\s*:?",
        r">>>(?=\w)",
    ),
)
# The two lines of the ReAct format, where they name a tool, and a JSON body that ends with a
# closing tag.
_NO_ACTION = r"(?!(?i:none|null|n/?a|no (?:action|tool)|final answer|finish)(?!\w))"
_REACT = rf"^[ \t]*Action[ \t]*:[ \t]*{_NO_ACTION}\S[^\n]*\n+[ \t]*Action[ _]Input[ \t]*:"
_CLOSERS = r"[}\]>][ \t\r\n]*</(?:tool_call|function|tool_use|invoke)>"
_MARKS = (_REACT, _CLOSERS)

# Calls as JSON: a member that names a function. Typographic quotes count, since models write them.
_NAME_KEYS = r"name|tool|tool_name|tool_call|function|function_name|action|recipient_name"
_JSON_NAME = re.compile(
    rf"""[{{,\[]\s*["'“]?(?:{_NAME_KEYS})["'”]?\s*:\s*"""
    r"""["'“](?:functions\.)?([^"'“”\n]{1,200})["'”]"""
)
_JSON_WORD = re.compile(
    r"""[{,\[]\s*["'“][\w -]{1,40}["'”]\s*:\s*["'“](?:functions\.)?([\w.-]{1,200})["'”]"""
)
# Members of a tool's definition, which a model may quote, and of a call's arguments.
_DEFINITION = re.compile(r"""["'](?:description|properties|inputSchema)["']\s*:""")
_ARGUMENTS = re.compile(
    r"""["']?(?:arguments|parameters|args|action_input|input|tool_input)["']?\s*[:=]"""
)

# Results that the model wrote itself: marked as such, or as plain lines.
_RESULTS = re.compile(
    r"<(?:\|)?(?:tool_?(?:response|result|output)s?|function_?(?:response|result|output)s?)"
    r"\b[^<>\n]{0,80}>\s*(?=\S)(?!</)"
    r"|\[TOOL_RESULTS?\]\s*(?=\S)"
    r"|<\|im_start\|>\s*tool\b|<\|start_header_id\|>\s*(?:ipython|tool)\b|<\|start\|>functions\.",
    re.IGNORECASE,
)
_RESULT_LINES = re.compile(
    r"^[ \t>*#]*(?:observation|"
    r"(?:tool|function)[ _-]?(?:response|result|output|returned|returns))[ \t*]*:[ \t]*\S",
    re.IGNORECASE | re.MULTILINE,
)
# Characters around a JSON member in which arguments, or a definition, are searched.
_NEARBY = 400
# A line of code may be as long as the answer.
_MAX_SIGN = 120
# Quoted signs of one pattern that are passed over; behind them the next one counts, so that a
# hostile text costs no more than that many looks.
_MOST_PASSED = 200
_ELEMENT = re.compile(r"<[A-Za-z_][\w.-]*>\s*<([A-Za-z_][\w.-]*)>")
_FENCED = re.compile(r"\A```\w*\n(.*)\n```\Z", re.DOTALL)

# What may stand between a tool's name and what it is called with: tokens, tags, a fence, a label.
_GLUE = (
    r"(?:\s|[\"'”*`]|,|[:：=]|->|<[^<>\n]{1,80}>|\[[A-Z_]{1,20}\]\w{0,40}|```\w{0,20}"
    r"|:\d{1,4}(?!\d)|(?i:\W{0,3}\b(?:with|and|(?:(?:action|tool|function)[ _])?"
    r"(?:arguments?|args|parameters?|params|input))\b\W{0,3})){0,12}?"
)
# The beginning of a JSON object, with a key or nothing in it.
_OBJECT = r"""\{\s*(?:["'“][^"'”\n]{1,80}["'”]\s*[:=]|\w{1,60}\s*[:=]|\})"""
# Tags that only show a word.
_TAGS_OF_WORDS = (
    r"(?:li|code|b|i|u|strong|em|td|th|tr|p|a|h[1-6]|span|div|pre|kbd|tt|samp|dt|dd|option|summary)"
)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A sign of a call that was tried.

    code: a sub-code of `attempted_unparseable`. text: the sign itself. start: its offset.
    """

    code: str
    text: str
    start: int


_ORDINARY = re.compile(r"\W+(?:json)?")


@lru_cache(maxsize=1)
def _all_signs() -> Signs:
    every = [_DELIMITER, *(protocol.signs_of_attempts() for protocol in protocols().values())]
    # Dicts instead of sets: an alternative that is first in a pattern is tried first. Brackets and
    # fences, which formats of bare JSON begin with, begin much else.
    openers = [s for signs in every for s in signs.openers if not _ORDINARY.fullmatch(s)]
    marks = [mark for signs in every for mark in signs.marks]
    return Signs(tuple(dict.fromkeys(openers)), tuple(dict.fromkeys(marks)))


# How the patterns are compiled. Those of all formats take 40 milliseconds, as long as to parse and
# score a hundred answers, and logs may have other tools in every row. So what names no tool is
# compiled once for all tools, and the rest only for an answer with a tool's name in it.
_CODE_LIST = re.compile(r"\A\s*\[\s*[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=|\))")
Patterns: TypeAlias = "tuple[tuple[str, re.Pattern[str]], ...]"
"""(code, pattern) in the order in which they win over one another."""


@lru_cache(maxsize=512)
def _names_pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    # Wherever one of the patterns below has a name, in any case and with escaped underscores.
    return re.compile(longest_of(names).replace("_", r"\\?_"), re.IGNORECASE)


@lru_cache(maxsize=128)
def _openers_of(signs: Signs | None) -> str:
    return "|".join((*_all_signs().openers, *(signs or Signs()).openers))


@lru_cache(maxsize=128)
def _marks_of(signs: Signs | None) -> re.Pattern[str]:
    marks = (*_all_signs().marks, *(signs or Signs()).marks, *_MARKS)
    return re.compile("|".join(f"(?:{mark})" for mark in marks), re.MULTILINE | re.IGNORECASE)


@lru_cache(maxsize=128)
def _nameless_patterns(signs: Signs | None) -> Patterns:
    # What is left of `_patterns_of` for a text without a name.
    head = r"(?=\s*(?:[\[{<\"'(]|\Z))"
    return (
        ("delimiter", re.compile(f"(?:{_openers_of(signs)}){head}", re.IGNORECASE)),
        ("delimiter", _marks_of(signs)),
        ("code", _CODE_LIST),
    )


@lru_cache(maxsize=512)
def _patterns_of(
    names: tuple[str, ...], parameters: tuple[str, ...], signs: Signs | None
) -> Patterns:
    # names, parameters: sorted, so that one set of tools is compiled once.
    tool, key = longest_of(names), longest_of(parameters)
    head = rf"(?=\s*(?:[\[{{<\"'(]|\Z|(?:functions\.|call:)?(?:{tool})(?!\w)))"
    # The name as a word of its own, in the namespace that some formats put before it.
    name = rf"(?<![\w.-])(?:functions?\.|tools?\.|default_api\.)?(?:{tool})(?![\w-])"
    label = r"[ \t]*(?:[^\W\d_][\w ]{0,30}[ \t]*[:：=][ \t]*)?"

    return (
        ("delimiter", re.compile(f"(?:{_openers_of(signs)}){head}", re.IGNORECASE)),
        ("delimiter", _marks_of(signs)),
        ("code", re.compile(rf"^[ \t]*call:(?:{tool})\b", re.MULTILINE)),
        # A tag named after a tool, or a tool's name as an attribute's value, or between two tags of
        # which the first does not only show a word.
        (
            "markup",
            re.compile(
                rf"</(?:\w{{1,20}}:)?(?:{tool})>"
                rf"|<(?!{_TAGS_OF_WORDS}\b)[^<>\n]{{1,120}}=\s*[\"']?{name}[\"']?[^<>\n]{{0,120}}>"
                rf"|>[^<>\n]{{0,60}}=\s*[\"']?{name}[\"']?[^<>\n]{{0,60}}<"
                rf"|<(?!/|{_TAGS_OF_WORDS}\b)[^<>\n]{{1,80}}>\s{{0,9}}{name}(?::\d{{1,4}})?\s{{0,9}}<",
                re.IGNORECASE,
            ),
        ),
        ("json", re.compile(rf"""[{{,\[]\s*["'](?:{tool})["']\s*:\s*\{{""")),
        ("json", re.compile(rf"""["'“*`]{{0,3}}{name}{_GLUE}{_OBJECT}""")),
        ("code", _CODE_LIST),
        # A tool's name with its parameters as keys. A list with bullets describes the tool.
        (
            "keys",
            re.compile(
                rf"^{label}[\"'`*]{{0,3}}{name}[\"'`*]{{0,3}}[ \t]*[:：]?[ \t]*\n"
                rf"(?:[ \t]*(?:arguments?|args|parameters?|params|(?:action[ _])?input)"
                rf"[ \t]*[:：=]\s*)?[ \t]*[\"'`]?(?:{key})[\"'`]?[ \t]*[:：=][ \t]*\S"
                rf"|^{label}{name}[ \t]*[:：,]?[ \t]+(?:--)?[\"']?(?:{key})[\"']?"
                r"[ \t]*[:：=][ \t]*\S"
                rf"|^{label}{name}[ \t]+--(?:{key})\b",
                re.MULTILINE | re.IGNORECASE,
            ),
        ),
    )


def find_attempt(
    text: str,
    tool_names: Iterable[str] = (),
    quoted: Sequence[tuple[int, int]] = (),
    parameters: Iterable[str] = (),
    signs: Signs | None = None,
) -> Attempt | None:
    """Return the first sign of a call in `text`, from which reasoning drops out, or None.

    tool_names: the tools on offer. quoted: ranges that hold examples. They and inline code are not
    searched. parameters: the names of the tools' parameters: an element around one of them, or a
    lone JSON object of nothing else, is a call whose own name went wrong. signs: those of a
    protocol that is neither shipped nor installed.

    >>> find_attempt('<tool_call>{"name": "f"', ["f"]).code
    'delimiter'
    >>> find_attempt("I would need a `<tool_call>` for that, but f(x) does not fit.", ["f"])
    """
    searched = _masked(text, [*quoted, *shown_ranges(text)])
    names = tuple(sorted(set(tool_names)))
    keys = tuple(sorted(set(parameters)))

    found: list[Attempt] = []

    def find(code: str, matches: Iterable[re.Match[str]], most: int | None = None) -> bool:
        # The first that is not quoted; after many that are, the next.
        for passed, match in enumerate(matches):
            if passed >= _MOST_PASSED or not is_shown(searched, match.start()):
                found.append(Attempt(code, match[0].strip()[:most], match.start()))
                return True
        return False

    is_named = _names_pattern(names).search(searched) is not None
    for code, pattern in (
        _patterns_of(names, keys, signs) if is_named else _nameless_patterns(signs)
    ):
        matches = pattern.finditer(searched)
        if code == "json":
            # A tool's definition only describes a call.
            matches = (m for m in matches if not _is_definition(searched, m.start(), m.end()))
        find(code, matches, _MAX_SIGN)
    for site in call_sites(searched, names) if is_named else ():
        if site.attempt and not is_shown(searched, site.start):
            code = "markup" if searched[site.start] == "<" else "code"
            found.append(Attempt(code, searched[site.start : site.end], site.start))
            break
    # A JSON member that names a tool. Any key may do that, where there are arguments with it.
    named = (m for m in _JSON_NAME.finditer(searched) if _is_json_call(searched, m, names))
    if not find("json", named):
        given = _argument_pattern(keys)
        around = (
            (m, searched[max(0, m.start() - _NEARBY) : m.end() + _NEARBY])
            for m in _JSON_WORD.finditer(searched)
            if m[1] in names
        )
        words = (m for m, near in around if given.search(near) and not _DEFINITION.search(near))
        find("json", words)
    # Calls without a name of their own: parameters as elements, or as one JSON object.
    elements = (m for m in _ELEMENT.finditer(searched) if m[1] in keys)
    if keys and not find("markup", elements) and _is_lone_object(searched, keys):
        found.append(Attempt("json", searched.strip(), 0))
    # Of two that begin together, the one that is searched first wins.
    return min(found, key=lambda attempt: attempt.start, default=None)


@lru_cache(maxsize=512)
def _argument_pattern(parameters: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile(rf"""{_ARGUMENTS.pattern}|["'](?:{longest_of(parameters)})["']\s*:""")


def _is_definition(text: str, start: int, end: int) -> bool:
    return _DEFINITION.search(text[start : end + _NEARBY].split("\n\n")[0]) is not None


def _is_lone_object(text: str, parameters: tuple[str, ...]) -> bool:
    body = _FENCED.sub(r"\1", text.strip()).strip()
    if not (body.startswith("{") and body.endswith("}")):
        return False
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return False
    # An empty object says nothing, not even that a tool without parameters was meant.
    return bool(value) and set(parameters).issuperset(value)


def _is_json_call(text: str, match: re.Match[str], names: tuple[str, ...]) -> bool:
    # The tool is on offer, or there are arguments next to the name, after or before it.
    start, end = match.span()
    if _is_definition(text, end, end):
        return False
    if match[1] in names or _ARGUMENTS.match(text[end : end + _NEARBY].lstrip(" \t\r\n,")):
        return True
    return _ARGUMENTS.search(text[max(0, start - _NEARBY) : start + 1]) is not None


def example_spans(result: ParseResult) -> list[Span]:
    """Return where the parser saw examples, each from its opener to where it ends."""
    protocol = protocols().get(result.protocol)
    tools = {tool.name: tool for tool in result.tools}
    closers = () if protocol is None else protocol.envelope.closers_in_text(tools)
    return list(iter_examples(result.problems, result.raw, closers))


def iter_examples(problems: Iterable[Problem], raw: str, closers: Sequence[str]) -> Iterator[Span]:
    """Yield the span of each example that the parser noted. closers: of the format's calls."""
    end = 0
    for problem in problems:
        if problem.code == "call.quoted-example" and problem.span is not None:
            start = problem.span.start
            if start >= end:
                end = max(problem.span.end, example_end(raw, start, closers))
                yield Span(start, end)


def parameter_names(tools: Iterable[ToolSpec]) -> set[str]:
    """Return the names of all parameters of the tools, of the outermost objects alone."""
    schemas = (tool.schema for tool in tools)
    # `true` is a schema, too.
    members = (schema.get("properties") for schema in schemas if isinstance(schema, Mapping))
    return {name for some in members if isinstance(some, Mapping) for name in some}


def find_own_result(text: str, *, after_call: bool) -> str:
    """Return the text with which a model began a tool's result itself, or "".

    Plain lines such as "Observation: …" count only where a call was made before (`after_call`),
    since they may be prose elsewhere.

    >>> find_own_result("Observation: 7 degrees", after_call=True)
    'Observation: 7'
    """
    searched = _masked(text, shown_ranges(text))
    match = _RESULTS.search(searched)
    if match is None and after_call:
        match = _RESULT_LINES.search(searched)
    return match[0].strip() if match else ""


def _masked(text: str, quoted: Sequence[tuple[int, int]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop in merged([*quoted]):
        parts += (text[end:start], "·" * (stop - start))
        end = stop
    return "".join([*parts, text[end:]])
