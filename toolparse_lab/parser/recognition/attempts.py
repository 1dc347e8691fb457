"""Attempts: signs in the text alone that a call was tried.

No parser is involved: a call that a parser failed to read must not pass for the model's silence.
"""

# How it works
# ------------
# A sign is one of two kinds. A format's own: the openers and marks that protocols say themselves,
# and whatever is shaped like a delimiter and speaks of a call (`<|tool_call|>`, `[TOOL_CALLS]`),
# with the head of a body after it, so that prose about a format is no attempt. Or a structure: the
# name of a tool on offer next to anything that is shaped like a call: JSON, a tag, parentheses,
# keys of the tool. A structure needs no format to be known, so that a new one is no silence. Of all
# signs the first in the text wins.
#
# Cost: patterns depend on the tools' names, so they are compiled once for a set of tools.
# An answer may be long, so repetitions are bounded wherever a line break does not end them, only so
# many quoted signs are passed over, and a place looks at a window before it.

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from ...core.toolspec import ToolSpec
from ...core.types import ParseResult, Problem, Span
from ...formats.base import Signs
from ...formats.registry import protocols
from ...formats.scan import longest_of
from .call_sites import call_sites
from .shown import ExampleEnds, is_shown, masked, shown_ranges

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
JSON_NAME = re.compile(
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
    r"(?:\s|[\"'”*`>]|,|[:：=]|->|<[^<>\n]{1,80}>|\[[A-Z_]{1,20}\]\w{0,40}|```\w{0,20}"
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
_CODE_LIST = re.compile(r"\A\s*\[\s*[\"']?[A-Za-z_][\w.]*\(\s*(?:[A-Za-z_]\w*\s*=|\))")
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
    head = rf"(?=\s*(?:[\[{{<\"'(]|\Z|(?:functions\.|call:)?(?:{tool})))"
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
                rf"|<(?!/|{_TAGS_OF_WORDS}\b)[^<>\n]{{1,80}}>\s{{0,9}}{name}(?::\d{{1,4}})?\s{{0,9}}<"
                rf"|^[ \t]*{name}[ \t]*\n\s{{0,40}}<(?:{key})>"
                rf"|(?<!\w)to=(?:functions\.)?(?:{tool})[ \t]*[<|]",
                re.IGNORECASE | re.MULTILINE,
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
    searched = masked(text, [*quoted, *shown_ranges(text)])
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
    named = (m for m in JSON_NAME.finditer(searched) if _is_json_call(searched, m, names))
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
    ends: ExampleEnds | None = None
    for problem in problems:
        if problem.code == "call.quoted-example" and problem.span is not None:
            start = problem.span.start
            if start >= end:
                ends = ends or ExampleEnds(raw, closers)
                end = max(problem.span.end, ends.after(start))
                yield Span(start, end)


def parameter_names(tools: Iterable[ToolSpec]) -> set[str]:
    """Return the names of all parameters of the tools, of the outermost objects alone."""
    schemas = (tool.schema for tool in tools)
    # `true` is a schema, too.
    members = (schema.get("properties") for schema in schemas if isinstance(schema, Mapping))
    return {name for some in members if isinstance(some, Mapping) for name in some}
